/* SPDX-License-Identifier: Apache-2.0
 *
 * The changes of a ring: check and apply.
 *
 * MOVEs work in place. SPLITs and MERGEs work on a draft, a linked list of
 * vnodes, in O(1) each, and the sorted array is written anew once: one
 * transaction costs O(vnodes + ops) however many SPLITs it has. ring_check()
 * runs the same steps on a draft that it throws away.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "ring/digest.h"
#include "ring/inside.h"

#include <string.h>

static bool valid_owner(uint16_t owner)
{
    return owner != RING_NODE_NONE && owner <= RING_NODES_MAX;
}

static bool only_moves(const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i].kind != RING_MOVE) {
            return false;
        }
    }
    return true;
}

static enum err check_move(const struct ring_op *op, uint16_t owner)
{
    if (!valid_owner(op->to) || op->to == op->from) {
        return ERR_INVALID;
    }
    return op->from == owner ? ERR_OK : ERR_CONFLICT;
}

static void stamp_move(struct ring_vnode *v, uint16_t to, const struct ring_stamps *s)
{
    v->owner = to;
    v->generation = s->version;
    v->cold = s->cold ? s->version : v->cold;
    v->txn = s->cold ? v->txn : s->txn;
}

/* ---- the draft ---- */

#define NO_NEXT UINT32_MAX

struct op_draft {
    struct ring_vnode *vnode; /* owned; in no order, new ones at the end */
    uint32_t *next;           /* owned; index of the right neighbour, or NO_NEXT */
    size_t count;
    uint32_t *slot; /* owned; vnode id -> index + 1, for every id there can be in this change */
    size_t slot_count;
    uint32_t cells;
    const struct ring *ring; /* borrowed: its segments */
    uint32_t *cell;          /* borrowed; NULL when the change is not made */
    uint64_t *digest;        /* borrowed; NULL when the change is only checked */
};

static void draft_init(struct op_draft *d, const struct ring *r, const struct ring_op *ops,
                       size_t count)
{
    size_t splits = 0;

    *d = (struct op_draft){.count = r->vnode_count, .slot_count = r->slot_count};
    for (size_t i = 0; i < count; i++) {
        if (ops[i].kind == RING_SPLIT && ops[i].other <= RING_VNODES_MAX) {
            splits++;
            d->slot_count = ops[i].other >= d->slot_count ? ops[i].other + 1 : d->slot_count;
        }
    }
    d->cells = r->cell_count;
    d->ring = r;
    d->vnode = mem_new(r->vnode_count + splits, sizeof *d->vnode);
    d->next = mem_new(r->vnode_count + splits, sizeof *d->next);
    d->slot = mem_new(d->slot_count, sizeof *d->slot);
    if (r->vnode_count == 0) {
        return;
    }
    memcpy(d->vnode, r->vnode, r->vnode_count * sizeof *d->vnode);
    memcpy(d->slot, r->slot, r->slot_count * sizeof *d->slot);
    for (size_t i = 0; i < d->count; i++) {
        d->next[i] = i + 1 < d->count ? (uint32_t)i + 1 : NO_NEXT;
    }
}

static void draft_fini(struct op_draft *d)
{
    mem_free(d->vnode);
    mem_free(d->next);
    mem_free(d->slot);
}

/* The index of a vnode, or NO_NEXT. */
static uint32_t draft_find(const struct op_draft *d, uint32_t id)
{
    return id < d->slot_count && d->slot[id] != 0 ? d->slot[id] - 1 : NO_NEXT;
}

static uint32_t draft_end(const struct op_draft *d, uint32_t index)
{
    return d->next[index] == NO_NEXT ? d->cells : d->vnode[d->next[index]].from;
}

/* Take the vnode out of the digest before it changes … */
static void draft_close(struct op_draft *d, uint32_t index)
{
    if (d->digest != NULL) {
        digest_remove(d->digest, &d->vnode[index], draft_end(d, index));
    }
}

/* … and put it back, into the cells too, after it did. */
static void draft_open(struct op_draft *d, uint32_t index)
{
    uint32_t end = draft_end(d, index);

    if (d->digest == NULL) {
        return;
    }
    digest_add(d->digest, &d->vnode[index], end);
    for (uint32_t c = d->vnode[index].from; d->cell != NULL && c < end; c++) {
        d->cell[c] = ring_hit_of(&d->vnode[index]);
    }
}

static enum err draft_split(struct op_draft *d, const struct ring_op *op, uint32_t left)
{
    uint32_t right = (uint32_t)d->count;

    if (op->other > RING_VNODES_MAX) {
        return ERR_INVALID;
    }
    if (op->at <= d->vnode[left].from || op->at >= draft_end(d, left)) {
        return ERR_INVALID;
    }
    if (draft_find(d, op->other) != NO_NEXT) {
        return ERR_CONFLICT;
    }
    draft_close(d, left);
    d->count++;
    d->vnode[right] = d->vnode[left];
    d->vnode[right].id = op->other;
    d->vnode[right].cold = mutant(M_SPLITWARM) ? 0 : d->vnode[right].cold;
    d->vnode[right].from = op->at;
    d->slot[op->other] = right + 1;
    d->next[right] = d->next[left];
    d->next[left] = right;
    if (d->digest != NULL) { // the cells of the left part say the same as before
        digest_add(d->digest, &d->vnode[left], op->at);
    }
    draft_open(d, right);
    return ERR_OK;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static enum err draft_merge(struct op_draft *d, const struct ring_op *op, uint32_t left)
{
    uint32_t right = draft_find(d, op->other);
    struct ring_vnode *l = &d->vnode[left];
    const struct ring_vnode *r;

    if (right == NO_NEXT) {
        return ERR_NOT_FOUND;
    }
    r = &d->vnode[right];
    if (d->next[left] != right || l->owner != r->owner || ring_is_border(d->ring, r->from)) {
        return ERR_CONFLICT;
    }
    draft_close(d, left);
    draft_close(d, right);
    l->generation = greater(l->generation, r->generation);
    l->cold = mutant(M_LEFTCOLD) ? l->cold : greater(l->cold, r->cold);
    l->txn = greater(l->txn, r->txn);
    d->slot[op->other] = 0;
    d->next[left] = d->next[right];
    draft_open(d, left);
    return ERR_OK;
}

static enum err draft_move(struct op_draft *d, const struct ring_op *op, uint32_t index,
                           const struct ring_stamps *s)
{
    enum err e = check_move(op, d->vnode[index].owner);

    if (e == ERR_OK) {
        draft_close(d, index);
        stamp_move(&d->vnode[index], op->to, s);
        draft_open(d, index);
    }
    return e;
}

static enum err draft_step(struct op_draft *d, const struct ring_op *op,
                           const struct ring_stamps *s)
{
    uint32_t index = draft_find(d, op->vnode);

    if (index == NO_NEXT) {
        return ERR_NOT_FOUND;
    }
    switch (op->kind) {
    case RING_SPLIT:
        return draft_split(d, op, index);
    case RING_MERGE:
        return draft_merge(d, op, index);
    case RING_MOVE:
        return draft_move(d, op, index, s);
    }
    return ERR_INVALID;
}

/* The draft's vnodes, sorted, become the ring's. */
static void draft_finish(struct op_draft *d, struct ring *r)
{
    struct ring_vnode *list = mem_new(d->count, sizeof *list);
    size_t count = 0;

    // The first vnode starts at cell 0 and stays at index 0: a MERGE keeps the left one.
    for (uint32_t i = 0; i != NO_NEXT; i = d->next[i]) {
        list[count++] = d->vnode[i];
    }
    ring_take_vnodes(r, list, count);
}

/* ---- check ---- */

enum { FEW_MOVES = 256 }; /* that are compared each with each */

/* Looks back instead of copying the ring. */
static enum err check_few_moves(const struct ring *r, const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ring_vnode *v = ring_find(r, ops[i].vnode);
        uint16_t owner = v == NULL ? RING_NODE_NONE : v->owner;
        enum err e;

        if (v == NULL) {
            return ERR_NOT_FOUND;
        }
        for (size_t j = 0; j < i; j++) {
            owner = ops[j].vnode == ops[i].vnode ? ops[j].to : owner;
        }
        e = check_move(&ops[i], owner);
        if (e != ERR_OK) {
            return e;
        }
    }
    return ERR_OK;
}

enum err ring_check(const struct ring *r, const struct ring_op *ops, size_t count)
{
    const struct ring_stamps none = {0};
    enum err e = ERR_OK;
    struct op_draft d;

    if (count <= FEW_MOVES && only_moves(ops, count)) {
        return check_few_moves(r, ops, count);
    }
    draft_init(&d, r, ops, count);
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        e = draft_step(&d, &ops[i], &none);
    }
    draft_fini(&d);
    return e;
}

/* ---- apply ---- */

static void move_in_place(struct ring *r, const struct ring_op *op, const struct ring_stamps *s)
{
    struct ring_vnode *v;
    uint32_t end;

    ASSERT(op->vnode < r->slot_count && r->slot[op->vnode] != 0);
    v = &r->vnode[r->slot[op->vnode] - 1];
    ASSERT(check_move(op, v->owner) == ERR_OK);
    end = ring_end(r, v);
    digest_remove(r->digest, v, end);
    stamp_move(v, op->to, s);
    digest_add(r->digest, v, end);
    ring_fill_cells(r, v);
}

static void apply_draft(struct ring *r, const struct ring_op *ops, size_t count,
                        const struct ring_stamps *s)
{
    struct op_draft d;

    draft_init(&d, r, ops, count);
    d.cell = r->cell;
    d.digest = r->digest;
    for (size_t i = 0; i < count; i++) {
        enum err e = draft_step(&d, &ops[i], s);

        ASSERT(e == ERR_OK);
    }
    draft_finish(&d, r);
    draft_fini(&d);
}

static void apply_moves(struct ring *r, const struct ring_op *ops, size_t count,
                        const struct ring_stamps *s)
{
    for (size_t i = 0; i < count; i++) {
        ASSERT(ops[i].kind == RING_MOVE);
        move_in_place(r, &ops[i], s);
    }
}

// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): version and txn are named at each call
void ring_apply(struct ring *r, const struct ring_op *ops, size_t count, uint64_t version,
                uint64_t txn)
{
    const struct ring_stamps s = {.version = version, .txn = txn};

    ring_set_version(r, version);
    if (only_moves(ops, count)) {
        apply_moves(r, ops, count, &s);
    } else {
        apply_draft(r, ops, count, &s);
    }
}

void ring_reassign(struct ring *r, const struct ring_op *moves, size_t count, uint64_t version)
{
    const struct ring_stamps s = {.version = version, .cold = true};

    ring_set_version(r, version);
    apply_moves(r, moves, count, &s);
}

/* Looks back instead of copying the ring. */
static void moves_digest(const struct ring *r, const struct ring_op *moves, size_t count,
                         const struct ring_stamps *stamps, uint64_t digest[2])
{
    for (size_t i = 0; i < count; i++) {
        const struct ring_vnode *v = ring_find(r, moves[i].vnode);
        struct ring_vnode now;

        ASSERT(v != NULL);
        now = *v;
        for (size_t j = 0; j < i; j++) {
            if (moves[j].vnode == now.id) {
                stamp_move(&now, moves[j].to, stamps);
            }
        }
        digest_remove(digest, &now, ring_end(r, v));
        stamp_move(&now, moves[i].to, stamps);
        digest_add(digest, &now, ring_end(r, v));
    }
}

enum err ring_foresee(const struct ring *r, const struct ring_op *ops, size_t count,
                      const struct ring_stamps *stamps, uint64_t digest[2])
{
    const bool few = count <= FEW_MOVES && only_moves(ops, count);
    enum err e = few ? check_few_moves(r, ops, count) : ERR_OK;
    struct op_draft d;

    digest[0] = r->digest[0];
    digest[1] = r->digest[1];
    if (few && e == ERR_OK) {
        moves_digest(r, ops, count, stamps, digest);
    }
    if (few) {
        return e;
    }
    draft_init(&d, r, ops, count);
    d.digest = digest;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        e = draft_step(&d, &ops[i], stamps);
    }
    draft_fini(&d);
    return e;
}

void ring_renew_owner(struct ring *r, uint16_t owner, uint64_t version)
{
    ring_set_version(r, version);
    for (struct ring_vnode *v = r->vnode; v < r->vnode + r->vnode_count; v++) {
        uint32_t end = ring_end(r, v);

        if (v->owner != owner) {
            continue;
        }
        digest_remove(r->digest, v, end);
        v->generation = version;
        v->cold = version;
        digest_add(r->digest, v, end);
    }
}
