/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the list() callbacks of kinds on threads of their own and collects the
 * ids.
 */
#include "node/lister_uv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/record.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { AGAIN_US = 1000000, LOOK_NS = 10000000 };

enum listing_state { LISTING_IDLE, LISTING_RUNNING, LISTING_GIVING };

struct rh_ids {
    struct buffer bytes; /* a byte of size, then the id, and so on */
};

/* Of one kind. */
struct listing {
    struct lister *lister;
    const struct kind *kind;
    enum listing_state state;
    bool asked;
    uint64_t asked_us; /* not before */
    size_t at;         /* GIVING: in ids.bytes */
    pthread_t thread;
    struct rh_ids ids; /* while RUNNING the thread's, like the next */
    int result;
    atomic_bool ended;
};

struct lister {
    void (*on_listed)(void *context);
    void *context;
    struct listing listing[KINDS_MAX];
    size_t count;
    atomic_bool left; /* nobody listens any more: it was stuck at the end */
};

void rh_ids_put(struct rh_ids *ids, struct rh_bytes id)
{
    const uint8_t size = (uint8_t)id.size;

    if (ids != NULL && id.data != NULL && id.size >= 1 && id.size <= RECORD_ID_MAX) {
        buffer_put(&ids->bytes, &size, 1);
        buffer_put(&ids->bytes, id.data, id.size);
    }
}

static void *run(void *argument)
{
    struct listing *g = argument;
    struct lister *l = g->lister;

    g->result = g->kind->ops.list(g->kind->shared, &g->ids);
    atomic_store(&g->ended, true);
    if (!atomic_load(&l->left)) {
        l->on_listed(l->context);
    }
    return NULL;
}

static void start(struct listing *g, uint64_t now_us)
{
    buffer_clear(&g->ids.bytes);
    atomic_store(&g->ended, false);
    if (pthread_create(&g->thread, NULL, run, g) == 0) {
        g->asked = false;
        g->state = LISTING_RUNNING;
        return;
    }
    log_error("node",
              "list_failed",
              "kind=%u: can't start a thread for its list callback",
              g->kind->number);
    g->asked_us = now_us + AGAIN_US;
}

static void end(struct listing *g, uint64_t now_us)
{
    (void)pthread_join(g->thread, NULL);
    g->at = 0;
    g->state = LISTING_GIVING; // What it told counts, even if it failed then.
    if (g->result != RH_OK) {
        log_warn("node",
                 "list_failed",
                 "kind=%u name=%s result=%d, the list callback is called again soon",
                 g->kind->number,
                 g->kind->ops.name,
                 g->result);
        g->asked = true;
        g->asked_us = now_us + AGAIN_US;
    }
}

struct lister *lister_new(const struct kinds *kinds, void (*on_listed)(void *context),
                          void *context)
{
    struct lister *l = mem_new(1, sizeof *l);

    l->on_listed = on_listed;
    l->context = context;
    for (size_t i = 0; i < kinds->count; i++) {
        if (kinds->kind[i].ops.list != NULL) {
            struct listing *g = &l->listing[l->count++];

            g->lister = l;
            g->kind = &kinds->kind[i];
        }
    }
    return l;
}

void lister_ask(struct lister *l, uint16_t kind, uint64_t now_us)
{
    for (size_t i = 0; i < l->count; i++) {
        struct listing *g = &l->listing[i];

        if (g->kind->number == kind) {
            g->asked = true;
            g->asked_us = now_us;
        }
    }
    lister_tick(l, now_us);
}

void lister_tick(struct lister *l, uint64_t now_us)
{
    for (size_t i = 0; i < l->count; i++) {
        struct listing *g = &l->listing[i];

        if (g->state == LISTING_IDLE && g->asked && now_us >= g->asked_us) {
            start(g, now_us);
        }
    }
}

static bool take(struct listing *g, struct bytes *id)
{
    const struct buffer *ids = &g->ids.bytes;

    if (g->at == ids->size) {
        buffer_fini(&g->ids.bytes);
        g->state = LISTING_IDLE;
        return false;
    }
    *id = bytes_of(ids->data + g->at + 1, ids->data[g->at]);
    g->at += 1 + id->size;
    return true;
}

bool lister_take(struct lister *l, uint64_t now_us, uint16_t *kind, struct bytes *id)
{
    for (size_t i = 0; i < l->count; i++) {
        struct listing *g = &l->listing[i];

        if (g->state == LISTING_RUNNING && atomic_load(&g->ended)) {
            end(g, now_us);
        }
        if (g->state == LISTING_GIVING && take(g, id)) {
            *kind = g->kind->number;
            return true;
        }
    }
    return false;
}

static bool join(struct listing *g, uint64_t until_us)
{
    const struct timespec moment = {.tv_nsec = LOOK_NS};

    while (g->state == LISTING_RUNNING && !atomic_load(&g->ended)) {
        if (clock_boottime_us() >= until_us) {
            log_error("node",
                      "stuck",
                      "kind=%u name=%s: its list callback does not return",
                      g->kind->number,
                      g->kind->ops.name);
            return false;
        }
        (void)nanosleep(&moment, NULL);
    }
    if (g->state == LISTING_RUNNING) {
        (void)pthread_join(g->thread, NULL);
        g->state = LISTING_IDLE;
    }
    return true;
}

bool lister_close(struct lister *l, uint64_t until_us)
{
    bool all = true;

    for (size_t i = 0; l != NULL && i < l->count; i++) {
        all = join(&l->listing[i], until_us) && all;
    }
    for (size_t i = 0; l != NULL && i < l->count && all; i++) {
        buffer_fini(&l->listing[i].ids.bytes);
    }
    if (all) {
        mem_free(l);
    } else {
        atomic_store(&l->left, true);
    }
    return all;
}
