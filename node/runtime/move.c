/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports an actor's state for a move, or copies it ahead of one, and lets it go on when the move
 * is called off. At the new owner a state of another version is upgraded.
 */
#include "node/runtime/inside.h"

#include "base/assert.h"
#include "base/mem.h"

enum { SPARE_SIZE_MAX = 16 * 1024 };

/* Actors that move come by the thousand, one after the other: what one wrote into serves the next.
 */
static struct rh_out *out_new(struct runtime *s, size_t size_max)
{
    struct rh_out *out = s->spare_out;

    if (out == NULL) {
        out = mem_new(1, sizeof *out);
    }
    s->spare_out = NULL;
    out->size_max = size_max;
    out->over = false;
    return out;
}

static void out_give_back(struct runtime *s, struct rh_out *out)
{
    if (s->spare_out == NULL && out->state.cap <= SPARE_SIZE_MAX) {
        buffer_clear(&out->state);
        s->spare_out = out;
        return;
    }
    buffer_fini(&out->state);
    mem_free(out);
}

void out_drop(struct rh_actor *a)
{
    struct rh_out *out = a->extra->out;

    a->extra->out = NULL;
    out_give_back(a->runtime, out);
}

void outs_fini(struct runtime *s)
{
    if (s->spare_out != NULL) {
        buffer_fini(&s->spare_out->state);
        mem_free(s->spare_out);
    }
}

void actor_exported(struct rh_actor *a, int result)
{
    struct rh_out *out = a->extra->out;
    const bool copy = a->task == VERB_COPY;
    struct completion event = {.verb = copy ? VERB_COPY : VERB_EXPORT, .actor = name_of(a)};

    actor_end_task(a);
    if (result == RH_BUSY || (copy && (result != RH_OK || out->over))) {
        event.error = ERR_BUSY;
    } else {
        a->frozen = !copy;
        a->poked = a->poked && copy;
        event.head = bonds_pack(a);
        event.number = a->extra->session;
        event.has_state = result == RH_OK && !out->over;
        event.bytes = event.has_state ? buffer_bytes(&out->state) : (struct bytes){0};
        if (out->over) {
            actor_complain(a,
                           "state_too_big",
                           "the actor moves without its state: handoff wrote more than state_max");
        }
    }
    a->runtime->config.on_completion(a->runtime->config.context, &event);
    out_drop(a);
    if (copy || result == RH_BUSY) {
        actor_want_turn(a);
    }
    extras_calm(a);
}

static size_t state_size_max(const struct rh_actor *a)
{
    const size_t wanted =
        role_of(a)->ops->state_max == 0 ? RUNTIME_STATE_DEFAULT : role_of(a)->ops->state_max;
    const size_t granted = a->runtime->config.state_size_max;

    return wanted < granted ? wanted : granted;
}

bool actor_upgrade(struct rh_actor *a, uint32_t version, struct rh_bytes *state,
                   struct rh_out **kept)
{
    const struct rh_actor_ops *ops = role_of(a)->ops;
    const bool reads = ops->upgrade != NULL && version >= ops->state_version_least &&
                       version <= ops->state_version_most;

    if (version == ops->state_version) {
        return true;
    }
    // The host refuses a state that can't be read before it is the owner; this is for its mistakes.
    if (reads) {
        struct rh_out *out = *kept = out_new(a->runtime, state_size_max(a));

        if (ops->upgrade(a, version, state, out) == RH_OK && !out->over) {
            *state = (struct rh_bytes){out->state.data, out->state.size};
            return true;
        }
    }
    actor_complain(a,
                   "state_not_upgraded",
                   reads ? "the actor can't start: upgrade failed, or wrote more than state_max"
                         : "the actor can't start: its kind does not read this version");
    return false;
}

void actor_upgrade_end(struct runtime *s, struct rh_out *kept)
{
    if (kept != NULL) {
        out_give_back(s, kept);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
static void hand_off(struct rh_actor *a)
{
    extra_of(a)->out = out_new(a->runtime, state_size_max(a));
    if (role_of(a)->ops->handoff == NULL) {
        actor_exported(a, RH_OK);
        return;
    }
    a->callback = CALLBACK_HANDOFF;
    actor_returned(a, role_of(a)->ops->handoff(a, a->instance, a->extra->out));
}

/* It goes on, and is asked again. */
static void not_now(struct rh_actor *a)
{
    const struct completion event = {.verb = a->task, .actor = name_of(a), .error = ERR_BUSY};

    actor_end_task(a);
    a->runtime->config.on_completion(a->runtime->config.context, &event);
    actor_want_turn(a);
}

void runtime_export(struct rh_actor *a)
{
    ASSERT(a->task == VERB_NONE && !a->frozen);
    a->task = VERB_EXPORT;
    if (session_is_due(a)) {
        not_now(a); // what it is to be told does not travel
    } else if (role_of(a)->ops->flush != NULL) {
        actor_flush(a, RH_MOVED);
    } else {
        hand_off(a);
    }
}

void runtime_copy(struct rh_actor *a)
{
    ASSERT(a->task == VERB_NONE && !a->frozen && role_of(a)->ops->flush == NULL);
    a->task = VERB_COPY;
    if (session_is_due(a)) {
        not_now(a);
    } else {
        hand_off(a);
    }
}

/* Its flush for the move is through. */
// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
void actor_flushed_to_move(struct rh_actor *a, int result)
{
    if (result == RH_OK) {
        hand_off(a);
    } else {
        not_now(a);
    }
}

void runtime_unfreeze(struct rh_actor *a)
{
    ASSERT(a->task == VERB_NONE && a->frozen);
    a->frozen = false;
    if (role_of(a)->ops->resume != NULL) {
        a->callback = CALLBACK_RESUME;
        role_of(a)->ops->resume(a, a->instance);
        a->callback = CALLBACK_NONE;
    }
    if (a->extra->durable != NULL) {
        durable_sends_go(a);
    }
    actor_want_turn(a);
}
