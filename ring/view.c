/* SPDX-License-Identifier: Apache-2.0
 *
 * A change is made on a draft and moved into the view once it proved right, so
 * a view is never half changed.
 */
#include "ring/view.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

/* The part of a view that a change replaces. */
struct view_draft {
    struct ring ring; /* owned, unless it is `lent`: nothing but its version changes */
    bool lent;
    struct view_member *member; /* owned; sorted by slot */
    size_t count;
    struct quarantine quarantine;
};

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
    quarantine_copy(&to->quarantine, &from->quarantine);
}

void view_fini(struct view *v)
{
    ring_fini(&v->ring);
    mem_free(v->member);
    quarantine_fini(&v->quarantine);
    *v = (struct view){0};
}

void view_set_key(struct view *v, struct ring_key key)
{
    v->key = key;
    v->ring.tags = ring_key_of_tags(key);
}

/* True if the ring itself changes, not only its version. */
static bool touches_ring(const Rh__Delta *delta)
{
    return delta->n_ops > 0 || delta->created_vnodes > 0 || delta->n_segments > 0 ||
           delta->renewed > 0;
}

static void draft_init(struct view_draft *d, const struct view *v, const Rh__Delta *delta)
{
    d->lent = !touches_ring(delta);
    d->ring = v->ring;
    if (!d->lent) {
        ring_copy(&d->ring, &v->ring);
    }
    d->member = mem_copy(v->member, v->member_count * sizeof *v->member);
    d->count = v->member_count;
    quarantine_copy(&d->quarantine, &v->quarantine);
}

static void draft_fini(struct view_draft *d)
{
    if (!d->lent) {
        ring_fini(&d->ring);
    }
    mem_free(d->member);
    quarantine_fini(&d->quarantine);
}

/* The view takes all that the draft has. */
static void draft_adopt(struct view_draft *d, struct view *v)
{
    if (!d->lent) {
        ring_fini(&v->ring);
    }
    mem_free(v->member);
    quarantine_fini(&v->quarantine);
    v->ring = d->ring;
    v->member = d->member;
    v->member_count = d->count;
    v->quarantine = d->quarantine;
}

/* ---- members ---- */

/* Index of the first member whose slot is not less. */
static size_t member_place(const struct view_member *member, size_t count, uint32_t slot)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;

        if (member[middle].slot < slot) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

static bool valid_slot(uint32_t slot)
{
    return slot != RING_NODE_NONE && slot <= RING_NODES_MAX;
}

static bool valid_text(const char *text, size_t size_max)
{
    return text[0] != '\0' && strlen(text) <= size_max;
}

static bool member_read(struct view_member *m, const Rh__Member *in)
{
    if (!valid_slot(in->slot) || !valid_text(in->name, VIEW_NAME_MAX) ||
        strlen(in->address) > VIEW_ADDRESS_MAX || in->weight > VIEW_WEIGHT_MAX ||
        strlen(in->role) > RING_ROLE_MAX) {
        return false;
    }
    *m = (struct view_member){
        .slot = (uint16_t)in->slot,
        .incarnation = in->incarnation,
        .weight = in->weight,
        .leaving = in->leaving != 0,
    };
    memcpy(m->name, in->name, strlen(in->name));
    memcpy(m->address, in->address, strlen(in->address));
    memcpy(m->role, in->role, strlen(in->role));
    for (size_t i = 0; i < in->n_kinds; i++) {
        if (in->kinds[i] > UINT16_MAX || !ring_kinds_add(&m->kinds, (uint16_t)in->kinds[i])) {
            return false;
        }
    }
    return true;
}

static bool draft_put(struct view_draft *d, const Rh__Member *in)
{
    struct view_member m;
    size_t at;

    if (!member_read(&m, in)) {
        return false;
    }
    for (size_t i = 0; i < d->count; i++) {
        if (d->member[i].slot != m.slot && strcmp(d->member[i].name, m.name) == 0) {
            return false;
        }
    }
    at = member_place(d->member, d->count, m.slot);
    if (at == d->count || d->member[at].slot != m.slot) {
        d->member = mem_resize(d->member, (d->count + 1) * sizeof m);
        memmove(&d->member[at + 1], &d->member[at], (d->count - at) * sizeof m);
        d->count++;
    }
    d->member[at] = m;
    return true;
}

static bool draft_remove(struct view_draft *d, uint32_t slot)
{
    const size_t at = member_place(d->member, d->count, slot);

    if (at == d->count || d->member[at].slot != slot) {
        return false;
    }
    d->count--;
    memmove(&d->member[at], &d->member[at + 1], (d->count - at) * sizeof *d->member);
    return true;
}

static bool draft_quarantine(struct view_draft *d, Rh__Actor *const *in, size_t count)
{
    struct quarantined e;

    for (size_t i = 0; i < count; i++) {
        if (!quarantined_read(&e, in[i]) || !quarantine_put(&d->quarantine, &e)) {
            return false;
        }
    }
    return true;
}

static bool draft_release(struct view_draft *d, Rh__Actor *const *in, size_t count)
{
    struct quarantined e;

    for (size_t i = 0; i < count; i++) {
        if (!quarantined_read(&e, in[i]) || !quarantine_remove(&d->quarantine, &e)) {
            return false;
        }
    }
    return true;
}

/* No vnode of a ring may belong to somebody nobody can reach; to nobody it may, for a while. */
static bool owners_are_members(const struct view_draft *d)
{
    bool known[RING_NODES_MAX + 1] = {[RING_NODE_NONE] = true};

    for (size_t i = 0; i < d->count; i++) {
        known[d->member[i].slot] = true;
    }
    for (size_t i = 0; i < d->ring.vnode_count; i++) {
        if (!known[d->ring.vnode[i].owner]) {
            return false;
        }
    }
    return true;
}

/* ---- the whole ---- */

enum view_result view_load(struct view *v, const Rh__Config *config, bool force)
{
    struct view_draft d = {.member = mem_new(1, sizeof *d.member)};
    bool good;

    if (!force && config->version <= v->ring.version) {
        mem_free(d.member);
        return VIEW_OLD;
    }
    if (fleet_id_differs(v->fleet, view_fleet(config))) {
        mem_free(d.member);
        return VIEW_DIFFERS;
    }
    good = ring_decode(&d.ring, bytes_of(config->ring.data, config->ring.len)) == ERR_OK &&
           d.ring.version == config->version;
    for (size_t i = 0; good && i < config->n_members; i++) {
        good = draft_put(&d, config->members[i]);
    }
    good = good && draft_quarantine(&d, config->quarantined, config->n_quarantined);
    if (!good || d.count != config->n_members || !owners_are_members(&d)) {
        draft_fini(&d);
        return VIEW_DIFFERS;
    }
    draft_adopt(&d, v);
    view_set_key(v, (struct ring_key){config->key0, config->key1});
    v->era = config->era;
    v->fleet = view_fleet(config);
    return VIEW_APPLIED;
}

/* ---- one change ---- */

static bool draft_create(struct view_draft *d, const Rh__Delta *delta)
{
    const uint32_t cells = (uint32_t)1 << d->ring.grid;

    if (d->ring.vnode_count > 0 || delta->n_ops > 0 || delta->created_vnodes > cells ||
        delta->renewed > RING_NODES_MAX) {
        return false;
    }
    ring_create(&d->ring, delta->created_vnodes, (uint16_t)delta->renewed, delta->version);
    return true;
}

/* What the wire says of a segment; false: it is none. */
static bool segment_read(struct ring_segment *s, const Rh__Segment *in)
{
    if (strlen(in->role) > RING_ROLE_MAX || in->policy > RING_HOSTS ||
        in->bits > RING_SEGMENT_BITS_MAX || in->n_kinds > RING_SEGMENT_KINDS_MAX) {
        return false;
    }
    *s = (struct ring_segment){
        .policy = (enum ring_policy)in->policy,
        .bits = (uint8_t)in->bits,
        .open = in->open,
        .kind_count = (uint16_t)in->n_kinds,
    };
    memcpy(s->role, in->role, strlen(in->role));
    for (size_t i = 0; i < in->n_kinds; i++) {
        if (in->kinds[i] > UINT16_MAX) {
            return false;
        }
        s->kind[i] = (uint16_t)in->kinds[i];
    }
    return true;
}

static bool draft_segments(struct view_draft *d, const Rh__Delta *delta)
{
    for (size_t i = 0; i < delta->n_segments; i++) {
        const Rh__Segment *in = delta->segments[i];
        struct ring_segment s;

        if (d->ring.vnode_count == 0 || !segment_read(&s, in) ||
            ring_segment_fault(&d->ring, in->index, &s) != NULL) {
            return false;
        }
        ring_put_segment(&d->ring, in->index, &s, in->vnodes, delta->version);
    }
    return true;
}

static bool moves_only(const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i].kind != RING_MOVE) {
            return false;
        }
    }
    return true;
}

static bool draft_ops(struct view_draft *d, const Rh__Delta *delta)
{
    struct ring_op *ops = view_ops(delta->ops, delta->n_ops);
    bool good = ops != NULL && (!delta->cold || moves_only(ops, delta->n_ops)) &&
                ring_check(&d->ring, ops, delta->n_ops) == ERR_OK;

    if (good && delta->cold) {
        ring_reassign(&d->ring, ops, delta->n_ops, delta->version);
    } else if (good) {
        ring_apply(&d->ring, ops, delta->n_ops, delta->version, delta->txn);
    }
    mem_free(ops);
    return good;
}

static bool draft_change(struct view_draft *d, const Rh__Delta *delta)
{
    if (delta->created_vnodes > 0 && !draft_create(d, delta)) {
        return false;
    }
    if (!draft_segments(d, delta)) {
        return false;
    }
    if (delta->n_ops > 0 && !draft_ops(d, delta)) {
        return false;
    }
    if (delta->created_vnodes == 0 && delta->n_ops == 0 && delta->renewed > 0) {
        if (!valid_slot(delta->renewed)) {
            return false;
        }
        ring_renew_owner(&d->ring, (uint16_t)delta->renewed, delta->version);
    }
    ring_set_version(&d->ring, delta->version);
    for (size_t i = 0; i < delta->n_removed; i++) {
        if (!draft_remove(d, delta->removed[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < delta->n_changed; i++) {
        if (!draft_put(d, delta->changed[i])) {
            return false;
        }
    }
    return draft_release(d, delta->released, delta->n_released) &&
           draft_quarantine(d, delta->quarantined, delta->n_quarantined) &&
           ((d->lent && delta->n_removed == 0) || owners_are_members(d));
}

/* Most changes are operations and nothing else, MOVEs above all: those need no copy. */
static bool is_plain(const Rh__Delta *delta)
{
    return delta->n_ops > 0 && delta->created_vnodes == 0 && delta->n_segments == 0 &&
           delta->n_changed == 0 && delta->n_removed == 0 && delta->n_released == 0 &&
           delta->n_quarantined == 0;
}

/* Returns owned ops, and the digest that they lead to; NULL: they are not legal. */
static struct ring_op *plain_ops(const struct view *v, const Rh__Delta *delta, uint64_t digest[2])
{
    const struct ring_stamps stamps = {delta->version, delta->txn, delta->cold != 0};
    struct ring_op *ops = view_ops(delta->ops, delta->n_ops);
    bool good = ops != NULL && (!delta->cold || moves_only(ops, delta->n_ops)) &&
                ring_foresee(&v->ring, ops, delta->n_ops, &stamps, digest) == ERR_OK;

    for (size_t i = 0; good && i < delta->n_ops; i++) {
        good = ops[i].kind != RING_MOVE || view_member(v, ops[i].to) != NULL;
    }
    if (!good) {
        mem_free(ops);
        return NULL;
    }
    return ops;
}

static enum view_result apply_plain(struct view *v, const Rh__Delta *delta)
{
    uint64_t digest[2];
    struct ring_op *ops = plain_ops(v, delta, digest);
    const bool good = ops != NULL && digest[0] == delta->digest0 && digest[1] == delta->digest1;

    if (good && delta->cold) {
        ring_reassign(&v->ring, ops, delta->n_ops, delta->version);
    } else if (good) {
        ring_apply(&v->ring, ops, delta->n_ops, delta->version, delta->txn);
    }
    mem_free(ops);
    return good ? VIEW_APPLIED : VIEW_DIFFERS;
}

enum view_result view_apply(struct view *v, const Rh__Delta *delta)
{
    struct view_draft d;

    if (delta->version <= v->ring.version) {
        return VIEW_OLD;
    }
    // Without the key it would find the wrong owners: the first thing to have is a configuration.
    if (delta->prev_version != v->ring.version || (v->key.k0 == 0 && v->key.k1 == 0)) {
        return VIEW_GAP;
    }
    if (is_plain(delta)) {
        return apply_plain(v, delta);
    }
    draft_init(&d, v, delta);
    if (!draft_change(&d, delta) || d.ring.digest[0] != delta->digest0 ||
        d.ring.digest[1] != delta->digest1) {
        draft_fini(&d);
        return VIEW_DIFFERS;
    }
    draft_adopt(&d, v);
    return VIEW_APPLIED;
}

static bool seal_plain(const struct view *v, Rh__Delta *delta)
{
    uint64_t digest[2] = {0, 0};
    struct ring_op *ops = plain_ops(v, delta, digest);
    const bool good = ops != NULL;

    delta->digest0 = digest[0];
    delta->digest1 = digest[1];
    mem_free(ops);
    return good;
}

bool view_seal(const struct view *v, Rh__Delta *delta)
{
    struct view_draft d;
    bool good;

    delta->prev_version = v->ring.version;
    if (is_plain(delta) && delta->version > v->ring.version) {
        return seal_plain(v, delta);
    }
    draft_init(&d, v, delta);
    good = delta->version > v->ring.version && draft_change(&d, delta);
    delta->digest0 = d.ring.digest[0];
    delta->digest1 = d.ring.digest[1];
    draft_fini(&d);
    return good;
}

/* ---- questions ---- */

const struct view_member *view_member(const struct view *v, uint16_t slot)
{
    const size_t at = member_place(v->member, v->member_count, slot);

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

ring_hit view_lookup(const struct view *v, uint16_t kind, struct bytes id)
{
    const struct ring_key key = ring_key_of_kind(v->key, kind);

    return v->ring.cell[ring_point_cell(ring_point(&v->ring, kind, key, id))];
}
