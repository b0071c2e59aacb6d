/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor that keeps the client it has: another one is refused. It waits but half a second for one
 * that is lost. Any message is pushed to the client; the answer is the result.
 */
#include <ringhold.h>

#include <stddef.h>

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = NULL;
    return RH_OK;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    (void)instance;
    (void)rh_reply(actor, rh_integer(rh_push(actor, message->payload)));
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    (void)actor;
    (void)instance;
    (void)event;
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "jealous",
    .activate = on_activate,
    .message = on_message,
    .deactivate = on_deactivate,
    .session = on_session,
    .sessions = RH_SESSIONS_REJECT_NEW,
    .resume_ms = 500,
};
