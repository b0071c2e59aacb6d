/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor that misbehaves as its payload says: tests/e2e/smoke/smoke_unruly.py wants
 * the node, and all other actors, to live on.
 */
#include <ringhold.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rh_token last; /* of an actor that may be gone by now */

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    const struct rh_bytes id = rh_id(actor);

    (void)state;
    (void)fence;
    *instance = NULL;
    return id.size >= 8 && memcmp(id.data, "nonsense", 8) == 0 ? 77 : RH_OK;
}

static void on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                      void *argument)
{
    (void)instance;
    (void)argument;
    (void)rh_reply(actor, rh_integer(answer->status));
}

static int call(struct rh_actor *actor, uint16_t kind, struct rh_bytes id)
{
    const struct rh_bytes payload = {"hi", 2};

    return rh_call(actor, kind, id, payload, 10000, 0, on_answer, NULL);
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    static const struct rh_bytes other = {"other", 5};
    char what[16] = "";

    (void)instance;
    if (rh_id(actor).size >= 6 && memcmp(rh_id(actor).data, "poison", 6) == 0) {
        abort(); /* whatever it is told, by a GET too, which is sent again */
    }
    memcpy(what, message->payload.data, message->payload.size < 15 ? message->payload.size : 15);
    if (strcmp(what, "hang") == 0) {
        for (;;) {
            (void)pause();
        }
    } else if (strcmp(what, "die") == 0) {
        abort();
    } else if (strcmp(what, "defer") == 0) {
        last = rh_defer(actor); /* and never answers */
    } else if (strcmp(what, "twice") == 0) {
        (void)rh_reply(actor, rh_text("first"));
        (void)rh_reply(actor, rh_text("second"));
    } else if (strcmp(what, "late") == 0) {
        (void)rh_reply(actor, rh_integer(rh_reply_later(last, rh_text("late"))));
    } else if (strcmp(what, "self") == 0) {
        (void)rh_reply(actor, rh_integer(call(actor, 0, rh_id(actor))));
    } else if (strcmp(what, "unknown") == 0) {
        (void)rh_defer(actor);
        if (call(actor, 999, other) != RH_OK) {
            (void)rh_reply(actor, rh_error("ERR not sent"));
        }
    } else if (strcmp(what, "quit") == 0) {
        last = rh_defer(actor); /* it ends meanwhile, and is answered then */
        (void)rh_fail(actor, "ERR quit");
    } else if (strcmp(what, "nowhere") == 0) {
        (void)rh_reply(actor, rh_integer(rh_send(actor, 999, other, other)));
    } else if (strcmp(what, "fail") == 0) {
        (void)rh_fail(actor, "ERR broken");
    } else {
        (void)rh_reply(actor, rh_text("fine"));
    }
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    static const char zeros[64 * 1024];

    (void)actor;
    (void)instance;
    for (int i = 0; i < 32; i++) {
        rh_out_put(out, zeros, sizeof zeros); /* twice as much as it may */
    }
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)instance;
    (void)why;
    (void)rh_reply(actor, rh_nil());
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "unruly",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
};
