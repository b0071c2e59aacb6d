/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids that are asked by Zipf's law: what each cell of a ring is asked, what nodes tell of it, and
 * how even it is among them.
 */
#ifndef SIM_ZIPF_H
#define SIM_ZIPF_H

#include "base/prng.h"
#include "ring/ring.h"
#include "wire/control.pb-c.h"

struct zipf {
    struct prng prng;
    double *cell; /* owned; requests a second of each */
    uint16_t
        *owner_of;  /* owned; by vnode id: who had it before its last move; 0 = it never moved */
    uint64_t moves; /* of vnodes, and of parts of them */
    uint64_t back;  /* of them, to where it had come from */
};

/* A million ids, of which the nth is asked 1 / n^exponent times as often as the first, on cells as
 * the seed has it; `rate` requests a second in all. The ring has no segments. */
void zipf_init(struct zipf *z, const struct ring *ring, double exponent, double rate);
void zipf_fini(struct zipf *z);

/* What the node would tell of `period_us`; each vnode's requests are up to 5 percent off, and so is
 * the time that the node needs for all. Returns owned (proto_free()). */
Rh__Costs *zipf_costs(struct zipf *z, const struct ring *ring, uint16_t slot, uint64_t period_us);

/* A vnode moved. */
void zipf_moved(struct zipf *z, const Rh__RingOp *op);

/* The most that a node is asked, in thousandths of the mean of so many nodes. */
uint64_t zipf_permille(const struct zipf *z, const struct ring *ring, size_t nodes);

#endif
