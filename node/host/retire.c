/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors that nobody uses end, and begin anew with their next request: those
 * idle for their kind's time, the least recently used over actors_max, and who
 * asks for it.
 *
 * Its order records stay, so what it ran is neither run again nor forgotten
 * (hole 37), and the fence stays its vnode's generation: the owner is the same.
 * None retires by itself while its arc is held, and a hold waits for one that does: what
 * moves is then a record without state. One that asked for its end does so in a held arc, too: it
 * runs no message any more, and others may wait for it to end (a call that passes the hold).
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/mutant.h"

enum { LOOK_AT_ONCE = 1000, ROOM_AT_ONCE = 16 };

/* One that shall live unasked is in no wheel. */
void retire_watch(struct host *h, struct actor *a)
{
    struct kind_state *kind = host_kind_of(h, a->kind);

    if (!kind_is_always(kind) && !actor_listed(a)) {
        idle_put(&kind->idle, a, h->now_us);
    }
}

void retire(struct host *h, struct actor *a, enum retire_why why)
{
    struct submission *s = &host_submit(h, a, VERB_RETIRE)->submission;

    ASSERT(a->state == ACTOR_IDLE || mutant(M_RETIREHELD));
    ASSERT(actor_held(a) == NULL || why == RETIRE_ASKED || mutant(M_RETIREHELD));
    ASSERT(lease_policy_may_start(h)); // what it saves must be fenced by a lease
    if (actor_listed(a)) {
        actor_unlist(&h->actors, a);
    }
    a->wish = why == RETIRE_ASKED ? WISH_ASKED : why == RETIRE_ROOM ? WISH_ROOM : WISH_IDLE;
    s->ticket = actor_begin(h, a, ACTOR_RETIRING)->running.ticket;
    s->why = (uint8_t)why;
    h->work.retiring++;
}

static bool may_retire(const struct host *h, const struct actor *a)
{
    return a->state == ACTOR_IDLE && actor_held(a) == NULL && actor_waiting(a) == 0 && !a->poked &&
           (a->work == NULL || !a->work->saving_later) && lease_policy_may_start(h);
}

/* Found by the wheel, or for want of room: now, or as soon as it is through with its turn. */
static void retire_one(struct host *h, struct actor *a, enum retire_why why)
{
    if (may_retire(h, a) || (mutant(M_RETIREHELD) && a->state == ACTOR_FROZEN && a->live)) {
        retire(h, a, why);
        return;
    }
    if (a->state == ACTOR_RUNNING && a->work->running.request) {
        a->used_ms = (uint32_t)(h->now_us / 1000); // by a long request
    } else if (a->wish == WISH_NONE) {
        a->wish = why == RETIRE_ROOM ? WISH_ROOM : WISH_IDLE;
    }
    if (actor_listed(a)) {
        actor_unlist(&h->actors, a);
    }
    retire_watch(h, a);
}

void retire_wished(struct host *h, struct actor *a)
{
    if (a->wish != WISH_NONE && may_retire(h, a)) {
        retire(h,
               a,
               a->wish == WISH_ASKED  ? RETIRE_ASKED
               : a->wish == WISH_ROOM ? RETIRE_ROOM
                                      : RETIRE_IDLE);
    }
}

static struct actor *oldest(struct host *h, size_t *steps)
{
    struct actor *oldest = NULL;

    for (size_t i = 0; i < h->config.kind_count; i++) {
        struct actor *a = idle_oldest(&h->cells.kind[i].idle, h->now_us, steps);

        if (a != NULL &&
            (oldest == NULL || idle_age_ms(a, h->now_us) > idle_age_ms(oldest, h->now_us))) {
            oldest = a;
        }
    }
    return oldest;
}

void retire_for_room(struct host *h)
{
    size_t steps = ROOM_AT_ONCE;

    while (h->config.actors_max > 0 && h->work.live - h->work.retiring > h->config.actors_max &&
           lease_policy_may_start(h) && steps > 0) {
        struct actor *a = oldest(h, &steps);

        if (a == NULL) {
            return;
        }
        steps -= steps > 0 ? 1 : 0;
        retire_one(h, a, RETIRE_ROOM);
    }
}

void retire_tick(struct host *h)
{
    if (!lease_policy_may_start(h)) {
        return;
    }
    for (size_t i = 0; i < h->config.kind_count; i++) {
        size_t steps = LOOK_AT_ONCE;
        struct actor *a = NULL;

        while ((a = idle_take(&h->cells.kind[i].idle, h->now_us, &steps)) != NULL) {
            retire_one(h, a, RETIRE_IDLE);
        }
    }
    retire_for_room(h);
}

void retire_on_passivate(struct host *h, struct actor *a)
{
    if (a->live || a->state == ACTOR_ACTIVATING) {
        a->wish = WISH_ASKED;
        actor_proceed(h, a);
    }
}

/* A client is bound to it: it is in use, though nobody asks it anything. */
static void is_used(struct host *h, struct actor *a)
{
    actor_end(h, a, ACTOR_IDLE);
    if (a->broken) {
        fail_broken(h, a);
        return;
    }
    a->wish = WISH_NONE;
    retire_used(a, h->now_ms);
    retire_watch(h, a);
    actor_proceed(h, a);
}

/* It could not save what it has: it lives on, and tries again later. */
static void stays(struct host *h, struct actor *a, enum err error)
{
    struct actor_work *work = a->work;

    fail_complain(h, a, "actor_not_saved", error);
    actor_end(h, a, ACTOR_IDLE);
    if (a->broken) {
        fail_broken(h, a);
        return;
    }
    if (a->wish == WISH_ASKED && actor_held(a) != NULL) {
        a->wish = WISH_IDLE; // The hold is first: it would try again and again meanwhile.
    }
    work->saving_later = true;
    work->failures = work->failures < UINT8_MAX ? (uint8_t)(work->failures + 1) : UINT8_MAX;
    delay_start(&h->work.delays, &work->delay, work->failures - 1u, h->now_us);
    actor_proceed(h, a);
}

/* M_RETIREFORGETS. */
static void forget_orders(struct host *h, struct actor *a)
{
    while (actor_waiting(a) == 0 && a->orders != 0) {
        order_free(&h->orders, order_first(&h->orders, a));
    }
}

/* M_WAKELOST: what woke it is gone with it. */
static void lose_waiting(struct host *h, struct actor *a)
{
    struct waiting *w = NULL;

    while ((w = queue_pop(&a->work->queue)) != NULL) {
        struct admission in = admission_of(w);
        struct order *order = order_find(&h->orders, a, w->record.session);

        if (order != NULL && w->record.seq > order->last) {
            order->last = w->record.seq;
        }
        admit_done(h, &in);
    }
}

void retire_on_retired(struct host *h, struct actor *a, const struct completion *c)
{
    // One at a time, and none after its DISCARD: the runtime need not tell the ticket.
    if (a->state != ACTOR_RETIRING || (c->ticket != 0 && a->work->running.ticket != c->ticket)) {
        return;
    }
    h->work.retiring--;
    if (c->error == ERR_BUSY) {
        is_used(h, a);
        return;
    }
    if (c->error != ERR_OK) {
        stays(h, a, c->error);
        return;
    }
    h->work.live--;
    cells_count_live(h, a, false);
    h->work.retired_total++;
    if (a->wish == WISH_ASKED) {
        remember_ended(h, a);
    }
    a->live = a->poked = a->turned = a->broken = a->wanted = false;
    a->wish = WISH_NONE;
    actor_end(h, a, ACTOR_ABSENT);
    if (mutant(M_RETIREFORGETS)) {
        forget_orders(h, a);
    }
    if (mutant(M_WAKELOST)) {
        lose_waiting(h, a);
    }
    actor_proceed(h, a); // who waits wakes it again
}
