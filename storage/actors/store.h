/* SPDX-License-Identifier: Apache-2.0
 *
 * A store of durable actors: what every database that keeps their named values does.
 *
 * A store knows two things of an actor besides its values: the fence of its owner, and the number
 * of its last commit. Both only grow. That is all it takes to keep a deposed owner out:
 *
 *     CLAIM   raises the actor's fence to the task's, unless it is greater already, and reads the
 *             values and the number, all in one transaction. So nothing that an earlier owner
 *             writes can come in between: it is in what was read, or it is refused.
 *     COMMIT  is done only if the actor's fence is the task's and its number is the one before the
 *             task's. Then its changes and its number are written, all or nothing.
 *     DUE     reads which alarms of a kind are due, page by page: for nobody sleeps so soundly that
 *             an alarm does not wake it. It writes nothing, and knows no fence.
 *
 * The tasks of one call are done in their order and in one transaction, which costs as much as one
 * alone (group commit). One that can't be done for a reason of its own (a row that somebody else
 * spoilt) is refused alone. A call has one COMMIT of an actor at most. A store is used by one
 * thread at a time (node/durable/committer_uv.h), and may block. Its bodies are SQLite
 * (store_sqlite.h), PostgreSQL and Redis (remote/), and a table in memory for tests.
 *
 * A store of which somebody puts an old copy in its place notices it by the next commit of an actor
 * that is newer than its row (verdict.h), and stops: it refuses all that comes from then on.
 */
#ifndef STORAGE_ACTORS_STORE_H
#define STORAGE_ACTORS_STORE_H

#include "base/bytes.h"
#include "base/list.h"
#include "storage/actors/due.h"

#include <stddef.h>
#include <stdint.h>

enum {
    STORE_ID_MAX = 255,     /* bytes of an actor's id, 1 or more */
    STORE_TASKS_MAX = 1024, /* of one call */
};

enum store_verb { STORE_CLAIM, STORE_COMMIT, STORE_DUE };

enum store_result {
    STORE_DONE,        /* it is durable */
    STORE_FENCED,      /* another owner has the actor: nothing was changed, nor ever will be */
    STORE_UNAVAILABLE, /* the store can't do it: nothing was changed */
    STORE_UNKNOWN,     /* COMMIT: the store failed amidst it and can't be read: done, or not */
};

/* Something for a store to do, and what came of it. */
struct store_task {
    struct list_link link; /* for whoever has it */
    uint8_t verb;          /* enum store_verb */
    uint8_t result;        /* enum store_result: the store's */
    uint16_t kind;
    uint8_t id_size; /* of DUE: 0 */
    uint8_t id[STORE_ID_MAX];
    uint64_t fence;      /* not of DUE */
    uint64_t number;     /* COMMIT: its number. CLAIM: the store writes that of the last commit, 0 =
                            there was none. DUE: the time, in ms since 1970 */
    struct buffer bytes; /* owned; changes (changes.h). COMMIT: its own. CLAIM: the store writes all
                            values, in the order of their keys. DUE: the alarm after which the page
                            begins, or nothing; the store writes the page in its place (due.h). What
                            is over its limits is left out, for somebody else wrote it */
    void *to;            /* node/runtime's: where it goes when it is done … */
    void *actor;         /* … and for whom it was; NULL = for nobody any more. Only read there */
};

/* For metrics. */
struct store_counts {
    uint64_t reconnects; /* to a database elsewhere, but for the first */
    uint64_t went_back;  /* commits that found an old copy of the store; not 0: it is stopped */
};

struct actor_store {
    /* Do the tasks, and write each one's result. */
    void (*perform)(struct actor_store *s, struct store_task *const *task, size_t count);
    /* Close the store and free it. */
    void (*close)(struct actor_store *s);
    struct store_counts counts; /* of the thread that calls `perform` */
};

/* The version of the schema, in each database. */
enum {
    STORE_UNFINISHED = 0, /* a copy of another store, which is not all there yet */
    STORE_VERSION = 2,
};

/* Return what is wrong with that version of a store, for people; NULL = nothing. */
const char *store_version_fault(uint64_t version);

struct store_task *store_task_new(enum store_verb verb);
void store_task_free(struct store_task *t);

/* The database that a text names. */
enum store_place { STORE_NOWHERE, STORE_SQLITE, STORE_POSTGRES, STORE_REDIS };
/* Return which that is, and `where` it is, borrowed from `name`. */
enum store_place store_place_of(const char *name, const char **where);

/* Open the store that a text names: "sqlite:PATH", a file, which is made if it is missing;
 * "postgres:CONNECTION", as libpq takes it; "redis:HOST:PORT[/DB]" or "redis:unix:PATH". NULL: one
 * line on stderr says why. Free it by its `close`. */
struct actor_store *actor_store_open(const char *name);

#endif
