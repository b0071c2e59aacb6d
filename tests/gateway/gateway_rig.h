/* SPDX-License-Identifier: Apache-2.0
 *
 * The gateway's cores under load and without I/O: clients send batches of
 * commands, the requests go into a frame, a node that has every value answers
 * them in another, and the replies are taken. Each stage is a function of its
 * own, for callgrind to count its instructions:
 *
 *     valgrind --tool=callgrind --toggle-collect='gateway_rig_stage_*' …
 */
#ifndef TESTS_GATEWAY_GATEWAY_RIG_H
#define TESTS_GATEWAY_GATEWAY_RIG_H

#include "base/assert.h"
#include "base/table.h"
#include "gateway/client/client.h"
#include "gateway/protocol/packet.h"
#include "tests/gateway/client_rig.h"
#include "tests/gateway/stream_node.h"

enum {
    GATEWAY_RIG_CLIENTS = 50,
    GATEWAY_RIG_BATCH = 32,
    GATEWAY_RIG_VALUE = 64,
    GATEWAY_RIG_RUN = 64 * 1024,
    GATEWAY_RIG_AT_ONCE = 64, /* answers, then their replies: as the shell does */
};

#define STAGE static __attribute__((noinline, unused))

/* What clients ask: all of the kind that `kv` has, 64 bytes to or from it. */
enum gateway_rig_load {
    GATEWAY_RIG_SET, /* RESP */
    GATEWAY_RIG_GET,
    GATEWAY_RIG_CALL,    /* RESP, and the same bytes back, as of `echo` */
    GATEWAY_RIG_PACKETS, /* the same by packets */
};

struct gateway_rig {
    struct client_rig base;
    struct stream_node node; /* if requests go by streams */
    bool streams;
    enum gateway_rig_load load;
    size_t clients; /* that take part: all of them, or fewer */
    size_t batch;   /* what each of them asks at once */
    struct client *client[GATEWAY_RIG_CLIENTS];
    struct buffer input[GATEWAY_RIG_CLIENTS]; /* owned: a batch of each */
    struct buffer requests;                   /* owned: records on their way to the node */
    struct buffer answers;                    /* owned: and back */
    struct buffer value;                      /* owned: what the node answers */
    uint64_t replied;                         /* bytes that clients got */
    uint64_t draws;
};

static inline void gateway_rig_node_takes(void *context, const struct stream_taken *t)
{
    const struct gateway_rig *g = CONTAINER_OF(context, struct gateway_rig, node);
    const struct stream_answer a = {
        .rid = t->request->rid, .token = 1, .body = buffer_bytes(&g->value)};

    server_answer(&t->by->stream, &a);
}

/* Some of a frame of the node. */
STAGE void gateway_rig_stage_frame(struct gateway_rig *g, struct router_frame *f)
{
    const enum err e = router_frame(g->base.rig.router, f, &g->base.effects);

    ASSERT(e == ERR_OK);
}

/* The link of the one node carries streams. */
static inline void gateway_rig_join(struct gateway_rig *g)
{
    struct rig *rig = &g->base.rig;

    stream_node_init(
        &g->node, 10, 77, ring_key_of_kind(rig->leader.key, 0), gateway_rig_node_takes);
    servers_ring(&g->node.servers, rig->leader.ring.version);
    stream_node_up(&g->node);
    rig_step(rig,
             (struct router_event){
                 .type = ROUTER_NODE_UP, .slot = 1, .incarnation = 10, .speaks_streams = true});
    for (size_t i = 0; i < rig->effects.count; i++) {
        const struct router_effect *e = &rig->effects.item[i];

        if (e->type == ROUTER_SEND_STREAM) {
            stream_node_say(&g->node, e->frame, rig_effect_bytes(rig, e));
        }
    }
    (void)stream_node_reads(&g->node);
    const struct frame joined = stream_node_frame(&g->node.back);
    struct router_frame f = {.now_us = rig->now_us, .frame = &joined, .slot = 1};
    gateway_rig_stage_frame(g, &f);
    buffer_clear(&g->node.back);
}

static inline void gateway_rig_init(struct gateway_rig *g, enum gateway_rig_load load, bool streams)
{
    struct router_config router = router_config_default();
    struct clients_config clients = clients_config_default();

    *g = (struct gateway_rig){.load = load,
                              .streams = streams,
                              .clients = GATEWAY_RIG_CLIENTS,
                              .batch = GATEWAY_RIG_BATCH};
    router.gateway = 77;
    router.streams = streams;
    client_rig_init(&g->base, &clients, &router);
    client_rig_ring(&g->base);
    client_rig_event(&g->base, (struct router_event){.type = ROUTER_COORDINATOR_UP});
    if (streams) {
        gateway_rig_join(g);
    }
    for (size_t i = 0; i < GATEWAY_RIG_CLIENTS; i++) {
        const enum client_speech speech =
            load == GATEWAY_RIG_PACKETS ? CLIENT_PACKETS : CLIENT_RESP;

        g->client[i] = client_new(g->base.all, speech, "127.0.0.1:1", g->base.rig.now_us);
        if (load == GATEWAY_RIG_PACKETS) {
            packet_put_hello(&g->input[i],
                             &(struct hello_packet){.version_min = 1, .version_max = 1});
            client_rig_bytes(&g->base, g->client[i], buffer_bytes(&g->input[i]));
        }
    }
}

static inline void gateway_rig_fini(struct gateway_rig *g)
{
    for (size_t i = 0; i < GATEWAY_RIG_CLIENTS; i++) {
        client_rig_free(&g->base, g->client[i]);
        buffer_fini(&g->input[i]);
    }
    buffer_fini(&g->requests);
    buffer_fini(&g->answers);
    buffer_fini(&g->value);
    if (g->streams) {
        stream_node_fini(&g->node);
    }
    client_rig_fini(&g->base);
}

static const char gateway_rig_value[GATEWAY_RIG_VALUE + 1] =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static inline void gateway_rig_put(struct gateway_rig *g, struct buffer *to, unsigned key)
{
    const char *value = gateway_rig_value;
    char id[20];
    char text[256];
    const size_t id_size = (size_t)snprintf(id, sizeof id, "key:%012u", key);
    int size = 0;

    switch (g->load) {
    case GATEWAY_RIG_SET:
        size =
            snprintf(text, sizeof text, "*3\r\n$3\r\nSET\r\n$16\r\n%s\r\n$64\r\n%s\r\n", id, value);
        break;
    case GATEWAY_RIG_GET:
        size = snprintf(text, sizeof text, "*2\r\n$3\r\nGET\r\n$16\r\n%s\r\n", id);
        break;
    case GATEWAY_RIG_CALL:
        size = snprintf(
            text, sizeof text, "*3\r\n$4\r\nCALL\r\n$16\r\n%s\r\n$64\r\n%s\r\n", id, value);
        break;
    case GATEWAY_RIG_PACKETS:
        packet_put_request(to,
                           PACKET_REQUEST,
                           &(struct request_packet){.request = (uint32_t)g->draws,
                                                    .id = bytes_of(id, id_size),
                                                    .payload = bytes_of(value, GATEWAY_RIG_VALUE)});
        break;
    }
    buffer_put(to, text, (size_t)size);
}

/* A batch for each client, of commands as redis-benchmark sends them, or of packets. */
static inline void gateway_rig_ask(struct gateway_rig *g, uint64_t keys)
{
    for (size_t i = 0; i < g->clients; i++) {
        buffer_clear(&g->input[i]);
        for (size_t n = 0; n < g->batch; n++) {
            gateway_rig_put(g, &g->input[i], (unsigned)(table_mix(++g->draws) % keys));
        }
    }
    buffer_clear(&g->value);
    if (g->load == GATEWAY_RIG_SET) {
        value_put(&g->value, &(struct value){.type = VALUE_SIMPLE, .text = bytes_of("OK", 2)});
    } else if (g->load == GATEWAY_RIG_GET) {
        value_put(&g->value,
                  &(struct value){.type = VALUE_BULK,
                                  .text = bytes_of(gateway_rig_value, GATEWAY_RIG_VALUE)});
    } else {
        buffer_put(&g->value, gateway_rig_value, GATEWAY_RIG_VALUE);
    }
}

/* The client's bytes are read: parsed, routed, made into requests. */
STAGE void gateway_rig_stage_read(struct gateway_rig *g, size_t client)
{
    client_on_bytes(
        g->client[client], buffer_bytes(&g->input[client]), g->base.rig.now_us, &g->base.effects);
}

/* The router's sends go to the link's buffer, its replies to their client. */
STAGE void gateway_rig_stage_effects(struct gateway_rig *g)
{
    const struct router_effects *effects = &g->base.effects;

    for (size_t i = 0, count = 1; i < effects->count; i += count, count = 1) {
        const struct router_effect *e = &effects->item[i];
        const struct bytes bytes = router_effect_bytes(effects, e);

        if (e->type == ROUTER_SEND_NODE) {
            count = router_effects_run(effects, i, GATEWAY_RIG_RUN);
            buffer_put(&g->requests, bytes.data, e[count - 1].at + e[count - 1].size - e->at);
        } else if (e->type == ROUTER_REPLY) {
            count = client_on_replies(
                clients_find(g->base.all, e->session), effects, i, g->base.rig.now_us);
        }
    }
    router_effects_clear(&g->base.effects);
}

/* Some of a frame of answers, from `in`. */
STAGE void gateway_rig_stage_answers(struct gateway_rig *g, struct reader *in)
{
    struct answer_record answer[ROUTER_PREFETCH_MAX];

    for (size_t done = 0, count = 0; done < GATEWAY_RIG_AT_ONCE && in->left > 0; done += count) {
        for (count = 0; count < ROUTER_PREFETCH_MAX && in->left > 0; count++) {
            const enum err got = answer_get(in, &answer[count]);

            ASSERT(got == ERR_OK);
        }
        const struct router_answers answers = {
            .now_us = g->base.rig.now_us, .answer = answer, .count = count, .slot = 1};

        router_answer(g->base.rig.router, &answers, &g->base.effects);
    }
}

/* The client's replies are written. */
STAGE void gateway_rig_stage_write(struct gateway_rig *g, size_t client)
{
    struct client *c = g->client[client];
    const size_t size = client_output(c).size;

    g->replied += size;
    client_sent(c, size, g->base.rig.now_us);
}

/* What the stream's log has for the link; a real one writes it from where it is. */
STAGE struct bytes gateway_rig_stage_unsent(struct sendlog *log)
{
    return sendlog_unsent(log);
}

STAGE void gateway_rig_stage_sent(struct sendlog *log, size_t size)
{
    sendlog_sent(log, size);
}

STAGE struct sendlog *gateway_rig_stage_log(struct gateway_rig *g)
{
    uint16_t slot;

    return router_unsent(g->base.rig.router, &slot);
}

static inline void gateway_rig_logs(struct gateway_rig *g)
{
    struct sendlog *log = NULL;

    while ((log = gateway_rig_stage_log(g)) != NULL) {
        struct bytes out;

        while ((out = gateway_rig_stage_unsent(log)).size > 0) {
            buffer_put(&g->node.there, out.data, out.size);
            gateway_rig_stage_sent(log, out.size);
        }
        stream_node_pour(log, &g->node.there); // the rest: what it owes
    }
}

/* The node has run what was sent. */
static inline void gateway_rig_node(struct gateway_rig *g)
{
    while (g->streams && stream_node_reads(&g->node)) {
    }
    struct reader in = {.at = g->requests.data, .left = g->requests.size};

    while (in.left > 0) {
        struct request_record q;
        const enum err got = request_get(&in, &q);

        ASSERT(got == ERR_OK);
        answer_put(&g->answers,
                   &(struct answer_record){.gateway = q.gateway,
                                           .session = q.session,
                                           .seq = q.seq,
                                           .fence = q.version,
                                           .version = q.version,
                                           .copy = q.copy,
                                           .code = ANSWER_OK,
                                           .body = buffer_bytes(&g->value)});
    }
    buffer_clear(&g->requests);
}

/* A batch of every client, as far as the link to the node. */
static inline void gateway_rig_there(struct gateway_rig *g)
{
    g->base.rig.now_us += 100;
    for (size_t i = 0; i < g->clients; i++) {
        gateway_rig_stage_read(g, i);
        gateway_rig_stage_effects(g);
    }
    if (g->streams) {
        gateway_rig_logs(g);
    }
}

/* The frames of the node's stream. */
static inline void gateway_rig_frames(struct gateway_rig *g)
{
    while (g->node.back.size > 0) {
        const struct frame frame = stream_node_frame(&g->node.back);
        struct router_frame f = {.now_us = g->base.rig.now_us, .frame = &frame, .slot = 1};

        do {
            gateway_rig_stage_frame(g, &f);
            gateway_rig_stage_effects(g);
        } while (f.left > 0);
        buffer_consume(&g->node.back, FRAME_HEADER_SIZE + frame.body.size);
    }
    gateway_rig_logs(g);
}

/* Give the node's answers to the clients. */
static inline void gateway_rig_back(struct gateway_rig *g)
{
    struct reader in = {.at = g->answers.data, .left = g->answers.size};

    while (in.left > 0) {
        gateway_rig_stage_answers(g, &in);
        gateway_rig_stage_effects(g);
    }
    buffer_clear(&g->answers);
    if (g->streams) {
        gateway_rig_frames(g);
    }
    for (size_t i = 0; i < g->clients; i++) {
        gateway_rig_stage_write(g, i);
    }
}

#endif
