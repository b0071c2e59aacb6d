/* SPDX-License-Identifier: Apache-2.0
 *
 * Fair share: how much one holder may have of what all have in common.
 *
 * Pure. It hangs on what is free (Choudhury and Hahne's dynamic thresholds): a rule
 * gives one holder `times` / `parts` of that. So who is alone has
 * times / (times + parts) of all, each less the more others have, and there is
 * always something free for who comes next; nobody has to give back.
 *
 * Holders are known by a hash that they can't choose. Each is counted in a cell of
 * two rows, and holds the lesser of them (a count-min sketch): never less than it
 * does, more only if others meet it in both. So the memory is fixed, nothing is
 * looked up, and a holder comes and goes by itself.
 */
#ifndef ROUTE_SHARE_H
#define ROUTE_SHARE_H

#include "base/mutant.h"

#include <stddef.h>
#include <stdint.h>

enum { SHARE_CELLS = 1024, SHARE_GRAIN = 64 };

/* All zero: nobody holds anything. A cell is the count in its upper half, and grains of SHARE_GRAIN
 * bytes in its lower one. */
struct share {
    uint64_t low[SHARE_CELLS];
    uint64_t high[SHARE_CELLS];
};

struct share_held {
    uint32_t count;
    uint64_t size; /* bytes */
};

struct share_rule {
    uint32_t times; /* of what is free … */
    uint32_t parts; /* … by so many */
    uint64_t least; /* it may have that in any case */
    uint64_t most;  /* and never more than that; 0 = no such limit */
};

static inline uint64_t *share_low(struct share *s, uint64_t who)
{
    return &s->low[who % SHARE_CELLS];
}

static inline uint64_t *share_high(struct share *s, uint64_t who)
{
    return &s->high[who / SHARE_CELLS % SHARE_CELLS];
}

/* One of so many bytes, begun grains being whole, as cells have it. */
static inline uint64_t share_one(size_t size)
{
    return UINT64_C(1) << 32 | (size + SHARE_GRAIN - 1) / SHARE_GRAIN;
}

/* `who` holds some more: the sum of share_one() of each. */
static inline void share_put(struct share *s, uint64_t who, uint64_t some)
{
    if (!mutant(M_UNCOUNTED)) {
        *share_low(s, who) += some;
        *share_high(s, who) += some;
    }
}

/* `who` holds one more, of so many bytes. */
static inline void share_add(struct share *s, uint64_t who, size_t size)
{
    share_put(s, who, share_one(size));
}

/* `who` gives back some: the sum of share_one() of each. */
static inline void share_take(struct share *s, uint64_t who, uint64_t some)
{
    if (!mutant(M_UNCOUNTED)) {
        *share_low(s, who) -= some;
        *share_high(s, who) -= some;
    }
}

/* `who` gives back one, of so many bytes. */
static inline void share_sub(struct share *s, uint64_t who, size_t size)
{
    share_take(s, who, share_one(size));
}

/* Upper bound of what `who` holds. */
struct share_held share_of(const struct share *s, uint64_t who);

/* Bytes or requests that the rule allows one holder, where `used` of `max` are taken. */
uint64_t share_allowed(const struct share_rule *rule, uint64_t max, uint64_t used);

#endif
