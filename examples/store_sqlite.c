/* SPDX-License-Identifier: Apache-2.0
 *
 * A counter that survives crashes: its state lies in a SQLite file that all
 * nodes of one machine share, and the file itself keeps a deposed owner out.
 * docs/stores.md explains it.
 *
 *     cc -shared -fPIC -Iinclude examples/store_sqlite.c -lsqlite3 -o store_sqlite.so
 *     ringhold node --actor ./store_sqlite.so=/tmp/counters.db …
 *
 * The contract of a fenced store, whatever database it is:
 *
 *   claim   at activation, in ONE atomic statement: raise the token of the row
 *           to mine, unless it is greater already, and read the row. Reading
 *           first and raising then would let a late write of the old owner in
 *           between, which the new one has not read.
 *   write   only where the row's token equals mine. No row was written: I am
 *           fenced. Say so, stop, never try again.
 *
 * The token is the fence that activate was given. Ringhold sees to it that a
 * later owner has a greater one.
 *
 * Payloads: INCR = count one up; GET = the count; SLOW 500 = INCR, but 500 ms
 * pass in between (a blocked callback: for experiments); REFUSED = writes that
 * the store refused, of any node.
 */
#include <ringhold.h>

#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What all actors of a node share, whichever worker runs them: one at a time. */
struct store {
    pthread_mutex_t lock;
    sqlite3 *db;
    sqlite3_stmt *claim;
    sqlite3_stmt *write;
    sqlite3_stmt *refuse;
    sqlite3_stmt *refused;
    uint64_t refused_here;
    char node[64];
};

struct counter {
    struct store *store;
    int64_t count;
    bool fenced;
};

static const char schema[] =
    "PRAGMA journal_mode=WAL;"
    "CREATE TABLE IF NOT EXISTS counter(id BLOB PRIMARY KEY, token INTEGER NOT NULL,"
    " state_ver INTEGER NOT NULL, count INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS refused(id BLOB, token INTEGER, node TEXT, at TEXT);";

/* Raise and read, or insert: one statement. No row comes back when the token there is greater. */
static const char claim_sql[] =
    "INSERT INTO counter(id, token, state_ver, count) VALUES(?1, ?2, 0, 0)"
    " ON CONFLICT(id) DO UPDATE SET token = excluded.token WHERE token <= excluded.token"
    " RETURNING count";
static const char write_sql[] =
    "UPDATE counter SET count = ?3, state_ver = state_ver + 1 WHERE id = ?1 AND token = ?2";
/* For people to see; the protection does not need it. */
static const char refuse_sql[] =
    "INSERT INTO refused(id, token, node, at) VALUES(?1, ?2, ?3, datetime('now'))";
static const char refused_sql[] = "SELECT count(*) FROM refused";

/* ---- the store */

static void on_stop(void *shared)
{
    struct store *s = shared;

    (void)sqlite3_finalize(s->claim);
    (void)sqlite3_finalize(s->write);
    (void)sqlite3_finalize(s->refuse);
    (void)sqlite3_finalize(s->refused);
    (void)sqlite3_close(s->db);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

static bool prepare(struct store *s, const char *sql, sqlite3_stmt **out)
{
    return sqlite3_prepare_v2(s->db, sql, -1, out, NULL) == SQLITE_OK;
}

static int on_start(const struct rh_kind_info *info, void **shared)
{
    struct store *s = calloc(1, sizeof *s);

    if (s == NULL || info->argument[0] == '\0') {
        (void)fprintf(stderr, "store_sqlite: name its file: --actor ./store_sqlite.so=FILE\n");
        free(s);
        return RH_FAILED;
    }
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)snprintf(s->node, sizeof s->node, "%s", info->node);
    if (sqlite3_open(info->argument, &s->db) != SQLITE_OK ||
        sqlite3_busy_timeout(s->db, 5000) != SQLITE_OK ||
        sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
        !prepare(s, claim_sql, &s->claim) || !prepare(s, write_sql, &s->write) ||
        !prepare(s, refuse_sql, &s->refuse) || !prepare(s, refused_sql, &s->refused)) {
        (void)fprintf(stderr, "store_sqlite: %s: %s\n", info->argument, sqlite3_errmsg(s->db));
        on_stop(s);
        return RH_FAILED;
    }
    *shared = s;
    return RH_OK;
}

static void bind(sqlite3_stmt *q, const struct rh_actor *actor)
{
    const struct rh_bytes id = rh_id(actor);

    (void)sqlite3_reset(q);
    (void)sqlite3_bind_blob(q, 1, id.data, (int)id.size, SQLITE_TRANSIENT);
    (void)sqlite3_bind_int64(q, 2, (sqlite3_int64)rh_fence(actor));
}

/* The store said no: somebody claimed the row with a greater token. Under the lock. */
static void note_refusal(struct store *s, const struct rh_actor *actor)
{
    s->refused_here++;
    (void)fprintf(stderr,
                  "store_sqlite: refused a write with token %" PRIu64 ": a newer owner has the "
                  "row (%" PRIu64 " so far)\n",
                  rh_fence(actor),
                  s->refused_here);
    bind(s->refuse, actor);
    (void)sqlite3_bind_text(s->refuse, 3, s->node, -1, SQLITE_STATIC);
    (void)sqlite3_step(s->refuse);
    (void)sqlite3_reset(s->refuse);
}

/* False: a newer owner has the row, or the store failed. */
static bool claim(struct store *s, const struct rh_actor *actor, int64_t *count)
{
    (void)pthread_mutex_lock(&s->lock);
    bind(s->claim, actor);
    bool mine = sqlite3_step(s->claim) == SQLITE_ROW;
    if (mine) {
        *count = sqlite3_column_int64(s->claim, 0);
        // RETURNING is over, and the change is durable, when the next step says so.
        mine = sqlite3_step(s->claim) == SQLITE_DONE;
    }
    (void)sqlite3_reset(s->claim);
    (void)pthread_mutex_unlock(&s->lock);
    return mine;
}

enum written { WRITTEN, NOT_MINE, FAILED };

static enum written write_count(struct store *s, const struct rh_actor *actor, int64_t count)
{
    enum written result = FAILED;

    (void)pthread_mutex_lock(&s->lock);
    bind(s->write, actor);
    (void)sqlite3_bind_int64(s->write, 3, count);
    if (sqlite3_step(s->write) == SQLITE_DONE) {
        result = sqlite3_changes(s->db) == 0 ? NOT_MINE : WRITTEN;
    }
    (void)sqlite3_reset(s->write);
    if (result == NOT_MINE) {
        note_refusal(s, actor);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return result;
}

static int64_t refused_ever(struct store *s)
{
    int64_t count = -1;

    (void)pthread_mutex_lock(&s->lock);
    if (sqlite3_step(s->refused) == SQLITE_ROW) {
        count = sqlite3_column_int64(s->refused, 0);
    }
    (void)sqlite3_reset(s->refused);
    (void)pthread_mutex_unlock(&s->lock);
    return count;
}

/* ---- the actor */

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct counter *c = calloc(1, sizeof *c);

    (void)state; /* the store has it, whether the old owner moved or died */
    (void)fence; /* as rh_fence() */
    if (c == NULL) {
        return RH_FAILED;
    }
    c->store = rh_shared(actor);
    if (!claim(c->store, actor, &c->count)) {
        free(c);
        return RH_FAILED;
    }
    *instance = c;
    return RH_OK;
}

static void count_up(struct rh_actor *actor, struct counter *c)
{
    switch (write_count(c->store, actor, c->count + 1)) {
    case WRITTEN:
        c->count++;
        (void)rh_reply(actor, rh_integer(c->count));
        break;
    case NOT_MINE:
        c->fenced = true;
        (void)rh_reply(actor, rh_error("FENCED another node has this id now"));
        break;
    case FAILED:
        (void)rh_reply(actor, rh_error("ERR the store failed; nothing was counted"));
        break;
    }
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct counter *c = instance;
    char text[32] = "";
    const size_t size = message->payload.size < sizeof text ? message->payload.size : 0;

    if (size > 0) {
        memcpy(text, message->payload.data, size);
    }
    if (strcmp(text, "REFUSED") == 0) {
        (void)rh_reply(actor, rh_integer(refused_ever(c->store)));
    } else if (c->fenced) {
        (void)rh_reply(actor, rh_error("FENCED another node has this id now"));
    } else if (strcmp(text, "GET") == 0) {
        (void)rh_reply(actor, rh_integer(c->count));
    } else if (strcmp(text, "INCR") == 0) {
        count_up(actor, c);
    } else if (strncmp(text, "SLOW ", 5) == 0) {
        const long ms = strtol(text + 5, NULL, 10);
        const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

        (void)nanosleep(&pause, NULL);
        count_up(actor, c);
    } else {
        (void)rh_reply(actor, rh_error("ERR it takes INCR, GET, SLOW ms and REFUSED"));
    }
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)why; /* every change was written when it was answered */
    free(instance);
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "store_sqlite",
    .start = on_start,
    .stop = on_stop,
    .activate = on_activate,
    .message = on_message,
    .deactivate = on_deactivate,
};
