/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions that a piece of code takes: a child that runs it is gone through step by step, so
 * the machine's speed and load do not matter; the compiler does, hence limits with some room. Those
 * of libraries don't count: libc copies by other code on another processor.
 *
 * The code is a function that runs in the child: what it prepares does not count; then it calls
 * steps_begin(), and steps_next() wherever a part ends and the next one begins.
 */
#ifndef TESTS_STEPS_H
#define TESTS_STEPS_H

#include "tests/test.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Optimised code of ours alone: a sanitizer adds its own. */
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
static const bool steps_optimised = true;
#else
static const bool steps_optimised = false;
#endif

/* What is stepped takes thousands of times as long as it would, and the longer the busier the
 * machine is; code that reckons with how long something took would take other ways. So time stands
 * still in it. */
static bool steps_begun;
extern long syscall(long number, ...);
int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    enum { CLOCKS = 16 };
    static struct timespec stopped[CLOCKS];
    const bool stops = steps_begun && clock_id >= 0 && clock_id < CLOCKS;

    if (stops && stopped[clock_id].tv_sec != 0) {
        *tp = stopped[clock_id];
        return 0;
    }
    if (syscall(SYS_clock_gettime, clock_id, tp) != 0) {
        return -1;
    }
    if (stops) {
        stopped[clock_id] = *tp;
    }
    return 0;
}

/* There in a program whose coverage is measured, whose code has more to do too. */
extern void __gcov_init(void *) __attribute__((weak)); // NOLINT: gcc's name of it

/* True if counting means anything in this build. */
static inline bool steps_countable(void)
{
    return steps_optimised && __gcov_init == NULL;
}

static inline void steps_begin(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        _exit(1);
    }
    steps_begun = true;
    (void)raise(SIGSTOP);
}

static inline void steps_next(void)
{
    (void)raise(SIGSTOP);
}

extern const char __executable_start[]; // NOLINT: the linker's names
extern const char etext[];

/* What the stopped child does next is an instruction of this program. */
static inline bool steps_in_program(pid_t child)
{
    const long at = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user_regs_struct, rip), NULL);

    return (uintptr_t)at >= (uintptr_t)__executable_start && (uintptr_t)at < (uintptr_t)etext;
}

/* Steps of this program that the stopped child takes until it stops itself; -1 = it ended, or may
 * not be traced. */
static inline long steps_to_stop(pid_t child)
{
    for (long steps = 0;; steps += steps_in_program(child)) {
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

/* The instructions of each of the first `count` parts of `code`. The test is skipped where nothing
 * can be counted: in this build, or as nobody may trace here. */
static inline void steps_count(void (*code)(void *context), void *context, long *part, size_t count)
{
    bool counted = false;

    if (!steps_countable()) {
        skip();
    }
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        code(context);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        counted = true;
        for (size_t i = 0; i < count && counted; i++) {
            part[i] = steps_to_stop(child);
            counted = part[i] >= 0;
        }
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    if (!counted) {
        skip();
    }
}

#endif
