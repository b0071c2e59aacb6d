/* SPDX-License-Identifier: Apache-2.0
 *
 * Obstacle: why does a planned transaction not begin, and for how long yet? For people alone: what
 * the rules of eligibility.h and rebalance.h say is asked again for each answer, and nothing is
 * kept. Pure.
 */
#ifndef TXN_LEADER_OBSTACLE_H
#define TXN_LEADER_OBSTACLE_H

#include <stddef.h>
#include <stdint.h>

// clang-format off

/* X(reason, word). The words are in docs/json.md, and never change. */
#define OBSTACLE_LIST(X)                                                                          \
    X(PLANNING, "planning")   /* something changed just now: it is planned in a moment */         \
    X(LOG, "log")             /* a command of the leader failed: it proposes nothing for a moment */ \
    X(SILENT, "silent")       /* the node is not live */                                          \
    X(RETURNED, "returned")   /* the node came back, and could leave again (hole 57) */           \
    X(BACKOFF, "backoff")     /* the last transaction of the two nodes was aborted */             \
    X(FLEET_CAP, "fleet_cap") /* as many transactions are under way as may be */                  \
    X(NODE_CAP, "node_cap")   /* the node takes part in as many as it may */                      \
    X(SLOW, "slow")           /* the node answers slowly: it takes part in one at a time */       \
    X(ORDER, "order")         /* another transaction changes the same vnodes before */            \
    X(RESTORED, "restored")   /* leases of before the backup may be in force still (hole 52) */   \
    X(ALONE, "alone")         /* nobody else could take what the node has */                      \
    X(UNREAD, "unread")       /* the node does not read the version of states that another has */

// clang-format on

#define OBSTACLE(name, word) OBSTACLE_##name,
enum obstacle_reason { OBSTACLE_NONE, OBSTACLE_LIST(OBSTACLE) };
#undef OBSTACLE

struct obstacle {
    enum obstacle_reason reason;
    uint16_t slot;    /* the node that it is about; 0 = none */
    uint16_t other;   /* BACKOFF: to which it would give; UNREAD: of which it would get */
    uint64_t left_us; /* from now; 0 = until something else happens */
};

/* What waits for one obstacle. */
struct obstructed {
    struct obstacle by;
    uint16_t drains; /* the node that it would leave, if that is being drained; 0 = another */
    uint32_t txns;
    uint32_t vnodes; /* that they would move */
};

/* More are left out: a leader must not be kept busy by who looks on. */
enum { OBSTACLES_MAX = 64 };
struct obstacles {
    struct obstructed item[OBSTACLES_MAX];
    size_t count;
};

/* Return the reason's word; "" of OBSTACLE_NONE. */
const char *obstacle_word(enum obstacle_reason reason);
/* Return that one of the two which lasts longer: `a` if both end alike. */
struct obstacle obstacle_longer(struct obstacle a, struct obstacle b);
/* Add it to what waits for the same obstacle on behalf of the same drain; of their times the
 * longest counts. */
void obstacles_add(struct obstacles *all, const struct obstructed *more);

#endif
