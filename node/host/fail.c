/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors that fail: broken by their own word, or not able to start. The next
 * start waits for a back-off that doubles with each failure in a row; requests
 * wait meanwhile, in the mailbox and until their deadline. A life that lasts
 * ends the row.
 */
#include "node/host/inside.h"
#include "node/host/quarantine.h"

#include "base/actor_name.h"
#include "base/assert.h"
#include "base/log.h"

#include <inttypes.h>

enum { COMPLAINTS_A_SECOND = 20 };

void fail_complain(struct host *h, const struct actor *a, const char *event, enum err error)
{
    char name[ACTOR_NAME_SIZE];
    uint32_t hidden = 0;

    if (!ration_take(&h->work.complaints, h->now_us, COMPLAINTS_A_SECOND, &hidden)) {
        return;
    }
    if (hidden > 0) {
        log_warn("node", "complaints_not_shown", "count=%" PRIu32, hidden);
    }
    log_warn("node",
             event,
             "actor=%s error=%s",
             actor_name_print(a->kind, actor_id(a), name),
             err_name(error));
}

/* Its arc is held: what waits does so with the transaction, and it moves without state. */
static void goes_cold(struct host *h, struct actor *a)
{
    struct hold *hold = a->work->hold;

    for (struct waiting *w = queue_front(&a->work->queue); w; w = queue_next(&a->work->queue, w)) {
        w->record.flags |= REQUEST_HELD;
        hold_count(&h->txns, 1);
    }
    queue_append(&hold->held, &a->work->queue);
    actor_freeze(h, a);
}

void fail_again(struct host *h, struct actor *a)
{
    struct actor_work *work = actor_work(&h->actors, a);

    ASSERT(a->state == ACTOR_ABSENT && !a->live);
    work->failures = work->failures < UINT8_MAX ? (uint8_t)(work->failures + 1) : UINT8_MAX;
    h->work.failed_total++;
    work->saving_later = false;
    a->broken = a->poked = false;
    a->wish = WISH_NONE;
    a->wanted = (a->wanted || kind_is_always(host_kind_of(h, a->kind))) && !quarantine_holds(h, a);
    if (work->hold != NULL) {
        goes_cold(h, a);
        return;
    }
    actor_enter(a, ACTOR_FAILING);
    work->since_us = h->now_us;
    delay_start(&h->work.delays, &work->delay, work->failures - 1u, h->now_us);
}

void fail_broken(struct host *h, struct actor *a)
{
    ASSERT(a->state == ACTOR_IDLE && a->live);
    (void)actor_work(&h->actors, a);
    actor_drop_image(a);
    actor_dismiss(h, a, DISCARD_BROKEN);
    actor_enter(a, ACTOR_ABSENT);
    fail_again(h, a);
}

void fail_on_failed(struct host *h, struct actor *a, const struct completion *c)
{
    if (!a->live && a->state != ACTOR_ACTIVATING) {
        return;
    }
    h->work.deposed_total += c->error == ERR_CONFLICT ? 1 : 0;
    if (a->state == ACTOR_BUSY) {
        actor_enter(a, ACTOR_IDLE);
    }
    if (a->state == ACTOR_IDLE) {
        fail_broken(h, a);
    } else {
        a->broken = true; // when what it does is answered; FROZEN: if it stays
    }
}

static void on_due(struct host *h, struct actor_work *work)
{
    struct actor *a = work->actor;

    if (work->saving_later) {
        work->saving_later = false;
        retire_watch(h, a);
        actor_proceed(h, a);
        return;
    }
    switch ((enum actor_state)a->state) {
    case ACTOR_FAILING:
        actor_enter(a, ACTOR_ABSENT);
        actor_proceed(h, a);
        return;
    case ACTOR_BUSY: // is it ready to hand over by now?
        actor_freeze(h, a);
        return;
    case ACTOR_ABSENT:
    case ACTOR_IDLE:
    case ACTOR_RUNNING:
        work->failures = 0;
        actor_rest(h, a);
        return;
    case ACTOR_ACTIVATING:
    case ACTOR_EXPORTING:
    case ACTOR_FROZEN:
    case ACTOR_RETIRING:
        return; // it is judged again when it rests
    }
}

void fail_tick(struct host *h)
{
    struct delay *due = NULL;

    while ((due = delays_due(&h->work.delays, h->now_us)) != NULL) {
        on_due(h, CONTAINER_OF(due, struct actor_work, delay));
    }
}

size_t fail_waiting(const struct host *h)
{
    size_t count = 0;

    for (size_t i = 0; i < DELAY_LEVELS; i++) {
        const struct list *level = &h->work.delays.level[i];

        for (struct list_link *l = list_front(level); l != NULL; l = list_next(level, l)) {
            struct delay *delay = CONTAINER_OF(l, struct delay, link);

            count += CONTAINER_OF(delay, struct actor_work, delay)->actor->state == ACTOR_FAILING
                         ? 1
                         : 0;
        }
    }
    return count;
}
