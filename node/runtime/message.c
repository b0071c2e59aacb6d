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

/* Of a submission. */
__attribute__((noinline)) static void complete(struct rh_actor *a, const struct at_once *run)
{
    const struct completion event = {.verb = VERB_RUN,
                                     .actor = name_of(a),
                                     .ticket = run->ticket,
                                     .error = run->error,
                                     .code = run->code,
                                     .bytes = run->answer};

    a->runtime->config.on_completion(a->runtime->config.context, &event);
}

void actor_ran(struct rh_actor *a, enum answer_code code, struct bytes body)
{
    struct at_once *now = at_once_of(a->runtime);

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
    if (now != NULL) {
        *a->runtime->config.at_once = NULL;
        now->code = code;
        now->error = ERR_OK;
        now->answer = body;
        now->done = true;
    } else {
        complete(a, &(struct at_once){.ticket = a->extra->ticket, .code = code, .answer = body});
    }
    if (a->task == VERB_NONE) {
        actor_want_turn(a);
    }
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

static uint32_t message_flags(uint8_t flags)
{
    return ((flags & REQUEST_NO_REPLY) != 0 ? RH_NO_REPLY : 0u) |
           ((flags & REQUEST_IDEMPOTENT) != 0 ? RH_IDEMPOTENT : 0u);
}

static void open_message(struct rh_actor *a, const struct runtime_message *m)
{
    ASSERT(a->task == VERB_NONE && !a->frozen);
    a->task = VERB_RUN;
    a->callback = CALLBACK_MESSAGE;
    a->answered = false;
    struct extras *x = extra_of(a);
    x->ticket = m->ticket;
    x->flags = m->flags;
    x->chain_count = m->chain_count;
    if (m->chain_count > 0) {
        memcpy(x->chain, m->chain, m->chain_count * sizeof x->chain[0]);
    }
}

/* False if it does not decode; its sender is one of us, so that is nobody's actor. */
static bool open_body(const struct runtime_message *m, struct rh_bytes list[ARGS_MAX],
                      struct rh_message *message)
{
    struct bytes body = m->body;
    struct caller caller = {0};

    if ((m->flags & REQUEST_CALL) != 0 && caller_get(&body, &caller) != ERR_OK) {
        return false;
    }
    message->from_kind = caller.kind;
    message->from = (struct rh_bytes){caller.id.data, caller.id.size};
    if ((m->flags & REQUEST_COMMAND) != 0) {
        return open_arguments(body, list, message);
    }
    message->payload = (struct rh_bytes){body.data, body.size};
    return true;
}

bool activation_has_ended(const struct rh_actor *a)
{
    return (a->ending || a->broken) && !mutant(M_RUNENDED);
}

static void refuse(struct rh_actor *a, uint64_t ticket)
{
    struct at_once *now = at_once_of(a->runtime);

    ASSERT(a->task == VERB_NONE && !a->frozen);
    if (now != NULL) {
        *a->runtime->config.at_once = NULL;
        now->error = ERR_BUSY;
        now->done = true;
    } else {
        complete(a, &(struct at_once){.ticket = ticket, .error = ERR_BUSY});
    }
}

void runtime_run(struct rh_actor *a, const struct runtime_message *m)
{
    struct rh_bytes list[ARGS_MAX];
    struct rh_message message = {.flags = message_flags(m->flags)};

    if (activation_has_ended(a)) {
        refuse(a, m->ticket);
        return;
    }
    open_message(a, m);
    if ((m->flags & REQUEST_SESSION) != 0) {
        session_run(a, m);
        return;
    }
    if (open_body(m, list, &message)) {
        role_of(a)->ops->message(a, a->instance, &message);
    } else {
        (void)rh_reply(a, rh_error("ERR the command can't be decoded"));
    }
    if (!a->answered && a->extra->deferral != NULL) {
        a->deferred = true;
        runtime_tell(a, VERB_DEFER);
        calls_pump(a);
        return;
    }
    if (!a->answered) {
        (void)rh_reply(a, rh_nil());
    }
    actor_end_task(a);
    actor_want_turn(a);
}
