/* SPDX-License-Identifier: Apache-2.0
 *
 * Order records: which request of a session may run next, and what the last ones
 * were answered.
 */
#include "node/books/order_inside.h"

#include "base/assert.h"
#include "base/mutant.h"
#include "node/books/actor.h"

enum { EVICT_AT_ONCE = 1000, US_PER_MS = 1000 };

static struct strand idle_of(const struct orders *o)
{
    return (struct strand){o->pool, offsetof(struct order, idle)};
}

static struct strand of_actor(const struct orders *o)
{
    return (struct strand){o->pool, offsetof(struct order, of_actor)};
}

static uint64_t hash_of(const void *record)
{
    const struct order *order = record;

    return order_key(order->actor, order->session);
}

void orders_init(struct orders *o, struct pool *pool)
{
    *o = (struct orders){
        .pool = pool,
        .table = {.pool = pool, .same = offsetof(struct order, same), .hash = hash_of}};
}

void orders_fini(struct orders *o)
{
    ASSERT(o->saved_count == 0 && o->large_size == 0);
    lookup_fini(&o->table);
}

struct order_more *order_more(const struct orders *o, const struct order *order)
{
    return order->more == 0 ? NULL : pool_at(o->pool, order->more);
}

struct order_more *order_more_new(struct orders *o, struct order *order)
{
    if (order->more != 0) {
        return order_more(o, order);
    }
    struct order_more *more = pool_take(o->pool, sizeof *more, &order->more);

    more->order = order->handle;
    queue_init(&more->early);
    return more;
}

void order_more_trim(struct orders *o, struct order *order)
{
    const struct order_more *more = order_more(o, order);

    if (more == NULL || more->oldest != 0 || more->early.count > 0) {
        return;
    }
    if (more->newest != 0) {
        pool_give(o->pool, more->newest);
    }
    pool_give(o->pool, order->more);
    order->more = 0;
}

/* ---- records ---- */

void order_fetch_more(const struct orders *o, const struct order *order)
{
    pool_fetch_front(o->pool, order->more);
}

struct order *order_find(const struct orders *o, const struct actor *a, uint64_t session)
{
    struct order *order = NULL;

    for (uint32_t i = lookup_first(&o->table, order_key(a->handle, session)); i != 0;
         i = order->same) {
        order = pool_at(o->pool, i);
        if (order->actor == a->handle && order->session == session) {
            return order;
        }
    }
    return NULL;
}

struct order *order_new(struct orders *o, struct actor *a, uint64_t session)
{
    uint32_t handle = 0;
    struct order *order = pool_take(o->pool, sizeof *order, &handle);

    order->handle = handle;
    order->actor = a->handle;
    order->session = session;
    actor_changed(a);
    lookup_put(&o->table, handle);
    strand_push(of_actor(o), &a->orders, handle);
    strand_push(idle_of(o), &o->idle, handle);
    return order;
}

struct order *order_first(const struct orders *o, const struct actor *a)
{
    return a->orders == 0 ? NULL : pool_at(o->pool, a->orders);
}

struct order *order_next(const struct orders *o, const struct actor *a, const struct order *order)
{
    const uint32_t next = strand_next(of_actor(o), a->orders, order->handle);

    return next == 0 ? NULL : pool_at(o->pool, next);
}

struct actor *order_actor(const struct orders *o, const struct order *order)
{
    return pool_at(o->pool, order->actor);
}

void order_free(struct orders *o, struct order *order)
{
    uint64_t seq = 0;

    ASSERT(order->more == 0 || order_more(o, order)->early.count == 0);
    while (order_oldest(o, order, &seq)) {
        order_release_oldest(o, order);
    }
    order_more_trim(o, order);
    actor_changed(order_actor(o, order));
    lookup_remove(&o->table, order->handle);
    strand_remove(of_actor(o), &order_actor(o, order)->orders, order->handle);
    strand_remove(idle_of(o), &o->idle, order->handle);
    pool_give(o->pool, order->handle);
}

static uint32_t since_ms(const struct order *order, uint64_t now_us)
{
    return (uint32_t)(now_us / US_PER_MS) - order->touched_ms;
}

void order_touch(struct orders *o, struct order *order, uint64_t now_us)
{
    // Its neighbours in the list are other memory, and it is touched for each request.
    if (order->used && (mutant(M_KEPTONCE) || since_ms(order, now_us) < ORDER_TOUCH_MS)) {
        return;
    }
    order->used = true;
    order->touched_ms = (uint32_t)(now_us / US_PER_MS);
    strand_remove(idle_of(o), &o->idle, order->handle);
    strand_push(idle_of(o), &o->idle, order->handle);
}

void orders_evict(struct orders *o, uint64_t now_us, uint64_t keep_us, struct orders_watch watch)
{
    for (size_t i = 0; i < EVICT_AT_ONCE && o->idle != 0; i++) {
        struct order *order = pool_at(o->pool, o->idle);
        const struct order_more *more = order_more(o, order);

        if (since_ms(order, now_us) < keep_us / US_PER_MS) {
            return;
        }
        if (order->running || (more != NULL && more->early.count > 0)) {
            order_touch(o, order, now_us);
        } else {
            struct actor *a = order_actor(o, order);

            order_free(o, order);
            watch.call(watch.context, a);
        }
    }
}

enum order_verdict order_judge(const struct order *order, const struct request_record *r)
{
    const uint64_t last = order == NULL ? 0 : order->last;
    uint64_t base = order == NULL ? 0 : order->base;

    if (order != NULL && r->session_epoch < order->epoch) {
        return ORDER_FENCED;
    }
    if (r->seq <= last && !mutant(M_NODEDUP) && !mutant(M_NOORDER)) {
        return ORDER_DUPLICATE;
    }
    base = r->base > base ? r->base : base;
    if (r->seq < base && !mutant(M_NODEDUP)) {
        return ORDER_ABANDONED;
    }
    if (r->prev != 0 && r->prev >= base && last < r->prev && !mutant(M_NOORDER)) {
        return ORDER_EARLY;
    }
    return ORDER_RUN;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whom the one answers, the other does, and the other way round. */
static void swap_askers(struct waiting *a, struct waiting *b)
{
    const struct request_record r = a->record;
    const uint64_t peer = a->peer;

    a->record.gateway = b->record.gateway;
    a->record.copy = b->record.copy;
    a->record.session_epoch = b->record.session_epoch;
    a->peer = b->peer;
    b->record.gateway = r.gateway;
    b->record.copy = r.copy;
    b->record.session_epoch = r.session_epoch;
    b->peer = peer;
}

/* Two copies of one request: `w` came last and stays, with the most that either knows (hole 41). It
 * answers as the newer of the two, `old` is the other one. */
static void merge(struct waiting *w, struct waiting *old)
{
    struct request_record *into = &w->record;
    const struct request_record *r = &old->record;

    if (into->session_epoch < r->session_epoch ||
        (into->session_epoch == r->session_epoch && into->copy < r->copy)) {
        swap_askers(w, old);
    }
    into->version = greater(into->version, r->version);
    // A later copy names a lower predecessor when the one between was given up (hole 41).
    into->prev = r->prev < into->prev ? r->prev : into->prev;
    into->base = greater(into->base, r->base);
    into->first = into->first < r->first ? into->first : r->first;
    into->flags |= r->flags & REQUEST_HELD;
}

struct waiting *order_keep_early(struct orders *o, struct order *order, struct waiting *w,
                                 size_t *total)
{
    struct queue *early = &order_more_new(o, order)->early;
    struct waiting *at = NULL;
    struct waiting *old = NULL;

    early->total = total;
    for (at = queue_front(early); at != NULL; at = queue_next(early, at)) {
        if (at->record.seq >= w->record.seq) {
            break;
        }
    }
    if (at != NULL && at->record.seq == w->record.seq) {
        old = at;
        merge(w, old);
    }
    if (at == NULL) {
        queue_push(early, w);
    } else {
        queue_push_before(at, w);
    }
    if (old != NULL) {
        queue_remove(old);
    }
    return old;
}

struct waiting *order_drop_early(struct orders *o, struct order *order)
{
    struct order_more *more = order_more(o, order);
    struct waiting *w = more == NULL ? NULL : queue_pop(&more->early);

    order_more_trim(o, order);
    return w;
}

struct waiting *order_early(const struct orders *o, const struct order *order, uint64_t seq)
{
    const struct order_more *more = order_more(o, order);
    struct waiting *w = more == NULL ? NULL : queue_front(&more->early);

    while (w != NULL && w->record.seq != seq) {
        w = queue_next(&more->early, w);
    }
    return w;
}

void order_drop_early_copy(struct orders *o, struct order *order, struct waiting *w)
{
    queue_remove(w);
    order_more_trim(o, order);
}

struct waiting *order_take_early(struct orders *o, struct order *order)
{
    const struct order_more *more = order_more(o, order);
    const struct waiting *w = more == NULL ? NULL : queue_front(&more->early);

    // Sorted by seq and each waits for the one before it: if the first waits, all do.
    if (w == NULL || order_judge(order, &w->record) == ORDER_EARLY) {
        return NULL;
    }
    return order_drop_early(o, order);
}
