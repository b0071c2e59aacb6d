/* SPDX-License-Identifier: Apache-2.0
 *
 * Backpressure: no more is started, for whom and at once, than the links can
 * take back. A link whose peer does not keep up must not be filled until it
 * breaks: then requests that ran would be asked for again.
 *
 * The shell says when a link is full and when it has room again. What is for a
 * full link waits (`stalled`); what is too much for one step goes on in the
 * next (`later`): a hold that ends may let go of a hundred thousand requests.
 *
 * An activation may load state from a store that serves so many at a time: an actor
 * that a request would activate while `activations_max` are under way stands in a line
 * (`cold`), and one more is refused while `cold_count_max` do. So a storm of players
 * finds a line here, in the order they came, and not ten thousand loads that are all
 * late. Requests wait in the actor's mailbox, as those of streams need it: nothing but
 * arrival orders a lane, so what comes next must find there what came before.
 */
#include "node/host/inside.h"

#include "base/assert.h"

enum {
    /* Requests started in one step: each may be answered with RECORD_BODY_MAX before anybody can
     * say that the link is full. */
    BACKPRESSURE_STARTS = 16,
    BACKPRESSURE_SIZE = 4 * 1024 * 1024, /* bytes passed on to other nodes in one step */
};

/* The next in line may begin its activation. Without a lease nobody may: the line stands. */
static bool has_cold(const struct host *h)
{
    return h->backpressure.cold_count > 0 && h->work.activating < h->config.activations_max &&
           lease_policy_may_start(h);
}

static bool is_full(const struct host *h, uint64_t gateway)
{
    const struct neighbour *n = NULL;

    if (h->backpressure.full_count > 0) {
        n = neighbour_asking(&h->links.neighbours, gateway);
    }
    return n != NULL && n->full;
}

void backpressure_init(struct backpressure *p)
{
    queue_init(&p->stalled);
    queue_init(&p->later);
    list_init(&p->cold);
}

void backpressure_begin(struct backpressure *p)
{
    p->started = 0;
    p->passed_on = 0;
}

bool backpressure_may_start(const struct host *h, const struct admission *in)
{
    return in->mark.by != NULL ||
           (h->backpressure.started < BACKPRESSURE_STARTS && !is_full(h, in->r->gateway));
}

bool backpressure_may_pass_on(const struct host *h, uint64_t link)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, link);

    return h->backpressure.passed_on < BACKPRESSURE_SIZE && (n == NULL || !n->full);
}

void backpressure_put_off(struct host *h, struct admission *in)
{
    const bool full = is_full(h, in->r->gateway);

    if (admit_park(h, full ? &h->backpressure.stalled : &h->backpressure.later, in)) {
        h->backpressure.put_off_total++;
    }
}

void backpressure_pass_on_later(struct host *h, struct admission *in)
{
    (void)admit_park(h,
                     h->backpressure.passed_on < BACKPRESSURE_SIZE ? &h->backpressure.stalled
                                                                   : &h->backpressure.later,
                     in);
}

bool backpressure_may_activate(const struct host *h, const struct request_record *r)
{
    return (h->work.activating < h->config.activations_max && h->backpressure.cold_count == 0) ||
           r->chain_count > 0;
}

bool backpressure_line_is_full(const struct host *h)
{
    return h->backpressure.cold_count >= h->config.cold_count_max;
}

void backpressure_line_up(struct host *h, struct actor *a)
{
    if (!list_linked(&a->work->to_export)) {
        list_push_back(&h->backpressure.cold, &a->work->to_export);
        h->backpressure.cold_count++;
    }
}

void backpressure_leave_line(struct host *h, const struct actor *a)
{
    if (a->state == ACTOR_ABSENT && a->work != NULL && list_linked(&a->work->to_export)) {
        list_remove(&a->work->to_export);
        h->backpressure.cold_count--;
    }
}

static bool may_go_on(const struct host *h)
{
    return h->backpressure.started < BACKPRESSURE_STARTS &&
           h->backpressure.passed_on < BACKPRESSURE_SIZE;
}

static void go_on_later(struct host *h)
{
    struct waiting *w = queue_pop(&h->backpressure.later);

    if (w != NULL) {
        struct admission in = admission_of(w);

        admit_again(h, &in);
    }
}

/* Nothing may wait for it any more: then it rests. */
static void go_on_cold(struct host *h)
{
    struct list_link *l = list_front(&h->backpressure.cold);
    struct actor *a = CONTAINER_OF(l, struct actor_work, to_export)->actor;

    backpressure_leave_line(h, a);
    actor_proceed(h, a);
}

void backpressure_go_on(struct host *h)
{
    const size_t later = h->backpressure.later.count;

    for (size_t i = 0; i < later && may_go_on(h); i++) {
        go_on_later(h);
    }
    while (may_go_on(h) && has_cold(h)) {
        go_on_cold(h);
    }
}

void backpressure_on_link(struct host *h, uint64_t link, bool full)
{
    struct neighbour *n = neighbour_by_link(&h->links.neighbours, link);

    if (n == NULL || n->full == full) {
        return;
    }
    n->full = full;
    if (full) {
        h->backpressure.full_count++;
        h->backpressure.full_total++;
        return;
    }
    ASSERT(h->backpressure.full_count > 0);
    h->backpressure.full_count--;
    admit_all(h, &h->backpressure.stalled);
}

bool host_has_more(const struct host *h)
{
    return h->backpressure.later.count > 0 || has_cold(h) || wake_has_more(h);
}
