/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/view.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

void view_init(struct view *v, uint8_t grid)
{
    *v = (struct view){0};
    ring_init(&v->ring, grid);
}

void view_copy(struct view *to, const struct view *from)
{
    *to = *from;
    ring_copy(&to->ring, &from->ring);
    to->member = mem_copy(from->member, from->member_count * sizeof *from->member);
}

void view_fini(struct view *v)
{
    ring_fini(&v->ring);
    mem_free(v->member);
    v->member = NULL;
    v->member_count = 0;
}

/* ---- members ---- */

/* Where `slot` stands, or would stand. */
static size_t member_index(const struct view *v, uint16_t slot)
{
    size_t low = 0;
    size_t high = v->member_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (v->member[middle].slot < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct view_member *view_member(const struct view *v, uint16_t slot)
{
    const size_t at = member_index(v, slot);

    return at < v->member_count && v->member[at].slot == slot ? &v->member[at] : NULL;
}

const struct view_member *view_member_named(const struct view *v, const char *name)
{
    for (size_t i = 0; i < v->member_count; i++) {
        if (strcmp(v->member[i].name, name) == 0) {
            return &v->member[i];
        }
    }
    return NULL;
}

static bool member_sane(const Rh__Member *m)
{
    return m->slot >= 1 && m->slot <= RING_NODES_MAX && m->name[0] != '\0' &&
           strlen(m->name) <= VIEW_NAME_MAX && strlen(m->address) <= VIEW_ADDRESS_MAX;
}

static void member_put(struct view *v, const Rh__Member *from)
{
    const size_t at = member_index(v, (uint16_t)from->slot);

    if (at == v->member_count || v->member[at].slot != from->slot) {
        v->member = mem_resize(v->member, (v->member_count + 1) * sizeof *v->member);
        memmove(v->member + at + 1, v->member + at, (v->member_count - at) * sizeof *v->member);
        v->member_count++;
    }
    struct view_member *m = &v->member[at];
    *m = (struct view_member){
        .slot = (uint16_t)from->slot,
        .incarnation = from->incarnation,
        .weight = from->weight,
        .leaving = from->leaving,
    };
    (void)snprintf(m->name, sizeof m->name, "%s", from->name);
    (void)snprintf(m->address, sizeof m->address, "%s", from->address);
}

static void member_drop(struct view *v, uint16_t slot)
{
    const size_t at = member_index(v, slot);

    if (at < v->member_count && v->member[at].slot == slot) {
        v->member_count--;
        memmove(v->member + at, v->member + at + 1, (v->member_count - at) * sizeof *v->member);
    }
}

/* ---- the whole ---- */

enum view_result view_load(struct view *v, const Rh__Config *config, bool force)
{
    struct view loaded = {.key = {config->key0, config->key1}, .era = config->era};

    if (!force && config->version <= v->ring.version) {
        return VIEW_OLD;
    }
    for (size_t i = 0; i < config->n_members; i++) {
        if (!member_sane(config->members[i])) {
            return VIEW_DIFFERS;
        }
    }
    const struct bytes bytes = {config->ring.data, config->ring.len};
    if (ring_decode(&loaded.ring, bytes) != ERR_OK || loaded.ring.version != config->version) {
        ring_fini(&loaded.ring);
        return VIEW_DIFFERS;
    }
    for (size_t i = 0; i < config->n_members; i++) {
        member_put(&loaded, config->members[i]);
    }
    view_fini(v);
    *v = loaded;
    return VIEW_APPLIED;
}

void view_config(const struct view *v, Rh__Config *config)
{
    struct buffer ring = {0};
    Rh__Member *rows = mem_new(v->member_count, sizeof *rows);

    *config = (Rh__Config)RH__CONFIG__INIT;
    ring_encode(&v->ring, &ring);
    config->version = v->ring.version;
    config->ring = (ProtobufCBinaryData){.len = ring.size, .data = ring.data};
    config->key0 = v->key.k0;
    config->key1 = v->key.k1;
    config->era = v->era;
    config->members = mem_new(v->member_count + 1, sizeof *config->members);
    config->n_members = v->member_count;
    for (size_t i = 0; i < v->member_count; i++) {
        const struct view_member *m = &v->member[i];

        rows[i] = (Rh__Member)RH__MEMBER__INIT;
        rows[i].slot = m->slot;
        rows[i].name = mem_string(m->name);
        rows[i].address = mem_string(m->address);
        rows[i].incarnation = m->incarnation;
        rows[i].weight = m->weight;
        rows[i].leaving = m->leaving;
        config->members[i] = &rows[i];
    }
    if (v->member_count == 0) {
        mem_free(rows);
    }
}

void view_config_fini(Rh__Config *config)
{
    for (size_t i = 0; i < config->n_members; i++) {
        mem_free(config->members[i]->name);
        mem_free(config->members[i]->address);
    }
    if (config->n_members > 0) {
        mem_free(config->members[0]); // All rows are one block.
    }
    mem_free((void *)config->members);
    mem_free(config->ring.data);
    *config = (Rh__Config)RH__CONFIG__INIT;
}

/* ---- one change ---- */

struct ring_op *view_ops(Rh__RingOp *const *ops, size_t count)
{
    struct ring_op *out = mem_new(count, sizeof *out);

    for (size_t i = 0; i < count; i++) {
        const Rh__RingOp *op = ops[i];

        if (op->kind < RING_SPLIT || op->kind > RING_MOVE || op->from > RING_NODES_MAX ||
            op->to > RING_NODES_MAX) {
            mem_free(out);
            return NULL;
        }
        out[i] = (struct ring_op){
            .kind = (enum ring_op_kind)op->kind,
            .vnode = op->vnode,
            .other = op->other,
            .at = op->at,
            .from = (uint16_t)op->from,
            .to = (uint16_t)op->to,
        };
    }
    return out;
}

/* The ring's part of a delta, on `ring`. False if it does not fit. */
static bool change_ring(struct ring *ring, const Rh__Delta *delta)
{
    if (delta->created_vnodes > 0) {
        if (delta->renewed < 1 || delta->renewed > RING_NODES_MAX ||
            delta->created_vnodes > (1u << ring->grid)) {
            return false;
        }
        ring_create(ring, delta->created_vnodes, (uint16_t)delta->renewed, delta->version);
        return true;
    }
    if (delta->renewed > RING_NODES_MAX) {
        return false;
    }
    struct ring_op *ops = view_ops(delta->ops, delta->n_ops);
    const bool fits = ops != NULL && ring_check(ring, ops, delta->n_ops) == ERR_OK;
    if (fits && delta->n_ops > 0 && delta->cold) {
        ring_reassign(ring, ops, delta->n_ops, delta->version);
    } else if (fits && delta->n_ops > 0) {
        ring_apply(ring, ops, delta->n_ops, delta->version, delta->txn);
    }
    if (fits && delta->renewed != 0) {
        ring_renew_owner(ring, (uint16_t)delta->renewed, delta->version);
    }
    if (fits) {
        ring_set_version(ring, delta->version);
    }
    mem_free(ops);
    return fits;
}

static bool delta_sane(const Rh__Delta *delta)
{
    for (size_t i = 0; i < delta->n_changed; i++) {
        if (!member_sane(delta->changed[i])) {
            return false;
        }
    }
    return delta->version > delta->prev_version;
}

enum view_result view_apply(struct view *v, const Rh__Delta *delta)
{
    struct ring changed;
    const bool touches_cells = delta->n_ops > 0 || delta->created_vnodes > 0 || delta->renewed != 0;

    if (delta->version <= v->ring.version) {
        return VIEW_OLD;
    }
    if (delta->prev_version != v->ring.version) {
        return VIEW_GAP;
    }
    if (!delta_sane(delta)) {
        return VIEW_DIFFERS;
    }
    if (touches_cells) {
        // On a copy: a delta that turns out not to fit must leave the view as it was.
        ring_copy(&changed, &v->ring);
        if (!change_ring(&changed, delta) || changed.digest[0] != delta->digest0 ||
            changed.digest[1] != delta->digest1) {
            ring_fini(&changed);
            return VIEW_DIFFERS;
        }
        ring_fini(&v->ring);
        v->ring = changed;
    } else if (v->ring.digest[0] != delta->digest0 || v->ring.digest[1] != delta->digest1) {
        return VIEW_DIFFERS;
    } else {
        ring_set_version(&v->ring, delta->version);
    }
    for (size_t i = 0; i < delta->n_changed; i++) {
        member_put(v, delta->changed[i]);
    }
    for (size_t i = 0; i < delta->n_removed; i++) {
        member_drop(v, (uint16_t)delta->removed[i]);
    }
    return VIEW_APPLIED;
}

ring_hit view_lookup(const struct view *v, uint16_t kind, struct bytes id)
{
    return ring_at(&v->ring, ring_position(ring_key_of_kind(v->key, kind), id));
}
