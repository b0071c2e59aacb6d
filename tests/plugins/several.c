/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared object with several kinds: an orc and a wolf say what they are, and a ghost has no
 * callbacks.
 */
#include <ringhold.h>

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = NULL;
    return RH_OK;
}

static void on_orc(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    (void)instance;
    (void)message;
    (void)rh_reply(actor, rh_text("orc"));
}

static void on_wolf(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    (void)instance;
    (void)message;
    (void)rh_reply(actor, rh_text("wolf"));
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

static const struct rh_actor_ops orc = {.abi = RH_ABI,
                                        .size = sizeof(struct rh_actor_ops),
                                        .name = "orc",
                                        .activate = on_activate,
                                        .message = on_orc,
                                        .deactivate = on_deactivate};
static const struct rh_actor_ops wolf = {.abi = RH_ABI,
                                         .size = sizeof(struct rh_actor_ops),
                                         .name = "wolf",
                                         .activate = on_activate,
                                         .message = on_wolf,
                                         .deactivate = on_deactivate};
static const struct rh_actor_ops ghost = {
    .abi = RH_ABI, .size = sizeof(struct rh_actor_ops), .name = "ghost"};

const struct rh_actor_ops *const ringhold_actors[] = {&orc, &wolf, &ghost, NULL};
