/* SPDX-License-Identifier: Apache-2.0
 *
 * The replicated state out of a log and its snapshot, in memory, by the code
 * that the coordinators run: what a folder knows, without starting it.
 *
 * Everything in the log counts, also what no majority has confirmed yet: of a
 * folder alone nobody can tell, and every confirmed command is among it.
 */
#ifndef STORAGE_STATE_REPLAY_H
#define STORAGE_STATE_REPLAY_H

#include "storage/log/log.h"
#include "storage/state/state_sqlite.h"
#include "txn/state/state.h"

struct sqlite3;

enum { REPLAY_WHY_MAX = 160 };

struct replay {
    struct state_db *db; /* owned, in memory */
    struct state state;
    uint64_t index; /* last one applied */
    char why[REPLAY_WHY_MAX];
};

typedef void (*replay_progress)(void *context, uint64_t done, uint64_t total);

struct replay_watch {
    void *context;
    replay_progress progress; /* NULL: nobody watches */
};

/* Load the snapshot; index 0: an empty state. ERR_CORRUPT: `why`. replay_fini() in any case. */
MUST_CHECK enum err replay_open(struct replay *r, const struct log_snapshot *snapshot);
/* Load the state alone, as a backup holds it. */
MUST_CHECK enum err replay_open_state(struct replay *r, struct bytes state, uint64_t index);
/* Apply the image's entries after `index` up to `until`. ERR_CORRUPT: `why`. */
MUST_CHECK enum err replay_run(struct replay *r, const struct log_image *image, uint64_t until,
                               struct replay_watch watch);
/* Compare with a database that a coordinator kept. False: `why` says what differs. */
bool replay_matches(struct replay *r, struct sqlite3 *cache);
/* Begin the era `era`: numbers go on in it, so does the ring's version, and the first leader must
 * wait until leases of the old era ended (specification §3.7, hole 52), of which none was longer
 * than `lease_us` or than the state knows. `time_us` is for the records. */
void replay_raise(struct replay *r, uint64_t era, uint64_t lease_us, uint64_t time_us);
/* Append the state as a coordinator's snapshot holds it. */
void replay_state(struct replay *r, struct buffer *out);
void replay_fini(struct replay *r);

#endif
