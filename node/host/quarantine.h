/* SPDX-License-Identifier: Apache-2.0
 *
 * Quarantine: may an actor be activated here at all? Requests for those in quarantine
 * (ring/quarantine.h) are refused, those that should live unasked wait, and one that lives ends
 * like one that failed. What moves meanwhile moves as it is.
 */
#ifndef NODE_HOST_QUARANTINE_H
#define NODE_HOST_QUARANTINE_H

#include "node/host/requests.h"

struct quarantine_watch {
    uint64_t look_us; /* next look at those in quarantine */
    uint64_t refused;
};

/* True if the actor is in quarantine. */
bool quarantine_names(const struct host *h, uint16_t kind, struct bytes id);
bool quarantine_holds(const struct host *h, const struct actor *a);

/* The request is for such an actor: refuse it. */
void quarantine_refuse(struct host *h, struct admission *in);
/* Refuse all that waits for an actor that has no task. */
void quarantine_refuse_all(struct host *h, struct actor *a);

/* The configuration changed: end those of them that are here. */
void quarantine_adopt(struct host *h);
/* Try again, once a second, to end those that were held before. */
void quarantine_tick(struct host *h);
/* Somebody left the quarantine: what should live unasked is listed again. */
void quarantine_released(struct host *h);

/* Put into my registration what the process before me left. `actor` and `list` have room for
 * config.suspect_count. */
void quarantine_tell(const struct host *h, Rh__Register *r, Rh__Actor *actor, Rh__Actor **list);

#endif
