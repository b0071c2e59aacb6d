/* SPDX-License-Identifier: Apache-2.0 */
#include "node/order.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/table.h"
#include "node/actor.h"

#include <string.h>

enum { EVICT_AT_ONCE = 1000, US_PER_MS = 1000, SAVED_HERE = 64 };

/* An answer that has no place in its record. */
struct saved {
    uint64_t seq;
    uint64_t token; /* that it ran under */
    uint32_t next;  /* of greater seq; 0 = none */
    uint32_t size;
    uint8_t code;
    uint8_t body[]; /* up to SAVED_HERE; else a pointer to it, owned */
};

/* What a record has while requests came early, and while answers are saved that do not fit into
 * it. */
struct order_more {
    struct queue early;       /* sorted by seq: they wait for their predecessor */
    struct strand_link large; /* in the book's list, if one of its answers is large */
    uint32_t order;
    uint32_t oldest; /* struct saved, by seq; 0 = none */
    uint32_t newest;
    uint32_t large_size; /* bytes of its large answers */
    uint8_t saved_count;
};

static struct strand idle_of(const struct orders *o)
{
    return (struct strand){o->pool, offsetof(struct order, idle)};
}

static struct strand large_of(const struct orders *o)
{
    return (struct strand){o->pool, offsetof(struct order_more, large)};
}

static struct strand of_actor(const struct orders *o)
{
    return (struct strand){o->pool, offsetof(struct order, of_actor)};
}

static uint64_t key_of(uint32_t actor, uint64_t session)
{
    return table_mix(session ^ table_mix(actor));
}

static uint64_t hash_of(const void *record)
{
    const struct order *order = record;

    return key_of(order->actor, order->session);
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

/* ---- what few have ---- */

static struct order_more *more_of(const struct orders *o, const struct order *order)
{
    return order->more == 0 ? NULL : pool_at(o->pool, order->more);
}

static struct order_more *more_new(struct orders *o, struct order *order)
{
    if (order->more != 0) {
        return more_of(o, order);
    }
    struct order_more *more = pool_take(o->pool, sizeof *more, &order->more);

    more->order = order->handle;
    queue_init(&more->early);
    return more;
}

static void more_trim(struct orders *o, struct order *order)
{
    const struct order_more *more = more_of(o, order);

    if (more != NULL && more->oldest == 0 && more->early.count == 0) {
        pool_give(o->pool, order->more);
        order->more = 0;
    }
}

/* ---- saved answers ---- */

static bool is_large(size_t size)
{
    return size > ORDER_ANSWER_SMALL;
}

static uint8_t *body_of(struct saved *s)
{
    uint8_t *body = s->body;

    if (s->size > SAVED_HERE) {
        memcpy(&body, s->body, sizeof body);
    }
    return body;
}

static uint32_t saved_new(struct orders *o, const struct order_answer *a)
{
    const bool here = a->body.size <= SAVED_HERE;
    uint32_t handle = 0;
    struct saved *s =
        pool_take(o->pool, sizeof *s + (here ? a->body.size : sizeof(uint8_t *)), &handle);

    s->seq = a->seq;
    s->token = a->token;
    s->code = a->code;
    s->size = (uint32_t)a->body.size;
    if (!here) {
        uint8_t *body = mem_copy(a->body.data, a->body.size);

        memcpy(s->body, &body, sizeof body);
    } else if (a->body.size > 0) {
        memcpy(s->body, a->body.data, a->body.size);
    }
    return handle;
}

static void count_large(struct orders *o, struct order *order, size_t size)
{
    struct order_more *more = more_of(o, order);

    more->large_size += (uint32_t)size;
    o->large_size += size;
    if (strand_linked(&more->large)) {
        strand_remove(large_of(o), &o->large, order->more);
    }
    strand_push(large_of(o), &o->large, order->more);
}

/* Behind those that are saved beside the record. */
static void append(struct orders *o, struct order *order, const struct order_answer *a)
{
    struct order_more *more = more_new(o, order);
    const uint32_t handle = saved_new(o, a);

    if (more->oldest == 0) {
        more->oldest = handle;
    } else {
        ((struct saved *)pool_at(o->pool, more->newest))->next = handle;
    }
    more->newest = handle;
    more->saved_count++;
    if (is_large(a->body.size)) {
        count_large(o, order, a->body.size);
    }
}

static struct order_answer answer_here(const struct order *order)
{
    return (struct order_answer){.seq = order->own_seq,
                                 .token = order->own_token,
                                 .code = order->own_code,
                                 .body = {order->own_body, order->own_size}};
}

static void release_oldest(struct orders *o, struct order *order)
{
    struct order_more *more = more_of(o, order);

    o->saved_count--;
    if (more == NULL || more->oldest == 0) {
        ASSERT(order->own);
        order->own = false;
        return;
    }
    const uint32_t handle = more->oldest;
    struct saved *s = pool_at(o->pool, handle);
    more->oldest = s->next;
    more->saved_count--;
    if (is_large(s->size)) {
        more->large_size -= s->size;
        o->large_size -= s->size;
    }
    if (is_large(s->size) && more->large_size == 0) {
        strand_remove(large_of(o), &o->large, order->more);
    }
    if (s->size > SAVED_HERE) {
        mem_free(body_of(s));
    }
    pool_give(o->pool, handle);
    more_trim(o, order);
}

static bool oldest(const struct orders *o, const struct order *order, uint64_t *seq)
{
    const struct order_more *more = more_of(o, order);
    const bool beside = more != NULL && more->oldest != 0;

    *seq = beside ? ((const struct saved *)pool_at(o->pool, more->oldest))->seq : order->own_seq;
    return beside || order->own;
}

static uint64_t newest_seq(const struct orders *o, const struct order *order)
{
    const struct order_more *more = more_of(o, order);

    if (order->own) {
        return order->own_seq;
    }
    return more == NULL || more->oldest == 0
               ? 0
               : ((const struct saved *)pool_at(o->pool, more->newest))->seq;
}

void order_set_base(struct orders *o, struct order *order, uint64_t base)
{
    uint64_t seq = 0;

    order->base = base > order->base ? base : order->base;
    while (oldest(o, order, &seq) && seq < order->base) {
        release_oldest(o, order);
    }
}

size_t order_saved_count(const struct orders *o, const struct order *order)
{
    const struct order_more *more = more_of(o, order);

    return (order->own ? 1u : 0u) + (more == NULL ? 0u : more->saved_count);
}

/* Make room: this record's own oldest go first, then those of the record that was longest without
 * a new large one. */
static void keep_bounds(struct orders *o, struct order *order, size_t budget)
{
    const struct order_more *more = NULL;

    while (order_saved_count(o, order) > ORDER_ANSWERS_MAX ||
           ((more = more_of(o, order)) != NULL && more->large_size > ORDER_ANSWERS_SIZE_MAX)) {
        release_oldest(o, order);
    }
    while (o->large_size > budget) {
        more = pool_at(o->pool, o->large);
        release_oldest(o, pool_at(o->pool, more->order));
    }
}

void order_save(struct orders *o, struct order *order, const struct order_answer *a, size_t budget)
{
    const size_t max = a->read ? ORDER_READ_ANSWER_MAX : ORDER_ANSWER_MAX;

    if (a->seq < order->base || a->body.size > max) {
        return;
    }
    if (order_saved_count(o, order) > 0 && a->seq <= newest_seq(o, order)) {
        return; // a read that ran again; else only the planted bugs come here
    }
    if (order->own) { // it was the newest
        const struct order_answer before = answer_here(order);

        append(o, order, &before);
        order->own = false;
    }
    o->saved_count++;
    if (is_large(a->body.size)) {
        append(o, order, a);
    } else {
        order->own = true;
        order->own_seq = a->seq;
        order->own_token = a->token;
        order->own_code = a->code;
        order->own_size = (uint8_t)a->body.size;
        if (a->body.size > 0) {
            memcpy(order->own_body, a->body.data, a->body.size);
        }
    }
    keep_bounds(o, order, budget);
}

bool order_walk(const struct orders *o, const struct order *order, struct order_walk *at,
                struct order_answer *out)
{
    const struct order_more *more = more_of(o, order);

    if (at->done == 0) {
        at->item = more == NULL ? 0 : more->oldest;
    }
    if (at->item != 0) {
        struct saved *s = pool_at(o->pool, at->item);

        *out = (struct order_answer){
            .seq = s->seq, .token = s->token, .code = s->code, .body = {body_of(s), s->size}};
        at->item = s->next;
        at->done = 1;
        return true;
    }
    if (at->done == 2 || !order->own) {
        return false;
    }
    *out = answer_here(order);
    at->done = 2;
    return true;
}

bool order_saved(const struct orders *o, const struct order *order, uint64_t seq,
                 struct order_answer *out)
{
    struct order_walk at = {0};

    while (order_walk(o, order, &at, out)) {
        if (out->seq >= seq) {
            return out->seq == seq;
        }
    }
    return false;
}

/* ---- records ---- */

struct order *order_find(const struct orders *o, const struct actor *a, uint64_t session)
{
    struct order *order = NULL;

    for (uint32_t i = lookup_first(&o->table, key_of(a->handle, session)); i != 0;
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

    ASSERT(order->more == 0 || more_of(o, order)->early.count == 0);
    while (oldest(o, order, &seq)) {
        release_oldest(o, order);
    }
    more_trim(o, order);
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
    if (order->used && since_ms(order, now_us) < ORDER_TOUCH_MS) {
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
        const struct order_more *more = more_of(o, order);

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

/* Two copies of one request: `w` came last and stays, with the most that either knows (hole 41). */
static void merge(struct waiting *w, const struct waiting *old)
{
    struct request_record *into = &w->record;
    const struct request_record *r = &old->record;

    if (into->session_epoch < r->session_epoch ||
        (into->session_epoch == r->session_epoch && into->copy < r->copy)) {
        into->gateway = r->gateway;
        into->copy = r->copy;
        w->peer = old->peer;
    }
    into->version = greater(into->version, r->version);
    // A later copy names a lower predecessor when the one between was given up (hole 41).
    into->prev = r->prev < into->prev ? r->prev : into->prev;
    into->base = greater(into->base, r->base);
    into->first = into->first < r->first ? into->first : r->first;
    into->flags |= r->flags & REQUEST_HELD;
    into->session_epoch = (uint32_t)greater(into->session_epoch, r->session_epoch);
}

struct waiting *order_keep_early(struct orders *o, struct order *order, struct waiting *w,
                                 size_t *total)
{
    struct queue *early = &more_new(o, order)->early;
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
    struct order_more *more = more_of(o, order);
    struct waiting *w = more == NULL ? NULL : queue_pop(&more->early);

    more_trim(o, order);
    return w;
}

struct waiting *order_take_early(struct orders *o, struct order *order)
{
    const struct order_more *more = more_of(o, order);
    const struct waiting *w = more == NULL ? NULL : queue_front(&more->early);

    // Sorted by seq and each waits for the one before it: if the first waits, all do.
    if (w == NULL || order_judge(order, &w->record) == ORDER_EARLY) {
        return NULL;
    }
    return order_drop_early(o, order);
}
