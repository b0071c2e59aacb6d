/* SPDX-License-Identifier: Apache-2.0
 *
 * A runtime with one actor on it, and what it told last: for tests of actors.
 */
#ifndef TESTS_NODE_RUNTIME_RIG_H
#define TESTS_NODE_RUNTIME_RIG_H

#include "base/mem.h"
#include "node/runtime/runtime.h"
#include "tests/test.h"
#include "wire/args.h"

#include <stdio.h>
#include <string.h>

struct runtime_rig {
    struct runtime *runtime;
    struct rh_actor *actor;       /* NULL = gone */
    size_t answers;               /* so far */
    size_t told[VERB_FINISH + 1]; /* events so far, by type */
    enum err error;               /* of the last ACTIVATED, EXPORTED, RETIRED */
    bool command;                 /* the last request was one */
    enum answer_code code;
    enum err run_error; /* of the last run */
    uint64_t ticket;
    char text[256]; /* of the last answer: as it is, or a value as "i:5", "b:x", "s:OK", "n:", "e:…"
                     */
    struct buffer state; /* as exported last */
    bool has_state;
    struct buffer bond;      /* the same */
    struct buffer answer;    /* body of the last one */
    struct push_record push; /* the last one; its payload is not kept */
    struct call call;        /* the last one; its bytes are in `called` */
    struct buffer called;
};

static inline void runtime_rig_print(struct runtime_rig *t, struct bytes body)
{
    struct value v = {.type = VALUE_BULK, .text = body};
    int used = 0;

    if (t->command) {
        assert_int_equal(value_get(body, &v), ERR_OK);
        used = snprintf(t->text, sizeof t->text, "%c:", v.type);
    }
    if (v.type == VALUE_INTEGER) {
        (void)snprintf(t->text + used, sizeof t->text - 2, "%lld", (long long)v.integer);
    } else {
        const int size = v.text.size < 200 ? (int)v.text.size : 200;

        (void)snprintf(t->text + used, sizeof t->text - 2, "%.*s", size, (const char *)v.text.data);
    }
}

/* "kind id payload" */
static inline void runtime_rig_keep_call(struct runtime_rig *t, const struct call *call)
{
    char kind[16];

    t->call = *call;
    buffer_clear(&t->called);
    (void)snprintf(kind, sizeof kind, "%u ", call->kind);
    buffer_put(&t->called, kind, strlen(kind));
    buffer_put(&t->called, call->id.data, call->id.size);
    buffer_put(&t->called, " ", 1);
    buffer_put(&t->called, call->payload.data, call->payload.size);
}

static inline void runtime_rig_on_completion(void *context, const struct completion *c)
{
    struct runtime_rig *t = context;

    assert_ptr_equal(c->actor, t);
    t->told[c->verb]++;
    if (c->verb == VERB_RUN || c->verb == VERB_TURN) {
        t->answers++;
        t->code = c->code;
        t->run_error = c->error;
        t->ticket = c->ticket;
        buffer_clear(&t->answer);
        buffer_put(&t->answer, c->bytes.data, c->bytes.size);
        runtime_rig_print(t, c->bytes);
    } else if (c->verb == VERB_EXPORT || c->verb == VERB_COPY) {
        buffer_clear(&t->state);
        buffer_put(&t->state, c->bytes.data, c->bytes.size);
        buffer_clear(&t->bond);
        buffer_put(&t->bond, c->head.data, c->head.size);
        t->has_state = c->has_state;
        t->error = c->error;
    } else if (c->verb == VERB_PUSH) {
        t->push = *c->push;
    } else if (c->verb == VERB_CALL) {
        runtime_rig_keep_call(t, c->call);
    } else if (c->verb == VERB_ACTIVATE || c->verb == VERB_RETIRE) {
        t->error = c->error;
        if ((c->verb == VERB_RETIRE) == (c->error == ERR_OK)) {
            t->actor = NULL;
        }
    }
}

static inline void runtime_rig_enter(struct runtime_rig *t, const struct runtime_entry *entry)
{
    struct runtime_entry mine = *entry;

    mine.actor = t;
    mine.id = bytes_of("id", 2);
    t->actor = runtime_activate(t->runtime, &mine);
}

/* The runtimes of a test are of one node. */
static struct numbering runtime_rig_numbering;

/* An empty stage. */
static inline void runtime_rig_build(struct runtime_rig *t)
{
    const struct runtime_config config = {.on_completion = runtime_rig_on_completion,
                                          .context = t,
                                          .numbering = &runtime_rig_numbering};

    *t = (struct runtime_rig){0};
    t->runtime = runtime_new(&config);
}

static inline void runtime_rig_open(struct runtime_rig *t, const struct rh_actor_ops *ops,
                                    void *shared)
{
    const struct runtime_entry entry = {.ops = ops, .shared = shared, .fence = 7, .kind = 3};

    runtime_rig_build(t);
    runtime_rig_enter(t, &entry);
    assert_int_equal(t->error, ERR_OK);
}

static inline void runtime_rig_close(struct runtime_rig *t)
{
    runtime_close(t->runtime, RH_STOP);
    buffer_fini(&t->state);
    buffer_fini(&t->called);
    buffer_fini(&t->bond);
    buffer_fini(&t->answer);
}

/* Hand the actor's state to a new one, as a move does. */
static inline void runtime_rig_move(struct runtime_rig *t, const struct rh_actor_ops *ops,
                                    void *shared)
{
    runtime_export(t->actor);
    assert_int_equal(t->error, ERR_OK);
    runtime_discard(t->actor, RH_MOVED);
    const struct runtime_entry entry = {.ops = ops,
                                        .shared = shared,
                                        .state = buffer_bytes(&t->state),
                                        .has_state = t->has_state,
                                        .kind = 3,
                                        .fence = 9};
    runtime_rig_enter(t, &entry);
    assert_int_equal(t->error, ERR_OK);
}

static inline void runtime_rig_run(struct runtime_rig *t, uint8_t flags, struct bytes body)
{
    const struct runtime_message message = {.ticket = 1, .flags = flags, .body = body};

    t->text[0] = '\0';
    t->command = (flags & REQUEST_COMMAND) != 0;
    runtime_run(t->actor, &message);
}

/* Run a payload; its answer, if it came at once, else "". */
static inline const char *runtime_rig_call(struct runtime_rig *t, const char *payload)
{
    runtime_rig_run(t, 0, bytes_of(payload, strlen(payload)));
    return t->text;
}

/* Run a command of words parted by single blanks; its answer with its type. */
static inline const char *runtime_rig_command(struct runtime_rig *t, const char *line)
{
    struct args args = {0};
    struct buffer body = {0};

    for (const char *at = line;; at++) {
        const size_t size = strcspn(at, " ");

        args.arg[args.count++] = bytes_of(at, size);
        at += size;
        if (*at == '\0') {
            break;
        }
    }
    args_put(&body, &args);
    runtime_rig_run(t, REQUEST_COMMAND, buffer_bytes(&body));
    buffer_fini(&body);
    return t->text;
}

/* ---- callbacks, and notes of sessions ---- */

/* An actor whose instance is what all of its kind share. */
static inline int runtime_rig_activate(struct rh_actor *actor, const struct rh_bytes *state,
                                       uint64_t fence, void **instance)
{
    (void)state;
    (void)fence;
    *instance = rh_shared(actor);
    return RH_OK;
}

/* There is nothing to free. */
static inline void runtime_rig_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

/* A gateway's note runs. */
static inline void runtime_rig_note(struct runtime_rig *t, const struct note *note)
{
    struct buffer body = {0};

    note_put(&body, note);
    runtime_rig_run(t, REQUEST_SESSION, buffer_bytes(&body));
    buffer_fini(&body);
}

/* How one that binds ended. */
static inline struct bound runtime_rig_bound(const struct runtime_rig *t)
{
    struct bound bound = {.result = 99};

    assert_int_equal(bound_get(buffer_bytes(&t->answer), &bound), ERR_OK);
    return bound;
}

#endif
