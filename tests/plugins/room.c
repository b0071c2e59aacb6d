/* SPDX-License-Identifier: Apache-2.0
 *
 * A room and its members, both actors of this kind. A room does what its messages say, and moves
 * with its members:
 *
 *     join ID …       rh_group_join(); answers the last result
 *     leave ID        rh_group_leave()
 *     count           members
 *     cast TEXT       rh_group_push(); answers its result
 *     tick MS         push 1 to all, send 2 to each, push 3 to all … each after so many ms, also
 *                     after a move; 0 = no more
 *     last            the last of these
 *
 * What a member is sent, "!TEXT", it pushes to its client; it answers what that came to.
 */
#include <ringhold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 8192 };

struct room {
    struct rh_group *group;
    uint64_t timer;
    uint64_t last;
    uint32_t every_ms;
};

/* What moves, behind its group. */
struct moved {
    uint64_t last;
    uint32_t every_ms;
};

static struct rh_bytes text_of(const char *text)
{
    const struct rh_bytes b = {text, strlen(text)};

    return b;
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    (void)actor;
    (void)instance;
    (void)event;
    return RH_OK;
}

static void on_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    struct room *r = instance;
    char text[32];

    (void)timer;
    (void)argument;
    (void)snprintf(text, sizeof text, "!%" PRIu64, r->last + 1);
    if (r->last % 2 == 0) {
        if (rh_group_push(actor, r->group, text_of(text + 1)) == RH_OK) {
            r->last++;
        }
        return;
    }
    for (size_t i = 0; i < rh_group_count(r->group); i++) {
        (void)rh_send(actor, 0, rh_group_at(r->group, i), text_of(text));
    }
    r->last++;
}

static int join(struct room *r, char *words)
{
    char *rest = NULL;
    int result = RH_INVALID;

    for (const char *id = strtok_r(words, " ", &rest); id != NULL;
         id = strtok_r(NULL, " ", &rest)) {
        result = rh_group_join(r->group, text_of(id));
    }
    return result;
}

static int tick(struct rh_actor *actor, struct room *r, uint32_t ms)
{
    r->every_ms = ms;
    if (r->timer != 0) {
        (void)rh_timer_stop(actor, r->timer);
        r->timer = 0;
    }
    if (ms != 0) {
        r->timer = rh_timer_start(actor, ms, ms, NULL);
    }
    return RH_OK;
}

static int64_t act(struct rh_actor *actor, struct room *r, const char *verb, char *rest)
{
    if (strcmp(verb, "join") == 0) {
        return join(r, rest);
    }
    if (strcmp(verb, "leave") == 0) {
        return rh_group_leave(r->group, text_of(rest));
    }
    if (strcmp(verb, "count") == 0) {
        return (int64_t)rh_group_count(r->group);
    }
    if (strcmp(verb, "cast") == 0) {
        return rh_group_push(actor, r->group, text_of(rest));
    }
    if (strcmp(verb, "tick") == 0) {
        return tick(actor, r, (uint32_t)strtoul(rest, NULL, 10));
    }
    if (strcmp(verb, "last") == 0) {
        return (int64_t)r->last;
    }
    return -1;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct room *r = instance;
    char text[TEXT_MAX];
    char none[] = "";

    (void)snprintf(text,
                   sizeof text,
                   "%.*s",
                   (int)message->payload.size,
                   message->payload.size > 0 ? (const char *)message->payload.data : "");
    if (text[0] == '!') {
        (void)rh_reply(actor, rh_integer(rh_push(actor, text_of(text + 1))));
        return;
    }
    char *rest = strchr(text, ' ');
    if (rest != NULL) {
        *rest++ = '\0';
    }
    (void)rh_reply(actor, rh_integer(act(actor, r, text, rest == NULL ? none : rest)));
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct room *r = calloc(1, sizeof *r);
    struct rh_bytes left = state == NULL ? text_of("") : *state;
    struct moved moved = {0};

    (void)fence;
    *instance = r;
    if (r == NULL) {
        return RH_FAILED;
    }
    r->group = state == NULL ? rh_group_new(0, 0) : rh_group_load(&left);
    if (r->group == NULL || (state != NULL && left.size != sizeof moved)) {
        rh_group_free(r->group);
        free(r);
        return RH_FAILED;
    }
    if (state != NULL) {
        memcpy(&moved, left.data, sizeof moved);
    }
    r->last = moved.last;
    return tick(actor, r, moved.every_ms);
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct room *r = instance;
    const struct moved moved = {.last = r->last, .every_ms = r->every_ms};

    (void)actor;
    rh_group_save(r->group, out);
    rh_out_put(out, &moved, sizeof moved);
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct room *r = instance;

    (void)actor;
    (void)why;
    rh_group_free(r->group);
    free(r);
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "room",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .timer = on_timer,
    .session = on_session,
};
