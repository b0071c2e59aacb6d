/* SPDX-License-Identifier: Apache-2.0
 *
 * Order records: for each (session, actor), which of its requests ran last.
 * They decide whether a request may run now. PROTOCOL §5.3 steps 7 and 9.
 *
 * The owner runs seq when its predecessor ran (last >= prev), was given up
 * (prev < base), or there was none (prev == 0). Records move with their actor
 * (hole 37) and are forgotten when idle for longer than any copy lives.
 *
 * Pure. Answers of the last requests, for clients that ask again, will stand in
 * struct order beside `last`.
 */
#ifndef NODE_ORDER_H
#define NODE_ORDER_H

#include "base/list.h"
#include "base/table.h"
#include "node/waiting.h"

struct actor;

struct order {
    struct table_link link;
    struct list_link of_actor; /* in the actor's list */
    struct list_link idle;     /* in the book's list, longest idle first */
    struct actor *actor;
    uint64_t session;
    uint64_t last; /* seq that ran last, 0 = none */
    uint64_t base; /* highest told: everything below is finished or given up */
    uint64_t touched_us;
    uint32_t epoch;
    struct queue *early; /* owned, sorted by seq: they wait for their predecessor; NULL = none */
};

/* All order records of a node. */
struct orders {
    struct table table;
    struct list idle;
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
/* It is in use: keep it. */
void order_touch(struct orders *o, struct order *order, uint64_t now_us);

/* Forget a few records that were idle for keep_us; called at every tick. */
void orders_evict(struct orders *o, uint64_t now_us, uint64_t keep_us);

/* May this request run now? `order` may be NULL. */
enum order_verdict order_judge(const struct order *order, const struct request_record *r);

/* Put a request among the early ones, counted in `total`. A copy of one that is there already is
 * merged into that (highest version, base, epoch); then false, and `w` is still the caller's. */
bool order_keep_early(struct order *order, struct waiting *w, size_t *total);
/* Take the next early request that no longer has to wait, or NULL. */
struct waiting *order_take_early(struct order *order);

#endif
