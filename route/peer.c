/* SPDX-License-Identifier: Apache-2.0
 *
 * What the router knows of a node: may it get requests, is it slow or silent?
 */
#include "route/peer.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

struct peer *peer_new(struct peers *p, const struct view_member *member)
{
    ASSERT(member->slot != RING_NODE_NONE && member->slot <= RING_NODES_MAX);
    ASSERT(p->at[member->slot] == NULL);
    struct peer *peer = mem_new(1, sizeof *peer);

    peer->slot = member->slot;
    peer->member_incarnation = member->incarnation;
    memcpy(peer->name, member->name, sizeof peer->name);
    memcpy(peer->address, member->address, sizeof peer->address);
    list_init(&peer->in_flight);
    list_init(&peer->stalled);
    p->at[member->slot] = peer;
    if (member->slot > p->top) {
        p->top = member->slot;
    }
    return peer;
}

void peer_free(struct peers *p, struct peer *peer)
{
    ASSERT(list_empty(&peer->in_flight) && list_empty(&peer->stalled) && peer->stream == NULL);
    if (list_linked(&peer->fed)) {
        list_remove(&peer->fed);
    }
    if (list_linked(&peer->silent)) {
        list_remove(&peer->silent);
    }
    p->at[peer->slot] = NULL;
    mem_free(peer);
}

void peers_fini(struct peers *p)
{
    for (uint16_t slot = 1; slot <= p->top; slot++) {
        if (p->at[slot] != NULL) {
            peer_free(p, p->at[slot]);
        }
    }
}

bool peer_is(const struct peer *peer, const struct view_member *member)
{
    return strcmp(peer->name, member->name) == 0 && strcmp(peer->address, member->address) == 0;
}

bool peer_is_just_slow(const struct peer *peer, uint64_t sent_us, uint64_t recent_us)
{
    return peer->up && peer->answered_us >= recent_us && sent_us >= peer->overtaken_us;
}

bool peer_is_silent(const struct peer *peer, uint64_t now_us, uint64_t silent_us)
{
    return silent_us != 0 && peer->unheard >= PEER_UNHEARD && !list_empty(&peer->in_flight) &&
           now_us - peer->unheard_us >= silent_us;
}

void peer_on_probe(struct peer *peer, uint64_t now_us)
{
    enum { FIRST_US = 25000, DOUBLINGS = 4 };
    const unsigned doublings = peer->probes < DOUBLINGS ? peer->probes : DOUBLINGS;

    peer->probe_us = now_us + ((uint64_t)FIRST_US << doublings);
    peer->probes++;
}
