/* SPDX-License-Identifier: Apache-2.0
 *
 * A counter that survives crashes: its count lies in PostgreSQL, and the table
 * itself keeps a deposed owner out. This is the database's half; the actor's is
 * stores/stored.c, the lock guard's stores/guard.c. docs/stores.md explains all.
 *
 *     cc -shared -fPIC -Iinclude examples/store_postgres.c examples/stores/guard.c \
 *         examples/stores/stored.c examples/stores/jobs.c -lpq -lpthread -o store_postgres.so
 *     ringhold node --actor './store_postgres.so=host=db1 dbname=game' …
 *     ringhold node --actor './store_postgres.so=host=db1 dbname=game,guard' …
 *
 * What stands after the first "=" is a connection string of libpq, and ",guard"
 * at its end turns the lock guard on. Leave the password out of it, others see
 * it in ps: ~/.pgpass has room for it.
 */
#include "stores/guard.h"
#include "stores/stored.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store {
    char *where;                  /* a connection string */
    char owner[GUARD_OWNER_SIZE]; /* of locks; empty = no guard */
    struct guard *guard;          /* NULL = off */
};

/* One connection, of one thread. */
struct line {
    const struct store *store;
    PGconn *db;
    bool broken; /* an answer did not come in time: what comes next is anybody's guess */
};

/* Nodes that start together make the tables one after the other. What was cancelled by its timeout
 * was not written, and nothing that takes longer than a client waits is written behind its back. */
static const char schema[] =
    "SET client_min_messages = warning; SET statement_timeout = 3000;"
    "SELECT pg_advisory_xact_lock(7466);"
    "CREATE TABLE IF NOT EXISTS counter(id bytea PRIMARY KEY, token bigint NOT NULL,"
    " state_ver bigint NOT NULL, count bigint NOT NULL);"
    "CREATE TABLE IF NOT EXISTS refused(id bytea, token bigint, node text,"
    " at timestamptz DEFAULT now());";

/* Raise and read, or insert: one statement. No row comes back when the token there is greater. */
static const char claim_sql[] =
    "INSERT INTO counter(id, token, state_ver, count) VALUES($1, $2, 0, 0)"
    " ON CONFLICT(id) DO UPDATE SET token = excluded.token, state_ver = counter.state_ver + 1"
    " WHERE counter.token <= excluded.token RETURNING state_ver, count";
static const char write_sql[] =
    "UPDATE counter SET count = $4, state_ver = state_ver + 1"
    " WHERE id = $1 AND token = $2 AND state_ver = $3 RETURNING state_ver";
/* With the guard. The function is the connection's own, so that plug-ins of two versions may use
 * one database. Claims of one id wait for each other at its row of `guard`. All listen on one
 * channel, as the name of an owner may be too long for one: the first word says for whom a notice
 * is. */
static const char guard_schema[] =
    "SELECT pg_advisory_xact_lock(7466);"
    "CREATE TABLE IF NOT EXISTS guard(id bytea PRIMARY KEY, owner text NOT NULL,"
    " generation bigint NOT NULL, activation bigint NOT NULL);"
    "CREATE OR REPLACE FUNCTION pg_temp.claim(key bytea, mine bigint, me text, act bigint,"
    " OUT said text, OUT version bigint, OUT total bigint, OUT holder text) AS $$ "
    "DECLARE theirs bigint; "
    "BEGIN "
    "  INSERT INTO guard AS g VALUES(key, me, mine, act)"
    "    ON CONFLICT(id) DO UPDATE SET id = g.id" // Changes nothing: it locks and reads the row.
    "    RETURNING g.owner, g.generation INTO holder, theirs;"
    "  PERFORM 1 FROM counter c WHERE c.id = key AND c.token > mine;"
    "  IF FOUND OR (holder = me AND theirs > mine) THEN"
    "    DELETE FROM guard g WHERE g.id = key AND g.owner = me AND g.generation = mine"
    "      AND g.activation = act;"
    "    said := 'fenced'; RETURN;"
    "  END IF;"
    "  IF holder <> me THEN"
    "    PERFORM pg_notify('ringhold_guard', concat_ws(' ', holder,"
    "      CASE WHEN theirs < mine THEN 'taken' ELSE 'refused' END, me, mine, theirs,"
    "      E'\\\\x' || encode(key, 'hex')));"
    "    IF theirs >= mine THEN said := 'held'; RETURN; END IF;"
    "  END IF;"
    "  UPDATE guard g SET owner = me, generation = mine, activation = act WHERE g.id = key;"
    "  INSERT INTO counter AS c VALUES(key, mine, 0, 0)"
    "    ON CONFLICT(id) DO UPDATE SET token = mine, state_ver = c.state_ver + 1"
    "    WHERE c.token <= mine RETURNING c.state_ver, c.count INTO version, total;"
    "  said := CASE WHEN FOUND THEN 'yours' ELSE 'fenced' END;"
    "END $$ LANGUAGE plpgsql;";
static const char guarded_sql[] =
    "SELECT version, total, said, holder FROM pg_temp.claim($1, $2, $3, $4)";
/* Only my own lock, not that of whoever took it over. */
static const char release_sql[] =
    "DELETE FROM guard WHERE id = $1 AND generation = $2 AND owner = $3 AND activation = $4";

/* Why not? Tokens never fall, so this may be asked later. */
static const char newer_sql[] = "SELECT 1 FROM counter WHERE id = $1 AND token > $2";
/* For people to see; the protection does not need it. */
static const char note_sql[] = "INSERT INTO refused(id, token, node) VALUES($1, $2, $3)";
static const char refused_sql[] = "SELECT count(*) FROM refused";

/* ---- the connection, without blocking beyond a time */

static bool wait_for(PGconn *db, short events, int64_t until_ms)
{
    struct pollfd p = {.fd = PQsocket(db), .events = events};
    int ready = 0;

    do {
        const int64_t left_ms = until_ms - jobs_now_ms();

        ready = poll(&p, 1, left_ms > 0 ? (int)left_ms : 0);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

/* libpq explains itself in several lines. */
static void explain(const PGconn *db, char why[JOBS_WHY_SIZE])
{
    const char *text = PQerrorMessage(db);
    size_t size = 0;

    if (text[0] == '\0') {
        (void)snprintf(
            why, JOBS_WHY_SIZE, "no answer in time from %s port %s", PQhost(db), PQport(db));
        return;
    }
    for (; *text != '\0' && size + 1 < JOBS_WHY_SIZE; text++) {
        if (*text != '\n' && *text != '\t') {
            why[size++] = *text;
        } else if (size > 0 && why[size - 1] != ' ') {
            why[size++] = ' ';
        }
    }
    why[size] = '\0';
}

static bool connect_in_time(PGconn *db, int64_t until_ms)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    while (PQstatus(db) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
        if (next == PGRES_POLLING_FAILED ||
            !wait_for(db, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_ms)) {
            return false;
        }
        next = PQconnectPoll(db);
    }
    return PQstatus(db) == CONNECTION_OK;
}

/* The last result of what was sent; NULL: the connection broke, or no answer came in time. */
static PGresult *answer(struct line *l, int64_t until_ms)
{
    PGresult *last = NULL;
    PGresult *next = NULL;

    do {
        while (PQisBusy(l->db)) {
            if (!wait_for(l->db, POLLIN, until_ms) || !PQconsumeInput(l->db)) {
                PQclear(last);
                l->broken = true;
                return NULL;
            }
        }
        next = PQgetResult(l->db);
        if (next != NULL) {
            PQclear(last);
            last = next;
        }
    } while (next != NULL);
    return last;
}

static void on_close(void *connection)
{
    struct line *l = connection;

    PQfinish(l->db);
    free(l);
}

/* Statements without parameters, one transaction. */
static bool run_in_time(struct line *l, const char *sql, int64_t until_ms)
{
    PGresult *got = PQsendQuery(l->db, sql) ? answer(l, until_ms) : NULL;
    const bool good = got != NULL && PQresultStatus(got) == PGRES_COMMAND_OK;

    PQclear(got);
    return good;
}

static void *on_open(void *store, int64_t until_ms, char why[JOBS_WHY_SIZE])
{
    struct line *l = calloc(1, sizeof *l);
    const struct store *s = store;

    if (l == NULL || (l->db = PQconnectStart(s->where)) == NULL) {
        free(l);
        (void)snprintf(why, JOBS_WHY_SIZE, "no memory");
        return NULL;
    }
    l->store = s;
    if (!connect_in_time(l->db, until_ms) || !run_in_time(l, schema, until_ms) ||
        (s->owner[0] != '\0' && !run_in_time(l, guard_schema, until_ms))) {
        explain(l->db, why);
        on_close(l);
        return NULL;
    }
    return l;
}

static bool is_alive(const void *connection)
{
    const struct line *l = connection;

    return !l->broken && PQstatus(l->db) == CONNECTION_OK;
}

/* ---- statements */

/* $1 = id, $2 = token, then up to two more. The result is the caller's, NULL unless STORE_OK. */
static enum store_end ask(struct line *l, const char *sql, int count, const struct stored_row *row,
                          const char *const more[2], PGresult **out)
{
    char token[24];
    const char *const value[] = {(const char *)row->id, token, more[0], more[1]};
    const int size[] = {(int)row->id_size, 0, 0, 0};
    const int format[] = {1, 0, 0, 0}; // the id in binary
    PGresult *got = NULL;

    *out = NULL;
    (void)snprintf(token, sizeof token, "%" PRIu64, row->token);
    if (PQsendQueryParams(l->db, sql, count, NULL, value, size, format, 0)) {
        got = answer(l, jobs_now_ms() + JOB_MS);
    }
    if (got == NULL) {
        l->broken = true;
        return STORE_UNKNOWN;
    }
    const ExecStatusType status = PQresultStatus(got);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        *out = got;
        return STORE_OK;
    }
    // An error with a code undid the statement, but for those of a server that goes down.
    const char *code = PQresultErrorField(got, PG_DIAG_SQLSTATE);
    const bool said_no =
        code != NULL && strncmp(code, "57P", 3) != 0 && strncmp(code, "08", 2) != 0;
    (void)fprintf(stderr, "store_postgres: %s", PQresultErrorMessage(got));
    PQclear(got);
    return said_no ? STORE_ERROR : STORE_UNKNOWN;
}

static int64_t number(const PGresult *result, int column)
{
    return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

/* The lock, and then the row, as one. */
static enum store_end claim_guarded(struct line *l, const struct stored_row *row, PGresult **got)
{
    char activation[24];

    (void)snprintf(activation, sizeof activation, "%" PRIu64, row->activation);
    enum store_end end =
        ask(l, guarded_sql, 4, row, (const char *[2]){l->store->owner, activation}, got);
    const char *said = end == STORE_OK ? PQgetvalue(*got, 0, 2) : "";
    if (strcmp(said, "held") == 0) {
        guard_note_held("store_postgres", row, PQgetvalue(*got, 0, 3), "a notice was sent");
        end = STORE_HELD;
    } else if (strcmp(said, "fenced") == 0) {
        end = STORE_FENCED;
    }
    return end;
}

static enum store_end on_claim(void *connection, struct stored_row *row)
{
    struct line *l = connection;
    PGresult *got = NULL;
    enum store_end end = STORE_OK;

    if (l->store->owner[0] != '\0') {
        end = claim_guarded(l, row, &got);
    } else {
        end = ask(l, claim_sql, 2, row, (const char *[2]){0}, &got);
        end = end == STORE_OK && PQntuples(got) == 0 ? STORE_FENCED : end;
    }
    if (end == STORE_OK) {
        row->version = number(got, 0);
        row->count = number(got, 1);
    }
    PQclear(got);
    return end;
}

static void on_release(void *connection, const struct stored_row *row)
{
    struct line *l = connection;
    char activation[24];
    PGresult *got = NULL;

    if (l->store->owner[0] == '\0') {
        return;
    }
    (void)snprintf(activation, sizeof activation, "%" PRIu64, row->activation);
    (void)ask(l, release_sql, 4, row, (const char *[2]){l->store->owner, activation}, &got);
    PQclear(got);
}

static enum store_end on_write(void *connection, const struct stored_row *row, int64_t count)
{
    char version[24];
    char text[24];
    PGresult *got = NULL;

    (void)snprintf(version, sizeof version, "%" PRId64, row->version);
    (void)snprintf(text, sizeof text, "%" PRId64, count);
    enum store_end end = ask(connection, write_sql, 4, row, (const char *[2]){version, text}, &got);
    const bool refused = end == STORE_OK && PQntuples(got) == 0;
    PQclear(got);
    if (refused) {
        end = ask(connection, newer_sql, 2, row, (const char *[2]){0}, &got);
        end = end != STORE_OK ? STORE_ERROR : PQntuples(got) == 0 ? STORE_CHANGED : STORE_FENCED;
        PQclear(got);
    }
    return end;
}

static void on_note(void *connection, const struct stored_row *row, const char *node)
{
    PGresult *got = NULL;

    (void)ask(connection, note_sql, 3, row, (const char *[2]){node}, &got);
    PQclear(got);
}

static enum store_end on_refused(void *connection, int64_t *count)
{
    PGresult *got = NULL;
    const struct stored_row none = {0};
    const enum store_end end = ask(connection, refused_sql, 0, &none, (const char *[2]){0}, &got);

    if (end == STORE_OK) {
        *count = number(got, 0);
    }
    PQclear(got);
    return end;
}

static int64_t on_conflicts(const void *store)
{
    const struct store *s = store;

    return guard_conflicts(s->guard);
}

/* ---- the ear of the guard */

static void *ear_open(void *store, int64_t until_ms, char why[JOBS_WHY_SIZE])
{
    struct line *l = on_open(store, until_ms, why);

    if (l != NULL && !run_in_time(l, "LISTEN ringhold_guard", until_ms)) {
        explain(l->db, why);
        on_close(l);
        return NULL;
    }
    return l;
}

static int ear_fd(const void *connection)
{
    const struct line *l = connection;

    return PQsocket(l->db);
}

static bool ear_read(void *connection)
{
    struct line *l = connection;

    return PQconsumeInput(l->db) != 0;
}

/* "FOR taken OWNER GENERATION MINE \\xID": to the guard without the first word, and with the id as
 * it is. */
static void ear_notice(struct guard *g, const char *owner, const char *text)
{
    const size_t owner_size = strlen(owner);
    const char *hex = strstr(text, " \\x");
    char plain[GUARD_NOTICE_SIZE];
    size_t id_size = 0;

    if (hex == NULL || strncmp(text, owner, owner_size) != 0 || text[owner_size] != ' ') {
        return;
    }
    unsigned char *id = PQunescapeBytea((const unsigned char *)hex + 1, &id_size);
    const int head = snprintf(plain,
                              sizeof plain,
                              "%.*s ",
                              (int)(hex - text - (ptrdiff_t)owner_size - 1),
                              text + owner_size + 1);
    if (id != NULL && (size_t)head + id_size < sizeof plain) {
        memcpy(plain + head, id, id_size + 1);
        guard_hear(g, plain, (size_t)head + id_size);
    }
    PQfreemem(id);
}

static void ear_hear(struct guard *g, void *connection)
{
    struct line *l = connection;
    PGnotify *next = NULL;

    while ((next = PQnotifies(l->db)) != NULL) {
        ear_notice(g, l->store->owner, next->extra);
        PQfreemem(next);
    }
}

static const struct guard_ear ear = {
    "store_postgres", ear_open, on_close, ear_fd, ear_read, ear_hear};

/* ---- the kind */

static const struct stored_ops postgres = {
    .name = "store_postgres",
    .open = on_open,
    .close = on_close,
    .is_alive = is_alive,
    .claim = on_claim,
    .write = on_write,
    .note = on_note,
    .refused = on_refused,
    .release = on_release,
    .conflicts = on_conflicts,
};

static void store_free(struct store *s)
{
    if (s != NULL) {
        free(s->where);
        free(s);
    }
}

/* A connection string, then ",guard" or nothing. NULL: no memory. */
static struct store *store_new(const struct rh_kind_info *info)
{
    static const char word[] = ",guard";
    const size_t size = strlen(info->argument);
    struct store *s = calloc(1, sizeof *s);

    if (s == NULL || (s->where = strdup(info->argument)) == NULL) {
        store_free(s);
        return NULL;
    }
    if (size >= strlen(word) && strcmp(s->where + size - strlen(word), word) == 0) {
        s->where[size - strlen(word)] = '\0';
        guard_name_owner(s->owner, info->node);
    }
    return s;
}

static void on_stop(void *shared)
{
    struct store *s = stored_store(shared);

    guard_stop(s->guard);
    stored_stop(shared); // It releases the locks.
    store_free(s);
}

static int on_start(const struct rh_kind_info *info, void **shared)
{
    if (info->argument[0] == '\0') {
        (void)fprintf(stderr,
                      "store_postgres: name its server: --actor './store_postgres.so=host=… "
                      "dbname=…[,guard]'\n");
        return RH_FAILED;
    }
    struct store *s = store_new(info);
    struct stored *stored = s == NULL ? NULL : stored_start(&postgres, s, info->node);
    if (stored == NULL) {
        store_free(s);
        return RH_FAILED;
    }
    if (s->owner[0] != '\0' &&
        (s->guard = guard_start(&(struct guard_options){&ear, s, stored})) == NULL) {
        on_stop(stored);
        return RH_FAILED;
    }
    *shared = stored;
    return RH_OK;
}

const struct rh_actor_ops ringhold_actor = {
    STORED_CALLBACKS,
    .name = "store_postgres",
    .start = on_start,
    .stop = on_stop,
};
