/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of work between the protocol thread and a worker, without an
 * allocation for each.
 */
#include "node/worker/batch_uv.h"

#include "base/mem.h"

#include <string.h>

enum {
    BYTES_KEPT_MAX = 4 * 1024 * 1024, /* more is given back when it is empty */
    CHUNK_BYTES = 32 * 1024,          /* what a chunk's entries come with, as a rule */
    SPARE_CHUNKS_MAX = 64,
};

static struct bytes part(const struct buffer *b, size_t at, size_t size)
{
    return bytes_of(size == 0 ? NULL : b->data + at, size);
}

static void empty(struct buffer *bytes)
{
    if (bytes->cap > BYTES_KEPT_MAX) {
        buffer_fini(bytes);
    }
    buffer_clear(bytes);
}

void batch_put(struct batch *b, const struct post *post, const uint64_t *chain, struct bytes bytes)
{
    if (b->count == b->cap) {
        b->cap = b->cap == 0 ? 64 : b->cap * 2;
        b->item = mem_resize(b->item, b->cap * sizeof *b->item);
    }
    struct post *p = &b->item[b->count++];
    *p = *post;
    p->at = b->bytes.size;
    p->size = bytes.size;
    b->brief_count += p->brief ? 1 : 0;
    buffer_put(&b->bytes, chain, post->chain_count * sizeof *chain);
    buffer_put(&b->bytes, bytes.data, bytes.size);
}

static size_t chain_size(const struct post *p)
{
    return p->chain_count * sizeof(uint64_t);
}

struct bytes batch_chain(const struct batch *b, const struct post *p)
{
    return part(&b->bytes, p->at, chain_size(p));
}

struct bytes batch_bytes(const struct batch *b, const struct post *p)
{
    return part(&b->bytes, p->at + chain_size(p), p->size);
}

void batch_clear(struct batch *b)
{
    b->count = b->brief_count = 0;
    b->done = false;
    b->next = b->next_sent = NULL;
    empty(&b->bytes);
}

void batch_free(struct batch *b)
{
    if (b != NULL) {
        mem_free(b->item);
        buffer_fini(&b->bytes);
        mem_free(b);
    }
}

void batches_put(struct batches *l, struct batch *b)
{
    b->next = NULL;
    if (l->first == NULL) {
        l->first = b;
    } else {
        l->last->next = b;
    }
    l->last = b;
}

struct batch *batches_take(struct batches *l)
{
    struct batch *b = l->first;

    if (b != NULL) {
        l->first = b->next;
    }
    return b;
}

/* ---- the way back ---- */

static struct told_chunk *chunk_new(size_t cap)
{
    struct told_chunk *c = mem_resize(NULL, sizeof *c + cap);

    c->cap = cap;
    return c;
}

static struct told_chunk *chunk_take(struct telling *t, size_t size)
{
    struct told_chunk *c = NULL;

    if (size > CHUNK_BYTES) {
        c = chunk_new(size);
    } else {
        if (t->unused == NULL) {
            t->unused = atomic_exchange(&t->spare, NULL);
        }
        c = t->unused;
        if (c != NULL) {
            t->unused = c->spare;
            (void)atomic_fetch_sub(&t->spare_count, 1);
        } else {
            c = chunk_new(CHUNK_BYTES);
        }
    }
    c->size = 0;
    atomic_init(&c->ready, 0);
    atomic_init(&c->then, NULL);
    return c;
}

/* A large one was for what is large; and a burst need not be kept for ever. */
static void chunk_give(struct telling *t, struct told_chunk *c)
{
    if (c->cap != CHUNK_BYTES || atomic_load(&t->spare_count) >= SPARE_CHUNKS_MAX) {
        mem_free(c);
        return;
    }
    (void)atomic_fetch_add(&t->spare_count, 1);
    c->spare = atomic_load(&t->spare);
    while (!atomic_compare_exchange_weak(&t->spare, &c->spare, c)) {
    }
}

void telling_init(struct telling *t)
{
    *t = (struct telling){0};
    t->writing = t->reading = chunk_take(t, 0);
}

void telling_put(struct telling *t, const struct entry *entry, struct bytes head, struct bytes rest)
{
    struct told_chunk *c = t->writing;
    size_t count = atomic_load_explicit(&c->ready, memory_order_relaxed);

    if (count == TOLD_IN_CHUNK || c->cap - c->size < head.size + rest.size) {
        struct told_chunk *next = chunk_take(t, head.size + rest.size);

        t->writing = next;
        atomic_store_explicit(&c->then, next, memory_order_release); // It is the reader's now.
        c = next;
        count = 0;
    }
    struct entry *e = &c->item[count];
    *e = *entry;
    e->at = c->size;
    e->head_size = head.size;
    e->size = rest.size;
    if (head.size > 0) {
        memcpy(c->bytes + c->size, head.data, head.size);
    }
    if (rest.size > 0) {
        memcpy(c->bytes + c->size + head.size, rest.data, rest.size);
    }
    c->size += head.size + rest.size;
    atomic_store_explicit(&c->ready, count + 1, memory_order_release);
}

const struct entry *telling_take(struct telling *t)
{
    for (;;) {
        struct told_chunk *c = t->reading;
        // Looked at before `ready`: what is seen then is all that there will be in this one.
        struct told_chunk *then = atomic_load_explicit(&c->then, memory_order_acquire);

        if (t->taken < atomic_load_explicit(&c->ready, memory_order_acquire)) {
            return &c->item[t->taken++];
        }
        if (then == NULL) {
            return NULL;
        }
        t->reading = then;
        t->taken = 0;
        chunk_give(t, c);
    }
}

const struct entry *telling_peek(const struct telling *t, size_t ahead)
{
    const struct told_chunk *c = t->reading;
    const size_t at = t->taken + ahead;

    return at < atomic_load_explicit(&c->ready, memory_order_acquire) ? &c->item[at] : NULL;
}

struct bytes telling_head(const struct telling *t, const struct entry *e)
{
    return bytes_of(t->reading->bytes + e->at, e->head_size);
}

struct bytes telling_rest(const struct telling *t, const struct entry *e)
{
    return bytes_of(t->reading->bytes + e->at + e->head_size, e->size);
}

static void free_spares(struct told_chunk *c)
{
    while (c != NULL) {
        struct told_chunk *next = c->spare;

        mem_free(c);
        c = next;
    }
}

void telling_fini(struct telling *t)
{
    free_spares(t->unused);
    free_spares(atomic_load(&t->spare));
    while (t->reading != NULL) {
        struct told_chunk *next = atomic_load(&t->reading->then);

        mem_free(t->reading);
        t->reading = next;
    }
}
