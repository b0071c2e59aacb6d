/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program that catches planted bugs itself: with each of them in it, its
 * cases must fail (make mutants).
 */
#ifndef TESTS_PLANTED_H
#define TESTS_PLANTED_H

#include "base/mutant.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef RINGHOLD_MUTANTS

/* In a child, for an ASSERT ends it. */
static bool planted_is_caught(enum mutant m, int (*cases)(void))
{
    int status = 0;

    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        mutant_planted = m;
        if (freopen("/dev/null", "w", stdout) == NULL ||
            freopen("/dev/null", "w", stderr) == NULL) {
            _exit(0); // as if nothing was caught
        }
        _exit(cases() == 0 ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child &&
           !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif

/* Exit code for main(): of the cases, or with --mutants 0 if each of `all` is caught by them. */
static int planted_main(int argc, char **argv, int (*cases)(void), const enum mutant *all,
                        size_t count)
{
    bool good = true;

    if (argc != 2 || strcmp(argv[1], "--mutants") != 0) {
        return cases();
    }
#ifdef RINGHOLD_MUTANTS
    good = !planted_is_caught(M_NONE, cases);
    for (size_t i = 0; i < count; i++) {
        const bool caught = planted_is_caught(all[i], cases);

        good = good && caught;
        (void)printf("%s - %-13s %s by its tests: %s\n",
                     caught ? "ok" : "not ok",
                     mutant_name(all[i]),
                     caught ? "caught" : "SURVIVED",
                     mutant_text(all[i]));
    }
#else
    (void)all;
    (void)count;
    (void)fprintf(stderr, "no bugs are planted in this build: make MUTANTS=1\n");
    good = false;
#endif
    return good ? 0 : 1;
}

#endif
