/* SPDX-License-Identifier: Apache-2.0
 *
 * What an actor costs that moves, in counts that no machine changes: memory asked
 * for, records and acknowledgements sent, what one step does at the most. The two
 * nodes are bench/move_mill.h's, driven as the shell does.
 */
#include "tests/test.h"

#include "base/clock.h"
#include "base/log.h"
#include "bench/move_mill.h"
#include "tests/allocations.h"
#include "tests/steps.h"

enum { ACTORS = 2000, ROUNDS = 4, VNODES = 256, STEPPED = 16 };

/* In place of base/clock.c: half a microsecond from look to look, so that nothing goes by what a
 * machine does meanwhile, or by who counts its steps. */
uint64_t clock_boottime_us(void)
{
    static uint64_t looks;

    return 1000000000 + ++looks / 2;
}

uint64_t clock_wall_us(void)
{
    return clock_boottime_us();
}

static void open_with_live_actors(struct move_mill *m, bool ahead, uint32_t vnodes, size_t actors)
{
    log_set_level(LOG_WARN);
    move_open(m, ahead, vnodes);
    move_ask(m, 1, true, actors);
    // Once there and back: all memory has its size.
    move_all(m, 1, 2);
    move_ask(m, 2, false, actors);
    move_all(m, 2, 1);
    move_ask(m, 1, false, actors);
}

/* Of images there are seven to a block where they come, more where they leave; and each transaction
 * has some of its own. */
static void check_allocations(bool ahead)
{
    struct move_mill m;

    open_with_live_actors(&m, ahead, MOVE_VNODES, ACTORS);
    for (int i = 0; i < ROUNDS; i++) {
        allocations = 0;
        allocations_counted = true;
        move_all(&m, (uint16_t)(1 + i % 2), (uint16_t)(2 - i % 2));
        allocations_counted = false;
        assert_true(allocations <= (size_t)(ACTORS / 6 + 40 * MOVE_VNODES));
        move_ask(&m, (uint16_t)(2 - i % 2), false, ACTORS);
    }
    move_close(&m);
}

static void actors_that_move_allocate_together(void **state)
{
    (void)state;
    check_allocations(false);
}

static void so_do_those_whose_images_go_ahead(void **state)
{
    (void)state;
    check_allocations(true);
}

static void an_actor_is_one_record_and_many_are_acknowledged_together(void **state)
{
    struct move_mill m;

    (void)state;
    open_with_live_actors(&m, false, MOVE_VNODES, ACTORS);
    m.records = m.acks = 0;
    move_all(&m, 1, 2);
    assert_int_equal(m.records, ACTORS + MOVE_VNODES); // each and the end
    assert_true(m.acks <= (size_t)4 * MOVE_VNODES);
    move_close(&m);
}

static void few_are_asked_at_a_time_for_images_that_go_ahead(void **state)
{
    enum { AT_ONCE = 16, OF_A_CELL = 4 };
    struct move_mill m;

    (void)state;
    open_with_live_actors(&m, true, MOVE_VNODES, ACTORS);
    move_all(&m, 1, 2);
    assert_in_range(m.node[0].node.copying_most, AT_ONCE, AT_ONCE + OF_A_CELL);
    assert_int_equal(m.node[0].node.copying, 0);
    move_close(&m);
}

/* ---- instructions */

struct stepped {
    bool ahead;
    size_t actors; /* of a vnode, about */
};

static void a_move(void *context)
{
    const struct stepped *s = context;
    static struct move_mill m;

    open_with_live_actors(&m, s->ahead, VNODES, s->actors * VNODES);
    steps_begin();
    move_vnode(&m, 0, 1, 2);
    steps_next();
}

static size_t moved(const struct stepped *s)
{
    struct move_mill m;

    open_with_live_actors(&m, s->ahead, VNODES, s->actors * VNODES);
    m.records = 0;
    move_vnode(&m, 0, 1, 2);
    move_close(&m);
    return m.records - 1;
}

/* Of both nodes, for each actor, beyond what a move without any takes. In the build for tests;
 * compiled as one (make LTO=1) it is less. */
static void check_instructions(bool ahead, long most)
{
    struct stepped none = {ahead, 0};
    struct stepped some = {ahead, STEPPED};
    const long actors = (long)moved(&some);
    long bare = 0;
    long whole = 0;

    steps_count(a_move, &none, &bare, 1);
    steps_count(a_move, &some, &whole, 1);
    assert_in_range(actors, STEPPED / 2, STEPPED * 2);
    assert_in_range((whole - bare) / actors, 2000, most);
}

static void an_actor_that_is_held_takes_few_instructions_to_move(void **state)
{
    (void)state;
    check_instructions(false, 9200);
}

static void one_whose_image_goes_ahead_takes_few_instructions_to_move(void **state)
{
    (void)state;
    check_instructions(true, 10400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actors_that_move_allocate_together),
        cmocka_unit_test(so_do_those_whose_images_go_ahead),
        cmocka_unit_test(an_actor_is_one_record_and_many_are_acknowledged_together),
        cmocka_unit_test(few_are_asked_at_a_time_for_images_that_go_ahead),
        cmocka_unit_test(an_actor_that_is_held_takes_few_instructions_to_move),
        cmocka_unit_test(one_whose_image_goes_ahead_takes_few_instructions_to_move),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
