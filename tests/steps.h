/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions that a piece of code takes: a child that runs it is gone through step by step, so
 * the machine's speed and load do not matter; the compiler does, hence limits with some room.
 *
 * The child calls steps_child(), then stops itself (raise(SIGSTOP)) wherever a part begins or ends;
 * its parent counts a part with steps_to_stop(), or passes over it with steps_skip().
 */
#ifndef TESTS_STEPS_H
#define TESTS_STEPS_H

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* Optimised code of ours alone: a sanitizer adds its own. */
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
static const bool steps_optimised = true;
#else
static const bool steps_optimised = false;
#endif

/* There in a program whose coverage is measured, whose code has more to do too. */
extern void __gcov_init(void *) __attribute__((weak)); // NOLINT: gcc's name of it

/* Does counting mean anything in this build? */
static inline bool steps_countable(void)
{
    return steps_optimised && __gcov_init == NULL;
}

static inline void steps_child(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        _exit(1);
    }
    (void)raise(SIGSTOP);
}

/* Steps that the stopped child takes until it stops itself; -1 = it ended, or may not be traced. */
static inline long steps_to_stop(pid_t child)
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

/* Let the stopped child run until it stops itself. False: it ended. */
static inline bool steps_skip(pid_t child)
{
    int status;

    return ptrace(PTRACE_CONT, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child &&
           WIFSTOPPED(status);
}

/* The first stop of a child that was just begun. False: nobody may trace here. */
static inline bool steps_begun(pid_t child)
{
    int status;

    return waitpid(child, &status, 0) == child && WIFSTOPPED(status);
}

#endif
