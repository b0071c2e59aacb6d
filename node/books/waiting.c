/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues of requests under one limit of bytes, and a wheel that finds the
 * expired ones.
 */
#include "node/books/waiting.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

void room_init(struct room *room, uint64_t now_us)
{
    *room = (struct room){.swept = now_us / ROOM_GRAIN_US};
    for (size_t i = 0; i < ROOM_SLOTS; i++) {
        list_init(&room->wheel[i]);
    }
}

void room_fini(struct room *room)
{
    for (size_t i = 0; i < ROOM_SLOTS; i++) {
        struct list_link *link = NULL;

        while ((link = list_front(&room->wheel[i])) != NULL) {
            waiting_free(room, CONTAINER_OF(link, struct waiting, due));
        }
    }
    ASSERT(room->count == 0 && room->size == 0);
    mem_free(room->of_vnode);
    room->of_vnode = NULL;
    room->vnode_cap = 0;
}

struct waiting *waiting_new(struct room *room, const struct request_record *r, uint64_t peer,
                            uint64_t deadline_us)
{
    const size_t size = sizeof(struct waiting) + r->id.size + r->body.size;
    struct waiting *w = mem_new(1, size);

    w->peer = peer;
    w->deadline_us = deadline_us;
    w->size = size;
    w->record = *r;
    memcpy(w->data, r->id.data, r->id.size);
    if (r->body.size > 0) {
        memcpy(w->data + r->id.size, r->body.data, r->body.size);
    }
    w->record.id.data = w->data;
    w->record.body.data = w->data + r->id.size;
    list_push_back(&room->wheel[deadline_us / ROOM_GRAIN_US % ROOM_SLOTS], &w->due);
    room->count++;
    room->size += size;
    return w;
}

void waiting_charge(struct room *room, struct waiting *w, uint32_t vnode)
{
    ASSERT(w->vnode == 0);
    if (vnode >= room->vnode_cap) {
        const size_t cap = (vnode + 1) * (size_t)2;

        room->of_vnode = mem_resize(room->of_vnode, cap * sizeof *room->of_vnode);
        memset(room->of_vnode + room->vnode_cap, 0, (cap - room->vnode_cap) * sizeof(size_t));
        room->vnode_cap = cap;
    }
    room->of_vnode[vnode] += w->size;
    w->vnode = vnode + 1;
}

size_t room_size_of(const struct room *room, uint32_t vnode)
{
    return vnode < room->vnode_cap ? room->of_vnode[vnode] : 0;
}

void waiting_free(struct room *room, struct waiting *w)
{
    if (w->queue != NULL) {
        queue_remove(w);
    }
    list_remove(&w->due);
    ASSERT(room->count > 0 && room->size >= w->size);
    room->count--;
    room->size -= w->size;
    if (w->vnode != 0) {
        ASSERT(room->of_vnode[w->vnode - 1] >= w->size);
        room->of_vnode[w->vnode - 1] -= w->size;
    }
    mem_free(w);
}

struct waiting *room_expired(struct room *room, uint64_t now_us)
{
    // A slot is swept when all of its time has passed: no deadline is farther away than the
    // wheel reaches.
    const uint64_t now_slot = now_us / ROOM_GRAIN_US;

    if (now_slot > room->swept + ROOM_SLOTS) {
        room->swept = now_slot - ROOM_SLOTS;
    }
    while (room->swept < now_slot) {
        struct list_link *link = list_front(&room->wheel[room->swept % ROOM_SLOTS]);

        struct waiting *w = link == NULL ? NULL : CONTAINER_OF(link, struct waiting, due);

        if (w != NULL && w->deadline_us <= now_us) {
            return w;
        }
        room->swept++; // empty, or (after a long sleep) already one turn ahead
    }
    return NULL;
}

void queue_init(struct queue *q)
{
    list_init(&q->list);
    q->count = 0;
    q->total = NULL;
}

static void enter(struct queue *q, struct waiting *w)
{
    w->queue = q;
    q->count++;
    if (q->total != NULL) {
        ++*q->total;
    }
}

void queue_push(struct queue *q, struct waiting *w)
{
    ASSERT(w->queue == NULL);
    list_push_back(&q->list, &w->link);
    enter(q, w);
}

void queue_push_before(struct waiting *at, struct waiting *w)
{
    ASSERT(w->queue == NULL && at->queue != NULL);
    w->link.prev = at->link.prev;
    w->link.next = &at->link;
    at->link.prev->next = &w->link;
    at->link.prev = &w->link;
    enter(at->queue, w);
}

void queue_remove(struct waiting *w)
{
    ASSERT(w->queue != NULL && w->queue->count > 0);
    list_remove(&w->link);
    w->queue->count--;
    if (w->queue->total != NULL) {
        --*w->queue->total;
    }
    w->queue = NULL;
}

struct waiting *queue_front(const struct queue *q)
{
    struct list_link *link = list_front(&q->list);

    return link == NULL ? NULL : CONTAINER_OF(link, struct waiting, link);
}

struct waiting *queue_next(const struct queue *q, const struct waiting *w)
{
    struct list_link *link = list_next(&q->list, &w->link);

    return link == NULL ? NULL : CONTAINER_OF(link, struct waiting, link);
}

struct waiting *queue_pop(struct queue *q)
{
    struct waiting *w = queue_front(q);

    if (w != NULL) {
        queue_remove(w);
    }
    return w;
}

void queue_append(struct queue *to, struct queue *from)
{
    struct waiting *w = NULL;

    while ((w = queue_pop(from)) != NULL) {
        queue_push(to, w);
    }
}
