/* SPDX-License-Identifier: Apache-2.0 */
#include "node/order.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"

enum { EVICT_AT_ONCE = 1000 };

static uint64_t key_of(const struct actor *a, uint64_t session)
{
    return table_mix(session ^ table_mix((uint64_t)(uintptr_t)a));
}

void orders_init(struct orders *o)
{
    *o = (struct orders){0};
    list_init(&o->idle);
}

void orders_fini(struct orders *o)
{
    ASSERT(o->table.count == 0);
    table_fini(&o->table);
}

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
    table_remove(&o->table, &order->link);
    list_remove(&order->of_actor);
    list_remove(&order->idle);
    mem_free(order->early);
    mem_free(order);
}

void order_touch(struct orders *o, struct order *order, uint64_t now_us)
{
    order->touched_us = now_us;
    list_remove(&order->idle);
    list_push_back(&o->idle, &order->idle);
}

void orders_evict(struct orders *o, uint64_t now_us, uint64_t keep_us)
{
    for (size_t i = 0; i < EVICT_AT_ONCE && !list_empty(&o->idle); i++) {
        struct order *order = CONTAINER_OF(list_front(&o->idle), struct order, idle);

        if (now_us - order->touched_us < keep_us) {
            return;
        }
        if (order->early != NULL && order->early->count > 0) {
            order_touch(o, order, now_us);
        } else {
            order_free(o, order);
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

static void merge(struct request_record *into, const struct request_record *r)
{
    into->version = r->version > into->version ? r->version : into->version;
    // A later copy names a lower predecessor when the one between was given up (hole 41).
    into->prev = r->prev < into->prev ? r->prev : into->prev;
    into->base = r->base > into->base ? r->base : into->base;
    into->copy = r->copy > into->copy ? r->copy : into->copy;
    into->session_epoch =
        r->session_epoch > into->session_epoch ? r->session_epoch : into->session_epoch;
}

bool order_keep_early(struct order *order, struct waiting *w, size_t *total)
{
    struct waiting *at = NULL;

    if (order->early == NULL) {
        order->early = mem_new(1, sizeof *order->early);
        queue_init(order->early);
        order->early->total = total;
    }
    for (at = queue_front(order->early); at != NULL; at = queue_next(order->early, at)) {
        if (at->record.seq == w->record.seq) {
            merge(&at->record, &w->record);
            return false;
        }
        if (at->record.seq > w->record.seq) {
            break;
        }
    }
    if (at == NULL) {
        queue_push(order->early, w);
    } else {
        queue_push_before(at, w);
    }
    return true;
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
