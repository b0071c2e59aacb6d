/* SPDX-License-Identifier: Apache-2.0
 *
 * A node that nobody asks anything sleeps: how often it ticks between two renewals of its lease,
 * and what makes it tick more often.
 */
#include "tests/test.h"

#include "bench/node_mill.h"

enum { ACTORS = 5, RENEWALS = 20 };

static const uint64_t MS = 1000;

static size_t renewals;

static void count_renewals(struct local_node *n, const struct host_effect *e, struct bytes bytes)
{
    Rh__Control *c = e->type == HOST_SEND_COORDINATOR ? control_get(bytes) : NULL;

    (void)n;
    renewals += c != NULL && c->body_case == RH__CONTROL__BODY_RENEW;
    control_free(c);
}

static void open(struct mill *m)
{
    mill_open(m, ACTORS, 1);
    m->node.perform = count_renewals;
    renewals = 0;
}

static void tick(struct mill *m)
{
    struct host_event event = {.type = HOST_TICK};

    local_node_step(&m->node, &event);
}

/* As the shell: when the host says, at least every 250 ms and at most every 10. */
static void sleep_and_tick(struct mill *m)
{
    const uint64_t now_us = m->node.now_us;
    uint64_t until_us = host_rests_until_us(m->node.host);

    until_us = until_us > now_us + 10 * MS ? until_us : now_us + 10 * MS;
    m->node.now_us = until_us < now_us + 250 * MS ? until_us : now_us + 250 * MS;
    tick(m);
}

static void it_ticks_thrice_a_renewal_at_most(void **state)
{
    struct mill m;
    size_t ticks = 0;

    (void)state;
    open(&m);
    for (; renewals < 1; ticks++) {
        sleep_and_tick(&m);
    }
    for (ticks = 0; renewals < 1 + RENEWALS; ticks++) {
        assert_int_not_equal(host_rests_until_us(m.node.host), 0);
        sleep_and_tick(&m);
    }
    assert_in_range(ticks, RENEWALS, 3 * RENEWALS);
    mill_close(&m);
}

static void it_renews_no_later_for_it(void **state)
{
    struct mill m;

    (void)state;
    open(&m);
    while (renewals < 1) {
        sleep_and_tick(&m);
    }
    for (int i = 0; i < RENEWALS; i++) {
        const uint64_t due_us = host_rests_until_us(m.node.host);
        const size_t before = renewals;

        while (renewals == before) {
            sleep_and_tick(&m);
        }
        assert_in_range(m.node.now_us, due_us, due_us + 10 * MS);
    }
    mill_close(&m);
}

static void a_request_that_runs_ends_its_rest(void **state)
{
    struct mill m;

    (void)state;
    open(&m);
    tick(&m);
    m.node.perform = mill_perform;
    mill_make(&m, MILL_KV, 1);
    mill_admit(&m);
    assert_int_equal(host_rests_until_us(m.node.host), 0);
    while (m.answer_count < 1) { // its actor starts, then it runs
        mill_run(&m);
        mill_answer(&m);
        worker_send(m.node.worker);
    }
    assert_int_not_equal(host_rests_until_us(m.node.host), 0);
    mill_close(&m);
}

static void a_leader_that_is_lost_ends_its_rest(void **state)
{
    struct host_event down = {.type = HOST_COORDINATOR_DOWN};
    struct mill m;

    (void)state;
    open(&m);
    tick(&m);
    assert_int_not_equal(host_rests_until_us(m.node.host), 0);
    local_node_step(&m.node, &down);
    assert_int_equal(host_rests_until_us(m.node.host), 0);
    mill_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ticks_thrice_a_renewal_at_most),
        cmocka_unit_test(it_renews_no_later_for_it),
        cmocka_unit_test(a_request_that_runs_ends_its_rest),
        cmocka_unit_test(a_leader_that_is_lost_ends_its_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
