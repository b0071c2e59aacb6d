/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with a fleet, by what its processes say of themselves.
 *
 *     group.c            coordinators agree; the ring they have is whole
 *     processes.c        nodes and gateways: there, current, with leases
 *     gateways.c         their links, and their threads
 *     txns.c             transactions, holds, actors
 *
 * Pure: all of it reads one collection.
 */
#ifndef CLI_CHECK_CHECK_H
#define CLI_CHECK_CHECK_H

#include "cli/check/collector.h"
#include "cli/check/findings.h"

/* Add all findings. The collection has at least one coordinator's answer. */
void check_collection(const struct collection *s, struct findings *out);

/* Summary for a check that found nothing, of what was looked at: "3 answer, 2 leads in term 7". */
const char *check_detail(const struct collection *s, enum check check, char *out, size_t size);

/* ---- inside ---- */

enum { CHECK_GRACE_US = 5 * 1000 * 1000 /* past a deadline */ };

void check_group(const struct collection *s, const Rh__AdminReply *ref, struct findings *out);
void check_processes(const struct collection *s, const Rh__AdminReply *ref, struct findings *out);
void check_txns(const struct collection *s, const Rh__AdminReply *ref, struct findings *out);

/* The row of a node in the directory, by name; NULL = none. */
const Rh__NodeRow *check_node(const Rh__AdminReply *ref, const char *name);
/* The process is the one that the directory means. */
bool check_is_member(const Rh__AdminReply *ref, const Rh__InspectAnswer *p);
/* The member's process has answered; NULL = it has not. */
const Rh__InspectAnswer *check_process_of(const struct collection *s, const Rh__Member *member);
bool check_is_barred(const Rh__AdminReply *ref, const char *name);
/* Summary of the leases that nodes report which own vnodes and are not fenced. */
struct check_leases {
    bool granted;      /* some lease may be in force */
    size_t owners;     /* so many there are … */
    size_t told;       /* … and of them answered that leases are in force */
    uint64_t least_us; /* the shortest of those */
};
struct check_leases check_leases(const struct collection *s, const Rh__AdminReply *ref);
/* "node n2", "gateway g1"; "gateway g1 thread 2" of one with several. */
void check_subject(struct finding *f, const Rh__InspectAnswer *p);
/* Two threads of one gateway. */
bool check_is_one_gateway(const Rh__InspectAnswer *a, const Rh__InspectAnswer *b);
/* ---- gateways.c */
void check_gateway(const struct collection *s, const Rh__AdminReply *ref,
                   const Rh__InspectAnswer *p, struct findings *out);
void check_missing_gateways(const struct collection *s, struct findings *out);
/* Have the plan name the process. */
void check_plan(struct finding *f, enum repair repair, const Rh__InspectAnswer *p);

#endif
