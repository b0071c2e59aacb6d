/* SPDX-License-Identifier: Apache-2.0
 *
 * A counter whose count lies in a database that many nodes share, fenced. This
 * is the actor's half: what to ask the database, when, and what to answer when
 * it is away, slow, or says no. store_postgres.c and store_redis.c are the
 * other half, one table of operations each. docs/stores.md explains both.
 *
 * The operations run on threads of their own (jobs.h), one at a time for each
 * actor, which is busy meanwhile; no other actor waits.
 *
 * Payloads: INCR = one up, written before it is answered; ADD = one up, written
 * later, by flush; GET; SLOW 500 = INCR, but 500 ms pass before it is written
 * (for experiments); REFUSED = writes that the store refused, of any node;
 * CONFLICTS = notices of the lock guard that this node got.
 */
#ifndef EXAMPLES_STORES_STORED_H
#define EXAMPLES_STORES_STORED_H

#include "jobs.h"

#include <ringhold.h>

enum { STORED_ID_MAX = 255 };

/* How an operation ended. */
enum store_end {
    STORE_OK,
    STORE_ERROR,   /* the database said no; nothing was written */
    STORE_UNKNOWN, /* the connection broke in the midst: it may have been written, or be yet */
    STORE_FENCED,  /* the row's token is greater: a newer owner has it */
    STORE_HELD,    /* of a claim: the lock guard found another holder */
    STORE_CHANGED, /* no greater token, but not my version: something of mine came late, or rows
                      were lost; claim again */
};

/* One actor's row. */
struct stored_row {
    uint8_t id[STORED_ID_MAX];
    size_t id_size;
    uint64_t token;      /* the fence */
    uint64_t activation; /* differs for each activation in this process */
    int64_t version;     /* changes with each claim and write */
    int64_t count;
};

/* A database. All but `open` get a connection that `open` made. All end within JOB_MS. */
struct stored_ops {
    const char *name; /* for log lines */
    /* As in jobs.h; `store` is what stored_start() was given. */
    void *(*open)(void *store, int64_t until_ms, char why[JOBS_WHY_SIZE]);
    void (*close)(void *connection);
    /* Can it be used again? */
    bool (*is_alive)(const void *connection);
    /* In ONE atomic step: unless the row's token is greater, raise it to row->token, change the
     * version, read version and count into `row`; a new row counts 0. */
    enum store_end (*claim)(void *connection, struct stored_row *row);
    /* In ONE atomic step: where token and version are row's, set the count and change the version
     * to row->version + 1. Nothing but that leaves the row as it was. */
    enum store_end (*write)(void *connection, const struct stored_row *row, int64_t count);
    /* Note for people that a write of this node was refused. */
    void (*note)(void *connection, const struct stored_row *row, const char *node);
    /* How many were noted. */
    enum store_end (*refused)(void *connection, int64_t *count);
    /* The actor has left. May be NULL. */
    void (*release)(void *connection, const struct stored_row *row);
    int64_t (*conflicts)(const void *store); /* may be NULL */
};

/* State shared by all actors of a node: rh_shared(). */
struct stored;

/* For a start callback, once `store` is ready: reaches the server, or says on stderr why not and
 * returns NULL. */
struct stored *stored_start(const struct stored_ops *ops, void *store, const char *node);
/* Does what waits, then ends its threads. `store` is still the caller's. */
void stored_stop(struct stored *stored);
/* The `store` that stored_start() was given. */
void *stored_store(const struct stored *stored);
/* From any thread: somebody with a greater token has the id. Its actor ends with its next message
 * or periodic flush. */
void stored_depose(struct stored *stored, const void *id, size_t id_size, uint64_t token);

int stored_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance);
void stored_message(struct rh_actor *actor, void *instance, const struct rh_message *message);
int stored_flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence);
void stored_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument);
void stored_deactivate(struct rh_actor *actor, void *instance, enum rh_why why);

/* Table entries that every such kind has, beside its name, start and stop. */
#define STORED_CALLBACKS                                                                       \
    .abi = RH_ABI, .size = sizeof(struct rh_actor_ops), .activate = stored_activate,           \
    .message = stored_message, .flush = stored_flush, .flush_ms = 1000, .timer = stored_timer, \
    .deactivate = stored_deactivate

#endif
