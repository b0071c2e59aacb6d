/* SPDX-License-Identifier: Apache-2.0
 *
 * The links to other nodes and to gateways that are up.
 *
 * Pure. A link has the shell's id, never reused; behind it stands a process
 * with an incarnation (nodes) or an id of its own (gateways).
 */
#ifndef NODE_PEER_H
#define NODE_PEER_H

#include "base/list.h"
#include "base/table.h"
#include "wire/link.h"

struct peer {
    struct table_link by_link;
    struct table_link by_process;
    struct list_link all;
    uint64_t link;
    uint64_t incarnation; /* of the node; the gateway's id */
    enum link_role role;
    uint64_t adopted; /* gateway: newest ring version that it told to route by */
};

struct peers {
    struct table by_link;
    struct table by_process;
    struct list all;
};

void peers_init(struct peers *p);
void peers_fini(struct peers *p);

/* A link came up; known already: who stands behind it is now known better. */
void peer_up(struct peers *p, const struct peer *peer);
void peer_down(struct peers *p, uint64_t link);

/* NULL = no such link is up. With several links to a process: the newest. */
struct peer *peer_by_link(const struct peers *p, uint64_t link);
struct peer *peer_by_process(const struct peers *p, enum link_role role, uint64_t incarnation);

#endif
