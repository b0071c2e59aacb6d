/* SPDX-License-Identifier: Apache-2.0
 *
 * The short way of a request through its asker, inline: asked where nothing keeps it back, and
 * answered by who ran it. What else may come of one is asker.h's.
 */
#ifndef STREAM_STEADY_H
#define STREAM_STEADY_H

#include "stream/asker.h"

#include <stddef.h>
#include <string.h>

/* ---- what the long way does likewise */

/* Make free slots. (asker.c, as the next) */
void asker_grow(struct stream_asker *a);
/* Begin another frame of the stream, for a record of that size. If its log is too long, what is
 * unanswered in the oldest chunk pins that: it is copied out (R18). */
void asker_grow_log(struct stream_asker *a, struct stream_client *c, size_t size);
static inline uint64_t slot_rid(const struct stream_asker *a, const struct stream_slot *s)
{
    return s->order << STREAM_SLOT_BITS | (uint64_t)(s - a->slot);
}

/* A slot for a request of that size, which is neither sent nor waits yet; there is a free one. */
__attribute__((always_inline)) static inline struct stream_slot *
slot_take(struct stream_asker *a, uint64_t position, size_t size)
{
    struct stream_slot *s = &a->slot[a->spare - 1];

    a->spare = s->next;
    if (__builtin_expect(s->next != 0, true)) {
        __builtin_prefetch(&a->slot[s->next - 1], 1);
    }
    a->under_way++;
    s->position = position;
    s->size = (uint32_t)size;
    s->order = ++a->order;
    s->forward = false;
    s->maybe = false;
    s->refusals = 0;
    return s;
}

/* Number a request, which is SENT then. Returns where its record goes. */
__attribute__((always_inline)) static inline uint8_t *
slot_number(struct stream_asker *a, struct stream_slot *s, struct stream_client *c)
{
    const size_t size = s->size;

    if (__builtin_expect(sendlog_left(&c->log) < size, false)) {
        asker_grow_log(a, c, size);
    }
    uint8_t *at = sendlog_at(&c->log);

    s->record = at;
    s->chunk = c->log.tail;
    s->chunk->live++;
    s->number = c->log.next;
    s->stream = c->index;
    s->state = SLOT_SENT;
    c->count++;
    c->size += size;
    sendlog_put(&c->log, size);
    return at;
}

/* An answer is at least as large as the last: a server must not owe more than there is room for. */
__attribute__((always_inline)) static inline void client_learn_reply(struct stream_client *c,
                                                                     size_t size)
{
    enum { DECAY = 16 };

    c->reply_size =
        size >= c->reply_size ? size : c->reply_size - (c->reply_size - size + DECAY - 1) / DECAY;
}

/* Free that slot, of one that is over; its record is in a chunk, or its own. */
__attribute__((always_inline)) static inline void slot_empty(struct stream_asker *a,
                                                             struct stream_slot *s, uint32_t slot)
{
    s->chunk = NULL;
    s->record = NULL;
    s->state = SLOT_FREE;
    s->next = a->spare;
    a->spare = slot + 1;
}

/* ---- the short way */

/* Take a plain request as asker_ask() does, for a stream that takes it by client_takes(), while
 * there is a free slot, and no lane has a record. Returns its slot. */
__attribute__((always_inline)) static inline uint32_t
asker_ask_taken(struct stream_asker *a, struct stream_client *to, const struct stream_plain r,
                uint64_t position, uint64_t ticket)
{
    const uint32_t slot = a->spare - 1;
    struct stream_slot *s = slot_take(a, position, stream_plain_size(&r));

    s->ticket = ticket;
    stream_plain_store(slot_number(a, s, to), s->order << STREAM_SLOT_BITS | slot, &r);
    return slot;
}

/* Where a slot is: in its stream, its state, and that it is no forward, in one word. */
static inline uint32_t slot_place(const struct stream_slot *s)
{
    uint32_t place;

    memcpy(&place, (const uint8_t *)s + offsetof(struct stream_slot, stream), sizeof place);
    return place;
}
_Static_assert(offsetof(struct stream_slot, forward) == offsetof(struct stream_slot, stream) + 3 &&
                   offsetof(struct stream_slot, state) == offsetof(struct stream_slot, stream) + 2,
               "one word");

/* Of a request that was SENT in that stream, and is no forward. */
static inline uint32_t client_place(const struct stream_client *c)
{
    const struct stream_slot sent = {.stream = c->index, .state = SLOT_SENT};

    return slot_place(&sent);
}

/* The request that an answer with that name is for, if it ran and is in that client_place(): to be
 * ended by slot_ran(). NULL = asker_answer() is to take it; so it is where the answer's number is
 * one that was read before, or a lane is in trouble. */
__attribute__((always_inline)) static inline struct stream_slot *
slot_that_ran(const struct stream_asker *a, uint32_t place, uint64_t rid, uint8_t code)
{
    const size_t index = rid & STREAM_SLOT_MASK;

    if (__builtin_expect(code > ANSWER_APP_ERROR || index >= a->slot_cap, false)) {
        return NULL;
    }
    struct stream_slot *s = &a->slot[index];
    const bool sent =
        slot_place(s) == place && s->order == rid >> STREAM_SLOT_BITS && s->chunk != NULL;

    return __builtin_expect(sent, true) ? s : NULL;
}

/* The request in that slot has been replied to, with an answer of that size: end it. client_ran()
 * counts it. */
__attribute__((always_inline)) static inline void
slot_ran(struct stream_asker *a, struct stream_client *c, uint32_t slot, size_t size)
{
    struct stream_slot *s = &a->slot[slot];
    struct stream_chunk *chunk = s->chunk;

    client_learn_reply(c, size);
    c->size -= s->size;
    slot_empty(a, s, slot);
    if (__builtin_expect(--chunk->live == 0, false) && chunk == c->log.head) {
        sendlog_free(&c->log, UINT64_MAX);
    }
}

/* So many have ended by slot_ran(), one behind the other; that is the number of the last answer. */
static inline void client_ran(struct stream_asker *a, struct stream_client *c, uint32_t count,
                              uint64_t number)
{
    c->log.said.ack = number;
    c->count -= count;
    a->under_way -= count;
}

#endif
