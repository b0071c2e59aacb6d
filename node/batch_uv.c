/* SPDX-License-Identifier: Apache-2.0 */
#include "node/batch_uv.h"

#include "base/mem.h"

enum { BYTES_KEPT_MAX = 4 * 1024 * 1024 }; /* more is given back when it is empty */

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
    b->count = 0;
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

void telling_put(struct telling *t, const struct entry *entry, struct bytes head, struct bytes rest)
{
    if (t->count == t->cap) {
        t->cap = t->cap == 0 ? 64 : t->cap * 2;
        t->item = mem_resize(t->item, t->cap * sizeof *t->item);
    }
    struct entry *e = &t->item[t->count++];
    *e = *entry;
    e->at = t->bytes.size;
    e->head_size = head.size;
    e->size = rest.size;
    buffer_put(&t->bytes, head.data, head.size);
    buffer_put(&t->bytes, rest.data, rest.size);
}

const struct entry *telling_take(struct telling *t)
{
    if (t->taken < t->count) {
        return &t->item[t->taken++];
    }
    t->taken = t->count = 0;
    empty(&t->bytes);
    return NULL;
}

struct bytes telling_head(const struct telling *t, const struct entry *e)
{
    return part(&t->bytes, e->at, e->head_size);
}

struct bytes telling_rest(const struct telling *t, const struct entry *e)
{
    return part(&t->bytes, e->at + e->head_size, e->size);
}

void telling_fini(struct telling *t)
{
    mem_free(t->item);
    buffer_fini(&t->bytes);
}
