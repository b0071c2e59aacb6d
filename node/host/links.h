/* SPDX-License-Identifier: Apache-2.0
 *
 * Links: which other nodes and gateways are linked, and who are they really?
 *
 * dial.c asks for links to nodes and lets go of them; identity.c says whether who is at the other
 * end of a link is who it says, and what it may send.
 */
#ifndef NODE_HOST_LINKS_H
#define NODE_HOST_LINKS_H

#include "node/books/neighbour.h"
#include "node/books/waiting.h"
#include "node/host/topology.h"

/* A link that this node asked for. */
struct dial {
    uint16_t slot;
    char address[VIEW_ADDRESS_MAX + 1];
    uint64_t used_us;
};

struct host_links {
    struct neighbours neighbours;
    struct dial *dial; /* owned */
    size_t dial_count;
    struct queue lonely; /* requests to an owner whose link is not up */
    uint64_t misuses[HOST_MISUSE_COUNT];
    uint64_t misuse_told_us[HOST_MISUSE_COUNT]; /* logged last; 0 = never */
};

/* ---- dial.c ---- */

void links_init(struct host_links *l);
void links_fini(struct host_links *l);
/* The link to a node, or 0 and one is asked for. Slot 0: only the incarnation counts. */
uint64_t host_link_to(struct host *h, uint16_t slot, uint64_t incarnation);
/* Keep a link to that node that this one has dialled itself. */
void host_dial_own(struct host *h, uint16_t slot);
/* Let go of links to nodes that are gone, or have another address. */
void host_dials_sync(struct host *h);
void host_dials_tick(struct host *h);

/* ---- identity.c ---- */

/* The link came up: is who is behind it who it says? */
void identity_judge(struct host *h, struct neighbour *n);
/* Members came or changed: judge again whoever says to be one of them. */
void identity_adopt(struct host *h);
/* Forget who is behind the links: in another era incarnations may have been given to others. */
void identity_forget(struct host *h);
/* True if that link may send this request. Otherwise it is counted and logged, and a node that is
 * not known yet is told to send its request again. */
bool identity_takes_request(struct host *h, uint64_t peer, const struct request_record *r);
bool identity_takes_answer(struct host *h, uint64_t peer);
/* True: an actor asked it whose node is no member any more. */
bool identity_is_orphan(const struct host *h, const struct request_record *r);
/* True if the note in a neighbour's request is the neighbour's own. Otherwise it is counted and
 * logged. */
bool identity_takes_note(struct host *h, const struct neighbour *n, const struct request_record *r);
/* False if a request of a stream has a name that its asker may not give: a gateway asks for nobody
 * else. Likewise. */
bool identity_takes_name(struct host *h, const struct neighbour *n, const struct stream_request *r);
/* Who sends frames of that asker's stream by that link; NULL: it may not. */
const struct neighbour *identity_of_stream(struct host *h, uint64_t peer, uint64_t asker);
/* A frame of a stream may not be: its link ends, which is counted and logged. */
void identity_drop(struct host *h, uint64_t peer, const char *why);
/* The incarnation behind that link, of a node that the configuration names so; 0 = it is none. */
uint64_t identity_of_node(const struct host *h, uint64_t peer);
/* Count and log that a link sent what its identity may not send. */
void identity_misused(struct host *h, uint64_t peer, enum host_misuse what, const char *why);

#endif
