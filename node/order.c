/* SPDX-License-Identifier: Apache-2.0 */
#include "node/order.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

enum { EVICT_AT_ONCE = 1000, SPARE_MAX = 4096 };

static uint64_t key_of(const struct actor *a, uint64_t session)
{
    return table_mix(session ^ table_mix((uint64_t)(uintptr_t)a));
}

void orders_init(struct orders *o)
{
    *o = (struct orders){0};
    list_init(&o->idle);
    list_init(&o->large);
}

void orders_fini(struct orders *o)
{
    ASSERT(o->table.count == 0 && o->saved_count == 0 && o->large_size == 0);
    while (o->spare != NULL) {
        struct saved *s = o->spare;

        o->spare = s->next;
        mem_free(s);
    }
    table_fini(&o->table);
}

/* ---- saved answers ---- */

static bool is_large(const struct saved *s)
{
    return s->size > ORDER_ANSWER_SMALL;
}

struct bytes saved_body(const struct saved *s)
{
    return (struct bytes){is_large(s) ? s->body.large : s->body.small, s->size};
}

static void release_oldest(struct orders *o, struct order *order)
{
    struct saved *s = order->oldest;

    ASSERT(s != NULL);
    order->oldest = s->next;
    order->newest = s->next == NULL ? NULL : order->newest;
    order->saved_count--;
    o->saved_count--;
    if (is_large(s)) {
        order->large_size -= s->size;
        o->large_size -= s->size;
        mem_free(s->body.large);
        if (order->large_size == 0) {
            list_remove(&order->large);
        }
    }
    if (s == &order->own) {
        order->own_used = false;
        return;
    }
    if (o->spare_count >= SPARE_MAX) {
        mem_free(s);
        return;
    }
    s->next = o->spare;
    o->spare = s;
    o->spare_count++;
}

void order_set_base(struct orders *o, struct order *order, uint64_t base)
{
    order->base = base > order->base ? base : order->base;
    while (order->oldest != NULL && order->oldest->seq < order->base) {
        release_oldest(o, order);
    }
}

static struct saved *saved_new(struct orders *o, struct order *order)
{
    struct saved *s = o->spare;

    if (!order->own_used) {
        order->own_used = true;
        return &order->own;
    }
    if (s == NULL) {
        return mem_new(1, sizeof *s);
    }
    o->spare = s->next;
    o->spare_count--;
    return s;
}

static void put_body(struct orders *o, struct order *order, struct saved *s, struct bytes body)
{
    uint8_t *to = s->body.small;

    s->size = (uint32_t)body.size;
    if (is_large(s)) {
        to = mem_resize(NULL, body.size);
        s->body.large = to;
        order->large_size += s->size;
        o->large_size += s->size;
        if (list_linked(&order->large)) {
            list_remove(&order->large);
        }
        list_push_back(&o->large, &order->large);
    }
    if (body.size > 0) {
        memcpy(to, body.data, body.size);
    }
}

/* Make room: this record's own oldest go first, then those of the record that was longest without
 * a new large one. */
static void keep_bounds(struct orders *o, struct order *order, size_t budget)
{
    while (order->saved_count > ORDER_ANSWERS_MAX || order->large_size > ORDER_ANSWERS_SIZE_MAX) {
        release_oldest(o, order);
    }
    while (o->large_size > budget) {
        release_oldest(o, CONTAINER_OF(list_front(&o->large), struct order, large));
    }
}

void order_save(struct orders *o, struct order *order, const struct order_answer *a, size_t budget)
{
    const size_t max = a->read ? ORDER_READ_ANSWER_MAX : ORDER_ANSWER_MAX;

    if (a->seq < order->base || a->body.size > max) {
        return;
    }
    if (order->newest != NULL && a->seq <= order->newest->seq) {
        return; // a read that ran again; else only the planted bugs come here
    }
    struct saved *s = saved_new(o, order);

    s->next = NULL;
    s->seq = a->seq;
    s->token = a->token;
    s->code = a->code;
    put_body(o, order, s, a->body);
    if (order->newest == NULL) {
        order->oldest = s;
    } else {
        order->newest->next = s;
    }
    order->newest = s;
    order->saved_count++;
    o->saved_count++;
    keep_bounds(o, order, budget);
}

const struct saved *order_saved(const struct order *order, uint64_t seq)
{
    const struct saved *s = order->oldest;

    while (s != NULL && s->seq < seq) {
        s = s->next;
    }
    return s != NULL && s->seq == seq ? s : NULL;
}

/* ---- records ---- */

struct order *order_find(const struct orders *o, const struct actor *a, uint64_t session)
{
    for (struct table_link *l = table_first(&o->table, key_of(a, session)); l; l = table_same(l)) {
        struct order *order = CONTAINER_OF(l, struct order, link);

        if (order->actor == a && order->session == session) {
            return order;
        }
    }
    return NULL;
}

struct order *order_new(struct orders *o, struct actor *a, struct list *of_actor, uint64_t session)
{
    struct order *order = mem_new(1, sizeof *order);

    order->actor = a;
    order->session = session;
    table_put(&o->table, &order->link, key_of(a, session));
    list_push_back(of_actor, &order->of_actor);
    list_push_back(&o->idle, &order->idle);
    return order;
}

void order_free(struct orders *o, struct order *order)
{
    ASSERT(order->early == NULL || order->early->count == 0);
    while (order->oldest != NULL) {
        release_oldest(o, order);
    }
    table_remove(&o->table, &order->link);
    list_remove(&order->of_actor);
    list_remove(&order->idle);
    mem_free(order->early);
    mem_free(order);
}

void order_touch(struct orders *o, struct order *order, uint64_t now_us)
{
    // Its neighbours in the list are other memory, and it is touched for each request.
    if (order->touched_us != 0 && now_us - order->touched_us < (uint64_t)ORDER_TOUCH_MS * 1000) {
        return;
    }
    order->touched_us = now_us;
    list_remove(&order->idle);
    list_push_back(&o->idle, &order->idle);
}

void orders_evict(struct orders *o, uint64_t now_us, uint64_t keep_us, struct orders_watch watch)
{
    for (size_t i = 0; i < EVICT_AT_ONCE && !list_empty(&o->idle); i++) {
        struct order *order = CONTAINER_OF(list_front(&o->idle), struct order, idle);

        if (now_us - order->touched_us < keep_us) {
            return;
        }
        if (order->running || (order->early != NULL && order->early->count > 0)) {
            order_touch(o, order, now_us);
        } else {
            struct actor *a = order->actor;

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

struct waiting *order_keep_early(struct order *order, struct waiting *w, size_t *total)
{
    struct waiting *at = NULL;
    struct waiting *old = NULL;

    if (order->early == NULL) {
        order->early = mem_new(1, sizeof *order->early);
        queue_init(order->early);
        order->early->total = total;
    }
    for (at = queue_front(order->early); at != NULL; at = queue_next(order->early, at)) {
        if (at->record.seq >= w->record.seq) {
            break;
        }
    }
    if (at != NULL && at->record.seq == w->record.seq) {
        old = at;
        merge(w, old);
    }
    if (at == NULL) {
        queue_push(order->early, w);
    } else {
        queue_push_before(at, w);
    }
    if (old != NULL) {
        queue_remove(old);
    }
    return old;
}

struct waiting *order_take_early(struct order *order)
{
    struct waiting *w = order->early == NULL ? NULL : queue_front(order->early);

    // Sorted by seq and each waits for the one before it: if the first waits, all do.
    if (w == NULL || order_judge(order, &w->record) == ORDER_EARLY) {
        return NULL;
    }
    queue_remove(w);
    return w;
}
