/* SPDX-License-Identifier: Apache-2.0
 *
 * Singletons and daemons that are this node's live without being asked.
 *
 * Which ones those are follows from the configuration alone: the id of a
 * singleton is its kind's name, those of a set "name/0", "name/1" … up to as
 * many as there are. After each change, and once a second in case one could not
 * start, those that are mine are handed to HOST_WAKE's queue, which starts what
 * is not alive, so many a second. Those of a set that was made smaller end.
 *
 * Pure.
 */
#ifndef NODE_HOST_ALWAYS_H
#define NODE_HOST_ALWAYS_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct host;

/* The configuration changed: look at once. */
void always_adopt(struct host *h);
void always_tick(struct host *h);
/* Can there be an actor of this kind and id? Any id of a kind that hashes can. Of others only those
 * that live always: or a stranger could make any number of actors that nothing ends. */
bool always_knows(const struct host *h, uint16_t kind, struct bytes id);

#endif
