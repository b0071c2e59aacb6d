/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host knows of a circle of calls (node/books/waits.h): what a call waits for at the actor
 * that it asks, and its refusal.
 */
#include "base/mutant.h"
#include "node/books/waits.h"
#include "node/host/inside.h"

/* It runs something, so what stands in its mailbox waits. */
static struct actor *asked(const struct host *h, const struct probe *p)
{
    const struct image_name name = {
        .position = host_position(h, p->kind, p->id), .kind = p->kind, .id = p->id};
    struct actor *a = h->membership.life == LIFE_SERVING ? actor_find(&h->actors, name) : NULL;

    return a != NULL && a->state == ACTOR_RUNNING ? a : NULL;
}

static bool is_named(const struct request_record *r, const struct call_name *name)
{
    return (r->flags & REQUEST_CALL) != 0 && r->gateway == name->node &&
           r->session == name->session && r->seq == name->seq;
}

/* Either may be NULL. */
static struct waiting *older(struct waiting *a, struct waiting *b)
{
    return a == NULL || (b != NULL && b->record.copy < a->record.copy) ? b : a;
}

/* Its oldest copy. */
static struct waiting *named_in(const struct queue *q, const struct call_name *name)
{
    struct waiting *found = NULL;

    for (struct waiting *w = queue_front(q); w != NULL; w = queue_next(q, w)) {
        found = older(found, is_named(&w->record, name) ? w : NULL);
    }
    return found;
}

/* In its mailbox, or kept back by the hold of its arc, which waits for what it runs. */
static struct waiting *queued(const struct actor *a, const struct call_name *name)
{
    const struct hold *hold = actor_held(a);

    return older(named_in(&a->work->queue, name),
                 hold == NULL ? NULL : named_in(&hold->held, name));
}

/* Behind others of its caller that are queued. */
static struct waiting *early(const struct host *h, const struct actor *a,
                             const struct call_name *name)
{
    const struct order *order = order_find(&h->orders, a, name->session);
    struct waiting *w = order == NULL ? NULL : order_early(&h->orders, order, name->seq);

    return w != NULL && is_named(&w->record, name) ? w : NULL;
}

static bool waits(const struct host *h, const struct actor *a, const struct call_name *name)
{
    return queued(a, name) != NULL || early(h, a, name) != NULL;
}

static bool is_run(const struct actor *a, const struct call_name *name)
{
    const struct running *r = &a->work->running;

    return r->order != NULL && r->gateway == name->node && r->session == name->session &&
           r->seq == name->seq;
}

struct blocked host_blocked(const struct host *h, uint64_t peer, const struct probe *p)
{
    const struct neighbour *from = neighbour_by_link(&h->links.neighbours, peer);
    const bool known = from != NULL && from->standing == STANDING_KNOWN;
    const struct actor *a = known ? asked(h, p) : NULL;
    struct blocked blocked = {0};

    // No gateway asks for actors: what does is another node, or this one.
    if (a == NULL || (from->role != ROLE_NODE && peer != CALLS_LINK)) {
        return blocked;
    }
    const bool runs = is_run(a, &p->call);

    blocked.queued = !runs && waits(h, a, &p->call); // a copy of what runs is no victim
    if (blocked.queued || runs) {
        blocked.run = a->work->running.ticket;
    }
    return blocked;
}

/* Let go by a hold, and not yet offered to its actor: a newer copy may have come there first. */
static struct waiting *put_off(const struct host *h, const struct call_name *name)
{
    return older(named_in(&h->backpressure.stalled, name), named_in(&h->backpressure.later, name));
}

/* Each of its copies, the newest last: who asks takes the answer to that for the last word, and
 * has to know by then that none of the others runs. NULL: that was it. */
static struct waiting *take_copy(struct host *h, const struct actor *a,
                                 const struct call_name *name)
{
    struct waiting *first = early(h, a, name);
    struct waiting *off = mutant(M_PUTOFFRUNS) ? NULL : put_off(h, name);
    struct waiting *w = older(older(first, queued(a, name)), off);

    if (w != NULL && w == first) {
        order_drop_early_copy(&h->orders, order_find(&h->orders, a, name->session), w);
    } else if (w != NULL) {
        queue_remove(w);
    }
    return w;
}

void deadlock_refuse(struct host *h, const struct probe *p, uint64_t run)
{
    const struct actor *a = asked(h, p);
    struct waiting *w = NULL;

    if (a == NULL || a->work->running.ticket != run || is_run(a, &p->call) ||
        !waits(h, a, &p->call)) {
        return;
    }
    h->requests.refused_deadlock++;
    while ((w = take_copy(h, a, &p->call)) != NULL) {
        struct admission in = admission_of(w);

        admit_refuse(h, &in, ANSWER_NO_KIND, NO_KIND_DEADLOCK);
    }
}
