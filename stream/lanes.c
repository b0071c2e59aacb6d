/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes in trouble: what waits, and when it may be sent.
 */
#include "stream/inside.h"

#include "base/mem.h"
#include "base/mutant.h"

/* No node says more than 50 ms (BUSY_RETRY_MS) in honesty, and BEHIND is 1,024 at most: a node that
 * says hours would keep what waits from who owns it by a ring that comes later than its rest. */
enum { REST_MAX_MS = 1024 };

/* One record stands in one list, unless something of it is SENT: then that brings it back. */
struct stream_lane {
    struct table_link link;
    struct list_link in; /* ready, resting, ringless, or starved of a stream */
    uint64_t session;
    uint64_t position;
    uint64_t due_ms;  /* it rests until then, … */
    uint64_t owner;   /* … as this incarnation said, which is its owner; … */
    uint64_t version; /* … or until a ring as new as that is adopted; 0 = none ends it */
    uint32_t first;   /* that waits: index + 1; 0 = none */
    uint32_t last;
    uint32_t sent; /* of its requests, SENT or SETTLES */
    bool counted;  /* `sent` is right */
};

static uint64_t hash_of(uint64_t session, uint64_t position)
{
    return table_mix(session ^ table_mix(position));
}

static struct stream_lane *lane_find(const struct stream_asker *a, uint64_t session,
                                     uint64_t position)
{
    struct table_link *l = table_first(&a->lanes, hash_of(session, position));

    for (; l != NULL; l = table_same(l)) {
        struct stream_lane *lane = CONTAINER_OF(l, struct stream_lane, link);

        if (lane->session == session && lane->position == position) {
            return lane;
        }
    }
    return NULL;
}

static struct stream_lane *lane_of(const struct stream_asker *a, const struct stream_slot *s)
{
    return lane_find(a, slot_session(s), s->position);
}

bool asker_has_lane(const struct stream_asker *a, uint64_t session, uint64_t position)
{
    return lane_find(a, session, position) != NULL;
}

static struct stream_lane *lane_get(struct stream_asker *a, const struct stream_slot *s)
{
    struct stream_lane *lane = lane_of(a, s);

    if (lane == NULL) {
        lane = mem_new(1, sizeof *lane);
        lane->session = slot_session(s);
        lane->position = s->position;
        table_put(&a->lanes, &lane->link, hash_of(lane->session, lane->position));
        a->uncounted++;
    }
    return lane;
}

static void lane_move(struct stream_lane *lane, struct list *to)
{
    if (list_linked(&lane->in)) {
        list_remove(&lane->in);
    }
    if (to != NULL) {
        list_push_back(to, &lane->in);
    }
}

static void lane_free(struct stream_asker *a, struct stream_lane *lane)
{
    lane_move(lane, NULL);
    table_remove(&a->lanes, &lane->link);
    a->uncounted -= lane->counted ? 0 : 1;
    mem_free(lane);
}

/* Put it where what it waits for will find it; or it is in trouble no more. */
static void lane_settle(struct stream_asker *a, struct stream_lane *lane)
{
    if (!lane->counted || lane->sent > 0) {
        lane_move(lane, NULL);
    } else if (lane->first == 0) {
        lane_free(a, lane);
    } else if (lane->due_ms > a->now_ms) {
        a->rested_ms = lane->due_ms < a->rested_ms ? lane->due_ms : a->rested_ms;
        lane_move(lane, &a->resting);
    } else {
        lane_move(lane, &a->ready);
    }
}

/* ---- what waits ---- */

static bool is_before(const struct stream_slot *s, const struct stream_slot *other)
{
    return s->order < other->order;
}

static void insert(struct stream_asker *a, struct stream_lane *lane, struct stream_slot *s)
{
    const uint32_t index = (uint32_t)(s - a->slot) + 1;
    uint32_t *at = &lane->first;

    if (lane->last != 0 && is_before(&a->slot[lane->last - 1], s)) {
        at = &a->slot[lane->last - 1].next; // as nearly all do
    }
    while (*at != 0 && is_before(&a->slot[*at - 1], s)) {
        at = &a->slot[*at - 1].next;
    }
    s->next = *at;
    *at = index;
    lane->last = s->next == 0 ? index : lane->last;
}

/* The incarnation that owns its entity by the ring adopted; 0 = one that has no stream. */
static uint64_t owner_of(const struct stream_asker *a, const struct stream_slot *s)
{
    const struct stream_entity entity = slot_entity(s);
    const struct stream_client *owner = a->config.owner(a->config.context, &entity);

    return owner == NULL ? 0 : owner->log.said.to;
}

/* Its owner wants it so much later. What another node says of that is void, since it is not asked
 * again. */
static void lane_rest(struct stream_asker *a, struct stream_lane *lane, const struct stream_slot *s,
                      uint64_t rest_ms, uint64_t version)
{
    const uint64_t said = a->stream[s->stream]->log.said.to;
    const uint64_t due_ms = a->now_ms + (rest_ms < REST_MAX_MS ? rest_ms : REST_MAX_MS);

    if (owner_of(a, s) == said) {
        lane->due_ms = due_ms > lane->due_ms ? due_ms : lane->due_ms;
        lane->owner = said;
        lane->version = version > lane->version ? version : lane->version;
    }
}

void lanes_wait(struct stream_asker *a, struct stream_slot *s, uint64_t rest_ms, uint64_t version)
{
    struct stream_lane *lane = lane_get(a, s);

    s->state = SLOT_WAITS;
    insert(a, lane, s);
    if (rest_ms > 0) {
        lane_rest(a, lane, s, rest_ms, version);
    }
    lane_settle(a, lane);
}

void lanes_forget(struct stream_asker *a, struct stream_slot *s)
{
    struct stream_lane *lane = lane_of(a, s);
    const uint32_t index = (uint32_t)(s - a->slot) + 1;
    uint32_t before = 0;
    uint32_t *at = &lane->first;

    while (*at != index) {
        before = *at;
        at = &a->slot[*at - 1].next;
    }
    *at = s->next;
    lane->last = lane->last == index ? before : lane->last;
    lane_settle(a, lane);
}

/* ---- what is sent ---- */

void lanes_ended(struct stream_asker *a, const struct stream_slot *s, struct stream_client *c)
{
    struct stream_lane *lane = s->forward ? NULL : lane_of(a, s);

    if (lane != NULL && lane->counted) {
        ASSERT(lane->sent > 0);
        lane->sent--;
        if (lane->sent == 0) {
            lane_settle(a, lane);
        }
    }
    lanes_feed(a, c);
}

void lanes_feed(struct stream_asker *a, struct stream_client *c)
{
    list_splice_back(&a->ready, &c->starved);
}

void asker_limit(struct stream_asker *a, struct stream_client *c, uint32_t window)
{
    c->window = window;
    lanes_feed(a, c);
}

/* Its owner takes no streams: the caller may have what waits. */
static bool lane_give(struct stream_asker *a, struct stream_lane *lane)
{
    while (lane->first != 0) {
        struct stream_slot *s = &a->slot[lane->first - 1];
        const struct stream_reply reply = {.ticket = s->ticket,
                                           .slot = (uint32_t)(s - a->slot),
                                           .position = s->position,
                                           .maybe = s->maybe};
        struct reader in = {.at = s->record, .left = s->size};
        struct stream_request r;

        if (stream_request_get(&in, &r) != ERR_OK) {
            UNREACHABLE();
        }
        if (!a->config.elsewhere(a->config.context, &reply, &r)) {
            return false;
        }
        lane->first = s->next;
        slot_free(a, s);
    }
    lane_free(a, lane);
    return true;
}

/* Nothing of it is SENT, and it need not wait any more. */
static void lane_try(struct stream_asker *a, struct stream_lane *lane)
{
    ASSERT(lane->counted && lane->sent == 0 && lane->first != 0);
    const struct stream_entity entity = slot_entity(&a->slot[lane->first - 1]);
    struct stream_client *owner = a->config.owner(a->config.context, &entity);

    if (owner == NULL) {
        if (a->config.elsewhere == NULL || !lane_give(a, lane)) {
            lane_move(lane, &a->ringless);
        }
        return;
    }
    while (lane->first != 0) {
        struct stream_slot *s = &a->slot[lane->first - 1];

        if (!client_takes(a, owner, s->size)) {
            break;
        }
        lane->first = s->next;
        slot_send(a, s, owner);
        lane->sent++;
    }
    if (lane->first == 0) {
        lane_free(a, lane);
    } else {
        lane_move(lane, lane->sent > 0 ? NULL : &owner->starved);
    }
}

/* One pass for all that were made since the last one. */
static void count(struct stream_asker *a)
{
    struct table_walk at = {0};
    struct table_link *l = NULL;

    for (size_t i = 0; i < a->slot_cap; i++) {
        const struct stream_slot *s = &a->slot[i];
        struct stream_lane *lane = slot_is_sent(s) && !s->forward ? lane_of(a, s) : NULL;

        if (lane != NULL && !lane->counted) {
            lane->sent++;
        }
    }
    while ((l = table_walk(&a->lanes, &at)) != NULL) {
        struct stream_lane *lane = CONTAINER_OF(l, struct stream_lane, link);

        if (!lane->counted) {
            lane->counted = true;
            a->uncounted--;
            lane_settle(a, lane);
        }
    }
    ASSERT(a->uncounted == 0);
}

void asker_turn(struct stream_asker *a, uint64_t now_ms)
{
    struct list_link *l = NULL;

    ASSERT(now_ms >= a->now_ms);
    a->now_ms = now_ms;
    if (a->uncounted > 0) {
        count(a);
    }
    struct list now;
    list_init(&now);
    if (now_ms >= a->rested_ms) {
        a->rested_ms = UINT64_MAX;
        list_splice_back(&now, &a->resting);
    }
    while ((l = list_front(&now)) != NULL) {
        lane_settle(a, CONTAINER_OF(l, struct stream_lane, in));
    }
    list_splice_back(&now, &a->ready); // what comes to be ready by this waits for the next turn
    while ((l = list_front(&now)) != NULL) {
        struct stream_lane *lane = CONTAINER_OF(l, struct stream_lane, in);

        if (lane->due_ms > now_ms) { // a starved one was refused meanwhile
            lane_settle(a, lane);
        } else {
            lane_try(a, lane);
        }
    }
}

/* Another ring: its rest is over if that is what it waited for, or if somebody else owns it. */
static void lane_renew(struct stream_asker *a, struct stream_lane *lane)
{
    if (lane->first == 0 || owner_of(a, &a->slot[lane->first - 1]) != lane->owner ||
        (lane->version != 0 && lane->version <= a->version)) {
        lane->due_ms = 0;
        lane->version = 0;
    }
    lane_settle(a, lane);
}

void asker_ring(struct stream_asker *a, uint64_t version)
{
    struct table_walk at = {0};
    struct table_link *l = NULL;

    ASSERT(version >= a->version);
    a->version = version;
    for (size_t i = 0; i < a->stream_cap; i++) {
        if (a->stream[i] != NULL) {
            sendlog_close(&a->stream[i]->log);
            a->stream[i]->log.said.version = version;
        }
    }
    // A lane that has requests at who owns it no more waits until they are answered (R12).
    for (size_t i = 0; i < a->slot_cap && !mutant(M_NOLANE); i++) {
        struct stream_slot *s = &a->slot[i];

        if (slot_is_sent(s) && !s->forward && owner_of(a, s) != a->stream[s->stream]->log.said.to) {
            if (mutant(M_REROUTE) && !a->stream[s->stream]->joined && s->state == SLOT_SENT) {
                slot_untaken(a, s);
                continue;
            }
            (void)lane_get(a, s);
        }
    }
    while ((l = table_walk(&a->lanes, &at)) != NULL) {
        lane_renew(a, CONTAINER_OF(l, struct stream_lane, link));
    }
}

void lanes_drop_all(struct stream_asker *a)
{
    struct table_walk at = {0};
    struct table_link *l = NULL;

    while ((l = table_walk(&a->lanes, &at)) != NULL) {
        lane_free(a, CONTAINER_OF(l, struct stream_lane, link));
    }
    table_fini(&a->lanes);
}

void lanes_check(const struct stream_asker *a)
{
    struct table_walk at = {0};
    struct table_link *l = NULL;
    size_t waiting = 0;

    while ((l = table_walk(&a->lanes, &at)) != NULL) {
        const struct stream_lane *lane = CONTAINER_OF(l, struct stream_lane, link);
        const struct stream_slot *before = NULL;
        uint32_t sent = 0;

        for (uint32_t i = lane->first; i != 0; i = a->slot[i - 1].next) {
            ASSERT(a->slot[i - 1].state == SLOT_WAITS);
            ASSERT(before == NULL || is_before(before, &a->slot[i - 1]));
            before = &a->slot[i - 1];
            waiting++;
        }
        for (size_t i = 0; i < a->slot_cap; i++) {
            const struct stream_slot *s = &a->slot[i];

            sent += slot_is_sent(s) && !s->forward && lane_of(a, s) == lane ? 1 : 0;
        }
        ASSERT(!lane->counted || lane->sent == sent);
        ASSERT(!lane->counted || sent > 0 || list_linked(&lane->in));
    }
    for (size_t i = 0; i < a->slot_cap; i++) {
        waiting -= a->slot[i].state == SLOT_WAITS ? 1 : 0;
    }
    ASSERT(waiting == 0);
}
