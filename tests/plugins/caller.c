/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor that measures its calls: "COUNT DEPTH ID [ID...]" asks so often, DEPTH at a time and
 * each ID in turn, and is answered "calls/s p50 p99" with microseconds. To a call it answers its
 * payload. For bench/calls.
 */
#ifndef CALLER_BRIEF
#define CALLER_BRIEF 0 /* caller_brief.c has 1 */
#endif

#include <ringhold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT_MAX = 1000000, PAYLOAD = 64, TIMEOUT_MS = 60000, IDS_MAX = 64, TEXT_MAX = 2048 };

struct caller {
    char text[TEXT_MAX]; /* the message that runs, cut into words */
    const char *id[IDS_MAX];
    size_t ids;
    size_t count;
    size_t begun;
    size_t ended;
    size_t failed;
    uint64_t start_ns;
    uint64_t *begun_ns; /* owned */
    uint32_t *took_ns;  /* owned */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                      void *argument);

static void ask(struct rh_actor *actor, struct caller *c)
{
    static const char payload[PAYLOAD];
    const size_t at = c->begun++;
    const char *whom = c->id[at % c->ids];
    const struct rh_bytes id = {whom, strlen(whom)};
    const struct rh_bytes body = {payload, sizeof payload};

    c->begun_ns[at] = now_ns();
    if (rh_call(actor, 0, id, body, TIMEOUT_MS, 0, on_answer, &c->begun_ns[at]) != RH_OK) {
        c->failed++;
        c->ended++;
    }
}

static void on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                      void *argument)
{
    struct caller *c = instance;
    char text[128];

    c->failed += answer->status != RH_OK;
    c->took_ns[c->ended++] = (uint32_t)(now_ns() - *(const uint64_t *)argument);
    if (c->begun < c->count) {
        ask(actor, c);
    }
    if (c->ended < c->count) {
        return;
    }
    const size_t half = c->count / 2;
    const size_t most = c->count * 99 / 100;
    const double seconds = (double)(now_ns() - c->start_ns) / 1e9;
    qsort(c->took_ns, c->count, sizeof c->took_ns[0], compare);
    (void)snprintf(text,
                   sizeof text,
                   "%.0f %.1f %.1f",
                   (double)c->count / seconds,
                   c->took_ns[half] / 1e3,
                   c->took_ns[most] / 1e3);
    (void)rh_reply(
        actor, c->failed > 0 ? rh_error("ERR a call failed") : rh_bytes_value(text, strlen(text)));
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct caller *c = instance;
    char *rest = NULL;
    size_t depth = 0;

    if (message->from.size > 0) {
        (void)rh_reply(actor, rh_bytes_value(message->payload.data, message->payload.size));
        return;
    }
    (void)snprintf(c->text,
                   sizeof c->text,
                   "%.*s",
                   (int)message->payload.size,
                   message->payload.size > 0 ? (const char *)message->payload.data : "");
    const char *count = strtok_r(c->text, " ", &rest);
    const char *open = strtok_r(NULL, " ", &rest);
    c->count = count == NULL ? 0 : strtoull(count, NULL, 10);
    depth = open == NULL ? 0 : strtoull(open, NULL, 10);
    for (c->ids = 0; c->ids < IDS_MAX; c->ids++) {
        c->id[c->ids] = strtok_r(NULL, " ", &rest);
        if (c->id[c->ids] == NULL) {
            break;
        }
    }
    if (c->ids == 0 || c->count == 0 || c->count > COUNT_MAX || depth == 0 || depth > c->count) {
        (void)rh_reply(actor, rh_error("ERR COUNT DEPTH ID"));
        return;
    }
    free(c->begun_ns);
    free(c->took_ns);
    c->begun_ns = calloc(c->count, sizeof *c->begun_ns);
    c->took_ns = calloc(c->count, sizeof *c->took_ns);
    c->begun = c->ended = c->failed = 0;
    if (c->begun_ns == NULL || c->took_ns == NULL) {
        (void)rh_reply(actor, rh_error("ERR no memory"));
        return;
    }
    (void)rh_defer(actor);
    c->start_ns = now_ns();
    while (depth-- > 0) {
        ask(actor, c);
    }
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = calloc(1, sizeof(struct caller));
    return *instance == NULL ? RH_FAILED : RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct caller *c = instance;

    (void)actor;
    (void)why;
    free(c->begun_ns);
    free(c->took_ns);
    free(c);
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "caller",
    .activate = on_activate,
    .message = on_message,
    .deactivate = on_deactivate,
    .brief = CALLER_BRIEF,
};
