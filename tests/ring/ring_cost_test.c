/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions from an id to its node.
 */
#include "ring/ring.h"
#include "tests/steps.h"
#include "tests/test.h"

enum { LOOKUPS = 8, GRID = 14 };

static const struct ring_key key = {0x0123456789abcdef, 0xfedcba9876543210};
static volatile uint64_t sink;

/* Each looks up `count` ids. */
typedef void (*work)(const struct ring *r, size_t count);

static void by_number(const struct ring *r, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += ring_hit_node(ring_at(r, ring_position_u64(key, i * 77)));
    }
    sink = sum;
}

static void by_text(const struct ring *r, size_t count)
{
    static const char text[] = "01234567-89ab-cdef-0123-456789abcdef" // 36 bytes, and as many
                               "76543210-ba98-fedc-3210-fedcba987654";
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += ring_hit_node(ring_at(r, ring_position(key, bytes_of(text + i, 36))));
    }
    sink = sum;
}

/* In the child: stops before each part and after the last. */
static void stop_and_work(const struct ring *r, work run)
{
    steps_child();
    run(r, LOOKUPS);
    (void)raise(SIGSTOP);
    run(r, (size_t)2 * LOOKUPS);
    (void)raise(SIGSTOP);
    _exit(0);
}

/* Instructions of one lookup: what twice as many take more. -1 = nobody may trace here. */
static long cost_of(const struct ring *r, work run)
{
    long once = -1;
    long twice = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        stop_and_work(r, run);
    }
    if (steps_begun(child)) {
        once = steps_to_stop(child);
        twice = once < 0 ? -1 : steps_to_stop(child);
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    return twice < 0 ? -1 : (twice - once) / LOOKUPS;
}

static void check_cost(work run, long most)
{
    struct ring r;
    long cost;

    if (!steps_countable()) {
        skip();
    }
    ring_init(&r, GRID);
    ring_create(&r, 64, 1, 1);
    cost = cost_of(&r, run);
    ring_fini(&r);
    if (cost < 0) {
        skip();
    }
    assert_in_range(cost, 50, most);
}

static void a_number_finds_its_node_in_few_instructions(void **state)
{
    (void)state;
    check_cost(by_number, 90);
}

static void a_text_of_36_bytes_finds_its_node_in_few_instructions(void **state)
{
    (void)state;
    check_cost(by_text, 160);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_finds_its_node_in_few_instructions),
        cmocka_unit_test(a_text_of_36_bytes_finds_its_node_in_few_instructions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
