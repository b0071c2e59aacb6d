/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica over any log_store, for the simulator and tests of its inside.
 * replica_open() is this over a folder.
 */
#ifndef RAFT_INSIDE_H
#define RAFT_INSIDE_H

#include "raft/guard.h"
#include "raft/io.h"
#include "raft/replica.h"

struct replica_base {
    struct log_store *store; /* taken: closed by replica_close() */
    struct log_image *image; /* taken: mem_new()ed by the caller */
    unsigned rules_off;      /* guard_rule bits */
    size_t entries_size_max; /* of one message; 0 = MESSAGE_ENTRIES_SIZE_MAX */
    /* The log is not what libraft believes, or libraft gave up. Must not return. NULL: say so and
     * exit 70. */
    void (*broken)(void *context, const char *why);
};

/* Takes store and image, also on error. ERR_INVALID. */
MUST_CHECK enum err replica_open_over(struct replica **out, const struct replica_config *config,
                                      const struct replica_events *events,
                                      const struct replica_base *base, uint64_t now_us);

/* libraft's state, for reading and, in a directed test, for events. */
struct raft *replica_raft(struct replica *r);
struct guard *replica_guard(struct replica *r);
struct log_store *replica_store(struct replica *r);

#endif
