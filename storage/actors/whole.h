/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole store of durable actors in an operator's hands, whatever database it is: read beside
 * nodes that run, or used alone. Its bodies are tools_sqlite.c, remote/tools_pq.c and
 * remote/tools_hiredis.c.
 *
 * Used by one thread. It may block. What fails leaves one line in `why`.
 */
#ifndef STORAGE_ACTORS_WHOLE_H
#define STORAGE_ACTORS_WHOLE_H

#include "storage/actors/store.h"
#include "storage/actors/tools.h"

enum whole_use {
    WHOLE_BESIDE, /* nodes may run: check(), figures() and vacuum() alone */
    WHOLE_ALONE,  /* no node has it open, nor will before it is closed */
    WHOLE_TARGET, /* likewise; it is made if it is missing, and may be an unfinished copy */
};

struct whole_store {
    struct actor_store *store; /* owned: for claims and commits; NULL = it is open BESIDE */
    uint64_t version;          /* of its schema, as it was when it was opened */
    char why[STORE_TOOLS_WHY_SIZE];

    /* Tell each thing that is wrong. False: it can't be read. */
    bool (*check)(struct whole_store *w, store_on_finding *on_finding, void *context);
    /* Count what is in it. */
    bool (*figures)(struct whole_store *w, struct store_figures *out);
    /* Make it small. */
    bool (*vacuum)(struct whole_store *w);
    /* Find the fence of the task's actor. False: there is no such actor, or `why` is not empty. */
    bool (*fence)(struct whole_store *w, struct store_task *t);
    /* Go on to the next actors, `max` at most but for a few: a CLAIM of each by the fence that it
     * has is put into `task`, which has place for WHOLE_PAGE_MAX; they are the caller's. None: that
     * was all. Each actor comes once. */
    bool (*list)(struct whole_store *w, size_t max, struct store_task **task, size_t *count);
    /* Make the rows of actors that are not there yet: that each commit can be done next. */
    bool (*adopt)(struct whole_store *w, struct store_task *const *commit, size_t count);
    /* Say what its schema's version is: STORE_UNFINISHED keeps nodes out. */
    bool (*set_version)(struct whole_store *w, uint64_t version);
    /* Delete all that actors have. */
    bool (*clear)(struct whole_store *w);
    /* Close it, and free it. */
    void (*close)(struct whole_store *w);
};

enum { WHOLE_PAGE_MAX = 64 };

/* Open the store that a text names as `ringhold node --store` does, or a file of SQLite by its path
 * alone. ERR_INVALID: it names none. ERR_LOCKED: somebody else uses it, or it can't be had else.
 * BESIDE, a file has codes of its own: as store_tools_stats(). */
MUST_CHECK enum err whole_open(const char *name, enum whole_use use, struct whole_store **out,
                               char why[STORE_TOOLS_WHY_SIZE]);

/* ---- for those bodies */

/* Return a CLAIM of that actor, the caller's. NULL: it is none, as somebody else wrote it; `why`.
 */
struct store_task *whole_claim(uint64_t kind, struct bytes id, uint64_t fence,
                               char why[STORE_TOOLS_WHY_SIZE]);

#endif
