/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes, finds and frees lanes, and keeps each one's requests in order.
 */
#include "route/lane.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

enum { LANES_SPARE_MAX = 4096 };

void lanes_fini(struct lanes *l)
{
    ASSERT(l->table.count == 0);
    while (l->spare != NULL) {
        struct lane *lane = CONTAINER_OF(l->spare, struct lane, link);

        l->spare = lane->link.next;
        mem_free(lane);
    }
    table_fini(&l->table);
}

static void fetch(struct table_link *link)
{
    if (link != NULL) {
        lane_fetch(CONTAINER_OF(link, struct lane, link));
    }
}

static struct lane *lane_new(struct lanes *l)
{
    struct lane *lane = NULL;

    if (l->spare != NULL) {
        lane = CONTAINER_OF(l->spare, struct lane, link);
        l->spare = lane->link.next;
        l->spare_count--;
        fetch(l->spare); // the next one
    } else {
        lane = mem_lines(sizeof *lane);
    }
    memset(lane, 0, sizeof *lane);
    list_init(&lane->all);
    return lane;
}

static void lane_free(struct lanes *l, struct lane *lane)
{
    lane_unblock(lane);
    table_remove(&l->table, &lane->link);
    if (l->spare_count >= LANES_SPARE_MAX) {
        mem_free(lane);
        return;
    }
    lane->link.next = l->spare;
    l->spare = &lane->link;
    l->spare_count++;
}

struct pending *lane_front(const struct lane *lane)
{
    struct list_link *front = list_front(&lane->all);

    return front == NULL ? NULL : CONTAINER_OF(front, struct pending, in_lane);
}

struct pending *lane_next(const struct lane *lane, const struct pending *p)
{
    struct list_link *next = list_next(&lane->all, &p->in_lane);

    return next == NULL ? NULL : CONTAINER_OF(next, struct pending, in_lane);
}

uint64_t lane_prev_seq(const struct lane *lane, const struct pending *p)
{
    struct list_link *prev = p->in_lane.prev;

    return prev == &lane->all.head ? 0 : CONTAINER_OF(prev, struct pending, in_lane)->seq;
}

/* The same id of two sessions has one position, of two kinds two. */
static uint64_t hash_of(uint64_t session, uint64_t position)
{
    return position + session * 0x9e3779b97f4a7c15u;
}

static struct lane *find(const struct lanes *l, uint64_t hash, uint64_t session,
                         const struct pending *p)
{
    for (struct table_link *i = table_first(&l->table, hash); i != NULL; i = table_same(i)) {
        struct lane *lane = CONTAINER_OF(i, struct lane, link);

        if (lane->session == session && lane->kind == p->kind &&
            bytes_equal(pending_id(lane_front(lane)), pending_id(p))) {
            return lane;
        }
    }
    return NULL;
}

void lanes_fetch(const struct lanes *l, uint64_t session, uint64_t position)
{
    table_fetch(&l->table, hash_of(session, position));
}

void lanes_fetch_front(const struct lanes *l, uint64_t session, uint64_t position)
{
    fetch(table_front(&l->table, hash_of(session, position)));
}

struct lane *lane_add(struct lanes *l, uint64_t session, uint64_t position, struct pending *p)
{
    const uint64_t hash = hash_of(session, position);
    struct lane *lane = find(l, hash, session, p);

    if (lane == NULL) {
        lane = lane_new(l);
        lane->session = session;
        lane->position = position;
        lane->kind = p->kind;
        table_put(&l->table, &lane->link, hash);
    }
    struct list_link *before = lane->all.head.prev;

    // The last of all, but for a client that numbers its requests itself and goes back.
    while (before != &lane->all.head &&
           CONTAINER_OF(before, struct pending, in_lane)->seq > p->seq) {
        before = before->prev;
    }
    list_insert_after(before, &p->in_lane);
    p->lane = lane;
    return lane;
}

struct lane *lane_remove(struct lanes *l, struct pending *p)
{
    struct lane *lane = p->lane;

    list_remove(&p->in_lane);
    p->lane = NULL;
    if (!list_empty(&lane->all)) {
        return lane;
    }
    ASSERT(lane->sent == 0 && lane->waiting == 0);
    lane_free(l, lane);
    return NULL;
}

void lanes_move(struct lanes *l, uint64_t (*position)(void *context, const struct lane *lane),
                void *context)
{
    struct table old = l->table;
    struct table_walk at = {0};

    l->table = (struct table){0};
    for (struct table_link *i = table_walk(&old, &at); i != NULL; i = table_walk(&old, &at)) {
        struct lane *lane = CONTAINER_OF(i, struct lane, link);

        table_remove(&old, i);
        lane->position = position(context, lane);
        table_put(&l->table, i, hash_of(lane->session, lane->position));
    }
    table_fini(&old);
}

bool lane_is_blocked(const struct lane *lane)
{
    return list_linked(&lane->stalled) || list_linked(&lane->resting);
}

void lane_unblock(struct lane *lane)
{
    if (list_linked(&lane->stalled)) {
        list_remove(&lane->stalled);
    }
    if (list_linked(&lane->resting)) {
        list_remove(&lane->resting);
    }
}
