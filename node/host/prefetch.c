/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that come next: among millions of actors hardly one stands in the
 * processor's cache. So the memory that the requests of a frame need is asked for
 * together, one step of the way for all of them after the other: what one waits
 * for comes while the others are looked at.
 *
 * A hint: it changes nothing that anybody could see.
 */
#include "node/host/inside.h"

#include "base/assert.h"

#include <string.h>

/* How far the way of one request is known. */
struct way {
    uint64_t session;
    uint64_t position;
    const struct actor *actor; /* NULL = not found yet */
    uint32_t next;             /* in the bucket that is gone through; 0 = no more */
    uint32_t first; /* of the actor's order records, with which a new one is linked … */
    uint32_t last;  /* … and with this one */
};

void prefetch_forget(struct prefetch *a)
{
    a->version = 0;
}

/* Two records of a bucket are looked at; few have more. */
static void look_for_actor(const struct host *h, struct way *w)
{
    const struct actor *a = w->next == 0 ? NULL : pool_at(&h->actors.pool, w->next);

    w->next = 0;
    if (a != NULL && a->position == w->position) {
        w->actor = a;
        w->first = a->orders;
        order_fetch(&h->orders, a->handle, w->session);
        pool_fetch_head(&h->actors.pool, w->first);
        __builtin_prefetch(a->work, 1);
    } else if (a != NULL) {
        w->next = a->same;
        pool_fetch(&h->actors.pool, w->next);
    }
}

static void look_for_bucket(const struct host *h, struct way *w)
{
    w->next = w->actor == NULL ? 0 : order_bucket(&h->orders, w->actor->handle, w->session);
    pool_fetch_head(&h->actors.pool, w->next);
    pool_fetch_front(&h->actors.pool, w->first);
}

static void look_for_last(const struct host *h, struct way *w)
{
    pool_fetch(&h->actors.pool, w->next);
    if (w->first != 0) {
        const struct order *first = pool_at(&h->actors.pool, w->first);

        w->last = first->of_actor.prev;
        pool_fetch_head(&h->actors.pool, w->last);
    }
}

static void look_for_order(const struct host *h, struct way *w)
{
    const struct order *order = w->next == 0 ? NULL : pool_at(&h->actors.pool, w->next);

    w->next = 0;
    if (order != NULL && (order->actor != w->actor->handle || order->session != w->session)) {
        w->next = order->same;
        pool_fetch(&h->actors.pool, w->next);
    } else if (order != NULL) {
        order_fetch_more(&h->orders, order);
    }
    pool_fetch_front(&h->actors.pool, w->last);
    w->last = 0;
}

static void all(const struct host *h, struct way *way, size_t count,
                void (*look)(const struct host *h, struct way *w))
{
    for (size_t i = 0; i < count; i++) {
        look(h, &way[i]);
    }
}

static void look_for_records(const struct host *h, struct way *w)
{
    w->next = lookup_first(&h->actors.table, w->position);
    pool_fetch_head(&h->actors.pool, w->next);
}

static void look_for_record(const struct host *h, struct way *w)
{
    pool_fetch(&h->actors.pool, w->next);
}

/* The second look is at those that the first one has not found. */
static void look_again(const struct host *h, struct way *w)
{
    if (w->actor == NULL) {
        look_for_actor(h, w);
    }
}

void host_prefetch(struct host *h, const struct request_record *r, size_t count, uint64_t *position)
{
    struct way way[HOST_PREFETCH_MAX];

    ASSERT(count <= HOST_PREFETCH_MAX);
    if (h->membership.life == LIFE_JOINING) { // nothing is where it will be
        memset(position, 0, count * sizeof *position);
        return;
    }
    h->prefetch.version = h->topology.view.ring.version;
    for (size_t i = 0; i < count; i++) {
        position[i] = host_position(h, r[i].kind, r[i].id);
        way[i] = (struct way){.session = r[i].session, .position = position[i]};
        lookup_fetch(&h->actors.table, position[i]);
        __builtin_prefetch(&h->topology.view.ring.cell[ring_point_cell(position[i])]);
        __builtin_prefetch(&h->cells.state[ring_point_cell(position[i])]);
    }
    all(h, way, count, look_for_records);
    all(h, way, count, look_for_record);
    all(h, way, count, look_for_actor);
    all(h, way, count, look_again);
    all(h, way, count, look_for_bucket);
    all(h, way, count, look_for_last);
    all(h, way, count, look_for_order);
    all(h, way, count, look_for_order);
}

/* Its work, instance and order record, and what it is linked with. */
static void look_at_actor(const struct host *h, const struct actor *a)
{
    const struct pool *pool = &h->actors.pool;

    __builtin_prefetch(a->work, 1);
    __builtin_prefetch(a->instance, 1);
    lookup_fetch(&h->actors.table, a->position);
    pool_fetch(pool, a->orders);
    pool_fetch_front(pool, a->cell.next);
    pool_fetch_front(pool, a->idle.next);
    pool_fetch_front(pool, a->idle.prev);
}

static void look_at_order(const struct host *h, const struct actor *a)
{
    const struct pool *pool = &h->actors.pool;

    pool_fetch_front(pool, lookup_first(&h->actors.table, a->position));
    if (a->orders != 0) {
        const struct order *order = pool_at(pool, a->orders);

        order_fetch(&h->orders, a->handle, order->session);
        pool_fetch(pool, order->idle.next);
        pool_fetch(pool, order->idle.prev);
    }
}

static void look_at_bucket(const struct host *h, const struct actor *a)
{
    if (a->orders != 0) {
        const struct order *order = pool_at(&h->actors.pool, a->orders);

        pool_fetch_front(&h->actors.pool, order_bucket(&h->orders, a->handle, order->session));
    }
}

void prefetch_actors(const struct host *h, struct actor *const *a, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        __builtin_prefetch(a[i], 1);
        __builtin_prefetch((const uint8_t *)a[i] + 64, 1);
    }
    for (size_t i = 0; i < count; i++) {
        look_at_actor(h, a[i]);
    }
    for (size_t i = 0; i < count; i++) {
        look_at_order(h, a[i]);
    }
    for (size_t i = 0; i < count; i++) {
        look_at_bucket(h, a[i]);
    }
}

void prefetch_images(const struct host *h, struct image *const *image, size_t count)
{
    enum { IMAGE_AT = 9, BUCKET_AT = 6, RECORD_AT = 3 };

    if (count > IMAGE_AT) {
        __builtin_prefetch(image[IMAGE_AT]);
        __builtin_prefetch((const uint8_t *)image[IMAGE_AT] + 64);
    }
    if (count > BUCKET_AT) {
        const uint32_t cell = ring_point_cell(image[BUCKET_AT]->position);

        lookup_fetch(&h->actors.table, image[BUCKET_AT]->position);
        __builtin_prefetch(&h->topology.view.ring.cell[cell]);
        __builtin_prefetch(&h->actors.cell[cell], 1);
    }
    if (count > RECORD_AT) {
        const uint64_t position = image[RECORD_AT]->position;

        pool_fetch_front(&h->actors.pool, lookup_first(&h->actors.table, position));
        pool_fetch_front(&h->actors.pool, h->actors.cell[ring_point_cell(position)]);
    }
}

void host_prefetch_running(const struct actor *a)
{
    __builtin_prefetch(a, 1);
}

void host_prefetch_order(const struct host *h, const struct actor *a)
{
    if (a->state == ACTOR_EXPORTING) {
        pool_fetch(&h->actors.pool, a->orders); // it goes into the image
    } else if (a->work != NULL) {
        __builtin_prefetch(a->work->running.order, 1);
    }
}
