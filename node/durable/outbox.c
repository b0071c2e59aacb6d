/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of sends, by what each waits for; one is in one of them at any time.
 */
#include "node/durable/outbox.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "storage/actors/changes.h"

#include <string.h>

enum { NUMBER_SIZE = 8, PLACE_BITS = 16, TRIES_MAX = 16 };

struct outgoing {
    struct list_link link;   /* in one of the outbox's lists */
    struct outgoing *ahead;  /* the one before it to the same receiver; NULL = it is the first */
    struct outgoing *behind; /* the other way round */
    uint64_t number;
    uint64_t at_us; /* in `later`: until then */
    uint32_t tries; /* that ended without being taken */
    bool loaded;    /* from the store: an owner before may have tried it */
    bool committed;
    size_t size;    /* bytes of all below */
    uint8_t head[]; /* flexible: kind (2 bytes, low first), size of the id, the id, the payload */
};

static struct outgoing *outgoing_of(struct list_link *link)
{
    return CONTAINER_OF(link, struct outgoing, link);
}

static struct bytes id_of(const struct outgoing *g)
{
    return bytes_of(g->head + 3, g->head[2]);
}

static struct bytes payload_of(const struct outgoing *g)
{
    const size_t before = 3 + (size_t)g->head[2];

    return bytes_of(g->head + before, g->size - before);
}

static bool same_receiver(const struct outgoing *a, const struct outgoing *b)
{
    return memcmp(a->head, b->head, 2) == 0 && bytes_equal(id_of(a), id_of(b));
}

void outbox_init(struct actor_outbox *o)
{
    list_init(&o->fresh);
    list_init(&o->sealed);
    list_init(&o->sent);
    list_init(&o->waits);
    list_init(&o->later);
    list_init(&o->behind);
    list_init(&o->out);
    list_init(&o->taken);
}

static void drop_all(struct list *l)
{
    struct list_link *link;

    while ((link = list_pop_front(l)) != NULL) {
        mem_free(outgoing_of(link));
    }
}

void outbox_fini(struct actor_outbox *o)
{
    struct list *const all[] = {
        &o->fresh, &o->sealed, &o->sent, &o->waits, &o->later, &o->behind, &o->out, &o->taken};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        drop_all(all[i]);
    }
}

/* ---- who is behind whom ---- */

/* The newest of the list that is for the same receiver, and has none behind it. */
static struct outgoing *last_in(const struct list *l, const struct outgoing *g)
{
    for (struct list_link *at = list_front(l); at != NULL; at = list_next(l, at)) {
        struct outgoing *other = outgoing_of(at);

        if (other->behind == NULL && same_receiver(other, g)) {
            return other;
        }
    }
    return NULL;
}

static void stand_behind(struct actor_outbox *o, struct outgoing *g)
{
    struct list *const all[] = {
        &o->fresh, &o->sealed, &o->sent, &o->waits, &o->later, &o->behind, &o->out};

    for (size_t i = 0; i < sizeof all / sizeof all[0] && g->ahead == NULL; i++) {
        g->ahead = last_in(all[i], g);
    }
    if (g->ahead != NULL) {
        g->ahead->behind = g;
    }
}

/* It is committed: it may be tried once it is the first of its receiver. */
static void ready(struct actor_outbox *o, struct outgoing *g)
{
    list_push_back(g->ahead == NULL ? &o->waits : &o->behind, &g->link);
}

/* It is not among those that wait any more: the next one of its receiver is the first. */
static void step_out(struct actor_outbox *o, struct outgoing *g)
{
    struct outgoing *next = g->behind;

    o->count--;
    o->size -= g->size;
    if (g->ahead != NULL) {
        g->ahead->behind = next;
    }
    if (next != NULL) {
        next->ahead = g->ahead;
    }
    if (next != NULL && next->ahead == NULL && next->committed) {
        list_remove(&next->link);
        ready(o, next);
    }
    g->ahead = g->behind = NULL;
}

/* ---- put, undo ---- */

static struct outgoing *outgoing_new(struct actor_outbox *o, struct bytes head, struct bytes id,
                                     struct bytes payload)
{
    const size_t size = head.size + id.size + payload.size;
    struct outgoing *g = mem_new(1, sizeof *g + size);

    g->size = size;
    bytes_copy(g->head, head.data, head.size);
    bytes_copy(g->head + head.size, id.data, id.size);
    bytes_copy(g->head + head.size + id.size, payload.data, payload.size);
    stand_behind(o, g);
    o->count++;
    o->size += size;
    return g;
}

bool outbox_put(struct actor_outbox *o, uint16_t kind, struct bytes id, struct bytes payload)
{
    const uint8_t head[] = {(uint8_t)(kind & 0xff), (uint8_t)(kind >> 8), (uint8_t)id.size};
    const size_t size = sizeof head + id.size + payload.size;

    ASSERT(id.size >= 1 && id.size <= UINT8_MAX && size <= CHANGES_VALUE_MAX);
    if (o->count >= OUTBOX_MAX || o->size + size > OUTBOX_SIZE_MAX) {
        return false;
    }
    list_push_back(&o->fresh, &outgoing_new(o, bytes_of(head, sizeof head), id, payload)->link);
    return true;
}

void outbox_undo(struct actor_outbox *o)
{
    struct list_link *link;

    while ((link = list_pop_front(&o->fresh)) != NULL) {
        step_out(o, outgoing_of(link));
        mem_free(outgoing_of(link));
    }
}

/* ---- commits ---- */

bool outbox_is_changed(const struct actor_outbox *o)
{
    return !list_empty(&o->fresh) || !list_empty(&o->taken);
}

/* Keys in the order of their numbers. */
static void put_row(struct buffer *out, const struct outgoing *g, bool gone)
{
    uint8_t key[NUMBER_SIZE];

    for (size_t i = 0; i < sizeof key; i++) {
        key[i] = (uint8_t)(g->number >> (8 * (sizeof key - 1 - i)));
    }
    const struct store_change c = {
        .of = CHANGE_SEND,
        .key = bytes_of(key, sizeof key),
        .gone = gone,
        .bytes = bytes_of(g->head, gone ? 0 : g->size),
    };
    changes_put(out, &c);
}

void outbox_seal(struct actor_outbox *o, uint64_t commit, struct buffer *out)
{
    struct list_link *link;

    if (commit != o->commit) {
        o->commit = commit;
        o->of_commit = 0;
    }
    while ((link = list_pop_front(&o->fresh)) != NULL) {
        struct outgoing *g = outgoing_of(link);

        g->number = (commit << PLACE_BITS) + ++o->of_commit;
        put_row(out, g, false);
        list_push_back(&o->sealed, link);
    }
    while ((link = list_pop_front(&o->taken)) != NULL) {
        put_row(out, outgoing_of(link), true);
        mem_free(outgoing_of(link));
    }
}

void outbox_submitted(struct actor_outbox *o)
{
    list_splice_back(&o->sent, &o->sealed);
}

void outbox_committed(struct actor_outbox *o)
{
    struct list_link *link;

    while ((link = list_pop_front(&o->sent)) != NULL) {
        outgoing_of(link)->committed = true;
        ready(o, outgoing_of(link));
    }
}

static uint64_t number_of(struct bytes key)
{
    uint64_t number = 0;

    for (size_t i = 0; i < key.size; i++) {
        number = number << 8 | key.data[i];
    }
    return number;
}

/* As another program may have written it. */
static bool is_row(const struct store_change *c)
{
    return c->key.size == NUMBER_SIZE && number_of(c->key) != 0 && c->bytes.size >= 3 &&
           c->bytes.data[2] >= 1 && c->bytes.size >= 3 + (size_t)c->bytes.data[2];
}

bool outbox_load(struct actor_outbox *o, struct bytes all)
{
    const struct bytes none = {0};
    struct store_change c;

    while (changes_next(&all, &c)) {
        if (c.of != CHANGE_SEND) {
            continue;
        }
        if (!is_row(&c)) {
            return false;
        }
        if (mutant(M_OUTBOXLOST)) {
            continue;
        }
        struct outgoing *g = outgoing_new(o, c.bytes, none, none);
        g->number = number_of(c.key);
        g->loaded = g->committed = true;
        ready(o, g);
    }
    return true;
}

/* ---- tries ---- */

static void wake(struct actor_outbox *o, uint64_t now_us)
{
    struct list_link *link;

    while ((link = list_front(&o->later)) != NULL && outgoing_of(link)->at_us <= now_us) {
        list_remove(link);
        list_push_back(&o->waits, link);
    }
}

bool outbox_next(struct actor_outbox *o, uint64_t now_us, struct outbox_send *send)
{
    struct list_link *link;

    wake(o, now_us);
    link = list_pop_front(&o->waits);
    if (link == NULL) {
        return false;
    }
    const struct outgoing *g = outgoing_of(link);

    list_push_back(&o->out, link);
    *send = (struct outbox_send){
        .number = g->number,
        .again = g->loaded || g->tries > 0,
        .kind = (uint16_t)(g->head[0] | g->head[1] << 8),
        .id = id_of(g),
        .payload = payload_of(g),
    };
    return true;
}

static uint64_t pause_us(uint32_t tries)
{
    const uint64_t us = (uint64_t)OUTBOX_AGAIN_MIN_US << (tries < TRIES_MAX ? tries : TRIES_MAX);

    return us < OUTBOX_AGAIN_MAX_US ? us : OUTBOX_AGAIN_MAX_US;
}

/* In the order of when. */
static void put_off(struct actor_outbox *o, struct outgoing *g)
{
    struct list_link *before = &o->later.head;

    for (struct list_link *at = list_front(&o->later);
         at != NULL && outgoing_of(at)->at_us <= g->at_us;
         at = list_next(&o->later, at)) {
        before = at;
    }
    ASSERT(before->next != NULL); // a list is a ring
    list_insert_after(before, &g->link);
}

uint32_t outbox_ended(struct actor_outbox *o, uint64_t number, bool taken, uint64_t now_us)
{
    struct outgoing *g = NULL;

    for (struct list_link *at = list_front(&o->out); at != NULL && g == NULL;
         at = list_next(&o->out, at)) {
        g = outgoing_of(at)->number == number ? outgoing_of(at) : NULL;
    }
    if (g == NULL) {
        return 0;
    }
    list_remove(&g->link);
    if (taken) {
        step_out(o, g);
        list_push_back(&o->taken, &g->link);
        return 0;
    }
    g->at_us = now_us + pause_us(g->tries++);
    put_off(o, g);
    return g->tries;
}

uint64_t outbox_wakes_us(const struct actor_outbox *o)
{
    struct list_link *link = list_front(&o->later);

    return !list_empty(&o->waits) ? 1 : link == NULL ? 0 : outgoing_of(link)->at_us;
}
