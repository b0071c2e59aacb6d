/* SPDX-License-Identifier: Apache-2.0
 *
 * What a coordinator under test has proposed, oldest first: the log of tests that decide themselves
 * what becomes of an entry.
 */
#ifndef TESTS_TXN_PROPOSED_H
#define TESTS_TXN_PROPOSED_H

#include "txn/leader/coordinator.h"
#include "wire/control.h"

#include "tests/test.h"

#include <string.h>

enum { PROPOSED_MAX = 1024 };

struct proposed {
    uint64_t tag;
    unsigned leader;      /* who proposed it, where there are several */
    uint64_t ready_us;    /* when it is through the log, where that takes its time */
    Rh__Command *command; /* owned; NULL: a barrier */
};

struct proposed_log {
    struct proposed entry[PROPOSED_MAX];
    size_t count;
};

/* Append an effect that is a proposal or a barrier; the caller fills in what else is known. */
static inline struct proposed *proposed_add(struct proposed_log *log,
                                            const struct coordinator_effects *effects,
                                            const struct coordinator_effect *e)
{
    const struct bytes bytes = {effects->bytes.data + e->at, e->size};

    assert_true(log->count < PROPOSED_MAX);
    log->entry[log->count] = (struct proposed){
        .tag = e->tag,
        .command = e->type == COORDINATOR_PROPOSE ? command_get(bytes) : NULL,
    };
    return &log->entry[log->count++];
}

/* Remove the oldest; its command is the caller's then. There is one. */
static inline struct proposed proposed_take(struct proposed_log *log)
{
    const struct proposed e = log->entry[0];

    assert_true(log->count > 0);
    log->count--;
    memmove(&log->entry[0], &log->entry[1], log->count * sizeof e);
    return e;
}

static inline void proposed_fini(struct proposed_log *log)
{
    for (size_t i = 0; i < log->count; i++) {
        command_free(log->entry[i].command);
    }
    log->count = 0;
}

#endif
