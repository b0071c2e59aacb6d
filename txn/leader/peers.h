/* SPDX-License-Identifier: Apache-2.0
 *
 * Peers: who is linked, and which nodes were heard of lately?
 *
 * peers.c has the links, who is live, and sending; unanswered.c what gateways and nodes tell that
 * dead nodes were asked for.
 */
#ifndef TXN_LEADER_PEERS_H
#define TXN_LEADER_PEERS_H

#include "base/table.h"
#include "ring/unanswered.h"
#include "txn/leader/coordinator.h"
#include "txn/leader/drift.h"
#include "txn/leader/parts.h"
#include "txn/leader/state_versions.h"
#include "wire/control.h"
#include "wire/hello.h"

/* A link. */
struct leader_peer {
    struct table_link by_id;
    uint64_t id;
    uint16_t
        slot; /* of the node with its name, when that was looked for last; 0 = there was none */
    enum link_role role;
    char name[VIEW_NAME_MAX + 1];
    uint64_t incarnation;               /* of the hello, then of the last message */
    uint64_t identity;                  /* of a coordinator's folder, 0 = unknown */
    char address[VIEW_ADDRESS_MAX + 1]; /* a coordinator's, "" = unknown */
    char product[32];
    uint32_t protocol;      /* of the link */
    struct fleet_id fleet;  /* that it belongs to */
    struct versions format; /* of the fleet, that it reads */
    uint64_t heard_us;
    uint64_t
        operator_request; /* an operator's question: its request stands in the history; 0 = none */
    uint64_t asked_node;  /* an operator's: the link of the node that was asked for values last */
    uint64_t done;        /* an operator's: tag of the last wish that has its answer; 0 = none */
    Rh__GetConfig told;   /* a gateway's figures; no pointers in it */
    struct unanswered unanswered; /* what nodes owe it, and … */
    uint64_t unanswered_us;       /* … when it told so last */
};

/* Volatile state that the leader keeps of a registered node; never replicated. Behind `heard_us`
 * stands what its renewals say and got: register.c writes that. */
struct seen {
    uint16_t slot;
    uint64_t incarnation;
    uint64_t heard_us;     /* last message of this incarnation; 0 = none since I lead */
    uint64_t granted_us;   /* when my last lease for it left, or a little earlier; 0 = none did */
    bool other_map;        /* at the version that I have: it gets none */
    uint64_t sure_seq;     /* of its first renewal when it had a lease of mine; 0 = none came yet */
    uint64_t extended_seq; /* of its last renewal that I granted an extended lease; 0 = of none */
    Rh__Renew renew;       /* the last; no pointers in it */
    struct drift clock;    /* the node's, against mine */
    struct state_versions states; /* as its last renewal told, like … */
    struct told_parts parts;      /* … these */
};

struct leader_peers {
    struct leader_peer **item; /* owned, and what they point to; in order of their coming */
    size_t count;
    struct table by_id;
    size_t fellow_count;                             /* of them, coordinators */
    struct leader_peer *of_slot[RING_NODES_MAX + 1]; /* newest link of each node's incarnation … */
    bool changed;                                    /* … if this is false */
    struct seen *seen;                               /* owned */
    size_t seen_count;
    uint16_t seen_at[RING_NODES_MAX + 1]; /* by slot: index in seen + 1 */
};

/* ---- peers.c ---- */

struct leader_peer *peers_find(struct coordinator *c, uint64_t id);
void peers_up(struct coordinator *c, const struct coordinator_event *event);
void peers_down(struct coordinator *c, uint64_t id);
/* A message came, of that incarnation of a node; 0 = it names none. */
void peers_on_message(struct coordinator *c, struct leader_peer *peer, uint64_t incarnation);
/* The peer tells of itself when it asks for the configuration. */
void peers_told(struct coordinator *c, struct leader_peer *peer, const Rh__GetConfig *in);
/* The fleet is founded: who belongs to another is heard no more. His link is about to go. */
void peers_part(struct coordinator *c);
/* The newest link of that incarnation of the node, or NULL. */
struct leader_peer *peers_of_node(struct coordinator *c, const struct state_node *node);
/* The node that this link's `incarnation` is current for, or NULL. */
const struct state_node *peers_node(const struct coordinator *c, struct leader_peer *peer,
                                    uint64_t incarnation);
/* The link is another incarnation's now. */
void peers_reincarnate(struct coordinator *c, struct leader_peer *peer, uint64_t incarnation);
/* The directory has other incarnations now: look anew which link is whose. */
void peers_look_again(struct coordinator *c);
/* I lead, or do not any more: what I heard of nodes counts for nothing. */
void peers_forget(struct coordinator *c);
void peers_free(struct coordinator *c);
/* Note that something came from the node's present incarnation. */
struct seen *peers_heard(struct coordinator *c, const struct state_node *node);
const struct seen *peers_seen(const struct coordinator *c, const struct state_node *node);
/* A link is up and it was heard of within suspect_ms: it may take part in something new. */
bool peers_live(struct coordinator *c, const struct state_node *node);
/* Microseconds for which I could have heard of the node, and did not. */
uint64_t peers_silent_us(const struct coordinator *c, const struct state_node *node);
/* Neither linked nor heard of for suspect_ms, nor have I led for less: do not count on it. */
bool peers_gone(struct coordinator *c, const struct state_node *node);
/* Send `message` (its header is filled in here) to one link. */
void peers_send(struct coordinator *c, uint64_t peer, Rh__Control *message);
/* Like peers_send(), to every gateway and every registered node: first those that take part in `t`,
 * which hold ids until they hear of it. NULL: nobody does. */
void peers_broadcast(struct coordinator *c, Rh__Control *message, const struct state_txn *t);
/* Tell one link, or (NULL) all of them, who leads. */
void peers_tell_leader(struct coordinator *c, const struct leader_peer *only);

/* ---- unanswered.c ---- */

/* The peer says so now; what it said before is over. Called by peers.c alone. */
void unanswered_told(struct coordinator *c, struct leader_peer *peer, Rh__Unanswered *const *told,
                     size_t count);
/* Actors that the dead node was asked for, by the reports of peers that spoke of it after its last
 * message. The caller owns the list and each element. */
Rh__Suspect **unanswered_suspects(struct coordinator *c, const struct state_node *node,
                                  size_t *count);

#endif
