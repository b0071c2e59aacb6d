/* SPDX-License-Identifier: Apache-2.0
 *
 * The bundled actor `echo`: it answers each request with what it was sent.
 */
#include "node/actors/actors.h"

static int echo_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                         void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = NULL;
    return RH_OK;
}

static void echo_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct rh_bytes answer = message->payload;

    (void)instance;
    if (message->argument_count > 0) {
        answer = message->argument[message->argument_count - 1];
    }
    (void)rh_reply(actor, rh_bytes_value(answer.data, answer.size));
}

static void echo_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

const struct rh_actor_ops actor_echo = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "echo",
    .activate = echo_activate,
    .message = echo_message,
    .deactivate = echo_deactivate,
    .brief = 1,
    .ahead = 1,
};
