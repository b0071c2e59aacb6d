/* SPDX-License-Identifier: Apache-2.0
 *
 * A leader says again and again that it leads: a link that lost the first word
 * would leave a node that asks nobody. (Fleet simulator, seeds 1 and 3.)
 */
#include "base/log.h"
#include "link/link.h"
#include "txn/leader/coordinator.h"
#include "wire/control.h"

#include "tests/test.h"

struct rig {
    struct state state;
    struct coordinator *c;
    struct coordinator_effects out;
    uint64_t now_us;
};

/* Steps; returns how often the link was told that this coordinator leads. */
static unsigned claims(struct rig *r, struct coordinator_event event)
{
    unsigned count = 0;

    event.now_us = r->now_us;
    coordinator_effects_clear(&r->out);
    coordinator_step(r->c, &event, &r->out);
    for (size_t i = 0; i < r->out.count; i++) {
        const struct coordinator_effect *e = &r->out.item[i];
        Rh__Control *m;

        if (e->type != COORDINATOR_SEND) {
            continue;
        }
        m = control_get(bytes_of(r->out.bytes.data + e->at, e->size));
        assert_non_null(m);
        count += m->body_case == RH__CONTROL__BODY_LEADER && m->leader->leading;
        control_free(m);
    }
    return count;
}

static unsigned claims_within(struct rig *r, uint64_t ms)
{
    unsigned count = 0;

    for (uint64_t end_us = r->now_us + ms * 1000; r->now_us < end_us;) {
        r->now_us += 50000;
        count += claims(r, (struct coordinator_event){.type = COORDINATOR_TICK});
    }
    return count;
}

static void a_leader_says_so_again_until_it_follows(void **state)
{
    const struct coordinator_config config = coordinator_config_default();
    struct rig r = {.now_us = 1000000};

    (void)state;
    state_init(&r.state);
    r.c = coordinator_new(&config, &r.state);
    assert_int_equal(
        claims(&r,
               (struct coordinator_event){
                   .type = COORDINATOR_PEER_UP, .peer = 1, .role = ROLE_NODE, .name = "n1"}),
        0);
    assert_int_equal(claims_within(&r, 5000), 0);
    assert_int_equal(claims(&r, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1}),
                     1);
    assert_int_equal(claims_within(&r, 900), 0);
    assert_int_equal(claims_within(&r, 5100), 6);
    assert_int_equal(claims(&r, (struct coordinator_event){.type = COORDINATOR_FOLLOW}), 0);
    assert_int_equal(claims_within(&r, 5000), 0);
    coordinator_free(r.c);
    coordinator_effects_fini(&r.out);
    state_fini(&r.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_says_so_again_until_it_follows),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
