/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds effects to the router's list and frees them.
 */
#include "route/effects.h"

#include "base/mem.h"

enum { EFFECTS_START = 64, EFFECTS_KEEP_SIZE = 4 * 1024 * 1024 };

void effects_grow(struct router_effects *e)
{
    e->cap = e->cap == 0 ? EFFECTS_START : e->cap * 2;
    e->item = mem_resize(e->item, e->cap * sizeof *e->item);
}

void router_effects_keep(struct router_effects *e, size_t from)
{
    for (size_t i = from; i < e->count; i++) {
        struct router_effect *item = &e->item[i];

        if (item->lent != NULL) {
            item->at = e->bytes.size;
            buffer_put(&e->bytes, item->lent, item->size);
            item->lent = NULL;
        }
    }
}

static void drop_common(struct router_effects *e)
{
    for (size_t i = 0; i < e->count && e->common_count > 0; i++) {
        e->common_count -= e->item[i].common != NULL ? 1 : 0;
        shared_drop(e->item[i].common);
    }
}

size_t router_effects_run(const struct router_effects *e, size_t from, size_t size_max)
{
    const struct router_effect *first = &e->item[from];
    size_t end = first->at + first->size;
    size_t i = from + 1;

    for (; i < e->count; i++) {
        const struct router_effect *next = &e->item[i];

        if (next->type != ROUTER_SEND_NODE || next->slot != first->slot || next->at != end ||
            next->common != NULL || end + next->size - first->at > size_max) {
            break;
        }
        end += next->size;
    }
    return i - from;
}

void router_effects_clear(struct router_effects *e)
{
    if (e->common_count > 0) {
        drop_common(e);
    }
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
