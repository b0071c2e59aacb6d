/* SPDX-License-Identifier: Apache-2.0
 *
 * A scene with one actor on it, and its last answer: for tests of actors.
 */
#ifndef TESTS_THEATRE_H
#define TESTS_THEATRE_H

#include "node/scene.h"
#include "wire/args.h"

#include <stdio.h>
#include <string.h>

struct theatre {
    struct scene *scene;
    struct rh_actor *actor;
    size_t answers; /* so far */
    bool command;   /* the last request was one */
    enum answer_code code;
    uint64_t ticket;
    char text[256]; /* of the last answer: as it is, or a value as "i:5", "b:x", "s:OK", "n:", "e:…"
                     */
};

static inline void theatre_print(struct theatre *t, struct bytes body)
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

static inline void theatre_on_ran(void *context, const struct scene_answer *answer)
{
    struct theatre *t = context;

    assert_ptr_equal(answer->actor, t);
    t->answers++;
    t->code = answer->code;
    t->ticket = answer->ticket;
    theatre_print(t, answer->body);
}

static inline enum err theatre_enter(struct theatre *t, const struct scene_entry *entry)
{
    struct scene_entry mine = *entry;

    mine.actor = t;
    mine.id = bytes_of("id", 2);
    return scene_activate(t->scene, &mine, &t->actor);
}

static inline void theatre_open(struct theatre *t, const struct rh_actor_ops *ops, void *shared)
{
    const struct scene_entry entry = {.ops = ops, .shared = shared, .fence = 7};

    *t = (struct theatre){0};
    t->scene = scene_new(theatre_on_ran, t);
    assert_int_equal(theatre_enter(t, &entry), ERR_OK);
}

static inline void theatre_close(struct theatre *t)
{
    scene_close(t->scene, RH_STOP);
}

/* Hand the actor's state to a new one, as a move does. */
static inline void theatre_move(struct theatre *t, const struct rh_actor_ops *ops, void *shared)
{
    struct buffer state = {0};

    scene_export(t->actor, &state);
    scene_discard(t->actor, RH_MOVED);
    const struct scene_entry entry = {
        .ops = ops, .shared = shared, .state = buffer_bytes(&state), .has_state = true, .fence = 9};
    assert_int_equal(theatre_enter(t, &entry), ERR_OK);
    buffer_fini(&state);
}

/* Run a payload; its answer, if it came at once, else "". */
static inline const char *theatre_call(struct theatre *t, const char *payload)
{
    t->text[0] = '\0';
    t->command = false;
    scene_run(t->actor, 1, 0, bytes_of(payload, strlen(payload)));
    return t->text;
}

/* Run a command of words parted by single blanks; its answer with its type. */
static inline const char *theatre_command(struct theatre *t, const char *line)
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
    t->text[0] = '\0';
    t->command = true;
    scene_run(t->actor, 1, REQUEST_COMMAND, buffer_bytes(&body));
    buffer_fini(&body);
    return t->text;
}

#endif
