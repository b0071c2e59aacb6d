/* SPDX-License-Identifier: Apache-2.0
 *
 * The bundled actor `kv`: one value, and Redis' commands on it.
 */
#include "node/actors/actors.h"

#include "base/bytes.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "wire/cursor.h"
#include "wire/record.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    WORDS_MAX = 16,
    // What a SET with the longest key leaves of a request's body.
    VALUE_SIZE_MAX = RECORD_BODY_MAX - 512,
    INSIDE_MAX = 71, /* so that all of it takes 88 bytes, which malloc() makes 96 */
};

/* A short value stands in the struct itself: where an actor is in no cache, the value is fetched
 * together with it. */
struct kv {
    uint8_t *data; /* inside, or owned */
    uint32_t size;
    uint32_t cap;
    bool exists;
    uint8_t inside[INSIDE_MAX];
};

/* Whose command runs, and its words after the key. Both are by value, so that they stay in
 * registers. */
struct kv_call {
    struct rh_actor *actor;
    struct kv *kv;
};
struct kv_words {
    const struct rh_bytes *word;
    size_t count;
};

/* The last thing that a command does: who holds no value by then ends, for there is nothing to
 * keep. */
static inline void answer(struct kv_call c, struct rh_value value)
{
    if (__builtin_expect(!c.kv->exists, false)) {
        (void)rh_passivate(c.actor);
    }
    (void)rh_reply(c.actor, value);
}

static struct rh_value value_of(const struct kv *kv)
{
    return kv->exists ? rh_bytes_value(kv->data, kv->size) : rh_nil();
}

/* False after an error was answered. */
static inline bool fits(struct kv_call c, size_t size)
{
    if (size > VALUE_SIZE_MAX) {
        answer(c, rh_error("ERR string exceeds maximum allowed size (1 MiB less 512 bytes)"));
        return false;
    }
    return true;
}

/* Make room for `size` bytes in all; the value stays. */
__attribute__((noinline)) static void grow(struct kv *kv, size_t size)
{
    const size_t cap = size > 2 * (size_t)kv->cap ? size : 2 * (size_t)kv->cap;
    const bool is_inside = kv->data == kv->inside;

    kv->data = mem_resize(is_inside ? NULL : kv->data, cap);
    kv->cap = (uint32_t)cap;
    if (is_inside) {
        memcpy(kv->data, kv->inside, kv->size);
    }
}

static inline void assign(struct kv *kv, struct rh_bytes value)
{
    if (__builtin_expect(kv->cap < value.size, false)) {
        kv->size = 0;
        grow(kv, value.size);
    }
    kv->exists = true;
    kv->size = (uint32_t)value.size;
    bytes_copy_value(kv->data, value.data, value.size);
}

static void erase(struct kv *kv)
{
    if (kv->data != kv->inside) {
        mem_free(kv->data);
    }
    kv->exists = false;
    kv->size = 0;
    kv->data = kv->inside;
    kv->cap = INSIDE_MAX;
}

/* As Redis reads a number: the very text that it would print. False: it is none, or over 64 bits.
 */
static bool parse_number(const void *data, size_t size, int64_t *out)
{
    const char *at = data;
    const bool negative = size > 0 && at[0] == '-';
    const uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t sum = 0;
    size_t i = negative ? 1 : 0;

    if (size == i || (at[i] == '0' && size > 1)) {
        return false;
    }
    for (; i < size; i++) {
        const uint64_t digit = (uint64_t)(unsigned char)at[i] - '0';

        if (digit > 9 || sum > (limit - digit) / 10) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return true;
}

static void add(struct kv_call c, int64_t by)
{
    struct kv *kv = c.kv;
    int64_t now = 0;
    char text[DECIMAL_MAX];

    if (kv->exists && !parse_number(kv->data, kv->size, &now)) {
        answer(c, rh_error("ERR value is not an integer or out of range"));
        return;
    }
    if ((by > 0 && now > INT64_MAX - by) || (by < 0 && now < INT64_MIN - by)) {
        answer(c, rh_error("ERR increment or decrement would overflow"));
        return;
    }
    now += by;
    const char *begin = decimal_before(text + sizeof text, now);
    assign(kv, (struct rh_bytes){begin, (size_t)(text + sizeof text - begin)});
    answer(c, rh_integer(now));
}

/* ---- commands ---- */

static void on_get(struct kv_call c, struct kv_words w)
{
    (void)w;
    answer(c, value_of(c.kv));
}

/* Redis knows it, or nobody. */
__attribute__((noinline)) static void refuse_option(struct kv_call c, struct rh_bytes word)
{
    static const char *const known[] = {"EX", "PX", "EXAT", "PXAT", "KEEPTTL", "GET"};
    char text[64] = "ERR syntax error";

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (word.size == strlen(known[i]) && strncasecmp(word.data, known[i], word.size) == 0) {
            (void)snprintf(
                text, sizeof text, "ERR SET's option %s is not supported: NX and XX are", known[i]);
        }
    }
    answer(c, rh_error(text));
}

/* True: the options behind the value let it be set. Else that was answered. */
__attribute__((noinline)) static bool options_let(struct kv_call c, struct kv_words w)
{
    bool if_absent = false;
    bool if_present = false;

    for (size_t i = 1; i < w.count; i++) {
        const bool two = w.word[i].size == 2;

        if (two && strncasecmp(w.word[i].data, "NX", 2) == 0) {
            if_absent = true;
        } else if (two && strncasecmp(w.word[i].data, "XX", 2) == 0) {
            if_present = true;
        } else {
            refuse_option(c, w.word[i]);
            return false;
        }
    }
    if (if_absent && if_present) {
        answer(c, rh_error("ERR syntax error"));
        return false;
    }
    if ((if_absent && c.kv->exists) || (if_present && !c.kv->exists)) {
        answer(c, rh_nil());
        return false;
    }
    return true;
}

static void on_set(struct kv_call c, struct kv_words w)
{
    if (w.count > 1 && !options_let(c, w)) {
        return;
    }
    if (fits(c, w.word[0].size)) {
        assign(c.kv, w.word[0]);
        answer(c, rh_text("OK"));
    }
}

static void on_setnx(struct kv_call c, struct kv_words w)
{
    if (c.kv->exists) {
        answer(c, rh_integer(0));
    } else if (fits(c, w.word[0].size)) {
        assign(c.kv, w.word[0]);
        answer(c, rh_integer(1));
    }
}

static void on_getset(struct kv_call c, struct kv_words w)
{
    struct kv *kv = c.kv;

    if (fits(c, w.word[0].size)) {
        struct kv old = *kv;

        if (kv->data == kv->inside) {
            old.data = old.inside;
        } else {
            kv->data = kv->inside; // the old one is freed below
            kv->cap = INSIDE_MAX;
        }
        kv->size = 0;
        assign(kv, w.word[0]);
        answer(c, value_of(&old));
        erase(&old);
    }
}

static void on_del(struct kv_call c, struct kv_words w)
{
    const bool existed = c.kv->exists;

    (void)w;
    erase(c.kv);
    answer(c, rh_integer(existed));
}

static void on_exists(struct kv_call c, struct kv_words w)
{
    (void)w;
    answer(c, rh_integer(c.kv->exists));
}

static void on_strlen(struct kv_call c, struct kv_words w)
{
    (void)w;
    answer(c, rh_integer((int64_t)c.kv->size));
}

static void on_append(struct kv_call c, struct kv_words w)
{
    struct kv *kv = c.kv;
    const size_t size = kv->size + w.word[0].size;

    if (fits(c, size)) {
        if (kv->cap < size) {
            grow(kv, size);
        }
        bytes_copy_value(kv->data + kv->size, w.word[0].data, w.word[0].size);
        kv->exists = true;
        kv->size = (uint32_t)size;
        answer(c, rh_integer((int64_t)size));
    }
}

static void on_incr(struct kv_call c, struct kv_words w)
{
    (void)w;
    add(c, 1);
}

static void on_decr(struct kv_call c, struct kv_words w)
{
    (void)w;
    add(c, -1);
}

static void on_incrby(struct kv_call c, struct kv_words w)
{
    int64_t by = 0;

    if (!parse_number(w.word[0].data, w.word[0].size, &by)) {
        answer(c, rh_error("ERR value is not an integer or out of range"));
        return;
    }
    add(c, by);
}

static void on_decrby(struct kv_call c, struct kv_words w)
{
    int64_t by = 0;

    if (!parse_number(w.word[0].data, w.word[0].size, &by)) {
        answer(c, rh_error("ERR value is not an integer or out of range"));
    } else if (by == INT64_MIN) {
        answer(c, rh_error("ERR decrement would overflow"));
    } else {
        add(c, -by);
    }
}

enum { NAME_MAX_SIZE = 7 };

static const struct kv_command {
    char name[NAME_MAX_SIZE + 1]; /* with zeros behind it: a word */
    size_t words_min;             /* after the key */
    size_t words_max;
    void (*run)(struct kv_call c, struct kv_words w);
} commands[] = {
    {"get", 0, 0, on_get},
    {"set", 1, SIZE_MAX, on_set},
    {"del", 0, 0, on_del},
    {"exists", 0, 0, on_exists},
    {"incr", 0, 0, on_incr},
    {"incrby", 1, 1, on_incrby},
    {"decr", 0, 0, on_decr},
    {"decrby", 1, 1, on_decrby},
    {"append", 1, 1, on_append},
    {"strlen", 0, 0, on_strlen},
    {"getset", 1, 1, on_getset},
    {"setnx", 1, 1, on_setnx},
};

/* The name in small letters, with zeros behind it; 0 = it is none of those above. */
static inline uint64_t word_of(struct rh_bytes name)
{
    const uint8_t *letter = name.data;
    uint64_t word = 0;

    if (name.size > NAME_MAX_SIZE) {
        return 0;
    }
    for (size_t i = name.size; i > 0; i--) {
        word = word << 8 | letter[i - 1] | ' ';
    }
    return word;
}

__attribute__((noinline)) static void refuse_command(struct kv_call c, struct rh_bytes name,
                                                     const char *known)
{
    char text[128];

    if (known != NULL) {
        (void)snprintf(text, sizeof text, "ERR wrong number of arguments for '%s' command", known);
    } else {
        (void)snprintf(text,
                       sizeof text,
                       "ERR unknown command '%.*s'",
                       (int)(name.size < 64 ? name.size : 64),
                       (const char *)name.data);
    }
    answer(c, rh_error(text));
}

static void run_command(struct kv_call c, struct rh_bytes name, struct kv_words w)
{
    const uint64_t word = word_of(name);
    const struct kv_command *end = commands + sizeof commands / sizeof commands[0];
    const struct kv_command *k = commands;

    while (k < end && load_u64((const uint8_t *)k->name) != word) {
        k++;
    }
    if (k == end) {
        refuse_command(c, name, NULL);
    } else if (w.count < k->words_min || w.count > k->words_max) {
        refuse_command(c, name, k->name);
    } else {
        k->run(c, w);
    }
}

/* ---- a payload as a command line ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Split at blanks; quotes (no escapes) group. Returns how many words, 0 for none or too many, or
 * for a quote that does not end. */
static size_t split(struct rh_bytes line, struct rh_bytes word[WORDS_MAX])
{
    const char *at = line.data;
    const char *end = at + line.size;
    size_t count = 0;

    for (;;) {
        while (at < end && is_space(*at)) {
            at++;
        }
        if (at == end) {
            return count;
        }
        const bool quoted = *at == '"' || *at == '\'';
        const char quote = *at;
        at += quoted ? 1 : 0;
        const char *start = at;
        while (at < end && (quoted ? *at != quote : !is_space(*at))) {
            at++;
        }
        if (count == WORDS_MAX || (quoted && at == end)) {
            return 0;
        }
        word[count++] = (struct rh_bytes){start, (size_t)(at - start)};
        at += quoted ? 1 : 0;
    }
}

/* ---- callbacks ---- */

static int kv_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct kv *kv = mem_new(1, sizeof *kv);
    const uint8_t *at = state == NULL ? NULL : state->data;

    (void)actor;
    (void)fence;
    kv->data = kv->inside;
    kv->cap = INSIDE_MAX;
    if (at != NULL && state->size > 0 && at[0] == 1) {
        assign(kv, (struct rh_bytes){at + 1, state->size - 1});
    }
    *instance = kv;
    return RH_OK;
}

__attribute__((noinline)) static void run_line(struct kv_call c, struct rh_bytes line)
{
    struct rh_bytes word[WORDS_MAX];
    const size_t count = split(line, word);

    if (count == 0) {
        answer(c, rh_error("ERR the payload is not a command line"));
        return;
    }
    run_command(c, word[0], (struct kv_words){word + 1, count - 1});
}

static void kv_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    const struct kv_call c = {.actor = actor, .kv = instance};
    const struct rh_bytes *argument = message->argument;
    const size_t count = message->argument_count;

    if (count == 0) {
        run_line(c, message->payload);
    } else if (count == 1) {
        run_command(c, argument[0], (struct kv_words){0});
    } else { // behind the key
        run_command(c, argument[0], (struct kv_words){argument + 2, count - 2});
    }
}

static int kv_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct kv *kv = instance;
    const uint8_t exists = kv->exists ? 1 : 0;

    (void)actor;
    rh_out_put(out, &exists, sizeof exists);
    rh_out_put(out, kv->data, kv->size);
    return RH_OK;
}

static void kv_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct kv *kv = instance;

    (void)actor;
    (void)why;
    erase(kv);
    mem_free(kv);
}

const struct rh_actor_ops actor_kv = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "kv",
    .activate = kv_activate,
    .message = kv_message,
    .handoff = kv_handoff,
    .deactivate = kv_deactivate,
    .idle_ms = UINT32_MAX, // its state is nowhere else
    .brief = 1,
    .ahead = 1,
};
