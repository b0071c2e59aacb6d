/* SPDX-License-Identifier: Apache-2.0
 *
 * Folds a change of nothing but MOVEs into few bytes, and unfolds it.
 */
#include "wire/moves.h"

#include "base/mem.h"
#include "wire/control.h"

/* ---- fold ---- */

static bool is_move(const Rh__RingOp *op)
{
    return op->kind == MOVES_KIND && op->other == 0 && op->at == 0;
}

/* It holds MOVEs and nothing that Moves has no field for. */
static bool is_plain(const Rh__Delta *d)
{
    if (d->n_ops == 0 || d->n_ops > MOVES_MAX || d->txn == d->version || d->cold ||
        d->renewed != 0 || d->created_vnodes != 0 || d->n_changed > 0 || d->n_removed > 0 ||
        d->n_segments > 0 || d->n_released > 0 || d->n_quarantined > 0) {
        return false;
    }
    for (size_t i = 0; i < d->n_ops; i++) {
        if (!is_move(d->ops[i])) {
            return false;
        }
    }
    return true;
}

static bool same_pair(const Rh__RingOp *a, const Rh__RingOp *b)
{
    return a->from == b->from && a->to == b->to;
}

/* What encoding needs beside the Delta. */
struct folded {
    Rh__MovePair *pair;  /* owned */
    Rh__MovePair **list; /* owned */
    uint32_t *vnode;     /* owned; of all pairs, in the order of the ops */
    size_t count;        /* of pairs */
};

/* Runs of the same two nodes: their order among one another stays. */
static void fold(struct folded *f, const Rh__Delta *d)
{
    f->pair = mem_new(d->n_ops, sizeof *f->pair);
    f->list = mem_new(d->n_ops, sizeof(Rh__MovePair *));
    f->vnode = mem_new(d->n_ops, sizeof *f->vnode);
    for (size_t i = 0; i < d->n_ops; i++) {
        Rh__MovePair *pair = &f->pair[f->count];

        f->vnode[i] = d->ops[i]->vnode;
        if (i > 0 && same_pair(d->ops[i - 1], d->ops[i])) {
            pair[-1].n_vnodes++;
            continue;
        }
        *pair = (Rh__MovePair)RH__MOVE_PAIR__INIT;
        pair->from = d->ops[i]->from;
        pair->to = d->ops[i]->to;
        pair->vnodes = &f->vnode[i];
        pair->n_vnodes = 1;
        f->list[f->count++] = pair;
    }
}

static void folded_fini(struct folded *f)
{
    mem_free(f->pair);
    mem_free(f->list);
    mem_free(f->vnode);
}

bool moves_put(struct buffer *out, const Rh__Control *control)
{
    Rh__Control short_form = *control;
    Rh__Moves moves = RH__MOVES__INIT;
    struct folded f = {0};
    const Rh__Delta *d;

    if (control->body_case != RH__CONTROL__BODY_COMMIT || control->commit->delta == NULL) {
        return false;
    }
    d = control->commit->delta;
    if (control->commit->txn != d->txn || !is_plain(d)) {
        return false;
    }
    fold(&f, d);
    moves.ahead = control->version - d->version;
    moves.prev = d->version - d->prev_version;
    moves.txn = d->txn == 0 ? 0 : d->version - d->txn;
    moves.digest0 = d->digest0;
    moves.digest1 = d->digest1;
    moves.pairs = f.list;
    moves.n_pairs = f.count;
    short_form.era = control->era == control->version >> MOVES_ERA_BIT ? 0 : control->era;
    short_form.body_case = RH__CONTROL__BODY_MOVES;
    short_form.moves = &moves;
    proto_put(out, &short_form.base);
    folded_fini(&f);
    return true;
}

/* ---- unfold ---- */

static size_t count_moves(const Rh__Moves *moves)
{
    size_t count = 0;

    for (size_t i = 0; i < moves->n_pairs; i++) {
        count += moves->pairs[i]->n_vnodes;
    }
    return count;
}

/* Returns owned ops. */
static Rh__RingOp **unfold_ops(const Rh__Moves *moves, size_t count)
{
    Rh__RingOp **ops = mem_new(count, sizeof(Rh__RingOp *));
    size_t at = 0;

    for (size_t i = 0; i < moves->n_pairs; i++) {
        const Rh__MovePair *pair = moves->pairs[i];

        for (size_t j = 0; j < pair->n_vnodes; j++) {
            Rh__RingOp *op = mem_new(1, sizeof *op);

            *op = (Rh__RingOp)RH__RING_OP__INIT;
            op->kind = MOVES_KIND;
            op->from = pair->from;
            op->to = pair->to;
            op->vnode = pair->vnodes[j];
            ops[at++] = op;
        }
    }
    return ops;
}

bool moves_unfold(Rh__Control *control)
{
    Rh__Moves *moves = control->moves;
    const size_t count = count_moves(moves);
    Rh__Commit *commit;
    Rh__Delta *delta;

    if (count == 0 || count > MOVES_MAX) {
        return false;
    }
    commit = mem_new(1, sizeof *commit);
    delta = mem_new(1, sizeof *delta);
    *commit = (Rh__Commit)RH__COMMIT__INIT;
    *delta = (Rh__Delta)RH__DELTA__INIT;
    delta->version = control->version - moves->ahead;
    delta->prev_version = delta->version - moves->prev;
    delta->txn = moves->txn == 0 ? 0 : delta->version - moves->txn;
    delta->digest0 = moves->digest0;
    delta->digest1 = moves->digest1;
    delta->ops = unfold_ops(moves, count);
    delta->n_ops = count;
    commit->txn = delta->txn;
    commit->delta = delta;
    control->era = control->era == 0 ? control->version >> MOVES_ERA_BIT : control->era;
    control->body_case = RH__CONTROL__BODY_COMMIT;
    control->commit = commit;
    proto_free(&moves->base);
    return true;
}
