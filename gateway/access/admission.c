/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides who may come in, by rates and counts for the gateway and for each
 * address, and when the others should try again.
 */
#include "gateway/access/admission.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/table.h"
#include "gateway/access/origin.h"

#include <pthread.h>

enum {
    ADDRESSES_MAX = 65536,
    RETRY_MIN_MS = 100,
    RETRY_MAX_MS = 300 * 1000, /* later than that is the same for all: some time */
    RETRY_CROWD_MS = 5000,     /* too many are here from an address: when it first makes sense */
    CROWD_RATE = 100,          /* a second come back then */
    LEAVE_RATE_MIN = 100,      /* a second are thought to leave, at least */
    LEAVE_RATE_MAX = 10000,    /* and at most */
    SHED_US = 1000 * 1000,     /* it is shedding for so long after a refusal */
    LEAVE_WINDOW_US = 1000 * 1000,
};

/* When the last one was told to come back. */
struct agenda {
    uint64_t last_us;
};

struct client_address {
    struct table_link link; /* by address */
    struct list_link age;   /* nobody is here from it: the oldest first */
    struct bucket bucket;
    struct agenda agenda;
    uint32_t count; /* of its connections */
    struct origin from;
};
_Static_assert(sizeof(struct client_address) <= ADMISSION_ADDRESS_SIZE_MAX, "as documented");

struct admission_control {
    pthread_mutex_t lock; /* all below */
    struct admission_config config;
    struct table table; /* struct client_address, owned */
    struct list absent; /* those of them that nobody is here from */
    struct bucket accept;
    struct agenda agenda;
    struct prng chance;
    uint64_t shed_us; /* shedding until then; 0 = never was */
    uint64_t window_us;
    uint32_t leaving;    /* in this window */
    uint32_t leave_rate; /* a second, of late */
};

/* ---- addresses ---- */

static struct client_address *find(const struct admission_control *d, const struct origin *from)
{
    const uint64_t hash = origin_hash(from, d->config.seed);

    for (struct table_link *l = table_first(&d->table, hash); l != NULL; l = table_same(l)) {
        struct client_address *v = CONTAINER_OF(l, struct client_address, link);

        if (origin_is(&v->from, from)) {
            return v;
        }
    }
    return NULL;
}

static void forget(struct admission_control *d, struct client_address *v)
{
    ASSERT(v->count == 0);
    list_remove(&v->age);
    table_remove(&d->table, &v->link);
    mem_free(v);
}

/* Those that are as if they had never come, two at most: more than one comes at a time. And the
 * oldest, if there are too many. */
static void forget_some(struct admission_control *d, uint64_t now_us)
{
    for (unsigned i = 0; i < 2 && !list_empty(&d->absent); i++) {
        struct client_address *v = CONTAINER_OF(list_front(&d->absent), struct client_address, age);
        const bool fresh = bucket_is_full(&v->bucket, now_us) && v->agenda.last_us <= now_us;

        if (!fresh && d->table.count < d->config.addresses_max) {
            return;
        }
        forget(d, v);
    }
}

/* Known, and the one that came last. */
static struct client_address *know(struct admission_control *d, const char *address,
                                   uint64_t now_us)
{
    const struct origin from = origin_of(address);
    struct client_address *v = find(d, &from);

    if (v == NULL) {
        forget_some(d, now_us);
        v = mem_new(1, sizeof *v);
        v->from = from;
        table_put(&d->table, &v->link, origin_hash(&from, d->config.seed));
        list_push_back(&d->absent, &v->age);
    } else if (v->count == 0) {
        list_remove(&v->age);
        list_push_back(&d->absent, &v->age);
    }
    return v;
}

/* ---- appointments ---- */

static uint32_t later(struct admission_control *d, uint64_t ms)
{
    return (uint32_t)prng_between(&d->chance, ms, ms + ms / 4);
}

/* The next one, `first_ms` from now at the earliest; `rate` of them are given a second. */
static uint32_t appoint(struct admission_control *d, struct agenda *a, uint32_t rate,
                        uint32_t first_ms, uint64_t now_us)
{
    const uint64_t first_us = now_us + (uint64_t)first_ms * 1000;
    const uint64_t last_us = now_us + (uint64_t)RETRY_MAX_MS * 1000;

    a->last_us = (a->last_us > first_us ? a->last_us : first_us) + 1000000 / rate;
    if (a->last_us > last_us) {
        a->last_us = last_us;
        return (uint32_t)prng_between(&d->chance, RETRY_MAX_MS / 2, RETRY_MAX_MS);
    }
    return later(d, (a->last_us - now_us) / 1000);
}

static void shed(struct admission_control *d, uint64_t now_us)
{
    d->shed_us = now_us + SHED_US;
}

/* ---- who leaves ---- */

/* The rate is that of the last windows, the last one counting for half. */
static void pass_windows(struct admission_control *d, uint64_t now_us)
{
    if (d->window_us == 0) {
        d->window_us = now_us;
    }
    for (unsigned i = 0; i < 8 && now_us - d->window_us >= LEAVE_WINDOW_US; i++) {
        d->leave_rate = (d->leave_rate + d->leaving) / 2;
        d->leaving = 0;
        d->window_us += LEAVE_WINDOW_US;
    }
    if (now_us - d->window_us >= LEAVE_WINDOW_US) { // long ago
        d->leave_rate = 0;
        d->window_us = now_us;
    }
}

static uint32_t leave_rate(struct admission_control *d, uint64_t now_us)
{
    const uint32_t accepted = d->config.accept.rate;
    const uint32_t most = accepted != 0 && accepted < LEAVE_RATE_MAX ? accepted : LEAVE_RATE_MAX;

    pass_windows(d, now_us);
    const uint32_t rate = d->leave_rate > LEAVE_RATE_MIN ? d->leave_rate : LEAVE_RATE_MIN;
    return rate < most ? rate : most;
}

/* ---- admission ---- */

struct admission_control *admission_new(const struct admission_config *config)
{
    struct admission_control *d = mem_new(1, sizeof *d);

    (void)pthread_mutex_init(&d->lock, NULL);
    d->config = *config;
    d->config.addresses_max = config->addresses_max == 0 ? ADDRESSES_MAX : config->addresses_max;
    d->chance.state = config->seed;
    list_init(&d->absent);
    return d;
}

void admission_configure(struct admission_control *d, const struct admission_config *config)
{
    (void)pthread_mutex_lock(&d->lock);
    d->config.accept = config->accept;
    d->config.address = config->address;
    d->config.address_count_max = config->address_count_max;
    (void)pthread_mutex_unlock(&d->lock);
}

void admission_free(struct admission_control *d)
{
    if (d == NULL) {
        return;
    }
    while (!list_empty(&d->absent)) {
        forget(d, CONTAINER_OF(list_front(&d->absent), struct client_address, age));
    }
    ASSERT(d->table.count == 0);
    table_fini(&d->table);
    (void)pthread_mutex_destroy(&d->lock);
    mem_free(d);
}

static bool asks_addresses(const struct admission_control *d)
{
    return d->config.address.rate > 0 || d->config.address_count_max > 0;
}

/* Those of the address come first: one that may not come in takes nobody's place. */
static enum admission_verdict judge(struct admission_control *d, struct client_address *v,
                                    uint64_t now_us, uint32_t *retry_ms)
{
    const struct admission_config *c = &d->config;

    if (v != NULL && c->address_count_max > 0 && v->count >= c->address_count_max) {
        *retry_ms = appoint(d, &v->agenda, CROWD_RATE, RETRY_CROWD_MS, now_us);
        return ADMISSION_ADDRESS_COUNT;
    }
    if (v != NULL && bucket_take(&v->bucket, c->address, now_us) > 0) {
        *retry_ms = appoint(d, &v->agenda, c->address.rate, RETRY_MIN_MS, now_us);
        return ADMISSION_ADDRESS_RATE;
    }
    if (bucket_take(&d->accept, c->accept, now_us) > 0) {
        *retry_ms = appoint(d, &d->agenda, c->accept.rate, RETRY_MIN_MS, now_us);
        shed(d, now_us);
        return ADMISSION_ACCEPT_RATE;
    }
    return ADMISSION_OPEN;
}

enum admission_verdict admission_enter(struct admission_control *d, const char *address,
                                       uint64_t now_us, struct client_address **client_address,
                                       uint32_t *retry_ms)
{
    (void)pthread_mutex_lock(&d->lock);
    struct client_address *v = asks_addresses(d) ? know(d, address, now_us) : NULL;
    const enum admission_verdict verdict = judge(d, v, now_us, retry_ms);
    *client_address = NULL;
    if (verdict == ADMISSION_OPEN && v != NULL) {
        if (v->count++ == 0) {
            list_remove(&v->age);
        }
        *client_address = v;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return verdict;
}

void admission_leave(struct admission_control *d, struct client_address *client_address,
                     uint64_t now_us)
{
    (void)pthread_mutex_lock(&d->lock);
    pass_windows(d, now_us);
    d->leaving++;
    if (client_address != NULL) {
        ASSERT(client_address->count > 0);
        if (--client_address->count == 0) {
            list_push_back(&d->absent, &client_address->age);
        }
    }
    (void)pthread_mutex_unlock(&d->lock);
}

uint32_t admission_turn_away(struct admission_control *d, uint64_t now_us)
{
    (void)pthread_mutex_lock(&d->lock);
    const uint32_t ms = appoint(d, &d->agenda, leave_rate(d, now_us), 10 * RETRY_MIN_MS, now_us);
    shed(d, now_us);
    (void)pthread_mutex_unlock(&d->lock);
    return ms;
}

uint32_t admission_jitter(struct admission_control *d, uint32_t ms)
{
    (void)pthread_mutex_lock(&d->lock);
    const uint32_t drawn = later(d, ms);
    (void)pthread_mutex_unlock(&d->lock);
    return drawn;
}

struct admission_state admission_state(struct admission_control *d, uint64_t now_us)
{
    struct admission_state s = {0};

    (void)pthread_mutex_lock(&d->lock);
    if (d->agenda.last_us > now_us) {
        s.backlog_ms = (d->agenda.last_us - now_us) / 1000;
    }
    s.shedding = s.backlog_ms > 0 || d->shed_us > now_us;
    s.addresses = d->table.count;
    (void)pthread_mutex_unlock(&d->lock);
    return s;
}
