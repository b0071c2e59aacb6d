/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request costs inside a node, in counts that no machine changes: memory
 * allocated, hand-overs, wake-ups. The node is bench/node_mill.h's, driven in
 * batches as the shell does.
 */
#include "tests/test.h"

#include "bench/node_mill.h"
#include "tests/allocations.h"

#include <pthread.h>

enum { ACTORS = 601, FRAME = 64, ROUNDS = 100 };

/* ---- cases */

static void no_request_allocates(uint16_t kind)
{
    struct mill m;

    mill_open(&m, ACTORS, 1);
    mill_warm(&m, kind, FRAME);
    allocations = 0;
    for (int i = 0; i < ROUNDS; i++) {
        mill_make(&m, kind, FRAME);
        buffer_clear(&m.answers);
        m.answer_count = 0;
        allocations_counted = true;
        mill_admit(&m);
        mill_run(&m);
        mill_answer(&m);
        allocations_counted = false;
        assert_int_equal(m.answer_count, FRAME);
    }
    assert_int_equal(allocations, 0);
    mill_close(&m);
}

static void a_request_of_a_key_allocates_nothing(void **state)
{
    (void)state;
    no_request_allocates(MILL_KV);
}

static void an_echo_allocates_nothing(void **state)
{
    (void)state;
    no_request_allocates(MILL_ECHO);
}

static void a_frame_is_one_hand_over_there_and_one_wake_up_back(void **state)
{
    struct mill m;

    (void)state;
    mill_open(&m, ACTORS, 1);
    mill_warm(&m, MILL_KV, FRAME);
    for (int i = 0; i < ROUNDS; i++) {
        const size_t told = m.told;

        mill_make(&m, MILL_KV, FRAME);
        mill_admit(&m);
        mill_run(&m);
        assert_int_equal(m.told, told + 1);
        mill_answer(&m);
        mill_run(&m); // Nothing is left to do, and nobody is woken for it.
        assert_int_equal(m.told, told + 1);
    }
    mill_close(&m);
}

static void who_has_not_taken_all_is_not_woken_again(void **state)
{
    struct mill m;

    (void)state;
    mill_open(&m, ACTORS, 1);
    mill_warm(&m, MILL_KV, FRAME);
    const size_t told = m.told;
    for (int i = 0; i < 5; i++) {
        mill_make(&m, MILL_KV, FRAME);
        mill_admit(&m);
        mill_run(&m);
    }
    assert_int_equal(m.told, told + 1);
    m.answer_count = 0;
    mill_answer(&m);
    assert_int_equal(m.answer_count, 5 * FRAME);
    mill_make(&m, MILL_KV, 1);
    mill_admit(&m);
    mill_run(&m);
    assert_int_equal(m.told, told + 2);
    mill_close(&m);
}

/* More than a chunk of what is told, large ones between: all comes, in order. */
static void what_is_told_comes_in_order_however_much_it_is(void **state)
{
    enum { COUNT = 4 * TOLD_IN_CHUNK, EVERY = 100, LARGE = 100000 };
    struct telling t;
    struct buffer large = {0};
    uint64_t next = 0;

    (void)state;
    telling_init(&t);
    memset(buffer_reserve(&large, LARGE), 'x', LARGE);
    for (int round = 0; round < 3; round++) {
        assert_null(telling_take(&t));
        for (uint64_t i = 0; i < COUNT; i++) {
            const struct entry e = {.type = TOLD_RUNTIME, .number = next + i};

            telling_put(&t,
                        &e,
                        bytes_of(&i, sizeof i),
                        bytes_of(large.data, i % EVERY == 0 ? LARGE : i % 50));
        }
        for (uint64_t i = 0; i < COUNT; i++) {
            const struct entry *e = telling_take(&t);

            assert_non_null(e);
            assert_int_equal(e->number, next++);
            assert_memory_equal(telling_head(&t, e).data, &i, sizeof i);
            assert_int_equal(telling_rest(&t, e).size, i % EVERY == 0 ? LARGE : i % 50);
        }
    }
    assert_null(telling_take(&t));
    telling_fini(&t);
    buffer_fini(&large);
}

enum { TOLD_MANY = 200000 };

static void *put_many(void *argument)
{
    for (uint64_t i = 0; i < TOLD_MANY; i++) {
        const struct entry e = {.number = i};

        telling_put(argument, &e, (struct bytes){0}, bytes_of(&i, sizeof i));
    }
    return NULL;
}

static void one_thread_tells_while_another_takes(void **state)
{
    struct telling t;
    pthread_t thread;
    uint64_t next = 0;

    (void)state;
    telling_init(&t);
    assert_int_equal(pthread_create(&thread, NULL, put_many, &t), 0);
    while (next < TOLD_MANY) {
        const struct entry *e = telling_take(&t);

        if (e != NULL) {
            assert_int_equal(e->number, next);
            assert_memory_equal(telling_rest(&t, e).data, &next, sizeof next);
            next++;
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_null(telling_take(&t));
    telling_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_of_a_key_allocates_nothing),
        cmocka_unit_test(an_echo_allocates_nothing),
        cmocka_unit_test(a_frame_is_one_hand_over_there_and_one_wake_up_back),
        cmocka_unit_test(who_has_not_taken_all_is_not_woken_again),
        cmocka_unit_test(what_is_told_comes_in_order_however_much_it_is),
        cmocka_unit_test(one_thread_tells_while_another_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
