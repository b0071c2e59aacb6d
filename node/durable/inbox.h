/* SPDX-License-Identifier: Apache-2.0
 *
 * What a durable actor has taken of other actors' outboxes: of each sender the number of the last
 * send. A sender's sends come in the order of their numbers (outbox.h), so that one number says of
 * each whether it was taken. It is a row of the store, in the commit of what the send changed.
 *
 * When there are too many senders, those that sent last the longest ago are forgotten. What one of
 * them had sent and sends again would be taken twice; but who sends again does so within seconds,
 * until it hears that it was taken.
 *
 * Pure.
 */
#ifndef NODE_DURABLE_INBOX_H
#define NODE_DURABLE_INBOX_H

#include "node/durable/values.h"

enum {
    INBOX_SENDERS_MAX = NAMED_VALUES_MAX, /* of one actor */
    INBOX_ID_MAX = 253, /* bytes of a sender's id: a row's key has its kind, too */
};

/* All zero but for inbox_init(). */
struct inbox {
    struct named_values senders; /* kind (2 bytes, the greatest first) and id -> number, turn */
    uint64_t turn;               /* of the last that was taken */
};

void inbox_init(struct inbox *i);
void inbox_fini(struct inbox *i);

/* True if the send was taken before. The id has 1..INBOX_ID_MAX bytes. */
bool inbox_has(const struct inbox *i, uint16_t kind, struct bytes id, uint64_t number);
/* Note that it is taken; one between two seals. */
void inbox_take(struct inbox *i, uint16_t kind, struct bytes id, uint64_t number);
/* Forget what was noted since the last seal. */
static inline void inbox_undo(struct inbox *i)
{
    named_values_undo(&i->senders);
}
static inline bool inbox_is_changed(const struct inbox *i)
{
    return named_values_are_changed(&i->senders);
}
/* Append what was noted, and who is forgotten (storage/actors/changes.h). */
void inbox_seal(struct inbox *i, struct buffer *out);
/* Add the rows that a store has. False: one of them is none of ours, or there are more than a seal
 * leaves. */
bool inbox_load(struct inbox *i, struct bytes all);

#endif
