/* SPDX-License-Identifier: Apache-2.0
 *
 * A table by name and a list by age of what was answered; marks of what was forgotten.
 */
#include "node/durable/answers.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "storage/actors/changes.h"
#include "wire/cursor.h"

#include <stdlib.h>

enum {
    KEY_SIZE = 16,  /* of a row: asker, number */
    MARKS_KEY = 1,  /* bytes of the key of the row that has the marks */
    HEAD_SIZE = 10, /* of a row: order, enum answer_known, code */
    MARK_SIZE = 16,
    SPARED_OF = 16,   /* one of so many more is forgotten at once: marks are written seldom */
    OLD_AT_ONCE = 64, /* old ones that one commit forgets */
};

struct saved_answer {
    struct table_link link;
    struct list_link in_all;
    struct request_name name;
    uint64_t order;
    uint64_t at_us;
    uint32_t size;
    uint8_t known; /* enum answer_known: KEPT, BEGUN or GONE */
    uint8_t code;
    uint8_t body[]; /* flexible */
};

static uint64_t hash_of(struct request_name name)
{
    return table_mix(name.asker ^ table_mix(name.number));
}

void answers_init(struct answers *a)
{
    *a = (struct answers){0};
    list_init(&a->all);
}

static void drop(struct answers *a, struct saved_answer *s)
{
    table_remove(&a->by_name, &s->link);
    list_remove(&s->in_all);
    a->count--;
    a->size -= s->size;
    mem_free(s);
}

static struct saved_answer *oldest(const struct answers *a)
{
    struct list_link *l = list_front(&a->all);

    return l == NULL ? NULL : CONTAINER_OF(l, struct saved_answer, in_all);
}

void answers_fini(struct answers *a)
{
    struct saved_answer *s;

    while ((s = oldest(a)) != NULL) {
        drop(a, s);
    }
    table_fini(&a->by_name);
    mem_free(a->mark);
}

static struct saved_answer *find(const struct answers *a, struct request_name name)
{
    struct table_link *l = table_first(&a->by_name, hash_of(name));

    for (; l != NULL; l = table_same(l)) {
        struct saved_answer *s = CONTAINER_OF(l, struct saved_answer, link);

        if (s->name.asker == name.asker && s->name.number == name.number) {
            return s;
        }
    }
    return NULL;
}

/* ---- marks ---- */

static bool is_fresh(uint64_t at_us, uint64_t now_us)
{
    return now_us - at_us < (uint64_t)ANSWERS_AGE_MS * 1000;
}

static size_t mark_of(const struct answers *a, uint64_t asker)
{
    size_t i = 0;

    while (i < a->mark_count && a->mark[i].asker != asker) {
        i++;
    }
    return i;
}

static void mark_remove(struct answers *a, size_t i)
{
    a->mark_count--;
    memmove(&a->mark[i], &a->mark[i + 1], (a->mark_count - i) * sizeof a->mark[0]);
}

static void mark(struct answers *a, struct request_name name, uint64_t now_us)
{
    struct answer_mark m = {.asker = name.asker, .number = name.number, .at_us = now_us};
    const size_t i = mark_of(a, name.asker);

    if (a->mark == NULL) {
        a->mark = mem_new(ANSWERS_MARKS_MAX, sizeof *a->mark);
    }
    if (i < a->mark_count) {
        m.number = a->mark[i].number > m.number ? a->mark[i].number : m.number;
        mark_remove(a, i);
    } else if (a->mark_count == ANSWERS_MARKS_MAX) {
        a->others = true;
        a->others_us = a->mark[0].at_us;
        mark_remove(a, 0);
    }
    a->mark[a->mark_count++] = m;
}

static bool was_forgotten(const struct answers *a, struct request_name name, uint64_t now_us)
{
    const size_t i = mark_of(a, name.asker);

    // Of an asker with a mark an older and greater one may have gone before.
    if (a->others && is_fresh(a->others_us, now_us)) {
        return true;
    }
    return i < a->mark_count && name.number <= a->mark[i].number &&
           is_fresh(a->mark[i].at_us, now_us);
}

enum answer_known answers_find(const struct answers *a, struct request_name name, uint64_t now_us,
                               uint8_t *code, struct bytes *body)
{
    const struct saved_answer *s = find(a, name);

    if (s == NULL) {
        return was_forgotten(a, name, now_us) ? ANSWER_GONE : ANSWER_NONE;
    }
    *code = s->code;
    *body = bytes_of(s->body, s->size);
    return (enum answer_known)s->known;
}

/* ---- rows ---- */

static void put_row(struct buffer *out, struct request_name name, bool gone, struct bytes bytes)
{
    uint8_t key[KEY_SIZE];
    const struct store_change c = {
        .of = CHANGE_ANSWER, .key = bytes_of(key, sizeof key), .gone = gone, .bytes = bytes};

    (void)store_u64(store_u64(key, name.asker), name.number);
    changes_put(out, &c);
}

static void put_answer(struct buffer *out, const struct saved_answer *s)
{
    struct buffer row = {0};
    uint8_t *at = buffer_reserve(&row, HEAD_SIZE + s->size);

    at = store_u64(at, s->order);
    at = store_u8(at, s->known);
    at = store_u8(at, s->code);
    bytes_copy(at, s->body, s->size);
    put_row(out, s->name, false, bytes_of(row.data, HEAD_SIZE + s->size));
    buffer_fini(&row);
}

/* An asker of 0 stands for all those that have no mark. */
static void put_marks(struct answers *a, uint64_t now_us, struct buffer *out)
{
    uint8_t marks[(ANSWERS_MARKS_MAX + 1) * MARK_SIZE];
    uint8_t *at = marks;

    while (a->mark_count > 0 && !is_fresh(a->mark[0].at_us, now_us)) {
        mark_remove(a, 0);
    }
    for (size_t i = 0; i < a->mark_count; i++) {
        at = store_u64(store_u64(at, a->mark[i].asker), a->mark[i].number);
    }
    if (a->others && is_fresh(a->others_us, now_us)) {
        at = store_u64(store_u64(at, 0), UINT64_MAX);
    }
    const struct store_change c = {.of = CHANGE_ANSWER,
                                   .key = bytes_of("", MARKS_KEY),
                                   .bytes = bytes_of(marks, (size_t)(at - marks))};
    changes_put(out, &c);
}

/* ---- changes ---- */

static struct saved_answer *add(struct answers *a, struct request_name name, struct bytes body)
{
    struct saved_answer *s = mem_new(1, sizeof *s + body.size);

    s->name = name;
    s->size = (uint32_t)body.size;
    bytes_copy(s->body, body.data, body.size);
    table_put(&a->by_name, &s->link, hash_of(name));
    list_push_back(&a->all, &s->in_all);
    a->count++;
    a->size += body.size;
    return s;
}

static void forget(struct answers *a, struct saved_answer *s, struct buffer *out)
{
    put_row(out, s->name, true, (struct bytes){0});
    drop(a, s);
}

/* The newest stays. */
static void make_room(struct answers *a, uint64_t now_us, struct buffer *out)
{
    const size_t most = mutant(M_ANSWERGONE) ? 1 : ANSWERS_MAX;
    const bool full = a->count > most || a->size > ANSWERS_SIZE_MAX;
    struct saved_answer *s = oldest(a);

    for (size_t i = 0; i < OLD_AT_ONCE && !is_fresh(s->at_us, now_us); i++, s = oldest(a)) {
        forget(a, s, out);
    }
    while (full && a->count > 1 &&
           (a->count > most - most / SPARED_OF || a->size > ANSWERS_SIZE_MAX - ANSWERS_BODY_MAX)) {
        s = oldest(a);
        mark(a, s->name, now_us);
        forget(a, s, out);
    }
    if (full) {
        put_marks(a, now_us, out);
    }
}

/* It takes the place of what was known of the request. */
static struct saved_answer *renew(struct answers *a, struct request_name name, struct bytes body,
                                  uint64_t now_us)
{
    struct saved_answer *s = find(a, name);

    if (s != NULL) {
        drop(a, s);
    }
    s = add(a, name, body);
    s->order = ++a->order;
    s->at_us = now_us;
    return s;
}

void answers_begin(struct answers *a, struct request_name name, uint64_t now_us, struct buffer *out)
{
    struct saved_answer *s = renew(a, name, (struct bytes){0}, now_us);

    s->known = ANSWER_BEGUN;
    put_answer(out, s);
    make_room(a, now_us, out);
}

void answers_save(struct answers *a, struct request_name name, uint8_t code, struct bytes body,
                  uint64_t now_us, struct buffer *out)
{
    const bool fits = body.size <= ANSWERS_BODY_MAX;
    struct saved_answer *s = renew(a, name, fits ? body : (struct bytes){0}, now_us);

    s->known = fits ? ANSWER_KEPT : ANSWER_GONE;
    s->code = code;
    put_answer(out, s);
    make_room(a, now_us, out);
}

/* ---- loading ---- */

static bool load_marks(struct answers *a, struct bytes marks, uint64_t now_us)
{
    struct reader in = {.at = marks.data, .left = marks.size};

    while (in.left > 0) {
        const uint64_t asker = get_u64(&in);
        const uint64_t number = get_u64(&in);

        if (in.bad || (asker != 0 && a->mark_count == ANSWERS_MARKS_MAX)) {
            return false;
        }
        if (asker == 0) {
            a->others = true;
            a->others_us = now_us;
        } else {
            mark(a, (struct request_name){asker, number}, now_us);
        }
    }
    return true;
}

static bool load_row(struct answers *a, const struct store_change *c, uint64_t now_us)
{
    struct reader key = {.at = c->key.data, .left = c->key.size};
    struct reader in = {.at = c->bytes.data, .left = c->bytes.size};
    const uint64_t asker = get_u64(&key);
    const struct request_name name = {asker, get_u64(&key)};
    const uint64_t order = get_u64(&in);
    const uint8_t known = get_u8(&in);
    const uint8_t code = get_u8(&in);

    if (key.bad || in.bad || key.left > 0 || known == ANSWER_NONE || known > ANSWER_GONE) {
        return false;
    }
    struct saved_answer *s = add(a, name, bytes_of(in.at, in.left));
    s->order = order;
    s->at_us = now_us;
    s->known = known;
    s->code = code;
    a->order = order > a->order ? order : a->order;
    return true;
}

static int by_order(const void *a, const void *b)
{
    const struct saved_answer *const *const left = a;
    const struct saved_answer *const *const right = b;

    return (*left)->order < (*right)->order ? -1 : 1;
}

/* They came in the order of their keys. */
static void sort(struct answers *a)
{
    struct saved_answer **all = mem_new(a->count + 1, sizeof(struct saved_answer *));
    struct list_link *l;
    size_t count = 0;

    while ((l = list_pop_front(&a->all)) != NULL) {
        all[count++] = CONTAINER_OF(l, struct saved_answer, in_all);
    }
    qsort(all, count, sizeof(struct saved_answer *), by_order);
    for (size_t i = 0; i < count; i++) {
        list_push_back(&a->all, &all[i]->in_all);
    }
    mem_free(all);
}

bool answers_load(struct answers *a, struct bytes all, uint64_t now_us)
{
    struct store_change c;

    while (changes_next(&all, &c)) {
        const bool good = c.of != CHANGE_ANSWER     ? true
                          : c.key.size == MARKS_KEY ? load_marks(a, c.bytes, now_us)
                                                    : load_row(a, &c, now_us);

        if (!good) {
            return false;
        }
    }
    sort(a);
    return true;
}
