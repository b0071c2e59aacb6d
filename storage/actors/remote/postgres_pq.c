/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims and commits of durable actors as pipelines of PostgreSQL.
 */
#include "storage/actors/remote/postgres_pq.h"

#include "base/assert.h"
#include "base/library.h"
#include "base/log.h"
#include "base/mem.h"
#include "storage/actors/changes.h"
#include "storage/actors/due.h"
#include "storage/actors/remote/postgres_sql.h"

#include <errno.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of libpq. */
#define PQ_LIST(X)          \
    X(PQclear)              \
    X(PQcmdStatus)          \
    X(PQconnectdbParams)    \
    X(PQconsumeInput)       \
    X(PQenterPipelineMode)  \
    X(PQerrorMessage)       \
    X(PQfinish)             \
    X(PQflush)              \
    X(PQgetResult)          \
    X(PQgetisnull)          \
    X(PQgetlength)          \
    X(PQgetvalue)           \
    X(PQisBusy)             \
    X(PQnfields)            \
    X(PQntuples)            \
    X(PQpipelineStatus)     \
    X(PQpipelineSync)       \
    X(PQresultErrorField)   \
    X(PQresultErrorMessage) \
    X(PQresultStatus)       \
    X(PQsendPrepare)        \
    X(PQsendQuery)          \
    X(PQsendQueryParams)    \
    X(PQsendQueryPrepared)  \
    X(PQsetNoticeProcessor) \
    X(PQsetnonblocking)     \
    X(PQsocket)             \
    X(PQstatus)

struct pq {
#define X(name) __typeof__(name) *(name);
    PQ_LIST(X)
#undef X
};
static struct pq pq;

static const struct library_function functions[] = {
#define X(name) {#name, offsetof(struct pq, name)},
    PQ_LIST(X)
#undef X
};

/* Types of parameters and columns. */
enum {
    BOOL = 16,
    BYTEA = 17,
    INT8 = 20,
    INT4 = 23,
    BOOLS = 1000,
    BYTEAS = 1001,
    INT4S = 1007,
    INT8S = 1016,
};

enum { PARAMETERS_MAX = 10 };

static const struct statement {
    const char *name;
    const char *sql;
    int count;
    Oid type[PARAMETERS_MAX];
} statements[] = {
    {"claim", postgres_claim, 3, {INT4, BYTEA, INT8}},
    {"load", postgres_load, 2, {INT4, BYTEA}},
    {"commit",
     postgres_commit,
     10,
     {INT4, BYTEA, INT8, INT8, INT4S, BYTEAS, BOOLS, BYTEAS, INT8S, INT8S}},
    {"due", postgres_due, 6, {INT4, INT8, INT8, BYTEA, BYTEA, INT8}},
    {"found", postgres_found, 2, {INT4, BYTEA}},
    {"raise", postgres_raise, 5, {INT4, BYTEA, INT8, INT8, INT8}},
};

struct postgres {
    struct store_line line;
    char *where; /* owned */
    PGconn *db;  /* NULL = closed */
    struct buffer parameters;
    bool warned; /* that the server does not flush */
};

/* ---- the connection ---- */

static bool give_up(struct postgres *p, const char *why)
{
    line_explain(&p->line, why);
    pq.PQfinish(p->db);
    p->db = NULL;
    return false;
}

static bool broke(struct postgres *p)
{
    const char *why = pq.PQerrorMessage(p->db);

    return give_up(p, why[0] == '\0' ? "it does not answer" : why);
}

/* Until something can be read, and what was sent is on its way. */
static bool move_bytes(struct postgres *p)
{
    const int left = pq.PQflush(p->db);
    struct pollfd ready = {
        .fd = pq.PQsocket(p->db),
        .events = (short)(left > 0 ? POLLIN | POLLOUT : POLLIN),
    };
    int count;

    do {
        count = poll(&ready, 1, LINE_SILENCE_MS);
    } while (count < 0 && errno == EINTR);
    return left >= 0 && count > 0 && ((ready.revents & ~POLLOUT) == 0 || pq.PQconsumeInput(p->db));
}

/* The next result. NULL: that was the last of its statement, or the line broke (false). */
static bool next(struct postgres *p, PGresult **result)
{
    while (pq.PQisBusy(p->db)) {
        if (!move_bytes(p)) {
            return broke(p);
        }
    }
    *result = pq.PQgetResult(p->db);
    return true;
}

/* ---- what goes out ---- */

/* Parameters of one statement: places in the line's buffer. */
struct parameters {
    struct buffer *to;
    size_t at[PARAMETERS_MAX];
    int size[PARAMETERS_MAX];
    int count;
};

static void put_big_endian(struct buffer *b, uint64_t value, size_t size)
{
    uint8_t *to = buffer_reserve(b, size);

    for (size_t i = 0; i < size; i++) {
        to[i] = (uint8_t)(value >> (8 * (size - 1 - i)));
    }
    b->size += size;
}

static void begin_parameter(struct parameters *q)
{
    q->at[q->count] = q->to->size;
}

static void end_parameter(struct parameters *q)
{
    q->size[q->count] = (int)(q->to->size - q->at[q->count]);
    q->count++;
}

static void put_number(struct parameters *q, uint64_t value)
{
    begin_parameter(q);
    put_big_endian(q->to, value, 8);
    end_parameter(q);
}

static void put_blob(struct parameters *q, struct bytes bytes)
{
    begin_parameter(q);
    buffer_put(q->to, bytes.data, bytes.size);
    end_parameter(q);
}

/* The first is a kind. */
static struct parameters parameters_of(struct postgres *p, uint16_t kind)
{
    struct parameters q = {.to = &p->parameters};

    buffer_clear(&p->parameters);
    begin_parameter(&q);
    put_big_endian(q.to, kind, 4);
    end_parameter(&q);
    return q;
}

static void put_bytes(struct buffer *b, struct bytes bytes)
{
    put_big_endian(b, bytes.size, 4);
    buffer_put(b, bytes.data, bytes.size);
}

static void put_wide(struct buffer *b, uint64_t value, size_t size)
{
    put_big_endian(b, size, 4);
    put_big_endian(b, value, size);
}

/* Of a change, as arrays of the statement. */
enum column { COLUMN_OF, COLUMN_KEY, COLUMN_GONE, COLUMN_BYTES, COLUMN_DUE, COLUMN_EVERY, COLUMNS };

static void put_element(struct buffer *b, const struct store_change *c, int column)
{
    switch (column) {
    case COLUMN_OF:
        put_wide(b, c->of, 4);
        break;
    case COLUMN_KEY:
        put_bytes(b, c->key);
        break;
    case COLUMN_GONE:
        put_wide(b, c->gone ? 1 : 0, 1);
        break;
    case COLUMN_BYTES:
        put_bytes(b, c->bytes);
        break;
    default:
        put_wide(b, column == COLUMN_DUE ? c->due_ms : c->every_ms, 8);
        break;
    }
}

/* One column of all changes, as an array. */
static void put_column(struct parameters *q, struct bytes changes, int column)
{
    static const Oid type[] = {INT4, BYTEA, BOOL, BYTEA, INT8, INT8};
    struct bytes all = changes;
    struct store_change c;
    uint64_t count = 0;

    while (changes_next(&all, &c)) {
        count++;
    }
    begin_parameter(q);
    put_big_endian(q->to, count > 0 ? 1 : 0, 4); // dimensions
    put_big_endian(q->to, 0, 4);                 // no NULL
    put_big_endian(q->to, type[column], 4);
    if (count > 0) {
        put_big_endian(q->to, count, 4);
        put_big_endian(q->to, 1, 4); // the first index
    }
    while (changes_next(&changes, &c)) {
        put_element(q->to, &c, column);
    }
    end_parameter(q);
}

/* False: libpq has no memory, or the line is broken. */
static bool send_prepared(struct postgres *p, const char *name, const struct parameters *q)
{
    static const int binary[PARAMETERS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const char *value[PARAMETERS_MAX];

    for (int i = 0; i < q->count; i++) {
        value[i] = (const char *)q->to->data + q->at[i];
    }
    return pq.PQsendQueryPrepared(p->db, name, q->count, value, q->size, binary, 1);
}

static bool send_plain(struct postgres *p, const char *sql)
{
    return pq.PQsendQueryParams(p->db, sql, 0, NULL, NULL, NULL, NULL, 1);
}

static bool send_claim(struct postgres *p, const struct store_task *t)
{
    struct parameters q = parameters_of(p, t->kind);

    put_blob(&q, bytes_of(t->id, t->id_size));
    const struct parameters name = q;
    put_number(&q, t->fence);
    return send_prepared(p, "claim", &q) && send_prepared(p, "load", &name);
}

static bool send_commit(struct postgres *p, const struct store_task *t)
{
    struct parameters q = parameters_of(p, t->kind);

    put_blob(&q, bytes_of(t->id, t->id_size));
    put_number(&q, t->fence);
    put_number(&q, t->number);
    for (int column = 0; column < COLUMNS; column++) {
        put_column(&q, buffer_bytes(&t->bytes), column);
    }
    return send_prepared(p, "commit", &q);
}

static bool send_due(struct postgres *p, const struct store_task *t)
{
    struct parameters q = parameters_of(p, t->kind);
    struct bytes given = buffer_bytes(&t->bytes);
    struct due_alarm after = {0};

    (void)due_next(&given, &after);
    put_number(&q, t->number);
    put_number(&q, after.due_ms);
    put_blob(&q, after.id);
    put_blob(&q, after.name);
    put_number(&q, STORE_DUE_MAX);
    return send_prepared(p, "due", &q);
}

static bool send_task(struct postgres *p, const struct store_task *t)
{
    switch ((enum store_verb)t->verb) {
    case STORE_CLAIM:
        return send_claim(p, t);
    case STORE_COMMIT:
        return send_commit(p, t);
    case STORE_DUE:
        break;
    }
    return send_due(p, t);
}

static bool send_doubt(struct postgres *p, const struct doubt *d)
{
    struct parameters q = parameters_of(p, d->kind);

    put_blob(&q, bytes_of(d->id, d->id_size));
    const struct parameters name = q;
    put_number(&q, d->commit.fence);
    put_number(&q, d->commit.number);
    put_number(&q, d->raised);
    return send_prepared(p, "found", &name) && send_prepared(p, "raise", &q);
}

/* ---- what comes back ---- */

uint64_t postgres_number(struct bytes column)
{
    uint64_t value = 0;

    for (size_t i = 0; i < column.size; i++) {
        value = value << 8 | column.data[i];
    }
    return value;
}

static struct bytes bytes_at(const PGresult *result, int row, int column)
{
    return bytes_of(pq.PQgetvalue(result, row, column),
                    (size_t)pq.PQgetlength(result, row, column));
}

static uint64_t number_at(const PGresult *result, int row, int column)
{
    return postgres_number(bytes_at(result, row, column));
}

static struct store_row row_at(const PGresult *result, int column)
{
    if (pq.PQntuples(result) == 0) {
        return (struct store_row){0};
    }
    return (struct store_row){
        .fence = number_at(result, 0, column),
        .number = number_at(result, 0, column + 1),
    };
}

static void read_claim(const PGresult *result, const struct store_task *t, struct line_answer *a)
{
    a->row = row_at(result, 0);
    a->said = a->row.fence == t->fence ? LINE_DONE : LINE_ROW;
}

static void read_load(const PGresult *result, struct store_task *t, struct line_answer *a)
{
    buffer_clear(&t->bytes);
    for (int i = 0; i < pq.PQntuples(result) && a->said == LINE_DONE; i++) {
        const struct store_change c = {
            .of = (enum change_of)number_at(result, i, 0),
            .key = bytes_at(result, i, 1),
            .bytes = bytes_at(result, i, 2),
            .due_ms = number_at(result, i, 3),
            .every_ms = number_at(result, i, 4),
        };

        if (change_is_good(&c)) {
            changes_put(&t->bytes, &c);
        } else {
            line_complain_of(t);
            a->said = LINE_REFUSED;
        }
    }
}

static void read_commit(const PGresult *result, const struct store_task *t, struct line_answer *a)
{
    const bool done = number_at(result, 0, 0) != 0;

    a->said = done ? LINE_DONE : LINE_ROW;
    a->row = done ? verdict_row_of(t) : row_at(result, 1);
}

/* The results of a pipeline. */
struct results {
    bool failed;
    char state[6]; /* SQLSTATE of what failed first; the line's `why` is about it */
};

static void read_failure(struct postgres *p, const PGresult *result, struct results *r)
{
    const char *state = pq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (!r->failed) {
        r->failed = true;
        (void)snprintf(r->state, sizeof r->state, "%s", state == NULL ? "" : state);
        // The whole message may have values of the actor in it.
        line_explain(&p->line, text == NULL ? pq.PQresultErrorMessage(result) : text);
    }
}

/* Free a result. Returns NULL. */
static PGresult *forget(PGresult *result)
{
    pq.PQclear(result);
    return NULL;
}

/* The last result of the next statement, which is the caller's. NULL: it failed, or one before it
 * did; or the line broke, and false is returned. */
static bool take(struct postgres *p, struct results *r, PGresult **out)
{
    PGresult *result = NULL;

    *out = NULL;
    for (;;) {
        if (!next(p, &result)) {
            *out = forget(*out);
            return false;
        }
        if (result == NULL) {
            return pq.PQstatus(p->db) == CONNECTION_OK || broke(p);
        }
        const ExecStatusType status = pq.PQresultStatus(result);
        *out = forget(*out);
        if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
            *out = result;
            continue;
        }
        if (status == PGRES_FATAL_ERROR) {
            read_failure(p, result, r);
        }
        pq.PQclear(result);
    }
}

/* One of which only matters whether it was done. */
static bool pass(struct postgres *p, struct results *r)
{
    PGresult *result;
    const bool good = take(p, r, &result);

    pq.PQclear(result);
    return good;
}

/* The end of a pipeline. */
static bool take_end(struct postgres *p)
{
    PGresult *result = NULL;
    bool end = false;

    while (!end) {
        if (!next(p, &result)) {
            return false;
        }
        if (result == NULL && pq.PQstatus(p->db) != CONNECTION_OK) {
            return broke(p);
        }
        end = result != NULL && pq.PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        pq.PQclear(result);
    }
    return true;
}

/* A transaction that failed is nothing but its end. */
static bool roll_back(struct postgres *p)
{
    struct results r = {0};

    if (!send_plain(p, "ROLLBACK") || pq.PQpipelineSync(p->db) != 1) {
        return broke(p);
    }
    return pass(p, &r) && take_end(p);
}

/* ---- tasks ---- */

static bool begin(struct postgres *p)
{
    return send_plain(p, "BEGIN ISOLATION LEVEL READ COMMITTED");
}

static bool end(struct postgres *p)
{
    return send_plain(p, "COMMIT") && pq.PQpipelineSync(p->db) == 1;
}

static bool send_tasks(struct postgres *p, struct store_task *const *task, size_t count)
{
    bool good = begin(p);

    for (size_t i = 0; i < count && good; i++) {
        good = send_task(p, task[i]);
    }
    return (good && end(p)) || broke(p);
}

static void read_due(const PGresult *result, struct store_task *t, struct line_answer *a)
{
    buffer_clear(&t->bytes);
    for (int i = 0; i < pq.PQntuples(result); i++) {
        const struct due_alarm found = {
            .due_ms = number_at(result, i, 0),
            .id = bytes_at(result, i, 1),
            .name = bytes_at(result, i, 2),
        };

        due_put(&t->bytes, &found);
    }
    a->said = LINE_DONE;
}

static void read_task(const PGresult *result, struct store_task *t, struct line_answer *a)
{
    switch ((enum store_verb)t->verb) {
    case STORE_CLAIM:
        read_claim(result, t, a);
        return;
    case STORE_COMMIT:
        read_commit(result, t, a);
        return;
    case STORE_DUE:
        read_due(result, t, a);
        return;
    }
}

static bool take_task(struct postgres *p, struct results *r, struct store_task *t,
                      struct line_answer *a)
{
    PGresult *result;

    if (!take(p, r, &result)) {
        return false;
    }
    if (result != NULL) {
        read_task(result, t, a);
        pq.PQclear(result);
    }
    if (t->verb != STORE_CLAIM) {
        return true;
    }
    if (!take(p, r, &result)) {
        return false;
    }
    if (result != NULL) {
        read_load(result, t, a);
        pq.PQclear(result);
    }
    return true;
}

static bool take_tasks(struct postgres *p, struct results *r, struct store_task *const *task,
                       size_t count, struct line_answer *answer)
{
    bool good = pass(p, r);

    for (size_t i = 0; i < count && good; i++) {
        good = take_task(p, r, task[i], &answer[i]);
    }
    return good && pass(p, r) && take_end(p);
}

/* True if the error is that of one task: its rows are locked or spoilt, or its size is too much. */
static bool is_of_one(const char *state)
{
    static const char classes[][3] = {"22", "23", "40", "54", "55", "P0"};

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (strncmp(state, classes[i], 2) == 0) {
            return true;
        }
    }
    return false;
}

static void answer_all(struct line_answer *answer, size_t count, enum line_said said)
{
    for (size_t i = 0; i < count; i++) {
        answer[i] = (struct line_answer){.said = (uint8_t)said};
    }
}

/* The server said that it was not done. */
static bool fail(struct postgres *p, const struct results *r, struct store_task *const *task,
                 size_t count, struct line_answer *answer)
{
    const bool of_one = is_of_one(r->state);

    answer_all(answer, count, LINE_REFUSED);
    for (size_t i = 0; i < count && of_one && count > 1; i++) {
        if (task[i]->verb != STORE_DUE) { // a page may have taken the place of its question
            answer[i].said = LINE_CROWDED;
        }
    }
    if (!of_one) { // another server may be fit for it, and if not, the next attempt says why
        pq.PQfinish(p->db);
        p->db = NULL;
        return false;
    }
    log_warn("store", "not_written", "code=%s reason=\"%s\"", r->state, p->line.why);
    return roll_back(p);
}

static bool send(struct store_line *l, struct store_task *const *task, size_t count,
                 struct line_answer *answer)
{
    struct postgres *p = (struct postgres *)l;
    struct results r = {0};

    if (!send_tasks(p, task, count) || !take_tasks(p, &r, task, count, answer)) {
        answer_all(answer, count, LINE_NOTHING);
        return false;
    }
    return !r.failed || fail(p, &r, task, count, answer);
}

static bool send_doubts(struct postgres *p, const struct doubt *doubt, size_t count)
{
    bool good = begin(p);

    for (size_t i = 0; i < count && good; i++) {
        good = send_doubt(p, &doubt[i]);
    }
    return (good && send_plain(p, "UPDATE store SET read_back = read_back + 1") && end(p)) ||
           broke(p);
}

static bool take_doubts(struct postgres *p, struct results *r, size_t count,
                        struct line_answer *answer)
{
    PGresult *result = NULL;
    bool good = pass(p, r);

    for (size_t i = 0; i < count && good; i++) {
        good = take(p, r, &result) && pass(p, r);
        if (result != NULL) {
            answer[i] = (struct line_answer){.said = LINE_ROW, .row = row_at(result, 0)};
            result = forget(result);
        }
    }
    return good && pass(p, r) && pass(p, r) && take_end(p);
}

static bool settle(struct store_line *l, const struct doubt *doubt, size_t count,
                   struct line_answer *answer)
{
    struct postgres *p = (struct postgres *)l;
    struct results r = {0};
    const bool good = send_doubts(p, doubt, count) && take_doubts(p, &r, count, answer);

    if (!good || r.failed) {
        answer_all(answer, count, LINE_NOTHING);
        pq.PQfinish(p->db);
        p->db = NULL;
    }
    return p->db != NULL;
}

/* ---- opening ---- */

static void on_notice(void *context, const char *text)
{
    (void)context;
    (void)text;
}

/* In the order of who has the last word: `where` may say how long to wait, but not that a server
 * that can't be written is fit. */
static bool connect_to(struct postgres *p)
{
    static const char *const keyword[] = {
        "connect_timeout", "fallback_application_name", "dbname", "target_session_attrs", NULL};
    char seconds[8];
    const char *value[] = {seconds, "ringhold", p->where, "read-write", NULL};

    (void)snprintf(seconds, sizeof seconds, "%d", LINE_CONNECT_MS / 1000);
    pq.PQfinish(p->db);
    p->db = pq.PQconnectdbParams(keyword, value, 1);
    if (pq.PQstatus(p->db) != CONNECTION_OK) {
        return broke(p);
    }
    (void)pq.PQsetNoticeProcessor(p->db, on_notice, NULL);
    return pq.PQsetnonblocking(p->db, 1) == 0 || broke(p);
}

static bool refuse(struct postgres *p, PGresult *result, const char *why)
{
    pq.PQclear(result);
    return give_up(p, why);
}

/* Do a statement that has one result; `out` is the caller's. False: it failed, and the line is
 * closed. `state`: its SQLSTATE then, or nothing. */
static bool does(struct postgres *p, const char *sql, PGresult **out, char state[6])
{
    struct results r = {0};
    char why[LINE_WHY_SIZE];

    state[0] = '\0';
    if (!pq.PQsendQuery(p->db, sql)) {
        return broke(p);
    }
    if (!take(p, &r, out)) {
        return false;
    }
    if (r.failed) {
        (void)snprintf(state, sizeof r.state, "%s", r.state);
        (void)snprintf(why, sizeof why, "%s", p->line.why);
        *out = forget(*out);
        return give_up(p, why);
    }
    return true;
}

/* Nodes share a lock of the session as long as they are connected; an operator has it alone. */
static bool lock(struct postgres *p)
{
    const bool alone = p->line.use != LINE_NODE;
    PGresult *result = NULL;
    char state[6];
    const bool done = does(p, alone ? postgres_lock_alone : postgres_lock_shared, &result, state);

    pq.PQclear(result);
    if (strcmp(state, "55P03") == 0) { // it was waited for, for lock_timeout
        line_explain(&p->line, alone ? LINE_IN_USE : LINE_OCCUPIED);
    }
    return done;
}

/* Behind the lock, for its version is another one while a copy is written into it. */
static bool has_version(struct postgres *p)
{
    static const char none[] = "it is no store of durable actors";
    PGresult *result = NULL;
    char state[6];

    if (!does(p, "SELECT version, current_setting('fsync') FROM store", &result, state)) {
        if (strcmp(state, "42P01") == 0) { // there is no such table
            line_explain(&p->line, none);
        }
        return false;
    }
    if (result == NULL || pq.PQntuples(result) != 1) {
        return refuse(p, result, none);
    }
    const char *why = line_take_version(&p->line, strtoul(pq.PQgetvalue(result, 0, 0), NULL, 10));
    if (why != NULL) {
        return refuse(p, result, why);
    }
    if (strcmp(pq.PQgetvalue(result, 0, 1), "on") != 0 && !p->warned) {
        p->warned = true;
        log_warn("store",
                 "store_is_not_flushed",
                 "reason=\"PostgreSQL has fsync=off: a machine that dies takes answers with it\"");
    }
    pq.PQclear(result);
    return true;
}

/* The session is as a store needs it. */
static bool found(struct postgres *p, const char *sql)
{
    PGresult *result = NULL;
    char state[6];
    const bool done = does(p, sql, &result, state);

    pq.PQclear(result);
    return done;
}

static bool prepare(struct postgres *p)
{
    enum { COUNT = sizeof statements / sizeof statements[0] };
    struct results r = {0};
    bool good = pq.PQenterPipelineMode(p->db) == 1;

    for (size_t i = 0; i < COUNT && good; i++) {
        const struct statement *s = &statements[i];

        good = pq.PQsendPrepare(p->db, s->name, s->sql, s->count, s->type) == 1;
    }
    if (!good || pq.PQpipelineSync(p->db) != 1) {
        return broke(p);
    }
    for (size_t i = 0; i < COUNT && good; i++) {
        good = pass(p, &r);
    }
    return good && take_end(p) && (!r.failed || give_up(p, "its statements can't be prepared"));
}

static bool open_line(struct store_line *l)
{
    struct postgres *p = (struct postgres *)l;

    switch (p->line.use) {
    case LINE_BESIDE:
        return connect_to(p) && has_version(p);
    case LINE_ALONE:
        return connect_to(p) && has_version(p) && found(p, postgres_session) && lock(p) &&
               has_version(p) && found(p, postgres_function) && prepare(p);
    case LINE_NODE:
    case LINE_TARGET:
        break;
    }
    return connect_to(p) && found(p, postgres_session) && found(p, postgres_tables) && lock(p) &&
           has_version(p) && found(p, postgres_function) && prepare(p);
}

static void free_line(struct store_line *l)
{
    struct postgres *p = (struct postgres *)l;

    pq.PQfinish(p->db);
    buffer_fini(&p->parameters);
    mem_free(p->where);
    mem_free(p);
}

/* ---- for operators ---- */

static void tell_rows(const PGresult *result, postgres_on_row *on_row, void *context)
{
    struct bytes column[POSTGRES_COLUMNS_MAX] = {{0}};
    const int columns = pq.PQnfields(result);

    for (int i = 0; i < pq.PQntuples(result); i++) {
        for (int c = 0; c < columns && c < POSTGRES_COLUMNS_MAX; c++) {
            column[c] = bytes_of(NULL, 0);
            if (!pq.PQgetisnull(result, i, c)) {
                column[c] = bytes_at(result, i, c);
            }
        }
        on_row(context, column);
    }
}

bool postgres_ask(struct store_line *l, const char *sql, postgres_on_row *on_row, void *context)
{
    struct postgres *p = (struct postgres *)l;
    struct results r = {0};
    PGresult *result;

    if (p->db == NULL) {
        return false;
    }
    const bool piped = pq.PQpipelineStatus(p->db) != PQ_PIPELINE_OFF;
    if (!send_plain(p, sql) || (piped && pq.PQpipelineSync(p->db) != 1)) {
        return broke(p);
    }
    if (!take(p, &r, &result) || (piped && !take_end(p))) {
        return false;
    }
    if (result != NULL && on_row != NULL) {
        tell_rows(result, on_row, context);
    }
    pq.PQclear(result);
    return !r.failed;
}

struct store_line *postgres_line(const char *where, char why[LINE_WHY_SIZE])
{
    const char *fault =
        library_load("libpq.so.5", functions, sizeof functions / sizeof functions[0], &pq);

    if (fault != NULL) {
        (void)snprintf(
            why, LINE_WHY_SIZE, "it needs libpq (apt-get install libpq5): %.200s", fault);
        return NULL;
    }
    struct postgres *p = mem_new(1, sizeof *p);
    p->line =
        (struct store_line){.open = open_line, .send = send, .settle = settle, .free = free_line};
    p->where = mem_string(where);
    return &p->line;
}
