/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the messages that carry a change of the state to everybody.
 */
#include "txn/state/delta.h"

#include "base/assert.h"
#include "base/mem.h"
#include "wire/control.h"

// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): version and txn are named at each call
Rh__Delta *delta_new(uint64_t version, uint64_t txn)
{
    Rh__Delta *delta = mem_new(1, sizeof *delta);

    *delta = (Rh__Delta)RH__DELTA__INIT;
    delta->version = version;
    delta->txn = txn;
    return delta;
}

void delta_free(Rh__Delta *delta)
{
    proto_free(delta == NULL ? NULL : &delta->base);
}

Rh__Delta *delta_copy(const Rh__Delta *delta)
{
    struct buffer bytes = {0};
    ProtobufCMessage *copy;

    proto_put(&bytes, &delta->base);
    copy = proto_get(&rh__delta__descriptor, buffer_bytes(&bytes));
    buffer_fini(&bytes);
    ASSERT(copy != NULL);
    return (Rh__Delta *)copy;
}

void delta_ops(Rh__Delta *delta, const struct ring_op *ops, size_t count)
{
    ASSERT(delta->n_ops == 0);
    if (count > 0) {
        delta->ops = view_wire_ops(ops, count);
        delta->n_ops = count;
    }
}

Rh__Member *delta_member(const struct state_node *node)
{
    Rh__Member *member = mem_new(1, sizeof *member);

    *member = (Rh__Member)RH__MEMBER__INIT;
    member->slot = node->slot;
    member->name = mem_string(node->name);
    member->address = mem_string(node->address);
    member->incarnation = node->incarnation;
    member->weight = node->weight;
    member->leaving = node->leaving;
    member->role = mem_string(node->role);
    member->n_kinds = node->kinds.count;
    member->kinds = mem_new((size_t)node->kinds.count + 1, sizeof *member->kinds);
    for (size_t i = 0; i < node->kinds.count; i++) {
        member->kinds[i] = node->kinds.kind[i];
    }
    return member;
}

void delta_change(Rh__Delta *delta, const struct state_node *node)
{
    delta->changed = mem_resize(delta->changed, (delta->n_changed + 1) * sizeof(Rh__Member *));
    delta->changed[delta->n_changed++] = delta_member(node);
}

void delta_remove(Rh__Delta *delta, uint16_t slot)
{
    delta->removed = mem_resize(delta->removed, (delta->n_removed + 1) * sizeof *delta->removed);
    delta->removed[delta->n_removed++] = slot;
}

void delta_segment(Rh__Delta *delta, size_t index, const struct ring_segment *s, uint32_t vnodes)
{
    const size_t count = delta->n_segments + 1;

    delta->segments = mem_resize(delta->segments, count * sizeof(Rh__Segment *));
    delta->segments[delta->n_segments++] = view_wire_segment(index, s, vnodes);
}

static void add_actor(Rh__Actor ***list, size_t *count, const struct quarantined *actor)
{
    *list = mem_resize(*list, (*count + 1) * sizeof(Rh__Actor *));
    (*list)[(*count)++] = quarantined_wire(actor);
}

void delta_release(Rh__Delta *delta, const struct quarantined *actor)
{
    add_actor(&delta->released, &delta->n_released, actor);
}

void delta_quarantine(Rh__Delta *delta, const struct quarantined *actor)
{
    add_actor(&delta->quarantined, &delta->n_quarantined, actor);
}
