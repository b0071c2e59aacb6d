/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/books/lease.h, with times as the table in that header has them.
 */
#include "tests/planted.h"
#include "tests/test.h"

#include "node/books/lease.h"

enum { D = 3000000, AT = 1000000, WALL = 5000000 };
#define MS 1000L

/* What happens to one lease, in order; times in ms of the node's clock. */
enum act { END, START, SENT, GRANTED, REPLACED, JUDGED, FORGET };

struct line {
    enum act act;
    uint64_t at_ms;
    uint64_t seq;
    uint64_t term_ms; /* START, GRANTED, REPLACED */
    int64_t wall_ms;  /* SENT, JUDGED: the wall clock's lead; 0 = as at the start */
    enum lease_state state;
    int64_t left_ms; /* JUDGED */
};

static void play(bool serve, const struct line *line)
{
    struct lease l;

    lease_init(&l, serve);
    for (; line->act != END; line++) {
        const uint64_t now_us = AT + line->at_ms * MS;
        const uint64_t wall_us = (uint64_t)((int64_t)(now_us + WALL) + line->wall_ms * MS);

        if (line->act == START) {
            lease_start(&l, line->term_ms * MS);
        } else if (line->act == SENT) {
            lease_sent(&l, line->seq, now_us, wall_us);
        } else if (line->act == GRANTED) {
            (void)lease_grant(&l, line->seq, line->term_ms * MS, now_us);
        } else if (line->act == REPLACED) {
            (void)lease_replace(&l, line->seq, line->term_ms * MS, now_us);
        } else if (line->act == FORGET) {
            lease_forget(&l);
        } else {
            assert_int_equal(lease_judge(&l, now_us, wall_us).state, line->state);
            assert_int_equal(lease_margin_us(&l, now_us) / MS, line->left_ms);
        }
    }
}

static void it_counts_from_the_sending(void **state)
{
    static const struct line lines[] = {
        {.act = START, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 0, .state = LEASE_NONE},
        {.act = SENT, .at_ms = 0, .seq = 1},
        {.act = JUDGED, .at_ms = 900, .state = LEASE_NONE},
        {.act = GRANTED, .at_ms = 1000, .seq = 1, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 1000, .state = LEASE_ACTIVE, .left_ms = 2000},
        {.act = JUDGED, .at_ms = 2399, .state = LEASE_ACTIVE, .left_ms = 601},
        {.act = JUDGED, .at_ms = 2400, .state = LEASE_SOFT, .left_ms = 600},
        {.act = JUDGED, .at_ms = 2699, .state = LEASE_SOFT, .left_ms = 301},
        {.act = JUDGED, .at_ms = 2700, .state = LEASE_GATED, .left_ms = 300},
        {.act = JUDGED, .at_ms = 9000, .state = LEASE_GATED, .left_ms = 0},
        {.act = END},
    };

    (void)state;
    play(false, lines);
}

/* The new era waits for the leases of the one before; who is barred has no time left. */
static void what_runs_has_its_time_in_another_era(void **state)
{
    struct lease l;

    (void)state;
    lease_init(&l, false);
    lease_start(&l, 3000 * MS);
    lease_sent(&l, 1, AT, AT + WALL);
    (void)lease_grant(&l, 1, 3000 * MS, AT);
    const uint64_t kill_us = lease_kill_us(&l);

    assert_in_range(kill_us, AT + 2700 * MS, AT + 3000 * MS);
    lease_void(&l);
    assert_int_equal(lease_soft_us(&l), 0);
    assert_int_equal(lease_gate_us(&l), 0);
    assert_int_equal(lease_kill_us(&l), kill_us);
    lease_void(&l); // and another era yet
    assert_int_equal(lease_kill_us(&l), kill_us);
    lease_start(&l, 3000 * MS);
    assert_int_equal(lease_kill_us(&l), 0);
    lease_void(&l);
    lease_forget(&l);
    assert_int_equal(lease_kill_us(&l), 0);
}

static void it_only_grows(void **state)
{
    static const struct line lines[] = {
        {.act = START, .term_ms = 3000},
        {.act = SENT, .at_ms = 0, .seq = 1},
        {.act = SENT, .at_ms = 500, .seq = 2},
        {.act = SENT, .at_ms = 1000, .seq = 3},
        {.act = GRANTED, .at_ms = 1100, .seq = 3, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 1100, .state = LEASE_ACTIVE, .left_ms = 2900},
        {.act = GRANTED, .at_ms = 1200, .seq = 1, .term_ms = 3000}, /* late */
        {.act = GRANTED, .at_ms = 1200, .seq = 9, .term_ms = 3000}, /* never sent */
        {.act = GRANTED, .at_ms = 1200, .seq = 0, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 1200, .state = LEASE_ACTIVE, .left_ms = 2800},
        {.act = GRANTED,
         .at_ms = 1300,
         .seq = 2,
         .term_ms = 5000}, /* longer, and of an earlier renewal than the one that counts */
        {.act = JUDGED, .at_ms = 1300, .state = LEASE_ACTIVE, .left_ms = 2700},
        {.act = SENT, .at_ms = 1400, .seq = 4},
        {.act = GRANTED, .at_ms = 1400, .seq = 4, .term_ms = 5000},
        {.act = JUDGED, .at_ms = 1400, .state = LEASE_ACTIVE, .left_ms = 5000},
        {.act = END},
    };

    (void)state;
    play(false, lines);
}

/* Its margins are longer than all of a short one. */
static void a_long_one_keeps_its_margins_until_a_short_one_reaches_further(void **state)
{
    static const struct line lines[] = {
        {.act = START, .term_ms = 3000},
        {.act = SENT, .at_ms = 0, .seq = 1},
        {.act = GRANTED, .at_ms = 0, .seq = 1, .term_ms = 30000},
        {.act = SENT, .at_ms = 500, .seq = 2},
        {.act = GRANTED, .at_ms = 500, .seq = 2, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 23999, .state = LEASE_ACTIVE, .left_ms = 6001},
        {.act = JUDGED, .at_ms = 24000, .state = LEASE_SOFT, .left_ms = 6000},
        {.act = JUDGED, .at_ms = 27000, .state = LEASE_GATED, .left_ms = 3000},
        {.act = SENT, .at_ms = 27000, .seq = 3},
        {.act = GRANTED, .at_ms = 27100, .seq = 3, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 27100, .state = LEASE_ACTIVE, .left_ms = 2900},
        {.act = JUDGED, .at_ms = 29400, .state = LEASE_SOFT, .left_ms = 600},
        {.act = END},
    };

    (void)state;
    play(false, lines);
}

static void a_short_one_takes_the_place_of_a_long_one_when_it_is_told_to(void **state)
{
    static const struct line lines[] = {
        {.act = START, .term_ms = 3000},
        {.act = SENT, .at_ms = 0, .seq = 1},
        {.act = GRANTED, .at_ms = 0, .seq = 1, .term_ms = 30000},
        {.act = SENT, .at_ms = 500, .seq = 2},
        {.act = SENT, .at_ms = 1000, .seq = 3},
        {.act = REPLACED, .at_ms = 3500, .seq = 2, .term_ms = 3000}, /* it would be SOFT */
        {.act = JUDGED, .at_ms = 3500, .state = LEASE_ACTIVE, .left_ms = 26500},
        {.act = SENT, .at_ms = 4000, .seq = 4},
        {.act = REPLACED, .at_ms = 4100, .seq = 4, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 4100, .state = LEASE_ACTIVE, .left_ms = 2900},
        {.act = GRANTED, .at_ms = 4200, .seq = 3, .term_ms = 30000}, /* late, and of before */
        {.act = JUDGED, .at_ms = 4200, .state = LEASE_ACTIVE, .left_ms = 2800},
        {.act = JUDGED, .at_ms = 6400, .state = LEASE_SOFT, .left_ms = 600},
        {.act = END},
    };

    (void)state;
    play(false, lines);
}

static void a_grant_reopens_it(void **state)
{
    static const struct line lines[] = {
        {.act = START, .term_ms = 3000},
        {.act = SENT, .at_ms = 0, .seq = 1},
        {.act = GRANTED, .at_ms = 0, .seq = 1, .term_ms = 3000},
        {.act = SENT, .at_ms = 2900, .seq = 2},
        {.act = JUDGED, .at_ms = 8000, .state = LEASE_GATED},
        {.act = GRANTED, .at_ms = 8000, .seq = 2, .term_ms = 3000}, /* too old to help */
        {.act = JUDGED, .at_ms = 8000, .state = LEASE_GATED},
        {.act = SENT, .at_ms = 8000, .seq = 3},
        {.act = GRANTED, .at_ms = 8100, .seq = 3, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 8100, .state = LEASE_ACTIVE, .left_ms = 2900},
        {.act = FORGET},
        {.act = JUDGED, .at_ms = 8200, .state = LEASE_NONE},
        {.act = GRANTED,
         .at_ms = 8300,
         .seq = 3,
         .term_ms = 3000}, /* of the incarnation that is over */
        {.act = JUDGED, .at_ms = 8300, .state = LEASE_NONE},
        {.act = END},
    };

    (void)state;
    play(false, lines);
}

static void a_jump_costs_one_round(void **state)
{
    static const struct line lines[] = {
        {.act = START, .term_ms = 3000},
        {.act = SENT, .at_ms = 0, .seq = 1},
        {.act = GRANTED, .at_ms = 100, .seq = 1, .term_ms = 3000},
        {.act = SENT, .at_ms = 500, .seq = 2},
        {.act = JUDGED, .at_ms = 600, .wall_ms = 250, .state = LEASE_ACTIVE, .left_ms = 2400},
        {.act = JUDGED, .at_ms = 700, .wall_ms = 251, .state = LEASE_GATED, .left_ms = 300},
        {.act = GRANTED, .at_ms = 700, .seq = 2, .term_ms = 3000}, /* sent before the jump */
        {.act = JUDGED, .at_ms = 700, .wall_ms = 251, .state = LEASE_GATED, .left_ms = 300},
        {.act = SENT, .at_ms = 700, .seq = 3, .wall_ms = 251},
        {.act = GRANTED, .at_ms = 800, .seq = 3, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 800, .wall_ms = 251, .state = LEASE_ACTIVE, .left_ms = 2900},
        {.act = JUDGED,
         .at_ms = 900,
         .wall_ms = -2000,
         .state = LEASE_GATED,
         .left_ms = 300}, /* set back */
        {.act = JUDGED, .at_ms = 1200, .wall_ms = -2000, .state = LEASE_GATED, .left_ms = 0},
        {.act = END},
    };

    (void)state;
    play(false, lines);
}

static void the_clocks_may_drift_slowly(void **state)
{
    struct lease l;
    uint64_t now_us = AT;

    (void)state;
    lease_init(&l, false);
    lease_start(&l, D);
    for (uint64_t seq = 1; seq < 1000; seq++, now_us += 500000) {
        const uint64_t wall_us = WALL + now_us + seq * 10000; // 2 % off, ten seconds in the end

        lease_sent(&l, seq, now_us, wall_us);
        (void)lease_grant(&l, seq, D, now_us);
        assert_int_equal(lease_judge(&l, now_us, wall_us).state, LEASE_ACTIVE);
    }
    assert_int_equal(l.jumps, 0);
}

static void without_leases_all_is_allowed(void **state)
{
    static const struct line lines[] = {
        {.act = START, .term_ms = 0},
        {.act = JUDGED, .at_ms = 0, .state = LEASE_ACTIVE},
        {.act = SENT, .at_ms = 0, .seq = 1},
        {.act = GRANTED, .at_ms = 0, .seq = 1, .term_ms = 0},
        {.act = JUDGED, .at_ms = 100000, .state = LEASE_ACTIVE},
        {.act = SENT, .at_ms = 100000, .seq = 2},
        {.act = GRANTED, .at_ms = 100100, .seq = 2, .term_ms = 3000}, /* now they are */
        {.act = JUDGED, .at_ms = 100100, .state = LEASE_ACTIVE, .left_ms = 2900},
        {.act = JUDGED, .at_ms = 103000, .state = LEASE_GATED},
        {.act = GRANTED, .at_ms = 103000, .seq = 2, .term_ms = 0}, /* and now not */
        {.act = JUDGED, .at_ms = 200000, .state = LEASE_ACTIVE},
        {.act = END},
    };
    struct lease l;

    (void)state;
    play(false, lines);
    lease_init(&l, false);
    assert_int_equal(lease_gate_us(&l), UINT64_MAX);
    assert_int_equal(lease_renew_every_us(&l, 500000), 500000);
}

static void serving_on_knows_no_end(void **state)
{
    static const struct line lines[] = {
        {.act = START, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 0, .state = LEASE_ACTIVE},
        {.act = SENT, .at_ms = 0, .seq = 1},
        {.act = GRANTED, .at_ms = 0, .seq = 1, .term_ms = 3000},
        {.act = JUDGED, .at_ms = 9000, .state = LEASE_ACTIVE},
        {.act = END},
    };

    (void)state;
    play(true, lines);
}

static void margins_scale_with_the_lease(void **state)
{
    static const struct {
        uint64_t term_ms;
        uint64_t soft_ms;
        uint64_t gate_ms;
        uint64_t kill_ms;
        uint64_t renew_ms;
    } lines[] = {
        {3000, 2400, 2700, 2919, 500}, /* the caller's 500 ms, D / 6 */
        {2000, 1600, 1800, 1946, 333},
        {5000, 4000, 4500, 4865, 500},
        {600, 480, 540, 583, 100},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const uint64_t term_us = lines[i].term_ms * MS;
        struct lease l;

        lease_init(&l, false);
        lease_start(&l, term_us);
        lease_sent(&l, 1, AT, 0);
        (void)lease_grant(&l, 1, term_us, AT);
        (void)lease_judge(&l, AT, 0);
        assert_int_equal((lease_soft_us(&l) - AT) / MS, lines[i].soft_ms);
        assert_int_equal((lease_gate_us(&l) - AT) / MS, lines[i].gate_ms);
        assert_int_equal((lease_kill_us(&l) - AT) / MS, lines[i].kill_ms);
        assert_int_equal(lease_renew_every_us(&l, 500 * MS) / MS, lines[i].renew_ms);
        // Hole 27: with clocks that differ by 10 % it is over before it is given to another.
        assert_true((lease_kill_us(&l) - AT) * 110 / 100 < term_us + term_us / 10);
        (void)lease_judge(&l, lease_soft_us(&l), 0);
        assert_int_equal(lease_renew_every_us(&l, 500 * MS) / MS, 100);
    }
}

static void renewals_are_forgotten_one_by_one(void **state)
{
    struct lease l;

    (void)state;
    lease_init(&l, false);
    lease_start(&l, D);
    for (uint64_t seq = 1; seq <= LEASE_SENT_MAX + 1; seq++) {
        lease_sent(&l, seq, AT + seq, 0);
    }
    (void)lease_grant(&l, 1, D, AT + 100);
    assert_int_equal(lease_margin_us(&l, AT + 100), 0);
    (void)lease_grant(&l, 2, D, AT + 100);
    assert_int_equal(lease_margin_us(&l, AT + 2), D);
}

static void it_counts(void **state)
{
    struct lease l;

    (void)state;
    lease_init(&l, false);
    lease_start(&l, D);
    lease_sent(&l, 1, AT, 0);
    (void)lease_grant(&l, 1, D, AT);
    (void)lease_judge(&l, AT + 2000 * MS, 0);
    assert_int_equal(l.margin_min_us, 1000 * MS);
    lease_sent(&l, 2, AT + 2000 * MS, 0);
    (void)lease_grant(&l, 2, D, AT + 2100 * MS);
    (void)lease_judge(&l, AT + 2100 * MS, 0);
    assert_int_equal(l.margin_min_us, 1000 * MS);
    (void)lease_judge(&l, AT + 6000 * MS, 0);
    (void)lease_judge(&l, AT + 6100 * MS, 0);
    assert_int_equal(l.margin_min_us, 0);
    assert_int_equal(l.gated, 1);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_counts_from_the_sending),
        cmocka_unit_test(what_runs_has_its_time_in_another_era),
        cmocka_unit_test(it_only_grows),
        cmocka_unit_test(a_long_one_keeps_its_margins_until_a_short_one_reaches_further),
        cmocka_unit_test(a_short_one_takes_the_place_of_a_long_one_when_it_is_told_to),
        cmocka_unit_test(a_grant_reopens_it),
        cmocka_unit_test(a_jump_costs_one_round),
        cmocka_unit_test(the_clocks_may_drift_slowly),
        cmocka_unit_test(without_leases_all_is_allowed),
        cmocka_unit_test(serving_on_knows_no_end),
        cmocka_unit_test(margins_scale_with_the_lease),
        cmocka_unit_test(renewals_are_forgotten_one_by_one),
        cmocka_unit_test(it_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant planted[] = {M_EARLIERCOUNTS};

    return planted_main(argc, argv, all_cases, planted, sizeof planted / sizeof planted[0]);
}
