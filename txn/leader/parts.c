/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes what nodes tell of the parts that they take.
 */
#include "txn/leader/inside.h"

#include "base/table.h"

void parts_note(struct told_parts *own, const Rh__Renew *in)
{
    own->count = 0;
    for (size_t i = 0; i < in->n_parts && own->count < RING_SEGMENT_KINDS_MAX; i++) {
        const Rh__KindPart *p = in->parts[i];

        if (p->kind <= UINT16_MAX && p->permille < RING_PART_WHOLE) {
            own->part[own->count++] =
                (struct plan_part){.kind = (uint16_t)p->kind, .permille = (uint16_t)p->permille};
        }
    }
}

uint64_t parts_mix(const struct told_parts *own)
{
    uint64_t mix = 0;

    for (size_t i = 0; i < own->count; i++) {
        mix = table_mix(mix ^ ((uint64_t)own->part[i].kind << 16 | own->part[i].permille));
    }
    return mix;
}

/* One that was heard of, but did not renew yet, counts as live. */
static bool is_untold(const struct seen *seen)
{
    return seen == NULL || !seen->states.told;
}

bool parts_untold(const struct coordinator *c, uint16_t slot)
{
    const struct state_node *node = state_node(c->state, slot);

    return node == NULL || is_untold(peers_seen(c, node));
}

void parts_set(const struct coordinator *c, const struct state_node *node, struct plan_node *to)
{
    const struct seen *seen = peers_seen(c, node);

    to->untold = is_untold(seen);
    if (seen != NULL) {
        to->parts = seen->parts.part;
        to->part_count = seen->parts.count;
    }
}
