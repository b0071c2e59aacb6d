/* SPDX-License-Identifier: Apache-2.0
 *
 * What an actor costs that moves, in counts that no machine changes: memory asked
 * for, records and acknowledgements sent, what one step does at the most. The two
 * nodes are bench/move_mill.h's, driven as the shell does.
 */
#include "tests/test.h"

#include "base/log.h"
#include "bench/move_mill.h"
#include "tests/allocations.h"

enum { ACTORS = 2000, ROUNDS = 4 };

static void open_with_live_actors(struct move_mill *m)
{
    log_set_level(LOG_WARN);
    move_open(m);
    move_ask(m, 1, true, ACTORS);
    // Once there and back: all memory has its size.
    move_all(m, 1, 2);
    move_ask(m, 2, false, ACTORS);
    move_all(m, 2, 1);
    move_ask(m, 1, false, ACTORS);
}

/* Its image here and there; and for each transaction what it needs itself. */
static void an_actor_that_moves_allocates_its_images(void **state)
{
    struct move_mill m;

    (void)state;
    open_with_live_actors(&m);
    for (int i = 0; i < ROUNDS; i++) {
        allocations = 0;
        allocations_counted = true;
        move_all(&m, (uint16_t)(1 + i % 2), (uint16_t)(2 - i % 2));
        allocations_counted = false;
        assert_true(allocations <= (size_t)(2 * ACTORS + 32 * MOVE_VNODES));
        move_ask(&m, (uint16_t)(2 - i % 2), false, ACTORS);
    }
    move_close(&m);
}

static void an_actor_is_one_record_and_many_are_acknowledged_together(void **state)
{
    struct move_mill m;

    (void)state;
    open_with_live_actors(&m);
    m.records = m.acks = 0;
    move_all(&m, 1, 2);
    assert_int_equal(m.records, ACTORS + MOVE_VNODES); // each and the end
    assert_true(m.acks <= (size_t)4 * MOVE_VNODES);
    move_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_actor_that_moves_allocates_its_images),
        cmocka_unit_test(an_actor_is_one_record_and_many_are_acknowledged_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
