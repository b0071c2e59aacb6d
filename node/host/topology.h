/* SPDX-License-Identifier: Apache-2.0
 *
 * Topology: which configuration has this node adopted, and is there a newer one? Specification
 * §4.1; I2, I4; hole 59.
 *
 * config.c asks for configurations and takes them into the view; adopt.c follows the view: what is
 * this node's now, and what is no longer.
 */
#ifndef NODE_HOST_TOPOLOGY_H
#define NODE_HOST_TOPOLOGY_H

#include "node/host/host.h"

struct topology {
    struct view view;
    uint64_t checked_version; /* I2: it only grows */
    uint64_t marked_version;  /* of the configuration by which the cells say what is mine */
    uint64_t members_version; /* no member has come, gone or changed since */
    uint64_t want_version;    /* newest version heard of */
    uint64_t fetch_us;        /* not before */
    uint32_t fetch_turn;      /* unanswered so far: ask the next coordinator */
    bool fetch_all;           /* the view may be broken: fetch it whole */
    uint64_t lost_version;    /* at which the last vnode went */
    uint64_t lost_us;
    struct metrics_times takeovers; /* so long nobody served what I got of dead nodes */
};

/* ---- config.c ---- */

void topology_init(struct topology *t, struct fleet_id fleet);
/* Versions up to this one are known to exist: fetch when mine is older. */
void host_want_version(struct host *h, uint64_t version);
/* The view may be broken: replace it by a whole configuration of the same version or a newer. Ask
 * for that at once; with the next tick. */
void host_fetch_all(struct host *h);
void config_distrust(struct topology *t);
enum view_result host_take_delta(struct host *h, const Rh__Delta *delta);
/* Ask for what is missing, if it is time to. */
void config_fetch(struct host *h);
/* True if there is a newer ring than this node's. */
bool config_is_wanted(const struct host *h);
void config_on_answer(struct host *h, const Rh__ConfigAnswer *answer);
/* The planted bug of hole 6: a change that is old is made once more. */
void config_regress(struct host *h, const Rh__Delta *delta);

/* ---- adopt.c ---- */

/* The view changed: follow it. */
void host_adopt(struct host *h);
/* Like host_adopt(), after `delta` was applied to version `before`. */
void host_adopt_delta(struct host *h, const Rh__Delta *delta, uint64_t before);
/* The node was registered: note what is mine. */
void adopt_first(struct host *h);
/* Forget which version's cells were marked. */
void adopt_forget(struct topology *t);
/* The vnode at that position; NULL = there is no ring yet. */
const struct ring_vnode *host_vnode(const struct host *h, uint64_t position);

#endif
