/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes that calls go to: their links, and the view by which they are known.
 */
#include "node/calls/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/table.h"

#include <stdio.h>
#include <string.h>

const struct view_member *calls_member(const struct calls *c, uint64_t incarnation)
{
    for (size_t i = 0; c->view != NULL && i < c->view->member_count; i++) {
        if (c->view->member[i].incarnation == incarnation) {
            return &c->view->member[i];
        }
    }
    return NULL;
}

static uint16_t slot_of(const struct calls *c, const struct road *road)
{
    const struct view_member *m = calls_member(c, road->incarnation);
    const bool fits = m != NULL && (strcmp(m->name, road->name) == 0 || mutant(M_NAME));

    return fits ? m->slot : RING_NODE_NONE;
}

struct road *calls_road(const struct calls *c, uint64_t peer)
{
    for (size_t i = 0; i < c->road_count; i++) {
        if (c->road[i].peer == peer) {
            return &c->road[i];
        }
    }
    return NULL;
}

/* Requests and Adopted take one link, for who reads the latter must have read the former; it is
 * used until it is lost, whoever dialled it. */
static void use(struct calls *c, const struct road *road, uint64_t now_us)
{
    if (road->slot == RING_NODE_NONE || c->in_use[road->slot] != 0) {
        return;
    }
    c->in_use[road->slot] = road->peer;
    calls_step(c,
               (struct router_event){.type = ROUTER_NODE_UP,
                                     .slot = road->slot,
                                     .name = road->name,
                                     .incarnation = road->incarnation,
                                     .speaks_streams = road->streams},
               now_us);
}

static void leave(struct calls *c, uint16_t slot, uint64_t now_us)
{
    c->in_use[slot] = 0;
    calls_step(c, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = slot}, now_us);
}

static bool still_at(const struct calls *c, const struct road *road)
{
    const struct view_member *m = view_member(c->view, road->slot);

    // Without a member the slot stays its own: an answer may still come by this link.
    return m == NULL || m->incarnation == road->incarnation;
}

/* The view changed: a slot may be another node's now. */
static void follow(struct calls *c, uint64_t now_us)
{
    for (size_t i = 0; i < c->road_count; i++) {
        struct road *road = &c->road[i];

        if (road->slot != RING_NODE_NONE && still_at(c, road)) {
            continue;
        }
        if (road->slot != RING_NODE_NONE && c->in_use[road->slot] == road->peer) {
            leave(c, road->slot, now_us);
        }
        road->slot = slot_of(c, road);
    }
    for (size_t i = 0; i < c->road_count; i++) {
        use(c, &c->road[i], now_us);
    }
}

void calls_up(struct calls *c, uint64_t peer, const char *name, uint64_t incarnation, bool streams,
              uint64_t now_us)
{
    ASSERT(peer != CALLS_LINK);
    if (c->road_count == c->road_cap) {
        c->road_cap = c->road_cap == 0 ? 16 : c->road_cap * 2;
        c->road = mem_resize(c->road, c->road_cap * sizeof *c->road);
    }
    struct road road = {.peer = peer, .incarnation = incarnation, .streams = streams};

    (void)snprintf(road.name, sizeof road.name, "%s", name);
    road.slot = slot_of(c, &road);
    c->road[c->road_count++] = road;
    if (c->router != NULL) {
        use(c, &road, now_us);
    }
}

void calls_down(struct calls *c, uint64_t peer, uint64_t now_us)
{
    struct road *road = calls_road(c, peer);

    if (road == NULL) {
        return;
    }
    const struct road gone = *road;

    formers_lose_peer(c, peer);
    const size_t after = c->road_count - (size_t)(road - c->road) - 1;

    memmove(road, road + 1, after * sizeof *road);
    c->road_count--;
    if (c->router == NULL || gone.slot == RING_NODE_NONE || c->in_use[gone.slot] != peer) {
        return;
    }
    leave(c, gone.slot, now_us);
    for (size_t i = 0; i < c->road_count; i++) {
        if (c->road[i].incarnation == gone.incarnation) {
            use(c, &c->road[i], now_us);
        }
    }
}

/* Another incarnation, or none. */
static void begin(struct calls *c, uint64_t incarnation)
{
    struct router_config config = c->limits;

    broadcasts_restart(&c->broadcasts, c->waiting);
    waits_clear(&c->waits);
    formers_drop(c);
    c->refuses = false;
    router_free(c->router);
    c->router = NULL;
    router_effects_clear(&c->out);
    router_effects_clear(&c->doing);
    c->at = 0;
    c->incarnation = incarnation;
    c->slot = RING_NODE_NONE;
    c->version = 0;
    c->caller = 0;
    c->begins = incarnation != 0;
    c->tells = false;
    c->awaits = false;
    memset(c->in_use, 0, (RING_NODES_MAX + 1) * sizeof *c->in_use);
    for (size_t i = 0; i < c->road_count; i++) {
        c->road[i].slot = RING_NODE_NONE;
    }
    if (incarnation != 0) {
        config.gateway = incarnation;
        config.seed = table_mix(c->limits.seed + incarnation);
        c->router = router_new(&config);
    }
}

static bool is_news(const struct calls *c, const struct ring *ring)
{
    return c->version != ring->version || c->digest[0] != ring->digest[0] ||
           c->digest[1] != ring->digest[1];
}

/* The link without a wire. */
static void use_own(struct calls *c, uint64_t now_us)
{
    const struct view_member *me = calls_member(c, c->incarnation);
    struct road road = {.peer = CALLS_LINK, .incarnation = c->incarnation, .streams = true};

    if (me != NULL) {
        c->slot = road.slot = me->slot;
        (void)snprintf(road.name, sizeof road.name, "%s", me->name);
        use(c, &road, now_us);
    }
}

void calls_look(struct calls *c, const struct view *view, uint64_t incarnation, uint64_t now_us)
{
    if (incarnation != c->incarnation) {
        begin(c, incarnation);
    }
    if (c->router == NULL || !is_news(c, &view->ring)) {
        return;
    }
    c->view = view;
    c->caller = 0;
    c->version = view->ring.version;
    memcpy(c->digest, view->ring.digest, sizeof c->digest);
    calls_step(c, (struct router_event){.type = ROUTER_VIEW, .view = view}, now_us);
    if (c->slot == RING_NODE_NONE) {
        use_own(c, now_us);
    }
    follow(c, now_us);
    c->tells = true;
}
