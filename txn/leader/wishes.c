/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts together what operators wish, for the strategy.
 */
#include "txn/leader/inside.h"

#include "base/mem.h"

#include <stdlib.h>

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

void wishes_make(struct coordinator *c, const struct plan_wishes *more, struct plan_wishes *out)
{
    *out = (struct plan_wishes){0};
    if (more != NULL) {
        add_all(out, more->wish, more->count);
    }
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
    c->wishes.once = (struct plan_wishes){0};
}
