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

void prefetch_forget(struct prefetch *a)
{
    a->version = 0;
    prefetch_stale(a);
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

/* Two records of a bucket are looked at; few have more. */
static void look_for_actor(const struct host *h, struct way *w)
{
    struct actor *a = w->next == 0 ? NULL : pool_at(&h->actors.pool, w->next);

    w->next = 0;
    if (a != NULL && a->position == w->position) {
        w->actor = a;
        w->key = order_key(a->handle, w->session);
        lookup_fetch(&h->orders.table, w->key);
        __builtin_prefetch(a->work, 1);
        __builtin_prefetch(a->instance, 1);
    } else if (a != NULL) {
        w->next = a->same;
        pool_fetch(&h->actors.pool, w->next);
    }
}

/* The second look is at those that the first one has not found. */
static void look_again(const struct host *h, struct way *w)
{
    if (w->actor == NULL && w->next != 0) {
        look_for_actor(h, w);
    }
}

static void look_for_bucket(const struct host *h, struct way *w)
{
    w->next = w->actor == NULL ? 0 : lookup_first(&h->orders.table, w->key);
    pool_fetch_head(&h->actors.pool, w->next);
}

static void look_for_orders(const struct host *h, struct way *w)
{
    pool_fetch(&h->actors.pool, w->next);
}

static void look_for_order(const struct host *h, struct way *w)
{
    struct order *order = w->next == 0 ? NULL : pool_at(&h->actors.pool, w->next);

    w->next = 0;
    if (order != NULL && (order->actor != w->actor->handle || order->session != w->session)) {
        w->next = order->same;
        pool_fetch(&h->actors.pool, w->next);
    } else if (order != NULL) {
        w->order = order;
        order_fetch_more(&h->orders, order);
    }
}

static bool is_new(const struct way *w)
{
    return w->order == NULL && w->actor != NULL && w->actor->orders != 0;
}

static void look_for_order_again(const struct host *h, struct way *w)
{
    if (w->order == NULL && w->next != 0) {
        look_for_order(h, w);
    }
    pool_fetch_front(&h->actors.pool, is_new(w) ? w->actor->orders : 0);
}

static void look_for_last(const struct host *h, struct way *w)
{
    if (is_new(w)) {
        const struct order *first = pool_at(&h->actors.pool, w->actor->orders);

        pool_fetch_front(&h->actors.pool, first->of_actor.prev);
    }
}

__attribute__((always_inline)) static inline void
all(struct host *h, size_t count, void (*look)(const struct host *h, struct way *w))
{
    for (size_t i = 0; i < count; i++) {
        look(h, &h->prefetch.way[i]);
    }
}

void host_prefetch(struct host *h, const struct request_record *r, size_t count, uint64_t *position)
{
    ASSERT(count <= HOST_PREFETCH_MAX);
    prefetch_stale(&h->prefetch);
    if (h->membership.life == LIFE_JOINING) { // nothing is where it will be
        memset(position, 0, count * sizeof *position);
        return;
    }
    h->prefetch.version = h->topology.view.ring.version;
    for (size_t i = 0; i < count; i++) {
        position[i] = host_position(h, r[i].kind, r[i].id);
        h->prefetch.way[i] = (struct way){.session = r[i].session, .position = position[i]};
        lookup_fetch(&h->actors.table, position[i]);
        __builtin_prefetch(&h->topology.view.ring.cell[ring_point_cell(position[i])]);
        __builtin_prefetch(&h->cells.state[ring_point_cell(position[i])]);
    }
    all(h, count, look_for_records);
    all(h, count, look_for_record);
    all(h, count, look_for_actor);
    all(h, count, look_again);
    all(h, count, look_for_bucket);
    all(h, count, look_for_orders);
    all(h, count, look_for_order);
    all(h, count, look_for_order_again);
    all(h, count, look_for_last);
    h->prefetch.count = count;
    h->prefetch.taken = 0;
}

void prefetch_taken(const struct host *h, const uint64_t *position, size_t count,
                    void (*fetch)(const struct rh_actor *instance), struct actor **found)
{
    const struct pool *pool = &h->actors.pool;
    uint32_t first[STREAM_TAKEN_AT_ONCE];

    for (size_t i = 0; i < count; i++) {
        lookup_fetch(&h->actors.table, position[i]);
        __builtin_prefetch(&h->cells.state[ring_point_cell(position[i])]);
    }
    for (size_t i = 0; i < count; i++) {
        first[i] = lookup_first(&h->actors.table, position[i]);
        pool_fetch(pool, first[i]);
    }
    for (size_t i = 0; i < count; i++) {
        struct actor *a = actor_at(&h->actors, first[i]);

        while (a != NULL && a->position != position[i]) {
            a = actor_at(&h->actors, a->same);
        }
        found[i] = a;
        if (a != NULL && a->instance != NULL) {
            __builtin_prefetch(a->instance, 1);
            __builtin_prefetch((const uint8_t *)a->instance + 64, 1);
        }
    }
    for (size_t i = 0; fetch != NULL && i < count; i++) {
        if (found[i] != NULL && found[i]->instance != NULL && found[i]->state == ACTOR_IDLE) {
            fetch(found[i]->instance);
        }
    }
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

        lookup_fetch(&h->orders.table, order_key(a->handle, order->session));
        pool_fetch(pool, order->idle.next);
        pool_fetch(pool, order->idle.prev);
    }
}

static void look_at_bucket(const struct host *h, const struct actor *a)
{
    if (a->orders != 0) {
        const struct order *order = pool_at(&h->actors.pool, a->orders);

        pool_fetch_front(&h->actors.pool,
                         lookup_first(&h->orders.table, order_key(a->handle, order->session)));
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
