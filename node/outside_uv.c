/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program around a node asks, and what it is told.
 */
#include "node/outside_uv.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "node/runtime/runtime.h"
#include "node/shell_uv.h"
#include "node/worker/worker_uv.h"
#include "wire/record.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    TIMEOUT_MAX_MS = 60000,
    LATE_US = 1000000, /* so much later than its deadline nobody answers a call any more */
};

/* A call is on the heap; who asks for an owner waits beside it. */
struct outside_ask {
    struct list_link link;
    bool is_call;
    uint16_t kind;
    uint8_t id_size;
    uint8_t id[RECORD_ID_MAX];
    int status; /* what it came to */

    /* Of an owner. */
    char *name;
    bool told;

    /* Of a call. */
    uint64_t number;
    uint64_t until_us;
    uint64_t incarnation; /* of the node, when it was asked; 0 = it was not yet */
    uint32_t flags;
    rh_on_node_answer then;
    void *argument;
    struct buffer payload; /* the question, then the answer */
};

void outside_init(struct outside *o, struct rh_node *node)
{
    *o = (struct outside){.node = node};
    (void)pthread_mutex_init(&o->lock, NULL);
    (void)pthread_cond_init(&o->told, NULL);
    list_init(&o->asked);
    list_init(&o->answered);
    list_init(&o->open);
}

void outside_fini(struct outside *o)
{
    (void)pthread_cond_destroy(&o->told);
    (void)pthread_mutex_destroy(&o->lock);
}

static struct bytes id_of(const struct outside_ask *ask)
{
    return bytes_of(ask->id, ask->id_size);
}

static bool take_id(struct outside_ask *ask, struct rh_bytes id)
{
    if (id.data == NULL || id.size == 0 || id.size > sizeof ask->id) {
        return false;
    }
    memcpy(ask->id, id.data, id.size);
    ask->id_size = (uint8_t)id.size;
    return true;
}

/* ---- telling */

static void tell(struct outside *o, struct outside_ask *ask)
{
    const struct rh_answer answer = {ask->status, {ask->payload.data, ask->payload.size}};

    (void)pthread_mutex_lock(&o->lock);
    o->count--;
    (void)pthread_mutex_unlock(&o->lock);
    ask->then(o->node, &answer, ask->argument);
    buffer_fini(&ask->payload);
    mem_free(ask);
}

/* It is in no list any more. */
static void end(struct outside *o, struct outside_ask *ask, int status, struct bytes payload)
{
    const struct call_answer answer = {.status = status, .payload = payload};
    const struct bytes told = runtime_told(&answer);

    ask->status = status;
    buffer_clear(&ask->payload);
    buffer_put(&ask->payload, told.data, told.size);
    if (o->worker == NULL) {
        tell(o, ask);
        return;
    }
    (void)pthread_mutex_lock(&o->lock);
    list_push_back(&o->answered, &ask->link);
    (void)pthread_mutex_unlock(&o->lock);
    worker_rouse(o->worker);
}

void outside_hand_out(struct outside *o)
{
    struct list answered = LIST_INIT(answered);
    struct list_link *link;

    (void)pthread_mutex_lock(&o->lock);
    list_splice_back(&answered, &o->answered);
    (void)pthread_mutex_unlock(&o->lock);
    while ((link = list_pop_front(&answered)) != NULL) {
        tell(o, CONTAINER_OF(link, struct outside_ask, link));
    }
}

/* ---- asking: any thread */

/* Under the lock. */
static void put(struct outside *o, struct outside_ask *ask)
{
    list_push_back(&o->asked, &ask->link);
    (void)uv_async_send(o->wake);
}

static int put_call(struct outside *o, struct outside_ask *ask)
{
    int result = RH_OK;

    (void)pthread_mutex_lock(&o->lock);
    if (o->wake == NULL || o->leaves) {
        result = RH_GONE;
    } else if (o->count == OUTSIDE_CALLS_MAX) {
        result = RH_OVERLOADED;
    } else {
        o->count++;
        put(o, ask);
    }
    (void)pthread_mutex_unlock(&o->lock);
    return result;
}

int outside_call(struct outside *o, const struct outside_question *q)
{
    if (q->then == NULL || q->timeout_ms == 0 || q->timeout_ms > TIMEOUT_MAX_MS ||
        (q->flags & ~(uint32_t)RH_IDEMPOTENT) != 0 ||
        (q->payload.data == NULL && q->payload.size > 0)) {
        return RH_INVALID;
    }
    if (q->payload.size > RECORD_BODY_MAX) {
        return RH_TOO_BIG;
    }
    struct outside_ask *ask = mem_new(1, sizeof *ask);
    ask->is_call = true;
    ask->kind = q->kind;
    ask->until_us = clock_boottime_us() + (uint64_t)q->timeout_ms * 1000;
    ask->flags = q->flags;
    ask->then = q->then;
    ask->argument = q->argument;
    buffer_put(&ask->payload, q->payload.data, q->payload.size);
    const int result = take_id(ask, q->id) ? put_call(o, ask) : RH_INVALID;
    if (result != RH_OK) {
        buffer_fini(&ask->payload);
        mem_free(ask);
    }
    return result;
}

static int owner_of(const struct shell *s, const struct outside_ask *ask)
{
    bool hosts = false;
    const char *name = host_owner(s->host, ask->kind, id_of(ask), &hosts);

    (void)snprintf(ask->name, RH_NODE_NAME, "%s", name == NULL ? "" : name);
    return name == NULL ? RH_REJECTED : hosts ? RH_OK : RH_NO_KIND;
}

int outside_owner(struct outside *o, struct shell *s, uint16_t kind, struct rh_bytes id,
                  char name[RH_NODE_NAME])
{
    struct outside_ask ask = {.kind = kind, .name = name};

    name[0] = '\0';
    if (!take_id(&ask, id)) {
        return RH_INVALID;
    }
    (void)pthread_mutex_lock(&o->lock);
    const bool there = o->wake != NULL;
    const bool here = there && o->serves && pthread_equal(o->thread, pthread_self()) != 0;
    if (there && !here) {
        put(o, &ask);
        while (!ask.told) {
            (void)pthread_cond_wait(&o->told, &o->lock);
        }
    }
    (void)pthread_mutex_unlock(&o->lock);
    return !there ? RH_GONE : here ? owner_of(s, &ask) : ask.status;
}

/* ---- the protocol thread */

void outside_serve(struct shell *s)
{
    struct outside *o = s->asks->outside;

    if (o != NULL) {
        (void)pthread_mutex_lock(&o->lock);
        o->thread = pthread_self();
        o->serves = true;
        (void)pthread_mutex_unlock(&o->lock);
    }
}

static void tell_owner(struct outside *o, struct outside_ask *ask, int status)
{
    (void)pthread_mutex_lock(&o->lock);
    ask->status = status;
    ask->told = true; // It is gone when the lock is.
    (void)pthread_cond_broadcast(&o->told);
    (void)pthread_mutex_unlock(&o->lock);
}

/* It leaves as a client's request would, but by the node's own calls. */
static void ask_it(struct shell *s, struct outside_ask *ask)
{
    struct outside *o = s->asks->outside;

    if (o->session == 0) {
        o->session = atomic_fetch_add(&s->dispatcher.numbering.callers, 1) + 1;
    }
    ask->number = ++o->last_number;
    ask->incarnation = host_incarnation(s->host);
    const struct call call = {.worker = OUTSIDE_WORKER,
                              .number = ask->number,
                              .session = o->session,
                              .kind = ask->kind,
                              .id = id_of(ask),
                              .payload = buffer_bytes(&ask->payload),
                              .timeout_ms = (uint32_t)((ask->until_us - s->now_us + 999) / 1000),
                              .flags = ask->flags};
    calls_ask(s->calls, &call, s->now_us);
}

/* What an incarnation of the node asked for is given up without a word when it ends. */
static bool is_given_up(const struct shell *s, const struct outside_ask *ask)
{
    return ask->incarnation != host_incarnation(s->host) || s->now_us >= ask->until_us + LATE_US;
}

/* True: it was asked just now. */
static bool look_at(struct shell *s, struct outside_ask *ask)
{
    if (ask->incarnation == 0 && s->now_us >= ask->until_us) {
        list_remove(&ask->link);
        end(s->asks->outside, ask, RH_REJECTED, (struct bytes){0});
    } else if (ask->incarnation == 0 && host_incarnation(s->host) != 0) {
        ask_it(s, ask);
        return true;
    } else if (ask->incarnation != 0 && is_given_up(s, ask)) {
        list_remove(&ask->link);
        end(s->asks->outside, ask, RH_UNKNOWN, (struct bytes){0});
    }
    return false;
}

/* Calls are open from here on. `gone`: nothing is asked for them, and no owner is told. True: some
 * were asked. */
static bool take_asked(struct shell *s, bool gone)
{
    struct outside *o = s->asks->outside;
    struct list asked = LIST_INIT(asked);
    struct list_link *link;
    bool any = false;

    (void)pthread_mutex_lock(&o->lock);
    list_splice_back(&asked, &o->asked);
    o->wake = gone ? NULL : o->wake;
    (void)pthread_mutex_unlock(&o->lock);
    while ((link = list_pop_front(&asked)) != NULL) {
        struct outside_ask *ask = CONTAINER_OF(link, struct outside_ask, link);

        if (!ask->is_call) {
            tell_owner(o, ask, gone ? RH_GONE : owner_of(s, ask));
            continue;
        }
        list_push_back(&o->open, &ask->link);
        any = (!gone && look_at(s, ask)) || any;
    }
    return any;
}

void outside_take(struct shell *s)
{
    if (s->asks->outside != NULL && !s->exiting && take_asked(s, false)) {
        shell_settle(s);
    }
}

void outside_tick(struct shell *s)
{
    struct list_link *next = NULL;
    bool any = false;

    if (s->asks->outside == NULL || s->exiting) {
        return;
    }
    struct list *open = &s->asks->outside->open;
    for (struct list_link *at = list_front(open); at != NULL; at = next) {
        next = list_next(open, at);
        any = look_at(s, CONTAINER_OF(at, struct outside_ask, link)) || any;
    }
    if (any) {
        shell_settle(s);
    }
}

void outside_answer(struct shell *s, const struct call_answer *answer)
{
    struct list *open = &s->asks->outside->open;

    for (struct list_link *at = list_front(open); at != NULL; at = list_next(open, at)) {
        struct outside_ask *ask = CONTAINER_OF(at, struct outside_ask, link);

        if (ask->number == answer->number) {
            list_remove(at);
            end(s->asks->outside, ask, answer->status, answer->payload);
            return;
        }
    }
}

void outside_leave(struct shell *s)
{
    struct outside *o = s->asks->outside;

    if (o != NULL) {
        (void)pthread_mutex_lock(&o->lock);
        o->leaves = true;
        (void)pthread_mutex_unlock(&o->lock);
    }
}

void outside_close(struct shell *s)
{
    struct outside *o = s->asks->outside;
    struct list_link *link;

    if (o == NULL) {
        return;
    }
    (void)take_asked(s, true);
    while ((link = list_pop_front(&o->open)) != NULL) {
        struct outside_ask *ask = CONTAINER_OF(link, struct outside_ask, link);

        end(o, ask, ask->incarnation == 0 ? RH_REJECTED : RH_UNKNOWN, (struct bytes){0});
    }
}
