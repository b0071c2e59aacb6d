/* SPDX-License-Identifier: Apache-2.0
 *
 * A counter that survives crashes: its count lies in Redis, and one atomic
 * script for each step keeps a deposed owner out. This is the database's half;
 * the actor's is stores/stored.c, the lock guard's stores/guard.c.
 * docs/stores.md explains all.
 *
 *     cc -shared -fPIC -Iinclude examples/store_redis.c examples/stores/guard.c \
 *         examples/stores/stored.c examples/stores/jobs.c -lhiredis -lpthread -o store_redis.so
 *     ringhold node --actor ./store_redis.so=db1:6379 …
 *     ringhold node --actor ./store_redis.so=db1:6379,guard,prefix=game …
 *
 * A password is read from the environment: REDIS_PASSWORD.
 *
 * Keys, each beginning with the prefix ("ringhold" unless you say otherwise):
 *
 *     prefix:{ID}:row      hash: token, state_ver, count
 *     prefix:{ID}:lock     with the guard: "OWNER GENERATION ACTIVATION", no expiry
 *     prefix:refused       how many writes were refused, of any node
 *     prefix:refusals      the last 1000 of them, a stream: id, token, node
 *     prefix:notice:OWNER  with the guard: the channel of that owner, NODE@HOST:PID
 *
 * Both keys of an id are in one slot of a Redis Cluster.
 */
#include "stores/guard.h"
#include "stores/stored.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = STORED_ID_MAX + 96, PREFIX_SIZE = 64 };

struct store {
    char host[256];
    int port;
    char prefix[PREFIX_SIZE];
    char owner[GUARD_OWNER_SIZE]; /* of locks; empty = no guard */
    struct guard *guard;          /* NULL = off */
};

struct line {
    struct store *store;
    redisContext *redis;
};

struct key {
    char text[KEY_SIZE];
    size_t size;
};

/* The row is raised and read in one step, and so is the lock if the guard is on (ARGV 2 isn't
 * empty). Redis' numbers end at 2^53, tokens do not: they are compared as text. */
static const char claim_lua[] =
    "local function older(a, b) return #a < #b or (#a == #b and a < b) end "
    "local row, lock = KEYS[1], KEYS[2] "
    "local token, owner, activation, channel, id = unpack(ARGV) "
    "local seen = redis.call('HGET', row, 'token') "
    "if seen and older(token, seen) then return {'fenced'} end "
    "if owner ~= '' then "
    "  local mine = owner .. ' ' .. token .. ' ' .. activation "
    "  if not redis.call('SET', lock, mine, 'NX') then "
    "    local held = redis.call('GET', lock) "
    "    local holder, generation = string.match(held, '^(%S+) (%d+) ') "
    "    if not holder then return {'held', held, 0} end "
    "    local stale = older(generation, token) "
    "    if holder ~= owner then "
    "      local word = stale and 'taken' or 'refused' "
    "      local heard = redis.call('PUBLISH', channel .. holder, "
    "        word .. ' ' .. owner .. ' ' .. token .. ' ' .. generation .. ' ' .. id) "
    "      if not stale then return {'held', held, heard} end "
    "    elseif older(token, generation) then return {'fenced'} end "
    "    redis.call('SET', lock, mine) "
    "  end "
    "end "
    "redis.call('HSET', row, 'token', token) "
    "return {'yours', redis.call('HINCRBY', row, 'state_ver', 1), "
    "  redis.call('HGET', row, 'count') or '0'}";

static const char write_lua[] =
    "local function older(a, b) return #a < #b or (#a == #b and a < b) end "
    "local token, version, count = unpack(ARGV) "
    "local seen = redis.call('HMGET', KEYS[1], 'token', 'state_ver') "
    "if seen[1] and older(token, seen[1]) then return {'fenced'} end "
    "if seen[1] ~= token or seen[2] ~= version then return {'changed'} end "
    "redis.call('HSET', KEYS[1], 'count', count) "
    "redis.call('HINCRBY', KEYS[1], 'state_ver', 1) "
    "return {'ok'}";

/* Only my own lock, not that of whoever took it over. */
static const char release_lua[] =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])";

/* ---- the connection */

static void on_close(void *connection)
{
    struct line *l = connection;

    redisFree(l->redis);
    free(l);
}

static bool is_alive(const void *connection)
{
    const struct line *l = connection;

    return l->redis->err == 0;
}

static void complain(const struct store *s, const char *text, char why[JOBS_WHY_SIZE])
{
    (void)snprintf(why, JOBS_WHY_SIZE, "can't use %s:%d: %s", s->host, s->port, text);
}

/* One round trip that fails when the server still loads its data, or wants a password. */
static bool greet(const struct store *s, redisContext *c, char why[JOBS_WHY_SIZE])
{
    const char *password = getenv("REDIS_PASSWORD");
    redisReply *got =
        password == NULL ? redisCommand(c, "PING") : redisCommand(c, "AUTH %s", password);
    const bool good = got != NULL && got->type == REDIS_REPLY_STATUS;

    if (!good) {
        complain(s, got != NULL && got->type == REDIS_REPLY_ERROR ? got->str : c->errstr, why);
    }
    freeReplyObject(got);
    return good;
}

static redisContext *dial(void *store, int64_t until_ms, char why[JOBS_WHY_SIZE])
{
    const struct store *s = store;
    const int64_t left_ms = until_ms - jobs_now_ms();
    const struct timeval connecting = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    const struct timeval asking = {.tv_sec = JOB_MS / 1000};

    if (left_ms <= 0) {
        complain(s, "no time left", why);
        return NULL;
    }
    redisContext *c = redisConnectWithTimeout(s->host, s->port, connecting);
    if (c == NULL || c->err != 0) {
        complain(s, c == NULL ? "no memory" : c->errstr, why);
    } else if (redisSetTimeout(c, asking) == REDIS_OK && greet(s, c, why)) {
        return c;
    }
    redisFree(c);
    return NULL;
}

static void *on_open(void *store, int64_t until_ms, char why[JOBS_WHY_SIZE])
{
    struct line *l = calloc(1, sizeof *l);

    if (l == NULL) {
        (void)snprintf(why, JOBS_WHY_SIZE, "no memory");
        return NULL;
    }
    l->store = store;
    l->redis = dial(store, until_ms, why);
    if (l->redis == NULL) {
        free(l);
        return NULL;
    }
    return l;
}

/* ---- scripts */

static struct key key_of(const struct store *s, const struct stored_row *row, const char *what)
{
    struct key k;
    const int begin = snprintf(k.text, sizeof k.text, "%s:{", s->prefix);

    k.size = (size_t)begin;
    memcpy(k.text + k.size, row->id, row->id_size);
    k.size += row->id_size;
    k.size += (size_t)snprintf(k.text + k.size, sizeof k.text - k.size, "}:%s", what);
    return k;
}

/* NULL: no answer came, the connection is broken. */
static enum store_end end_of(redisReply **reply)
{
    redisReply *got = *reply;

    if (got == NULL) {
        return STORE_UNKNOWN;
    }
    if (got->type != REDIS_REPLY_ERROR) {
        return STORE_OK;
    }
    (void)fprintf(stderr, "store_redis: %s\n", got->str);
    freeReplyObject(got);
    *reply = NULL;
    return STORE_ERROR;
}

/* What a script said in its first word. */
static enum store_end verdict_of(const redisReply *got)
{
    static const struct {
        const char *word;
        enum store_end end;
    } table[] = {{"yours", STORE_OK},
                 {"ok", STORE_OK},
                 {"fenced", STORE_FENCED},
                 {"held", STORE_HELD},
                 {"changed", STORE_CHANGED}};

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (got->elements > 0 && strcmp(got->element[0]->str, table[i].word) == 0) {
            return table[i].end;
        }
    }
    return STORE_ERROR;
}

static enum store_end on_claim(void *connection, struct stored_row *row)
{
    struct line *l = connection;
    const struct store *s = l->store;
    const struct key at = key_of(s, row, "row");
    const struct key lock = key_of(s, row, "lock");
    redisReply *got = redisCommand(l->redis,
                                   "EVAL %s 2 %b %b %" PRIu64 " %s %" PRIu64 " %s:notice: %b",
                                   claim_lua,
                                   at.text,
                                   at.size,
                                   lock.text,
                                   lock.size,
                                   row->token,
                                   s->owner,
                                   row->activation,
                                   s->prefix,
                                   row->id,
                                   row->id_size);
    enum store_end end = end_of(&got);

    if (end == STORE_OK) {
        end = verdict_of(got);
    }
    if (end == STORE_OK) {
        row->version = got->element[1]->integer;
        row->count = strtoll(got->element[2]->str, NULL, 10);
    } else if (end == STORE_HELD) {
        guard_note_held("store_redis",
                        row,
                        got->element[1]->str,
                        got->element[2]->integer > 0 ? "who was told" : "who did not hear of it");
    }
    freeReplyObject(got);
    return end;
}

static enum store_end on_write(void *connection, const struct stored_row *row, int64_t count)
{
    struct line *l = connection;
    const struct key at = key_of(l->store, row, "row");
    redisReply *got = redisCommand(l->redis,
                                   "EVAL %s 1 %b %" PRIu64 " %" PRId64 " %" PRId64,
                                   write_lua,
                                   at.text,
                                   at.size,
                                   row->token,
                                   row->version,
                                   count);
    enum store_end end = end_of(&got);

    if (end == STORE_OK) {
        end = verdict_of(got);
    }
    freeReplyObject(got);
    return end;
}

static void on_release(void *connection, const struct stored_row *row)
{
    struct line *l = connection;
    const struct store *s = l->store;
    const struct key lock = key_of(s, row, "lock");
    char mine[GUARD_OWNER_SIZE + 48];

    if (s->owner[0] == '\0') {
        return;
    }
    (void)snprintf(
        mine, sizeof mine, "%s %" PRIu64 " %" PRIu64, s->owner, row->token, row->activation);
    freeReplyObject(
        redisCommand(l->redis, "EVAL %s 1 %b %s", release_lua, lock.text, lock.size, mine));
}

static void on_note(void *connection, const struct stored_row *row, const char *node)
{
    struct line *l = connection;
    const char *prefix = l->store->prefix;

    freeReplyObject(redisCommand(l->redis, "INCR %s:refused", prefix));
    freeReplyObject(redisCommand(l->redis,
                                 "XADD %s:refusals MAXLEN ~ 1000 * id %b token %" PRIu64 " node %s",
                                 prefix,
                                 row->id,
                                 row->id_size,
                                 row->token,
                                 node));
}

static enum store_end on_refused(void *connection, int64_t *count)
{
    struct line *l = connection;
    redisReply *got = redisCommand(l->redis, "GET %s:refused", l->store->prefix);
    const enum store_end end = end_of(&got);

    if (end == STORE_OK) {
        *count = got->type == REDIS_REPLY_STRING ? strtoll(got->str, NULL, 10) : 0;
    }
    freeReplyObject(got);
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
    const struct store *s = store;
    redisContext *c = dial(store, until_ms, why);
    redisReply *got = NULL;

    if (c == NULL) {
        return NULL;
    }
    got = redisCommand(c, "SUBSCRIBE %s:notice:%s", s->prefix, s->owner);
    freeReplyObject(got);
    if (got == NULL) {
        complain(s, c->errstr, why);
        redisFree(c);
        return NULL;
    }
    return c;
}

static void ear_close(void *connection)
{
    redisFree(connection);
}

static int ear_fd(const void *connection)
{
    const redisContext *c = connection;

    return c->fd;
}

static void ear_reply(struct guard *g, const redisReply *r)
{
    if (r->type == REDIS_REPLY_ARRAY && r->elements == 3 &&
        strcmp(r->element[0]->str, "message") == 0) {
        guard_hear(g, r->element[2]->str, r->element[2]->len);
    }
}

static bool ear_read(void *connection)
{
    return redisBufferRead(connection) == REDIS_OK;
}

static void ear_hear(struct guard *g, void *connection)
{
    void *next = NULL;

    while (redisGetReplyFromReader(connection, &next) == REDIS_OK && next != NULL) {
        ear_reply(g, next);
        freeReplyObject(next);
    }
}

static const struct guard_ear ear = {
    "store_redis", ear_open, ear_close, ear_fd, ear_read, ear_hear};

/* ---- the kind */

static const struct stored_ops redis = {
    .name = "store_redis",
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

/* HOST:PORT, then ",guard" and ",prefix=NAME" in any order. */
static bool read_argument(const char *argument, struct store *s, bool *guarded)
{
    char copy[512];
    char *rest = NULL;

    if (strlen(argument) >= sizeof copy) {
        return false;
    }
    (void)snprintf(copy, sizeof copy, "%s", argument);
    (void)snprintf(s->prefix, sizeof s->prefix, "ringhold");
    const char *address = strtok_r(copy, ",", &rest);
    const char *colon = address == NULL ? NULL : strrchr(address, ':');
    if (colon == NULL || colon == address) {
        return false;
    }
    (void)snprintf(s->host, sizeof s->host, "%.*s", (int)(colon - address), address);
    s->port = (int)strtol(colon + 1, NULL, 10);
    for (const char *word = strtok_r(NULL, ",", &rest); word != NULL;
         word = strtok_r(NULL, ",", &rest)) {
        if (strcmp(word, "guard") == 0) {
            *guarded = true;
        } else if (strncmp(word, "prefix=", 7) == 0 && strlen(word + 7) < PREFIX_SIZE) {
            (void)snprintf(s->prefix, sizeof s->prefix, "%s", word + 7);
        } else {
            return false;
        }
    }
    return s->port > 0 && s->port < 65536;
}

static void on_stop(void *shared)
{
    struct store *s = stored_store(shared);

    guard_stop(s->guard);
    stored_stop(shared); // It releases the locks.
    free(s);
}

static int on_start(const struct rh_kind_info *info, void **shared)
{
    struct store *s = calloc(1, sizeof *s);
    bool guarded = false;

    if (s == NULL || !read_argument(info->argument, s, &guarded)) {
        (void)fprintf(stderr,
                      "store_redis: name its server: --actor "
                      "./store_redis.so=HOST:PORT[,guard][,prefix=NAME]\n");
        free(s);
        return RH_FAILED;
    }
    if (guarded) {
        guard_name_owner(s->owner, info->node);
    }
    struct stored *stored = stored_start(&redis, s, info->node);
    if (stored == NULL) {
        free(s);
        return RH_FAILED;
    }
    if (guarded && (s->guard = guard_start(&(struct guard_options){&ear, s, stored})) == NULL) {
        on_stop(stored);
        return RH_FAILED;
    }
    *shared = stored;
    return RH_OK;
}

const struct rh_actor_ops ringhold_actor = {
    STORED_CALLBACKS,
    .name = "store_redis",
    .start = on_start,
    .stop = on_stop,
};
