/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor in the test of a game: the next thing that it does, if its node would do it now.
 */
#include "node/kit/inside.h"

#include "base/mem.h"

struct puppet *puppet_find(const struct rh_test *t, uint16_t kind, struct bytes id)
{
    for (struct list_link *l = list_front(&t->puppets); l != NULL; l = list_next(&t->puppets, l)) {
        struct puppet *s = CONTAINER_OF(l, struct puppet, link);

        if (s->kind == kind && bytes_equal(buffer_bytes(&s->id), id)) {
            return s;
        }
    }
    return NULL;
}

struct puppet *puppet_of(struct rh_test *t, uint16_t kind, struct bytes id)
{
    struct puppet *s = puppet_find(t, kind, id);

    if (s == NULL) {
        s = mem_new(1, sizeof *s);
        s->kind = kind;
        buffer_put(&s->id, id.data, id.size);
        list_init(&s->mailbox);
        list_push_back(&t->puppets, &s->link);
    }
    return s;
}

void puppet_free(struct puppet *s)
{
    struct list_link *link;

    while ((link = list_pop_front(&s->mailbox)) != NULL) {
        letter_free(CONTAINER_OF(link, struct letter, link));
    }
    if (s->running != NULL) {
        letter_free(s->running);
    }
    buffer_fini(&s->id);
    buffer_fini(&s->state);
    buffer_fini(&s->bond);
    buffer_fini(&s->pushes);
    mem_free(s);
}

void puppet_gone(struct puppet *s)
{
    s->actor = NULL;
    s->failed = s->poked = s->ends = false;
}

void puppet_discard(struct puppet *s, enum rh_why why)
{
    runtime_discard(s->actor, why);
    puppet_gone(s);
}

static void activate(struct rh_test *t, struct puppet *s)
{
    const struct kind *kind = kinds_find(&t->kinds, s->kind);
    const struct runtime_entry entry = {
        .ops = &kind->ops,
        .shared = kind->shared,
        .actor = s,
        .id = buffer_bytes(&s->id),
        .state = buffer_bytes(&s->state),
        .has_state = s->moved && s->has_state,
        .state_version = kind->ops.state_version,
        .bond = s->moved ? buffer_bytes(&s->bond) : (struct bytes){0},
        .kind = s->kind,
        .fence = ++t->fence,
    };

    s->task = VERB_ACTIVATE;
    struct rh_actor *actor = runtime_activate(t->runtime, &entry);
    if (s->task == VERB_ACTIVATE || s->error == ERR_OK) {
        s->actor = actor;
    }
    s->moved = false;
}

static void run(struct rh_test *t, struct puppet *s)
{
    struct letter *l = CONTAINER_OF(list_pop_front(&s->mailbox), struct letter, link);
    const struct runtime_message message = {.ticket = l->ticket,
                                            .body = buffer_bytes(&l->body),
                                            .flags = l->flags,
                                            .asked = l->again ? ASKED_AGAIN : ASKED_FIRST,
                                            .name = {.asker = 1, .number = l->ticket}};

    (void)t;
    s->running = l;
    s->task = VERB_RUN;
    runtime_run(s->actor, &message);
}

bool puppet_go_on(struct rh_test *t, struct puppet *s)
{
    if (s->task != VERB_NONE) {
        return false;
    }
    if (s->actor == NULL) {
        const bool asked = !list_empty(&s->mailbox) || s->awake || s->moved;

        if (asked && t->now_us >= s->not_before_us) {
            activate(t, s);
            return true;
        }
        return false;
    }
    if (s->failed) {
        s->not_before_us = t->now_us + KIT_RETRY_US;
        puppet_discard(s, RH_BROKEN);
    } else if (s->poked) {
        s->poked = false;
        s->task = VERB_TURN;
        runtime_turn(s->actor, ++t->ticket);
    } else if (s->ends) {
        s->ends = false;
        s->task = VERB_RETIRE;
        runtime_retire(s->actor);
    } else if (!list_empty(&s->mailbox)) {
        run(t, s);
    } else {
        return false;
    }
    return true;
}

/* What waited for too long is answered. */
bool puppet_expire(struct rh_test *t, struct puppet *s)
{
    for (struct list_link *l = list_front(&s->mailbox); l != NULL; l = list_next(&s->mailbox, l)) {
        struct letter *letter = CONTAINER_OF(l, struct letter, link);

        if (t->now_us >= letter->until_us) {
            list_remove(l);
            letter_end_by_text(t, letter, RH_TIMEOUT, "TIMEOUT it did not run in time");
            return true;
        }
    }
    if (s->running != NULL && s->running->call != 0 && t->now_us >= s->running->until_us) {
        const struct call_answer answer = {.number = s->running->call, .status = RH_TIMEOUT};

        s->running->call = 0; // it may still run
        runtime_answer(t->runtime, &answer);
        return true;
    }
    return false;
}

bool puppet_unhosted(struct rh_test *t, struct puppet *s)
{
    struct list_link *l = list_pop_front(&s->mailbox);

    if (l == NULL) {
        return false;
    }
    letter_end_by_text(
        t, CONTAINER_OF(l, struct letter, link), RH_NO_KIND, "NOKIND nobody hosts it");
    return true;
}
