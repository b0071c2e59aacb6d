/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of requests: what must not run (any more) is answered, dropped or
 * refused here. Specification §5.3 steps 7 and 8; holes 37, 39, 40, 41, 44.
 */
#include "node/host/inside.h"

#include "base/mutant.h"

/* It runs now: who asked last is answered when it ends. */
static void attach(struct host *h, struct running *running, struct admission *in)
{
    const struct request_record *r = in->r;

    if (in->deadline_us > running->deadline_us) {
        running->deadline_us = in->deadline_us;
    }
    if (r->session_epoch > running->epoch ||
        (r->session_epoch == running->epoch && r->copy > running->copy)) {
        running->gateway = r->gateway;
        running->epoch = r->session_epoch;
        running->peer = in->peer;
        running->copy = r->copy;
    }
    h->requests.attached++;
    admit_done(h, in);
}

static void send_saved(struct host *h, const struct order_answer *s, struct admission *in)
{
    const struct answer_record answer = {
        .gateway = in->r->gateway,
        .session = in->r->session,
        .seq = s->seq,
        .fence = s->fence,
        .version = h->topology.view.ring.version,
        .code = s->code,
        .copy = in->r->copy,
        .body = s->body,
    };

    admit_send_answer(h, in->peer, &answer);
    h->requests.answered_again++;
    admit_done(h, in);
}

/* A copy of a request that ran, or of one behind which another ran (hole 37). True: it is a read
 * that may run again: nothing of its session did since, and what it answered was too large to keep;
 * or its actor is asked what is saved of it, and doesn't run it (decision 118). */
static bool on_duplicate(struct host *h, struct order *order, struct admission *in)
{
    const struct request_record *r = in->r;
    struct running *running =
        order->running ? &order_actor(&h->orders, order)->work->running : NULL;
    struct order_answer saved;

    // Who asks again may do so once more as long after this as after the first time.
    if (!mutant(M_COPYUNSEEN)) {
        order_touch(&h->orders, order, h->now_us);
    }
    order->epoch = r->session_epoch > order->epoch ? r->session_epoch : order->epoch;
    order_set_base(&h->orders, order, r->base);
    if (running != NULL && running->seq == r->seq) {
        attach(h, running, in);
        return false;
    }
    if (order_saved(&h->orders, order, r->seq, &saved)) {
        send_saved(h, &saved, in);
        return false;
    }
    if (r->seq < order->base) { // its gateway is finished with it
        requests_drop(&h->requests, DROPPED_DUPLICATE);
        admit_done(h, in);
        return false;
    }
    if ((r->flags & REQUEST_IDEMPOTENT) != 0 && r->seq == order->last) {
        return true;
    }
    if (mutant(M_UNKEPT) || (copy_may_be_saved(h, r) && !mutant(M_LATELOST))) {
        return true;
    }
    requests_lose(&h->requests, true);
    admit_refuse(h, in, ANSWER_LOST, 0);
    return false;
}

bool copy_may_be_saved(const struct host *h, const struct request_record *r)
{
    return (r->flags & (REQUEST_IDEMPOTENT | REQUEST_SESSION)) == 0 &&
           host_kind_of(h, r->kind)->how->durable;
}

enum asked copy_asked(const struct order *order, const struct request_record *r)
{
    if ((r->flags & REQUEST_IDEMPOTENT) != 0) {
        return ASKED_FIRST;
    }
    if (order != NULL && r->seq <= order->last) {
        return ASKED_LATE;
    }
    return r->again ? ASKED_AGAIN : ASKED_FIRST;
}

bool copy_is_wanted(struct host *h, struct order *order, struct admission *in, uint64_t position)
{
    const struct ring_vnode *vnode = host_vnode(h, position);

    switch (order_judge(order, in->r)) {
    case ORDER_DUPLICATE:
        if (!on_duplicate(h, order, in)) {
            return false;
        }
        if (copy_asked(order, in->r) == ASKED_LATE && !mutant(M_UNKEPT)) {
            in->late = true;
            if (in->w != NULL) {
                in->w->late = true;
            }
            return true; // whatever ran where its arc was before: it runs nowhere
        }
        break;
    case ORDER_FENCED: // hole 44: the client is at another gateway now
        requests_drop(&h->requests, DROPPED_FENCED);
        admit_done(h, in);
        return false;
    case ORDER_ABANDONED: // hole 41
        requests_drop(&h->requests, DROPPED_ABANDONED);
        admit_done(h, in);
        return false;
    case ORDER_RUN:
    case ORDER_EARLY:
        break;
    }
    // Sent before the arc changed hands without drain: a copy may have run there, with nobody
    // left to tell (hole 39). That it is the first copy says nothing (hole 40).
    const bool warm = mutant(M_COLD) || (mutant(M_ATT1) && in->r->copy == 1);
    if (vnode != NULL && in->r->first < vnode->cold && !warm) {
        h->requests.refused_cold++;
        admit_refuse(h, in, ANSWER_COLD, vnode->cold);
        return false;
    }
    return true;
}

static struct order_answer answer_to_save(const struct answer_record *answer, bool read)
{
    return (struct order_answer){
        .seq = answer->seq,
        .fence = answer->fence,
        .code = answer->code,
        .read = read,
        .body = answer->body,
    };
}

void copy_save_answer(struct host *h, struct order *order, const struct answer_record *answer,
                      bool read)
{
    const struct order_answer saved = answer_to_save(answer, read);

    // What nobody knows is no answer, and no image may carry it. Who asks again hears LOST anyway.
    if (answer->code != ANSWER_LOST) {
        order_save(&h->orders, order, &saved, h->config.answers_size_max);
    }
}

void copy_ran(struct host *h, struct order *order, const struct request_record *r,
              const struct answer_record *answer)
{
    const struct order_answer saved = answer_to_save(answer, (r->flags & REQUEST_IDEMPOTENT) != 0);

    order_ran(&h->orders, order, r, &saved, h->now_us, h->config.answers_size_max);
}
