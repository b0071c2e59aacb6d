/* SPDX-License-Identifier: Apache-2.0
 *
 * Order records: for each (session, actor), which of its requests ran last and
 * what was answered. They decide whether a request may run now, and answer
 * copies of what ran. PROTOCOL §5.3 steps 7 and 9.
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
#ifndef NODE_ORDER_H
#define NODE_ORDER_H

#include "base/list.h"
#include "base/table.h"
#include "node/waiting.h"

struct actor;

enum {
    ORDER_ANSWERS_MAX = 64,              /* saved answers of one record; the oldest goes */
    ORDER_ANSWERS_SIZE_MAX = 256 * 1024, /* bytes of them */
    ORDER_ANSWER_MAX = 64 * 1024,        /* a larger answer is not saved */
    ORDER_READ_ANSWER_MAX = 4 * 1024,    /* nor is one of a read: that can run again */
    ORDER_TOUCH_MS = 1000,
    ORDER_ANSWER_SMALL = 16, /* up to here it stands in the record itself */
};

/* What a copy of a request is answered. */
struct saved {
    struct saved *next; /* of greater seq */
    uint64_t seq;
    uint64_t token; /* that it ran under */
    uint32_t size;
    uint8_t code; /* enum answer_code */
    union {
        uint8_t small[ORDER_ANSWER_SMALL];
        uint8_t *large; /* owned; when it is over ORDER_ANSWER_SMALL */
    } body;
};
struct bytes saved_body(const struct saved *s);

struct order {
    struct table_link link;
    struct actor *actor;
    uint64_t session;
    uint64_t last; /* seq that ran last, 0 = none */
    uint64_t base; /* highest told: everything below is finished or given up */
    uint64_t touched_us;
    uint32_t epoch;
    uint8_t saved_count;
    bool running;  /* one of its requests runs: seq `last` */
    bool own_used; /* `own` is one of the saved */
    /* So far one line of the cache; the saved answer is on the next two. */
    struct saved *oldest; /* owned, by seq; NULL = none */
    struct saved *newest;
    struct saved own;          /* the first to be saved: most records never keep two */
    struct list_link idle;     /* in the book's list, longest idle first */
    struct list_link of_actor; /* in the actor's list */
    struct list_link large;    /* in the book's list, if one of its answers is large */
    struct queue *early; /* owned, sorted by seq: they wait for their predecessor; NULL = none */
    uint32_t large_size; /* bytes of its large answers */
};

/* All order records of a node. */
struct orders {
    struct table table;
    struct list idle;
    struct list large;   /* struct order, in order of the last large answer saved */
    size_t large_size;   /* bytes of all large answers */
    size_t saved_count;  /* answers, of any size */
    struct saved *spare; /* owned, kept for the next ones */
    size_t spare_count;
};

enum order_verdict {
    ORDER_RUN,
    ORDER_EARLY,     /* its predecessor is still to come */
    ORDER_DUPLICATE, /* it ran */
    ORDER_ABANDONED, /* given up by its gateway */
    ORDER_FENCED,    /* of an older epoch of the session */
};

void orders_init(struct orders *o);
void orders_fini(struct orders *o); /* all records were freed */

/* NULL = none. */
struct order *order_find(const struct orders *o, const struct actor *a, uint64_t session);
/* There is none yet. `of_actor` is the actor's list. */
struct order *order_new(struct orders *o, struct actor *a, struct list *of_actor, uint64_t session);
/* Its early queue must be empty. */
void order_free(struct orders *o, struct order *order);
/* It is in use: keep it. Said once a second at most, so it is kept so much shorter. */
void order_touch(struct orders *o, struct order *order, uint64_t now_us);

/* Forget a few records that were idle for keep_us; called at every tick. `watch.call` hears whose
 * each was, and may free that actor. */
struct orders_watch {
    void (*call)(void *context, struct actor *a);
    void *context;
};
void orders_evict(struct orders *o, uint64_t now_us, uint64_t keep_us, struct orders_watch watch);

/* Its gateway says that everything below `base` is finished: release those answers. */
void order_set_base(struct orders *o, struct order *order, uint64_t base);

/* Save what `order->actor` answered; its seq is the highest yet. Nothing is saved of what nobody
 * will ask for again, or of what is too large. `budget`: bytes of large answers in all. */
struct order_answer {
    uint64_t seq;
    uint64_t token;
    uint8_t code;
    bool read; /* REQUEST_IDEMPOTENT */
    struct bytes body;
};
void order_save(struct orders *o, struct order *order, const struct order_answer *a, size_t budget);
/* NULL = it is not kept (any more). */
const struct saved *order_saved(const struct order *order, uint64_t seq);

/* May this request run now? `order` may be NULL. */
enum order_verdict order_judge(const struct order *order, const struct request_record *r);

/* Put a request among the early ones, counted in `total`. If a copy of it is there already, the two
 * are merged (highest version, base, epoch; who asked last is answered) and the superfluous one is
 * returned, in no queue, for the caller to free; else NULL. */
struct waiting *order_keep_early(struct order *order, struct waiting *w, size_t *total);
/* Take the next early request that no longer has to wait, or NULL. */
struct waiting *order_take_early(struct order *order);

#endif
