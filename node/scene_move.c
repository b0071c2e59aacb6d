/* SPDX-License-Identifier: Apache-2.0 */
#include "node/scene_inside.h"

#include "base/assert.h"
#include "base/mem.h"

static void drop_out(struct rh_actor *a)
{
    buffer_fini(&a->out->state);
    mem_free(a->out);
    a->out = NULL;
}

void actor_exported(struct rh_actor *a, int result)
{
    struct rh_out *out = a->out;
    struct scene_event event = {.type = SCENE_EXPORTED, .actor = a->outer};

    actor_end_task(a);
    if (result == RH_BUSY) {
        event.error = ERR_BUSY;
    } else {
        a->frozen = true;
        a->poked = false;
        event.has_state = result == RH_OK && !out->over;
        event.bytes = event.has_state ? buffer_bytes(&out->state) : (struct bytes){0};
        if (out->over) {
            actor_complain(a, "state_too_big", "it moves cold: handoff wrote over state_max");
        }
    }
    a->scene->config.on_event(a->scene->config.context, &event);
    drop_out(a);
    if (result == RH_BUSY) {
        actor_want_turn(a);
    }
}

static size_t state_size_max(const struct rh_actor *a)
{
    const size_t wanted = a->ops->state_max == 0 ? SCENE_STATE_DEFAULT : a->ops->state_max;
    const size_t granted = a->scene->config.state_size_max;

    return wanted < granted ? wanted : granted;
}

// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
static void hand_off(struct rh_actor *a)
{
    a->out = mem_new(1, sizeof *a->out);
    a->out->size_max = state_size_max(a);
    if (a->ops->handoff == NULL) {
        actor_exported(a, RH_OK);
        return;
    }
    a->callback = CALLBACK_HANDOFF;
    actor_returned(a, a->ops->handoff(a, a->instance, a->out));
}

void scene_export(struct rh_actor *a)
{
    ASSERT(a->task == TASK_NONE && !a->frozen);
    a->task = TASK_EXPORT;
    if (a->ops->flush != NULL) {
        actor_flush(a, RH_MOVED);
    } else {
        hand_off(a);
    }
}

/* Its flush for the move is through. */
// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
void actor_flushed_to_move(struct rh_actor *a, int result)
{
    const struct scene_event event = {.type = SCENE_EXPORTED, .actor = a->outer, .error = ERR_BUSY};

    if (result == RH_OK) {
        hand_off(a);
        return;
    }
    actor_end_task(a);
    a->scene->config.on_event(a->scene->config.context, &event);
    actor_want_turn(a);
}

void scene_unfreeze(struct rh_actor *a)
{
    ASSERT(a->task == TASK_NONE && a->frozen);
    a->frozen = false;
    if (a->ops->resume != NULL) {
        a->callback = CALLBACK_RESUME;
        a->ops->resume(a, a->instance);
        a->callback = CALLBACK_NONE;
    }
    actor_want_turn(a);
}
