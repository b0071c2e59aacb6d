/* SPDX-License-Identifier: Apache-2.0
 *
 * What the asker's files share. Nobody else includes this.
 */
#ifndef STREAM_INSIDE_H
#define STREAM_INSIDE_H

#include "stream/steady.h"

static inline bool slot_is_sent(const struct stream_slot *s)
{
    return s->state == SLOT_SENT || s->state == SLOT_SETTLES;
}
static inline uint64_t slot_session(const struct stream_slot *s)
{
    return load_u64(s->record + 8);
}
struct stream_entity slot_entity(const struct stream_slot *s);

/* ---- asker.c */

/* Number one that waited, and put its bytes into the stream's chunk. */
void slot_send(struct stream_asker *a, struct stream_slot *s, struct stream_client *c);
/* Take one out of its stream; the bytes are its own from now on. */
void slot_withdraw(struct stream_asker *a, struct stream_slot *s);
/* Free one that is over. */
void slot_free(struct stream_asker *a, struct stream_slot *s);
/* Nobody knows whether one ran: it is replied to, or asked again. */
void slot_unknown(struct stream_asker *a, struct stream_slot *s);
/* The stream of a SENT one is dead (R14). */
void slot_lost(struct stream_asker *a, struct stream_slot *s);
/* A server does not know of one: it is sent again, unless it settles or is forwarded. */
void slot_untaken(struct stream_asker *a, struct stream_slot *s);

/* ---- lanes.c */

/* One that is not SENT waits from now on. If its owner's stream had it, then for so long at least,
 * or until another owns it, or a ring of that version is adopted (0 = none). */
void lanes_wait(struct stream_asker *a, struct stream_slot *s, uint64_t rest_ms, uint64_t version);
/* One that waits is given up. */
void lanes_forget(struct stream_asker *a, struct stream_slot *s);
/* One that was SENT is not any more. */
void lanes_ended(struct stream_asker *a, const struct stream_slot *s, struct stream_client *c);
/* Those of the stream that wait for room, or for it to be joined, may try. */
void lanes_feed(struct stream_asker *a, struct stream_client *c);
void lanes_drop_all(struct stream_asker *a);
void lanes_check(const struct stream_asker *a);

#endif
