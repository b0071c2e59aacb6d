/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a place for each reply that a connection owes, so that replies leave in
 * the order of the commands.
 */
#include "gateway/client/slots.h"

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/protocol/resp.h"

enum { SLOTS_START = 8 };

static struct slot *at(const struct slots *s, uint64_t number)
{
    return &s->ring[number & (s->cap - 1)];
}

void slots_grow(struct slots *s)
{
    struct slots old = *s;

    s->cap = old.cap == 0 ? SLOTS_START : old.cap * 2;
    s->ring = mem_new(s->cap, sizeof *s->ring);
    for (uint64_t n = old.head; n < old.tail; n++) {
        *at(s, n) = *at(&old, n);
    }
    mem_free(old.ring);
}

void slots_make_parts(struct slot *slot)
{
    slot->part = mem_new(slot->parts, sizeof *slot->part);
}

static void put_array(struct slot *slot, struct buffer *out)
{
    resp_put_array(out, slot->parts);
    for (size_t i = 0; i < slot->parts; i++) {
        buffer_put(out, slot->part[i].data, slot->part[i].size);
    }
}

static void put_reply(struct slot *slot, struct buffer *out)
{
    if (slot->failed) {
        buffer_put(out, slot->text.data, slot->text.size);
        return;
    }
    switch ((enum slot_shape)slot->shape) {
    case SLOT_OPAQUE:
    case SLOT_VALUE:
    case SLOT_BIND:
    case SLOT_LOCAL:
        buffer_put(out, slot->text.data, slot->text.size);
        break;
    case SLOT_SUM:
        resp_put_integer(out, slot->sum);
        break;
    case SLOT_ALL_OK:
        resp_put_simple(out, "OK");
        break;
    case SLOT_ARRAY:
        put_array(slot, out);
        break;
    }
}

static size_t slot_size(const struct slot *slot)
{
    size_t size = slot->text.size;

    for (size_t i = 0; slot->part != NULL && i < slot->parts; i++) {
        size += slot->part[i].size;
    }
    return size;
}

static void slot_fini(struct slot *slot)
{
    buffer_fini(&slot->text);
    for (size_t i = 0; slot->part != NULL && i < slot->parts; i++) {
        buffer_fini(&slot->part[i]);
    }
    mem_free(slot->part);
    *slot = (struct slot){0};
}

void slots_shrink(struct slots *s)
{
    mem_free(s->ring);
    s->ring = NULL;
    s->cap = 0;
}

bool slots_pop(struct slots *s, struct buffer *out)
{
    struct slot *slot = slots_front(s);

    if (slot == NULL || slot->left > 0) {
        return false;
    }
    put_reply(slot, out);
    ASSERT(s->size >= slot_size(slot));
    s->size -= slot_size(slot);
    slot_fini(slot);
    slots_skip(s);
    return true;
}

void slots_fini(struct slots *s)
{
    for (uint64_t n = s->head; n < s->tail; n++) {
        slot_fini(at(s, n));
    }
    mem_free(s->ring);
    *s = (struct slots){0};
}
