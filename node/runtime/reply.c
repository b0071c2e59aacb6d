/* SPDX-License-Identifier: Apache-2.0
 *
 * rh_reply, rh_fail and what else an actor says of itself while its code runs.
 */
#include "node/runtime/inside.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/mutant.h"
#include "wire/args.h"
#include "wire/cursor.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* In the Redis protocol a line break would end the error early. */
static inline void copy_as_one_line(uint8_t *to, const uint8_t *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
    }
}

static void make_one_line(uint8_t *text, size_t size)
{
    copy_as_one_line(text, text, size);
}

static enum answer_code put_plain(struct buffer *out, const struct rh_value *v)
{
    switch (v->type) {
    case RH_INTEGER: {
        char number[DECIMAL_MAX];
        const char *begin = decimal_before(number + sizeof number, v->integer);

        buffer_put(out, begin, (size_t)(number + sizeof number - begin));
        return ANSWER_OK;
    }
    case RH_ERROR:
        buffer_put(out, v->bytes.data, v->bytes.size);
        make_one_line(out->data, out->size);
        return ANSWER_APP_ERROR;
    case RH_NIL:
    case RH_BYTES:
    case RH_TEXT:
        break;
    }
    UNREACHABLE();
}

static enum answer_code put_value(struct buffer *out, const struct rh_value *v)
{
    const struct value value = {.type = v->type == RH_INTEGER ? VALUE_INTEGER : VALUE_ERROR,
                                .integer = v->integer,
                                .text = bytes_of(v->bytes.data, v->bytes.size)};

    value_put(out, &value);
    return ANSWER_OK;
}

bool reply_fits(const struct rh_value *v)
{
    const bool has_bytes = v->type == RH_BYTES || v->type == RH_TEXT || v->type == RH_ERROR;

    // One byte names the type of a command's value.
    return !has_bytes || v->bytes.size <= RECORD_BODY_MAX - 1;
}

bool reply_makes_sense(const struct rh_value *v)
{
    const bool has_bytes = v->type == RH_BYTES || v->type == RH_TEXT || v->type == RH_ERROR;

    return v->type >= RH_BYTES && v->type <= RH_ERROR &&
           !(has_bytes && v->bytes.data == NULL && v->bytes.size > 0);
}

struct rh_value reply_too_big(void)
{
    return rh_error("ERR the reply is over its limit of 1 MiB");
}

/* Where an answer of that size is made: where it is wanted, if it may be. */
static uint8_t *place_of(const struct rh_actor *a, size_t size)
{
    const struct at_once *now = at_once_of(a->runtime);
    struct buffer *out = &a->runtime->body;

    if (now != NULL && size <= now->room_size) {
        return now->room;
    }
    buffer_clear(out);
    return buffer_reserve(out, size);
}

/* As most answers are: bytes or nothing, behind their type where a command is answered. */
static inline void put_run(struct rh_actor *a, enum value_type type, struct rh_bytes bytes)
{
    const size_t head = (flags_of(a) & REQUEST_COMMAND) != 0 ? 1 : 0;
    const size_t size = head + bytes.size;
    uint8_t *at = place_of(a, size);

    if (head > 0) {
        at[0] = (uint8_t)type;
    }
    bytes_copy(at + head, bytes.data, bytes.size);
    if (head > 0 && type == VALUE_SIMPLE) {
        make_one_line(at + head, bytes.size);
    }
    actor_ran_now(a, ANSWER_OK, bytes_of(at, size));
}

/* As counters answer a command. */
static void put_integer(struct rh_actor *a, int64_t integer)
{
    uint8_t *at = place_of(a, 1 + sizeof(uint64_t));
    struct writer w = {.at = at + 1, .left = sizeof(uint64_t)};

    at[0] = VALUE_INTEGER;
    put_u64(&w, (uint64_t)integer);
    actor_ran_now(a, ANSWER_OK, bytes_of(at, 1 + sizeof(uint64_t)));
}

enum answer_code reply_write(struct rh_actor *a, const struct rh_value *v)
{
    struct buffer *out = &a->runtime->body;

    buffer_clear(out);
    return (flags_of(a) & REQUEST_COMMAND) != 0 ? put_value(out, v) : put_plain(out, v);
}

/* Of another type, or too big. */
// NOLINTNEXTLINE(misc-no-recursion): what says that it was too big is not
__attribute__((noinline)) static int put_other(struct rh_actor *a, const struct rh_value *v)
{
    if (!reply_fits(v)) {
        const struct rh_value error = reply_too_big();

        (void)reply_put(a, &error);
        return RH_TOO_BIG;
    }
    const enum answer_code code = reply_write(a, v);
    actor_ran(a, code, buffer_bytes(&a->runtime->body));
    return RH_OK;
}

// NOLINTNEXTLINE(misc-no-recursion): likewise
int reply_put(struct rh_actor *a, const struct rh_value *v)
{
    static const enum value_type types[] = {
        [RH_BYTES] = VALUE_BULK, [RH_TEXT] = VALUE_SIMPLE, [RH_NIL] = VALUE_NIL};
    struct rh_bytes bytes = {NULL, 0};

    if (v->type == RH_INTEGER && (flags_of(a) & REQUEST_COMMAND) != 0) {
        put_integer(a, v->integer);
        return RH_OK;
    }
    if (v->type == RH_INTEGER || v->type == RH_ERROR || !reply_fits(v)) {
        return put_other(a, v);
    }
    if (v->type != RH_NIL) {
        bytes = v->bytes;
    }
    put_run(a, types[v->type], bytes);
    return RH_OK;
}

/* ---- ringhold.h ---- */

struct rh_value rh_text(const char *text)
{
    return (struct rh_value){RH_TEXT, 0, {text, text == NULL ? 0 : strlen(text)}};
}

struct rh_value rh_error(const char *text)
{
    return (struct rh_value){RH_ERROR, 0, {text, text == NULL ? 0 : strlen(text)}};
}

/* Once an actor: it may do so with each message. */
static void note_second(struct rh_actor *a)
{
    if (!a->told_second) {
        a->told_second = true;
        actor_complain(
            a, "second_reply", "the actor answered a message twice: the first reply counts");
    }
}

/* Of any other actor and value. */
__attribute__((noinline)) static int reply_other(struct rh_actor *actor,
                                                 const struct rh_value *value)
{
    if (actor == NULL) {
        return RH_INVALID;
    }
    if (actor->callback == CALLBACK_END) {
        actor_complain(
            actor, "reply_at_end", "the actor replied in deactivate: the reply is dropped");
    }
    if (actor->callback != CALLBACK_MESSAGE) {
        return RH_INVALID;
    }
    if (actor->answered) {
        note_second(actor);
        return RH_INVALID;
    }
    if (!reply_makes_sense(value)) {
        actor_complain(actor, "bad_reply", "the actor's reply has an unknown type, or no bytes");
        return RH_INVALID;
    }
    return reply_put(actor, value);
}

/* The actor's first reply to a client's request that runs at once, and nothing else was said. */
static inline bool is_plain(const struct rh_actor *a)
{
    return a->callback == CALLBACK_MESSAGE && !a->answered && a->extra == &runtime_nothing &&
           at_once_of(a->runtime) != NULL;
}

/* Write bytes or text where they are wanted: as most replies are. False: it is for reply_put(). */
static inline bool put_there(struct rh_actor *a, const struct rh_value *v)
{
    struct runtime *s = a->runtime;
    const struct at_once *now = at_once_of(s);
    const bool commanded = (s->message->flags & REQUEST_COMMAND) != 0;
    uint8_t *at = now->room;

    if (v->bytes.data == NULL || v->bytes.size >= now->room_size) { // one byte may name its type
        return false;
    }
    actor_ran_at_once(a, ANSWER_OK, bytes_of(at, v->bytes.size + (commanded ? 1 : 0)));
    if (commanded && v->type == RH_TEXT) {
        *at++ = VALUE_SIMPLE;
        copy_as_one_line(at, v->bytes.data, v->bytes.size);
        return true;
    }
    if (commanded) {
        *at++ = VALUE_BULK;
    }
    bytes_copy_value(at, v->bytes.data, v->bytes.size);
    return true;
}

int rh_reply(struct rh_actor *actor, struct rh_value value)
{
    if (__builtin_expect(actor != NULL && (unsigned)value.type <= RH_TEXT && is_plain(actor),
                         true) &&
        put_there(actor, &value)) {
        return RH_OK;
    }
    return reply_other(actor, &value);
}

static bool may_end(const struct rh_actor *a)
{
    return a->callback == CALLBACK_MESSAGE || a->callback == CALLBACK_PART ||
           a->callback == CALLBACK_SESSION || a->callback == CALLBACK_ALARM ||
           a->callback == CALLBACK_TIMER;
}

/* The host is told why; `event` is for the log. */
static int fail_with(struct rh_actor *actor, enum err why, const char *event, const char *text)
{
    if (actor == NULL || !may_end(actor)) {
        return RH_INVALID;
    }
    if (!actor->broken) {
        actor->broken = true;
        actor_complain(actor, event, text == NULL ? "" : text);
        runtime_tell_error(actor, VERB_FAIL, why);
    }
    if (actor->callback == CALLBACK_MESSAGE && !actor->answered) {
        const struct rh_value error = rh_error(text);

        (void)reply_put(actor, &error);
    }
    return RH_OK;
}

int rh_fail(struct rh_actor *actor, const char *text)
{
    return fail_with(actor, ERR_OK, "failed", text);
}

int rh_deposed(struct rh_actor *actor, const char *text)
{
    return fail_with(actor, ERR_CONFLICT, "deposed", text);
}

int rh_passivate(struct rh_actor *actor)
{
    if (actor == NULL) {
        return RH_INVALID;
    }
    if (actor->callback == CALLBACK_ACTIVATE) {
        actor->passivate = true;
        return RH_OK;
    }
    if (!may_end(actor)) {
        return RH_INVALID;
    }
    if (!actor->passivate) {
        actor->passivate = true; // Once will do: what retires it fails, or ends it.
        runtime_tell(actor, VERB_PASSIVATE);
    }
    actor->ending = true;
    return RH_OK;
}

struct rh_bytes rh_id(const struct rh_actor *actor)
{
    return actor == NULL ? (struct rh_bytes){NULL, 0}
                         : (struct rh_bytes){actor->id, actor->id_size};
}

uint64_t rh_fence(const struct rh_actor *actor)
{
    return actor == NULL ? 0 : actor->fence;
}

/* Within one fence an id has one owner, and that is one process: it counts (decision 104). */
struct rh_incarnation rh_incarnation(struct rh_actor *actor)
{
    if (actor == NULL) {
        return (struct rh_incarnation){0};
    }
    struct extras *x = extra_of(actor);

    if (x->start == 0) {
        x->start = mutant(M_SAMELIFE)
                       ? 1
                       : atomic_fetch_add(&actor->runtime->config.numbering->starts, 1) + 1;
    }
    return (struct rh_incarnation){.fence = actor->fence, .start = x->start};
}

void rh_incarnation_text(struct rh_incarnation incarnation, char text[34])
{
    if (text != NULL) {
        (void)snprintf(text,
                       RH_INCARNATION_TEXT,
                       "%016" PRIx64 "-%016" PRIx64,
                       incarnation.fence,
                       incarnation.start);
    }
}

void *rh_shared(const struct rh_actor *actor)
{
    return actor == NULL ? NULL : role_of(actor)->shared;
}

void rh_out_put(struct rh_out *out, const void *data, size_t size)
{
    if (out == NULL) {
        return;
    }
    if (out->over || size > out->size_max - out->state.size || (data == NULL && size > 0)) {
        out->over = true; // What is there already is no use to anybody.
        buffer_fini(&out->state);
        return;
    }
    buffer_put(&out->state, data, size);
}
