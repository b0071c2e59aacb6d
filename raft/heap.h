/* SPDX-License-Identifier: Apache-2.0
 *
 * libraft's memory, owned by the replica it was taken for.
 *
 * libraft 0.15.0 cannot be closed while writes are in flight, so a replica is
 * abandoned instead: heap_abandon() frees all that libraft holds for it. Out
 * of memory ends the process; libraft's own paths for that are not to be trusted.
 * Thread: the loop's only.
 */
#ifndef RAFT_HEAP_H
#define RAFT_HEAP_H

#include "base/list.h"

struct heap {
    struct list blocks; /* live ones */
};

void heap_init(struct heap *heap);

/* From now on libraft allocates from `heap` (NULL: from one that belongs to nobody). Returns the
 * heap used before, to go back to. */
struct heap *heap_enter(struct heap *heap);

/* Free every block that is still there. */
void heap_abandon(struct heap *heap);

#endif
