/* SPDX-License-Identifier: Apache-2.0
 *
 * A local node (bench/local_node.h), driven in batches as the shell does (node/peers_uv.c,
 * dispatcher_uv.c). What a request costs in it is counted: by callgrind in bench/node_bench.c, as
 * allocations and hand-overs in tests/node/node_cost_test.c.
 *
 * A round is one frame of requests from one gateway; each is of an actor of its
 * own, as long as there are enough of them, of one session after the other.
 */
#ifndef BENCH_NODE_MILL_H
#define BENCH_NODE_MILL_H

#include "base/mem.h"
#include "bench/local_node.h"
#include "node/actors/actors.h"
#include "wire/args.h"

#include <sched.h>
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
    struct local_node node;
    struct kind kind[2];
    struct buffer frame;   /* of requests */
    struct buffer answers; /* of this round */
    size_t answer_count;
    size_t actor_count;
    size_t step; /* from one request's actor to the next one's: all have their turn */
    size_t next; /* actor */
    size_t session_count;
    uint64_t made;   /* requests so far */
    uint64_t served; /* of these, by mill_serve() */
};

static inline void mill_perform(struct local_node *n, const struct host_effect *e,
                                struct bytes bytes)
{
    struct mill *m = CONTAINER_OF(n, struct mill, node);

    if (e->type == HOST_SEND_PEER) {
        buffer_put(&m->answers, bytes.data, bytes.size);
        m->answer_count++;
    }
}

/* ---- its start and end */

static inline void mill_register(struct mill *m)
{
    struct view cluster;
    struct view_member self = {.slot = 1, .incarnation = 100, .weight = 1};

    view_init(&cluster, RING_GRID_MIN);
    cluster.key = (struct ring_key){3, 4};
    cluster.era = 1;
    ring_create(&cluster.ring, 16, 1, MILL_VERSION);
    (void)snprintf(self.name, sizeof self.name, "n1");
    (void)snprintf(self.address, sizeof self.address, "h1");
    cluster.member = mem_copy(&self, sizeof self);
    cluster.member_count = 1;
    local_node_register(&m->node, &cluster, 1, 100);
    view_fini(&cluster);
    local_node_link(&m->node, MILL_GATEWAY, ROLE_GATEWAY, "g", MILL_GATEWAY);
}

/* A part of the actors, about 0.6, that has no divisor in common with them. */
static inline size_t mill_step_of(size_t count)
{
    size_t step = count * 5 / 8 + 1;

    for (;; step++) {
        size_t a = step;
        size_t b = count;

        while (b != 0) {
            const size_t timer_wheel = a % b;

            a = b;
            b = timer_wheel;
        }
        if (a == 1) {
            return step;
        }
    }
}

/* With one session each actor keeps one order record; with many it gets another with each. */
static inline void mill_begin(struct mill *m, size_t actor_count, size_t session_count,
                              bool inlined)
{
    static const struct host_kind kinds[] = {
        {.number = MILL_KV, .idle_ms = UINT32_MAX, .brief = true},
        {.number = MILL_ECHO, .idle_ms = UINT32_MAX, .brief = true}};

    *m = (struct mill){.node = {.perform = mill_perform, .threaded = inlined},
                       .actor_count = actor_count,
                       .step = mill_step_of(actor_count),
                       .session_count = session_count};
    m->kind[MILL_KV].ops = actor_kv;
    m->kind[MILL_ECHO].ops = actor_echo;
    local_node_open(&m->node, "n1", kinds, 2, m->kind);
    mill_register(m);
}

/* Open a mill whose worker is embedded: each request is an operation for it, by mill_admit(),
 * mill_run() and mill_answer(). */
static inline void mill_open(struct mill *m, size_t actor_count, size_t session_count)
{
    mill_begin(m, actor_count, session_count, false);
}

/* Open a mill whose worker sleeps: mill_serve() does all. */
static inline void mill_open_inline(struct mill *m, size_t actor_count, size_t session_count)
{
    mill_begin(m, actor_count, session_count, true);
    while (!worker_enter_inline(m->node.worker)) {
        (void)sched_yield(); // until its thread has come to sleep
    }
    (void)worker_leave_inline(m->node.worker);
}

static inline void mill_close(struct mill *m)
{
    local_node_close(&m->node);
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

/* Decode requests, as many as are fetched ahead at once, with their positions. */
static inline size_t mill_decode(struct mill *m, struct reader *in, struct request_record *r,
                                 uint64_t *position)
{
    size_t count = 0;

    while (count < HOST_PREFETCH_MAX && in->left > 0) {
        ASSERT(request_get(in, &r[count]) == ERR_OK);
        count++;
    }
    host_prefetch(m->node.host, r, count, position);
    return count;
}

/* Decode, admit, order, and put into the worker's batch. */
__attribute__((noinline)) static void mill_admit(struct mill *m)
{
    struct reader in = {.at = m->frame.data, .left = m->frame.size};

    while (in.left > 0) {
        struct request_record r[HOST_PREFETCH_MAX];
        uint64_t position[HOST_PREFETCH_MAX];
        const size_t count = mill_decode(m, &in, r, position);

        for (size_t i = 0; i < count; i++) {
            struct host_event event = {.type = HOST_REQUEST,
                                       .peer = MILL_GATEWAY,
                                       .position = position[i],
                                       .request = &r[i]};

            local_node_step(&m->node, &event);
        }
    }
    worker_send(m->node.worker);
}

__attribute__((noinline)) static void mill_run(struct mill *m)
{
    (void)worker_poll(m->node.worker, 0);
}

/* Take completions back, save, answer. */
__attribute__((noinline)) static void mill_answer(struct mill *m)
{
    local_node_take(&m->node);
}

static inline bool mill_on_answer(void *context, const struct answer_record *a)
{
    struct mill *m = CONTAINER_OF(context, struct mill, node);

    answer_put(&m->answers, a);
    m->answer_count++;
    return true;
}

/* All of the frame as node/peers_uv.c does it where all that is brief runs inline. */
__attribute__((noinline)) static void mill_serve(struct mill *m)
{
    struct reader in = {.at = m->frame.data, .left = m->frame.size};

    while (in.left > 0) {
        struct request_record r[HOST_PREFETCH_MAX];
        uint64_t position[HOST_PREFETCH_MAX];
        const size_t count = mill_decode(m, &in, r, position);

        for (size_t i = 0; i < count; i++) {
            const size_t served = local_node_serve(
                &m->node, MILL_GATEWAY, &r[i], &position[i], count - i, mill_on_answer);

            m->served += served;
            i += served;
            if (i < count) {
                struct host_event event = {.type = HOST_REQUEST,
                                           .peer = MILL_GATEWAY,
                                           .position = position[i],
                                           .request = &r[i]};

                const size_t answers = m->answer_count;

                local_node_step(&m->node, &event);
                while (m->answer_count == answers) {
                    if (worker_run_inline(m->node.worker, SIZE_MAX) == 0) {
                        worker_send(m->node.worker);
                        (void)sched_yield(); // its thread looks up for a moment
                    }
                    local_node_take(&m->node);
                }
            }
        }
    }
}

/* One frame there and back, inline or not; with actors that sleep it takes two turns. */
static inline void mill_round(struct mill *m, uint16_t kind, size_t count)
{
    mill_make(m, kind, count);
    buffer_clear(&m->answers);
    m->answer_count = 0;
    if (m->node.threaded) {
        mill_serve(m);
        ASSERT(m->answer_count == count);
        return;
    }
    mill_admit(m);
    while (m->answer_count < count) {
        mill_run(m);
        mill_answer(m);
        worker_send(m->node.worker);
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
