/* SPDX-License-Identifier: Apache-2.0
 *
 * How much faster does a node's clock run than mine? Told by its renewals: each
 * says when it left, by the clock that the node's lease goes by.
 *
 * A renewal that was long on its way, or was read late, says nothing of clocks.
 * So of each window the one counts that was on its way for the least time, and
 * it is compared with that of the window before (docs/decisions/059).
 *
 * Pure. Believes nobody: any times give an answer within bounds.
 */
#ifndef TXN_LEADER_DRIFT_H
#define TXN_LEADER_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DRIFT_WINDOW_US = 5000000, /* ten renewals and more; what is late by less than a tenth passes */
    DRIFT_PARTS = 110,         /* of 1000: two clocks may differ by so much, each within 5 % */
    DRIFT_PARTS_MAX = 9999,    /* it is not told more exactly */
    DRIFT_LEASE_PART = 4,      /* a lease is cut to no less than this part of it */
};

/* One renewal. */
struct drift_mark {
    uint64_t here_us;  /* it came, by my clock */
    uint64_t there_us; /* it left, by the node's */
};

struct drift {
    uint64_t begun_us;        /* this window; 0 = none yet */
    struct drift_mark least;  /* of this window */
    struct drift_mark before; /* of the window before; here_us 0 = there was none */
    int32_t parts; /* of 1000, by which it is faster; 0 = by no more than it may, or not known */
};

/* A renewal came; `there_us` 0: of an older node, which does not tell. True: `parts` is 0 no more,
 * or again. */
bool drift_take(struct drift *d, uint64_t here_us, uint64_t there_us);

/* The lease length to grant, so that it lasts no longer than `lease_us` of my time. */
uint64_t drift_lease_us(const struct drift *d, uint64_t lease_us);

#endif
