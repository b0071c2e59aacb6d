/* SPDX-License-Identifier: Apache-2.0
 *
 * rh_call, rh_send and rh_push_ids: calls that leave, and answers that come
 * back.
 */
#include "node/runtime/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "node/calls/broadcasts.h"

#include <stdatomic.h>
#include <string.h>

enum {
    TIMEOUT_MAX_MS = 60000,
    PUSH_IDS_MAX = 65536, /* of one rh_push_ids() */
};

static void call_free(struct open_call *c)
{
    table_remove(&c->actor->runtime->calls, &c->by_number);
    list_remove(&c->in_actor);
    c->actor->extra->call_count -= c->send == 0 ? 1 : 0;
    if (list_linked(&c->due.link)) {
        list_remove(&c->due.link);
    }
    buffer_fini(&c->payload);
    const rh_destroy destroy = c->destroy;
    void *argument = c->argument;
    pool_give(&c->actor->runtime->call_memory, c->handle);
    if (destroy != NULL) {
        destroy(argument);
    }
}

void calls_drop(struct rh_actor *a)
{
    struct list_link *at;

    while ((at = list_front(&a->extra->calls)) != NULL) {
        call_free(CONTAINER_OF(at, struct open_call, in_actor));
    }
}

static void hand_out(struct open_call *c, struct bytes payload)
{
    struct rh_actor *a = c->actor;
    const rh_on_answer then = c->then;
    void *argument = c->argument;
    const rh_destroy destroy = c->destroy;
    const struct rh_answer answer = {c->status, {payload.data, payload.size}};

    c->destroy = NULL;
    call_free(c); // First: it may call again, up to the limit.
    actor_enter_code(a);
    then(a, a->instance, &answer, argument);
    actor_leave_code(a, true);
    if (destroy != NULL) {
        destroy(argument);
    }
}

void call_end(struct open_call *c)
{
    struct buffer payload = c->payload;

    c->payload = (struct buffer){0};
    hand_out(c, buffer_bytes(&payload));
    buffer_fini(&payload);
}

/* The next answer that waits, or NULL. */
static struct open_call *next_answer(const struct rh_actor *a)
{
    for (struct list_link *l = list_front(&a->extra->due); l != NULL;
         l = list_next(&a->extra->due, l)) {
        struct due *due = CONTAINER_OF(l, struct due, link);

        if (!due->is_timer && !due->is_post) {
            return CONTAINER_OF(due, struct open_call, due);
        }
    }
    return NULL;
}

/* What is deferred may wait for the answer of a call that it has made, or an earlier task of the
 * same actor: a turn would come too late for it. */
void calls_pump(struct rh_actor *a)
{
    struct open_call *c = NULL;

    while (a->deferred && !deferral_is_finished(a) && (c = next_answer(a)) != NULL) {
        list_remove(&c->due.link);
        call_end(c);
    }
}

/* What is told of a call that did not go well and whose actor gave no reason. */
static const char *reason_of(int status)
{
    switch (status) {
    case RH_FAILED:
        return "ERR the actor gave no reason";
    case RH_TIMEOUT:
        return "TIMEOUT no answer in time; the call may have run, at most once";
    case RH_REJECTED:
        return "REJECTED no owner in time; the call did not run";
    case RH_NO_KIND:
        return "NOKIND no node hosts that kind";
    case RH_OVERLOADED:
        return "OVERLOADED the call did not run";
    case RH_QUARANTINED:
        return "QUARANTINED the actor killed its node's process repeatedly; the call did not run";
    case RH_DEADLOCK:
        return "DEADLOCK the actor waits for the caller's answer; the call did not run";
    default:
        return "UNKNOWN outcome: the call may have run, at most once";
    }
}

struct bytes runtime_told(const struct call_answer *answer)
{
    const bool own = answer->status == RH_FAILED && answer->payload.size > 0;

    if (answer->status == RH_OK || own) {
        return answer->payload;
    }
    const char *reason = reason_of(answer->status);

    return bytes_of(reason, strlen(reason));
}

void runtime_answer(struct runtime *s, const struct call_answer *answer)
{
    // The mix is one to one: equal hashes are equal numbers.
    struct table_link *found = table_first(&s->calls, table_mix(answer->number));

    if (found == NULL) {
        return; // Its actor moved, or stopped.
    }
    struct open_call *c = CONTAINER_OF(found, struct open_call, by_number);
    struct rh_actor *a = c->actor;

    if (c->send != 0) {
        const uint64_t send = c->send;

        call_free(c);
        durable_send_ended(a, send, answer);
        return;
    }
    if (answer->status == RH_NO_KIND) {
        actor_complain(a, "unknown_kind", "the actor called an actor of a kind that no node hosts");
    } else if (answer->status == RH_DEADLOCK) {
        actor_complain(a, "deadlock", "the actor called an actor that waits for its answer");
    }
    const struct bytes payload = runtime_told(answer);

    c->status = answer->status;
    if (a->deferred && !deferral_is_finished(a) && next_answer(a) == NULL) {
        runtime_enter(s, a);
        hand_out(c, payload);
        return;
    }
    buffer_put(&c->payload, payload.data, payload.size);
    list_push_back(&a->extra->due, &c->due.link);
    if (a->deferred) {
        runtime_enter(s, a);
        calls_pump(a);
    } else {
        actor_want_turn(a);
    }
}

/* ---- ringhold.h ---- */

static int check(const struct rh_actor *a, const struct call *call)
{
    if (!actor_may_ask(a) || call->id.size == 0 || call->id.size > RECORD_ID_MAX ||
        call->id.data == NULL || (call->payload.data == NULL && call->payload.size > 0)) {
        return RH_INVALID;
    }
    return call->payload.size > RECORD_BODY_MAX ? RH_TOO_BIG : RH_OK;
}

static struct call call_of(struct rh_actor *a, uint16_t kind, struct rh_bytes id,
                           struct rh_bytes payload)
{
    struct call call = {
        .from_kind = a->kind,
        .from = bytes_of(a->id, a->id_size),
        .kind = kind,
        .id = bytes_of(id.data, id.size),
        .payload = bytes_of(payload.data, payload.size),
    };

    if (a->task == VERB_RUN) {
        const struct extras *x = extra_of(a);

        call.run = x->ticket;
        call.chain_count = x->chain_count;
        memcpy(call.chain, x->chain, sizeof call.chain);
    }
    return call;
}

static struct completion complete_call(struct rh_actor *a, struct call *call)
{
    struct extras *x = extra_of(a);

    if (x->session == 0) {
        x->session = atomic_fetch_add(&a->runtime->config.numbering->callers, 1) + 1;
    }
    call->worker = a->runtime->config.worker;
    call->session = x->session;
    return (struct completion){.verb = VERB_CALL, .actor = name_of(a), .call = call};
}

static void tell_call(struct rh_actor *a, struct call *call)
{
    const struct completion event = complete_call(a, call);

    actor_say(a, &event);
}

void call_tell(struct rh_actor *a, struct call *call)
{
    const struct completion event = complete_call(a, call);

    a->runtime->config.on_completion(a->runtime->config.context, &event);
}

static struct open_call *open_call_new(struct rh_actor *a)
{
    struct runtime *s = a->runtime;
    uint32_t handle = 0;
    struct open_call *c = pool_take(&s->call_memory, sizeof *c, &handle);

    c->handle = handle;
    c->actor = a;
    c->number = atomic_fetch_add(&s->config.numbering->calls, 1) + 1;
    c->number |= role_of(a)->ops->brief != 0 ? CALL_BRIEF : 0;
    table_put(&s->calls, &c->by_number, table_mix(c->number));
    list_push_back(&extra_of(a)->calls, &c->in_actor);
    return c;
}

uint64_t call_open_send(struct rh_actor *a, uint64_t send)
{
    struct open_call *c = open_call_new(a);

    c->send = send;
    return c->number;
}

/* What gets the answer. */
struct handler {
    rh_on_answer then;
    void *argument;
    rh_destroy destroy;
};

// NOLINTNEXTLINE(readability-function-size): what a call is made of, as ringhold.h has it
static int ask(struct rh_actor *actor, uint16_t kind, struct rh_bytes id, struct rh_bytes payload,
               uint32_t timeout_ms, uint32_t flags, const struct handler *handler)
{
    if (actor == NULL) {
        return RH_INVALID;
    }
    struct call call = call_of(actor, kind, id, payload);
    const int checked = check(actor, &call);
    const bool is_itself = kind == actor->kind && bytes_equal(call.id, call.from);

    if (checked != RH_OK) {
        return checked;
    }
    if (timeout_ms == 0 || timeout_ms > TIMEOUT_MAX_MS || handler->then == NULL ||
        (flags & ~(uint32_t)RH_IDEMPOTENT) != 0) {
        return RH_INVALID;
    }
    if (is_itself) {
        actor_complain(
            actor, "calls_itself", "the actor would wait for itself: its call is refused");
        return RH_INVALID;
    }
    if (actor->extra->call_count == RUNTIME_CALLS_MAX) {
        return RH_OVERLOADED;
    }
    struct open_call *c = open_call_new(actor);
    c->then = handler->then;
    c->argument = handler->argument;
    c->destroy = handler->destroy;
    actor->extra->call_count++;
    call.number = c->number;
    call.timeout_ms = timeout_ms;
    call.flags = flags;
    tell_call(actor, &call);
    return RH_OK;
}

// NOLINTNEXTLINE(readability-function-size): the same
int rh_call(struct rh_actor *actor, uint16_t kind, struct rh_bytes id, struct rh_bytes payload,
            uint32_t timeout_ms, uint32_t flags, rh_on_answer then, void *argument)
{
    const struct handler handler = {.then = then, .argument = argument};

    return ask(actor, kind, id, payload, timeout_ms, flags, &handler);
}

// NOLINTNEXTLINE(readability-function-size): the same
int rh_call_owned(struct rh_actor *actor, uint16_t kind, struct rh_bytes id,
                  struct rh_bytes payload, uint32_t timeout_ms, uint32_t flags, rh_on_answer then,
                  void *argument, rh_destroy destroy)
{
    const struct handler handler = {.then = then, .argument = argument, .destroy = destroy};

    if (destroy == NULL) {
        return RH_INVALID;
    }
    const int asked = ask(actor, kind, id, payload, timeout_ms, flags, &handler);
    if (asked != RH_OK) {
        destroy(argument);
    }
    return asked;
}

static int check_ids(const struct rh_actor *a, const struct rh_bytes *ids, size_t count,
                     struct rh_bytes payload)
{
    if (a == NULL || !actor_may_ask(a) || count == 0 || count > PUSH_IDS_MAX || ids == NULL ||
        (payload.data == NULL && payload.size > 0)) {
        return RH_INVALID;
    }
    for (size_t i = 0; i < count; i++) {
        if (ids[i].data == NULL || ids[i].size == 0 || ids[i].size > RECORD_ID_MAX) {
            return RH_INVALID;
        }
    }
    return payload.size > PUSH_SIZE_MAX ? RH_TOO_BIG : RH_OK;
}

int broadcast_tell(struct rh_actor *a, const struct broadcast *to, struct rh_bytes payload)
{
    const struct note note = {.type = NOTE_PUSH, .payload = bytes_of(payload.data, payload.size)};
    struct broadcasting *broadcasting = a->runtime->config.broadcasting;
    struct buffer body = {0};

    note_put(&body, &note);
    struct call call = call_of(a, to->kind, to->ids, (struct rh_bytes){body.data, body.size});
    call.count = to->count;
    call.flags = RH_NO_REPLY;
    call.push = true;
    // What waits already goes first, however little it is: one alone is never refused.
    const size_t before =
        broadcasting == NULL ? 0 : atomic_fetch_add(&broadcasting->size, broadcast_size(&call));
    const bool fits = before == 0 || before + broadcast_size(&call) <= BROADCASTS_SIZE_MAX;
    if (fits) {
        tell_call(a, &call);
    } else {
        (void)atomic_fetch_sub(&broadcasting->size, broadcast_size(&call));
        (void)atomic_fetch_add(&broadcasting->refused, 1);
    }
    buffer_fini(&body);
    return fits ? RH_OK : RH_OVERLOADED;
}

int rh_push_ids(struct rh_actor *actor, uint16_t kind, const struct rh_bytes *ids, size_t count,
                struct rh_bytes payload)
{
    const int checked = check_ids(actor, ids, count, payload);
    struct buffer packed = {0};

    if (checked != RH_OK) {
        return checked;
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t size = (uint8_t)ids[i].size;

        buffer_put(&packed, &size, sizeof size);
        buffer_put(&packed, ids[i].data, size);
    }
    const struct broadcast to = {.kind = kind, .ids = {packed.data, packed.size}, .count = count};
    const int told = broadcast_tell(actor, &to, payload);
    buffer_fini(&packed);
    return told;
}

int rh_send(struct rh_actor *actor, uint16_t kind, struct rh_bytes id, struct rh_bytes payload)
{
    if (actor == NULL) {
        return RH_INVALID;
    }
    struct call call = call_of(actor, kind, id, payload);
    const int checked = check(actor, &call);

    if (checked == RH_OK) {
        call.flags = RH_NO_REPLY;
        tell_call(actor, &call);
    }
    return checked;
}
