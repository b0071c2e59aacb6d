/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts together what operators wish, for the strategy.
 */
#include "txn/leader/inside.h"

#include "base/mem.h"
#include "base/mutant.h"

#include <stdlib.h>
#include <string.h>

static int by_from(const void *a, const void *b)
{
    const struct plan_wish *x = a;
    const struct plan_wish *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

/* Add those of `count` wishes that have no cell in common with what is there, which stays sorted.
 */
static void add_all(struct plan_wishes *to, const struct plan_wish *wish, size_t count)
{
    const struct plan_wishes before = *to;

    if (count == 0) {
        return;
    }
    to->wish = mem_new(before.count + count, sizeof *to->wish);
    for (size_t i = 0; i < before.count; i++) {
        to->wish[i] = before.wish[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (plan_wish_in(&before, wish[i].from, wish[i].to) == NULL) {
            to->wish[to->count++] = wish[i];
        }
    }
    qsort(to->wish, to->count, sizeof *to->wish, by_from);
    mem_free(before.wish);
}

/* ---- pins ---- */

static int by_name(const void *a, const void *b)
{
    const struct state_node *const *x = a;
    const struct state_node *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static int name_of(const void *name, const void *node)
{
    return strcmp(name, (*(const struct state_node *const *)node)->name);
}

/* Owned. */
static const struct state_node **nodes_by_name(const struct state *s)
{
    const struct state_node **list = mem_new(s->node_count + 1, sizeof(struct state_node *));

    for (size_t i = 0; i < s->node_count; i++) {
        list[i] = &s->node[i];
    }
    qsort(list, s->node_count, sizeof(struct state_node *), by_name);
    return list;
}

/* Who drains gives what is pinned to it, too: it is to be empty. */
static struct plan_wish wish_of(struct coordinator *c, const struct state_pin *pin,
                                const struct state_node *node)
{
    struct plan_wish w = {.from = pin->from, .to = pin->to, .kind = PLAN_APART};

    if (node == NULL || node->leaving ||
        (pin->id_size > 0 && !ring_kinds_have(&node->kinds, pin->kind))) {
        return w;
    }
    w.slot = node->slot;
    if (!node->barred && !peers_gone(c, node)) {
        w.kind = PLAN_AT;
    } else if (pin->waits) {
        w.kind = PLAN_STAY;
    }
    return w;
}

/* The cells of several pins are one wish: they say the same. */
static void make_pinned(struct coordinator *c)
{
    struct plan_wishes *out = &c->wishes.pinned;
    const struct state *s = c->state;
    const struct state_node **nodes = nodes_by_name(s);

    mem_free(out->wish);
    *out = (struct plan_wishes){.wish = mem_new(s->pin_count, sizeof *out->wish)};
    for (size_t i = 0; i < s->pin_count; i++) {
        const struct state_pin *pin = &s->pin[i];
        struct plan_wish *last = out->count == 0 ? NULL : &out->wish[out->count - 1];
        const struct state_node *const *node =
            bsearch(pin->node, nodes, s->node_count, sizeof(struct state_node *), name_of);

        if (mutant(M_PINMOVES) && node != NULL &&
            ring_hit_node(s->view.ring.cell[pin->from]) == (*node)->slot) {
            continue;
        }
        if (last == NULL || pin->from >= last->to) {
            out->wish[out->count++] = wish_of(c, pin, node == NULL ? NULL : *node);
        } else if (pin->to > last->to) {
            last->to = pin->to;
        }
    }
    mem_free(nodes);
}

static const struct plan_wishes *pinned(struct coordinator *c)
{
    struct leader_wishes *own = &c->wishes;

    if (c->state->pin_count == 0) {
        own->pinned.count = 0;
        own->changes = 0;
    } else if (own->changes != c->applied.changes || own->lives != c->rebalance.lives) {
        make_pinned(c);
        own->changes = c->applied.changes;
        own->lives = c->rebalance.lives;
    }
    return &own->pinned;
}

const struct plan_wish *wishes_pinned(struct coordinator *c, uint32_t cell)
{
    return plan_wish_in(pinned(c), cell, cell + 1);
}

size_t wishes_to_give(struct coordinator *c, const struct state_node *node)
{
    const struct plan_wishes *pins = pinned(c);
    const struct ring *ring = &c->state->view.ring;
    size_t count = ring_owned_count(ring, node->slot);

    for (size_t i = 0; i < ring->vnode_count && pins->count > 0; i++) {
        const struct ring_vnode *v = &ring->vnode[i];
        const struct plan_wish *w =
            v->owner == node->slot ? plan_wish_in(pins, v->from, v->from + 1) : NULL;

        count -= w != NULL && w->kind == PLAN_STAY && w->slot == node->slot;
    }
    return count;
}

void wishes_make(struct coordinator *c, const struct plan_wishes *more, struct plan_wishes *out)
{
    const struct plan_wishes *pins = pinned(c);

    *out = (struct plan_wishes){0};
    if (more != NULL) {
        add_all(out, more->wish, more->count);
    }
    add_all(out, pins->wish, pins->count);
    add_all(out, c->wishes.once.wish, c->wishes.once.count);
}

void wishes_end(struct plan_wishes *wishes)
{
    mem_free(wishes->wish);
}

/* ---- once ---- */

void wishes_add_once(struct coordinator *c, const struct plan_wishes *wishes)
{
    struct plan_wishes once = {0};

    add_all(&once, wishes->wish, wishes->count);
    add_all(&once, c->wishes.once.wish, c->wishes.once.count);
    mem_free(c->wishes.once.wish);
    c->wishes.once = once;
    rebalance_touch(c);
}

/* All of its cells are there. */
static bool is_fulfilled(const struct ring *ring, const struct plan_wish *w)
{
    uint32_t cell = w->from;

    while (cell < w->to && ring_hit_node(ring->cell[cell]) == w->slot) {
        cell++;
    }
    return cell == w->to;
}

void wishes_tidy(struct coordinator *c)
{
    struct plan_wishes *once = &c->wishes.once;
    size_t kept = 0;

    for (size_t i = 0; i < once->count; i++) {
        const struct plan_wish *w = &once->wish[i];
        const struct state_node *n = state_node(c->state, w->slot);

        if (n != NULL && !n->leaving && !peers_gone(c, n) &&
            !is_fulfilled(&c->state->view.ring, w)) {
            once->wish[kept++] = *w;
        }
    }
    once->count = kept;
}

void wishes_reset(struct coordinator *c)
{
    mem_free(c->wishes.once.wish);
    mem_free(c->wishes.pinned.wish);
    c->wishes = (struct leader_wishes){0};
}
