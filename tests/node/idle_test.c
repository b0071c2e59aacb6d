/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is unused for long (node/books/idle.h), and what waits for its next try (node/books/delay.h).
 */
#include "tests/test.h"

#include "base/mem.h"
#include "node/books/delay.h"
#include "node/books/idle.h"
#include "node/books/order.h"
#include "node/runtime/inside.h"
#include "ring/ring.h"

enum { ACTORS = 2000, IDLE_MS = 1600, GRAIN_MS = IDLE_MS / 16, MS = 1000 };

static struct actors book;
static struct actor *actors[ACTORS];

static int make_actors(void **state)
{
    (void)state;
    actors_init(&book);
    actors_set_grid(&book, RING_GRID_MIN, 1u << RING_GRID_MIN);
    for (size_t i = 0; i < ACTORS; i++) {
        actors[i] = actor_new(&book, (struct image_name){.id = bytes_of(&i, sizeof i)});
        actors[i]->fence = i;
    }
    return 0;
}

static int drop_actors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ACTORS; i++) {
        actor_discard(&book, actors[i]);
    }
    actors_fini(&book);
    return 0;
}

static void use(struct actor *a, uint64_t now_us)
{
    a->used_ms = (uint32_t)(now_us / MS);
}

/* Each is found when it was unused for the idle time, and not a sixteenth later. */
static void each_is_found_once_its_time_is_over(void **state)
{
    static uint64_t found_ms[ACTORS];
    struct idle wheel = {0};
    struct actor *a = NULL;

    (void)state;
    idle_init(&wheel, &book, IDLE_MS, 0);
    for (uint64_t ms = 1; ms < 10000; ms++) {
        size_t steps = ACTORS;

        if (ms <= ACTORS) {
            use(actors[ms - 1], ms * MS);
            idle_put(&wheel, actors[ms - 1], ms * MS);
        }
        if (ms == 2500) { // those that are in yet and even are used again
            for (size_t i = 0; i < ACTORS; i += 2) {
                if (found_ms[i] == 0) {
                    use(actors[i], ms * MS);
                }
            }
        }
        while (ms % 50 == 0 && (a = idle_take(&wheel, ms * MS, &steps)) != NULL) {
            const uint64_t age_ms = ms - a->used_ms;

            assert_true(age_ms >= IDLE_MS && age_ms <= IDLE_MS + GRAIN_MS + 50);
            found_ms[a->fence] = ms;
        }
    }
    for (size_t i = 0; i < ACTORS; i++) {
        assert_true(found_ms[i] != 0);
    }
}

static void some_go_only_for_want_of_room(void **state)
{
    struct idle wheel = {0};
    size_t steps = 100;

    (void)state;
    idle_init(&wheel, &book, UINT32_MAX, 0);
    for (size_t i = 0; i < 3; i++) {
        use(actors[i], i * 60000 * MS);
        idle_put(&wheel, actors[i], i * 60000 * MS);
    }
    use(actors[0], (uint64_t)200000 * MS); // it was the oldest
    assert_ptr_equal(idle_oldest(&wheel, (uint64_t)200000 * MS, &steps), actors[1]);
    for (uint64_t s = 200; s < 5000; s += 7) {
        steps = 100;
        assert_null(idle_take(&wheel, s * 1000 * MS, &steps));
    }
    steps = 100;
    assert_non_null(idle_oldest(&wheel, (uint64_t)5000 * 1000 * MS, &steps));
}

static void a_wheel_that_stood_still_goes_on(void **state)
{
    struct idle wheel = {0};
    size_t steps = 100;

    (void)state;
    idle_init(&wheel, &book, IDLE_MS, 0);
    use(actors[0], MS);
    idle_put(&wheel, actors[0], MS);
    use(actors[1], (uint64_t)3600000 * MS); // an hour, without a tick
    idle_put(&wheel, actors[1], (uint64_t)3600000 * MS);
    assert_ptr_equal(idle_take(&wheel, (uint64_t)3600000 * MS, &steps), actors[0]);
    assert_null(idle_take(&wheel, (uint64_t)3600000 * MS, &steps));
    assert_ptr_equal(idle_take(&wheel, (uint64_t)3601800 * MS, &steps), actors[1]);
}

static void a_delay_doubles_up_to_30_s(void **state)
{
    static const uint64_t want_ms[] = {
        100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000};
    struct delays delays;

    (void)state;
    delays_init(&delays);
    for (unsigned level = 0; level < sizeof want_ms / sizeof want_ms[0]; level++) {
        struct delay d = {0};

        delay_start(&delays, &d, level, (uint64_t)7 * MS);
        assert_null(delays_due(&delays, (uint64_t)(7 + want_ms[level]) * MS - 1));
        assert_ptr_equal(delays_due(&delays, (uint64_t)(7 + want_ms[level]) * MS), &d);
        assert_false(delay_runs(&d));
    }
}

/* Millions may be idle: what each takes is watched. */
static void an_idle_actor_is_small(void **state)
{
    (void)state;
    assert_int_equal(offsetof(struct actor, id), 69);
    assert_int_equal(sizeof(struct order), 96);
    assert_int_equal(offsetof(struct rh_actor, id), 55);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            each_is_found_once_its_time_is_over, make_actors, drop_actors),
        cmocka_unit_test_setup_teardown(some_go_only_for_want_of_room, make_actors, drop_actors),
        cmocka_unit_test_setup_teardown(a_wheel_that_stood_still_goes_on, make_actors, drop_actors),
        cmocka_unit_test(a_delay_doubles_up_to_30_s),
        cmocka_unit_test(an_idle_actor_is_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
