/* SPDX-License-Identifier: Apache-2.0
 *
 * From steps to transactions in waves.
 */
#ifndef RING_WAVES_H
#define RING_WAVES_H

#include "ring/pieces.h"
#include "ring/plan.h"

/* Fill `plan` (uninitialised) from the steps of `p`: first the SPLITs, then the MOVEs, then the
 * MERGEs. Takes steps of `p` apart. No node takes part in more than wave_cap transactions of one
 * wave. `cells_of`: as in struct plan_loads, or NULL. */
void waves_make(struct plan *plan, struct pieces *p, const struct plan_limits *limits,
                const uint32_t *cells_of);

#endif
