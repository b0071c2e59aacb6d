/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors: activate, run one request or turn at a time. Specification §5.2, §5.3.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/mutant.h"
#include "node/host/traced.h"
#include "wire/frame.h"
#include "wire/trace.h"

#include <string.h>

enum { ENDED_RETRY_MS = 1 };

void work_init(struct work *w)
{
    delays_init(&w->delays);
    list_init(&w->to_export);
}

size_t work_drop_running(struct work *w)
{
    const size_t running = w->running;

    w->running = 0;
    return running;
}

/* ---- order ---- */

struct order *run_order(struct host *h, struct actor *a, struct order *order,
                        const struct request_record *r)
{
    if (order == NULL) {
        order = order_new(&h->orders, a, r->session);
    }
    order_touch(&h->orders, order, h->now_us);
    order->epoch = r->session_epoch > order->epoch ? r->session_epoch : order->epoch;
    order_set_base(&h->orders, order, r->base);
    return order;
}

/* Early requests whose predecessor ran or was given up join the queue; they are judged again
 * when their turn comes. */
static void wake_early(struct host *h, struct actor *a, struct order *order)
{
    struct waiting *w = NULL;

    while ((w = order_take_early(&h->orders, order)) != NULL) {
        queue_push(&actor_work(&h->actors, a)->queue, w);
    }
}

static void keep_early(struct host *h, struct actor *a, struct admission *in)
{
    struct order *order = run_order(h, a, order_find(&h->orders, a, in->r->session), in->r);

    ASSERT(in->w != NULL);
    size_t *total = &actor_work(&h->actors, a)->early_count;
    struct waiting *old = order_keep_early(&h->orders, order, in->w, total);

    if (old != NULL) {
        struct admission merged = admission_of(old);

        requests_drop(&h->requests, DROPPED_DUPLICATE);
        if (old->record.gateway == in->r->gateway && old->record.copy != in->r->copy) {
            // Who asks may have to know of each copy that it did not run.
            admit_refuse(h, &merged, ANSWER_BUSY, BUSY_RETRY_MS);
        } else {
            admit_done(h, &merged);
        }
    }
}

bool run_may(const struct order *order, const struct request_record *r)
{
    return r->seq > order->last || mutant(M_NODEDUP) || mutant(M_NOORDER) ||
           (r->seq == order->last && (r->flags & REQUEST_IDEMPOTENT) != 0);
}

/* ---- running ---- */

struct actor_work *actor_begin(struct host *h, struct actor *a, enum actor_state state)
{
    struct actor_work *work = actor_work(&h->actors, a);

    actor_enter(a, state);
    work->since_us = h->now_us;
    work->running.ticket = ++h->work.run_ticket;
    h->work.tasks++;
    h->work.activating += state == ACTOR_ACTIVATING ? 1 : 0;
    return work;
}

void actor_end(struct host *h, struct actor *a, enum actor_state state)
{
    ASSERT(actor_has_task(a) && h->work.tasks > 0);
    if (a->state == ACTOR_EXPORTING) {
        export_ends(h, a);
    }
    h->work.activating -= a->state == ACTOR_ACTIVATING ? 1 : 0;
    actor_enter(a, state);
    h->work.tasks--;
}

void actor_activate(struct host *h, struct actor *a)
{
    const struct ring_vnode *vnode = host_vnode(h, actor_position(a));
    struct image *image = actor_image(a);
    struct host_effect *e = host_submit(h, a, VERB_ACTIVATE);

    ASSERT(a->state == ACTOR_ABSENT && !a->live);
    ASSERT(lease_policy_may_start(h)); // I1
    ASSERT(!quarantine_holds(h, a));
    wake_unlist(h, a);
    backpressure_leave_line(h, a);
    a->fence = vnode == NULL ? 0 : vnode->generation;
    cells_note_fence(h, a);
    e->submission.ticket = actor_begin(h, a, ACTOR_ACTIVATING)->running.ticket;
    e->submission.fence = a->fence;
    if (image != NULL) {
        e->submission.has_state = image->has_state;
        e->submission.state_version = image->state_version;
        e->submission.head_size = (uint32_t)image->bond.size;
        host_emit_bytes(h, e, image_carried(image));
    }
    a->came = image != NULL;
    actor_note_began(&h->actors, a, h->now_us);
    h->work.live++;
    cells_count_live(h, a, true);
    retire_for_room(h);
}

struct actor_work *run_begin(struct host *h, struct actor *a, struct order *found,
                             const struct admission *in)
{
    const struct request_record *r = in->r;
    struct order *order = in->mark.by != NULL ? NULL : run_order(h, a, found, r);
    const uint64_t before = order == NULL ? 0 : order->last;
    const enum asked asked = copy_asked(order, r);

    ASSERT(a->state == ACTOR_IDLE && a->live);
    ASSERT(lease_policy_may_start(h)); // hole 30
    if (order != NULL) {
        ASSERT(run_may(order, r) || copy_may_be_saved(h, r)); // that one is ASKED_LATE
        ASSERT(!order->running);
        order->last = r->seq > order->last ? r->seq : order->last;
        order->running = true;
    }
    struct actor_work *work = actor_begin(h, a, ACTOR_RUNNING);
    work->running = (struct running){
        .ticket = work->running.ticket,
        .gateway = order == NULL ? r->first : r->gateway, // the name, of a stream's
        .session = r->session,
        .seq = r->seq,
        .peer = in->peer,
        .before = before,
        .deadline_us = in->deadline_us,
        .came_us = admission_came_us(in, h->now_us),
        .waited_us = in->w == NULL ? 0 : h->now_us - in->w->boxed_us,
        .order = order,
        .mark = in->mark,
        .epoch = r->session_epoch,
        .copy = r->copy,
        .request = true,
        .read = (r->flags & REQUEST_IDEMPOTENT) != 0,
        .traced = trace_is(r),
        .asked = (uint8_t)asked,
    };
    retire_used(a, h->now_ms);
    a->turned = false;
    backpressure_started(&h->backpressure);
    cells_count_request(&h->cells, ring_point_cell(actor_position(a)));
    h->work.running++;
    return work;
}

void run_submit(struct host *h, struct actor *a, struct order *found, const struct admission *in)
{
    const struct request_record *r = in->r;
    struct host_effect *e = host_submit(h, a, VERB_RUN);
    const struct actor_work *work = run_begin(h, a, found, in);

    e->submission.ticket = work->running.ticket;
    e->submission.flags = r->flags;
    e->submission.name = running_name(&work->running);
    e->submission.asked = work->running.asked;
    e->submission.head_size = (uint32_t)(r->chain_count * sizeof *r->chain);
    if (e->submission.head_size > 0) {
        host_emit_bytes(h, e, bytes_of(r->chain, e->submission.head_size));
    }
    if (traced_is(r)) {
        traced_run(h, in, work->running.ticket, e);
    } else {
        host_emit_bytes(h, e, work->running.traced ? trace_stamp(h, in, TRACE_RAN) : r->body);
    }
}

/* ---- turns ---- */

/* What it does between messages may change its state as much as they do: not after that was asked
 * for. One that said "not now" was not asked yet, and may wait for just this turn. */
static bool may_turn(const struct actor *a)
{
    return a->poked && (actor_held(a) == NULL || a->work->unready);
}

static void turn(struct host *h, struct actor *a)
{
    struct submission *s = &host_submit(h, a, VERB_TURN)->submission;
    struct actor_work *work = actor_begin(h, a, ACTOR_RUNNING);

    ASSERT(a->live && lease_policy_may_start(h)); // hole 30
    work->running = (struct running){.ticket = work->running.ticket};
    a->poked = false;
    a->turned = true;
    backpressure_started(&h->backpressure);
    h->work.turns++;
    s->ticket = work->running.ticket;
}

void run_on_poke(struct host *h, struct actor *a)
{
    if (!a->live && a->state != ACTOR_ACTIVATING) {
        return; // its timers and answers ended with it
    }
    a->poked = true;
    if (mutant(M_POKEHELD) && a->state == ACTOR_FROZEN && lease_policy_may_start(h)) {
        turn(h, a);
    } else if (a->state == ACTOR_IDLE || a->state == ACTOR_BUSY) {
        actor_proceed(h, a);
    }
}

/* ---- what is next ---- */

/* It waited for its turn. False: it is not to run, and was ended. */
static bool may_run(struct host *h, const struct actor *a, struct order *order,
                    struct admission *in)
{
    return in->mark.by != NULL
               ? streams_may_run(h, in, actor_position(a))
               : !admit_drops_orphan(h, in) && copy_is_wanted(h, order, in, actor_position(a));
}

/* Run the first request that may run. False = none. */
static bool run_next(struct host *h, struct actor *a)
{
    struct waiting *w = NULL;

    while (a->work != NULL && (w = queue_pop(&a->work->queue)) != NULL) {
        struct admission in = admission_of(w);
        const bool ordered = in.mark.by == NULL;
        struct order *order = ordered ? order_find(&h->orders, a, w->record.session) : NULL;

        if (h->now_us >= in.deadline_us) {
            requests_drop(&h->requests, DROPPED_EXPIRED);
            admit_refuse(h, &in, ANSWER_EXPIRED, 0);
        } else if (may_run(h, a, order, &in)) {
            if (ordered && order_judge(order, in.r) == ORDER_EARLY) {
                keep_early(h, a, &in);
                continue;
            }
            if (!backpressure_may_start(h, &in)) {
                backpressure_put_off(h, &in);
                continue;
            }
            run_submit(h, a, order, &in);
            waiting_free(&h->requests.room, w);
            return true;
        }
    }
    return false;
}

/* A turn and a request, by turns. False = there is neither. */
static bool turn_or_run(struct host *h, struct actor *a)
{
    if (may_turn(a) && (!a->turned || actor_waiting(a) == 0)) {
        turn(h, a);
        return true;
    }
    if (run_next(h, a)) {
        return true;
    }
    if (may_turn(a)) { // what waited was not to be run after all
        turn(h, a);
        return true;
    }
    return false;
}

static void next_of_idle(struct host *h, struct actor *a)
{
    const bool waits = a->poked || a->wish == WISH_ASKED;

    if (!lease_policy_may_start(h)) {
        if (actor_waiting(a) > 0) {
            lease_policy_put_off_all(h, &a->work->queue);
        }
        if (waits && actor_held(a) == NULL) {
            lease_policy_put_off_actor(h, a);
        }
    } else if (a->wish == WISH_ASKED && (a->work == NULL || !a->work->saving_later)) {
        retire(h, a, RETIRE_ASKED);
        return;
    } else if (turn_or_run(h, a)) {
        return;
    }
    if (actor_held(a) != NULL) {
        actor_freeze(h, a);
    } else {
        retire_wished(h, a);
        actor_rest(h, a);
    }
}

void actor_proceed(struct host *h, struct actor *a)
{
    if (a->state == ACTOR_FROZEN && actor_waiting(a) > 0) {
        actor_thaw(h, a);
    }
    if (a->state == ACTOR_BUSY && (actor_waiting(a) > 0 || a->poked || a->wish == WISH_ASKED)) {
        delay_stop(&a->work->delay);
        actor_enter(a, ACTOR_IDLE);
    }
    switch ((enum actor_state)a->state) {
    case ACTOR_ABSENT:
        if (actor_waiting(a) > 0 && quarantine_holds(h, a)) {
            quarantine_refuse_all(h, a);
        }
        if (actor_waiting(a) > 0 && !lease_policy_may_start(h)) {
            lease_policy_put_off_all(h, &a->work->queue);
        }
        if (actor_waiting(a) > 0) {
            if (!remember_holds(h, a)) {
                actor_activate(h, a);
            }
        } else if (actor_held(a) != NULL) {
            actor_freeze(h, a); // its arc is held, and nothing is to run after all
        } else {
            wake_if_wanted(h, a);
            actor_rest(h, a);
        }
        return;
    case ACTOR_FAILING:
        if (actor_held(a) != NULL) {
            actor_freeze(h, a);
        }
        return;
    case ACTOR_IDLE:
        next_of_idle(h, a);
        return;
    case ACTOR_ACTIVATING:
    case ACTOR_RUNNING:
    case ACTOR_EXPORTING:
    case ACTOR_BUSY:
    case ACTOR_FROZEN:
    case ACTOR_RETIRING:
        return;
    }
}

static size_t mailbox_of(const struct host *h, uint16_t kind)
{
    const struct host_kind *how = host_kind_of(h, kind)->how;

    return how->mailbox != 0 ? how->mailbox : h->config.queue_count_max;
}

static struct actor *actor_in_place(struct host *h, struct image_name name)
{
    struct actor *a = actor_new(&h->actors, name);
    struct hold *hold = h->cells.state[ring_point_cell(name.position)].hold;

    if (hold != NULL) { // only an exempt request comes here then
        actor_work(&h->actors, a)->hold = hold;
        hold->busy++;
    }
    return a;
}

/* What is early waits for what isn't: counted against that, it would keep it out, and all others,
 * until its time is over. */
static bool is_full(const struct host *h, const struct actor *a, bool early)
{
    return actor_waiting(a) + (early ? actor_early(a) : 0) >= mailbox_of(h, a->kind);
}

/* A mailbox that is full says so; the log hears of it at doubling counts. */
static void refuse_full(struct host *h, struct actor *a, struct admission *in)
{
    const uint32_t refused = ++actor_work(&h->actors, a)->refused;

    requests_drop(&h->requests, DROPPED_MAILBOX);
    if ((refused & (refused - 1)) == 0) {
        struct host_effect *e = host_emit(h, HOST_MAILBOX_FULL);

        e->actor = a;
        e->count = refused;
    }
    admit_refuse(h, in, ANSWER_OVERLOAD, BUSY_RETRY_MS);
}

/* Nothing of it is alive, or about to be. */
static bool is_asleep(const struct actor *a)
{
    const struct image *image = a == NULL ? NULL : actor_image(a);

    return a == NULL || (a->state == ACTOR_ABSENT && actor_waiting(a) == 0 && !a->wanted &&
                         (image == NULL || image->bond.size == 0));
}

/* A request for it begins an activation. */
static bool is_cold(const struct actor *a)
{
    return a == NULL || (a->state == ACTOR_ABSENT && actor_waiting(a) == 0);
}

/* It is refused, and what its gateway gave up before it stays given up: that may still be on its
 * way, and would wake the actor for a client of whom nobody will say again that it is gone. */
static void refuse_asleep(struct host *h, struct actor *a, struct image_name name,
                          struct admission *in)
{
    const struct request_record *r = in->r;
    struct actor *at = a;

    if (r->base > 1 && (r->flags & REQUEST_CALL) == 0) { // pushes of actors give nothing up
        at = a == NULL ? actor_in_place(h, name) : a;
        (void)run_order(h, at, order_find(&h->orders, at, r->session), r);
    }
    requests_drop(&h->requests, DROPPED_ASLEEP);
    admit_refuse(h, in, ANSWER_NO_KIND, 0);
    if (at != a) {
        actor_proceed(h, at); // its arc may be held
    }
}

void actor_offer(struct host *h, struct actor *a, struct image_name name, struct admission *in)
{
    const bool ordered = in->mark.by == NULL;
    struct order *order = a == NULL || !ordered ? NULL : order_find(&h->orders, a, in->r->session);

    if (ordered && !copy_is_wanted(h, order, in, name.position)) {
        return;
    }
    if (order != NULL && in->r->base > order->base) {
        order_set_base(&h->orders, order, in->r->base);
        wake_early(h, a, order);
    }
    const bool early = ordered && order_judge(order, in->r) == ORDER_EARLY;
    if ((in->r->flags & REQUEST_AWAKE) != 0 && is_asleep(a) && !early) {
        refuse_asleep(h, a, name, in);
        return;
    }
    const bool may_activate = backpressure_may_activate(h, in->r);
    if (is_cold(a) && !early && !may_activate && in->w == NULL && backpressure_line_is_full(h)) {
        requests_drop(&h->requests, DROPPED_COLD);
        admit_refuse(h, in, ANSWER_OVERLOAD, BUSY_RETRY_MS);
        return;
    }
    if (a == NULL) {
        a = actor_in_place(h, name);
    }
    const bool waits = actor_waiting(a) > 0 || a->poked || a->wish == WISH_ASKED;
    if (in->w != NULL) {
        in->w->boxed_us = h->now_us; // what it waited for before was no mailbox
    }
    if (a->state == ACTOR_IDLE && !waits && !early) {
        run_submit(h, a, order, in);
        if (in->w != NULL) {
            waiting_free(&h->requests.room, in->w);
        }
        return;
    }
    if (in->w == NULL && is_full(h, a, early)) {
        refuse_full(h, a, in);
    } else if (admit_park(h, &actor_work(&h->actors, a)->queue, in)) {
        in->w->boxed_us = h->now_us;
        times_depth(&h->times, actor_waiting(a));
        if (early) {
            queue_remove(in->w);
            keep_early(h, a, in);
        }
    }
    if (a->state == ACTOR_ABSENT && actor_waiting(a) > 0 && !may_activate) {
        backpressure_line_up(h, a);
    } else {
        actor_proceed(h, a);
    }
}

/* ---- ends ---- */

struct answer_record run_answer(const struct host *h, const struct actor *a, enum answer_code code,
                                struct bytes body)
{
    const bool fits = body.size <= RECORD_BODY_MAX;

    return (struct answer_record){
        .fence = a->fence,
        .version = h->topology.view.ring.version,
        .code = (uint8_t)(fits ? code : ANSWER_APP_ERROR),
        .body = fits ? body : bytes_of("the answer is too long", 22),
    };
}

static void ran(struct host *h)
{
    h->work.running--;
    h->work.executed++;
    requests_finish(&h->requests);
}

static void answer_ran(struct host *h, const struct actor *a, const struct completion *c)
{
    const struct running *running = &a->work->running;
    struct answer_record answer = run_answer(h, a, c->code, c->bytes);

    ran(h);
    times_ran(h, a->kind, running, (enum answer_code)answer.code);
    traced_end(h, running->ticket, (enum answer_code)answer.code);
    answer.gateway = running->gateway;
    answer.session = running->session;
    answer.seq = running->seq;
    answer.copy = running->copy;
    if (running->traced && c->bytes.size <= RECORD_BODY_MAX) {
        answer.body = trace_ran(h, c->bytes, a->work->since_us);
    }
    if (running->mark.by != NULL) {
        streams_ran(h, &running->mark, &answer);
        return;
    }
    running->order->running = false;
    if (running->asked == ASKED_LATE) {
        requests_lose(&h->requests, answer.code == ANSWER_LOST);
    } else {
        copy_save_answer(h, running->order, &answer, running->read);
    }
    admit_send_answer(h, running->peer, &answer);
}

/* The actor runs nothing any more; what came early for that order record may be next. */
static void end_run(struct host *h, struct actor *a, struct order *order)
{
    a->work->running.order = NULL;
    a->work->running.request = false;
    actor_end(h, a, ACTOR_IDLE);
    if (order != NULL && actor_early(a) > 0) {
        wake_early(h, a, order);
    }
    if (a->broken) {
        fail_broken(h, a);
    } else {
        actor_proceed(h, a);
    }
}

/* It did not run after all: its sender hears so, and may send it again. One that is late ran
 * before, or never will: whoever doesn't know of that would take a refusal for the whole truth. */
static void undo(struct host *h, struct actor *a, enum answer_code code, uint64_t aux)
{
    struct running *running = &a->work->running;
    struct order *order = running->order;
    const bool lost = running->asked == ASKED_LATE && !mutant(M_LATEREFUSED);
    const struct answer_record answer = {
        .gateway = running->gateway,
        .session = running->session,
        .seq = running->seq,
        .version = h->topology.view.ring.version,
        .aux = lost ? 0 : aux,
        .code = (uint8_t)(lost ? ANSWER_LOST : code),
        .copy = running->copy,
    };

    h->work.running--;
    requests_finish(&h->requests);
    requests_lose(&h->requests, lost);
    times_answered(h, a->kind, running->came_us, (enum answer_code)answer.code);
    traced_end(h, running->ticket, (enum answer_code)answer.code);
    if (running->mark.by != NULL) {
        streams_refuse(h, &running->mark, actor_position(a), code, aux);
    } else {
        order->last = running->before;
        order->running = false;
        admit_send_answer(h, running->peer, &answer);
    }
    end_run(h, a, order);
}

void run_on_ran(struct host *h, struct actor *a, const struct completion *c)
{
    if (a->state != ACTOR_RUNNING || a->work->running.ticket != c->ticket) {
        return; // of an instance that is no more
    }
    struct order *order = a->work->running.order;
    if (c->error != ERR_OK) { // The actor had ended itself: the next instance will run it.
        undo(h, a, ANSWER_BUSY, ENDED_RETRY_MS);
        return;
    }
    if (a->work->running.request) {
        answer_ran(h, a, c);
        retire_used(a, h->now_ms);
    }
    end_run(h, a, order);
}

void run_expire(struct host *h, struct actor *a)
{
    requests_drop(&h->requests, DROPPED_EXPIRED);
    undo(h, a, ANSWER_EXPIRED, 0);
}

void run_refuse(struct host *h, struct actor *a)
{
    if (a->state == ACTOR_ACTIVATING) {
        run_on_activated(h, a, ERR_REFUSED);
    } else if (a->work->running.request) {
        undo(h, a, ANSWER_BUSY, ENDED_RETRY_MS); // Sent again it is told why.
    } else {
        actor_end(h, a, ACTOR_IDLE);
        if (a->broken) {
            fail_broken(h, a);
        } else {
            actor_proceed(h, a);
        }
    }
}

void run_abandon(struct host *h, const struct actor *a)
{
    if (a->state == ACTOR_RUNNING && a->work->running.request) { // a turn is no request
        h->work.running--;
        requests_finish(&h->requests);
        times_answered(h, a->kind, a->work->running.came_us, ANSWER_LOST);
        traced_end(h, a->work->running.ticket, ANSWER_LOST);
        if (a->work->running.mark.by != NULL) { // its stream wants to know what became of it (R6)
            streams_unknown(h, &a->work->running.mark, actor_position(a));
        }
    }
}

void run_on_activated(struct host *h, struct actor *a, enum err error)
{
    if (a->state != ACTOR_ACTIVATING) {
        return;
    }
    times_activated(h, a->kind, a->work->since_us, error == ERR_OK);
    if (error != ERR_OK) {
        fail_complain(h, a, "actor_not_started", error);
        h->work.live--;
        cells_count_live(h, a, false);
        actor_end(h, a, ACTOR_ABSENT); // a state handed over is kept for the next try
        fail_again(h, a);
        return;
    }
    a->live = true;
    a->wanted = false;
    a->wish = actor_waiting(a) > 0 ? WISH_NONE : a->wish; // or it would never run what woke it
    actor_end(h, a, ACTOR_IDLE);
    actor_drop_image(a);
    a->used_ms = (uint32_t)(h->now_us / 1000); // whom no request woke, too: it was in use before
    retire_watch(h, a);
    remember_started(h, a);
    if (a->broken) {
        fail_broken(h, a);
    } else {
        actor_proceed(h, a);
    }
}
