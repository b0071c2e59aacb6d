/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a daemon ticks: counted in a clock of our own.
 */
#include "base/pace.h"

#include "tests/test.h"

static const uint64_t MS = 1000;

struct loop {
    struct pace pace;
    uint64_t now_us;
    uint64_t timer_us;
    uint64_t ticks;
};

static void tick(struct loop *l)
{
    pace_ticked(&l->pace, l->now_us);
    l->ticks++;
}

/* A turn of the loop at this time, in which those whom it serves say `until_us`. */
static void turn(struct loop *l, uint64_t now_us, uint64_t until_us)
{
    l->now_us = now_us;
    if (now_us >= l->timer_us) {
        l->timer_us = UINT64_MAX;
        tick(l);
    }
    if (pace_is_along(&l->pace, now_us) && until_us != 0) {
        tick(l);
    }
    if (pace_is_open(&l->pace) && pace_is_to_set(&l->pace, until_us)) {
        // Timers count from the last whole millisecond.
        l->timer_us = now_us / MS * MS + pace_delay_ms(&l->pace, until_us, now_us) * MS;
    }
}

static void begin(struct loop *l)
{
    *l = (struct loop){.timer_us = 1000 * MS};
}

static void what_works_is_ticked_every_10_ms(void **state)
{
    struct loop l;

    (void)state;
    begin(&l);
    for (int i = 0; i < 100; i++) {
        turn(&l, l.timer_us, 0);
        turn(&l, l.now_us + 3 * MS, 0); // input sets no timer
        assert_int_equal(l.timer_us, l.pace.ticked_us + 10 * MS);
    }
    assert_int_equal(l.ticks, 100);
}

static void what_rests_is_ticked_when_it_is_due(void **state)
{
    struct loop l;

    (void)state;
    begin(&l);
    for (int i = 0; i < 100; i++) {
        turn(&l, l.timer_us, l.timer_us + 50 * MS);
    }
    assert_int_equal(l.ticks, 100);
    assert_int_equal(l.now_us, (1000 + 99 * 51) * MS);
}

static void what_is_due_at_once_waits_for_the_usual_pace(void **state)
{
    struct loop l;

    (void)state;
    begin(&l);
    turn(&l, l.timer_us, l.timer_us + 1 * MS);
    assert_int_equal(l.timer_us, l.now_us + 10 * MS);
}

static void a_part_of_a_millisecond_is_rounded_up(void **state)
{
    struct loop l;

    (void)state;
    begin(&l);
    turn(&l, l.timer_us, l.timer_us + 30 * MS + 1);
    assert_int_equal(l.timer_us, l.now_us + 32 * MS);
}

static void no_rest_ends_early(void **state)
{
    struct loop l;

    (void)state;
    for (uint64_t part_us = 0; part_us < MS; part_us++) {
        begin(&l);
        const uint64_t due_us = l.timer_us + part_us + 165 * MS;

        turn(&l, l.timer_us + part_us, due_us);
        assert_in_range(l.timer_us, due_us, due_us + MS);
    }
}

static void who_is_awake_ticks_along(void **state)
{
    struct loop l;

    (void)state;
    begin(&l);
    turn(&l, l.timer_us, l.timer_us + 50 * MS);
    turn(&l, l.now_us + 20 * MS, l.now_us + 50 * MS); // too soon
    assert_int_equal(l.ticks, 1);
    turn(&l, l.now_us + 10 * MS, l.now_us + 70 * MS);
    assert_int_equal(l.ticks, 2);
    assert_int_equal(l.timer_us, l.now_us + 61 * MS);
}

static void what_goes_on_is_ticked_soon(void **state)
{
    struct loop l;

    (void)state;
    begin(&l);
    turn(&l, l.timer_us, l.timer_us + 50 * MS);
    const uint64_t ticked_us = l.now_us;
    turn(&l, ticked_us + 2 * MS, 0); // a request came
    assert_int_equal(l.timer_us, ticked_us + 10 * MS);
    turn(&l, ticked_us + 4 * MS, ticked_us + 50 * MS); // and was answered
    assert_int_equal(l.timer_us, ticked_us + 10 * MS);
    turn(&l, l.timer_us, ticked_us + 60 * MS);
    assert_int_equal(l.ticks, 2);
    turn(&l, ticked_us + 34 * MS, 0); // late in its rest: at once
    assert_int_equal(l.timer_us, ticked_us + 34 * MS);
}

/* What went on came in a moment: nobody wakes for a tick after it. */
static void what_stirred_is_ticked_when_it_rests_again(void **state)
{
    struct loop l;

    (void)state;
    begin(&l);
    turn(&l, l.timer_us, l.timer_us + 165 * MS);
    const uint64_t stirred_us = l.now_us + 100 * MS;
    pace_stirs(&l.pace, stirred_us); // nodes renew
    turn(&l, stirred_us, 0);
    turn(&l, stirred_us + 1 * MS, 0);
    assert_int_equal(l.ticks, 1);
    assert_int_equal(l.timer_us, stirred_us + 10 * MS);
    turn(&l, stirred_us + 2 * MS, stirred_us + 167 * MS); // and were answered
    assert_int_equal(l.ticks, 2);
    assert_int_equal(l.timer_us, stirred_us + 168 * MS);
}

static void what_stirs_again_and_again_is_ticked_by_the_usual_pace(void **state)
{
    struct loop l;

    (void)state;
    begin(&l);
    turn(&l, l.timer_us, l.timer_us + 165 * MS);
    for (uint64_t i = 0; i < 100; i++) {
        const uint64_t now_us = l.now_us + 1 * MS;

        if (l.pace.rests) {
            pace_stirs(&l.pace, now_us);
        }
        turn(&l, now_us, 0);
        turn(&l, now_us + 1 * MS, now_us + 166 * MS);
    }
    assert_in_range(l.ticks, 10, 1 + 200 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_works_is_ticked_every_10_ms),
        cmocka_unit_test(what_rests_is_ticked_when_it_is_due),
        cmocka_unit_test(what_is_due_at_once_waits_for_the_usual_pace),
        cmocka_unit_test(a_part_of_a_millisecond_is_rounded_up),
        cmocka_unit_test(no_rest_ends_early),
        cmocka_unit_test(who_is_awake_ticks_along),
        cmocka_unit_test(what_goes_on_is_ticked_soon),
        cmocka_unit_test(what_stirred_is_ticked_when_it_rests_again),
        cmocka_unit_test(what_stirs_again_and_again_is_ticked_by_the_usual_pace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
