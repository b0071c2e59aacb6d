/* SPDX-License-Identifier: Apache-2.0
 *
 * Immutable snapshots of a ring for readers on other threads.
 *
 * One writer thread owns the ring and the publisher. A reader loads a pointer
 * once per batch and works on one version; it never waits and never retries.
 *
 *       writer: change the ring, note what changed, publish
 *
 *     buffer 0   version 41   a slow reader may still be in it
 *     buffer 1   version 42   current: where readers start
 *     buffer 2   version 40   idle: the next publish brings it up to date
 *
 * A buffer is idle when every reader has rested since it was replaced. There
 * are three, so a publish finds one unless a reader has not rested for two
 * publishes; then it is ERR_BUSY, readers keep what they have, and a later
 * publish brings everything. Publishing a MOVE writes the cells that the idle
 * buffer missed and nothing else; it copies all only after a long lag.
 */
#ifndef RING_SNAPSHOT_H
#define RING_SNAPSHOT_H

#include "ring/ring.h"
#include "ring/route.h"

struct ring_snapshot {
    uint64_t version;
    uint64_t digest[2];
    struct ring_table table;
    const uint64_t *generation; /* by vnode id */
    size_t generation_count;
};

struct publisher; /* opaque */

/* ---- writer ---- */

/* Returns an owned publisher whose current snapshot is `r`, for readers 0..readers-1. */
struct publisher *publisher_new(const struct ring *r, size_t readers);
/* No reader may be started. */
void publisher_free(struct publisher *p);

/* Say what was applied to the ring since the last publish … */
void publisher_note(struct publisher *p, const struct ring_op *ops, size_t count);
/* … or that anything may have changed: a ring decoded, ring_renew_owner(). */
void publisher_note_all(struct publisher *p);

/* Make `r` the current snapshot. ERR_BUSY: no buffer is idle, call again after readers rested;
 * what was noted is kept. */
MUST_CHECK enum err publisher_publish(struct publisher *p, const struct ring *r);

/* ---- readers; each number is used by one thread at a time ---- */

/* From here on snapshots that publisher_current() returns stay as they are until the reader
 * rests. */
void publisher_reader_start(struct publisher *p, size_t reader);
/* "I hold no snapshot now": once a turn of the reader's loop. */
void publisher_reader_rest(struct publisher *p, size_t reader);
/* A reader that will not rest for long, or ends, stops. */
void publisher_reader_stop(struct publisher *p, size_t reader);

/* The newest snapshot; the caller is a started reader or the writer. */
const struct ring_snapshot *publisher_current(struct publisher *p);

#endif
