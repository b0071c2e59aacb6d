/* SPDX-License-Identifier: Apache-2.0 */
#include "node/scene.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/table.h"
#include "node/alarm.h"
#include "wire/args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum actor_phase { ACTOR_IDLE, ACTOR_RUNNING, ACTOR_DEFERRED, ACTOR_FROZEN };

struct scene {
    scene_ran ran;
    void *context;
    uint64_t now_us;
    uint64_t last_token;
    struct table deferred; /* actors by their token */
    struct alarms alarms;
    struct buffer body; /* of the answer being made */
    struct list actors;
};

struct rh_actor {
    struct scene *scene;
    const struct rh_actor_ops *ops;
    void *shared;
    void *instance;
    void *outer; /* the caller's name of it */
    uint64_t fence;
    enum actor_phase phase;
    bool answered; /* while RUNNING */
    uint8_t flags; /* of the message that runs */
    uint64_t ticket;
    uint64_t token;             /* while DEFERRED */
    struct table_link by_token; /* while DEFERRED */
    struct list timers;         /* of the message that runs */
    struct list_link in_scene;
    size_t id_size;
    uint8_t id[]; /* flexible */
};

struct timer {
    struct alarm alarm;
    struct list_link in_actor;
    struct rh_actor *actor;
    rh_timer call;
    void *argument;
};

struct rh_out {
    struct buffer *buffer; /* borrowed */
};

static void timer_free(struct timer *t)
{
    alarms_unset(&t->actor->scene->alarms, &t->alarm);
    list_remove(&t->in_actor);
    mem_free(t);
}

static void drop_timers(struct rh_actor *a)
{
    struct list_link *at;

    while ((at = list_front(&a->timers)) != NULL) {
        timer_free(CONTAINER_OF(at, struct timer, in_actor));
    }
}

/* ---- answers ---- */

/* In the Redis protocol a line break would end the error early. */
static void make_one_line(struct buffer *text)
{
    for (size_t i = 0; i < text->size; i++) {
        if (text->data[i] == '\r' || text->data[i] == '\n') {
            text->data[i] = ' ';
        }
    }
}

static enum answer_code put_plain(struct buffer *out, const struct rh_value *v)
{
    char number[24];

    switch (v->type) {
    case RH_INTEGER:
        (void)snprintf(number, sizeof number, "%" PRIi64, v->integer);
        buffer_put(out, number, strlen(number));
        return ANSWER_OK;
    case RH_NIL:
        return ANSWER_OK;
    case RH_ERROR:
        buffer_put(out, v->bytes.data, v->bytes.size);
        make_one_line(out);
        return ANSWER_APP_ERROR;
    case RH_BYTES:
    case RH_TEXT:
        buffer_put(out, v->bytes.data, v->bytes.size);
        return ANSWER_OK;
    }
    return ANSWER_OK;
}

static enum answer_code put_value(struct buffer *out, const struct rh_value *v)
{
    struct value value = {
        .type = VALUE_NIL, .integer = v->integer, .text = bytes_of(v->bytes.data, v->bytes.size)};

    switch (v->type) {
    case RH_BYTES:
        value.type = VALUE_BULK;
        break;
    case RH_TEXT:
        value.type = VALUE_SIMPLE;
        break;
    case RH_INTEGER:
        value.type = VALUE_INTEGER;
        break;
    case RH_NIL:
        break;
    case RH_ERROR:
        value.type = VALUE_ERROR;
        break;
    }
    value_put(out, &value);
    return ANSWER_OK;
}

static enum answer_code put_answer(struct rh_actor *a, const struct rh_value *v)
{
    struct buffer *out = &a->scene->body;

    buffer_clear(out);
    return (a->flags & REQUEST_COMMAND) != 0 ? put_value(out, v) : put_plain(out, v);
}

/* The message that runs is over. */
static void finish(struct rh_actor *a, const struct rh_value *v)
{
    struct scene *s = a->scene;
    const enum answer_code code = put_answer(a, v);

    if (a->phase == ACTOR_DEFERRED) {
        table_remove(&s->deferred, &a->by_token);
        a->phase = ACTOR_IDLE;
    }
    a->answered = true;
    drop_timers(a);
    const struct scene_answer answer = {a->outer, a->ticket, code, buffer_bytes(&s->body)};
    s->ran(s->context, &answer);
}

static bool is_too_big(const struct rh_value *v)
{
    // One byte names the type of a command's value.
    return v->bytes.size > RECORD_BODY_MAX - 1;
}

static int reply(struct rh_actor *a, const struct rh_value *v)
{
    if (is_too_big(v)) {
        const struct rh_value error = rh_error("ERR the reply is over its limit of 1 MiB");

        finish(a, &error);
        return RH_TOO_BIG;
    }
    finish(a, v);
    return RH_OK;
}

/* ---- ringhold.h ---- */

struct rh_value rh_text(const char *text)
{
    return (struct rh_value){RH_TEXT, 0, {text, strlen(text)}};
}

struct rh_value rh_error(const char *text)
{
    return (struct rh_value){RH_ERROR, 0, {text, strlen(text)}};
}

int rh_reply(struct rh_actor *actor, struct rh_value value)
{
    const bool runs = actor->phase == ACTOR_RUNNING || actor->phase == ACTOR_DEFERRED;

    return !runs || actor->answered ? RH_INVALID : reply(actor, &value);
}

struct rh_token rh_defer(struct rh_actor *actor)
{
    struct scene *s = actor->scene;

    if (actor->phase == ACTOR_RUNNING && !actor->answered) {
        actor->phase = ACTOR_DEFERRED;
        actor->token = ++s->last_token;
        table_put(&s->deferred, &actor->by_token, table_mix(actor->token));
    }
    // A misplaced call gets a token that no message has.
    return (struct rh_token){s, actor->phase == ACTOR_DEFERRED ? actor->token : 0};
}

int rh_reply_later(struct rh_token token, struct rh_value value)
{
    const struct scene *s = token.scene;
    // The mix is one to one: equal hashes are equal tokens.
    struct table_link *found = table_first(&s->deferred, table_mix(token.number));

    if (found == NULL) {
        return RH_GONE;
    }
    return reply(CONTAINER_OF(found, struct rh_actor, by_token), &value);
}

int rh_after(struct rh_actor *actor, uint32_t ms, rh_timer timer, void *argument)
{
    const bool runs = actor->phase == ACTOR_RUNNING || actor->phase == ACTOR_DEFERRED;

    if (!runs || actor->answered) {
        return RH_INVALID;
    }
    struct timer *t = mem_new(1, sizeof *t);
    t->actor = actor;
    t->call = timer;
    t->argument = argument;
    list_push_back(&actor->timers, &t->in_actor);
    alarms_set(&actor->scene->alarms, &t->alarm, actor->scene->now_us + (uint64_t)ms * 1000);
    return RH_OK;
}

struct rh_bytes rh_id(const struct rh_actor *actor)
{
    return (struct rh_bytes){actor->id, actor->id_size};
}

uint64_t rh_fence(const struct rh_actor *actor)
{
    return actor->fence;
}

void *rh_shared(const struct rh_actor *actor)
{
    return actor->shared;
}

void rh_out_put(struct rh_out *out, const void *data, size_t size)
{
    buffer_put(out->buffer, data, size);
}

/* ---- scene.h ---- */

struct scene *scene_new(scene_ran ran, void *context)
{
    struct scene *s = mem_new(1, sizeof *s);

    s->ran = ran;
    s->context = context;
    list_init(&s->actors);
    return s;
}

void scene_tick(struct scene *s, uint64_t now_us)
{
    struct alarm *due;

    s->now_us = now_us;
    while ((due = alarms_due(&s->alarms, now_us)) != NULL) {
        struct timer *t = CONTAINER_OF(due, struct timer, alarm);
        const struct timer copy = *t;

        timer_free(t); // First: the call may answer, which drops the actor's other timers.
        copy.call(copy.actor, copy.actor->instance, copy.argument);
    }
}

enum err scene_activate(struct scene *s, const struct scene_entry *entry, struct rh_actor **out)
{
    struct rh_actor *a = mem_new(1, sizeof *a + entry->id.size);
    const struct rh_bytes state = {entry->state.data, entry->state.size};

    a->scene = s;
    a->ops = entry->ops;
    a->shared = entry->shared;
    a->outer = entry->actor;
    a->fence = entry->fence;
    a->id_size = entry->id.size;
    memcpy(a->id, entry->id.data, entry->id.size);
    list_init(&a->timers);
    if (a->ops->activate(a, entry->has_state ? &state : NULL, a->fence, &a->instance) != RH_OK) {
        mem_free(a);
        return ERR_REFUSED;
    }
    list_push_back(&s->actors, &a->in_scene);
    *out = a;
    return ERR_OK;
}

/* Point the message at the body's arguments; false if they do not decode. */
static bool open_arguments(struct bytes body, struct rh_bytes list[ARGS_MAX],
                           struct rh_message *message)
{
    struct args args;

    if (args_get(body, &args) != ERR_OK) {
        return false;
    }
    for (size_t i = 0; i < args.count; i++) {
        list[i] = (struct rh_bytes){args.arg[i].data, args.arg[i].size};
    }
    message->argument = list;
    message->argument_count = args.count;
    return true;
}

void scene_run(struct rh_actor *actor, uint64_t ticket, uint8_t flags, struct bytes body)
{
    struct rh_bytes list[ARGS_MAX];
    struct rh_message message = {.flags = (flags & REQUEST_NO_REPLY) != 0 ? RH_NO_REPLY : 0};

    ASSERT(actor->phase == ACTOR_IDLE);
    actor->phase = ACTOR_RUNNING;
    actor->answered = false;
    actor->ticket = ticket;
    actor->flags = flags;
    if ((flags & REQUEST_COMMAND) == 0) {
        message.payload = (struct rh_bytes){body.data, body.size};
        actor->ops->message(actor, actor->instance, &message);
    } else if (open_arguments(body, list, &message)) {
        actor->ops->message(actor, actor->instance, &message);
    } else {
        (void)rh_reply(actor, rh_error("ERR the command does not decode"));
    }
    if (actor->phase != ACTOR_RUNNING) {
        return; // It answers later, or did so after deferring.
    }
    if (!actor->answered) {
        (void)rh_reply(actor, rh_nil());
    }
    actor->phase = ACTOR_IDLE;
}

void scene_export(struct rh_actor *actor, struct buffer *out)
{
    struct rh_out writer = {out};

    ASSERT(actor->phase == ACTOR_IDLE);
    actor->phase = ACTOR_FROZEN;
    if (actor->ops->handoff != NULL) {
        actor->ops->handoff(actor, actor->instance, &writer);
    }
}

void scene_unfreeze(struct rh_actor *actor)
{
    ASSERT(actor->phase == ACTOR_FROZEN);
    actor->phase = ACTOR_IDLE;
    if (actor->ops->resume != NULL) {
        actor->ops->resume(actor, actor->instance);
    }
}

void scene_discard(struct rh_actor *actor, enum rh_why why)
{
    if (actor->phase == ACTOR_DEFERRED) {
        table_remove(&actor->scene->deferred, &actor->by_token);
    }
    drop_timers(actor);
    actor->phase = ACTOR_FROZEN; // Its last callback can neither answer nor set a timer.
    actor->ops->deactivate(actor, actor->instance, why);
    list_remove(&actor->in_scene);
    mem_free(actor);
}

void scene_close(struct scene *s, enum rh_why why)
{
    struct list_link *at;

    while ((at = list_front(&s->actors)) != NULL) {
        scene_discard(CONTAINER_OF(at, struct rh_actor, in_scene), why);
    }
    table_fini(&s->deferred);
    alarms_fini(&s->alarms);
    buffer_fini(&s->body);
    mem_free(s);
}
