/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims and commits of durable actors as scripts of Redis.
 */
#include "storage/actors/remote/redis_hiredis.h"

#include "base/library.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "storage/actors/changes.h"
#include "storage/actors/due.h"
#include "storage/actors/remote/due_member.h"
#include "storage/actors/remote/redis_lua.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is used of hiredis. */
#define HIREDIS_LIST(X)            \
    X(freeReplyObject)             \
    X(redisAppendFormattedCommand) \
    X(redisCommand)                \
    X(redisConnectUnixWithTimeout) \
    X(redisConnectWithTimeout)     \
    X(redisFree)                   \
    X(redisGetReply)               \
    X(redisSetTimeout)

static struct hiredis {
#define X(name) __typeof__(name) *(name);
    HIREDIS_LIST(X)
#undef X
} hiredis;

static const struct library_function functions[] = {
#define X(name) {#name, offsetof(struct hiredis, name)},
    HIREDIS_LIST(X)
#undef X
};

/* Its structs are those of the header: other versions have others, and another name. */
#define TEXT_OF(x)  #x
#define SO_OF(name) "libhiredis.so." TEXT_OF(name)

enum {
    WHERE_SIZE = 256,
    NUMBER_SIZE = 24,
    SHA_SIZE = 41,
    KEY_SIZE = STORE_ID_MAX + 32,
    ACTOR_KEYS = 1 + CHANGE_COUNT,
    ALONE_SECONDS = 60, /* of an operator's command, since it was heard of last */
    ALONE_TRIES = 31,
    ALONE_PAUSE_NS = 100 * 1000 * 1000,
};

#define ALONE_KEY "ringhold:alone"
#define NODE_NAME "ringhold:node"

enum script { SCRIPT_CLAIM, SCRIPT_COMMIT, SCRIPT_DUE, SCRIPT_SETTLE, SCRIPT_COUNT };

struct redis {
    struct store_line line;
    redisContext *c; /* NULL = closed */
    struct buffer out;
    struct buffer rows;   /* struct store_change, while an actor is loaded */
    struct buffer member; /* of a sorted set */
    char sha[SCRIPT_COUNT][SHA_SIZE];
    char host[WHERE_SIZE]; /* or path */
    int port;              /* 0 = it is a path */
    int database;
    bool alone;              /* ALONE_KEY was set, … */
    char token[NUMBER_SIZE]; /* … to this */
};

/* Let others in again: the key is its own as long as it has not gone. */
static void leave(struct redis *p)
{
    static const char text[] =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end";

    if (p->alone && p->c->err == 0) {
        redisReply *reply =
            hiredis.redisCommand(p->c, "EVAL %s 1 " ALONE_KEY " %s", text, p->token);

        if (reply != NULL) {
            hiredis.freeReplyObject(reply);
        }
        p->alone = false;
    }
}

static bool give_up(struct redis *p, const char *why)
{
    line_explain(&p->line, why);
    if (p->c != NULL) {
        leave(p);
        hiredis.redisFree(p->c);
        p->c = NULL;
    }
    return false;
}

static bool broke(struct redis *p)
{
    return give_up(p, p->c->errstr);
}

/* ---- what goes out ---- */

static void put_word(struct buffer *out, const void *data, size_t size)
{
    char head[NUMBER_SIZE];

    buffer_put(out, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", size));
    buffer_put(out, data, size);
    buffer_put(out, "\r\n", 2);
}

static void put_text(struct buffer *out, const char *text)
{
    put_word(out, text, strlen(text));
}

static void put_number(struct buffer *out, uint64_t value)
{
    char text[NUMBER_SIZE];

    put_word(out, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, value));
}

/* Begin a script that has so many keys and arguments. */
static void put_script(struct redis *p, enum script script, size_t keys, size_t arguments)
{
    char head[NUMBER_SIZE];

    buffer_put(
        &p->out, head, (size_t)snprintf(head, sizeof head, "*%zu\r\n", 3 + keys + arguments));
    put_text(&p->out, "EVALSHA");
    put_text(&p->out, p->sha[script]);
    put_number(&p->out, keys);
}

static void put_key(struct redis *p, const char *of, uint16_t kind, struct bytes id)
{
    char key[KEY_SIZE];
    const size_t size = (size_t)snprintf(key, sizeof key, "ringhold:%s:%u:", of, kind);

    memcpy(key + size, id.data, id.size);
    put_word(&p->out, key, size + id.size);
}

/* The keys of an actor: its row, and a hash for each table. */
static void put_actor_keys(struct redis *p, uint16_t kind, struct bytes id)
{
    static const char *const of[ACTOR_KEYS] = {
        "actor", "value", "answer", "alarm", "send", "taken"};

    for (size_t i = 0; i < ACTOR_KEYS; i++) {
        put_key(p, of[i], kind, id);
    }
}

static void put_due_key(struct redis *p, uint16_t kind)
{
    char key[KEY_SIZE];

    put_word(&p->out, key, (size_t)snprintf(key, sizeof key, "ringhold:due:%u", kind));
}

static void put_change(struct redis *p, const struct store_change *c)
{
    put_number(&p->out, c->of);
    put_text(&p->out, c->gone ? "gone" : "put");
    put_word(&p->out, c->key.data, c->key.size);
    put_word(&p->out, c->bytes.data, c->bytes.size);
    put_number(&p->out, c->due_ms);
    put_number(&p->out, c->every_ms);
}

static void put_claim(struct redis *p, const struct store_task *t)
{
    const struct bytes id = bytes_of(t->id, t->id_size);

    put_script(p, SCRIPT_CLAIM, ACTOR_KEYS, 1);
    put_actor_keys(p, t->kind, id);
    put_number(&p->out, t->fence);
}

static void put_commit(struct redis *p, const struct store_task *t)
{
    const struct bytes id = bytes_of(t->id, t->id_size);
    struct bytes all = buffer_bytes(&t->bytes);
    struct store_change c;
    size_t count = 0;

    while (changes_next(&all, &c)) {
        count++;
    }
    put_script(p, SCRIPT_COMMIT, ACTOR_KEYS + 1, 4 + 6 * count);
    put_actor_keys(p, t->kind, id);
    put_due_key(p, t->kind);
    put_number(&p->out, t->fence);
    put_number(&p->out, t->number - 1);
    put_number(&p->out, t->number);
    buffer_clear(&p->member);
    due_member_put(&p->member, id);
    put_word(&p->out, p->member.data, p->member.size);
    all = buffer_bytes(&t->bytes);
    while (changes_next(&all, &c)) {
        put_change(p, &c);
    }
}

static void put_due(struct redis *p, const struct store_task *t)
{
    struct bytes given = buffer_bytes(&t->bytes);
    struct due_alarm after = {0};

    buffer_clear(&p->member);
    if (due_next(&given, &after)) {
        due_member_put(&p->member, after.id);
        buffer_put(&p->member, after.name.data, after.name.size);
    }
    put_script(p, SCRIPT_DUE, 1, 4);
    put_due_key(p, t->kind);
    put_number(&p->out, t->number);
    put_number(&p->out, after.due_ms);
    put_word(&p->out, p->member.data, p->member.size);
    put_number(&p->out, STORE_DUE_MAX);
}

static void put_task(struct redis *p, const struct store_task *t)
{
    switch ((enum store_verb)t->verb) {
    case STORE_CLAIM:
        put_claim(p, t);
        return;
    case STORE_COMMIT:
        put_commit(p, t);
        return;
    case STORE_DUE:
        put_due(p, t);
        return;
    }
}

static void put_doubt(struct redis *p, const struct doubt *d)
{
    put_script(p, SCRIPT_SETTLE, 2, 3);
    put_key(p, "actor", d->kind, bytes_of(d->id, d->id_size));
    put_text(&p->out, "ringhold:store");
    put_number(&p->out, d->commit.fence);
    put_number(&p->out, d->commit.number - 1);
    put_number(&p->out, d->raised);
}

/* All that was put. It goes out when the first answer is waited for. */
static bool flush(struct redis *p)
{
    const int code =
        hiredis.redisAppendFormattedCommand(p->c, (const char *)p->out.data, p->out.size);

    buffer_clear(&p->out);
    return code == REDIS_OK;
}

/* ---- what comes back ---- */

static uint64_t number_of(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING ? strtoull(reply->str, NULL, 10) : 0;
}

/* "DUE EVERY PAYLOAD": take the first two off. False: it is no alarm. */
static bool split_alarm(struct store_change *c)
{
    const char *from = (const char *)c->bytes.data;
    char *end = NULL;

    c->due_ms = strtoull(from, &end, 10);
    if (end == from || *end != ' ') {
        return false;
    }
    const char *every = end + 1;
    c->every_ms = strtoull(every, &end, 10);
    if (end == every || *end != ' ') {
        return false;
    }
    c->bytes = bytes_of(end + 1, c->bytes.size - (size_t)(end + 1 - from));
    return true;
}

static int by_key(const void *one, const void *other)
{
    const struct bytes a = ((const struct store_change *)one)->key;
    const struct bytes b = ((const struct store_change *)other)->key;
    const int differs = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);

    return differs != 0 ? differs : (a.size > b.size) - (a.size < b.size);
}

/* The rows of one table, in the order of their keys. False: one is over the limits. */
static bool load_rows(struct redis *p, const redisReply *hash, enum change_of of,
                      struct store_task *t)
{
    buffer_clear(&p->rows);
    for (size_t i = 0; i + 1 < hash->elements; i += 2) {
        struct store_change c = {
            .of = of,
            .key = bytes_of(hash->element[i]->str, hash->element[i]->len),
            .bytes = bytes_of(hash->element[i + 1]->str, hash->element[i + 1]->len),
        };

        if ((of == CHANGE_ALARM && !split_alarm(&c)) || !change_is_good(&c)) {
            return false;
        }
        buffer_put(&p->rows, &c, sizeof c);
    }
    const size_t count = p->rows.size / sizeof(struct store_change);
    struct store_change *row = (struct store_change *)(void *)p->rows.data;
    if (count > 0) {
        qsort(row, count, sizeof *row, by_key);
    }
    for (size_t i = 0; i < count; i++) {
        changes_put(&t->bytes, &row[i]);
    }
    return true;
}

static void load(struct redis *p, const redisReply *reply, struct store_task *t,
                 struct line_answer *a)
{
    buffer_clear(&t->bytes);
    for (size_t of = 0; of < CHANGE_COUNT; of++) {
        if (!load_rows(p, reply->element[3 + of], (enum change_of)of, t)) {
            line_complain_of(t);
            a->said = LINE_REFUSED;
            return;
        }
    }
}

/* True if another server, or this one later, may be fit for it. */
static bool is_of_server(const char *error)
{
    static const char *const words[] = {
        "READONLY", "NOSCRIPT", "MISCONF", "MASTERDOWN", "LOADING", "NOAUTH", "NOPERM"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strncmp(error, words[i], strlen(words[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* The script failed: it changed nothing. */
static void read_error(struct redis *p, const redisReply *reply, struct line_answer *a, bool *fit)
{
    a->said = LINE_REFUSED;
    line_explain(&p->line, reply->type == REDIS_REPLY_ERROR ? reply->str : "no array");
    *fit = *fit && !is_of_server(p->line.why);
    log_warn("store", "not_written", "reason=\"%s\"", p->line.why);
}

static void read_row(const redisReply *reply, struct line_answer *a)
{
    a->said = reply->element[0]->integer == 1 ? LINE_DONE : LINE_ROW;
    a->row.fence = number_of(reply->element[1]);
    a->row.number = number_of(reply->element[2]);
}

static void read_due(struct redis *p, const redisReply *reply, struct store_task *t,
                     struct line_answer *a)
{
    struct due_alarm found;

    buffer_clear(&t->bytes);
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const redisReply *member = reply->element[i];

        found.due_ms = number_of(reply->element[i + 1]);
        if (due_member_split(bytes_of(member->str, member->len), &p->member, &found.name)) {
            found.id = buffer_bytes(&p->member);
            due_put(&t->bytes, &found);
        }
    }
    a->said = LINE_DONE;
}

/* `t`: NULL = it is in doubt. */
static void read_reply(struct redis *p, const redisReply *reply, struct store_task *t,
                       struct line_answer *a, bool *fit)
{
    if (reply->type != REDIS_REPLY_ARRAY) {
        read_error(p, reply, a, fit);
    } else if (t != NULL && t->verb == STORE_DUE) {
        read_due(p, reply, t, a);
    } else {
        read_row(reply, a);
        if (t != NULL && t->verb == STORE_CLAIM && a->said == LINE_DONE) {
            load(p, reply, t, a);
        }
    }
}

/* The next answer. NULL: the line broke, and is closed. */
static redisReply *next(struct redis *p)
{
    void *reply = NULL;

    if (hiredis.redisGetReply(p->c, &reply) != REDIS_OK) {
        (void)broke(p);
        return NULL;
    }
    return reply;
}

static bool take(struct redis *p, size_t count, struct store_task *const *task,
                 struct line_answer *answer)
{
    bool fit = true;

    for (size_t i = 0; i < count; i++) {
        redisReply *reply = next(p);

        if (reply == NULL) {
            return false;
        }
        read_reply(p, reply, task == NULL ? NULL : task[i], &answer[i], &fit);
        hiredis.freeReplyObject(reply);
    }
    return fit || give_up(p, p->line.why);
}

static bool send(struct store_line *l, struct store_task *const *task, size_t count,
                 struct line_answer *answer)
{
    struct redis *p = (struct redis *)l;

    for (size_t i = 0; i < count; i++) {
        put_task(p, task[i]);
    }
    return flush(p) ? take(p, count, task, answer) : broke(p);
}

static bool settle(struct store_line *l, const struct doubt *doubt, size_t count,
                   struct line_answer *answer)
{
    struct redis *p = (struct redis *)l;

    for (size_t i = 0; i < count; i++) {
        put_doubt(p, &doubt[i]);
    }
    return flush(p) ? take(p, count, NULL, answer) : broke(p);
}

/* ---- opening ---- */

/* Returns the answer to what was asked at the start, which is the caller's. NULL: it is an error,
 * or there is none; the line is closed. */
static redisReply *good(struct redis *p, redisReply *reply)
{
    if (reply == NULL) {
        (void)broke(p);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        (void)give_up(p, reply->str);
        hiredis.freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

/* As good(), of what only matters whether it was done. */
static bool done(struct redis *p, redisReply *answer)
{
    redisReply *reply = good(p, answer);

    if (reply != NULL) {
        hiredis.freeReplyObject(reply);
    }
    return reply != NULL;
}

static bool connect_to(struct redis *p)
{
    const struct timeval wait = {.tv_sec = LINE_CONNECT_MS / 1000};
    const struct timeval silence = {.tv_sec = LINE_SILENCE_MS / 1000};

    if (p->c != NULL) {
        hiredis.redisFree(p->c);
    }
    p->c = p->port == 0 ? hiredis.redisConnectUnixWithTimeout(p->host, wait)
                        : hiredis.redisConnectWithTimeout(p->host, p->port, wait);
    if (p->c == NULL) {
        return give_up(p, "no memory");
    }
    return (p->c->err == 0 && hiredis.redisSetTimeout(p->c, silence) == REDIS_OK) || broke(p);
}

static bool log_in(struct redis *p)
{
    const char *password = getenv("REDIS_PASSWORD");

    return (password == NULL || done(p, hiredis.redisCommand(p->c, "AUTH %s", password))) &&
           (p->database == 0 || done(p, hiredis.redisCommand(p->c, "SELECT %d", p->database)));
}

static bool is_set(struct redis *p, const char *name, const char *wanted)
{
    char why[LINE_WHY_SIZE] = "";
    redisReply *reply = good(p, hiredis.redisCommand(p->c, "CONFIG GET %s", name));

    if (reply == NULL) {
        return false;
    }
    const bool told = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    const char *is = told ? reply->element[1]->str : "unknown";
    if (strcmp(is, wanted) != 0) {
        (void)snprintf(why,
                       sizeof why,
                       "its %s is %.30s: it must be %s, or what was answered is not safe there",
                       name,
                       is,
                       wanted);
    }
    hiredis.freeReplyObject(reply);
    return why[0] == '\0' || give_up(p, why);
}

/* Its settings say that it forgets nothing. */
static bool is_durable(struct redis *p)
{
    return is_set(p, "appendonly", "yes") && is_set(p, "appendfsync", "always") &&
           is_set(p, "no-appendfsync-on-rewrite", "no") &&
           is_set(p, "maxmemory-policy", "noeviction") && is_set(p, "cluster-enabled", "no");
}

/* ---- who is there ---- */

/* Nodes' connections have a name, and an operator has a key that goes by itself. Each says what it
 * is before it looks for the other, so one of them sees the other at least. */

static bool is_nobody_alone(struct redis *p)
{
    if (!done(p, hiredis.redisCommand(p->c, "CLIENT SETNAME " NODE_NAME))) {
        return false;
    }
    redisReply *reply = good(p, hiredis.redisCommand(p->c, "EXISTS " ALONE_KEY));
    if (reply == NULL) {
        return false;
    }
    const bool occupied = reply->integer != 0;
    hiredis.freeReplyObject(reply);
    return !occupied || give_up(p, LINE_OCCUPIED);
}

/* True if one of the lines of CLIENT LIST is a node's, of this database. */
static bool has_node(const struct redis *p, const char *list)
{
    char database[NUMBER_SIZE];
    const char *line = list;

    (void)snprintf(database, sizeof database, " db=%d ", p->database);
    while (*line != '\0') {
        const size_t size = strcspn(line, "\n");
        const char *name = strstr(line, " name=" NODE_NAME " ");
        const char *of = strstr(line, database);

        if (name != NULL && of != NULL && name < line + size && of < line + size) {
            return true;
        }
        line += size + (line[size] == '\0' ? 0 : 1);
    }
    return false;
}

static bool keep_alone(struct redis *p, const char *how)
{
    redisReply *reply = good(
        p,
        hiredis.redisCommand(p->c, "SET " ALONE_KEY " %s %s EX %d", p->token, how, ALONE_SECONDS));

    if (reply == NULL) {
        return false;
    }
    const bool set = reply->type != REDIS_REPLY_NIL;
    hiredis.freeReplyObject(reply);
    return set || give_up(p, LINE_OCCUPIED);
}

static bool is_alone(struct redis *p)
{
    bool nodes = true;

    if (!keep_alone(p, p->alone ? "XX" : "NX")) {
        return false;
    }
    p->alone = true;
    // One that was killed just now goes with its connection.
    for (int tries = 0; nodes && tries < ALONE_TRIES; tries++) {
        const struct timespec pause = {.tv_nsec = tries == 0 ? 0 : ALONE_PAUSE_NS};

        (void)nanosleep(&pause, NULL);
        redisReply *reply = good(p, hiredis.redisCommand(p->c, "CLIENT LIST"));
        if (reply == NULL) {
            return false;
        }
        nodes = reply->str != NULL && has_node(p, reply->str);
        hiredis.freeReplyObject(reply);
    }
    return !nodes || give_up(p, LINE_IN_USE);
}

static bool makes(const struct redis *p)
{
    return p->line.use == LINE_NODE || p->line.use == LINE_TARGET;
}

static bool has_version(struct redis *p)
{
    if (makes(p) &&
        !done(p,
              hiredis.redisCommand(p->c, "HSETNX ringhold:store version %d", (int)STORE_VERSION))) {
        return false;
    }
    redisReply *reply = good(p, hiredis.redisCommand(p->c, "HGET ringhold:store version"));
    if (reply == NULL) {
        return false;
    }
    const char *why = reply->type == REDIS_REPLY_STRING
                          ? line_take_version(&p->line, strtoull(reply->str, NULL, 10))
                          : "it is no store of durable actors";
    hiredis.freeReplyObject(reply);
    return why == NULL || give_up(p, why);
}

static bool load_scripts(struct redis *p)
{
    static const char *const text[] = {
        [SCRIPT_CLAIM] = redis_claim,
        [SCRIPT_COMMIT] = redis_commit,
        [SCRIPT_DUE] = redis_due,
        [SCRIPT_SETTLE] = redis_settle,
    };

    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        redisReply *reply = good(p, hiredis.redisCommand(p->c, "SCRIPT LOAD %s", text[i]));

        if (reply == NULL) {
            return false;
        }
        (void)snprintf(p->sha[i], sizeof p->sha[i], "%s", reply->str == NULL ? "" : reply->str);
        hiredis.freeReplyObject(reply);
    }
    return true;
}

static bool open_line(struct store_line *l)
{
    struct redis *p = (struct redis *)l;

    if (!connect_to(p) || !log_in(p)) {
        return false;
    }
    if (p->line.use == LINE_BESIDE) {
        return has_version(p);
    }
    return is_durable(p) && (p->line.use == LINE_NODE ? is_nobody_alone(p) : is_alone(p)) &&
           has_version(p) && load_scripts(p);
}

static void free_line(struct store_line *l)
{
    struct redis *p = (struct redis *)l;

    if (p->c != NULL) {
        leave(p);
        hiredis.redisFree(p->c);
    }
    buffer_fini(&p->out);
    buffer_fini(&p->rows);
    buffer_fini(&p->member);
    mem_free(p);
}

/* "HOST:PORT", "HOST:PORT/DB" or "unix:PATH". HOST may stand in brackets. */
static bool parse(struct redis *p, const char *where)
{
    const char *colon = strrchr(where, ':');
    const bool bracket = where[0] == '[' && colon != NULL && colon > where && colon[-1] == ']';
    char *end = NULL;

    if (strncmp(where, "unix:", 5) == 0) {
        (void)snprintf(p->host, sizeof p->host, "%s", where + 5);
        return p->host[0] != '\0';
    }
    if (colon == NULL || colon == where) {
        return false;
    }
    (void)snprintf(p->host,
                   sizeof p->host,
                   "%.*s",
                   (int)(colon - where) - (bracket ? 2 : 0),
                   bracket ? where + 1 : where);
    p->port = (int)strtol(colon + 1, &end, 10);
    if (*end == '/' && end[1] != '\0') {
        p->database = (int)strtol(end + 1, &end, 10);
    }
    return *end == '\0' && p->port > 0 && p->port <= UINT16_MAX && p->database >= 0;
}

/* ---- for operators ---- */

void redis_put(struct store_line *l, const struct bytes *word, size_t count)
{
    struct redis *p = (struct redis *)l;
    char head[NUMBER_SIZE];

    buffer_put(&p->out, head, (size_t)snprintf(head, sizeof head, "*%zu\r\n", count));
    for (size_t i = 0; i < count; i++) {
        put_word(&p->out, word[i].data, word[i].size);
    }
}

struct redisReply *redis_take(struct store_line *l)
{
    struct redis *p = (struct redis *)l;

    if (p->c == NULL) {
        return NULL;
    }
    if (p->out.size > 0 && !flush(p)) {
        (void)broke(p);
        return NULL;
    }
    redisReply *reply = next(p);
    return reply == NULL ? NULL : good(p, reply);
}

void redis_forget(struct redisReply *reply)
{
    if (reply != NULL) {
        hiredis.freeReplyObject(reply);
    }
}

bool redis_stay_alone(struct store_line *l)
{
    struct redis *p = (struct redis *)l;

    return p->c != NULL && keep_alone(p, "XX");
}

struct store_line *redis_line(const char *where, char why[LINE_WHY_SIZE])
{
    const char *file = SO_OF(HIREDIS_SONAME);
    const char *fault =
        library_load(file, functions, sizeof functions / sizeof functions[0], &hiredis);

    if (fault != NULL) {
        (void)snprintf(why, LINE_WHY_SIZE, "it needs hiredis: %.200s", fault);
        return NULL;
    }
    struct redis *p = mem_new(1, sizeof *p);
    p->line =
        (struct store_line){.open = open_line, .send = send, .settle = settle, .free = free_line};
    (void)snprintf(p->token, sizeof p->token, "%" PRIu64, random_u64());
    if (!parse(p, where)) {
        (void)snprintf(
            why, LINE_WHY_SIZE, "'%.100s' is not HOST:PORT, HOST:PORT/DB or unix:PATH", where);
        mem_free(p);
        return NULL;
    }
    return &p->line;
}
