/* SPDX-License-Identifier: Apache-2.0
 *
 * Who waits for whom, on as many nodes as there are actors: one of a circle is refused, and only
 * of a circle. The simulator (sim/) has the same among faults, moves and lost messages.
 */
#include "node/books/waits.h"

#include "base/mem.h"
#include "tests/planted.h"
#include "tests/test.h"

enum { ACTORS_MAX = 64, CALLS_MAX = 4096, TICK_US = 20000 };

/* A call, and whether it stands in the mailbox of whom it asks, or runs there. */
struct edge {
    unsigned from;
    unsigned to;
    bool queued;
    bool open;
    uint64_t seq;
};

static struct waits waits[ACTORS_MAX]; /* each actor on a node of its own */
static struct edge edge[CALLS_MAX];
static size_t edge_count;
static uint64_t now_us;
static size_t probes;  /* that went from node to node */
static size_t refused; /* calls … */
static size_t last;    /* … and which was the last */
static size_t to_lose; /* of the next probes, on their way */

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ACTORS_MAX; i++) {
        waits_init(&waits[i]);
    }
    edge_count = probes = refused = to_lose = 0;
    now_us = 1000000;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ACTORS_MAX; i++) {
        waits_clear(&waits[i]);
    }
    return 0;
}

static struct call_name name_of(const struct edge *e)
{
    return (struct call_name){.node = e->from + 1, .session = 7, .seq = e->seq};
}

/* Actor `from`, in its only message, asks `to`. Returns its number. */
static size_t ask_as(unsigned from, unsigned to, bool queued, uint64_t seq)
{
    const uint8_t id = (uint8_t)to;

    assert_true(edge_count < CALLS_MAX);
    edge[edge_count] = (struct edge){from, to, queued, true, seq};
    const struct wait_of wait = {
        .number = edge_count + 1,
        .run = from + 1,
        .name = name_of(&edge[edge_count]),
        .id = bytes_of(&id, 1),
        .deadline_us = now_us + 60000000,
    };
    waits_add(&waits[from], &wait, now_us);
    return edge_count++;
}

static size_t ask(unsigned from, unsigned to, bool queued)
{
    return ask_as(from, to, queued, edge_count + 1);
}

static void answer(size_t call)
{
    edge[call].open = false;
    waits_end(&waits[edge[call].from], call + 1);
}

/* What the host of `to` says. */
static struct blocked blocked_by(const struct probe *p, unsigned to)
{
    for (size_t i = 0; i < edge_count; i++) {
        const struct call_name name = name_of(&edge[i]);

        if (edge[i].open && call_name_same(&name, &p->call)) {
            assert_int_equal(edge[i].to, to);
            return (struct blocked){.run = to + 1, .queued = edge[i].queued};
        }
    }
    return (struct blocked){0};
}

/* As the host does: two probes may have found the same circle. */
static void refuse(const struct probe *p)
{
    for (size_t i = 0; i < edge_count; i++) {
        const struct call_name name = name_of(&edge[i]);

        if (edge[i].open && call_name_same(&name, &p->call)) {
            assert_true(edge[i].queued);
            answer(i);
            refused++;
            last = i;
        }
    }
}

/* Carry what `node` does. False: nothing. */
static bool carry(unsigned node)
{
    struct wait_effect *e = waits_take(&waits[node]);

    if (e == NULL) {
        return false;
    }
    if (e->type == WAIT_REFUSE) {
        assert_int_equal(e->run, node + 1);
        refuse(&e->probe);
    } else {
        const unsigned to = e->probe.id.data[0];

        probes++;
        if (to_lose > 0) {
            to_lose--;
            mem_free(e);
            return true;
        }
        waits_chase(&waits[to], &e->probe, blocked_by(&e->probe, to));
    }
    mem_free(e);
    return true;
}

static void run(uint64_t ms)
{
    for (const uint64_t end_us = now_us + ms * 1000; now_us < end_us;) {
        now_us += TICK_US;
        for (unsigned i = 0; i < ACTORS_MAX; i++) {
            waits_tick(&waits[i], now_us);
        }
        for (bool more = true; more;) {
            more = false;
            for (unsigned i = 0; i < ACTORS_MAX; i++) {
                more = carry(i) || more;
            }
        }
    }
}

static void of_two_that_ask_each_other_one_is_refused(void **state)
{
    (void)state;
    (void)ask(0, 1, true);
    (void)ask(1, 0, true);
    run(80);
    assert_int_equal(probes, 0); // most calls are answered before anybody looks
    run(40);
    assert_int_equal(refused, 1);
    run(60000);
    assert_int_equal(refused, 1);
}

static void a_call_back_to_who_asked_is_what_is_refused(void **state)
{
    (void)state;
    (void)ask(0, 1, false);
    (void)ask(1, 2, false);
    const size_t back = ask(2, 0, true);
    run(120);
    assert_int_equal(refused, 1);
    assert_int_equal(last, back);
}

/* Specification §14.3: each call that waits on asks again, after twice as long. */
static void what_is_lost_is_found_by_a_later_probe(void **state)
{
    (void)state;
    (void)ask(0, 1, true);
    (void)ask(1, 0, true);
    to_lose = 2;
    run(120);
    assert_int_equal(to_lose, 0);
    assert_int_equal(refused, 0);
    run(200);
    assert_int_equal(refused, 1);
}

static void circles_of_up_to_32_are_found(void **state)
{
    for (unsigned count = 2; count <= 32; count++) {
        (void)tear_down(state);
        (void)set_up(state);
        for (unsigned i = 0; i < count; i++) {
            (void)ask(i, (i + 1) % count, i % 3 != 1);
        }
        run(120);
        assert_int_equal(refused, 1);
    }
}

/* Who is to give way asked long ago, and would send its next probe in half a minute: the probe of
 * the call that closed the circle is sent on for it. */
static void the_last_call_of_a_circle_finds_it(void **state)
{
    (void)state;
    (void)ask_as(3, 0, true, 1);
    const size_t victim = ask_as(2, 3, true, 1);
    run(20000);
    assert_int_equal(refused, 0);
    (void)ask_as(0, 1, true, 1);
    (void)ask_as(1, 2, true, 1);
    run(120);
    assert_int_equal(refused, 1);
    assert_int_equal(last, victim);
}

static void who_waits_in_no_circle_is_not_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i + 1 < ACTORS_MAX; i++) {
        (void)ask(i, i + 1, i % 2 == 0);
    }
    (void)ask(3, 10, true); // two ways to the same actor are no circle
    (void)ask(5, 10, true);
    run(60000);
    assert_int_equal(refused, 0);
    assert_true(probes > ACTORS_MAX);
}

static void who_waits_for_a_circle_is_not_refused_for_it(void **state)
{
    (void)state;
    (void)ask_as(9, 0, true, 1); // the greatest name, and not in the circle
    (void)ask(0, 1, true);
    (void)ask(1, 0, true);
    run(120);
    assert_int_equal(refused, 1);
    assert_true(last != 0);
    run(60000);
    assert_int_equal(refused, 1);
}

static void a_call_that_was_answered_closes_no_circle(void **state)
{
    (void)state;
    answer(ask(0, 1, true));
    (void)ask(1, 0, true);
    run(60000);
    assert_int_equal(refused, 0);
}

/* It runs what would be the circle's: it waits in no mailbox, so there is none. */
static void calls_that_run_are_no_circle(void **state)
{
    (void)state;
    (void)ask(0, 1, false);
    (void)ask(1, 0, false);
    run(1000);
    assert_int_equal(refused, 0);
}

static void everybody_asks_everybody_and_probes_are_bounded(void **state)
{
    enum { COUNT = 40, NODE_A_TICK = 1000 };

    (void)state;
    for (unsigned i = 0; i < COUNT; i++) {
        for (unsigned k = 0; k < COUNT; k++) {
            if (k != i) {
                (void)ask(i, k, true);
            }
        }
    }
    for (unsigned i = 0; i < 50; i++) {
        const size_t before = probes;

        run(20);
        assert_in_range(probes - before, 0, COUNT * NODE_A_TICK);
    }
    assert_true(refused > 0);
    for (unsigned i = 0; i < 3000 && refused < edge_count; i++) {
        run(20);
    }
    // Whoever is left waits for nobody who waits for it.
    const size_t after = refused;
    run(60000);
    assert_int_equal(refused, after);
}

/* Two who wait ask into a circle, each member of which asks the next one three things. */
static void probes_from_outside_do_not_go_round_a_circle_for_ever(void **state)
{
    enum { COUNT = 6, TIMES = 3, OUTSIDE = 2 };

    (void)state;
    for (unsigned i = 0; i < COUNT; i++) {
        for (unsigned k = 0; k < TIMES; k++) {
            (void)ask(i, (i + 1) % COUNT, false); // they run, so that none of them is refused
        }
    }
    for (unsigned i = 0; i < OUTSIDE; i++) {
        (void)ask(COUNT + i, 0, true);
    }
    run(150);
    assert_int_equal(refused, 0);
    // Each of the calls began one probe, which went along each call of the circle once, and its
    // own.
    assert_in_range(probes, 1, (COUNT * TIMES + OUTSIDE) * (COUNT * TIMES + 1));
}

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup_teardown(
            of_two_that_ask_each_other_one_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_call_back_to_who_asked_is_what_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_lost_is_found_by_a_later_probe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(circles_of_up_to_32_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_call_of_a_circle_finds_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_waits_in_no_circle_is_not_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            who_waits_for_a_circle_is_not_refused_for_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_call_that_was_answered_closes_no_circle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_that_run_are_no_circle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            probes_from_outside_do_not_go_round_a_circle_for_ever, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            everybody_asks_everybody_and_probes_are_bounded, set_up, tear_down),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_PROBEONCE, M_PROBESAGAIN};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
