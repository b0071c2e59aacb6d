/* SPDX-License-Identifier: Apache-2.0
 *
 * A large fleet under virtual time: the shipped leader (txn/), its state and
 * ring, and shipped routers as gateways, with as many nodes as one likes. What
 * the leader hears of nodes is short, so those are no hosts but their words:
 * they register, renew, and vote at once.
 *
 *     leader --bytes--> 1000 nodes      each message is counted, with its frame header
 *        |   --bytes--> 100 gateways    and read by a router of its own
 *        +-- entries -> log             committed LOG_US later
 *
 * Virtual time goes on by delays, not by work: the leader's work is told as CPU.
 */
#ifndef SIM_SCALE_H
#define SIM_SCALE_H

#include <stdbool.h>
#include <stdint.h>

struct scale_options {
    unsigned nodes;    /* that have their shares when it begins; at least 2 */
    unsigned gateways; /* each a router of its own */
    unsigned joiners;  /* register within a second; 0 = none */
    unsigned leavers;  /* told to drain at once */
    uint8_t grid;
    uint64_t idle_us; /* instead: nothing changes for so long, */
    unsigned zipf;    /* but ids are asked by Zipf's law, with that exponent in hundredths, and the
                       * leader balances by load; 0 = they are not */
};

/* Traffic in one direction. */
struct scale_flow {
    uint64_t messages;
    uint64_t bytes; /* with frame headers */
};

struct scale_result {
    uint64_t virtual_us;        /* until the fleet was balanced, and all gateways knew */
    uint64_t plans;             /* that had something to do */
    uint64_t changes;           /* of the configuration */
    uint64_t moves;             /* vnodes that changed hands */
    struct scale_flow to_nodes; /* from the leader */
    struct scale_flow to_gateways;
    struct scale_flow changes_to_gateways; /* of them, those that tell one change */
    struct scale_flow moves_to_gateways;   /* of them, those of a single MOVE */
    struct scale_flow to_leader;
    struct scale_flow entries; /* of the log; bytes of the commands */
    struct scale_flow gateway_to_nodes;
    /* With a Zipf load: the most that a node is asked, in thousandths of the mean, … */
    uint64_t begin_permille;
    uint64_t minute_permille; /* … after a minute, … */
    uint64_t most_permille;   /* … and at most from then on */
    uint64_t minute_moves;    /* vnodes, and parts of them, that moved in that minute */
    uint64_t moves_back;      /* of all moves, those that undo one */
    double leader_cpu_s;      /* of all that it did */
    double gateway_cpu_s;     /* of one gateway */
    double apply_us;          /* of the state: CPU of one entry */
    double leader_bytes;      /* of memory at the end: machine and state */
    double gateway_bytes;     /* of one router, without requests */
};

/* Run it; the same options give the same result, CPU aside. False: it did not settle in time. */
bool scale_run(const struct scale_options *options, struct scale_result *result);

/* Bytes that malloc() has given out; 0 where a sanitizer stands in for it. */
double scale_allocated(void);

#endif
