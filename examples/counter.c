/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor in forty lines: it counts the calls of its id, and takes its count
 * along when it moves.
 *
 *     cc -shared -fPIC -Iinclude examples/counter.c -o counter.so
 *     ringhold node --actor ./counter.so …
 */
#include <ringhold.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct counter {
    int64_t count;
};

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct counter *c = calloc(1, sizeof *c);

    (void)actor;
    (void)fence; /* a store would be asked to refuse smaller ones */
    if (c == NULL || (state != NULL && state->size != sizeof c->count)) {
        free(c);
        return RH_FAILED;
    }
    if (state != NULL) {
        memcpy(&c->count, state->data, sizeof c->count);
    }
    *instance = c;
    return RH_OK;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct counter *c = instance;

    (void)message;
    c->count++;
    (void)rh_reply(actor, rh_integer(c->count));
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct counter *c = instance;

    (void)actor;
    rh_out_put(out, &c->count, sizeof c->count);
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)why;
    free(instance);
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "counter",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .idle_ms = UINT32_MAX, /* its state is nowhere else */
};
