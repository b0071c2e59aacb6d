/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes, finds and frees lanes, and keeps each one's requests in order.
 */
#include "route/lane.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

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

static struct lane *lane_new(struct lanes *l)
{
    struct lane *lane = NULL;

    if (l->spare != NULL) {
        lane = CONTAINER_OF(l->spare, struct lane, link);
        l->spare = lane->link.next;
        l->spare_count--;
        if (l->spare != NULL) {
            lane_fetch(CONTAINER_OF(l->spare, struct lane, link)); // the next one
        }
    } else {
        lane = mem_lines(sizeof *lane);
    }
    memset(lane, 0, 64);
    memset((uint8_t *)lane + 64, 0, sizeof *lane - 64); // two, for one would be a loop
    list_init(&lane->all);
    return lane;
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

struct lane *lane_add(struct lanes *l, uint64_t session, uint64_t position, struct pending *p)
{
    const uint64_t hash = lane_hash(session, position);
    struct lane *lane = find(l, hash, session, p);

    if (lane == NULL) {
        lane = lane_new(l);
        lane->session = session;
        lane->position = position;
        lane->kind = p->kind;
        table_put(&l->table, &lane->link, hash);
    }
    p->lane = lane;
    struct list_link *before = lane->all.head.prev;

    // The last of all, but for a client that numbers its requests itself and goes back.
    while (before != &lane->all.head &&
           CONTAINER_OF(before, struct pending, in_lane)->seq > p->seq) {
        before = before->prev;
    }
    list_insert_after(before, &p->in_lane);
    return lane;
}

bool lanes_have(const struct lanes *l, uint64_t session, uint64_t position)
{
    struct table_link *i = table_first(&l->table, lane_hash(session, position));

    for (; i != NULL; i = table_same(i)) {
        const struct lane *lane = CONTAINER_OF(i, struct lane, link);

        if (lane->session == session && lane->position == position) {
            return true;
        }
    }
    return false;
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
        table_put(&l->table, i, lane_hash(lane->session, lane->position));
    }
    table_fini(&old);
}
