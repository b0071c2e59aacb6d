/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that come next: among millions of actors hardly one stands in the
 * processor's cache. So the memory that the requests of a frame need is asked for
 * together, one step of the way for all of them after the other: what one waits
 * for comes while the others are looked at.
 *
 * A hint: it changes nothing that anybody could see.
 */
#include "node/inside.h"

#include "base/assert.h"

#include <string.h>

/* How far the way of one request is known. */
struct way {
    uint32_t actor; /* first record of its bucket; 0 = none: it is looked at no more */
    uint32_t order; /* the same of its order record */
    uint32_t first; /* of the actor's order records, which a new one is linked with … */
    uint32_t last;  /* … and with this one */
};

/* Its actor, if that is the first of its bucket, as nearly all are. */
static void look_at_actor(const struct host *h, uint64_t session, uint64_t position, struct way *w)
{
    const struct actor *a = w->actor == 0 ? NULL : pool_at(&h->actors.pool, w->actor);

    if (a == NULL || a->position != position) {
        *w = (struct way){0};
        return;
    }
    w->first = a->orders;
    order_fetch(&h->orders, w->actor, session);
    pool_fetch_head(&h->actors.pool, w->first);
    if (a->busy != NULL) {
        __builtin_prefetch(a->busy, 1);
    }
}

static void look_at_orders(const struct host *h, uint64_t session, struct way *w)
{
    if (w->actor == 0) {
        return;
    }
    w->order = order_bucket(&h->orders, w->actor, session);
    pool_fetch_head(&h->actors.pool, w->order);
    pool_fetch(&h->actors.pool, w->first);
}

static void look_at_order(const struct host *h, struct way *w)
{
    pool_fetch(&h->actors.pool, w->order);
    if (w->first != 0) {
        const struct order *first = pool_at(&h->actors.pool, w->first);

        w->last = first->of_actor.prev;
        pool_fetch_head(&h->actors.pool, w->last);
    }
}

/* The first in its bucket is another one's: so is the next, or there is none yet. */
static void look_behind(const struct host *h, uint64_t session, struct way *w)
{
    const struct order *order = w->order == 0 ? NULL : pool_at(&h->actors.pool, w->order);

    w->order = 0;
    if (order != NULL && (order->actor != w->actor || order->session != session)) {
        w->order = order->same;
        pool_fetch_head(&h->actors.pool, w->order);
    }
}

void host_look_ahead(struct host *h, const struct request_record *r, size_t count,
                     uint64_t *position)
{
    const struct lookup *actors = &h->actors.table;
    struct way way[HOST_AHEAD_MAX];

    ASSERT(count <= HOST_AHEAD_MAX);
    if (h->life == LIFE_JOINING) { // nothing is where it will be
        memset(position, 0, count * sizeof *position);
        return;
    }
    h->ahead_version = h->view.ring.version;
    for (size_t i = 0; i < count; i++) {
        position[i] = host_position(h, r[i].kind, r[i].id);
        lookup_fetch(actors, position[i]);
    }
    for (size_t i = 0; i < count; i++) {
        way[i] = (struct way){.actor = lookup_first(actors, position[i])};
        pool_fetch_head(&h->actors.pool, way[i].actor);
    }
    for (size_t i = 0; i < count; i++) {
        pool_fetch(&h->actors.pool, way[i].actor);
    }
    for (size_t i = 0; i < count; i++) {
        look_at_actor(h, r[i].session, position[i], &way[i]);
    }
    for (size_t i = 0; i < count; i++) {
        look_at_orders(h, r[i].session, &way[i]);
    }
    for (size_t i = 0; i < count; i++) {
        look_at_order(h, &way[i]);
    }
    for (size_t i = 0; i < count; i++) {
        pool_fetch(&h->actors.pool, way[i].last);
        look_behind(h, r[i].session, &way[i]);
    }
    for (size_t i = 0; i < count; i++) {
        pool_fetch(&h->actors.pool, way[i].order);
    }
}

void host_fetch_running(const struct actor *a)
{
    __builtin_prefetch(a, 1);
}

void host_fetch_order(const struct actor *a)
{
    if (a->busy != NULL) {
        __builtin_prefetch(a->busy->running.order, 1);
    }
}
