/* SPDX-License-Identifier: Apache-2.0
 *
 * The counter of the store examples: activate, count, flush, all by jobs that
 * answer later.
 */
#include "stored.h"

#include <inttypes.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, SAVE_TRIES = 3, HELD_MS = 1000 };

struct stored {
    const struct stored_ops *ops;
    void *store;
    struct jobs_ops jobs_ops;
    struct jobs *jobs;
    atomic_uint_fast64_t refused_here;
    pthread_mutex_t lock;
    void *live; /* the counters that are here, a tsearch() tree by id; under the lock */
    char node[64];
};

/* The instance. A job may outlive the actor, so both hold it. The job has it while it runs, for the
 * actor is busy then; what both may touch at once is atomic. */
struct counter {
    struct stored *stored;
    atomic_uint holders;
    atomic_bool deposed; /* the lock guard heard of a newer owner */
    atomic_bool left;    /* the actor was ended: write no more */
    bool loaded;         /* row.count is the truth: nobody else counts */
    bool claimed;        /* row.version is what the store has, as far as is known */
    bool fenced;         /* for good */
    int64_t retry_ms;    /* HELD: not before then */
    bool dirty;          /* row.count isn't in the store */
    struct stored_row row;
};

enum request_kind { LOAD, GET, ADD, COUNT, SAVE, REFUSED, RELEASE };

struct request {
    struct job job; /* first */
    enum request_kind kind;
    struct counter *counter;
    struct rh_token token;
    long pause_ms;
    bool away; /* no connection in time */
    enum store_end end;
    int64_t answer;
};

/* ---- counters */

static int compare(const void *left, const void *right)
{
    const struct counter *a = left;
    const struct counter *b = right;

    if (a->row.id_size != b->row.id_size) {
        return a->row.id_size < b->row.id_size ? -1 : 1;
    }
    return memcmp(a->row.id, b->row.id, a->row.id_size);
}

static void list(struct counter *c)
{
    (void)pthread_mutex_lock(&c->stored->lock);
    (void)tsearch(c, &c->stored->live, compare);
    (void)pthread_mutex_unlock(&c->stored->lock);
}

static void unlist(struct counter *c)
{
    (void)pthread_mutex_lock(&c->stored->lock);
    struct counter *const *found = tfind(c, &c->stored->live, compare);
    if (found != NULL && *found == c) {
        (void)tdelete(c, &c->stored->live, compare);
    }
    (void)pthread_mutex_unlock(&c->stored->lock);
}

void stored_depose(struct stored *s, const void *id, size_t id_size, uint64_t token)
{
    struct counter key = {.row.id_size = id_size};

    if (id_size > sizeof key.row.id) {
        return;
    }
    memcpy(key.row.id, id, id_size);
    (void)pthread_mutex_lock(&s->lock);
    struct counter *const *found = tfind(&key, &s->live, compare);
    if (found != NULL && (*found)->row.token < token) {
        atomic_store(&(*found)->deposed, true);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static struct counter *counter_new(struct stored *s, struct rh_bytes id, uint64_t fence)
{
    static atomic_uint_fast64_t activations;
    struct counter *c = calloc(1, sizeof *c);

    if (c != NULL) {
        c->stored = s;
        atomic_init(&c->holders, 1);
        c->row.token = fence;
        c->row.activation = atomic_fetch_add(&activations, 1) + 1;
        c->row.id_size = id.size;
        memcpy(c->row.id, id.data, id.size);
        list(c);
    }
    return c;
}

static void counter_drop(struct counter *c)
{
    if (atomic_fetch_sub(&c->holders, 1) == 1) {
        free(c);
    }
}

/* ---- requests: on the actor's thread */

static struct request *request_new(struct counter *c, enum request_kind kind)
{
    struct request *r = calloc(1, sizeof *r);

    if (r != NULL) {
        r->kind = kind;
        r->counter = c;
        (void)atomic_fetch_add(&c->holders, 1);
    }
    return r;
}

static void request_free(struct request *r)
{
    counter_drop(r->counter);
    free(r);
}

/* The actor, unless NULL, is busy until the request ends. */
static bool put(struct rh_actor *actor, struct counter *c, enum request_kind kind, long pause_ms)
{
    struct request *r = request_new(c, kind);

    if (r == NULL) {
        return false;
    }
    r->pause_ms = pause_ms;
    if (actor != NULL) {
        r->token = rh_defer(actor);
    }
    if (!jobs_put(c->stored->jobs, &r->job)) {
        request_free(r);
        return false;
    }
    return true;
}

/* ---- requests: on a thread of the pool */

/* At activation; again for each message if the store was away then. */
static enum store_end load(struct counter *c, void *connection)
{
    enum store_end end = STORE_OK;

    if (c->fenced || atomic_load(&c->left)) {
        return STORE_FENCED;
    }
    if (!c->loaded && jobs_now_ms() < c->retry_ms) {
        return STORE_HELD;
    }
    if (!c->loaded) {
        end = c->stored->ops->claim(connection, &c->row);
        c->loaded = c->claimed = end == STORE_OK;
        c->fenced = end == STORE_FENCED;
        c->retry_ms = end == STORE_HELD ? jobs_now_ms() + HELD_MS : 0;
    }
    return end == STORE_UNKNOWN ? STORE_ERROR : end; // Whatever it did, it counted nothing.
}

static void note_refusal(struct counter *c, void *connection)
{
    struct stored *s = c->stored;
    const uint64_t refused = atomic_fetch_add(&s->refused_here, 1) + 1;

    (void)fprintf(stderr,
                  "%s: refused a write with token %" PRIu64 ": a newer owner has the row (%" PRIu64
                  " so far)\n",
                  s->ops->name,
                  c->row.token,
                  refused);
    s->ops->note(connection, &c->row, s->node);
}

/* Write the count; a version that isn't known, or not that of the store, is claimed first. What a
 * claim changes makes every write that was sent before worthless, also one that the database has
 * not seen yet. */
static enum store_end save(struct counter *c, void *connection, int64_t count)
{
    enum store_end end = STORE_CHANGED;

    for (int tries = 0; tries < SAVE_TRIES && end == STORE_CHANGED; tries++) {
        struct stored_row now = c->row;

        if (!c->claimed) {
            end = c->stored->ops->claim(connection, &now);
            if (end != STORE_OK) {
                end = end == STORE_UNKNOWN ? STORE_ERROR : end; // The count was not touched.
                break;
            }
            c->row.version = now.version;
            c->claimed = true;
        }
        end = c->stored->ops->write(connection, &c->row, count);
        c->row.version += end == STORE_OK;
        c->claimed = end == STORE_OK;
    }
    if (end == STORE_OK || end == STORE_UNKNOWN) {
        // Written or not: nobody else counts, so the next save makes it true.
        c->row.count = count;
        c->dirty = end != STORE_OK;
    } else if (end == STORE_FENCED) {
        c->fenced = true;
        c->dirty = false;
        note_refusal(c, connection);
    }
    return end;
}

static enum store_end count_up(struct request *r, void *connection)
{
    struct counter *c = r->counter;
    const struct timespec pause = {.tv_sec = r->pause_ms / 1000,
                                   .tv_nsec = r->pause_ms % 1000 * 1000000};

    // From here on it may be frozen as long as it likes: the store knows.
    (void)nanosleep(&pause, NULL);
    return save(c, connection, c->row.count + 1);
}

static void serve(struct request *r, void *connection)
{
    struct counter *c = r->counter;
    const struct stored_ops *ops = c->stored->ops;

    if (r->kind == RELEASE) {
        ops->release(connection, &c->row);
        return;
    }
    if (r->kind == REFUSED) {
        r->end = ops->refused(connection, &r->answer);
        return;
    }
    r->end = load(c, connection);
    if (r->end == STORE_OK && r->kind == COUNT) {
        r->end = count_up(r, connection);
    } else if (r->end == STORE_OK && r->kind == SAVE && c->dirty) {
        r->end = save(c, connection, c->row.count);
    } else if (r->end == STORE_OK && r->kind == ADD) {
        c->row.count++;
        c->dirty = true;
    }
    r->answer = c->row.count;
}

static const char *complaint(const struct request *r)
{
    static const char *const text[] = {
        [STORE_ERROR] = "ERR the store failed; nothing was counted",
        [STORE_UNKNOWN] = "UNKNOWN the store did not say whether it has counted that",
        [STORE_FENCED] = "FENCED another node has this id now",
        [STORE_HELD] = "HELD another process has the lock of this id",
        [STORE_CHANGED] = "ERR the store failed; nothing was counted",
    };

    return r->away ? "AWAY the store can't be reached; nothing was counted" : text[r->end];
}

/* Let the actor go on. */
static void finish(struct request *r, void *connection)
{
    struct counter *c = r->counter;
    const bool good = !r->away && r->end == STORE_OK;

    switch (r->kind) {
    case GET:
    case ADD:
    case COUNT:
    case REFUSED:
        (void)rh_reply_later(r->token, good ? rh_integer(r->answer) : rh_error(complaint(r)));
        break;
    case SAVE:
        // Nothing is left to save for one that is fenced.
        (void)rh_done(r->token, good || c->fenced ? RH_OK : RH_FAILED);
        break;
    case LOAD:
        // It lives even if the store is away, and tells each client so in time.
        if (rh_done(r->token, RH_OK) != RH_OK && good && c->stored->ops->release != NULL) {
            c->stored->ops->release(connection, &c->row); // Its deactivate came too early for that.
        }
        break;
    case RELEASE:
        break;
    }
}

static bool on_work(void *context, void *connection, struct job *job)
{
    struct request *r = (struct request *)job;
    const struct stored *s = context;

    r->away = connection == NULL;
    if (!r->away) {
        serve(r, connection);
    }
    finish(r, connection);
    request_free(r);
    return connection != NULL && s->ops->is_alive(connection);
}

/* ---- the kind */

static void *on_open(void *context, int64_t until_ms, char why[JOBS_WHY_SIZE])
{
    const struct stored *s = context;

    return s->ops->open(s->store, until_ms, why);
}

/* A server that isn't there when the node starts is a wrong address more often than not. */
static bool can_open(const struct stored *s)
{
    char why[JOBS_WHY_SIZE] = "";
    void *connection = s->ops->open(s->store, jobs_now_ms() + JOB_MS, why);

    if (connection == NULL) {
        (void)fprintf(stderr, "%s: %s\n", s->ops->name, why);
        return false;
    }
    s->ops->close(connection);
    return true;
}

struct stored *stored_start(const struct stored_ops *ops, void *store, const char *node)
{
    struct stored *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return NULL;
    }
    s->ops = ops;
    s->store = store;
    (void)snprintf(s->node, sizeof s->node, "%s", node);
    (void)pthread_mutex_init(&s->lock, NULL);
    s->jobs_ops = (struct jobs_ops){ops->name, on_open, ops->close, on_work};
    if (can_open(s) && (s->jobs = jobs_start(&s->jobs_ops, s, THREADS)) != NULL) {
        return s;
    }
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

void stored_stop(struct stored *s)
{
    jobs_stop(s->jobs);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

void *stored_store(const struct stored *s)
{
    return s->store;
}

/* ---- the actor */

int stored_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance)
{
    struct counter *c = counter_new(rh_shared(actor), rh_id(actor), fence);

    (void)state; /* the store has it, whether the old owner moved or died */
    if (c == NULL) {
        return RH_FAILED;
    }
    *instance = c;
    return put(actor, c, LOAD, 0) ? RH_PENDING : RH_OK;
}

/* False: it takes no such payload. */
static bool read_text(const char *text, enum request_kind *kind, long *pause_ms)
{
    static const struct {
        const char *word;
        enum request_kind kind;
    } table[] = {{"GET", GET}, {"ADD", ADD}, {"INCR", COUNT}, {"REFUSED", REFUSED}};

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(text, table[i].word) == 0) {
            *kind = table[i].kind;
            return true;
        }
    }
    *kind = COUNT;
    *pause_ms = strncmp(text, "SLOW ", 5) == 0 ? strtol(text + 5, NULL, 10) : 0;
    return *pause_ms > 0;
}

static const char fenced_text[] = "FENCED another node has this id now";

/* It was the owner, and is no more. One that was never the owner lives on, to tell each client so.
 */
static bool was_deposed(const struct counter *c)
{
    return c->loaded && (c->fenced || atomic_load(&c->deposed));
}

static void serve_text(struct rh_actor *actor, struct counter *c, const char *text)
{
    const struct stored *s = c->stored;
    enum request_kind kind = GET;
    long pause_ms = 0;

    if (strcmp(text, "CONFLICTS") == 0) {
        (void)rh_reply(actor, rh_integer(s->ops->conflicts ? s->ops->conflicts(s->store) : 0));
    } else if (!read_text(text, &kind, &pause_ms)) {
        (void)rh_reply(actor,
                       rh_error("ERR it takes INCR, ADD, GET, SLOW ms, REFUSED and CONFLICTS"));
    } else if (was_deposed(c) && kind != REFUSED) {
        (void)rh_deposed(actor, fenced_text);
    } else if (c->fenced && kind != REFUSED) {
        (void)rh_reply(actor, rh_error(fenced_text));
    } else if (c->loaded && (kind == GET || kind == ADD)) {
        c->row.count += kind == ADD;
        c->dirty = c->dirty || kind == ADD;
        (void)rh_reply(actor, rh_integer(c->row.count));
    } else if (!put(actor, c, kind, pause_ms)) {
        (void)rh_reply(actor, rh_error("BUSY too many requests wait for the store"));
    }
}

void stored_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    char text[32] = "";

    if (message->payload.size > 0 && message->payload.size < sizeof text) {
        memcpy(text, message->payload.data, message->payload.size);
    }
    serve_text(actor, instance, text);
}

int stored_flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence)
{
    struct counter *c = instance;

    (void)fence; /* as rh_fence(): it is in the row */
    if (was_deposed(c)) {
        if (why == RH_PERIODIC) {
            (void)rh_timer_start(actor, 1, 0, NULL); // A timer may end the actor, a flush may not.
        }
        return RH_OK;
    }
    if (!c->dirty || c->fenced) {
        return RH_OK;
    }
    return put(actor, c, SAVE, 0) ? RH_PENDING : RH_FAILED;
}

void stored_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    (void)instance;
    (void)timer;
    (void)argument;
    (void)rh_deposed(actor, fenced_text);
}

void stored_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct counter *c = instance;

    (void)actor;
    unlist(c);
    if (c->stored->ops->release != NULL && why != RH_FENCED) {
        (void)put(NULL, c, RELEASE, 0); // If it gets lost, the next owner takes a stale lock.
    }
    atomic_store(&c->left, true);
    counter_drop(c);
}
