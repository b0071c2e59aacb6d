/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands a request to an actor's code: unpacks it, calls `message`, completes the
 * run.
 */
#include "node/runtime/inside.h"

#include "base/assert.h"
#include "base/mutant.h"
#include "wire/args.h"

#include <string.h>

/* Of a submission, of what finished later, or of an actor that has more to do. */
__attribute__((noinline)) static void complete(struct rh_actor *a, enum answer_code code,
                                               struct bytes body)
{
    static const uint8_t taken = 1;

    if ((flags_of(a) & REQUEST_SESSION) != 0 && a->callback == CALLBACK_MESSAGE) { // it is a send
        const bool takes = code == ANSWER_OK && !a->broken;

        if (!takes) {
            durable_refuse_send(a);
        }
        code = ANSWER_OK;
        body = bytes_of(&taken, takes ? 1 : 0);
    }
    const struct completion event = {
        .verb = VERB_RUN, .actor = name_of(a), .ticket = ticket_of(a), .code = code, .bytes = body};

    if (a->deferred) {
        a->deferred = false;
        runtime_tell(a, VERB_FINISH);
        actor_end_task(a);
    }
    a->answered = true;
    a->ending = a->passivate; // of one that asked for it as it was activated
    if (!list_empty(&a->extra->after)) {
        timers_drop_after(a);
    }
    if (a->extra->durable != NULL) {
        durable_tell(a, &event);
    } else if (at_once_of(a->runtime) != NULL) {
        run_end_at_once(a->runtime, ERR_OK, code, body);
    } else {
        a->runtime->config.on_completion(a->runtime->config.context, &event);
    }
    if (a->task == VERB_NONE) {
        actor_want_turn(a);
    }
}

void actor_ran(struct rh_actor *a, enum answer_code code, struct bytes body)
{
    if (at_once_of(a->runtime) == NULL || a->extra != &runtime_nothing) {
        complete(a, code, body);
    } else {
        actor_ran_at_once(a, code, body);
    }
}

static inline uint32_t message_flags(uint8_t flags)
{
    return ((flags & REQUEST_NO_REPLY) != 0 ? RH_NO_REPLY : 0u) |
           ((flags & REQUEST_IDEMPOTENT) != 0 ? RH_IDEMPOTENT : 0u);
}

static inline void begin_message(struct rh_actor *a)
{
    ASSERT(a->task == VERB_NONE && !a->frozen);
    a->task = VERB_RUN;
    a->callback = CALLBACK_MESSAGE;
    a->answered = false;
}

/* True: its code is to be called. */
static bool open_message(struct rh_actor *a, const struct runtime_message *m)
{
    begin_message(a);
    if (a->extra == &runtime_nothing) {
        a->runtime->message = m;
        return true;
    }
    extras_note(a->extra, m);
    if (a->extra->durable != NULL && (m->flags & REQUEST_SESSION) == 0) { // of which session.c sees
        durable_enter_request(a, m);
    }
    return !a->answered;
}

static inline void call_code(struct rh_actor *a, const struct rh_message *message)
{
    role_of(a)->ops->message(a, a->instance, message);
}

/* It does not decode. Its sender is one of us, so that is nobody's actor. */
static void refuse_body(struct rh_actor *a)
{
    (void)rh_reply(a, rh_error("ERR the command can't be decoded"));
}

static inline void call_by_arguments(struct rh_actor *a, struct bytes body,
                                     struct rh_message *message)
{
    struct rh_bytes *list = a->runtime->argument;
    struct args_rest rest = {0};
    const size_t count = args_begin(&rest, body);
    struct bytes arg;
    size_t i = 0;

    for (; i < count && args_next(&rest, &arg); i++) {
        list[i] = (struct rh_bytes){arg.data, arg.size};
    }
    if (count == 0 || i < count || rest.left > 0) {
        refuse_body(a);
        return;
    }
    message->argument = list;
    message->argument_count = count;
    call_code(a, message);
    message->argument = NULL; // they end here
    message->argument_count = 0;
}

static void call_by_caller(struct rh_actor *a, const struct runtime_message *m,
                           struct rh_message *message)
{
    struct bytes body = m->body;
    struct caller caller;

    if (caller_get(&body, &caller) != ERR_OK) {
        refuse_body(a);
        return;
    }
    message->from_kind = caller.kind;
    message->from = (struct rh_bytes){caller.id.data, caller.id.size};
    if ((m->flags & REQUEST_COMMAND) != 0) {
        call_by_arguments(a, body, message);
        return;
    }
    message->payload = (struct rh_bytes){body.data, body.size};
    call_code(a, message);
}

__attribute__((noinline)) static void call(struct rh_actor *a, const struct runtime_message *m)
{
    struct rh_message message = {.flags = message_flags(m->flags)};

    if ((m->flags & REQUEST_CALL) != 0) {
        call_by_caller(a, m, &message);
    } else if ((m->flags & REQUEST_COMMAND) != 0) {
        call_by_arguments(a, m->body, &message);
    } else {
        message.payload = (struct rh_bytes){m->body.data, m->body.size};
        call_code(a, &message);
    }
}

bool activation_has_ended(const struct rh_actor *a)
{
    return (a->ending || a->broken) && !mutant(M_RUNENDED);
}

__attribute__((noinline)) static void refuse(struct rh_actor *a, uint64_t ticket)
{
    const struct completion refused = {
        .verb = VERB_RUN, .actor = name_of(a), .ticket = ticket, .error = ERR_BUSY};

    ASSERT(a->task == VERB_NONE && !a->frozen);
    if (at_once_of(a->runtime) != NULL) {
        run_end_at_once(a->runtime, ERR_BUSY, ANSWER_OK, (struct bytes){0});
    } else {
        a->runtime->config.on_completion(a->runtime->config.context, &refused);
    }
}

/* What ran has come to nothing but its answer. */
static inline bool is_over(const struct rh_actor *a)
{
    return a->extra == &runtime_nothing && !a->flush_due;
}

static inline void close_message(struct rh_actor *a)
{
    a->runtime->message = NULL;
    a->task = VERB_NONE;
    a->callback = CALLBACK_NONE;
}

/* Its code has returned. */
__attribute__((noinline)) static void returned(struct rh_actor *a)
{
    if (!a->answered && a->extra->deferral != NULL) {
        a->runtime->message = NULL;
        actor_leave_code(a, true);
        a->deferred = true;
        runtime_tell(a, VERB_DEFER);
        calls_pump(a);
        return;
    }
    if (!a->answered) {
        (void)rh_reply(a, rh_nil());
    }
    if (is_over(a)) {
        close_message(a);
        return;
    }
    a->runtime->message = NULL;
    actor_end_task(a);
    actor_leave_code(a, true);
    actor_want_turn(a);
}

/* The actor is just idle, and a client asks. */
static inline bool is_plain(const struct rh_actor *a, const struct runtime_message *m)
{
    return a->extra == &runtime_nothing && (m->flags & (REQUEST_SESSION | REQUEST_CALL)) == 0;
}

/* As runtime_run() does it, without what that looks at for others. */
static inline void run_plain(struct rh_actor *a, const struct runtime_message *m)
{
    struct runtime *s = a->runtime;
    struct rh_message *message = &s->plain;

    begin_message(a);
    s->message = m;
    message->flags = message_flags(m->flags);
    if ((m->flags & REQUEST_COMMAND) != 0) {
        call_by_arguments(a, m->body, message);
    } else {
        message->payload = (struct rh_bytes){m->body.data, m->body.size};
        call_code(a, message);
        message->payload = (struct rh_bytes){NULL, 0}; // it ends here
    }
    if (__builtin_expect(a->answered && is_over(a), true)) {
        close_message(a);
    } else {
        returned(a);
    }
}

void message_take_send(struct rh_actor *a, const struct caller *from, uint64_t number,
                       struct bytes payload)
{
    const struct rh_message message = {
        .flags = RH_NO_REPLY,
        .from_kind = from->kind,
        .from = {from->id.data, from->id.size},
        .payload = {payload.data, payload.size},
    };

    a->callback = CALLBACK_MESSAGE;
    actor_enter_code(a);
    durable_take_send(a, from, number);
    call_code(a, &message);
    returned(a);
}

__attribute__((noinline)) static void run_other(struct rh_actor *a, const struct runtime_message *m)
{
    const bool runs = open_message(a, m);
    if ((m->flags & REQUEST_SESSION) != 0) {
        (void)extra_of(a);
        a->runtime->message = NULL;
        session_run(a, m);
        return;
    }
    if (runs) {
        call(a, m);
    }
    returned(a);
}

void runtime_run(struct rh_actor *a, const struct runtime_message *m)
{
    if (activation_has_ended(a)) {
        refuse(a, m->ticket);
    } else if (__builtin_expect(is_plain(a, m), true)) {
        run_plain(a, m);
    } else {
        run_other(a, m);
    }
}
