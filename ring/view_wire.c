/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations, segments and whole configurations between the wire's form and ours.
 */
#include "base/mem.h"
#include "ring/view.h"

#include <string.h>

static bool op_read(struct ring_op *op, const Rh__RingOp *in)
{
    if (in->kind < RING_SPLIT || in->kind > RING_MOVE || in->vnode > RING_VNODES_MAX ||
        in->other > RING_VNODES_MAX || in->from > RING_NODES_MAX || in->to > RING_NODES_MAX) {
        return false;
    }
    *op = (struct ring_op){
        .kind = (enum ring_op_kind)in->kind,
        .vnode = in->vnode,
        .other = in->other,
        .at = in->at,
        .from = (uint16_t)in->from,
        .to = (uint16_t)in->to,
    };
    return true;
}

struct ring_op *view_ops(Rh__RingOp *const *ops, size_t count)
{
    struct ring_op *out = mem_new(count + 1, sizeof *out);

    for (size_t i = 0; i < count; i++) {
        if (!op_read(&out[i], ops[i])) {
            mem_free(out);
            return NULL;
        }
    }
    return out;
}

Rh__RingOp **view_wire_ops(const struct ring_op *ops, size_t count)
{
    Rh__RingOp **out = mem_new(count + 1, sizeof(Rh__RingOp *));

    for (size_t i = 0; i < count; i++) {
        out[i] = mem_new(1, sizeof **out);
        *out[i] = (Rh__RingOp)RH__RING_OP__INIT;
        out[i]->kind = (uint32_t)ops[i].kind;
        out[i]->vnode = ops[i].vnode;
        out[i]->other = ops[i].other;
        out[i]->at = ops[i].at;
        out[i]->from = ops[i].from;
        out[i]->to = ops[i].to;
    }
    return out;
}

Rh__Segment *view_wire_segment(size_t index, const struct ring_segment *s, uint32_t vnodes)
{
    Rh__Segment *out = mem_new(1, sizeof *out);

    *out = (Rh__Segment)RH__SEGMENT__INIT;
    out->index = (uint32_t)index;
    out->role = mem_string(s->role);
    out->policy = (uint32_t)s->policy;
    out->bits = s->bits;
    out->open = s->open;
    out->vnodes = vnodes;
    out->n_kinds = s->kind_count;
    out->kinds = mem_new((size_t)s->kind_count + 1, sizeof *out->kinds);
    for (size_t i = 0; i < s->kind_count; i++) {
        out->kinds[i] = s->kind[i];
    }
    return out;
}

/* ---- configurations ---- */

/* A member to encode; borrows the texts of `m`. */
static Rh__Member wire_member(const struct view_member *m)
{
    Rh__Member out = RH__MEMBER__INIT;

    out.slot = m->slot;
    out.name = mem_string(m->name);
    out.address = mem_string(m->address);
    out.incarnation = m->incarnation;
    out.weight = m->weight;
    out.leaving = m->leaving;
    out.role = mem_string(m->role);
    out.n_kinds = m->kinds.count;
    out.kinds = mem_new((size_t)m->kinds.count + 1, sizeof *out.kinds);
    for (size_t i = 0; i < m->kinds.count; i++) {
        out.kinds[i] = m->kinds.kind[i];
    }
    return out;
}

void view_config(const struct view *v, Rh__Config *config)
{
    struct buffer ring = {0};

    ring_encode(&v->ring, &ring);
    *config = (Rh__Config)RH__CONFIG__INIT;
    config->version = v->ring.version;
    config->ring = (ProtobufCBinaryData){.len = ring.size, .data = ring.data};
    config->key0 = v->key.k0;
    config->key1 = v->key.k1;
    config->era = v->era;
    config->fleet_high = v->fleet.high;
    config->fleet_low = v->fleet.low;
    config->n_members = v->member_count;
    config->members = mem_new(v->member_count + 1, sizeof(Rh__Member *));
    for (size_t i = 0; i < v->member_count; i++) {
        config->members[i] = mem_new(1, sizeof **config->members);
        *config->members[i] = wire_member(&v->member[i]);
    }
    config->n_quarantined = v->quarantine.count;
    config->quarantined = mem_new(v->quarantine.count + 1, sizeof(Rh__Actor *));
    for (size_t i = 0; i < v->quarantine.count; i++) {
        config->quarantined[i] = quarantined_wire(&v->quarantine.entry[i]);
    }
}

void view_config_fini(Rh__Config *config)
{
    for (size_t i = 0; i < config->n_members; i++) {
        mem_free(config->members[i]->name);
        mem_free(config->members[i]->address);
        mem_free(config->members[i]->role);
        mem_free(config->members[i]->kinds);
        mem_free(config->members[i]);
    }
    mem_free(config->members);
    for (size_t i = 0; i < config->n_quarantined; i++) {
        mem_free(config->quarantined[i]->id.data);
        mem_free(config->quarantined[i]);
    }
    mem_free(config->quarantined);
    mem_free(config->ring.data);
    *config = (Rh__Config)RH__CONFIG__INIT;
}
