/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling a list of router effects.
 */
#ifndef ROUTE_EFFECTS_H
#define ROUTE_EFFECTS_H

#include "route/router.h"

/* Make room for more effects: what effects_add() does when there is none. */
void effects_grow(struct router_effects *e);

/* Append an effect without bytes; what it names is for the caller to fill in. The pointer is good
 * until the next call. Bytes put into e->bytes afterwards are its own once effects_end() ran. */
static inline struct router_effect *effects_add(struct router_effects *e,
                                                enum router_effect_type type)
{
    if (e->count == e->cap) {
        effects_grow(e);
    }
    struct router_effect *item = &e->item[e->count++];

    *item = (struct router_effect){.type = type, .coordinator = -1, .at = e->bytes.size};
    return item;
}

/* Return where the next effects go, and so many of them have room. They are added with `count`. */
static inline struct router_effect *effects_reserve(struct router_effects *e, size_t count)
{
    while (__builtin_expect(e->cap - e->count < count, false)) {
        effects_grow(e);
    }
    return &e->item[e->count];
}

static inline void effects_end(struct router_effects *e, struct router_effect *item)
{
    item->size = e->bytes.size - item->at;
}

#endif
