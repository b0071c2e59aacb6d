/* SPDX-License-Identifier: Apache-2.0
 *
 * A kind at a host, on a runtime of its own, without a node and without sockets: what the host says
 * is given to its link, and what is said to it is read there.
 */
#ifndef TESTS_HOSTED_HOSTED_RIG_H
#define TESTS_HOSTED_HOSTED_RIG_H

#include "hosted/inside.h"
#include "tests/node/runtime_rig.h"

struct hosted_rig {
    struct runtime_rig stage;
    struct hosted *hosted;
    const struct rh_actor_ops *ops;
    void *shared;
    struct hosted_link *link;
    struct buffer out; /* what was taken of the link last */
    uint64_t now_us;
};

/* One kind, number 3, as `words` declare it. Nobody is connected. */
static inline void hosted_rig_open(struct hosted_rig *t, const char *words)
{
    const struct hosted_options options = {
        .listener = -1, .node = "n1", .token = "", .silence_ms = 3000};
    const struct rh_kind_info info = {
        .size = sizeof info, .kind = 3, .node = "n1", .argument = words};

    *t = (struct hosted_rig){.now_us = 1000000};
    t->hosted = hosted_open(&options);
    t->ops = hosted_kind(t->hosted, words);
    assert_non_null(t->ops);
    assert_non_null(hosted_kind(t->hosted, "unused")); // so it never listens
    assert_int_equal(t->ops->start(&info, &t->shared), RH_OK);
    t->hosted->now_us = t->now_us;
    runtime_rig_build(&t->stage);
}

static inline void hosted_rig_drop_link(struct hosted_rig *t)
{
    hosted_link_free(t->link);
    t->link = NULL;
}

static inline void hosted_rig_close(struct hosted_rig *t)
{
    runtime_rig_close(&t->stage);
    if (t->link != NULL) {
        hosted_rig_drop_link(t);
    }
    buffer_fini(&t->out);
    assert_int_equal(t->hosted->queued, 0);
    assert_int_equal(atomic_load(&t->hosted->stats.waiting), 0);
    hosted_close(t->hosted);
}

static inline void hosted_rig_activate(struct hosted_rig *t, const char *id)
{
    const struct runtime_entry entry = {.ops = t->ops,
                                        .shared = t->shared,
                                        .fence = 7,
                                        .kind = 3,
                                        .id = bytes_of(id, strlen(id)),
                                        .actor = &t->stage};

    t->stage.actor = runtime_activate(t->stage.runtime, &entry);
}

/* Time goes by, for all. */
static inline void hosted_rig_wait(struct hosted_rig *t, uint64_t ms)
{
    t->now_us += ms * 1000;
    hosted_tick(t->hosted, t->now_us);
    runtime_tick(t->stage.runtime, t->now_us);
    runtime_tick(t->stage.runtime, t->now_us); // what the first one finished
}

/* What was said to the host since the last time; borrowed until the next. */
static inline struct bytes hosted_rig_heard(struct hosted_rig *t)
{
    buffer_clear(&t->out);
    (void)hosted_link_take(t->link, &t->out);
    return buffer_bytes(&t->out);
}

/* The one message that was said. Owned by the caller: to_host_free(). */
static inline Rh__Host__ToHost *hosted_rig_said(struct hosted_rig *t)
{
    const struct bytes frame = hosted_rig_heard(t);

    if (frame.size == 0) {
        return rh__host__to_host__unpack(NULL, 0, NULL);
    }
    assert_true(frame.size >= 4);
    Rh__Host__ToHost *to = rh__host__to_host__unpack(NULL, frame.size - 4, frame.data + 4);
    assert_non_null(to);
    return to;
}

/* The body of the last message that was said since the last time; 0 = nothing was. */
static inline int hosted_rig_last(struct hosted_rig *t)
{
    Rh__Host__ToHost *to = hosted_rig_said(t);
    const int last = to->n_says == 0 ? 0 : (int)to->says[to->n_says - 1]->body_case;

    rh__host__to_host__free_unpacked(to, NULL);
    return last;
}

static inline void hosted_rig_frame(struct hosted_rig *t, struct bytes message)
{
    struct buffer frame = {0};
    const uint8_t size[4] = {(uint8_t)(message.size >> 24),
                             (uint8_t)(message.size >> 16),
                             (uint8_t)(message.size >> 8),
                             (uint8_t)message.size};

    buffer_put(&frame, size, sizeof size);
    buffer_put(&frame, message.data, message.size);
    hosted_link_receive(t->link, buffer_bytes(&frame));
    buffer_fini(&frame);
}

/* The host says this; what it is about is done. */
static inline void hosted_rig_say(struct hosted_rig *t, Rh__Host__HostSays *says)
{
    Rh__Host__ToNode to = RH__HOST__TO_NODE__INIT;
    uint8_t packed[4096];

    to.says = &says;
    to.n_says = 1;
    assert_true(rh__host__to_node__get_packed_size(&to) <= sizeof packed);
    hosted_rig_frame(t, bytes_of(packed, rh__host__to_node__pack(&to, packed)));
    hosted_rig_wait(t, 0);
}

static inline void hosted_rig_hello(struct hosted_rig *t, const Rh__Host__HostedKind *like)
{
    static char player[] = "player";
    static char name[] = "test";
    static char product[] = "ringhold";
    Rh__Host__HostedKind kind = *like;
    Rh__Host__HostedKind *kinds = &kind;
    Rh__Host__Hello hello = RH__HOST__HELLO__INIT;
    Rh__Host__HostSays says = RH__HOST__HOST_SAYS__INIT;

    kind.name = player;
    hello.product = product;
    hello.version_min = hello.version_max = HOSTED_VERSION;
    hello.name = name;
    hello.kinds = &kinds;
    hello.n_kinds = 1;
    says.body_case = RH__HOST__HOST_SAYS__BODY_HELLO;
    says.hello = &hello;
    hosted_rig_say(t, &says);
}

/* A host connects, and is welcome. */
static inline void hosted_rig_connect(struct hosted_rig *t)
{
    const Rh__Host__HostedKind kind = RH__HOST__HOSTED_KIND__INIT;

    t->link = hosted_link_new(t->hosted);
    hosted_rig_hello(t, &kind);
    assert_int_equal(t->link->state, LINK_OPEN);
}

/* A step: with this effect, unless that is NULL; and `done`, unless that is NULL. */
static inline void hosted_rig_step(struct hosted_rig *t, uint64_t activation, uint64_t turn,
                                   Rh__Host__Effect *effect, Rh__Host__Done *done)
{
    Rh__Host__Step step = RH__HOST__STEP__INIT;
    Rh__Host__HostSays says = RH__HOST__HOST_SAYS__INIT;

    step.activation = activation;
    step.turn = turn;
    step.effects = &effect;
    step.n_effects = effect == NULL ? 0 : 1;
    step.done = done;
    says.body_case = RH__HOST__HOST_SAYS__BODY_STEP;
    says.step = &step;
    hosted_rig_say(t, &says);
}

static inline void hosted_rig_done(struct hosted_rig *t, uint64_t activation, uint64_t turn)
{
    Rh__Host__Done done = RH__HOST__DONE__INIT;

    hosted_rig_step(t, activation, turn, NULL, &done);
}

/* Done, with a line as the answer. */
static inline void hosted_rig_reply(struct hosted_rig *t, uint64_t activation, uint64_t turn,
                                    const char *text)
{
    Rh__Host__Value value = RH__HOST__VALUE__INIT;
    Rh__Host__Done done = RH__HOST__DONE__INIT;
    char copy[64];

    value.type_case = RH__HOST__VALUE__TYPE_TEXT;
    (void)snprintf(copy, sizeof copy, "%s", text);
    value.text = copy;
    done.reply = &value;
    hosted_rig_step(t, activation, turn, NULL, &done);
}

/* An actor lives at a host that is connected: activation 1, and nothing is unheard. */
static inline void hosted_rig_live(struct hosted_rig *t, const char *words)
{
    hosted_rig_open(t, words);
    hosted_rig_connect(t);
    hosted_rig_activate(t, "ann");
    hosted_rig_done(t, 1, 1);
    assert_int_equal(t->stage.told[VERB_ACTIVATE], 1);
    assert_int_equal(t->stage.error, ERR_OK);
    (void)hosted_rig_heard(t);
}

#endif
