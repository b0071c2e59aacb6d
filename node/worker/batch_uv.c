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

static void empty(struct buffer *bytes)
{
    if (bytes->cap > BYTES_KEPT_MAX) {
        buffer_fini(bytes);
    }
    buffer_clear(bytes);
}

void batch_put(struct batch *b, const struct submission *submission, struct bytes bytes)
{
    if (b->count == b->cap) {
        b->cap = b->cap == 0 ? 64 : b->cap * 2;
        b->item = mem_resize(b->item, b->cap * sizeof *b->item);
    }
    b->item[b->count++] =
        (struct queued){.submission = *submission, .at = b->bytes.size, .size = bytes.size};
    b->brief_count += submission->brief ? 1 : 0;
    buffer_put(&b->bytes, bytes.data, bytes.size);
}

struct bytes batch_bytes(const struct batch *b, const struct queued *q)
{
    return bytes_of(q->size == 0 ? NULL : b->bytes.data + q->at, q->size);
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

static struct completion_chunk *chunk_new(size_t cap)
{
    struct completion_chunk *c = mem_resize(NULL, sizeof *c + cap);

    c->cap = cap;
    return c;
}

static struct completion_chunk *chunk_take(struct completion_queue *q, size_t size)
{
    struct completion_chunk *c = NULL;

    if (size > CHUNK_BYTES) {
        c = chunk_new(size);
    } else {
        if (q->unused == NULL) {
            q->unused = atomic_exchange(&q->spare, NULL);
        }
        c = q->unused;
        if (c != NULL) {
            q->unused = c->spare;
            (void)atomic_fetch_sub(&q->spare_count, 1);
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
static void chunk_give(struct completion_queue *q, struct completion_chunk *c)
{
    if (c->cap != CHUNK_BYTES || atomic_load(&q->spare_count) >= SPARE_CHUNKS_MAX) {
        mem_free(c);
        return;
    }
    (void)atomic_fetch_add(&q->spare_count, 1);
    c->spare = atomic_load(&q->spare);
    while (!atomic_compare_exchange_weak(&q->spare, &c->spare, c)) {
    }
}

void completion_queue_init(struct completion_queue *q)
{
    *q = (struct completion_queue){0};
    q->writing = q->reading = chunk_take(q, 0);
}

void completion_queue_put(struct completion_queue *q, const struct completion *c)
{
    enum { ALIGNED = sizeof(uint64_t) };
    const size_t size = (completion_size(c) + ALIGNED - 1) / ALIGNED * ALIGNED;
    struct completion_chunk *chunk = q->writing;
    size_t count = atomic_load_explicit(&chunk->ready, memory_order_relaxed);

    if (count == CHUNK_COMPLETIONS || chunk->cap - chunk->size < size) {
        struct completion_chunk *next = chunk_take(q, size);

        q->writing = next;
        atomic_store_explicit(&chunk->then, next, memory_order_release); // It is the reader's now.
        chunk = next;
        count = 0;
    }
    completion_copy(c, &chunk->item[count], chunk->bytes + chunk->size);
    chunk->size += size;
    atomic_store_explicit(&chunk->ready, count + 1, memory_order_release);
}

const struct completion *completion_queue_take(struct completion_queue *q)
{
    for (;;) {
        struct completion_chunk *c = q->reading;
        // Looked at before `ready`: what is seen then is all that there will be in this one.
        struct completion_chunk *then = atomic_load_explicit(&c->then, memory_order_acquire);

        if (q->taken < atomic_load_explicit(&c->ready, memory_order_acquire)) {
            return &c->item[q->taken++];
        }
        if (then == NULL) {
            return NULL;
        }
        q->reading = then;
        q->taken = 0;
        chunk_give(q, c);
    }
}

const struct completion *completion_queue_peek(const struct completion_queue *q, size_t ahead)
{
    const struct completion_chunk *c = q->reading;
    const size_t at = q->taken + ahead;

    return at < atomic_load_explicit(&c->ready, memory_order_acquire) ? &c->item[at] : NULL;
}

static void free_spares(struct completion_chunk *c)
{
    while (c != NULL) {
        struct completion_chunk *next = c->spare;

        mem_free(c);
        c = next;
    }
}

void completion_queue_fini(struct completion_queue *q)
{
    free_spares(q->unused);
    free_spares(atomic_load(&q->spare));
    while (q->reading != NULL) {
        struct completion_chunk *next = atomic_load(&q->reading->then);

        mem_free(q->reading);
        q->reading = next;
    }
}
