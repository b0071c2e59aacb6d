/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors held, frozen, thawed; come and gone. Specification §5.2.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/mutant.h"

/* Not alive here: state that came goes on as it came, its orders as they are now. */
static struct image *image_of_absent(const struct host *h, const struct actor *a)
{
    const struct image *old = actor_image(a);
    const bool has_state = old != NULL && old->has_state;

    return image_make_bound(
        actor_name(a),
        &(struct image_cargo){.orders = &h->orders,
                              .actor = a,
                              .bond = old != NULL ? old->bond : (struct bytes){0},
                              .state = has_state ? &old->state : NULL,
                              .state_version = has_state ? old->state_version : 0});
}

static struct image *image_of_export(struct host *h, const struct actor *a,
                                     const struct completion *c)
{
    struct image *image = image_make_bound(
        actor_name(a),
        &(struct image_cargo){.orders = &h->orders,
                              .actor = a,
                              .bond = c->head,
                              .state = c->has_state ? &c->bytes : NULL,
                              .state_version = host_kind_of(h, a->kind)->how->state_version,
                              .store = &h->txns.images});

    h->work.image_size = image->data.size;
    return image;
}

static void freeze_absent(struct host *h, struct actor *a)
{
    struct actor_work *work = actor_work(&h->actors, a);
    struct image *old = work->image;

    work->image = image_of_absent(h, a);
    image_free(old);
    delay_stop(&work->delay);
    actor_enter(a, ACTOR_FROZEN);
}

/* Its image is where it goes, and as it is: it stops, and that is all. */
static void freeze_copied(struct host *h, struct actor *a)
{
    if (a->state == ACTOR_ABSENT) {
        wake_unlist(h, a);
    }
    delay_stop(&a->work->delay);
    actor_enter(a, ACTOR_FROZEN);
    a->copied = true;
}

/* It sleeps on a state of another version than its kind writes here. Its new owner may read only
 * what is written here, so it is woken, and hands over anew; what can't be woken goes as it came.
 */
static bool is_outdated(const struct host *h, const struct actor *a)
{
    const struct image *image = a->state == ACTOR_ABSENT ? actor_image(a) : NULL;

    if (image == NULL || !image->has_state || (a->work != NULL && a->work->failures > 0)) {
        return false;
    }
    const struct kind_state *kind = host_kind_find(h, a->kind);
    return kind != NULL && image->state_version != kind->how->state_version;
}

/* ---- asking for their state ---- */

/* An actor that is asked is on its worker, and its answer in my loop, ahead of whoever sends a
 * message meanwhile. So they are asked a few at a time: who doesn't move hardly notices. Those that
 * are slow, as they save first, don't keep the others: by the next tick they don't count. */
static void ask_for_state(struct host *h, struct actor *a)
{
    host_submit(h, a, VERB_EXPORT)->submission.ticket = a->work->running.ticket;
    h->work.exports_asked++;
}

void export_ends(struct host *h, const struct actor *a)
{
    if (list_linked(&a->work->to_export)) {
        list_remove(&a->work->to_export);
    } else if (h->work.exports_asked > 0) {
        h->work.exports_asked--;
    }
}

void export_go_on(struct host *h, bool tick)
{
    struct list_link *l = NULL;

    h->work.exports_asked = tick ? 0 : h->work.exports_asked;
    while (h->work.exports_asked < h->config.exports_at_once &&
           (l = list_pop_front(&h->work.to_export)) != NULL) {
        ask_for_state(h, CONTAINER_OF(l, struct actor_work, to_export)->actor);
    }
}

void actor_freeze(struct host *h, struct actor *a)
{
    backpressure_leave_line(h, a);
    if (a->copied && !a->work->saving_later &&
        (a->state == ACTOR_ABSENT || a->state == ACTOR_IDLE)) {
        freeze_copied(h, a);
        hold_on_frozen(h, a);
        return;
    }
    if (is_outdated(h, a) && lease_policy_may_start(h) && !quarantine_holds(h, a)) {
        actor_activate(h, a); // it is asked for its state when it has started
        return;
    }
    if (a->state == ACTOR_ABSENT || a->state == ACTOR_FAILING) {
        wake_unlist(h, a);
        freeze_absent(h, a);
        hold_on_frozen(h, a);
        return;
    }
    const uint64_t since_us = a->work->since_us;

    delay_stop(&a->work->delay);
    if (a->work->saving_later) { // the hand-over is first; it tries again if it stays
        a->work->saving_later = false;
        retire_watch(h, a);
    }
    list_push_back(&h->work.to_export, &actor_begin(h, a, ACTOR_EXPORTING)->to_export);
    if (a->work->unready) { // the wait goes on
        a->work->since_us = since_us;
    }
}

/* Frozen with an instance: it goes on, unless it is broken. */
static void unfreeze(struct host *h, struct actor *a)
{
    const bool told = !a->copied;

    actor_drop_image(a);
    actor_enter(a, ACTOR_IDLE);
    if (told) {
        (void)host_submit(h, a, VERB_UNFREEZE);
    }
    if (a->broken) {
        fail_broken(h, a);
    }
}

void actor_thaw(struct host *h, struct actor *a)
{
    ASSERT(a->state == ACTOR_FROZEN && actor_held(a) != NULL);
    a->work->hold->busy++;
    if (a->live) {
        unfreeze(h, a);
    } else {
        actor_enter(a, ACTOR_ABSENT);
    }
}

void actor_hold(struct host *h, struct actor *a, struct hold *hold)
{
    struct actor_work *work = actor_work(&h->actors, a);

    work->hold = hold;
    work->unready = false;
    hold->busy++;
    switch ((enum actor_state)a->state) {
    case ACTOR_ABSENT:
    case ACTOR_FAILING:
    case ACTOR_IDLE:
    case ACTOR_BUSY:
        actor_freeze(h, a);
        return;
    case ACTOR_ACTIVATING:
    case ACTOR_RUNNING:
    case ACTOR_EXPORTING:
    case ACTOR_RETIRING: // then it moves as a record, without state
        return;
    case ACTOR_FROZEN: // by the transaction that this one supersedes
        if ((work->image != NULL && !a->copied) || (a->copied && mutant(M_FORMERIMAGE))) {
            hold_on_frozen(h, a);
            return;
        }
        if (!a->live) { // what went ahead is that one's
            actor_enter(a, ACTOR_ABSENT);
            actor_freeze(h, a);
            return;
        }
        // The same, or its export had failed. It goes on first: should it say "not now" to the next
        // one, it is not frozen.
        unfreeze(h, a);
        if (a->state == ACTOR_IDLE) {
            actor_freeze(h, a);
        }
        return;
    }
}

/* "Not now": a trade goes on, say. It is asked again until the transaction's deadline; meanwhile
 * it does what a chain's requests and its own turns want. */
static void not_now(struct host *h, struct actor *a)
{
    a->work->unready = true;
    actor_end(h, a, ACTOR_BUSY);
    delay_start(&h->work.delays, &a->work->delay, 0, h->now_us);
    actor_proceed(h, a);
}

/* What it told others here may be under way: whoever gets it waits for that. */
static void note_told(struct host *h, struct actor *a, uint64_t session)
{
    const uint64_t name = table_mix(h->membership.incarnation ^ table_mix(session)); // no request's
    struct order *order = session == 0 ? NULL : order_find(&h->orders, a, name);

    if (session == 0 || order != NULL) {
        return;
    }
    order = order_new(&h->orders, a, name);
    order->epoch = ORDER_TOLD;
    order->last = h->membership.incarnation;
    order->base = session;
    order_touch(&h->orders, order, h->now_us);
}

void run_on_exported(struct host *h, struct actor *a, const struct completion *c)
{
    if (a->state != ACTOR_EXPORTING) {
        return;
    }
    if (a->broken) {
        actor_end(h, a, ACTOR_IDLE);
        fail_broken(h, a);
        return;
    }
    if (c->error == ERR_BUSY && actor_held(a) != NULL) {
        not_now(h, a);
        return;
    }
    if (actor_held(a) == NULL || actor_waiting(a) > 0) {
        // The hold ended meanwhile, or a chain's request came: its state may change again.
        actor_end(h, a, ACTOR_IDLE);
        if (c->error != ERR_BUSY) {
            (void)host_submit(h, a, VERB_UNFREEZE);
        }
        actor_proceed(h, a);
        return;
    }
    if (c->error != ERR_OK || c->bytes.size > h->config.staged_size_max) {
        fail_complain(h, a, "actor_not_exported", c->error);
        a->work->hold->part->refused = true;
    } else {
        note_told(h, a, c->number);
        a->work->image = image_of_export(h, a, c);
    }
    actor_end(h, a, ACTOR_FROZEN);
    hold_on_frozen(h, a);
}

bool actor_copy(struct host *h, struct actor *a)
{
    const struct kind_state *kind = host_kind_find(h, a->kind);

    if (a->state == ACTOR_ABSENT && !is_outdated(h, a)) {
        struct image *image = image_of_absent(h, a);

        ahead_on_copied(h, a, image);
        image_free(image);
    } else if (a->state == ACTOR_IDLE && !a->broken && a->wish == WISH_NONE && !a->poked &&
               kind != NULL && kind->how->ahead) {
        const uint64_t ticket = actor_begin(h, a, ACTOR_EXPORTING)->running.ticket;

        host_submit(h, a, VERB_COPY)->submission.ticket = ticket;
        h->work.exports_asked++;
        return true;
    }
    return false;
}

void run_on_copied(struct host *h, struct actor *a, const struct completion *c)
{
    struct image *image = NULL;

    if (a->state != ACTOR_EXPORTING) {
        return;
    }
    if (c->error == ERR_OK && !a->broken && c->bytes.size <= h->config.staged_size_max) {
        note_told(h, a, c->number);
        image = image_of_export(h, a, c);
    }
    actor_end(h, a, ACTOR_IDLE);
    ahead_on_answer(h, a);
    if (image != NULL) {
        ahead_on_copied(h, a, image);
        image_free(image);
    }
    if (a->broken) {
        fail_broken(h, a);
        return;
    }
    actor_proceed(h, a);
}

void actor_release(struct host *h, struct actor *a)
{
    a->work->hold = NULL;
    a->work->unready = false;
    if (a->state == ACTOR_FROZEN && a->live) {
        unfreeze(h, a);
    } else if (a->state == ACTOR_FROZEN) {
        actor_enter(a, ACTOR_ABSENT); // its image is what it will start from
    } else if (a->state == ACTOR_BUSY) {
        delay_stop(&a->work->delay);
        actor_enter(a, ACTOR_IDLE);
    }
    // Else it never stopped, or stops being exported: run_on_exported() sees no hold.
    actor_proceed(h, a);
}

/* ---- coming and going ---- */

void actor_empty(struct host *h, struct actor *a, struct queue *to)
{
    if (a->work != NULL) {
        queue_append(to, &a->work->queue);
    }
    for (struct order *order = order_first(&h->orders, a); order != NULL && actor_early(a) > 0;
         order = order_next(&h->orders, a, order)) {
        struct waiting *w = NULL;

        while ((w = order_drop_early(&h->orders, order)) != NULL) {
            queue_push(to, w);
        }
    }
    ASSERT(actor_early(a) == 0);
}

void actor_drop_image(struct actor *a)
{
    if (a->work != NULL) {
        image_free(a->work->image);
        a->work->image = NULL;
    }
}

void actor_remove(struct host *h, struct actor *a, enum discard_why why)
{
    struct order *order = NULL;

    while ((order = order_first(&h->orders, a)) != NULL) {
        order_free(&h->orders, order);
    }
    wake_unlist(h, a);
    backpressure_leave_line(h, a);
    actor_dismiss(h, a, why);
    if (actor_has_task(a)) {
        actor_end(h, a, ACTOR_ABSENT);
    }
    if (a->sent) {
        ahead_on_removed(h, a);
    }
    actor_drop_image(a);
    actor_discard(&h->actors, a);
}

void actor_dismiss(struct host *h, struct actor *a, enum discard_why why)
{
    gate_forget(&h->lease_policy.gate, a);
    if (a->live || a->state == ACTOR_ACTIVATING) {
        host_submit(h, a, VERB_DISCARD)->submission.why = (uint8_t)why;
        h->work.live--;
        cells_count_live(h, a, false);
        h->work.retiring -= a->state == ACTOR_RETIRING ? 1 : 0;
    }
    if (a->live && actor_listed(a)) {
        actor_unlist(&h->actors, a);
    }
    a->live = a->poked = a->turned = a->broken = false;
    a->wish = WISH_NONE;
}

void actor_rest(struct host *h, struct actor *a)
{
    if (actor_waiting(a) == 0) {
        backpressure_leave_line(h, a);
    }
    if (a->work != NULL && a->work->failures > 0 && !delay_runs(&a->work->delay)) {
        delay_start(&h->work.delays, &a->work->delay, DELAY_LONGEST, h->now_us);
    }
    actor_calm(&h->actors, a);
    if (a->state == ACTOR_ABSENT && a->work == NULL && a->orders == 0 && !a->wanted && !a->packed &&
        (a->memory == MEMORY_NONE || a->memory == MEMORY_KNOWN)) {
        actor_remove(h, a, DISCARD_STOP); // nothing is known of it: nothing need be kept
    }
}

static void order_from_image(struct host *h, struct actor *a, const struct image_order *from,
                             struct image_walk *walk)
{
    struct order *order = order_new(&h->orders, a, from->session);
    struct order_answer answer;

    order->epoch = from->epoch;
    order->last = from->last;
    order->base = from->base;
    order_touch(&h->orders, order, h->now_us);
    if (order->epoch == ORDER_TOLD) {
        struct host_effect *e = host_emit(h, HOST_FORMER);

        e->actor = a;
        e->incarnation = order->last;
        e->ticket = order->base;
    }
    while (image_next_answer(walk, &answer)) {
        order_save(&h->orders, order, &answer, h->config.answers_size_max);
    }
}

struct actor *actor_from_image(struct host *h, struct image *image)
{
    const struct image_name name = {
        .position = image->position, .kind = image->kind, .id = image->id};
    struct actor *a = actor_new(&h->actors, name);

    a->memory = image->actor_memory & 3u; // as many bits as it has
    if (image->has_state || image->bond.size > 0) {
        actor_pack(a, image_share(image));
    }
    struct image_walk walk = image_walk(image);
    struct image_order from;
    while (image_next_order(&walk, &from)) {
        if (a->orders == 0 || order_find(&h->orders, a, from.session) == NULL) {
            order_from_image(h, a, &from, &walk);
        }
    }
    return a;
}
