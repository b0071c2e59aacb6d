/* SPDX-License-Identifier: Apache-2.0
 *
 * A store of durable actors in memory, which answers when it is told to, and what it is told to:
 * slow, full, with answers that are lost.
 */
#ifndef TESTS_NODE_MEMORY_STORE_H
#define TESTS_NODE_MEMORY_STORE_H

#include "base/mem.h"
#include "node/durable/values.h"
#include "node/runtime/runtime.h"
#include "storage/actors/changes.h"
#include "storage/actors/store.h"
#include "tests/test.h"

#include <stdio.h>

/* Of one actor. */
struct memory_store {
    struct list asked; /* struct store_task */
    size_t count;      /* asked so far */
    uint64_t fence;
    uint64_t number;
    struct named_values table[CHANGE_COUNT]; /* bytes of an alarm: struct memory_alarm first */
};

struct memory_alarm {
    uint64_t due_ms;
    uint64_t every_ms;
};

static inline void memory_store_open(struct memory_store *s)
{
    *s = (struct memory_store){0};
    list_init(&s->asked);
    for (size_t of = 0; of < CHANGE_COUNT; of++) {
        named_values_init(&s->table[of]);
    }
}

static inline void memory_store_put(void *context, struct store_task *t)
{
    struct memory_store *s = context;

    s->count++;
    list_push_back(&s->asked, &t->link);
}

static inline size_t memory_store_waiting(const struct memory_store *s)
{
    size_t count = 0;

    for (struct list_link *l = list_front(&s->asked); l != NULL; l = list_next(&s->asked, l)) {
        count++;
    }
    return count;
}

static inline void memory_store_load(const struct memory_store *s, struct store_task *t,
                                     enum change_of of)
{
    struct bytes key = {0};
    struct bytes bytes = {0};

    while (named_values_next(&s->table[of], key, &key, &bytes)) {
        struct store_change c = {.of = of, .key = key, .bytes = bytes};
        struct memory_alarm alarm;

        if (of == CHANGE_ALARM) {
            memcpy(&alarm, bytes.data, sizeof alarm);
            c.due_ms = alarm.due_ms;
            c.every_ms = alarm.every_ms;
            c.bytes = bytes_of(bytes.data + sizeof alarm, bytes.size - sizeof alarm);
        }
        changes_put(&t->bytes, &c);
    }
}

static inline void memory_store_claim(struct memory_store *s, struct store_task *t)
{
    t->result = t->fence >= s->fence ? STORE_DONE : STORE_FENCED;
    if (t->result == STORE_DONE) {
        s->fence = t->fence;
        t->number = s->number;
        for (size_t of = 0; of < CHANGE_COUNT; of++) {
            memory_store_load(s, t, (enum change_of)of);
        }
    }
}

static inline void memory_store_set(struct memory_store *s, const struct store_change *c)
{
    const struct memory_alarm alarm = {c->due_ms, c->every_ms};
    struct buffer bytes = {0};

    if (c->of == CHANGE_ALARM) {
        buffer_put(&bytes, &alarm, sizeof alarm);
    }
    buffer_put(&bytes, c->bytes.data, c->bytes.size);
    assert_int_equal(named_values_put(&s->table[c->of], c->key, buffer_bytes(&bytes)),
                     NAMED_PUT_DONE);
    buffer_fini(&bytes);
}

static inline void memory_store_commit(struct memory_store *s, struct store_task *t)
{
    struct bytes all = buffer_bytes(&t->bytes);
    struct store_change c;
    struct buffer unused = {0};

    t->result = t->fence == s->fence && t->number == s->number + 1 ? STORE_DONE : STORE_FENCED;
    while (t->result == STORE_DONE && changes_next(&all, &c)) {
        if (c.gone) {
            (void)named_values_delete(&s->table[c.of], c.key);
        } else {
            memory_store_set(s, &c);
        }
    }
    s->number += t->result == STORE_DONE ? 1 : 0;
    for (size_t of = 0; of < CHANGE_COUNT; of++) {
        named_values_seal(&s->table[of], &unused);
    }
    buffer_fini(&unused);
}

/* Do the first that was asked for, and give it back; the runtime has not seen it yet. */
static inline void memory_store_do(struct memory_store *s)
{
    struct list_link *link = list_pop_front(&s->asked);

    assert_non_null(link);
    struct store_task *t = CONTAINER_OF(link, struct store_task, link);
    if (t->verb == STORE_CLAIM) {
        memory_store_claim(s, t);
    } else {
        memory_store_commit(s, t);
    }
    runtime_stored(t);
}

/* Don't do the first, and give it back with that result. */
static inline void memory_store_refuse(struct memory_store *s, enum store_result result)
{
    struct list_link *link = list_pop_front(&s->asked);

    assert_non_null(link);
    struct store_task *t = CONTAINER_OF(link, struct store_task, link);
    t->result = (uint8_t)result;
    runtime_stored(t);
}

/* The value, up to its size, or "" */
static inline const char *memory_store_text(const struct memory_store *s, const char *key)
{
    static char text[64];
    struct bytes bytes = {0};

    (void)named_values_get(&s->table[CHANGE_VALUE], bytes_of(key, strlen(key)), &bytes);
    assert_true(bytes.size < sizeof text);
    memset(text, 0, sizeof text);
    bytes_copy(text, bytes.data, bytes.size);
    return text;
}

/* "due every payload" of an alarm, or "". */
static inline const char *memory_store_alarm(const struct memory_store *s, const char *name)
{
    static char text[96];
    struct bytes bytes = {0};
    struct memory_alarm alarm;

    text[0] = '\0';
    if (named_values_get(&s->table[CHANGE_ALARM], bytes_of(name, strlen(name)), &bytes)) {
        memcpy(&alarm, bytes.data, sizeof alarm);
        (void)snprintf(text,
                       sizeof text,
                       "%u %u %.*s",
                       (unsigned)alarm.due_ms,
                       (unsigned)alarm.every_ms,
                       (int)(bytes.size - sizeof alarm),
                       (const char *)bytes.data + sizeof alarm);
    }
    return text;
}

static inline void memory_store_close(struct memory_store *s)
{
    struct list_link *link;

    while ((link = list_pop_front(&s->asked)) != NULL) {
        store_task_free(CONTAINER_OF(link, struct store_task, link));
    }
    for (size_t of = 0; of < CHANGE_COUNT; of++) {
        named_values_fini(&s->table[of]);
    }
}

#endif
