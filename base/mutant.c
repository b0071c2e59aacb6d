/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of the planted bugs, and which one this process has planted.
 */
#include "base/mutant.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const char *text;
} mutants[] = {
#define X(name, text) {#name, text},
    MUTANT_LIST(X) MUTANT_STORAGE_LIST(X) MUTANT_THREAD_LIST(X) MUTANT_LINK_LIST(X)
        MUTANT_STREAM_LIST(X) MUTANT_STATE_LIST(X) MUTANT_CLOCK_LIST(X) MUTANT_PROMISE_LIST(X)
            MUTANT_IDENTITY_LIST(X) MUTANT_SESSION_LIST(X) MUTANT_PLAYER_LIST(X)
                MUTANT_SHARE_LIST(X) MUTANT_DURABLE_LIST(X) MUTANT_ROUND_LIST(X)
                    MUTANT_HOSTED_LIST(X) MUTANT_ROUTE_LIST(X) MUTANT_HTTP_LIST(X)
                        MUTANT_TOLD_LIST(X)
#undef X
};

#ifdef RINGHOLD_MUTANTS
enum mutant mutant_planted = M_NONE;
#endif

const char *mutant_name(enum mutant m)
{
    return mutants[m].name;
}

const char *mutant_text(enum mutant m)
{
    return mutants[m].text;
}

bool mutant_named(const char *name, enum mutant *m)
{
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0]; i++) {
        const bool of_streams = i >= M_NOFENCE && i <= M_DOUBTPASSED;
        const bool elsewhere = i >= M_RECALL && i <= M_ANYSOURCE && i != M_OLDCOPY && !of_streams;

        if (!elsewhere && strcmp(mutants[i].name, name) == 0) {
            *m = (enum mutant)i;
            return true;
        }
    }
    return false;
}

#ifdef RINGHOLD_MUTANTS
void mutant_from_environment(void)
{
    const char *name = getenv("RINGHOLD_MUTANT");

    if (name != NULL && !mutant_named(name, &mutant_planted)) {
        (void)fprintf(stderr, "RINGHOLD_MUTANT=%s: there is no such planted bug\n", name);
        exit(EXIT_FAILURE);
    }
}
#endif
