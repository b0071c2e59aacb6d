/* SPDX-License-Identifier: Apache-2.0
 *
 * The saved answers of order records: the newest in the record itself if it is
 * small, the others beside it.
 */
#include "node/books/actor.h"
#include "node/books/order_inside.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

enum { SAVED_HERE = 256 }; /* most answers: no allocation of their own */

/* An answer that has no place in its record. */
struct saved {
    uint64_t seq;
    uint64_t fence; /* that it ran under */
    uint32_t next;  /* of greater seq; 0 = none */
    uint32_t size;
    uint8_t code;
    uint8_t body[]; /* up to SAVED_HERE; else a pointer to it, owned */
};

static struct strand large_of(const struct orders *o)
{
    return (struct strand){o->pool, offsetof(struct order_more, large)};
}

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

/* That of the last one, if it is as much: what asks one after the other takes none. */
static uint32_t saved_room(struct orders *o, struct order_more *more, size_t size)
{
    uint32_t handle = more->oldest == 0 ? more->newest : 0;

    if (handle != 0 && !pool_fits(o->pool, handle, size)) {
        pool_give(o->pool, handle);
        handle = 0;
    }
    if (handle == 0) {
        (void)pool_take(o->pool, size, &handle);
    }
    return handle;
}

static uint32_t saved_new(struct orders *o, struct order_more *more, const struct order_answer *a)
{
    const bool here = a->body.size <= SAVED_HERE;
    const uint32_t handle =
        saved_room(o, more, sizeof(struct saved) + (here ? a->body.size : sizeof(uint8_t *)));
    struct saved *s = pool_at(o->pool, handle);

    s->seq = a->seq;
    s->fence = a->fence;
    s->next = 0;
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

/* One record's are ORDER_ANSWERS_SIZE_MAX and an answer at most. */
static void set_large_size(struct orders *o, struct order_more *more, size_t size)
{
    enum { BITS = (1 << 24) - 1 };

    o->large_size += size - more->large_size;
    more->large_size = size & BITS;
}

static void count_large(struct orders *o, struct order *order, size_t size)
{
    struct order_more *more = order_more(o, order);

    set_large_size(o, more, more->large_size + size);
    if (strand_linked(&more->large)) {
        strand_remove(large_of(o), &o->large, order->more);
    }
    strand_push(large_of(o), &o->large, order->more);
}

/* Behind those that are saved beside the record. */
static void append(struct orders *o, struct order *order, const struct order_answer *a)
{
    struct order_more *more = order_more_new(o, order);
    const uint32_t handle = saved_new(o, more, a);

    if (more->oldest == 0) {
        more->oldest = handle;
        more->oldest_seq = a->seq;
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
                                 .fence = order->own_fence,
                                 .code = order->own_code,
                                 .body = {order->own_body, order->own_size}};
}

void order_release_oldest(struct orders *o, struct order *order)
{
    struct order_more *more = order_more(o, order);

    o->saved_count--;
    if (more == NULL || more->oldest == 0) {
        ASSERT(order->own);
        order->own = false;
        return;
    }
    const uint32_t handle = more->oldest;
    struct saved *s = pool_at(o->pool, handle);
    const bool only = more->saved_count == 1;
    // If it is the only one, all is known without a look at it: nobody has for a while.
    const size_t size = only ? more->large_size : s->size;

    more->oldest = only ? 0 : s->next;
    more->saved_count--;
    if (is_large(size)) {
        set_large_size(o, more, more->large_size - size);
    }
    if (is_large(size) && more->large_size == 0) {
        strand_remove(large_of(o), &o->large, order->more);
    }
    if (size > SAVED_HERE) {
        mem_free(body_of(s));
    }
    if (!only) {
        more->oldest_seq = ((const struct saved *)pool_at(o->pool, more->oldest))->seq;
        pool_give(o->pool, handle);
    }
}

bool order_oldest(const struct orders *o, const struct order *order, uint64_t *seq)
{
    const struct order_more *more = order_more(o, order);
    const bool beside = more != NULL && more->oldest != 0;

    *seq = beside ? more->oldest_seq : order->own_seq;
    return beside || order->own;
}

static uint64_t newest_seq(const struct orders *o, const struct order *order)
{
    const struct order_more *more = order_more(o, order);

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

    actor_changed(order_actor(o, order));
    order->base = base > order->base ? base : order->base;
    while (order_oldest(o, order, &seq) && seq < order->base + mutant(M_BASEGONE)) {
        order_release_oldest(o, order);
    }
}

size_t order_saved_count(const struct orders *o, const struct order *order)
{
    const struct order_more *more = order_more(o, order);

    return (order->own ? 1u : 0u) + (more == NULL ? 0u : more->saved_count);
}

/* Make room: this record's own oldest go first, then those of the record that was longest without
 * a new large one. */
static void keep_bounds(struct orders *o, struct order *order, size_t budget)
{
    const struct order_more *more = NULL;

    while (order_saved_count(o, order) > ORDER_ANSWERS_MAX ||
           ((more = order_more(o, order)) != NULL && more->large_size > ORDER_ANSWERS_SIZE_MAX)) {
        order_release_oldest(o, order);
    }
    while (o->large_size > budget) {
        more = pool_at(o->pool, o->large);
        struct order *longest = pool_at(o->pool, more->order);
        order_release_oldest(o, longest);
        order_more_trim(o, longest);
    }
}

static void put_here(struct order *order, const struct order_answer *a)
{
    order->own = true;
    order->own_seq = a->seq;
    order->own_fence = a->fence;
    order->own_code = a->code;
    order->own_size = (uint8_t)a->body.size;
    if (a->body.size > 0) {
        memcpy(order->own_body, a->body.data, a->body.size);
    }
}

static void save(struct orders *o, struct order *order, const struct order_answer *a, size_t budget)
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
        put_here(order, a);
    }
    keep_bounds(o, order, budget);
}

void order_save(struct orders *o, struct order *order, const struct order_answer *a, size_t budget)
{
    actor_changed(order_actor(o, order));
    save(o, order, a, budget);
    order_more_trim(o, order);
}

/* Its only answer is finished with, below `base`, and stands in the record: this one too. */
static bool replace_here(struct order *order, uint64_t base, const struct order_answer *a)
{
    if (!order->own || order->more != 0 || order->own_seq >= base || is_large(a->body.size)) {
        return false;
    }
    put_here(order, a);
    return true;
}

/* The same of one that stands beside it, with as much memory. `first`: of this second. */
static bool replace_beside(struct orders *o, struct order *order, uint64_t base,
                           const struct order_answer *a, bool first)
{
    struct order_more *more = order_more(o, order);
    const size_t size = a->body.size;

    if (more == NULL || order->own || first || more->saved_count != 1 || more->oldest_seq >= base ||
        !is_large(more->large_size) || !is_large(size) || more->large_size > SAVED_HERE ||
        size > SAVED_HERE || !pool_fits(o->pool, more->oldest, sizeof(struct saved) + size)) {
        return false;
    }
    struct saved *s = pool_at(o->pool, more->oldest);

    s->seq = more->oldest_seq = a->seq;
    s->fence = a->fence;
    s->code = a->code;
    s->size = (uint32_t)size;
    memcpy(s->body, a->body.data, size);
    set_large_size(o, more, size);
    return true;
}

void order_ran(struct orders *o, struct order *order, const struct request_record *r,
               const struct order_answer *a, uint64_t now_us, size_t budget)
{
    const uint32_t before_ms = order->touched_ms;
    const uint64_t base = r->base > order->base ? r->base : order->base;

    order_touch(o, order, now_us);
    order->epoch = r->session_epoch > order->epoch ? r->session_epoch : order->epoch;
    order->last = r->seq > order->last ? r->seq : order->last;
    if (a->seq >= base && o->large_size + a->body.size <= budget &&
        (replace_here(order, base, a) ||
         replace_beside(o, order, base, a, order->touched_ms != before_ms))) {
        order->base = base;
        return;
    }
    order_set_base(o, order, base);
    order_save(o, order, a, budget);
}

bool order_walk(const struct orders *o, const struct order *order, struct order_walk *at,
                struct order_answer *out)
{
    const struct order_more *more = order_more(o, order);

    if (at->done == 0) {
        at->item = more == NULL ? 0 : more->oldest;
    }
    if (at->item != 0) {
        struct saved *s = pool_at(o->pool, at->item);

        *out = (struct order_answer){
            .seq = s->seq, .fence = s->fence, .code = s->code, .body = {body_of(s), s->size}};
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
