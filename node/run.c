/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors: activate, run one request at a time, freeze and thaw. PROTOCOL §5.2.
 */
#include "node/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"
#include "wire/frame.h"

#include <string.h>

/* ---- order ---- */

/* The record of the request's session, made if `found` is NULL and there is none. */
static struct order *order_of(struct host *h, struct actor *a, struct order *found,
                              const struct request_record *r)
{
    struct order *order = found != NULL ? found : order_find(&h->orders, a, r->session);

    if (order == NULL) {
        order = order_new(&h->orders, a, &a->orders, r->session);
    }
    order_touch(&h->orders, order, h->now_us);
    order->epoch = r->session_epoch > order->epoch ? r->session_epoch : order->epoch;
    order_set_base(&h->orders, order, r->base);
    return order;
}

/* Early requests whose predecessor ran or was given up join the queue; they are judged again
 * when their turn comes. */
static void wake_early(struct actor *a, struct order *order)
{
    struct waiting *w = NULL;

    while ((w = order_take_early(order)) != NULL) {
        queue_push(&a->queue, w);
    }
}

static void keep_early(struct host *h, struct actor *a, struct arrival *in)
{
    struct order *order = order_of(h, a, NULL, in->r);

    ASSERT(in->w != NULL);
    struct arrival merged = {.w = order_keep_early(order, in->w, &a->early_count)};

    if (merged.w != NULL) {
        h->dropped_duplicate++;
        admit_done(h, &merged);
    }
}

/* I7: what ran never runs again, except a read of which nothing is kept. */
static bool may_run(const struct order *order, const struct request_record *r)
{
    return r->seq > order->last || mutant(M_NODEDUP) || mutant(M_NOORDER) ||
           (r->seq == order->last && (r->flags & REQUEST_IDEMPOTENT) != 0);
}

/* ---- running ---- */

/* I2: a token never goes down (hole 32). */
static void check_token(struct host *h, const struct actor *a)
{
    struct place *place = &h->place[ring_point_cell(a->position)];

    ASSERT(a->token >= place->token || mutant(M_REGRESS) || mutant(M_ERAMSG));
    place->token = a->token;
}

static void activate(struct host *h, struct actor *a)
{
    const struct ring_vnode *vnode = host_vnode(h, a->position);
    struct host_effect *e = host_emit(h, HOST_ACTIVATE);

    ASSERT(a->state == ACTOR_ABSENT && !a->live);
    ASSERT(tenure_may_start(h)); // I1
    a->state = ACTOR_ACTIVATING;
    a->since_us = h->now_us;
    a->token = vnode == NULL ? 0 : vnode->generation;
    check_token(h, a);
    e->actor = a;
    e->token = a->token;
    if (a->image != NULL && a->image->has_state) {
        e->has_state = true;
        host_emit_bytes(h, e, a->image->state);
    }
}

static void run(struct host *h, struct actor *a, struct order *found, const struct arrival *in)
{
    const struct request_record *r = in->r;
    struct order *order = order_of(h, a, found, r);
    struct host_effect *e = host_emit(h, HOST_RUN);

    ASSERT(a->state == ACTOR_IDLE && a->live);
    ASSERT(tenure_may_start(h)); // hole 30
    ASSERT(may_run(order, r) && !order->running);
    order->last = r->seq > order->last ? r->seq : order->last;
    a->state = ACTOR_RUNNING;
    a->since_us = h->now_us;
    a->running = (struct running){
        .ticket = ++h->run_ticket,
        .gateway = r->gateway,
        .session = r->session,
        .seq = r->seq,
        .peer = in->peer,
        .order = order,
        .epoch = r->session_epoch,
        .copy = r->copy,
        .read = (r->flags & REQUEST_IDEMPOTENT) != 0,
    };
    order->running = true;
    h->started++;
    h->running++;
    e->actor = a;
    e->ticket = a->running.ticket;
    e->flags = r->flags;
    e->chain_count = r->chain_count;
    memcpy(e->chain, r->chain, sizeof e->chain);
    host_emit_bytes(h, e, r->body);
}

static void freeze_absent(struct actor *a)
{
    struct image *old = a->image;
    const bool has_state = old != NULL && old->has_state;

    // Never touched here: its state goes on as it came, its orders as they are now.
    a->image = image_make(actor_name(a), &a->orders, has_state ? &old->state : NULL);
    image_free(old);
    a->state = ACTOR_FROZEN;
}

static void freeze(struct host *h, struct actor *a)
{
    if (a->state == ACTOR_ABSENT) {
        freeze_absent(a);
        hold_on_frozen(h, a);
        return;
    }
    a->state = ACTOR_EXPORTING;
    a->since_us = h->now_us;
    host_emit(h, HOST_EXPORT)->actor = a;
}

void actor_next(struct host *h, struct actor *a)
{
    struct waiting *w = NULL;

    ASSERT(a->state == ACTOR_IDLE);
    if (!tenure_may_start(h)) {
        tenure_put_off_all(h, &a->queue);
    }
    while ((w = queue_pop(&a->queue)) != NULL) {
        struct arrival in = arrival_of(w);
        struct order *order = order_find(&h->orders, a, w->record.session);

        if (h->now_us >= in.deadline_us) {
            h->dropped_expired++;
            admit_refuse(h, &in, ANSWER_EXPIRED, 0);
        } else if (copy_is_wanted(h, order, &in, a->position)) {
            if (order_judge(order, in.r) == ORDER_EARLY) {
                keep_early(h, a, &in);
                continue;
            }
            if (!pace_may_start(h, in.r)) {
                pace_put_off(h, &in);
                continue;
            }
            run(h, a, order, &in);
            waiting_free(&h->room, w);
            return;
        }
    }
    if (a->hold != NULL) {
        freeze(h, a);
    }
}

/* A chain's request reached an actor that is frozen already. */
static void thaw(struct host *h, struct actor *a)
{
    ASSERT(a->state == ACTOR_FROZEN && a->hold != NULL);
    a->hold->busy++;
    if (!a->live) {
        a->state = ACTOR_ABSENT;
        return;
    }
    image_free(a->image);
    a->image = NULL;
    a->state = ACTOR_IDLE;
    host_emit(h, HOST_UNFREEZE)->actor = a;
}

/* See that the queue moves on. */
static void wake(struct host *h, struct actor *a)
{
    if (a->state == ACTOR_FROZEN && a->queue.count > 0) {
        thaw(h, a);
    }
    if (a->state == ACTOR_ABSENT && a->queue.count > 0) {
        activate(h, a);
    } else if (a->state == ACTOR_ABSENT && a->hold != NULL) {
        freeze(h, a); // its arc is held, and nothing is to run after all
    } else if (a->state == ACTOR_IDLE) {
        actor_next(h, a);
    }
}

static struct actor *actor_in_place(struct host *h, struct image_name name)
{
    struct actor *a = actor_new(&h->actors, name);
    struct hold *hold = h->place[ring_point_cell(name.position)].hold;

    if (hold != NULL) { // only an exempt request comes here then
        a->hold = hold;
        hold->busy++;
    }
    return a;
}

void actor_offer(struct host *h, struct actor *a, struct image_name name, struct arrival *in)
{
    struct order *order = a == NULL ? NULL : order_find(&h->orders, a, in->r->session);

    if (!copy_is_wanted(h, order, in, name.position)) {
        return;
    }
    if (order != NULL && in->r->base > order->base) {
        order_set_base(&h->orders, order, in->r->base);
        if (order->early != NULL) {
            wake_early(a, order);
        }
    }
    if (a == NULL) {
        a = actor_in_place(h, name);
    }
    const bool early = order_judge(order, in->r) == ORDER_EARLY;
    if (a->state == ACTOR_IDLE && a->queue.count == 0 && !early) {
        run(h, a, order, in);
        if (in->w != NULL) {
            waiting_free(&h->room, in->w);
        }
        return;
    }
    if (in->w == NULL && a->queue.count + a->early_count >= h->config.queue_count_max) {
        h->dropped_overflow++;
        admit_refuse(h, in, ANSWER_OVERLOAD, BUSY_RETRY_MS);
    } else if (admit_park(h, &a->queue, in) && early) {
        queue_remove(in->w);
        keep_early(h, a, in);
    }
    wake(h, a);
}

void run_on_ran(struct host *h, const struct host_event *event)
{
    struct actor *a = event->actor;

    if (a->state != ACTOR_RUNNING || a->running.ticket != event->ticket) {
        return; // of an instance that is no more
    }
    const bool fits = event->bytes.size <= RECORD_BODY_MAX;
    const struct answer_record answer = {
        .gateway = a->running.gateway,
        .session = a->running.session,
        .seq = a->running.seq,
        .token = a->token,
        .version = h->view.ring.version,
        .code = (uint8_t)(fits ? event->code : ANSWER_APP_ERROR),
        .copy = a->running.copy,
        .body = fits ? event->bytes : bytes_of("answer is too long", 18),
    };
    struct order *order = a->running.order;

    a->state = ACTOR_IDLE;
    order->running = false;
    h->running--;
    h->executed++;
    h->finished++;
    copy_save_answer(h, order, &answer, a->running.read);
    admit_send_answer(h, a->running.peer, &answer);
    if (a->early_count > 0) {
        wake_early(a, order);
    }
    actor_next(h, a);
}

/* It could not start. What may run now is answered, and never runs; what still waits for its
 * predecessor goes on waiting: that one is on its way here, and would be taken for a duplicate. */
static void fail_all(struct host *h, struct actor *a)
{
    struct waiting *w = NULL;

    while ((w = queue_pop(&a->queue)) != NULL) {
        struct arrival in = arrival_of(w);
        struct order *order = order_of(h, a, NULL, in.r);
        const struct answer_record answer = {
            .gateway = in.r->gateway,
            .session = in.r->session,
            .seq = in.r->seq,
            .token = a->token,
            .version = h->view.ring.version,
            .code = ANSWER_APP_ERROR,
            .copy = in.r->copy,
            .body = bytes_of("the actor could not start", 25),
        };

        if (order_judge(order, in.r) == ORDER_EARLY) {
            keep_early(h, a, &in);
            continue;
        }
        if (in.r->seq > order->last) {
            order->last = in.r->seq;
            copy_save_answer(h, order, &answer, false);
            admit_send_answer(h, in.peer, &answer);
            wake_early(a, order);
        }
        admit_done(h, &in);
    }
}

void run_on_activated(struct host *h, struct actor *a, enum err error)
{
    if (a->state != ACTOR_ACTIVATING) {
        return;
    }
    if (error != ERR_OK) {
        log_warn("node", "actor_not_started", "kind=%u error=%s", a->kind, err_name(error));
        a->state = ACTOR_ABSENT; // a state handed over is kept for the next try
        fail_all(h, a);
        if (a->hold != NULL) {
            freeze(h, a);
        }
        return;
    }
    a->live = true;
    a->state = ACTOR_IDLE;
    image_free(a->image);
    a->image = NULL;
    actor_next(h, a);
}

/* ---- hold ---- */

void actor_hold(struct host *h, struct actor *a, struct hold *hold)
{
    a->hold = hold;
    hold->busy++;
    switch (a->state) {
    case ACTOR_ABSENT:
    case ACTOR_IDLE:
        freeze(h, a);
        return;
    case ACTOR_ACTIVATING:
    case ACTOR_RUNNING:
    case ACTOR_EXPORTING:
        return;
    case ACTOR_FROZEN: // by the transaction that this one supersedes
        if (a->image == NULL) {
            freeze(h, a); // its export had failed
        } else {
            hold_on_frozen(h, a);
        }
        return;
    }
}

void run_on_exported(struct host *h, const struct host_event *event)
{
    struct actor *a = event->actor;

    if (a->state != ACTOR_EXPORTING) {
        return;
    }
    if (a->hold == NULL || a->queue.count > 0) {
        // The hold ended meanwhile, or a chain's request came: its state may change again.
        a->state = ACTOR_IDLE;
        host_emit(h, HOST_UNFREEZE)->actor = a;
        actor_next(h, a);
        return;
    }
    if (event->error != ERR_OK || event->bytes.size > h->config.staged_size_max) {
        log_warn("node", "actor_not_exported", "kind=%u error=%s", a->kind, err_name(event->error));
        a->hold->part->refused = true;
    } else {
        a->image = image_make(actor_name(a), &a->orders, event->has_state ? &event->bytes : NULL);
    }
    a->state = ACTOR_FROZEN;
    hold_on_frozen(h, a);
}

void actor_release(struct host *h, struct actor *a)
{
    a->hold = NULL;
    if (a->state != ACTOR_FROZEN) {
        return; // it never stopped, or stops being exported: run_on_exported() sees no hold
    }
    if (!a->live) {
        a->state = ACTOR_ABSENT; // its image is what it will start from
        return;
    }
    image_free(a->image);
    a->image = NULL;
    a->state = ACTOR_IDLE;
    host_emit(h, HOST_UNFREEZE)->actor = a;
}

/* ---- coming and going ---- */

void actor_empty(struct actor *a, struct queue *to)
{
    queue_append(to, &a->queue);
    for (struct list_link *l = list_front(&a->orders); l != NULL && a->early_count > 0;
         l = list_next(&a->orders, l)) {
        struct order *order = CONTAINER_OF(l, struct order, of_actor);
        struct waiting *w = NULL;

        while (order->early != NULL && (w = queue_pop(order->early)) != NULL) {
            queue_push(to, w);
        }
    }
    ASSERT(a->early_count == 0);
}

void actor_remove(struct host *h, struct actor *a, enum discard_why why)
{
    struct list_link *link = NULL;

    while ((link = list_front(&a->orders)) != NULL) {
        order_free(&h->orders, CONTAINER_OF(link, struct order, of_actor));
    }
    gate_forget(&h->gate, a);
    if (a->live || a->state == ACTOR_ACTIVATING) {
        struct host_effect *e = host_emit(h, HOST_DISCARD);

        e->actor = a;
        e->discard_why = why;
    }
    actor_discard(&h->actors, a);
}

static void order_from_image(struct host *h, struct actor *a, const struct image_order *from,
                             struct image_walk *walk)
{
    struct order *order = order_new(&h->orders, a, &a->orders, from->session);
    struct order_answer answer;

    order->epoch = from->epoch;
    order->last = from->last;
    order->base = from->base;
    order_touch(&h->orders, order, h->now_us);
    while (image_next_answer(walk, &answer)) {
        order_save(&h->orders, order, &answer, h->config.answers_size_max);
    }
}

void actor_from_image(struct host *h, struct image *image)
{
    const struct image_name name = {
        .position = image->position, .kind = image->kind, .id = image->id};
    struct actor *a = actor_new(&h->actors, name);

    a->image = image_share(image);
    struct image_walk walk = image_walk(image);
    struct image_order from;
    while (image_next_order(&walk, &from)) {
        if (order_find(&h->orders, a, from.session) == NULL) {
            order_from_image(h, a, &from, &walk);
        }
    }
}
