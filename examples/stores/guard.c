/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes a lock on each actor's id in the database, on a connection of its own,
 * to find two owners.
 */
#include "guard.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BACKOFF_FIRST_MS = 100, BACKOFF_LAST_MS = 2000, DIAL_MS = 1000 };

struct guard {
    struct guard_options options;
    char *channel;
    int quit[2]; /* a pipe: readable when the thread has to end */
    pthread_t thread;
    atomic_int_fast64_t conflicts;
};

void guard_name_owner(char out[GUARD_OWNER_SIZE], const char *node)
{
    char host[64] = "?";

    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(out, GUARD_OWNER_SIZE, "%s@%s:%ld", node, host, (long)getpid());
}

int64_t guard_conflicts(const struct guard *g)
{
    return g == NULL ? 0 : atomic_load(&g->conflicts);
}

/* What stands after the next blank; NULL if there is none. */
static const char *after_word(const char *at)
{
    const char *blank = at == NULL ? NULL : strchr(at, ' ');

    return blank == NULL ? NULL : blank + 1;
}

/* "taken OWNER GENERATION MINE ID": somebody with a greater generation has my lock now; "refused
 * …": somebody without one wanted it. */
static void on_notice(struct guard *g, const char *text, size_t size)
{
    const bool taken = strncmp(text, "taken ", 6) == 0;
    const char *other = after_word(text);
    const char *generation = after_word(other);
    const char *mine = after_word(generation);
    const char *id = after_word(mine);

    if (id == NULL) {
        (void)fprintf(stderr, "store_redis: a notice that isn't one: %s\n", text);
        return;
    }
    const size_t id_size = size - (size_t)(id - text);
    (void)atomic_fetch_add(&g->conflicts, 1);
    (void)fprintf(stderr,
                  "store_redis: conflict: \"%.*s\": my lock of generation %.*s was %s by %.*s with "
                  "generation %.*s\n",
                  (int)id_size,
                  id,
                  (int)(id - mine - 1),
                  mine,
                  taken ? "taken over" : "asked for, in vain,",
                  (int)(generation - other - 1),
                  other,
                  (int)(mine - generation - 1),
                  generation);
    if (taken) {
        stored_depose(g->options.stored, id, id_size, strtoull(generation, NULL, 10));
    }
}

static void on_reply(struct guard *g, const redisReply *r)
{
    if (r->type == REDIS_REPLY_ARRAY && r->elements == 3 &&
        strcmp(r->element[0]->str, "message") == 0) {
        on_notice(g, r->element[2]->str, r->element[2]->len);
    }
}

/* False: the thread has to end. */
static bool wait_for(const struct guard *g, int fd, int ms)
{
    struct pollfd p[2] = {{.fd = g->quit[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    (void)poll(p, fd < 0 ? 1 : 2, ms);
    return p[0].revents == 0;
}

/* Until the connection breaks, or the thread has to end: then false. */
static bool listen_on(struct guard *g, redisContext *c)
{
    redisReply *first = redisCommand(c, "SUBSCRIBE %s", g->channel);

    freeReplyObject(first);
    while (c->err == 0) {
        void *next = NULL;

        while (redisGetReplyFromReader(c, &next) == REDIS_OK && next != NULL) {
            on_reply(g, next);
            freeReplyObject(next);
        }
        if (!wait_for(g, c->fd, -1)) {
            return false;
        }
        (void)redisBufferRead(c); // Its error ends the loop.
    }
    return true;
}

static void *run(void *argument)
{
    struct guard *g = argument;
    int backoff_ms = BACKOFF_FIRST_MS;

    do {
        char why[JOBS_WHY_SIZE];
        redisContext *c = g->options.dial(g->options.store, jobs_now_ms() + DIAL_MS, why);

        if (c == NULL) {
            backoff_ms = 2 * backoff_ms < BACKOFF_LAST_MS ? 2 * backoff_ms : BACKOFF_LAST_MS;
            continue;
        }
        const bool goes_on = listen_on(g, c);
        redisFree(c);
        backoff_ms = BACKOFF_FIRST_MS;
        if (!goes_on) {
            break;
        }
    } while (wait_for(g, -1, backoff_ms));
    return NULL;
}

static void release(struct guard *g)
{
    (void)close(g->quit[0]);
    (void)close(g->quit[1]);
    free(g->channel);
    free(g);
}

struct guard *guard_start(const struct guard_options *options)
{
    struct guard *g = calloc(1, sizeof *g);

    if (g == NULL || pipe(g->quit) != 0) {
        free(g);
        return NULL;
    }
    g->options = *options;
    g->channel = strdup(options->channel);
    if (g->channel == NULL || pthread_create(&g->thread, NULL, run, g) != 0) {
        release(g);
        return NULL;
    }
    return g;
}

void guard_stop(struct guard *g)
{
    if (g == NULL) {
        return;
    }
    (void)!write(g->quit[1], "", 1);
    (void)pthread_join(g->thread, NULL);
    release(g);
}
