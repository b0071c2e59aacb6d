/* SPDX-License-Identifier: Apache-2.0
 *
 * The participant's book of transactions: which numbers it took, which are
 * unfinished, and what a PREPARE means to it. Specification §5.1.
 *
 *     PREPARE                                       verdict
 *     of a transaction in the book                  AGAIN: answer by its state
 *     number <= floor, or taken before              STALE
 *     number below one that has the same cells      STALE: it is over, for two pending
 *                                                   transactions never share a vnode
 *     base > my version                             FETCH the configuration, examine again
 *     impossible arcs, book full                    REFUSE
 *     anything else                                 BEGIN
 *
 *     PERSIST -number on disk-> DRAINING -all drained, state acked-> PREPARED
 *     any     -outcome-> gone from the book; the number stays taken
 *
 * An older transaction in the book with cells of the new one is over too, or
 * superseded by it: the caller settles it before participant_begin().
 *
 * Pure. Holds, actors and streams are the node's (node/host/hold.h).
 */
#ifndef TXN_PARTICIPANT_H
#define TXN_PARTICIPANT_H

#include "base/machine.h"
#include "wire/control.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PARTICIPANT_PARTS_MAX = 64,  /* unfinished transactions of one node */
    PARTICIPANT_ARCS_MAX = 4096, /* of one transaction */
    PARTICIPANT_SEEN_MAX = 1024, /* numbers remembered above the floor */
};

/* Cells [from, to) that change hands. */
struct part_arc {
    uint32_t from;
    uint32_t to;
    uint32_t vnode;
    bool out;      /* true: I give it */
    uint16_t peer; /* slot of the other node */
    uint64_t peer_incarnation;
};

/* A PREPARE, out of its message. */
struct prepare {
    uint64_t txn;
    uint64_t base;
    uint64_t supersedes;  /* 0 = none */
    struct part_arc *arc; /* owned */
    size_t arc_count;
    uint32_t deadline_ms; /* it is aborted so long after this was sent; 0 = nobody said */
};

enum part_state { PART_PERSIST, PART_DRAINING, PART_PREPARED };
extern const struct machine part_machine;

/* One unfinished transaction. */
struct part {
    struct prepare prepare;
    uint8_t state;         /* enum part_state */
    bool refused;          /* it cannot go on here; waits for CANCEL */
    bool over;             /* decided, but my configuration may be older than the outcome */
    bool committed;        /* surely: seen in a configuration or a delta */
    bool aborted;          /* surely: a CANCEL, or the transaction that supersedes it, said so */
    uint64_t over_version; /* over: settle at this version or above */
    void *user;            /* the node's */
};

struct participant {
    uint64_t floor; /* numbers up to here are over */
    uint64_t top;   /* highest number taken */
    uint64_t *seen; /* owned; sorted numbers taken above floor */
    size_t seen_count;
    struct part *part[PARTICIPANT_PARTS_MAX + 1]; /* owned, in order of their beginning */
    size_t part_count;
};

enum part_verdict {
    VERDICT_STALE,
    VERDICT_AGAIN,
    VERDICT_OTHER, /* the book has another one under its number */
    VERDICT_FETCH,
    VERDICT_REFUSE,
    VERDICT_BEGIN,
};

/* Take the message's fields. False if no node could mean it: no arcs, too many, or cells outside
 * `cells`. On true prepare_fini() frees it. */
bool prepare_decode(struct prepare *p, const Rh__Prepare *message, uint32_t cells);
void prepare_fini(struct prepare *p);

void participant_init(struct participant *p);
void participant_fini(struct participant *p);

/* REGISTER was answered: everything up to `floor` is over. The book must be empty. */
void participant_reset(struct participant *p, uint64_t floor);

/* NULL = not in the book. */
struct part *participant_find(const struct participant *p, uint64_t txn);

/* Judge a PREPARE at ring version `version`. Changes nothing. */
enum part_verdict participant_examine(const struct participant *p, const struct prepare *prepare,
                                      uint64_t version);

/* Find an unfinished transaction other than `except` that shares cells with `prepare`, or NULL. */
struct part *participant_overlapping(const struct participant *p, const struct prepare *prepare,
                                     const struct part *except);

/* Take the number and open the book's entry, in PERSIST. The verdict was BEGIN, and nothing but
 * the superseded transaction overlaps. Takes `prepare`'s arcs. */
struct part *participant_begin(struct participant *p, struct prepare *prepare);

/* The outcome was settled: close and free the entry. */
void participant_end(struct participant *p, struct part *part);

/* Abort unless sorted, bounded, every unfinished number taken, arcs disjoint. */
void participant_check(const struct participant *p);

#endif
