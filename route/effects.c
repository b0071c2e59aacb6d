/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds effects to the router's list and frees them.
 */
#include "route/effects.h"

#include "base/mem.h"

enum { EFFECTS_START = 64, EFFECTS_KEEP_SIZE = 4 * 1024 * 1024 };

struct router_effect *effects_add(struct router_effects *e, enum router_effect_type type)
{
    if (e->count == e->cap) {
        e->cap = e->cap == 0 ? EFFECTS_START : e->cap * 2;
        e->item = mem_resize(e->item, e->cap * sizeof *e->item);
    }
    struct router_effect *item = &e->item[e->count];
    e->count++;
    *item = (struct router_effect){.type = type, .coordinator = -1, .at = e->bytes.size};
    return item;
}

void effects_end(struct router_effects *e, struct router_effect *item)
{
    item->size = e->bytes.size - item->at;
}

static void drop_common(struct router_effects *e)
{
    for (size_t i = 0; i < e->count && e->common_count > 0; i++) {
        e->common_count -= e->item[i].common != NULL ? 1 : 0;
        shared_drop(e->item[i].common);
    }
}

void router_effects_clear(struct router_effects *e)
{
    drop_common(e);
    e->count = 0;
    buffer_clear(&e->bytes);
    // After a turn that brought a lot, the memory goes back.
    if (e->bytes.cap > EFFECTS_KEEP_SIZE) {
        buffer_fini(&e->bytes);
    }
}

void router_effects_fini(struct router_effects *e)
{
    drop_common(e);
    mem_free(e->item);
    buffer_fini(&e->bytes);
    *e = (struct router_effects){0};
}
