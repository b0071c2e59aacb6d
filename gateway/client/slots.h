/* SPDX-License-Identifier: Apache-2.0
 *
 * The replies that a connection still owes, in the order of its commands.
 *
 * Answers come in any order; a slot that is not the first keeps its reply until
 * those before it are out. Slots are numbered from 0 and never reused.
 */
#ifndef GATEWAY_CLIENT_SLOTS_H
#define GATEWAY_CLIENT_SLOTS_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the answers of a command's parts make its reply. */
enum slot_shape {
    SLOT_OPAQUE, /* one part, bytes: a bulk */
    SLOT_VALUE,  /* one part, a value */
    SLOT_SUM,    /* integers: their sum */
    SLOT_ALL_OK, /* +OK when all are */
    SLOT_ARRAY,  /* one item a part */
    SLOT_BIND,   /* one part, of bind.c: the reply stands in `text` */
    SLOT_LOCAL,  /* no parts: the reply stands in `text` */
};

struct slot {
    uint8_t shape;    /* enum slot_shape */
    uint8_t protocol; /* of the reply: 2 or 3; of HTTP: enum http_form */
    uint16_t parts;
    uint16_t left;       /* parts not answered yet; 0 = ready */
    bool failed;         /* `text` is the first error */
    int64_t sum;         /* SUM */
    struct buffer text;  /* owned: the reply, unless it is made when it goes out */
    struct buffer *part; /* owned, ARRAY: rendered items; NULL otherwise */
};

struct slots {
    struct slot *ring; /* owned; NULL while empty and small. Free slots have no reply, nor parts */
    size_t cap;        /* power of two or 0 */
    uint64_t head;     /* number of the first */
    uint64_t tail;     /* number of the next new one */
    size_t size;       /* bytes of replies kept in them */
    bool local;        /* the last is LOCAL, and its reply is being written */
};

void slots_fini(struct slots *s);

static inline size_t slots_count(const struct slots *s)
{
    return (size_t)(s->tail - s->head);
}

void slots_grow(struct slots *s);
void slots_make_parts(struct slot *slot);

/* Append one; the pointer is good until the next call. `number`, if not NULL, gets its number. */
static inline struct slot *slots_add(struct slots *s, enum slot_shape shape, uint16_t parts,
                                     uint64_t *number)
{
    if (slots_count(s) == s->cap) {
        slots_grow(s);
    }
    struct slot *slot = &s->ring[s->tail & (s->cap - 1)];

    if (number != NULL) {
        *number = s->tail;
    }
    s->tail++;
    slot->shape = (uint8_t)shape;
    slot->protocol = 2;
    slot->parts = parts;
    slot->left = parts;
    if (shape == SLOT_ARRAY) {
        slots_make_parts(slot);
    }
    return slot;
}

/* Append one of one part, for which there is a free slot. */
static inline struct slot *slots_put(struct slots *s, enum slot_shape shape)
{
    struct slot *slot = &s->ring[s->tail++ & (s->cap - 1)];

    slot->shape = (uint8_t)shape;
    slot->parts = slot->left = 1;
    return slot;
}

static inline struct slot *slots_front(const struct slots *s) /* NULL = none */
{
    return s->head == s->tail ? NULL : &s->ring[s->head & (s->cap - 1)];
}
static inline struct slot *slots_at(const struct slots *s, uint64_t number) /* NULL = gone */
{
    return number - s->head >= s->tail - s->head ? NULL : &s->ring[number & (s->cap - 1)];
}
static inline bool slots_ready(const struct slots *s) /* the first can go out */
{
    return s->head != s->tail && s->ring[s->head & (s->cap - 1)].left == 0;
}
/* None is left: an idle connection keeps little. */
void slots_shrink(struct slots *s);
/* The first is answered, and its reply is out: it never stood in the slot. */
static inline void slots_skip(struct slots *s)
{
    enum { KEEP = 32 };

    s->head++;
    if (__builtin_expect(s->head == s->tail && s->cap > KEEP, false)) {
        slots_shrink(s);
    }
}

/* Write out the first if it is ready and remove it; false: it is not, or there is none. */
bool slots_pop(struct slots *s, struct buffer *out);

#endif
