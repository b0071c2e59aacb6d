/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock guard: who activates an actor also takes a lock on its id, which
 * names its owner and its generation. It finds what fences alone do not: two
 * fleets that were pointed at the same store by mistake, where both have an
 * actor of that id. The second one is refused, or takes over from an older
 * generation; in both cases the holder of the lock gets a notice.
 *
 * This file is the holder's half, whatever the database: a thread that keeps an
 * ear open for notices, what they mean, and the count of them. The lock itself
 * is taken where an id is claimed, in store_redis.c and store_postgres.c, and
 * so is the connection made that brings the notices. A notice may get lost; the
 * fence is what protects the row.
 */
#ifndef EXAMPLES_STORES_GUARD_H
#define EXAMPLES_STORES_GUARD_H

#include "stored.h"

enum {
    GUARD_OWNER_SIZE = 192,
    GUARD_NOTICE_SIZE = GUARD_OWNER_SIZE + STORED_ID_MAX + 64 /* with a NUL behind it */
};

struct guard;

/* A connection that brings notices. The guard's thread alone calls these. */
struct guard_ear {
    const char *name; /* for log lines */
    /* Connect by `until_ms` and listen; NULL: it can't, and `why` says so. */
    void *(*open)(void *store, int64_t until_ms, char why[JOBS_WHY_SIZE]);
    void (*close)(void *connection);
    int (*fd)(const void *connection);
    /* The descriptor is readable: read. False: the connection is broken. */
    bool (*read)(void *connection);
    /* Hand each notice that was read to guard_hear(). */
    void (*hear)(struct guard *guard, void *connection);
};

struct guard_options {
    const struct guard_ear *ear; /* borrowed until guard_stop() */
    void *store;                 /* for ear->open() */
    struct stored *stored;       /* whose counters are deposed */
};

/* NODE@HOST:PID, one word: differs from that of every other process. */
void guard_name_owner(char out[GUARD_OWNER_SIZE], const char *node);
/* NULL: no memory or thread. */
struct guard *guard_start(const struct guard_options *options);
/* NULL is fine. */
void guard_stop(struct guard *guard);
/* Take a notice that was for this process: "taken OWNER GENERATION MINE ID", somebody with a
 * greater generation has my lock now; or "refused …", somebody without one wanted it. The id is
 * the rest, whatever bytes it has; a NUL is behind it. */
void guard_hear(struct guard *guard, const char *text, size_t size);
/* Notices up to now. From any thread; NULL is fine. */
int64_t guard_conflicts(const struct guard *guard);
/* Log that a claim found the lock to be that of `holder`; `told` says what became of its notice. */
void guard_note_held(const char *name, const struct stored_row *row, const char *holder,
                     const char *told);

#endif
