/* SPDX-License-Identifier: Apache-2.0
 *
 * The sends of one durable actor that are not taken yet. Each is a row of the store from the commit
 * of the callback that sent it until a later commit, after its receiver has said that it has it.
 *
 *     rh_send_once   -outbox_put()-> NEW
 *     a claim        -outbox_load()-> WAITS
 *     NEW            -outbox_undo()-> gone
 *                    -outbox_seal(), outbox_submitted(): its commit is on its way-> COMMITTING
 *     COMMITTING     -outbox_committed()-> WAITS
 *     WAITS          -outbox_next()-> OUT
 *     OUT            -outbox_ended(), not taken-> WAITS: it is tried again, later
 *                    -outbox_ended(), taken-> TAKEN
 *     TAKEN          -a later commit deletes its row-> gone
 *
 * To one receiver they go one after the other, so they run there in the order in which they were
 * sent, though any of them may have to go again. Its number is a send's name at the receiver, which
 * saves it in the commit of what it changes (docs/decisions/091): so one that goes again after it
 * was taken is not taken twice. The number is made of the commit's, which no other commit of the
 * actor ever has.
 *
 * Pure.
 */
#ifndef NODE_DURABLE_OUTBOX_H
#define NODE_DURABLE_OUTBOX_H

#include "base/bytes.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    OUTBOX_MAX = 1024,                     /* sends of one actor */
    OUTBOX_SIZE_MAX = 16 * 1024 * 1024,    /* bytes of their ids and payloads */
    OUTBOX_HEAD_MAX = 2 + 1 + 255,         /* of a row, before the payload */
    OUTBOX_AGAIN_MIN_US = 50 * 1000,       /* from a try that failed to the next: twice as long */
    OUTBOX_AGAIN_MAX_US = 5 * 1000 * 1000, /* each time, up to that */
};

/* One of them. Borrowed until the outbox is changed. */
struct outbox_send {
    uint64_t number; /* never 0 */
    bool again;      /* it may have been taken before */
    uint16_t kind;
    struct bytes id;
    struct bytes payload;
};

/* All zero but for outbox_init(). */
struct actor_outbox {
    struct list fresh;  /* struct outgoing: of the callback that runs, */
    struct list sealed; /* … for the next commit, */
    struct list sent;   /* … in the commit that is on its way, */
    struct list waits;  /* … first of their receiver, to be tried at once, */
    struct list later;  /* … likewise, after a while, in the order of that, */
    struct list behind; /* … behind another one of the same receiver, */
    struct list out;    /* … that are being tried, */
    struct list taken;  /* … whose rows are to be deleted */
    uint64_t commit;    /* that outbox_seal() made numbers of last, … */
    uint32_t of_commit; /* … and how many */
    size_t count;       /* that are not taken */
    size_t size;        /* bytes of theirs */
};

void outbox_init(struct actor_outbox *o);
void outbox_fini(struct actor_outbox *o);

/* Copy a send; id of 1..255 bytes, the payload up to CHANGES_VALUE_MAX - OUTBOX_HEAD_MAX bytes.
 * False: there would be more than the limits above, and nothing is changed. */
bool outbox_put(struct actor_outbox *o, uint16_t kind, struct bytes id, struct bytes payload);
/* Forget what was put since the last seal. */
void outbox_undo(struct actor_outbox *o);
/* True if a seal would append something. */
bool outbox_is_changed(const struct actor_outbox *o);
/* Append what was put, and what is to be deleted (storage/actors/changes.h), for the commit of that
 * number; several seals may be for one. */
void outbox_seal(struct actor_outbox *o, uint64_t commit, struct buffer *out);
/* The commit of all that was sealed is on its way … */
void outbox_submitted(struct actor_outbox *o);
/* … and is done: what it has may be tried. */
void outbox_committed(struct actor_outbox *o);
/* Add the rows that a store has, in their order. False: one of them is none of ours. */
bool outbox_load(struct actor_outbox *o, struct bytes all);

/* Take the next that is to be tried now; outbox_ended() says what came of it. False: none is. */
bool outbox_next(struct actor_outbox *o, uint64_t now_us, struct outbox_send *send);
/* The try ended: its receiver has it, or else it is tried again after a while. A number that is
 * not tried is ignored. Returns how many tries of it have failed; 0 = it is taken. */
uint32_t outbox_ended(struct actor_outbox *o, uint64_t number, bool taken, uint64_t now_us);
/* When outbox_next() has one that it has not now; 0 = never by time alone. */
uint64_t outbox_wakes_us(const struct actor_outbox *o);

#endif
