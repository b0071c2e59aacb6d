/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's judge: compares what the clients sent with what the actors'
 * journals say ran, and where. It knows nothing of rings or transactions: a
 * fault of theirs cannot hide from it.
 */
#ifndef DEMO_JUDGE_H
#define DEMO_JUDGE_H

#include "demo/load_uv.h"

struct verdict {
    uint64_t runs;
    uint64_t ids;          /* that ran at least once */
    uint64_t nodes;        /* journals read */
    uint64_t moved;        /* (id, node) activations beyond an id's first one */
    uint64_t lost;         /* sent, but no journal has its run */
    uint64_t duplicated;   /* ran more than once */
    uint64_t out_of_order; /* ran after a later one of the same client and id */
    uint64_t live_twice;   /* an id was live on two nodes at one instant */
    char first[160];       /* of the violations, in words */
};

/* Read every journal in `folder`. False after printing why they can't be read. */
bool judge(const char *folder, const struct load *load, struct verdict *out);

/* Return how many ids have been activated by the journal of `node` so far. */
uint64_t judge_activated(const char *folder, const char *node);

#endif
