/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer: one node as the router sees it, its link and what is on its way there.
 */
#ifndef ROUTE_PEER_H
#define ROUTE_PEER_H

#include "base/list.h"
#include "ring/view.h"

#include <stdbool.h>
#include <stdint.h>

struct peer {
    uint16_t slot;
    bool up;                     /* linked */
    bool wanted;                 /* a link was asked for */
    bool removed;                /* no longer in the directory: disconnect when idle */
    uint64_t incarnation;        /* at the other end of the link; 0 = it did not say */
    uint64_t member_incarnation; /* as the directory has it */
    char name[VIEW_NAME_MAX + 1];
    char address[VIEW_ADDRESS_MAX + 1];
    struct ring_kinds lacks; /* kinds that others of its role host, and it does not (yet) */
    bool told_awaits;        /* it was told that I await answers of it */
    struct list in_flight;   /* struct pending: their last attempt went here */
    struct list stalled;     /* struct lane: until there is room */
    struct list_link fed;    /* in the router's list of peers that have got room */
    uint64_t answered_us;    /* when something that was sent here was answered last */
    uint64_t overtaken_us;   /* what was sent here before was overtaken by an answer */
    size_t unheard;          /* requests sent since anything was answered here, … */
    uint64_t unheard_us;     /* … the first of them then */
    unsigned probes;         /* of them: sent although it is silent */
    uint64_t probe_us;       /* the next one not before */
    struct list_link silent; /* in the router's list of peers whose lanes wait for that */
    size_t size;             /* bytes of those in flight, their replies as expected */
    size_t reply_size;       /* what a reply is expected to take */
};

struct peers {
    struct peer *at[RING_NODES_MAX + 1]; /* owned; NULL = no such node */
    uint16_t top;                        /* highest slot ever used */
};

void peers_fini(struct peers *p); /* in_flight lists must be empty */

struct peer *peer_find(const struct peers *p, uint16_t slot); /* NULL = none; takes any slot */
struct peer *peer_new(struct peers *p, const struct view_member *member);
void peer_free(struct peers *p, struct peer *peer);

/* True if `member` is the same node at the same address. */
bool peer_is(const struct peer *peer, const struct view_member *member);

/* May requests be sent there? A link to an incarnation that the directory has given up is as good
 * as none; one to a newer incarnation is fine, for my directory is what is old. */
bool peer_takes_requests(const struct peer *peer);

/* The incarnation that gets what is sent there now. */
static inline uint64_t peer_asked(const struct peer *peer)
{
    return peer->incarnation != 0 ? peer->incarnation : peer->member_incarnation;
}

/* Does it not host what others do? Requests for that wait until it does, or another has the id. */
static inline bool peer_lacks(const struct peer *peer, uint16_t kind)
{
    return peer->lacks.count > 0 && ring_kinds_have(&peer->lacks, kind);
}

/* A request that was sent there at `sent_us` was answered, by whichever node. */
void peer_on_answer(struct peer *peer, uint64_t sent_us, uint64_t now_us);
/* True if the link is up and answers come over it in their turn, and what was sent at `sent_us` is
 * not overdue among them: the node is slow, and a copy would make it slower. */
bool peer_is_just_slow(const struct peer *peer, uint64_t sent_us, uint64_t recent_us);

/* A request was sent there. `silent_us`: the limit, as below. */
void peer_on_sent(struct peer *peer, uint64_t now_us, uint64_t silent_us);
/* Something was answered there: it is not silent. */
void peer_on_heard(struct peer *peer);
/* PEER_UNHEARD or more requests were sent there, over `silent_us` or longer, and nothing was
 * answered: the process may stand still, and what it gets may or may not run. Then one may be sent
 * from time to time to find out; false: not now. `silent_us` 0 = never. */
enum { PEER_UNHEARD = 16 };
bool peer_may_be_sent(const struct peer *peer, uint64_t now_us, uint64_t silent_us);

/* A reply of that size came. */
void peer_learn_reply(struct peer *peer, size_t size);

#endif
