/* SPDX-License-Identifier: Apache-2.0
 *
 * A counter that survives crashes: its count lies in PostgreSQL, and the table
 * itself keeps a deposed owner out. This is the database's half; the actor's is
 * stores/stored.c. docs/stores.md explains it.
 *
 *     cc -shared -fPIC -Iinclude examples/store_postgres.c \
 *         examples/stores/stored.c examples/stores/jobs.c -lpq -lpthread -o store_postgres.so
 *     ringhold node --actor './store_postgres.so=host=db1 dbname=game' …
 *
 * What stands after the first "=" is a connection string of libpq. Leave the
 * password out of it, others see it in ps: ~/.pgpass has room for it.
 */
#include "stores/stored.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One connection, of one thread. */
struct line {
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

static void *on_open(void *store, int64_t until_ms, char why[JOBS_WHY_SIZE])
{
    struct line *l = calloc(1, sizeof *l);
    PGresult *made = NULL;

    if (l == NULL || (l->db = PQconnectStart(store)) == NULL) {
        free(l);
        (void)snprintf(why, JOBS_WHY_SIZE, "no memory");
        return NULL;
    }
    if (connect_in_time(l->db, until_ms) && PQsendQuery(l->db, schema)) {
        made = answer(l, until_ms);
    }
    const bool good = made != NULL && PQresultStatus(made) == PGRES_COMMAND_OK;
    PQclear(made);
    if (!good) {
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

static enum store_end on_claim(void *connection, struct stored_row *row)
{
    PGresult *got = NULL;
    enum store_end end = ask(connection, claim_sql, 2, row, (const char *[2]){0}, &got);

    if (end == STORE_OK && PQntuples(got) == 0) {
        end = STORE_FENCED;
    } else if (end == STORE_OK) {
        row->version = number(got, 0);
        row->count = number(got, 1);
    }
    PQclear(got);
    return end;
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
};

static int on_start(const struct rh_kind_info *info, void **shared)
{
    if (info->argument[0] == '\0') {
        (void)fprintf(stderr,
                      "store_postgres: name its server: --actor './store_postgres.so=host=… "
                      "dbname=…'\n");
        return RH_FAILED;
    }
    char *where = strdup(info->argument);
    struct stored *s = where == NULL ? NULL : stored_start(&postgres, where, info->node);
    if (s == NULL) {
        free(where);
        return RH_FAILED;
    }
    *shared = s;
    return RH_OK;
}

static void on_stop(void *shared)
{
    char *where = stored_store(shared);

    stored_stop(shared);
    free(where);
}

const struct rh_actor_ops ringhold_actor = {
    STORED_CALLBACKS,
    .name = "store_postgres",
    .start = on_start,
    .stop = on_stop,
};
