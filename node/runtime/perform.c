/* SPDX-License-Identifier: Apache-2.0
 *
 * A submission, done: the calls of this runtime that its verb stands for.
 */
#include "node/runtime/inside.h"

#include "base/assert.h"

static void activate(struct runtime *rt, const struct submission *s, struct bytes all)
{
    const struct runtime_entry entry = {.ops = s->ops,
                                        .shared = s->shared,
                                        .activation = s->activation,
                                        .bond = submission_head(s, all),
                                        .state = submission_rest(s, all),
                                        .has_state = s->has_state,
                                        .state_version = s->state_version,
                                        .fence = s->fence};

    (void)runtime_activate(rt, &entry);
}

static struct runtime_message message_of(const struct submission *s, struct bytes all,
                                         uint64_t chain[RECORD_CHAIN_MAX])
{
    return (struct runtime_message){.ticket = s->ticket,
                                    .flags = s->flags,
                                    .asked = s->asked,
                                    .name = s->name,
                                    .body = submission_rest(s, all),
                                    .chain_count = submission_chain(s, all, chain),
                                    .chain = chain};
}

/* Its context is behind its body. */
__attribute__((noinline)) static void run_traced(const struct submission *s, struct bytes all)
{
    uint64_t chain[RECORD_CHAIN_MAX];
    struct runtime_message message = message_of(s, all, chain);
    struct trace_context trace;

    trace_context_take(&message.body, &trace);
    message.trace = &trace;
    runtime_run(s->activation, &message);
}

static void run(const struct submission *s, struct bytes all)
{
    uint64_t chain[RECORD_CHAIN_MAX];

    if (__builtin_expect((s->flags & REQUEST_TRACED) != 0, false)) {
        run_traced(s, all);
        return;
    }
    const struct runtime_message message = message_of(s, all, chain);

    runtime_run(s->activation, &message);
}

static enum rh_why why_discarded(enum discard_why why)
{
    switch (why) {
    case DISCARD_MOVED:
        return RH_MOVED;
    case DISCARD_STOP:
        return RH_STOP;
    case DISCARD_FENCED:
    case DISCARD_ERA:
        return RH_FENCED;
    case DISCARD_BROKEN:
        return RH_BROKEN;
    }
    UNREACHABLE();
}

/* Of one that did not come to life, or has retired, there is nothing left. */
static void discard(struct rh_actor *a, enum discard_why why)
{
    if (activation_is_live(a) && why == DISCARD_ERA) {
        runtime_part(a, why_discarded(why)); // It tells DISCARD when it is through.
        return;
    }
    if (activation_is_live(a)) {
        runtime_discard(a, why_discarded(why));
    }
    runtime_tell_gone(a->runtime, name_of(a), VERB_DISCARD);
}

static void answer(struct runtime *rt, const struct submission *s, struct bytes all)
{
    const struct call_answer a = {.number = s->ticket, .status = s->status, .payload = all};

    runtime_answer(rt, &a);
}

void runtime_perform(struct runtime *rt, const struct submission *s, struct bytes all)
{
    switch ((int)s->verb) {
    case VERB_ACTIVATE:
        activate(rt, s, all);
        return;
    case VERB_RUN:
        run(s, all);
        return;
    case VERB_TURN:
        runtime_turn(s->activation, s->ticket);
        return;
    case VERB_EXPORT:
        runtime_export(s->activation);
        return;
    case VERB_COPY:
        runtime_copy(s->activation);
        return;
    case VERB_RETIRE:
        runtime_retire(s->activation);
        return;
    case VERB_UNFREEZE:
        runtime_unfreeze(s->activation);
        return;
    case VERB_DISCARD:
        discard(s->activation, s->why);
        return;
    case VERB_ANSWER:
        answer(rt, s, all);
        return;
    case VERB_GATEWAY:
        runtime_gateway_gone(rt, s->ticket);
        return;
    default:
        UNREACHABLE();
    }
}
