/* SPDX-License-Identifier: Apache-2.0
 *
 * Transactions: which ones is this node part of, what does it hold for them, and how did they end?
 * Specification §5.1, §5.2.
 *
 * txn.c takes the participant's messages and writes its memory on disk; hold.c does what one
 * transaction asks of actors, with hold_source.c and hold_target.c for the two ends of a move and
 * hold_ahead.c for what goes before the hold, hold_outcome.c for its end; chain.c lets calls pass
 * that a drain waits for.
 */
#ifndef NODE_HOST_TXNS_H
#define NODE_HOST_TXNS_H

#include "node/host/hold.h"
#include "node/host/host.h"

/* How fast images go ahead of holds: hold_ahead.c. */
struct ahead_pace {
    uint64_t at_us;    /* `room` is of that time */
    int64_t room;      /* bytes that may go; below 0: more went */
    size_t asked;      /* actors that are to answer, of all transactions */
    uint64_t asked_us; /* since then */
    uint64_t next_us;  /* not before that: the loop, or the workers, are behind */
    uint64_t sent;     /* images, since the start */
    uint64_t stood;    /* of these: their actors froze as they were then */
};

struct txns {
    struct participant participant;
    struct prepare parked[HOST_ACTIVE_MAX]; /* they wait for their base version */
    size_t parked_count;
    struct host_disk disk;
    uint64_t disk_ticket;
    bool disk_dirty; /* `active` shrank */
    uint64_t poll_us;
    struct list stale; /* struct staging; only under M_STALEWARM */
    bool local;        /* M_LOCAL: run it whoever owns it */
    struct ahead_pace ahead;
    struct image_store images; /* of live actors, until they are taken or the hold ends */
    uint64_t images_dropped[IMAGE_DROP_COUNT];
    uint64_t held_total;
    uint64_t hold_us_max;
    struct metrics_times holds[HOLD_ENDS];
};

static inline struct hold *hold_of(const struct part *part)
{
    return part->user;
}

/* ---- txn.c ---- */

void txns_init(struct txns *t, const struct host_disk *disk);
void txns_fini(struct txns *t);
/* Forget all transactions, with what is held for them. */
void txns_drop_all(struct txns *t);
/* The node was registered: numbers up to `floor` are over. The disk says so, too. */
void txn_begin_era(struct host *h, uint64_t floor);
void txn_on_prepare(struct host *h, int coordinator, const Rh__Prepare *message);
void txn_on_commit(struct host *h, const Rh__Commit *message);
void txn_on_cancel(struct host *h, const Rh__Cancel *message, uint64_t version);
void txn_on_poll_answer(struct host *h, const Rh__PollAnswer *message);
void txn_on_persisted(struct host *h, uint64_t ticket);
void txn_note_committed(struct host *h, const Rh__Delta *delta);
/* Settle what the configuration just adopted decides; examine what waited for it. */
void txn_adopt(struct host *h);
void txn_tick(struct host *h);
/* Ask another leader for the outcomes at the next tick. */
void txn_poll_soon(struct host *h);
void txn_vote(struct host *h, struct hold *hold, int coordinator);

/* ---- hold.c ---- */

/* All actors of its OUT arcs, one after the other. `a` NULL: the first. */
struct hold_cursor {
    const struct hold *hold;
    size_t arc;
    uint32_t cell;
    struct actor *next;
    bool begun;
};
struct actor *hold_next_actor(const struct host *h, struct hold_cursor *at);

enum { HOLD_SOME = 16 };

/* The next few, with what they need: hardly anything of a thousand actors is in the cache. What is
 * done to one of them ends no other. 0 = no more. */
size_t hold_some_actors(const struct host *h, struct hold_cursor *at,
                        struct actor *some[HOLD_SOME]);
void hold_tick(struct host *h, struct hold *hold);
/* Add `requests` to the number that waits with a transaction. */
static inline void hold_count(struct txns *t, size_t requests)
{
    t->held_total += requests;
}

/* ---- hold_source.c ---- */

/* The arc to a target whose link is not up: it can't vote, so it doesn't drain yet. Or NULL. */
const struct part_arc *hold_unreached(const struct host *h, const struct hold *hold);
/* Begin to drain the holds whose turn it is. */
void hold_next_turn(struct host *h);
/* The slot of a target whose link is not up, so that it can't vote and doesn't drain yet; or 0. */
uint16_t hold_awaits_link(const struct host *h, const struct hold *hold);
/* Take over the held cells of a superseded transaction, without release. */
void hold_take_over(struct host *h, struct hold *hold, struct hold *from);
/* The image of a frozen actor goes on its stream. */
void hold_on_frozen(struct host *h, struct actor *a);
/* Enough images are there, of actors that froze or were copied, to send them: they go some at a
 * time. Those left over go when none is waited for any more. */
bool hold_has_some(const struct handover_stream *s);
/* Send what the window allows. */
void hold_pump(struct host *h, struct handover_stream *s);
/* Send what the windows allow; vote when all is done. */
void hold_progress(struct host *h, struct hold *hold);
void hold_on_state_ack(struct host *h, uint64_t peer, const struct state_ack_record *ack);
void hold_on_peer_up(struct host *h, uint64_t incarnation);

/* ---- hold_ahead.c ---- */

/* Ask more actors for copies, as fast as that may go. */
void ahead_go_on(struct host *h);
/* An actor that was asked for a copy has answered, or can't any more. */
void ahead_on_answer(struct host *h, const struct actor *a);
/* An image of the actor, which is as it was when that was made. Borrowed. */
void ahead_on_copied(struct host *h, struct actor *a, struct image *image);
/* The actor ends, and its image went ahead. */
void ahead_on_removed(struct host *h, const struct actor *a);
/* The hold need not wait for it any more. */
bool ahead_is_over(const struct hold *hold);
/* True if a transaction here gives that cell away: images went ahead only of the actors of such
 * cells. */
bool ahead_gives(const struct host *h, uint32_t cell);
/* A batch that has not answered in the time of a whole round ends: someone may never answer. The
 * pause behind it is as long as for one that took all that time. */
void ahead_tick(struct host *h);

/* ---- hold_target.c ---- */

/* So many bytes that came are acknowledged before the end of a stream does. */
static inline size_t hold_ack_size(const struct host_config *config)
{
    return config->state_window / 16;
}

/* Tell the source what came. */
void hold_acknowledge(struct host *h, struct staging *s);
/* Take `count` records that came over that link, in order. */
void hold_on_state(struct host *h, uint64_t peer, const struct state_record *r, size_t count);

/* ---- hold_outcome.c ---- */

/* Follow the current configuration; closes the book's entry. */
void hold_settle(struct host *h, struct part *part);

/* ---- chain.c ---- */

/* The drain waits for who waits for this request. */
bool chain_passes(const struct host *h, const struct request_record *r, const struct hold *hold);
/* The transaction begins to drain: look at what waited for its actors before. */
void chain_begin(struct host *h, struct hold *hold);
void chain_tick(struct host *h, struct hold *hold);

#endif
