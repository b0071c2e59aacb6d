/* SPDX-License-Identifier: Apache-2.0
 *
 * Which gateways are there. Clients of one that has been away for PRESENCE_US are
 * taken for lost: a link that breaks comes back within less, and a gateway that
 * lives dials every node.
 *
 * Pure.
 */
#ifndef NODE_BOOKS_PRESENCE_H
#define NODE_BOOKS_PRESENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PRESENCE_US = 5 * 1000 * 1000 };

struct presence_link {
    uint64_t gateway;
    uint64_t link;
};

struct presence_absent {
    uint64_t gateway;
    uint64_t since_us;
};

/* All zero is empty. */
struct presence {
    struct presence_link *link; /* owned; in the order they came up */
    size_t link_count;
    size_t link_cap;
    struct presence_absent *absent; /* owned; of whom some client may be bound here */
    size_t absent_count;
    size_t absent_cap;
};

void presence_fini(struct presence *p);

/* A link to it came up, and is down. */
void presence_up(struct presence *p, uint64_t gateway, uint64_t link);
void presence_down(struct presence *p, uint64_t link, uint64_t now_us);
/* A client of it is bound here. */
void presence_bound(struct presence *p, uint64_t gateway, uint64_t now_us);

/* The newest link to it; 0 = none. */
uint64_t presence_link(const struct presence *p, uint64_t gateway);
/* The next one that has been away for too long; it is asked for again when a client of it is bound.
 * False = none. */
bool presence_gone(struct presence *p, uint64_t now_us, uint64_t *gateway);

#endif
