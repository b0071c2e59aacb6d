/* SPDX-License-Identifier: Apache-2.0
 *
 * What a durable actor said, kept until what it tells of is in the store.
 */
#include "node/runtime/durable.h"

#include "base/assert.h"
#include "base/mem.h"
#include "node/calls/broadcasts.h"
#include "wire/cursor.h"

#include <stdalign.h>
#include <stdatomic.h>

struct withheld {
    struct list_link link;
    struct completion completion; /* of a push: without it, … */
    struct buffer packed;         /* … for that is here; or an answer that took another's place */
    alignas(uint64_t) uint8_t data[]; /* flexible: what the completion borrows */
};

static struct withheld *take_front(struct list *from)
{
    struct list_link *link = list_pop_front(from);

    return link == NULL ? NULL : CONTAINER_OF(link, struct withheld, link);
}

static void withheld_free(struct withheld *w)
{
    buffer_fini(&w->packed);
    mem_free(w);
}

void withheld_put(struct list *to, const struct completion *c)
{
    const bool push = c->verb == VERB_PUSH;
    struct withheld *w = mem_new(1, sizeof *w + (push ? 0 : completion_size(c)));

    if (push) {
        w->completion = *c;
        push_put(&w->packed, c->push);
    } else {
        completion_copy(c, &w->completion, w->data);
    }
    list_push_back(to, &w->link);
}

/* ---- out ---- */

static void say(const struct rh_actor *a, const struct completion *c)
{
    a->runtime->config.on_completion(a->runtime->config.context, c);
}

static void say_push(const struct rh_actor *a, struct withheld *w)
{
    struct reader in = {.at = w->packed.data, .left = w->packed.size};
    struct push_record push;
    const enum err error = push_get(&in, &push);

    ASSERT(error == ERR_OK);
    w->completion.push = &push;
    say(a, &w->completion);
}

/* Where its request is done at once, its answer goes there, in bytes that stay. */
static void say_answer(struct rh_actor *a, const struct completion *c)
{
    struct runtime *s = a->runtime;

    if (at_once_of(s) == NULL) {
        say(a, c);
        return;
    }
    buffer_clear(&s->body);
    buffer_put(&s->body, c->bytes.data, c->bytes.size);
    run_end_at_once(s, c->error, c->code, buffer_bytes(&s->body));
}

static void say_one(struct rh_actor *a, struct withheld *w)
{
    switch ((int)w->completion.verb) {
    case VERB_PUSH:
        say_push(a, w);
        return;
    case VERB_RUN:
        say_answer(a, &w->completion);
        return;
    default:
        say(a, &w->completion);
        return;
    }
}

void withheld_say(struct rh_actor *a, struct list *from)
{
    struct withheld *w = NULL;

    while ((w = take_front(from)) != NULL) {
        say_one(a, w);
        withheld_free(w);
    }
}

/* ---- forgotten ---- */

/* Of a broadcast, those who wait are one fewer. */
static void forget(const struct rh_actor *a, struct withheld *w)
{
    const struct call *call = w->completion.verb == VERB_CALL ? w->completion.call : NULL;

    if (call != NULL && call->push && a->runtime->config.broadcasting != NULL) {
        (void)atomic_fetch_sub(&a->runtime->config.broadcasting->size, broadcast_size(call));
    }
    withheld_free(w);
}

void withheld_drop(const struct rh_actor *a, struct list *from)
{
    struct withheld *w = NULL;

    while ((w = take_front(from)) != NULL) {
        forget(a, w);
    }
}

void withheld_mute(const struct rh_actor *a, struct list *from)
{
    struct list all = LIST_INIT(all);
    struct withheld *w = NULL;

    list_splice_back(&all, from);
    while ((w = take_front(&all)) != NULL) {
        if (w->completion.verb == VERB_CALL || w->completion.verb == VERB_PUSH) {
            forget(a, w);
        } else {
            list_push_back(from, &w->link);
        }
    }
}

void withheld_deny(struct rh_actor *a, struct list *in)
{
    for (struct list_link *l = list_front(in); l != NULL; l = list_next(in, l)) {
        struct withheld *w = CONTAINER_OF(l, struct withheld, link);

        if (w->completion.verb == VERB_FAIL) {
            return; // The answer behind it says so itself.
        }
        if (w->completion.verb == VERB_RUN) {
            const struct bytes body =
                durable_failed_answer(a, STORE_UNAVAILABLE, &w->completion.code);

            buffer_put(&w->packed, body.data, body.size);
            w->completion.bytes = buffer_bytes(&w->packed);
            return;
        }
    }
}

const struct completion *withheld_find(const struct list *in, enum verb verb)
{
    for (struct list_link *l = list_front(in); l != NULL; l = list_next(in, l)) {
        const struct withheld *w = CONTAINER_OF(l, struct withheld, link);

        if (w->completion.verb == verb) {
            return &w->completion;
        }
    }
    return NULL;
}

void withheld_fail(struct rh_actor *a, struct list *from, enum store_result why)
{
    struct withheld *w = NULL;

    while ((w = take_front(from)) != NULL) {
        if (w->completion.verb == VERB_RUN) {
            w->completion.bytes = durable_failed_answer(a, why, &w->completion.code);
            say_one(a, w);
            withheld_free(w);
        } else if (w->completion.verb == VERB_TURN || w->completion.verb == VERB_FAIL) {
            say_one(a, w);
            withheld_free(w);
        } else {
            forget(a, w);
        }
    }
}
