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
 * An activation may load state from a store that serves so many at a time: what
 * would begin one while `activations_max` are under way waits too (`cold`), and is
 * refused while `cold_count_max` do. So a storm of players finds a queue here, in
 * the order they came, and not ten thousand loads that are all late.
 */
#include "node/host/inside.h"

#include "base/assert.h"

enum {
    /* Requests started in one step: each may be answered with RECORD_BODY_MAX before anybody can
     * say that the link is full. */
    BACKPRESSURE_STARTS = 16,
    BACKPRESSURE_SIZE = 4 * 1024 * 1024, /* bytes passed on to other nodes in one step */
};

/* One that waited for it may begin its activation. */
static bool has_cold(const struct host *h)
{
    return h->backpressure.cold.count > 0 && h->work.activating < h->config.activations_max;
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
    queue_init(&p->cold);
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
    return h->work.activating < h->config.activations_max || r->chain_count > 0;
}

void backpressure_activate_later(struct host *h, struct admission *in)
{
    if (in->w == NULL && h->backpressure.cold.count >= h->config.cold_count_max) {
        requests_drop(&h->requests, DROPPED_COLD);
        admit_refuse(h, in, ANSWER_OVERLOAD, BUSY_RETRY_MS);
    } else if (in->mark.by != NULL) {
        requests_drop(&h->requests, DROPPED_COLD);
        admit_refuse(h, in, ANSWER_BUSY, BUSY_RETRY_MS);
    } else {
        (void)admit_park(h, &h->backpressure.cold, in);
    }
}

static bool may_go_on(const struct host *h)
{
    return h->backpressure.started < BACKPRESSURE_STARTS &&
           h->backpressure.passed_on < BACKPRESSURE_SIZE;
}

static void go_on(struct host *h, struct queue *q)
{
    struct waiting *w = queue_pop(q);

    if (w != NULL) {
        struct admission in = admission_of(w);

        admit_again(h, &in);
    }
}

void backpressure_go_on(struct host *h)
{
    const size_t later = h->backpressure.later.count;
    const size_t cold = h->backpressure.cold.count;

    for (size_t i = 0; i < later && may_go_on(h); i++) {
        go_on(h, &h->backpressure.later);
    }
    for (size_t i = 0; i < cold && may_go_on(h) && has_cold(h); i++) {
        go_on(h, &h->backpressure.cold);
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
