/* SPDX-License-Identifier: Apache-2.0
 *
 * The tools of a store in Redis: they walk over its keys, and look at each by a script.
 */
#include "storage/actors/remote/tools_hiredis.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/table.h"
#include "storage/actors/changes.h"
#include "storage/actors/remote/due_member.h"
#include "storage/actors/remote/redis_hiredis.h"
#include "storage/actors/remote/redis_lua.h"
#include "storage/actors/remote/store_remote_uv.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_SIZE = 24,
    HEAD_SIZE = 64,
    WORDS_MAX = 8,
    DUE_PAGE = 1000,
    TABLE_ACTOR = -1, /* else enum change_of */
    TABLE_DUE = -2,
    TABLE_OTHER = -3, /* of the store itself */
    TABLE_NONE = -4,  /* not ours */
};

/* A key that was met. */
struct seen_key {
    struct table_link link;
    size_t size;
    uint8_t bytes[]; /* flexible */
};

/* A walk over all keys of a pattern: SCAN may meet one twice. All zero is one that has not begun.
 */
struct key_walk {
    struct table seen;  /* struct seen_key; owned */
    struct buffer page; /* struct seen_key *: those that were met last, for the first time */
    char cursor[NUMBER_SIZE];
    bool over;
};

struct whole_redis {
    struct whole_store whole;
    struct store_line *line; /* BESIDE: owned; else the store's */
    struct key_walk actors;  /* of list() */
    size_t listed;           /* of its page */
    struct buffer key;
    struct buffer member;
};

static struct whole_redis *redis_of(struct whole_store *w)
{
    return (struct whole_redis *)w;
}

static bool fail(struct whole_store *w)
{
    (void)snprintf(w->why, sizeof w->why, "%s", redis_of(w)->line->why);
    return false;
}

/* ---- words ---- */

static struct bytes text_of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static struct bytes number_of(char room[NUMBER_SIZE], uint64_t number)
{
    return bytes_of(room, (size_t)snprintf(room, NUMBER_SIZE, "%" PRIu64, number));
}

/* NULL: `why`. */
static redisReply *ask(struct whole_store *w, const struct bytes *word, size_t count)
{
    struct store_line *line = redis_of(w)->line;

    redis_put(line, word, count);
    redisReply *reply = redis_take(line);
    if (reply == NULL) {
        (void)fail(w);
    }
    return reply;
}

static bool does(struct whole_store *w, const struct bytes *word, size_t count)
{
    redisReply *reply = ask(w, word, count);

    redis_forget(reply);
    return reply != NULL;
}

/* Nodes stay out as long as something goes on. */
static bool goes_on(struct whole_store *w)
{
    return w->store == NULL || redis_stay_alone(redis_of(w)->line) || fail(w);
}

/* ---- keys ---- */

/* What a key is of. */
struct key {
    int table;
    uint64_t kind;
    struct bytes id; /* borrowed */
};

/* "KIND:ID", or "KIND". */
static bool split_kind(struct key *k, struct bytes rest, bool has_id)
{
    char number[NUMBER_SIZE] = "";
    char *end = NULL;
    size_t size = 0;

    while (size < rest.size && size + 1 < sizeof number && rest.data[size] != ':') {
        number[size] = (char)rest.data[size];
        size++;
    }
    k->kind = strtoull(number, &end, 10);
    k->id = has_id && size < rest.size ? bytes_of(rest.data + size + 1, rest.size - size - 1)
                                       : (struct bytes){0};
    return size > 0 && *end == '\0' && (has_id ? k->id.size > 0 : size == rest.size);
}

static struct key split(struct bytes key)
{
    static const struct {
        const char *head;
        int table;
    } all[] = {
        {"ringhold:actor:", TABLE_ACTOR},
        {"ringhold:value:", CHANGE_VALUE},
        {"ringhold:answer:", CHANGE_ANSWER},
        {"ringhold:alarm:", CHANGE_ALARM},
        {"ringhold:send:", CHANGE_SEND},
        {"ringhold:taken:", CHANGE_TAKEN},
        {"ringhold:due:", TABLE_DUE},
    };
    struct key k = {.table = TABLE_NONE};

    if (bytes_equal(key, text_of("ringhold:store")) ||
        bytes_equal(key, text_of("ringhold:alone"))) {
        k.table = TABLE_OTHER;
        return k;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const size_t size = strlen(all[i].head);

        if (key.size > size && memcmp(key.data, all[i].head, size) == 0 &&
            split_kind(&k, bytes_of(key.data + size, key.size - size), all[i].table != TABLE_DUE)) {
            k.table = all[i].table;
        }
    }
    return k;
}

static void put_key(struct buffer *out, const char *of, uint64_t kind, struct bytes id)
{
    char head[HEAD_SIZE];
    const bool due = strcmp(of, "due") == 0;

    buffer_clear(out);
    buffer_put(
        out,
        head,
        (size_t)snprintf(head, sizeof head, "ringhold:%s:%" PRIu64 "%s", of, kind, due ? "" : ":"));
    buffer_put(out, id.data, id.size);
}

/* ---- a walk ---- */

static uint64_t hash_of(struct bytes key)
{
    uint64_t hash = key.size;

    for (size_t i = 0; i < key.size; i++) {
        hash = table_mix(hash ^ key.data[i]);
    }
    return hash;
}

static void walk_fini(struct key_walk *k)
{
    struct table_walk at = {0};
    struct table_link *link;

    while ((link = table_walk(&k->seen, &at)) != NULL) {
        mem_free(CONTAINER_OF(link, struct seen_key, link));
    }
    table_fini(&k->seen);
    buffer_fini(&k->page);
}

static void meet(struct key_walk *k, struct bytes key)
{
    const uint64_t hash = hash_of(key);

    for (struct table_link *l = table_first(&k->seen, hash); l != NULL; l = table_same(l)) {
        const struct seen_key *other = CONTAINER_OF(l, struct seen_key, link);

        if (bytes_equal(bytes_of(other->bytes, other->size), key)) {
            return;
        }
    }
    struct seen_key *s = mem_new(1, sizeof *s + key.size);

    s->size = key.size;
    bytes_copy(s->bytes, key.data, key.size);
    table_put(&k->seen, &s->link, hash);
    buffer_put(&k->page, &s, sizeof(struct seen_key *));
}

static size_t walk_count(const struct key_walk *k)
{
    return k->page.size / sizeof(struct seen_key *);
}

static struct bytes walk_at(const struct key_walk *k, size_t place)
{
    const struct seen_key *const *all = (const struct seen_key *const *)(const void *)k->page.data;

    return bytes_of(all[place]->bytes, all[place]->size);
}

/* Go on to the next page of keys, which may have none. False: `why`. */
static bool walk_on(struct whole_store *w, struct key_walk *k, const char *pattern)
{
    const struct bytes word[] = {
        text_of("SCAN"),
        text_of(k->cursor[0] == '\0' ? "0" : k->cursor),
        text_of("MATCH"),
        text_of(pattern),
        text_of("COUNT"),
        text_of("256"),
    };
    redisReply *reply = goes_on(w) ? ask(w, word, sizeof word / sizeof word[0]) : NULL;

    buffer_clear(&k->page);
    if (reply == NULL) {
        return false;
    }
    const redisReply *keys = reply->element[1];
    for (size_t i = 0; i < keys->elements; i++) {
        meet(k, bytes_of(keys->element[i]->str, keys->element[i]->len));
    }
    (void)snprintf(k->cursor, sizeof k->cursor, "%s", reply->element[0]->str);
    k->over = strcmp(k->cursor, "0") == 0;
    redis_forget(reply);
    return true;
}

/* ---- check ---- */

struct key_findings {
    struct whole_store *whole;
    store_on_finding *on_finding;
    void *context;
};

/* By the numbers that the script tells; between the two words stands the table. */
static const struct {
    const char *first;
    const char *last; /* NULL = it stands alone */
} faults[] = {
    {"it is no hash", NULL},
    {"its fence or the number of its commits is no number", NULL},
    {"a row of ", " has no actor"},
    {"the key of a row of ", " is not 1 to 255 bytes"},
    {"its alarm has no time", NULL},
    {"its alarm is not among those that go off by its time", NULL},
    {"a row of ", " is not at most 1048576 bytes"},
    {"its send is newer than its last commit", NULL},
    {"it has more than 65536 values", NULL},
    {"its values are more than 67108864 bytes", NULL},
};

static const char *text_of_fault(char room[HEAD_SIZE], long long fault, int table)
{
    static const char *const names[CHANGE_COUNT] = {"value", "answer", "alarm", "send", "taken"};
    const bool alone = faults[fault].last == NULL || table < 0;

    (void)snprintf(room,
                   HEAD_SIZE,
                   "%s%s%s",
                   faults[fault].first,
                   alone ? "" : names[table],
                   alone ? "" : faults[fault].last);
    return room;
}

static void tell(const struct key_findings *f, const struct key *k, const redisReply *found)
{
    for (size_t i = 0; i + 2 < found->elements; i += 3) {
        const redisReply *key = found->element[i + 1];
        const long long number = found->element[i + 2]->integer;
        char what[HEAD_SIZE];
        const struct store_finding row = {
            .kind = (int64_t)k->kind,
            .id = k->id,
            .has_key = key->len > 0,
            .key = bytes_of(key->str, key->len),
            .what = text_of_fault(what, found->element[i]->integer, k->table),
            .has_number = number >= 0,
            .number = number,
        };

        store_tools_tell(&row, f->on_finding, f->context);
    }
}

static void put_look(struct whole_store *w, struct bytes key, const struct key *k)
{
    struct whole_redis *p = redis_of(w);
    struct buffer due = {0};
    char table[NUMBER_SIZE];

    put_key(&p->key, "actor", k->kind, k->id);
    put_key(&due, "due", k->kind, (struct bytes){0});
    buffer_clear(&p->member);
    due_member_put(&p->member, k->id);
    (void)snprintf(table, sizeof table, "%d", k->table);
    const struct bytes word[] = {
        text_of("EVAL"),
        text_of(redis_look),
        text_of("3"),
        key,
        buffer_bytes(&p->key),
        buffer_bytes(&due),
        text_of(table),
        buffer_bytes(&p->member),
    };
    redis_put(p->line, word, sizeof word / sizeof word[0]);
    buffer_fini(&due);
}

static bool is_of_actor(const struct key *k)
{
    return k->table >= TABLE_ACTOR;
}

/* The members of a page of alarms by their times, each of which is to be an alarm. */
static bool look_at_dues(const struct key_findings *f, const struct key *k, struct bytes key,
                         const redisReply *page)
{
    struct whole_redis *p = redis_of(f->whole);
    struct buffer id = {0};
    struct bytes name;

    for (size_t i = 0; i < page->elements; i++) {
        const struct bytes member = bytes_of(page->element[i]->str, page->element[i]->len);

        (void)due_member_split(member, &id, &name); // what is none has no alarm either
        put_key(&p->key, "alarm", k->kind, buffer_bytes(&id));
        const struct bytes word[] = {
            text_of("EVAL"),
            text_of(redis_look_due),
            text_of("2"),
            key,
            buffer_bytes(&p->key),
            member,
            name,
        };
        redis_put(p->line, word, sizeof word / sizeof word[0]);
    }
    bool good = true;
    for (size_t i = 0; i < page->elements && good; i++) {
        redisReply *reply = redis_take(p->line);

        good = reply != NULL;
        if (good && reply->integer == 1) {
            (void)due_member_split(
                bytes_of(page->element[i]->str, page->element[i]->len), &id, &name);
            const struct store_finding row = {
                .kind = (int64_t)k->kind,
                .id = buffer_bytes(&id),
                .has_key = true,
                .key = name,
                .what = "there is a time of an alarm, and no alarm",
            };
            store_tools_tell(&row, f->on_finding, f->context);
        }
        redis_forget(reply);
    }
    buffer_fini(&id);
    return good || fail(f->whole);
}

/* Pages by place: while nodes run, what moves meanwhile may be passed over. */
static bool look_at_due(const struct key_findings *f, const struct key *k, struct bytes key)
{
    bool good = true;
    size_t count = DUE_PAGE;

    for (uint64_t from = 0; count == DUE_PAGE && good; from += DUE_PAGE) {
        char first[NUMBER_SIZE];
        char last[NUMBER_SIZE];
        const struct bytes word[] = {
            text_of("ZRANGE"), key, number_of(first, from), number_of(last, from + DUE_PAGE - 1)};
        redisReply *page = ask(f->whole, word, sizeof word / sizeof word[0]);

        good = page != NULL && look_at_dues(f, k, key, page);
        count = page == NULL ? 0 : page->elements;
        redis_forget(page);
    }
    return good;
}

static bool check_page(const struct key_findings *f, const struct key_walk *walk)
{
    struct whole_store *w = f->whole;
    bool good = true;

    for (size_t i = 0; i < walk_count(walk); i++) {
        const struct key k = split(walk_at(walk, i));

        if (is_of_actor(&k)) {
            put_look(w, walk_at(walk, i), &k);
        }
    }
    for (size_t i = 0; i < walk_count(walk) && good; i++) {
        const struct key k = split(walk_at(walk, i));

        if (is_of_actor(&k)) {
            redisReply *reply = redis_take(redis_of(w)->line);

            good = reply != NULL || fail(w);
            if (good) {
                tell(f, &k, reply);
            }
            redis_forget(reply);
        }
    }
    for (size_t i = 0; i < walk_count(walk) && good; i++) {
        const struct key k = split(walk_at(walk, i));

        if (k.table == TABLE_DUE) {
            good = look_at_due(f, &k, walk_at(walk, i));
        } else if (k.table == TABLE_NONE) {
            const struct store_finding row = {.id = walk_at(walk, i),
                                              .what = "this key is none of a store"};
            store_tools_tell(&row, f->on_finding, f->context);
        }
    }
    return good;
}

static bool check(struct whole_store *w, store_on_finding *on_finding, void *context)
{
    const struct key_findings f = {.whole = w, .on_finding = on_finding, .context = context};
    struct key_walk walk = {0};
    bool good = true;

    while (good && !walk.over) {
        good = walk_on(w, &walk, "ringhold:*") && check_page(&f, &walk);
    }
    walk_fini(&walk);
    return good;
}

/* ---- figures ---- */

static void add(struct store_figures *f, int table, const redisReply *weight)
{
    uint64_t unused = 0;
    const struct {
        uint64_t *count;
        uint64_t *bytes;
    } all[] = {
        [CHANGE_VALUE] = {&f->values, &f->value_bytes},
        [CHANGE_ANSWER] = {&f->answers, &f->answer_bytes},
        [CHANGE_ALARM] = {&f->alarms, &f->alarm_bytes},
        [CHANGE_SEND] = {&f->sends, &f->send_bytes},
        [CHANGE_TAKEN] = {&f->taken, &unused},
    };

    if (table == TABLE_ACTOR) {
        f->actors++;
    } else {
        *all[table].count += (uint64_t)weight->element[0]->integer;
        *all[table].bytes += (uint64_t)weight->element[1]->integer;
    }
}

/* How many alarms of a kind are due, and when the first is. */
static bool add_due(struct whole_store *w, struct bytes key, struct store_figures *f)
{
    char now[NUMBER_SIZE];
    const struct bytes count[] = {
        text_of("ZCOUNT"), key, text_of("-inf"), number_of(now, clock_wall_us() / 1000)};
    const struct bytes first[] = {
        text_of("ZRANGE"), key, text_of("0"), text_of("0"), text_of("WITHSCORES")};
    redisReply *due = ask(w, count, sizeof count / sizeof count[0]);
    redisReply *next = due == NULL ? NULL : ask(w, first, sizeof first / sizeof first[0]);

    if (next != NULL) {
        const uint64_t at_ms = next->elements == 2 ? strtoull(next->element[1]->str, NULL, 10) : 0;

        f->alarms_due += (uint64_t)due->integer;
        f->next_due_ms =
            f->next_due_ms == 0 || (at_ms > 0 && at_ms < f->next_due_ms) ? at_ms : f->next_due_ms;
    }
    const bool good = next != NULL;
    redis_forget(due);
    redis_forget(next);
    return good;
}

static bool weigh_page(struct whole_store *w, const struct key_walk *walk, struct store_figures *f)
{
    struct store_line *line = redis_of(w)->line;
    bool good = true;

    for (size_t i = 0; i < walk_count(walk); i++) {
        const struct key k = split(walk_at(walk, i));
        char table[NUMBER_SIZE];

        if (is_of_actor(&k)) {
            (void)snprintf(table, sizeof table, "%d", k.table);
            const struct bytes word[] = {text_of("EVAL"),
                                         text_of(redis_weigh),
                                         text_of("1"),
                                         walk_at(walk, i),
                                         text_of(table)};
            redis_put(line, word, sizeof word / sizeof word[0]);
        }
    }
    for (size_t i = 0; i < walk_count(walk) && good; i++) {
        const struct key k = split(walk_at(walk, i));

        if (is_of_actor(&k)) {
            redisReply *reply = redis_take(line);

            good = reply != NULL || fail(w);
            if (good) {
                add(f, k.table, reply);
            }
            redis_forget(reply);
        }
    }
    for (size_t i = 0; i < walk_count(walk) && good; i++) {
        const struct key k = split(walk_at(walk, i));

        good = k.table != TABLE_DUE || add_due(w, walk_at(walk, i), f);
    }
    return good;
}

/* "name:123" of INFO. */
static uint64_t info_of(const redisReply *info, const char *name)
{
    const char *at = info->str == NULL ? NULL : strstr(info->str, name);

    return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10);
}

static bool add_server(struct whole_store *w, struct store_figures *f)
{
    const struct bytes info[] = {text_of("INFO"), text_of("persistence")};
    const struct bytes get[] = {text_of("HGET"), text_of("ringhold:store"), text_of("read_back")};
    redisReply *persistence = ask(w, info, sizeof info / sizeof info[0]);
    redisReply *count = persistence == NULL ? NULL : ask(w, get, sizeof get / sizeof get[0]);

    if (count != NULL) {
        const uint64_t base = info_of(persistence, "aof_base_size:");

        f->file_bytes = info_of(persistence, "aof_current_size:");
        f->free_bytes = f->file_bytes > base ? f->file_bytes - base : 0;
        f->read_back = count->str == NULL ? 0 : strtoull(count->str, NULL, 10);
    }
    const bool good = count != NULL;
    redis_forget(persistence);
    redis_forget(count);
    return good;
}

static bool figures(struct whole_store *w, struct store_figures *out)
{
    struct key_walk walk = {0};
    bool good = true;

    while (good && !walk.over) {
        good = walk_on(w, &walk, "ringhold:*") && weigh_page(w, &walk, out);
    }
    walk_fini(&walk);
    return good && add_server(w, out);
}

static bool vacuum(struct whole_store *w)
{
    (void)snprintf(
        w->why,
        sizeof w->why,
        "Redis has nothing to vacuum: redis-cli BGREWRITEAOF makes its file small, while "
        "nodes run, and MEMORY PURGE gives memory back");
    return false;
}

/* ---- alone ---- */

static bool fence(struct whole_store *w, struct store_task *t)
{
    struct buffer *key = &redis_of(w)->key;

    w->why[0] = '\0';
    put_key(key, "actor", t->kind, bytes_of(t->id, t->id_size));
    const struct bytes word[] = {text_of("HGET"), buffer_bytes(key), text_of("fence")};
    redisReply *reply = ask(w, word, sizeof word / sizeof word[0]);
    const bool there = reply != NULL && reply->type == REDIS_REPLY_STRING;

    t->fence = there ? strtoull(reply->str, NULL, 10) : 0;
    redis_forget(reply);
    return there;
}

/* Until its page has an actor, or all was met. */
static bool walk_to_some(struct whole_store *w, struct whole_redis *p)
{
    bool good = true;

    while (good && p->listed == walk_count(&p->actors) && !p->actors.over) {
        good = walk_on(w, &p->actors, "ringhold:actor:*");
        p->listed = 0;
    }
    return good;
}

static bool list(struct whole_store *w, size_t max, struct store_task **task, size_t *count)
{
    struct whole_redis *p = redis_of(w);
    bool good = goes_on(w) && walk_to_some(w, p);
    const size_t left = good ? walk_count(&p->actors) - p->listed : 0;
    const size_t most = max < WHOLE_PAGE_MAX ? max : WHOLE_PAGE_MAX;
    const size_t some = left < most ? left : most;

    *count = 0;
    for (size_t i = 0; i < some; i++) {
        const struct bytes word[] = {
            text_of("HGET"), walk_at(&p->actors, p->listed + i), text_of("fence")};
        redis_put(p->line, word, sizeof word / sizeof word[0]);
    }
    for (size_t i = 0; i < some && good; i++) {
        const struct key k = split(walk_at(&p->actors, p->listed + i));
        redisReply *reply = redis_take(p->line);

        good = reply != NULL || fail(w);
        if (good) {
            const bool told = reply->type == REDIS_REPLY_STRING && k.table == TABLE_ACTOR;

            task[*count] = whole_claim(k.kind,
                                       told ? k.id : (struct bytes){0},
                                       told ? strtoull(reply->str, NULL, 10) : 0,
                                       w->why);
            good = task[*count] != NULL;
            *count += good ? 1 : 0;
        }
        redis_forget(reply);
    }
    p->listed += some;
    return good;
}

static bool adopt(struct whole_store *w, struct store_task *const *commit, size_t count)
{
    struct whole_redis *p = redis_of(w);
    bool good = goes_on(w);

    for (size_t i = 0; i < count && good; i++) {
        char of[NUMBER_SIZE];
        char number[NUMBER_SIZE];

        put_key(&p->key, "actor", commit[i]->kind, bytes_of(commit[i]->id, commit[i]->id_size));
        const struct bytes word[] = {
            text_of("HSET"),
            buffer_bytes(&p->key),
            text_of("fence"),
            number_of(of, commit[i]->fence),
            text_of("number"),
            number_of(number, commit[i]->number - 1),
        };
        redis_put(p->line, word, sizeof word / sizeof word[0]);
    }
    for (size_t i = 0; i < count && good; i++) {
        redisReply *reply = redis_take(p->line);

        good = reply != NULL || fail(w);
        redis_forget(reply);
    }
    return good;
}

static bool set_version(struct whole_store *w, uint64_t version)
{
    char number[NUMBER_SIZE];
    const struct bytes word[] = {
        text_of("HSET"), text_of("ringhold:store"), text_of("version"), number_of(number, version)};

    return does(w, word, sizeof word / sizeof word[0]);
}

static bool clear(struct whole_store *w)
{
    struct key_walk walk = {0};
    bool good = true;

    while (good && !walk.over) {
        good = walk_on(w, &walk, "ringhold:*");
        for (size_t i = 0; i < walk_count(&walk) && good; i++) {
            const struct key k = split(walk_at(&walk, i));
            const struct bytes word[] = {text_of("UNLINK"), walk_at(&walk, i)};

            good = k.table == TABLE_OTHER || k.table == TABLE_NONE ||
                   does(w, word, sizeof word / sizeof word[0]);
        }
    }
    walk_fini(&walk);
    return good;
}

/* ---- opening ---- */

static void close_whole(struct whole_store *w)
{
    struct whole_redis *p = redis_of(w);

    if (w->store != NULL) {
        w->store->close(w->store);
    } else {
        p->line->free(p->line);
    }
    walk_fini(&p->actors);
    buffer_fini(&p->key);
    buffer_fini(&p->member);
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

enum err tools_redis_open(const char *where, enum whole_use use, struct whole_store **out,
                          char why[STORE_TOOLS_WHY_SIZE])
{
    char fault[LINE_WHY_SIZE] = "";
    struct store_line *line = redis_line(where, fault);
    struct actor_store *store = NULL;

    if (!line_open_whole(line, use, &store, fault)) {
        (void)snprintf(why, STORE_TOOLS_WHY_SIZE, "%s", fault);
        return ERR_LOCKED;
    }
    struct whole_redis *p = mem_new(1, sizeof *p);
    p->whole = tools;
    p->whole.store = store;
    p->whole.version = line->version;
    p->line = line;
    *out = &p->whole;
    return ERR_OK;
}
