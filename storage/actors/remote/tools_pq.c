/* SPDX-License-Identifier: Apache-2.0
 *
 * The tools of a store in PostgreSQL: each a few statements.
 */
#include "storage/actors/remote/tools_pq.h"

#include "base/clock.h"
#include "base/mem.h"
#include "storage/actors/remote/postgres_pq.h"
#include "storage/actors/remote/store_remote_uv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct whole_postgres {
    struct whole_store whole;
    struct store_line *line; /* BESIDE: owned; else the store's */
    struct buffer sql;
    uint16_t kind;   /* of the actor that was listed last, … */
    uint8_t id_size; /* … 0 = none was */
    uint8_t id[STORE_ID_MAX];
};

static struct whole_postgres *postgres_of(struct whole_store *w)
{
    return (struct whole_postgres *)w;
}

static bool ask(struct whole_store *w, const char *sql, postgres_on_row *on_row, void *context)
{
    struct store_line *line = postgres_of(w)->line;
    const bool done = postgres_ask(line, sql, on_row, context);

    (void)snprintf(w->why, sizeof w->why, "%s", done ? "" : line->why);
    return done;
}

/* A statement that is put together. */
static void put_text(struct buffer *sql, const char *text)
{
    buffer_put(sql, text, strlen(text));
}

static void put_number(struct buffer *sql, uint64_t number)
{
    char text[24];

    buffer_put(sql, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, number));
}

static void put_bytes(struct buffer *sql, struct bytes bytes)
{
    char hex[3];

    put_text(sql, "'\\x");
    for (size_t i = 0; i < bytes.size; i++) {
        (void)snprintf(hex, sizeof hex, "%02x", bytes.data[i]);
        put_text(sql, hex);
    }
    put_text(sql, "'::bytea");
}

static const char *text_of(struct buffer *sql)
{
    buffer_put(sql, "", 1);
    return (const char *)sql->data;
}

/* ---- check ---- */

struct postgres_rule {
    const char *what; /* is wrong with each row that is found … */
    const char *sql;  /* … kind, id, key or NULL, a number or NULL */
};

#define RULES_OF(table, key, bytes)                                                     \
    {"a row of " table " has no actor",                                                 \
     "SELECT kind::bigint, id, " key ", NULL::bigint FROM " table " t WHERE NOT EXISTS" \
     " (SELECT 1 FROM actor a WHERE a.kind = t.kind AND a.id = t.id)"},                 \
        {"the key of a row of " table " is not 1 to 255 bytes",                         \
         "SELECT kind::bigint, id, " key ", length(" key ")::bigint FROM " table        \
         " WHERE length(" key ") NOT BETWEEN 1 AND 255"},                               \
    {                                                                                   \
        "a row of " table " is not at most 1048576 bytes",                              \
            "SELECT kind::bigint, id, " key ", length(" bytes ")::bigint FROM " table   \
            " WHERE length(" bytes ") > 1048576"                                        \
    }

static const struct postgres_rule rules[] = {
    {"its kind is not 0 to 65535, or its id not 1 to 255 bytes",
     "SELECT kind::bigint, id, NULL::bytea, NULL::bigint FROM actor"
     " WHERE kind NOT BETWEEN 0 AND 65535 OR length(id) NOT BETWEEN 1 AND 255"},
    {"its fence or the number of its commits is no number",
     "SELECT kind::bigint, id, NULL::bytea, NULL::bigint FROM actor WHERE fence < 0 OR number < 0"},
    {"it has more than 65536 values",
     "SELECT kind::bigint, id, NULL::bytea, count(*) FROM value GROUP BY kind, id"
     " HAVING count(*) > 65536"},
    {"its values are more than 67108864 bytes",
     "SELECT kind::bigint, id, NULL::bytea, sum(length(key) + length(value))::bigint FROM value"
     " GROUP BY kind, id HAVING sum(length(key) + length(value)) > 67108864"},
    RULES_OF("value", "key", "value"),
    RULES_OF("answer", "name", "answer"),
    RULES_OF("alarm", "name", "payload"),
    RULES_OF("send", "number", "message"),
    RULES_OF("taken", "sender", "last"),
    {"its alarm has no time",
     "SELECT kind::bigint, id, name, NULL::bigint FROM alarm WHERE due < 0 OR every < 0"},
    // Its number is that of the commit and its place in there (node/durable/outbox.c).
    {"its send is newer than its last commit",
     "SELECT kind::bigint, id, s.number, NULL::bigint FROM send s JOIN actor a USING (kind, id)"
     " WHERE substr(s.number, 1, 6) > decode(lpad(to_hex(a.number), 12, '0'), 'hex')"},
};

struct telling {
    const struct postgres_rule *rule;
    store_on_finding *on_finding;
    void *context;
};

static void on_finding_row(void *context, const struct bytes *column)
{
    const struct telling *t = context;
    const struct store_finding f = {
        .kind = (int64_t)postgres_number(column[0]),
        .id = column[1],
        .has_key = column[2].data != NULL,
        .key = column[2],
        .what = t->rule->what,
        .has_number = column[3].data != NULL,
        .number = (int64_t)postgres_number(column[3]),
    };

    store_tools_tell(&f, t->on_finding, t->context);
}

/* All that is read from here on is of one moment. */
static bool begin_reading(struct whole_store *w)
{
    return ask(w, "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, NULL);
}

static bool end_reading(struct whole_store *w)
{
    return ask(w, "COMMIT", NULL, NULL);
}

static bool check(struct whole_store *w, store_on_finding *on_finding, void *context)
{
    bool good = begin_reading(w);

    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && good; i++) {
        struct telling t = {.rule = &rules[i], .on_finding = on_finding, .context = context};

        good = ask(w, rules[i].sql, on_finding_row, &t);
    }
    return good && end_reading(w);
}

/* ---- figures ---- */

#define SUM_OF(table, bytes) \
    "(SELECT count(*) FROM " table "), (SELECT coalesce(sum(" bytes "), 0)::bigint FROM " table ")"

/* What the server keeps count of itself: of each table its size, and how much of it is dead rows.
 */
#define SIZES                                                                         \
    "(SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint FROM s), "       \
    "(SELECT coalesce(sum(pg_table_size(relid) * n_dead_tup / greatest(n_live_tup + " \
    "n_dead_tup, 1)), 0)::bigint FROM s)"

static void on_figures(void *context, const struct bytes *column)
{
    struct store_figures *f = context;
    uint64_t *const to[] = {
        &f->actors,
        &f->values,
        &f->value_bytes,
        &f->answers,
        &f->answer_bytes,
        &f->alarms,
        &f->alarm_bytes,
        &f->next_due_ms,
        &f->alarms_due,
        &f->sends,
        &f->send_bytes,
        &f->taken,
        &f->read_back,
        &f->file_bytes,
        &f->free_bytes,
    };

    _Static_assert(sizeof to / sizeof to[0] <= POSTGRES_COLUMNS_MAX, "they are all told");
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        *to[i] = postgres_number(column[i]);
    }
}

static bool figures(struct whole_store *w, struct store_figures *out)
{
    struct buffer sql = {0};

    put_text(&sql,
             "WITH s AS (SELECT * FROM pg_stat_user_tables WHERE relid IN ('actor'::regclass,"
             " 'value'::regclass, 'answer'::regclass, 'alarm'::regclass, 'send'::regclass,"
             " 'taken'::regclass))"
             " SELECT (SELECT count(*) FROM actor), " SUM_OF("value", "length(key) + length(value)") ", " SUM_OF(
                 "answer", "length(name) + length(answer)") ", " SUM_OF("alarm",
                                                                        "length(name) + "
                                                                        "length(payload)") ", "
                                                                                           "(SELECT"
                                                                                           " coales"
                                                                                           "ce(min("
                                                                                           "due), "
                                                                                           "0) "
                                                                                           "FROM "
                                                                                           "alarm),"
                                                                                           " ("
                                                                                           "SELECT "
                                                                                           "count(*"
                                                                                           ") FROM "
                                                                                           "alarm "
                                                                                           "WHERE "
                                                                                           "due "
                                                                                           "<= ");
    put_number(&sql, clock_wall_us() / 1000);
    put_text(
        &sql,
        "), " SUM_OF("send",
                     "length(number) + length(message)") ", (SELECT count(*) FROM taken), (SELECT "
                                                         "read_back FROM store), " SIZES);
    const bool done = ask(w, text_of(&sql), on_figures, out);
    buffer_fini(&sql);
    return done;
}

static void on_count(void *context, const struct bytes *column)
{
    uint64_t *count = context;

    *count = postgres_number(column[0]);
}

/* PostgreSQL only warns of tables that somebody else owns, and leaves them out. */
static bool vacuum(struct whole_store *w)
{
    uint64_t foreign = 0;

    if (!ask(w,
             "SELECT count(*) FROM pg_class WHERE oid IN ('actor'::regclass, 'value'::regclass,"
             " 'answer'::regclass, 'alarm'::regclass, 'send'::regclass, 'taken'::regclass,"
             " 'store'::regclass) AND NOT pg_has_role(relowner, 'USAGE')",
             on_count,
             &foreign)) {
        return false;
    }
    if (foreign > 0) {
        (void)snprintf(
            w->why, sizeof w->why, "its tables belong to another role: connect as that one");
        return false;
    }
    return ask(w, "VACUUM (ANALYZE) actor, value, answer, alarm, send, taken, store", NULL, NULL);
}

/* ---- alone ---- */

static void on_fence(void *context, const struct bytes *column)
{
    struct store_task *t = context;

    t->fence = postgres_number(column[0]);
    t->number = 1; // it is there
}

static bool fence(struct whole_store *w, struct store_task *t)
{
    struct buffer *sql = &postgres_of(w)->sql;

    buffer_clear(sql);
    put_text(sql, "SELECT fence FROM actor WHERE kind = ");
    put_number(sql, t->kind);
    put_text(sql, " AND id = ");
    put_bytes(sql, bytes_of(t->id, t->id_size));
    t->number = 0;
    const bool there = ask(w, text_of(sql), on_fence, t) && t->number == 1;
    t->number = 0;
    return there;
}

struct listed_page {
    struct whole_postgres *p;
    struct store_task **task;
    size_t count;
    bool bad;
};

static void on_listed(void *context, const struct bytes *column)
{
    struct listed_page *l = context;
    struct store_task *t = l->bad ? NULL
                                  : whole_claim(postgres_number(column[0]),
                                                column[1],
                                                postgres_number(column[2]),
                                                l->p->whole.why);

    l->bad = t == NULL;
    if (t != NULL) {
        l->task[l->count++] = t;
        l->p->kind = t->kind;
        l->p->id_size = t->id_size;
        memcpy(l->p->id, t->id, sizeof t->id);
    }
}

static bool list(struct whole_store *w, size_t max, struct store_task **task, size_t *count)
{
    struct whole_postgres *p = postgres_of(w);
    struct listed_page l = {.p = p, .task = task};

    buffer_clear(&p->sql);
    put_text(&p->sql, "SELECT kind::bigint, id, fence FROM actor WHERE (kind, id) > (");
    put_number(&p->sql, p->kind);
    put_text(&p->sql, ", ");
    put_bytes(&p->sql, bytes_of(p->id, p->id_size));
    put_text(&p->sql, ") ORDER BY kind, id LIMIT ");
    put_number(&p->sql, max < WHOLE_PAGE_MAX ? max : WHOLE_PAGE_MAX);
    const bool asked = ask(w, text_of(&p->sql), on_listed, &l);
    *count = l.count;
    return asked && !l.bad;
}

static bool adopt(struct whole_store *w, struct store_task *const *commit, size_t count)
{
    struct buffer *sql = &postgres_of(w)->sql;

    buffer_clear(sql);
    put_text(sql, "INSERT INTO actor VALUES ");
    for (size_t i = 0; i < count; i++) {
        put_text(sql, i == 0 ? "(" : ", (");
        put_number(sql, commit[i]->kind);
        put_text(sql, ", ");
        put_bytes(sql, bytes_of(commit[i]->id, commit[i]->id_size));
        put_text(sql, ", ");
        put_number(sql, commit[i]->fence);
        put_text(sql, ", ");
        put_number(sql, commit[i]->number - 1);
        put_text(sql, ")");
    }
    return ask(w, text_of(sql), NULL, NULL);
}

static bool set_version(struct whole_store *w, uint64_t version)
{
    struct buffer *sql = &postgres_of(w)->sql;

    buffer_clear(sql);
    put_text(sql, "UPDATE store SET version = ");
    put_number(sql, version);
    return ask(w, text_of(sql), NULL, NULL);
}

static bool clear(struct whole_store *w)
{
    static const char *const all[] = {"DELETE FROM value",
                                      "DELETE FROM answer",
                                      "DELETE FROM alarm",
                                      "DELETE FROM send",
                                      "DELETE FROM taken",
                                      "DELETE FROM actor"};
    bool good = true;

    for (size_t i = 0; i < sizeof all / sizeof all[0] && good; i++) {
        good = ask(w, all[i], NULL, NULL);
    }
    return good;
}

/* ---- opening ---- */

static void close_whole(struct whole_store *w)
{
    struct whole_postgres *p = postgres_of(w);

    if (w->store != NULL) {
        w->store->close(w->store);
    } else {
        p->line->free(p->line);
    }
    buffer_fini(&p->sql);
    mem_free(p);
}

static const struct whole_store tools = {
    .check = check,
    .figures = figures,
    .vacuum = vacuum,
    .fence = fence,
    .list = list,
    .adopt = adopt,
    .set_version = set_version,
    .clear = clear,
    .close = close_whole,
};

enum err tools_postgres_open(const char *where, enum whole_use use, struct whole_store **out,
                             char why[STORE_TOOLS_WHY_SIZE])
{
    char fault[LINE_WHY_SIZE] = "";
    struct store_line *line = postgres_line(where, fault);
    struct actor_store *store = NULL;

    if (!line_open_whole(line, use, &store, fault)) {
        (void)snprintf(why, STORE_TOOLS_WHY_SIZE, "%s", fault);
        return ERR_LOCKED;
    }
    struct whole_postgres *p = mem_new(1, sizeof *p);
    p->whole = tools;
    p->whole.store = store;
    p->whole.version = line->version;
    p->line = line;
    *out = &p->whole;
    return ERR_OK;
}
