/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped state.db beside the state that a simulated group agrees on: its
 * snapshots are what replicas start from, and what a restore begins with, as
 * `ringhold recover` does it. Each is brought back once where it is made, and
 * compared field by field.
 */
#ifndef SIM_MIRROR_H
#define SIM_MIRROR_H

#include "storage/state/replay.h"

struct mirror {
    struct state_db *db;    /* owned, in memory */
    struct buffer snapshot; /* the last one; empty: there is none yet */
    uint64_t index;         /* of it, in entries */
};

void mirror_open(struct mirror *m);
void mirror_close(struct mirror *m);
/* Entry `index` made `s` of what it was. Now and then it takes a snapshot of it: then a field that
 * did not come back is told, else NULL. */
const char *mirror_apply(struct mirror *m, const struct state *s, const Rh__Command *command,
                         const struct state_result *result, uint64_t index);
/* The state in the last snapshot, which there is. */
void mirror_load(const struct mirror *m, struct state *out);

/* A restore of the entries up to `keep`: begin with the last snapshot, if that is not newer. */
void mirror_replay_open(const struct mirror *m, uint64_t keep, struct replay *r);
/* The next entry: a packed command, or a barrier (no bytes). */
void mirror_replay_entry(struct replay *r, struct bytes command);
/* Make the result of `r` the mirror, with the state `out`, both as of entry `index`. Same result as
 * mirror_apply(). */
const char *mirror_replay_end(struct mirror *m, struct replay *r, uint64_t index,
                              struct state *out);

#endif
