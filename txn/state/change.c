/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals, stamps, deltas and rows of the state, for the handlers.
 */
#include "txn/state/change.h"

#include "base/assert.h"
#include "base/mem.h"
#include "txn/state/roles.h"

#include <stdio.h>
#include <string.h>

void change_refuse(struct change *c, const char *why)
{
    c->r->accepted = false;
    c->r->why = why;
}

uint64_t change_draw(struct change *c)
{
    struct state *s = c->s;

    ASSERT((s->number & ((UINT64_C(1) << STATE_NUMBER_BITS) - 1)) + 1 < UINT64_C(1)
                                                                            << STATE_NUMBER_BITS);
    return ++s->number;
}

void change_text(char *to, const char *from, size_t size)
{
    memset(to, 0, size);
    (void)snprintf(to, size, "%s", from);
}

void change_delta(struct change *c, Rh__Delta *delta)
{
    bool legal = view_seal(&c->s->view, delta);
    enum view_result result;

    ASSERT(legal);
    result = view_apply(&c->s->view, delta);
    ASSERT(result == VIEW_APPLIED);
    ASSERT(c->r->delta == NULL);
    c->r->delta = delta;
}

struct state_txn *change_txn(struct state *s, uint64_t number)
{
    const struct state_txn *t = state_txn(s, number);

    return t == NULL ? NULL : &s->txn[t - s->txn];
}

struct state_txn *change_pending(struct state *s, uint64_t number)
{
    struct state_txn *t = change_txn(s, number);

    return t != NULL && t->state == TXN_PENDING ? t : NULL;
}

void change_abort(struct change *c, struct state_txn *t, const char *why)
{
    struct state_result *r = c->r;

    t->state = machine_enter(&txn_machine, t->state, TXN_ABORTED);
    t->decided_us = c->time_us;
    change_text(t->outcome_why, why, sizeof t->outcome_why);
    r->aborted = mem_resize(r->aborted, (r->aborted_count + 1) * sizeof *r->aborted);
    r->aborted[r->aborted_count++] = t->number;
}

bool change_moves_twice(const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; ops[i].kind == RING_MOVE && j < i; j++) {
            if (ops[j].kind == RING_MOVE && ops[j].vnode == ops[i].vnode) {
                return true;
            }
        }
    }
    return false;
}

bool change_keeps_roles(const struct state *s, const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct state_node *to = ops[i].kind == RING_MOVE ? state_node(s, ops[i].to) : NULL;

        if (to != NULL && !roles_fit(s, to, ops[i].vnode)) {
            return false;
        }
    }
    return true;
}
