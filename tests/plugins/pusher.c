/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor with a session: it does what its messages say, and keeps what it was told of its client.
 *
 *     events          what the session callback was told: "BOUND LOST1 …"
 *     push TEXT       rh_push(); answers its result
 *     flood COUNT     so many of 64 KiB
 *     count MS        push 1, 2, 3 … every so many milliseconds, also after a move
 *     ids TEXT ID …   rh_push_ids() to these
 *     kick TEXT       rh_kick() with code 1007
 *     fail, end       rh_fail(), rh_passivate()
 *     run N           note number N; answers it
 *     score           "COUNT BAD": numbers noted, and those no greater than the one before
 */
#include <ringhold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 512, IDS_MAX = 16, FLOOD_SIZE = 64 * 1024, CODE = 1007 };

struct pusher {
    uint64_t count; /* last number pushed */
    uint64_t noted;
    uint64_t noted_last;
    uint64_t noted_bad;
    uint32_t every_ms;
    char events[TEXT_MAX];
};

static struct rh_bytes text_of(const char *text)
{
    const struct rh_bytes b = {text, strlen(text)};

    return b;
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    static const char *const names[] = {"?", "BOUND", "REPLACED", "RESUMED", "LOST"};
    struct pusher *p = instance;
    const struct rh_bytes id = rh_id(actor);
    const size_t used = strlen(p->events);

    (void)snprintf(p->events + used,
                   sizeof p->events - used,
                   "%s%s",
                   used == 0 ? "" : " ",
                   names[event->type <= RH_SESSION_LOST ? event->type : 0]);
    if (event->type == RH_SESSION_LOST || event->why != 0) {
        const size_t now = strlen(p->events);

        (void)snprintf(p->events + now, sizeof p->events - now, "%" PRIu32, event->why);
    }
    if (event->type == RH_SESSION_LOST) {
        return RH_OK;
    }
    (void)rh_push(actor, text_of("hello"));
    return id.size == 3 && memcmp(id.data, "shy", 3) == 0 ? RH_FAILED : RH_OK;
}

static void on_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    struct pusher *p = instance;
    char text[32];

    (void)timer;
    (void)argument;
    (void)snprintf(text, sizeof text, "%" PRIu64, p->count + 1);
    if (rh_push(actor, text_of(text)) == RH_OK) {
        p->count++;
    }
}

static int push_flood(struct rh_actor *actor, size_t count)
{
    static char big[FLOOD_SIZE];
    const struct rh_bytes payload = {big, sizeof big};
    int result = RH_OK;

    for (size_t i = 0; i < count && result == RH_OK; i++) {
        result = rh_push(actor, payload);
    }
    return result;
}

static int push_ids(struct rh_actor *actor, char *words)
{
    struct rh_bytes ids[IDS_MAX];
    size_t count = 0;
    char *rest = NULL;
    const char *text = strtok_r(words, " ", &rest);
    const char *id = NULL;

    while (count < IDS_MAX && (id = strtok_r(NULL, " ", &rest)) != NULL) {
        ids[count++] = text_of(id);
    }
    return rh_push_ids(actor, 0, ids, count, text_of(text == NULL ? "" : text));
}

static int act(struct rh_actor *actor, struct pusher *p, const char *verb, char *rest)
{
    if (strcmp(verb, "push") == 0) {
        return rh_push(actor, text_of(rest));
    }
    if (strcmp(verb, "flood") == 0) {
        return push_flood(actor, strtoull(rest, NULL, 10));
    }
    if (strcmp(verb, "count") == 0) {
        p->every_ms = (uint32_t)strtoull(rest, NULL, 10);
        return rh_timer_start(actor, p->every_ms, p->every_ms, NULL) != 0 ? RH_OK : RH_INVALID;
    }
    if (strcmp(verb, "ids") == 0) {
        return push_ids(actor, rest);
    }
    if (strcmp(verb, "kick") == 0) {
        return rh_kick(actor, CODE, rest);
    }
    if (strcmp(verb, "fail") == 0) {
        return rh_fail(actor, "ERR as it was told");
    }
    if (strcmp(verb, "end") == 0) {
        return rh_passivate(actor);
    }
    return RH_INVALID;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct pusher *p = instance;
    char text[TEXT_MAX];

    (void)snprintf(text,
                   sizeof text,
                   "%.*s",
                   (int)message->payload.size,
                   message->payload.size > 0 ? (const char *)message->payload.data : "");
    if (strcmp(text, "events") == 0) {
        (void)rh_reply(actor, rh_text(p->events));
        return;
    }
    if (strcmp(text, "score") == 0) {
        (void)snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, p->noted, p->noted_bad);
        (void)rh_reply(actor, rh_text(text));
        return;
    }
    char *rest = strchr(text, ' ');
    if (rest != NULL) {
        *rest++ = '\0';
    }
    if (rest != NULL && strcmp(text, "run") == 0) {
        const uint64_t number = strtoull(rest, NULL, 10);

        p->noted++;
        p->noted_bad += number <= p->noted_last;
        p->noted_last = number;
        (void)rh_reply(actor, rh_integer((int64_t)number));
        return;
    }
    char none[] = "";
    (void)rh_reply(actor, rh_integer(act(actor, p, text, rest == NULL ? none : rest)));
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct pusher *p = calloc(1, sizeof *p);

    (void)fence;
    *instance = p;
    if (p == NULL) {
        return RH_FAILED;
    }
    if (state != NULL && state->size == sizeof *p) {
        memcpy(p, state->data, sizeof *p);
    }
    if (p->every_ms != 0) {
        (void)rh_timer_start(actor, p->every_ms, p->every_ms, NULL);
    }
    return RH_OK;
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    (void)actor;
    rh_out_put(out, instance, sizeof(struct pusher));
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
    .name = "pusher",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .timer = on_timer,
    .session = on_session,
};
