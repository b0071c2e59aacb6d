/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that listens for notices about the locks of this process, and what
 * they mean.
 */
#include "guard.h"

#include <inttypes.h>
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

void guard_hear(struct guard *g, const char *text, size_t size)
{
    const bool taken = strncmp(text, "taken ", 6) == 0;
    const char *other = after_word(text);
    const char *generation = after_word(other);
    const char *mine = after_word(generation);
    const char *id = after_word(mine);

    if (id == NULL) {
        (void)fprintf(stderr, "%s: a notice that isn't one: %s\n", g->options.ear->name, text);
        return;
    }
    const size_t id_size = size - (size_t)(id - text);
    (void)atomic_fetch_add(&g->conflicts, 1);
    (void)fprintf(stderr,
                  "%s: conflict: \"%.*s\": my lock of generation %.*s was %s by %.*s with "
                  "generation %.*s\n",
                  g->options.ear->name,
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

void guard_note_held(const char *name, const struct stored_row *row, const char *holder,
                     const char *told)
{
    (void)fprintf(stderr,
                  "%s: activation with generation %" PRIu64
                  " refused: the lock is that of \"%s\" (%s)\n",
                  name,
                  row->token,
                  holder,
                  told);
}

/* False: the thread has to end. */
static bool wait_for(const struct guard *g, int fd, int ms)
{
    struct pollfd p[2] = {{.fd = g->quit[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    (void)poll(p, fd < 0 ? 1 : 2, ms);
    return p[0].revents == 0;
}

/* Until the connection breaks, or the thread has to end: then false. */
static bool listen_on(struct guard *g, void *connection)
{
    const struct guard_ear *ear = g->options.ear;

    do {
        ear->hear(g, connection);
        if (!wait_for(g, ear->fd(connection), -1)) {
            return false;
        }
    } while (ear->read(connection));
    return true;
}

static void *run(void *argument)
{
    struct guard *g = argument;
    const struct guard_ear *ear = g->options.ear;
    int backoff_ms = BACKOFF_FIRST_MS;

    do {
        char why[JOBS_WHY_SIZE];
        void *connection = ear->open(g->options.store, jobs_now_ms() + DIAL_MS, why);

        if (connection == NULL) {
            backoff_ms = 2 * backoff_ms < BACKOFF_LAST_MS ? 2 * backoff_ms : BACKOFF_LAST_MS;
            continue;
        }
        const bool goes_on = listen_on(g, connection);
        ear->close(connection);
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
    if (pthread_create(&g->thread, NULL, run, g) != 0) {
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
