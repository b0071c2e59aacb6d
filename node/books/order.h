/* SPDX-License-Identifier: Apache-2.0
 *
 * Order records: for each (session, actor), which of its requests ran last and
 * what was answered. They decide whether a request may run now, and answer
 * copies of what ran. Specification §5.3 steps 7 and 9.
 *
 * The owner runs seq when its predecessor ran (last >= prev), was given up
 * (prev < base), or there was none (prev == 0). Records move with their actor
 * (hole 37) and are forgotten when idle for longer than any copy lives.
 *
 * An answer is saved until the gateway says that it is finished with it (base),
 * and no longer than the bounds below allow. A copy of a request whose answer
 * is not kept any more is told so; it never runs a second time.
 *
 * Pure. The first small answer of a record takes no allocation.
 */
#ifndef NODE_BOOKS_ORDER_H
#define NODE_BOOKS_ORDER_H

#include "base/lookup.h"
#include "base/strand.h"
#include "base/table.h"
#include "node/books/waiting.h"

struct actor;

enum {
    ORDER_ANSWERS_MAX = 64,              /* saved answers of one record; the oldest goes */
    ORDER_ANSWERS_SIZE_MAX = 256 * 1024, /* bytes of them */
    ORDER_ANSWER_MAX = 64 * 1024,        /* a larger answer is not saved */
    ORDER_READ_ANSWER_MAX = 4 * 1024,    /* nor is one of a read: that can run again */
    ORDER_TOUCH_MS = 1000,
    ORDER_ANSWER_SMALL = 13, /* up to here it stands in the record itself */
};

/* The epoch of a record that orders nothing, but tells what its actor told others at a node where
 * it was: `last` is that incarnation, `base` its session there. It travels as all do. */
#define ORDER_TOLD UINT32_MAX

/* There are as many as actors, and more: 96 bytes, a line and a half of the cache. What is looked
 * at of others on the way to a record is in the first 32, which are always in one line. What few
 * records need stands in a part of its own. */
struct order {
    uint64_t session;
    uint32_t actor; /* handle */
    uint32_t same;  /* in the book's table */
    uint32_t handle;
    uint32_t touched_ms;         /* modulo 2^32 */
    struct strand_link of_actor; /* in the actor's list */
    uint64_t last;               /* seq that ran last, 0 = none */
    uint64_t base;               /* highest told: everything below is finished or given up */
    uint64_t own_seq;
    uint64_t own_fence;
    struct strand_link idle; /* in the book's list, longest idle first */
    uint32_t epoch;
    uint32_t more;    /* its struct order_more; 0 = none */
    bool running : 1; /* one of its requests runs */
    bool used : 1;    /* `touched_ms` is set */
    bool own : 1;     /* the newest answer is saved here */
    uint8_t own_code; /* enum answer_code */
    uint8_t own_size;
    uint8_t own_body[ORDER_ANSWER_SMALL];
};

/* All order records of a node. */
struct orders {
    struct pool *pool; /* borrowed; the actors are in it, too */
    struct lookup table;
    uint32_t idle;      /* first of the list */
    uint32_t large;     /* likewise; struct order_more, in order of the last large answer saved */
    size_t large_size;  /* bytes of all large answers */
    size_t saved_count; /* answers, of any size */
};

enum order_verdict {
    ORDER_RUN,
    ORDER_EARLY,     /* its predecessor is still to come */
    ORDER_DUPLICATE, /* it ran */
    ORDER_ABANDONED, /* given up by its gateway */
    ORDER_FENCED,    /* of an older epoch of the session */
};

/* `pool` is borrowed, and goes after the records. */
void orders_init(struct orders *o, struct pool *pool);
void orders_fini(struct orders *o); /* all records were freed */

/* The key of that session's record of the actor, given by its handle, in the table. */
static inline uint64_t order_key(uint32_t actor, uint64_t session)
{
    return table_mix(session ^ table_mix(actor));
}
/* Fetch where its saved answers are known. A hint. */
void order_fetch_more(const struct orders *o, const struct order *order);
/* NULL = none. */
struct order *order_find(const struct orders *o, const struct actor *a, uint64_t session);
/* Make the record of a session and an actor that have none yet. */
struct order *order_new(struct orders *o, struct actor *a, uint64_t session);
/* The actor's orders, in the sequence in which they were made; NULL = no more. */
struct order *order_first(const struct orders *o, const struct actor *a);
struct order *order_next(const struct orders *o, const struct actor *a, const struct order *order);
/* The actor that the order belongs to. */
struct actor *order_actor(const struct orders *o, const struct order *order);
/* Free the order. Its early queue must be empty. */
void order_free(struct orders *o, struct order *order);
/* Mark the order as used, so that it is kept. The mark is set once a second at most, so the order
 * may go that much earlier. */
void order_touch(struct orders *o, struct order *order, uint64_t now_us);

/* Forget a few records that were idle for keep_us; called at every tick. `watch.call` hears whose
 * each was, and may free that actor. */
struct orders_watch {
    void (*call)(void *context, struct actor *a);
    void *context;
};
void orders_evict(struct orders *o, uint64_t now_us, uint64_t keep_us, struct orders_watch watch);

/* The gateway says that everything below `base` is finished: release those answers. The memory of
 * the last one stays for the next answer. */
void order_set_base(struct orders *o, struct order *order, uint64_t base);

/* Save what its actor answered; its seq is the highest yet. Nothing is saved of what nobody
 * will ask for again, or of what is too large. `budget`: bytes of large answers in all. */
struct order_answer {
    uint64_t seq;
    uint64_t fence;
    uint8_t code;
    bool read; /* REQUEST_IDEMPOTENT */
    struct bytes body;
};
void order_save(struct orders *o, struct order *order, const struct order_answer *a, size_t budget);
/* Note that `r` ran just now and what it was answered: order_touch(), order_set_base() and
 * order_save() in one, for one that had its turn. What replaces a finished answer of its size
 * counts as a new large one once a second only. */
void order_ran(struct orders *o, struct order *order, const struct request_record *r,
               const struct order_answer *a, uint64_t now_us, size_t budget);
/* False = it is not kept (any more). The body is borrowed until something is saved or released. */
bool order_saved(const struct orders *o, const struct order *order, uint64_t seq,
                 struct order_answer *out);
/* All that are kept of a record, the oldest first; begin with zero. False = no more. */
struct order_walk {
    uint32_t item;
    uint8_t done;
};
bool order_walk(const struct orders *o, const struct order *order, struct order_walk *at,
                struct order_answer *out);
size_t order_saved_count(const struct orders *o, const struct order *order);

/* Judge whether this request may run now. `order` may be NULL. */
enum order_verdict order_judge(const struct order *order, const struct request_record *r);

/* Put a request among the early ones, counted in `total`. If a copy of it is there already, the two
 * are merged (highest version, base, epoch; it answers as the newer copy) and the superfluous one,
 * as the older copy, is returned, in no queue, for the caller to answer and free; else NULL. */
struct waiting *order_keep_early(struct orders *o, struct order *order, struct waiting *w,
                                 size_t *total);
/* Take the next early request that no longer has to wait, or NULL. */
struct waiting *order_take_early(struct orders *o, struct order *order);
/* Take any, or NULL: there is none. */
struct waiting *order_drop_early(struct orders *o, struct order *order);
/* The copy of that request that waits there; NULL = none. */
struct waiting *order_early(const struct orders *o, const struct order *order, uint64_t seq);
/* Take it: there is one. */
void order_drop_early_copy(struct orders *o, struct order *order, struct waiting *w);

#endif
