/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions from an id to its node. They are counted by going through a child step by step, so
 * the machine's speed and load do not matter; the compiler does, hence limits with some room.
 */
#include "ring/ring.h"
#include "tests/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOKUPS = 8, GRID = 14 };

/* Optimised code of ours alone: a sanitizer adds its own. */
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
static const bool countable = true;
#else
static const bool countable = false;
#endif

/* There in a program whose coverage is measured, whose code has more to do too. */
extern void __gcov_init(void *) __attribute__((weak)); // NOLINT: gcc's name of it

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
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        _exit(1);
    }
    (void)raise(SIGSTOP);
    run(r, LOOKUPS);
    (void)raise(SIGSTOP);
    run(r, (size_t)2 * LOOKUPS);
    (void)raise(SIGSTOP);
    _exit(0);
}

/* Steps that the stopped child takes until it stops itself; -1 = it ended, or may not be traced. */
static long steps_to_stop(pid_t child)
{
    for (long steps = 0;; steps++) {
        int status;

        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 ||
            waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
            return -1;
        }
        if (WSTOPSIG(status) == SIGSTOP) {
            return steps;
        }
    }
}

/* Instructions of one lookup: what twice as many take more. -1 = nobody may trace here. */
static long cost_of(const struct ring *r, work run)
{
    int status = 0;
    long once = -1;
    long twice = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        stop_and_work(r, run);
    }
    if (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        once = steps_to_stop(child);
        twice = once < 0 ? -1 : steps_to_stop(child);
        (void)kill(child, SIGKILL);
        (void)waitpid(child, &status, 0);
    }
    return twice < 0 ? -1 : (twice - once) / LOOKUPS;
}

static void check_cost(work run, long most)
{
    struct ring r;
    long cost;

    if (!countable || __gcov_init != NULL) {
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
