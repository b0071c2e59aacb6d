/* SPDX-License-Identifier: Apache-2.0
 *
 * A node without links, threads or files: host and one worker, driven in batches
 * as the shell does (node/peers_uv.c, dispatcher_uv.c), on one thread. What a request
 * costs in it is counted: by callgrind in bench/node_bench.c, as allocations and
 * hand-overs in tests/node/node_cost_test.c.
 *
 * A round is one frame of requests from one gateway; each is of an actor of its
 * own, as long as there are enough of them, of one session after the other.
 */
#ifndef BENCH_NODE_MILL_H
#define BENCH_NODE_MILL_H

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "node/actors/actors.h"
#include "node/host/host.h"
#include "node/worker/worker_uv.h"
#include "wire/args.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"

#include <stdio.h>
#include <string.h>

enum {
    MILL_KV = 0,
    MILL_ECHO = 1,
    MILL_GATEWAY = 900,
    MILL_FRAME_MAX = 1024, /* requests of a frame */
    MILL_BODY = 64,
    MILL_VERSION = 10,
};

struct mill {
    struct host *host;
    struct host_effects effects;
    struct kind kind[2];
    struct limits limits;
    struct watchdog *watchdog;
    struct crash_record_slot crash_record;
    struct worker *worker;
    struct buffer frame;   /* of requests */
    struct buffer answers; /* of this round */
    size_t answer_count;
    size_t told; /* calls of on_told() so far */
    size_t actor_count;
    size_t step; /* from one request's actor to the next one's: all have their turn */
    size_t next; /* actor */
    size_t session_count;
    uint64_t made; /* requests so far */
    uint64_t now_us;
};

/* ---- the shell's part */

static inline void mill_on_told(void *context)
{
    struct mill *m = context;

    m->told++;
}

static inline void mill_perform(struct mill *m, const struct host_effect *e)
{
    const struct bytes bytes = {m->effects.bytes.data + e->at, e->size};
    struct post post = {.type = POST_RUN, .number = e->ticket, .flags = e->flags};

    switch ((int)e->type) {
    case HOST_SEND_PEER:
        buffer_put(&m->answers, bytes.data, bytes.size);
        m->answer_count++;
        return;
    case HOST_ACTIVATE:
        post.type = POST_ACTIVATE;
        post.kind = &m->kind[actor_kind(e->actor)];
        actor_set_instance(
            e->actor,
            worker_activation(m->worker, actor_kind(e->actor), actor_id(e->actor), e->actor));
        break;
    case HOST_RUN:
        break;
    default:
        return;
    }
    post.activation = actor_instance(e->actor);
    worker_post(m->worker, &post, e->chain, bytes);
}

static inline void mill_step(struct mill *m, struct host_event *event)
{
    event->now_us = m->now_us;
    host_step(m->host, event, &m->effects);
    for (size_t i = 0; i < m->effects.count; i++) {
        mill_perform(m, &m->effects.item[i]);
    }
    host_effects_clear(&m->effects);
}

/* ---- its start and end */

static inline void mill_control(struct mill *m, Rh__Control *c)
{
    struct host_event event = {.type = HOST_CONTROL, .message = c};

    c->era = 1;
    mill_step(m, &event);
}

static inline void mill_register(struct mill *m)
{
    struct view cluster;
    struct view_member self = {.slot = 1, .incarnation = 100, .weight = 1};
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Leader leader = RH__LEADER__INIT;
    Rh__Control r = RH__CONTROL__INIT;
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Config config;
    struct host_event up = {.type = HOST_COORDINATOR_UP};
    struct host_event gateway = {.type = HOST_PEER_UP,
                                 .peer = MILL_GATEWAY,
                                 .role = ROLE_GATEWAY,
                                 .name = "g",
                                 .incarnation = MILL_GATEWAY};

    view_init(&cluster, RING_GRID_MIN);
    cluster.key = (struct ring_key){3, 4};
    cluster.era = 1;
    ring_create(&cluster.ring, 16, 1, MILL_VERSION);
    (void)snprintf(self.name, sizeof self.name, "n1");
    (void)snprintf(self.address, sizeof self.address, "h1");
    cluster.member = mem_copy(&self, sizeof self);
    cluster.member_count = 1;
    mill_step(m, &up);
    leader.leading = true;
    leader.term = 1;
    c.body_case = RH__CONTROL__BODY_LEADER;
    c.leader = &leader;
    mill_control(m, &c);
    view_config(&cluster, &config);
    ok.nonce = 7;
    ok.slot = 1;
    ok.incarnation = 100;
    ok.floor = MILL_VERSION;
    ok.config = &config;
    r.body_case = RH__CONTROL__BODY_REG_OK;
    r.reg_ok = &ok;
    mill_control(m, &r);
    view_config_fini(&config);
    view_fini(&cluster);
    mill_step(m, &gateway);
}

/* A part of the actors, about 0.6, that has no divisor in common with them. */
static inline size_t mill_step_of(size_t count)
{
    size_t step = count * 5 / 8 + 1;

    for (;; step++) {
        size_t a = step;
        size_t b = count;

        while (b != 0) {
            const size_t rest = a % b;

            a = b;
            b = rest;
        }
        if (a == 1) {
            return step;
        }
    }
}

/* With one session each actor keeps one order record; with many it gets another with each. */
static inline void mill_open(struct mill *m, size_t actor_count, size_t session_count)
{
    static const struct host_kind kinds[] = {{.number = MILL_KV, .idle_ms = UINT32_MAX},
                                             {.number = MILL_ECHO, .idle_ms = UINT32_MAX}};
    struct host_config config = host_config_default();
    struct worker_config worker = {.embedded = true, .on_told = mill_on_told, .context = m};

    *m = (struct mill){.actor_count = actor_count,
                       .step = mill_step_of(actor_count),
                       .session_count = session_count,
                       .now_us = clock_boottime_us()};
    m->kind[MILL_KV].ops = actor_kv;
    m->kind[MILL_ECHO].ops = actor_echo;
    atomic_store(&m->limits.start_us, UINT64_MAX);
    atomic_store(&m->limits.gate_us, UINT64_MAX);
    atomic_store(&m->limits.hard_end_us, UINT64_MAX);
    m->watchdog = watchdog_new(RH_OVERRUN_GATE, 1);
    worker.limits = &m->limits;
    worker.watchdog = m->watchdog;
    worker.crash_record = &m->crash_record;
    m->worker = worker_new(&worker);
    ASSERT(m->watchdog != NULL && m->worker != NULL);
    (void)snprintf(config.name, sizeof config.name, "n1");
    config.kinds = kinds;
    config.kind_count = 2;
    config.nonce = 7;
    m->host = host_new(&config);
    mill_register(m);
}

static inline void mill_close(struct mill *m)
{
    worker_stop(m->worker, 0);
    (void)worker_poll(m->worker, 0);
    worker_free(m->worker);
    watchdog_free(m->watchdog);
    host_free(m->host);
    host_effects_fini(&m->effects);
    buffer_fini(&m->frame);
    buffer_fini(&m->answers);
}

/* ---- the stages of a round */

/* As the gateway would: `count` requests, SET or GET of 64 bytes, or an echo of them. */
static inline void mill_make(struct mill *m, uint16_t kind, size_t count)
{
    static const uint8_t value[MILL_BODY] = "value";
    struct buffer body = {0};
    char id[32];

    ASSERT(count <= MILL_FRAME_MAX);
    buffer_clear(&m->frame);
    for (size_t i = 0; i < count; i++) {
        const bool set = m->made++ % 2 == 0;
        const int size = snprintf(id, sizeof id, "key:%012zu", m->next);
        const struct args args = {.count = set ? 3 : 2,
                                  .arg = {set ? bytes_of("SET", 3) : bytes_of("GET", 3),
                                          bytes_of(id, (size_t)size),
                                          bytes_of(value, sizeof value)}};

        buffer_clear(&body);
        if (kind == MILL_KV) {
            args_put(&body, &args);
        } else {
            buffer_put(&body, value, sizeof value);
        }
        const struct request_record r = {.gateway = MILL_GATEWAY,
                                         .session = 1 + (m->made * 0x9E3779B97F4A7C15u >> 40) %
                                                            m->session_count,
                                         .seq = m->made,
                                         .base = m->made,
                                         .first = MILL_VERSION,
                                         .version = MILL_VERSION,
                                         .ttl_ms = 60000,
                                         .kind = kind,
                                         .copy = 1,
                                         .flags = kind == MILL_KV ? REQUEST_COMMAND : 0,
                                         .id = bytes_of(id, (size_t)size),
                                         .body = buffer_bytes(&body)};
        m->next = (m->next + m->step) % m->actor_count;
        request_put(&m->frame, &r);
    }
    buffer_fini(&body);
}

/* decode, admit, order, into the worker's batch */
__attribute__((noinline)) static void mill_admit(struct mill *m)
{
    struct reader in = {.at = m->frame.data, .left = m->frame.size};

    while (in.left > 0) {
        struct request_record r[HOST_PREFETCH_MAX];
        uint64_t position[HOST_PREFETCH_MAX];
        size_t count = 0;

        while (count < HOST_PREFETCH_MAX && in.left > 0) {
            ASSERT(request_get(&in, &r[count]) == ERR_OK);
            count++;
        }
        host_prefetch(m->host, r, count, position);
        for (size_t i = 0; i < count; i++) {
            struct host_event event = {.type = HOST_REQUEST,
                                       .peer = MILL_GATEWAY,
                                       .position = position[i],
                                       .request = &r[i]};

            mill_step(m, &event);
        }
    }
    worker_send(m->worker);
}

__attribute__((noinline)) static void mill_run(struct mill *m)
{
    (void)worker_poll(m->worker, 0);
}

/* take back, save, answer */
__attribute__((noinline)) static void mill_answer(struct mill *m)
{
    const struct told *t = NULL;

    while ((t = worker_take(m->worker)) != NULL) {
        const struct entry *e = t->entry;
        struct host_event event = {.type = e->event == RUNTIME_RAN ? HOST_RAN : HOST_ACTIVATED,
                                   .actor = activation_owner(e->activation),
                                   .ticket = e->number,
                                   .error = e->error,
                                   .code = e->code,
                                   .bytes = t->bytes};

        mill_step(m, &event);
    }
}

/* One frame there and back; with actors that sleep it takes two turns. */
static inline void mill_round(struct mill *m, uint16_t kind, size_t count)
{
    mill_make(m, kind, count);
    buffer_clear(&m->answers);
    m->answer_count = 0;
    mill_admit(m);
    while (m->answer_count < count) {
        mill_run(m);
        mill_answer(m);
        worker_send(m->worker);
    }
}

/* Every actor is alive and was asked some times, and all memory has its size. */
static inline void mill_warm(struct mill *m, uint16_t kind, size_t count)
{
    for (size_t done = 0; done < 4 * m->actor_count || done < 16 * count; done += count) {
        mill_round(m, kind, count);
    }
}

#endif
