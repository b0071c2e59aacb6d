/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor that is saved by flush alone: a message is its new value, and answered by the one
 * before. A flush adds a line "ID FENCE WHY VALUE" to the file that the argument names; of a value
 * that begins with "slow" it ends a while later, from another thread, as of a store beyond a
 * network.
 */
#include <ringhold.h>

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VALUE_MAX = 64, LINE_MAX_SIZE = 512, SLOW_MS = 300 };

struct saver {
    char value[VALUE_MAX + 1];
};

static int start(const struct rh_kind_info *info, void **shared)
{
    int *fd = malloc(sizeof *fd);

    if (fd == NULL) {
        return RH_FAILED;
    }
    *fd = open(info->argument, O_WRONLY | O_CREAT | O_APPEND, 0600);
    *shared = fd;
    return *fd < 0 ? RH_FAILED : RH_OK;
}

static void stop(void *shared)
{
    (void)close(*(int *)shared);
    free(shared);
}

static int activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance)
{
    struct saver *s = calloc(1, sizeof *s);

    (void)actor;
    (void)fence;
    if (s == NULL) {
        return RH_FAILED;
    }
    if (state != NULL && state->size <= VALUE_MAX) {
        memcpy(s->value, state->data, state->size);
    }
    *instance = s;
    return RH_OK;
}

static void message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    struct saver *s = instance;

    (void)rh_reply(actor,
                   (struct rh_value){.type = RH_BYTES, .bytes = {s->value, strlen(s->value)}});
    if (m->payload.size > 0 && m->payload.size <= VALUE_MAX) {
        memset(s->value, 0, sizeof s->value);
        memcpy(s->value, m->payload.data, m->payload.size);
    }
}

static int handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct saver *s = instance;

    (void)actor;
    rh_out_put(out, s->value, strlen(s->value));
    return RH_OK;
}

static void deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)why;
    free(instance);
}

static void *finish_later(void *argument)
{
    const struct timespec pause = {.tv_nsec = SLOW_MS * 1000000L};
    struct rh_token *token = argument;

    (void)nanosleep(&pause, NULL);
    (void)rh_done(*token, RH_OK);
    free(token);
    return NULL;
}

static int flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence)
{
    const struct saver *s = instance;
    const struct rh_bytes id = rh_id(actor);
    char line[LINE_MAX_SIZE];
    pthread_t thread;

    const int size = snprintf(line,
                              sizeof line,
                              "%.*s %" PRIu64 " %d %s\n",
                              (int)id.size,
                              (const char *)id.data,
                              fence,
                              (int)why,
                              s->value);
    if (write(*(int *)rh_shared(actor), line, (size_t)size) != size) {
        return RH_FAILED;
    }
    if (strncmp(s->value, "slow", 4) != 0) {
        return RH_OK;
    }
    struct rh_token *token = malloc(sizeof *token);
    if (token == NULL) {
        return RH_FAILED;
    }
    *token = rh_defer(actor);
    if (pthread_create(&thread, NULL, finish_later, token) != 0) {
        free(token);
        return RH_FAILED;
    }
    (void)pthread_detach(thread);
    return RH_PENDING;
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof ringhold_actor,
    .name = "saver",
    .start = start,
    .stop = stop,
    .activate = activate,
    .message = message,
    .handoff = handoff,
    .deactivate = deactivate,
    .flush = flush,
    .flush_ms = UINT32_MAX,
};
