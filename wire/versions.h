/* SPDX-License-Identifier: Apache-2.0
 *
 * Which versions this build speaks, all in one place, and how two processes of
 * different builds find one that both speak. docs/upgrade.md#versions says
 * what each number is of and who refuses what.
 *
 * A build of NEXT=1 is one version ahead in each, and says a little more as soon
 * as the other side understands it: with two builds an upgrade is tested.
 */
#ifndef WIRE_VERSIONS_H
#define WIRE_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef RINGHOLD_NEXT
enum { VERSIONS_AHEAD = 1 };
#else
enum { VERSIONS_AHEAD = 0 };
#endif

enum {
    /* Versions of the protocol on a link: each link's two ends choose one. */
    LINK_PROTOCOL_OLDEST = 4,
    LINK_PROTOCOL_TODAY = 5,
    LINK_PROTOCOL_OPERATOR_REQUESTS = 4, /* what operators send to one actor */
    LINK_PROTOCOL_STREAMS = 5,           /* the frames of wire/stream.h */
    LINK_PROTOCOL_ACTORS = 5,            /* who lives at a node */
    LINK_PROTOCOL_VALUES = 5,            /* what operators ask of durable actors' values */
    LINK_PROTOCOL = LINK_PROTOCOL_TODAY + VERSIONS_AHEAD,

    /* Versions of what the coordinators replicate and store, and what all processes must understand
     * of it: one for the whole fleet, in its replicated state. It rises when an operator says so
     * and every process reads the next one, and never goes down: txn/admin/upgrade.c. */
    FLEET_FORMAT_OLDEST = 1,
    FLEET_FORMAT_TODAY = 4,
    FLEET_FORMAT_KINDS = 2,     /* each node's kinds are known, and those of a role grow */
    FLEET_FORMAT_STRIKES = 3,   /* strikes come with REASSIGN, too */
    FLEET_FORMAT_PLACEMENT = 4, /* ids with one tag live together; pins */
    FLEET_FORMAT_ROUNDS = 4,    /* a leader proves by messages that it leads, not by an entry */
    FLEET_FORMAT = FLEET_FORMAT_TODAY + VERSIONS_AHEAD,
    FLEET_FORMAT_AHEAD = FLEET_FORMAT_TODAY + 1, /* in which CommandAhead comes */
};

/* Versions that a process speaks: all from `oldest` to `newest`. */
struct versions {
    uint32_t oldest;
    uint32_t newest;
};

enum versions_fit {
    VERSIONS_FIT,
    VERSIONS_OLDER, /* all of `there` are older than those of `here` */
    VERSIONS_NEWER,
    VERSIONS_NONE, /* one is no range: it begins with 0, or after its end */
};

bool versions_are_range(struct versions v);

/* The greatest that both speak, the same from either side; 0 unless they fit. */
enum versions_fit versions_choose(struct versions here, struct versions there, uint32_t *chosen);

#endif
