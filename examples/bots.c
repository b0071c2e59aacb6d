/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor for `ringhold bot --check count`: it answers each request with how many
 * it has run, and pushes a number to its player each second.
 *
 *     ringhold node --actor ./bots.so
 *     ringhold bot 127.0.0.1:6381 --n 10000 --check count --drop 20 --time 1min
 *
 * What it has counted moves with it, so a request that is lost or run twice, by a
 * move or by a line that dropped, shows in the next answer.
 */
#include <ringhold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUSH_MS = 1000 };

struct player {
    uint64_t ran;    /* requests */
    uint64_t pushed; /* numbers */
};

static struct rh_bytes in_digits(char text[24], uint64_t number)
{
    const int size = snprintf(text, 24, "%" PRIu64, number);
    const struct rh_bytes b = {text, (size_t)size};

    return b;
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct player *p = calloc(1, sizeof *p);

    (void)fence;
    *instance = p;
    if (p == NULL) {
        return RH_FAILED;
    }
    if (state != NULL && state->size == sizeof *p) {
        memcpy(p, state->data, sizeof *p);
    }
    return rh_timer_start(actor, PUSH_MS, PUSH_MS, NULL) != 0 ? RH_OK : RH_FAILED;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct player *p = instance;
    char text[24];

    (void)message;
    p->ran++;
    const struct rh_bytes answer = in_digits(text, p->ran);
    (void)rh_reply(actor, rh_bytes_value(answer.data, answer.size));
}

static void on_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    struct player *p = instance;
    char text[24];

    (void)timer;
    (void)argument;
    if (rh_push(actor, in_digits(text, p->pushed + 1)) == RH_OK) {
        p->pushed++;
    }
}

/* Any client may be bound to it. */
static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    (void)actor;
    (void)instance;
    (void)event;
    return RH_OK;
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    (void)actor;
    rh_out_put(out, instance, sizeof(struct player));
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
    .name = "bots",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .timer = on_timer,
    .session = on_session,
};
