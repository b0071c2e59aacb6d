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
#include "stream/sendlog.h"
#include "wire/args.h"
#include "wire/stream.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
    MILL_KV = 0,
    MILL_ECHO = 1,
    MILL_SLOW = 2, /* an echo that does not say that it is brief */
    MILL_KINDS,
    MILL_GATEWAY = 900,
    MILL_FRAME_MAX = 1024, /* requests of a frame */
    MILL_BODY = 64,
    MILL_VERSION = 10,
    MILL_INCARNATION = 100,
};

struct mill {
    struct local_node node;
    struct kind kind[MILL_KINDS];
    struct ring_key key[MILL_KINDS];
    struct buffer frame;   /* of requests */
    struct buffer answers; /* of this round */
    size_t answer_count;
    size_t actor_count;
    size_t step; /* from one request's actor to the next one's: all have their turn */
    size_t next; /* actor */
    size_t session_count;
    uint64_t made;   /* requests so far */
    uint64_t served; /* of these, by mill_serve() */
    uint64_t rid;    /* the last, of the stream */
    uint64_t acked;  /* answers of it that came */
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

static const struct ring_key mill_key = {3, 4};

static inline void mill_register(struct mill *m)
{
    struct view cluster;
    struct view_member self = {.slot = 1, .incarnation = MILL_INCARNATION, .weight = 1};

    view_init(&cluster, RING_GRID_MIN);
    cluster.key = mill_key;
    cluster.era = 1;
    ring_create(&cluster.ring, 16, 1, MILL_VERSION);
    (void)snprintf(self.name, sizeof self.name, "n1");
    (void)snprintf(self.address, sizeof self.address, "h1");
    cluster.member = mem_copy(&self, sizeof self);
    cluster.member_count = 1;
    local_node_register(&m->node, &cluster, 1, MILL_INCARNATION);
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
        {.number = MILL_ECHO, .idle_ms = UINT32_MAX, .brief = true},
        {.number = MILL_SLOW, .idle_ms = UINT32_MAX}};

    *m = (struct mill){.node = {.perform = mill_perform, .threaded = inlined},
                       .actor_count = actor_count,
                       .step = mill_step_of(actor_count),
                       .session_count = session_count};
    m->kind[MILL_KV].ops = actor_kv;
    m->kind[MILL_ECHO].ops = m->kind[MILL_SLOW].ops = actor_echo;
    m->kind[MILL_SLOW].ops.brief = 0;
    local_node_open(&m->node, "n1", kinds, MILL_KINDS, m->kind);
    mill_register(m);
    for (int i = 0; i < MILL_KINDS; i++) {
        m->key[i] = ring_key_of_kind(mill_key, (uint16_t)i);
    }
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
    (void)local_node_leave(&m->node);
}

static inline void mill_close(struct mill *m)
{
    local_node_close(&m->node);
    buffer_fini(&m->frame);
    buffer_fini(&m->answers);
}

/* ---- the stages of a round */

/* As the gateway would: `count` requests, SET or GET of 64 bytes, or an echo of them, each handed
 * to `put`. */
static inline void mill_make_by(struct mill *m, uint16_t kind, size_t count,
                                void (*put)(struct mill *m, const struct request_record *r))
{
    static const uint8_t value[MILL_BODY] = "value";
    struct buffer body = {0};
    char id[32];

    ASSERT(count <= MILL_FRAME_MAX);
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
        put(m, &r);
    }
    buffer_fini(&body);
}

static inline void mill_put_record(struct mill *m, const struct request_record *r)
{
    request_put(&m->frame, r);
}

/* Requests as records. */
static inline void mill_make(struct mill *m, uint16_t kind, size_t count)
{
    buffer_clear(&m->frame);
    mill_make_by(m, kind, count, mill_put_record);
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

/* ---- by a stream */

static inline void mill_put_head(struct mill *m, enum stream_frame type, uint64_t first)
{
    const struct stream_head head = {.from = MILL_GATEWAY,
                                     .to = MILL_INCARNATION,
                                     .first = first,
                                     .ack = m->acked,
                                     .version = MILL_VERSION};

    buffer_clear(&m->frame);
    stream_head_store(buffer_reserve(&m->frame, STREAM_HEADER_SIZE), type, &head);
    m->frame.size += STREAM_HEADER_SIZE;
}

static inline void mill_put_request(struct mill *m, const struct request_record *r)
{
    const struct stream_request next = {.rid = ++m->rid,
                                        .session = r->session,
                                        .hash = ring_position(m->key[r->kind], r->id),
                                        .ttl_ms = r->ttl_ms,
                                        .kind = r->kind,
                                        .flags = r->flags,
                                        .id = r->id,
                                        .body = r->body};
    const size_t size = stream_request_size(&next);

    stream_request_store(buffer_reserve(&m->frame, size), &next);
    m->frame.size += size;
}

/* As mill_make(), but one frame of a stream. */
static inline void mill_make_frame(struct mill *m, uint16_t kind, size_t count)
{
    mill_put_head(m, STREAM_REQUEST, m->rid + 1);
    mill_make_by(m, kind, count, mill_put_request);
    stream_frame_end(m->frame.data, m->frame.size, count);
}

/* The node takes it: what it answers at once is in the log behind this. */
__attribute__((noinline)) static void mill_feed(struct mill *m)
{
    const uint8_t *data = m->frame.data;
    const struct frame frame = {
        .type = (enum frame_type)data[4],
        .count = load_u16(data + 6),
        .body = bytes_of(data + FRAME_HEADER_SIZE, m->frame.size - FRAME_HEADER_SIZE)};

    local_node_frame(&m->node, MILL_GATEWAY, &frame);
}

/* The network takes what there is; returns how many answers. */
__attribute__((noinline)) static size_t mill_pour(struct mill *m)
{
    uint64_t peer = 0;
    struct sendlog *log = host_unsent(m->node.host, &peer);
    size_t count = 0;
    struct bytes out;

    while (log != NULL && (out = sendlog_unsent(log)).size > 0) {
        count += out.data[4] == STREAM_ANSWER ? load_u16(out.data + 6) : 0; // or it is an ACK
        sendlog_sent(log, load_u32(out.data));
    }
    m->acked += count;
    return count;
}

/* Of a mill whose worker sleeps, behind mill_warm(): the gateway begins a stream, which is used as
 * long as all memory needs to have its size. */
static inline void mill_begin_stream(struct mill *m, uint16_t kind, size_t count)
{
    enum { FRAMES = 100 };

    m->acked = 0;
    mill_put_head(m, STREAM_BEGIN, 1);
    mill_feed(m);
    for (int i = 0; i < FRAMES; i++) {
        mill_make_frame(m, kind, count);
        mill_feed(m);
        ASSERT(mill_pour(m) == count);
    }
}

#endif
