/* SPDX-License-Identifier: Apache-2.0
 *
 * The links to other nodes and to gateways that are up.
 *
 * Pure. A link has the shell's id, never reused; behind it stands a process
 * with an incarnation (nodes) or an id of its own (gateways), which it says
 * itself: what is proved is its name. node/host/identity.c binds the two.
 */
#ifndef NODE_BOOKS_NEIGHBOUR_H
#define NODE_BOOKS_NEIGHBOUR_H

#include "base/list.h"
#include "base/table.h"
#include "wire/hello.h"

/* The host's name of the link without a wire, to the node's own calls (node/calls/calls.h). */
#define CALLS_LINK UINT64_MAX

/* Whether a peer is who it says it is. */
enum standing {
    STANDING_OPEN,  /* a node that my configuration does not name (yet): it is not trusted */
    STANDING_KNOWN, /* the configuration names it so; or a gateway that nobody else claims to be */
    STANDING_FALSE, /* it says another's incarnation or id: its link ends */
};

struct neighbour {
    struct table_link by_link;
    struct table_link by_process;
    struct list_link all;
    uint64_t link;
    uint64_t incarnation; /* of the node; the gateway's id */
    enum link_role role;
    enum standing standing;
    char name[LINK_NAME_MAX + 1];
    bool dialled;     /* by this process */
    bool streams;     /* the link's protocol has them */
    bool full;        /* it does not keep up with what it is sent */
    bool awaits;      /* gateway: answers to what it sent here */
    uint64_t adopted; /* gateway: newest ring version that it told to route by */
};

struct neighbours {
    struct table by_link;
    struct table by_process;
    struct list all;
};

void neighbours_init(struct neighbours *p);
void neighbours_fini(struct neighbours *p);

/* A link came up; known already: who stands behind it is now known better. */
void neighbour_up(struct neighbours *p, const struct neighbour *peer);
void neighbour_down(struct neighbours *p, uint64_t link);

/* NULL = no such link is up. */
struct neighbour *neighbour_by_link(const struct neighbours *p, uint64_t link);
/* Find a process that is STANDING_KNOWN; the newest of several links to it. NULL = none. */
struct neighbour *neighbour_by_process(const struct neighbours *p, enum link_role role,
                                       uint64_t incarnation);
/* The neighbour that asks under that id: a gateway by its id, or a node, for its actors, by its
 * incarnation. */
struct neighbour *neighbour_asking(const struct neighbours *p, uint64_t id);
/* Return the first of all links that claim that incarnation, whatever their standing, or the one
 * after `peer`. */
struct neighbour *neighbour_first(const struct neighbours *p, uint64_t incarnation);
struct neighbour *neighbour_next(const struct neighbour *peer);

#endif
