/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor on a runtime of its own, without a node: it does what its payload says, and returns what
 * it is told to.
 */
#ifndef TESTS_NODE_SCRIPTED_ACTOR_H
#define TESTS_NODE_SCRIPTED_ACTOR_H

/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an actor on its runtime: what finishes later, flushes, timers, ends,
 * calls; and actors that misbehave, which must cost nothing but themselves.
 */
#include "base/log.h"
#include "tests/node/runtime_rig.h"
#include "tests/test.h"

/* An actor that does what its payload says, and returns what it is told to. */
struct scripted {
    struct rh_actor *actor;
    struct rh_token token;
    struct rh_out *out;
    int activate; /* results of the callbacks */
    int flush;
    int handoff;
    size_t state_size;
    size_t timers;
    uint64_t timer;
    size_t flushes;
    enum rh_why flushed;
    size_t ended;
    enum rh_why why;
    size_t answers;
    int status;
    char answer[128];
    int result; /* of the function that was asked for */
    bool says_goodbye;
    bool timer_waits; /* the next one finishes later */
    struct rh_bytes from;
    uint16_t from_kind;
};

static inline int deferring(struct scripted *p, struct rh_actor *actor, int result)
{
    if (result == RH_PENDING) {
        p->token = rh_defer(actor);
    }
    return result;
}

static inline int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                              void **instance)
{
    struct scripted *p = rh_shared(actor);

    (void)state;
    (void)fence;
    p->actor = actor;
    *instance = p;
    return deferring(p, actor, p->activate);
}

static inline void on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                             void *argument)
{
    struct scripted *p = instance;

    assert_ptr_equal(argument, p);
    p->answers++;
    p->status = answer->status;
    assert_true(answer->payload.size < sizeof p->answer);
    if (answer->payload.size > 0) {
        memcpy(p->answer, answer->payload.data, answer->payload.size);
    }
    p->answer[answer->payload.size] = '\0';
    (void)rh_reply(actor, rh_text(p->answer)); // RH_INVALID in a turn
}

static inline int call(struct scripted *p, struct rh_actor *actor, const char *id)
{
    return rh_call(actor,
                   3,
                   (struct rh_bytes){id, strlen(id)},
                   (struct rh_bytes){"hi", 2},
                   1000,
                   0,
                   on_answer,
                   p);
}

static inline void on_message(struct rh_actor *actor, void *instance,
                              const struct rh_message *message)
{
    static const char big[RECORD_BODY_MAX + 1];
    struct scripted *p = instance;
    const char *what = message->payload.data;

    p->from = message->from;
    p->from_kind = message->from_kind;
    switch (message->payload.size == 0 ? 0 : what[0]) {
    case 't':
        p->timer = rh_timer_start(actor, 50, 0, NULL);
        return;
    case 'e':
        p->timer = rh_timer_start(actor, 50, 100, NULL);
        return;
    case 's':
        p->result = rh_timer_stop(actor, p->timer);
        return;
    case 'P':
        (void)rh_reply(actor, rh_text("done"));
        p->result = rh_passivate(actor);
        return;
    case 'p':
        p->result = rh_passivate(actor);
        return;
    case 'B':
        (void)rh_reply(actor, rh_text("done"));
        p->result = rh_fail(actor, "ERR broken");
        return;
    case 'f':
        p->result = rh_fail(actor, "ERR broken");
        return;
    case 'F':
        p->result = rh_flush_soon(actor);
        return;
    case 'd':
        p->token = rh_defer(actor);
        return;
    case 'c':
        p->result = call(p, actor, "other");
        return;
    case 'C':
        p->token = rh_defer(actor);
        p->result = call(p, actor, "other");
        return;
    case 'i':
        p->result = call(p, actor, "id");
        return;
    case 'n':
        p->result = rh_send(actor, 3, (struct rh_bytes){"id", 2}, (struct rh_bytes){"hi", 2});
        return;
    case 'b':
        p->result =
            rh_send(actor, 3, (struct rh_bytes){"other", 5}, (struct rh_bytes){big, sizeof big});
        return;
    default:
        (void)rh_reply(actor, rh_bytes_value(message->payload.data, message->payload.size));
    }
}

static inline int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    static const char zeros[4096];
    struct scripted *p = instance;

    p->out = out;
    for (size_t left = p->state_size; left > 0;) {
        const size_t size = left < sizeof zeros ? left : sizeof zeros;

        rh_out_put(out, zeros, size);
        left -= size;
    }
    return deferring(p, actor, p->handoff);
}

static inline void on_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    struct scripted *p = instance;

    assert_null(argument);
    assert_int_equal(timer, p->timer);
    assert_int_equal(rh_reply(actor, rh_nil()), RH_INVALID);
    p->timers++;
    if (p->timer_waits) {
        p->token = rh_defer(actor);
    }
}

static inline int on_flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence)
{
    struct scripted *p = instance;

    assert_int_equal(fence, rh_fence(actor));
    p->flushes++;
    p->flushed = why;
    return deferring(p, actor, p->flush);
}

static inline void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct scripted *p = instance;

    assert_int_equal(rh_defer(actor).number, 0);
    assert_int_equal(rh_timer_start(actor, 1, 0, NULL), 0);
    assert_int_equal(rh_passivate(actor), RH_INVALID);
    assert_int_equal(call(p, actor, "other"), RH_INVALID);
    p->ended++;
    p->why = why;
    if (p->says_goodbye) {
        p->result = rh_reply(actor, rh_nil());
    }
}

static const struct rh_actor_ops scripted_ops = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "scripted",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .timer = on_timer,
    .flush = on_flush,
    .flush_ms = 1000,
};

static inline void open_stage(struct runtime_rig *t, struct scripted *p)
{
    *p = (struct scripted){0};
    runtime_rig_open(t, &scripted_ops, p);
}

static size_t lines; /* so many were logged */

static inline void no_line(void *context, enum log_level level, const char *line)
{
    char *kept = context;

    (void)level;
    lines++;
    (void)snprintf(kept, 256, "%s", line);
}

static char line[256]; /* the last that was logged */

static inline int set_up(void **state)
{
    (void)state;
    line[0] = '\0';
    log_set_sink(no_line, line);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    return 0;
}

static inline void answer(struct runtime_rig *t, int status, const char *text)
{
    const struct call_answer a = {
        .number = t->call.number, .status = status, .payload = bytes_of(text, strlen(text))};

    runtime_answer(t->runtime, &a);
}

#define SCRIPTED_CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
