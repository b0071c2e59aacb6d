/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns: said to a host, or waiting for credit or for a host; ended, and when they take too long.
 */
#include "hosted/inside.h"

#include "base/assert.h"
#include "base/mutant.h"

static struct hosted *hosted_of(const struct hosted_actor *p)
{
    return p->kind->hosted;
}

static bool has_credit(const struct hosted_link *l, size_t size)
{
    return l->open_turns == 0 ||
           (l->open_turns < l->window_turns && l->open_bytes + size <= l->window_bytes);
}

static void wait_in(struct hosted_actor *p, struct list *list)
{
    p->stage = TURN_STAGE_WAITS;
    list_push_back(list, &p->in_turn);
    (void)atomic_fetch_add(&hosted_of(p)->stats.waiting, 1);
}

static void wait_no_more(struct hosted_actor *p)
{
    list_remove(&p->in_turn);
    (void)atomic_fetch_sub(&hosted_of(p)->stats.waiting, 1);
}

/* The host has it from here on. */
static void open_turn(struct hosted_actor *p)
{
    struct hosted_link *l = p->link;

    p->stage = TURN_STAGE_OPEN;
    p->begun = true;
    p->since_us = hosted_of(p)->now_us;
    l->open_turns++;
    l->open_bytes += p->turn_size;
    list_push_back(&p->kind->open, &p->in_turn);
    (void)atomic_fetch_add(&hosted_of(p)->stats.turns, 1);
}

static void live_at(struct hosted_actor *p, struct hosted_link *l)
{
    p->link = l;
    table_put(&l->actors, &p->by_number, table_mix(p->number));
}

bool hosted_turn_begin(struct hosted_actor *p, const Rh__Host__NodeSays *says, size_t size)
{
    if (p->gone) {
        return false;
    }
    ASSERT(p->stage == TURN_STAGE_NONE);
    if (p->turn == 0 && p->kind->link != NULL) {
        live_at(p, p->kind->link);
    }
    p->turn++;
    p->turn_size = size;
    p->since_us = hosted_of(p)->now_us;
    if (p->link != NULL && list_empty(&p->link->waiting) && has_credit(p->link, size)) {
        hosted_say(p->link, says);
        open_turn(p);
        return true;
    }
    hosted_pack(&p->said, says);
    wait_in(p, p->link == NULL ? &p->kind->unserved : &p->link->waiting);
    return true;
}

void hosted_turns_go(struct hosted_link *l)
{
    struct list_link *at;

    while ((at = list_front(&l->waiting)) != NULL) {
        struct hosted_actor *p = CONTAINER_OF(at, struct hosted_actor, in_turn);

        if (!has_credit(l, p->turn_size)) {
            return;
        }
        wait_no_more(p);
        hosted_say_packed(l, buffer_bytes(&p->said));
        buffer_fini(&p->said);
        open_turn(p);
    }
}

void hosted_turn_end(struct hosted_actor *p)
{
    struct hosted_link *l = p->link;
    const bool was_open = p->stage == TURN_STAGE_OPEN;

    if (p->stage == TURN_STAGE_WAITS && list_linked(&p->in_turn)) {
        wait_no_more(p);
    } else if (was_open) {
        list_remove(&p->in_turn);
    }
    p->stage = TURN_STAGE_NONE;
    buffer_fini(&p->said);
    if (was_open && l != NULL) {
        l->open_turns--;
        l->open_bytes -= p->turn_size;
        hosted_turns_go(l);
    }
}

void hosted_turns_serve(struct hosted_link *l, struct hosted_kind *k)
{
    struct list_link *at;

    k->link = l;
    while ((at = list_pop_front(&k->unserved)) != NULL) {
        struct hosted_actor *p = CONTAINER_OF(at, struct hosted_actor, in_turn);

        live_at(p, l);
        list_push_back(&l->waiting, at);
    }
    hosted_turns_go(l);
}

/* It was not begun at that host, so nothing of it is lost: another may begin it. */
static void wait_for_another(struct hosted_actor *p)
{
    list_remove(&p->in_turn);
    list_push_back(&p->kind->unserved, &p->in_turn);
    p->since_us = hosted_of(p)->now_us;
}

void hosted_turns_part(struct hosted_link *l)
{
    struct table_walk walk = {0};
    struct table_link *at;

    while ((at = table_walk(&l->actors, &walk)) != NULL) {
        struct hosted_actor *p = CONTAINER_OF(at, struct hosted_actor, by_number);

        p->link = NULL;
        if (!p->begun) {
            wait_for_another(p);
            continue;
        }
        p->gone = true;
        if (p->stage == TURN_STAGE_WAITS) {
            wait_no_more(p);
        }
        if (!mutant(M_HOSTSTAYS)) {
            hosted_actor_post(p);
        }
    }
    table_fini(&l->actors);
    l->actors = (struct table){0};
    l->open_turns = 0;
    l->open_bytes = 0;
}

/* Those in front are the oldest. */
static void end_old(struct list *list, uint64_t before_us)
{
    for (struct list_link *at = list_front(list); at != NULL; at = list_next(list, at)) {
        struct hosted_actor *p = CONTAINER_OF(at, struct hosted_actor, in_turn);

        if (p->since_us > before_us) {
            return;
        }
        if (!p->late) {
            p->late = true;
            hosted_actor_post(p);
        }
    }
}

void hosted_turns_tick(struct hosted_kind *k)
{
    const uint64_t now_us = k->hosted->now_us;
    const uint64_t wait_us = HOSTED_WAIT_MS * 1000ull;
    const uint64_t turn_us = k->turn_ms * 1000ull;

    end_old(&k->unserved, now_us > wait_us ? now_us - wait_us : 0);
    end_old(&k->open, now_us > turn_us ? now_us - turn_us : 0);
}

void hosted_turns_forget(struct hosted_actor *p)
{
    struct list_link *at;

    hosted_turn_end(p);
    if (p->link != NULL) {
        table_remove(&p->link->actors, &p->by_number);
        p->link = NULL;
    }
    while ((at = list_pop_front(&p->steps)) != NULL) {
        struct hosted_step *s = CONTAINER_OF(at, struct hosted_step, link);

        hosted_of(p)->queued -= s->size;
        hosted_step_free(s);
    }
}
