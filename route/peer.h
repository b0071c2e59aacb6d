/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer: one node as the router sees it, its link and what is on its way there.
 */
#ifndef ROUTE_PEER_H
#define ROUTE_PEER_H

#include "base/list.h"
#include "ring/view.h"
#include "stream/asker.h"

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
    struct ring_kinds lacks;      /* kinds that others of its role host, and it does not (yet) */
    bool told_awaits;             /* it was told that I await answers of it */
    struct list in_flight;        /* struct pending: their last attempt went here */
    bool speaks_streams;          /* the other end of the link does */
    bool knows_again;             /* likewise, what is asked again or traced */
    struct stream_client *stream; /* to the directory's incarnation; the asker's; NULL = none yet */
    uint64_t connection;          /* of the stream; 0 = none */
    unsigned joins;               /* it was asked to join so often on this link … */
    uint64_t join_us;             /* … and is asked again then, if it has not answered */
    uint64_t over;                /* the last incarnation whose stream is over */
    uint64_t quiet_us;            /* since then nothing came by the stream that was awaited … */
    unsigned tries;               /* … so it is given one request now and then … */
    uint64_t try_us;              /* … the next one then */
    struct list stalled;          /* struct lane: until there is room */
    struct list_link fed;         /* in the router's list of peers that have got room */
    uint64_t answered_us;         /* when something that was sent here was answered last */
    uint64_t overtaken_us;        /* what was sent here before was overtaken by an answer */
    size_t unheard;               /* requests sent since anything was answered here, … */
    uint64_t unheard_us;          /* … the first of them then */
    unsigned probes;              /* of them: sent although it is silent */
    uint64_t probe_us;            /* the next one not before */
    struct list_link silent;      /* in the router's list of peers whose lanes wait for that */
    size_t size;                  /* bytes of those in flight, their replies as expected */
    size_t reply_size;            /* what a reply is expected to take */
};

struct peers {
    struct peer *at[RING_NODES_MAX + 1]; /* owned; NULL = no such node */
    uint16_t top;                        /* highest slot ever used */
};

void peers_fini(struct peers *p); /* in_flight lists must be empty */

/* NULL = none; takes any slot */
static inline struct peer *peer_find(const struct peers *p, uint16_t slot)
{
    return slot > RING_NODES_MAX ? NULL : p->at[slot];
}
struct peer *peer_new(struct peers *p, const struct view_member *member);
void peer_free(struct peers *p, struct peer *peer);

/* True if `member` is the same node at the same address. */
bool peer_is(const struct peer *peer, const struct view_member *member);

/* True if requests may be sent to the peer. A link to an incarnation that the directory has given
 * up is as good as none; one to a newer incarnation is fine, for my directory is what is old. */
static inline bool peer_takes_requests(const struct peer *peer)
{
    return peer->up && (peer->incarnation == 0 || peer->incarnation >= peer->member_incarnation);
}

/* True if something that was sent to the peer is unanswered. */
static inline bool peer_is_awaited(const struct peer *peer)
{
    return !list_empty(&peer->in_flight) || (peer->stream != NULL && peer->stream->count > 0);
}

/* The incarnation that gets what is sent there now. */
static inline uint64_t peer_asked(const struct peer *peer)
{
    return peer->incarnation != 0 ? peer->incarnation : peer->member_incarnation;
}

/* True if the peer does not host a kind that others host. Requests for it wait until it does, or
 * another node has the id. */
static inline bool peer_lacks(const struct peer *peer, uint16_t kind)
{
    return peer->lacks.count > 0 && ring_kinds_have(&peer->lacks, kind);
}

/* A request that was sent there at `sent_us` was answered, by whichever node. */
static inline void peer_on_answer(struct peer *peer, uint64_t sent_us, uint64_t now_us)
{
    peer->answered_us = now_us;
    peer->overtaken_us = sent_us > peer->overtaken_us ? sent_us : peer->overtaken_us;
}
/* True if the link is up and answers come over it in their turn, and what was sent at `sent_us` is
 * not overdue among them: the node is slow, and a copy would make it slower. */
bool peer_is_just_slow(const struct peer *peer, uint64_t sent_us, uint64_t recent_us);

/* PEER_UNHEARD or more requests were sent there, over `silent_us` or longer, and nothing was
 * answered: the process may stand still, and what it gets may or may not run. `silent_us` 0 =
 * never. */
enum { PEER_UNHEARD = 16 };
bool peer_is_silent(const struct peer *peer, uint64_t now_us, uint64_t silent_us);
/* Then one may be sent from time to time to find out; false: not now. */
static inline bool peer_may_be_sent(const struct peer *peer, uint64_t now_us, uint64_t silent_us)
{
    return peer->unheard < PEER_UNHEARD || peer->probes == 0 || now_us >= peer->probe_us ||
           !peer_is_silent(peer, now_us, silent_us);
}

/* One was sent although it is silent. */
void peer_on_probe(struct peer *peer, uint64_t now_us);
/* A request was sent there. `silent_us`: the limit, as above. */
static inline void peer_on_sent(struct peer *peer, uint64_t now_us, uint64_t silent_us)
{
    if (peer->unheard >= PEER_UNHEARD && peer_is_silent(peer, now_us, silent_us)) {
        peer_on_probe(peer, now_us);
    }
    if (peer->unheard++ == 0) {
        peer->unheard_us = now_us;
    }
}
/* Note that the peer answered something: it is not silent. */
static inline void peer_on_heard(struct peer *peer)
{
    peer->unheard = 0;
    peer->probes = 0;
}

/* A reply of that size came. */
static inline void peer_learn_reply(struct peer *peer, size_t size)
{
    enum { DECAY = 16 };

    // At least as large as the last: a node must not owe more than its link can hold.
    peer->reply_size = size >= peer->reply_size
                           ? size
                           : peer->reply_size - (peer->reply_size - size + DECAY - 1) / DECAY;
}

#endif
