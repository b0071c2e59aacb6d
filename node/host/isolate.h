/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors in quarantine (ring/quarantine.h) are not activated here: requests for
 * them are refused, those that should live unasked wait, and one that lives ends
 * like one that failed. What moves meanwhile moves as it is.
 *
 * Pure.
 */
#ifndef NODE_HOST_ISOLATE_H
#define NODE_HOST_ISOLATE_H

#include "node/host/inside.h"

/* Is the actor in quarantine? */
bool isolate_names(const struct host *h, uint16_t kind, struct bytes id);
static inline bool isolate_holds(const struct host *h, const struct actor *a)
{
    return h->view.quarantine.count > 0 && isolate_names(h, a->kind, bytes_of(a->id, a->id_size));
}

/* The request is for such an actor: refuse it. */
void isolate_refuse(struct host *h, struct arrival *in);
/* All that waits for an actor that holds no other task. */
void isolate_refuse_all(struct host *h, struct actor *a);

/* The configuration changed: end those of them that are here. */
void isolate_adopt(struct host *h);
/* Once a second again: some that could not end were held. */
void isolate_tick(struct host *h);
/* Somebody left the quarantine: what should live unasked is listed again. */
void isolate_released(struct host *h);

/* What I say at my registration of the process before me. `actor` and `list` have room for
 * config.suspect_count. */
void isolate_tell(const struct host *h, Rh__Register *r, Rh__Actor *actor, Rh__Actor **list);

#endif
