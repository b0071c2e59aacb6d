/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's pace: no more is started, for whom and at once, than the links can
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
    PACE_STARTS = 16,
    PACE_SIZE = 4 * 1024 * 1024, /* bytes passed on to other nodes in one step */
};

/* One that waited for it may begin its activation. */
static bool has_cold(const struct host *h)
{
    return h->pace.cold.count > 0 && h->work.activating < h->config.activations_max;
}

static bool is_full(const struct host *h, uint64_t gateway)
{
    const struct neighbour *n = NULL;

    if (h->pace.full_count > 0) {
        n = neighbour_asking(&h->links.neighbours, gateway);
    }
    return n != NULL && n->full;
}

void pace_init(struct pace *p)
{
    queue_init(&p->stalled);
    queue_init(&p->later);
    queue_init(&p->cold);
}

void pace_begin(struct pace *p)
{
    p->started = 0;
    p->passed_on = 0;
}

bool pace_may_start(const struct host *h, const struct request_record *r)
{
    return h->pace.started < PACE_STARTS && !is_full(h, r->gateway);
}

bool pace_may_pass_on(const struct host *h, uint64_t link)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, link);

    return h->pace.passed_on < PACE_SIZE && (n == NULL || !n->full);
}

void pace_put_off(struct host *h, struct arrival *in)
{
    const bool full = is_full(h, in->r->gateway);

    if (admit_park(h, full ? &h->pace.stalled : &h->pace.later, in)) {
        h->pace.put_off_total++;
    }
}

void pace_pass_on_later(struct host *h, struct arrival *in)
{
    (void)admit_park(h, h->pace.passed_on < PACE_SIZE ? &h->pace.stalled : &h->pace.later, in);
}

bool pace_may_activate(const struct host *h, const struct request_record *r)
{
    return h->work.activating < h->config.activations_max || r->chain_count > 0;
}

void pace_activate_later(struct host *h, struct arrival *in)
{
    if (in->w == NULL && h->pace.cold.count >= h->config.cold_count_max) {
        requests_drop(&h->requests, DROPPED_COLD);
        admit_refuse(h, in, ANSWER_OVERLOAD, BUSY_RETRY_MS);
    } else {
        (void)admit_park(h, &h->pace.cold, in);
    }
}

static bool may_go_on(const struct host *h)
{
    return h->pace.started < PACE_STARTS && h->pace.passed_on < PACE_SIZE;
}

static void go_on(struct host *h, struct queue *q)
{
    struct waiting *w = queue_pop(q);

    if (w != NULL) {
        struct arrival in = arrival_of(w);

        admit_again(h, &in);
    }
}

void pace_go_on(struct host *h)
{
    const size_t later = h->pace.later.count;
    const size_t cold = h->pace.cold.count;

    for (size_t i = 0; i < later && may_go_on(h); i++) {
        go_on(h, &h->pace.later);
    }
    for (size_t i = 0; i < cold && may_go_on(h) && has_cold(h); i++) {
        go_on(h, &h->pace.cold);
    }
}

void pace_on_link(struct host *h, uint64_t link, bool full)
{
    struct neighbour *n = neighbour_by_link(&h->links.neighbours, link);

    if (n == NULL || n->full == full) {
        return;
    }
    n->full = full;
    if (full) {
        h->pace.full_count++;
        h->pace.full_total++;
        return;
    }
    ASSERT(h->pace.full_count > 0);
    h->pace.full_count--;
    admit_all(h, &h->pace.stalled);
}

bool host_has_more(const struct host *h)
{
    return h->pace.later.count > 0 || has_cold(h) || wake_has_more(h);
}
