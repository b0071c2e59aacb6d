/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling a list of router effects.
 */
#ifndef ROUTE_EFFECTS_H
#define ROUTE_EFFECTS_H

#include "route/router.h"

/* Append an effect without bytes; what it names is for the caller to fill in. The pointer is good
 * until the next call. Bytes put into e->bytes afterwards are its own once effects_end() ran. */
struct router_effect *effects_add(struct router_effects *e, enum router_effect_type type);
void effects_end(struct router_effects *e, struct router_effect *item);

#endif
