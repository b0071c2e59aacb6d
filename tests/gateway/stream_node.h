/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a stream at a node, for tests of a router: the shipped
 * stream_servers, and a link without I/O whose bytes wait until they are wanted.
 */
#ifndef TESTS_GATEWAY_STREAM_NODE_H
#define TESTS_GATEWAY_STREAM_NODE_H

#include "base/assert.h"
#include "route/router.h"
#include "stream/servers.h"

struct stream_node {
    struct stream_servers servers;
    uint64_t incarnation;
    uint64_t asker;      /* whose streams it serves */
    uint64_t connection; /* the link that is up; 0 = none */
    uint64_t connections;
    struct ring_key key;
    void (*take)(void *context, const struct stream_taken *t);
    struct buffer there; /* owned: frames on their way to it, … */
    struct buffer back;  /* … and from it */
};

static inline void stream_node_take(void *context, const struct stream_some *some)
{
    const struct stream_node *n = context;

    for (size_t i = 0; i < some->count; i++) {
        const uint64_t position = ring_position(n->key, some->request[i].id);

        if (servers_take(some, i, position)) {
            const struct stream_taken t = servers_taken(some, i, position);

            n->take(context, &t);
        }
    }
}

/* `take` gets the node as its context. */
static inline void stream_node_init(struct stream_node *n, uint64_t incarnation, uint64_t asker,
                                    struct ring_key key,
                                    void (*take)(void *context, const struct stream_taken *t))
{
    struct stream_servers_config config = servers_config_default();

    *n = (struct stream_node){.incarnation = incarnation, .asker = asker, .key = key, .take = take};
    config.incarnation = incarnation;
    config.context = n;
    config.take = stream_node_take;
    servers_init(&n->servers, &config);
}

static inline void stream_node_fini(struct stream_node *n)
{
    servers_fini(&n->servers);
    buffer_fini(&n->there);
    buffer_fini(&n->back);
}

static inline void stream_node_up(struct stream_node *n)
{
    n->connection = ++n->connections;
}

/* What is on the link is lost. */
static inline void stream_node_down(struct stream_node *n)
{
    if (n->connection != 0) {
        servers_lost(&n->servers, n->asker, n->connection);
    }
    n->connection = 0;
    buffer_clear(&n->there);
    buffer_clear(&n->back);
}

/* What a log has goes onto the link. */
static inline void stream_node_pour(struct sendlog *log, struct buffer *link)
{
    for (struct bytes out = sendlog_unsent(log); out.size > 0; out = sendlog_unsent(log)) {
        buffer_put(link, out.data, out.size);
        sendlog_sent(log, out.size);
    }
}

/* The first frame on a link. */
static inline struct frame stream_node_frame(const struct buffer *link)
{
    const uint32_t size = load_u32(link->data);

    return (struct frame){.type = (enum frame_type)link->data[4],
                          .count = load_u16(link->data + 6),
                          .body =
                              bytes_of(link->data + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE)};
}

/* What it has answered goes onto the link. */
static inline void stream_node_writes(struct stream_node *n)
{
    struct stream_served *s = servers_find(&n->servers, n->asker);

    if (s != NULL && n->connection != 0 && s->stream.connection == n->connection) {
        stream_node_pour(&s->stream.log, &n->back);
    }
}

/* The node reads the next frame. False: there is none. */
static inline bool stream_node_reads(struct stream_node *n)
{
    if (n->there.size == 0) {
        return false;
    }
    const struct frame frame = stream_node_frame(&n->there);

    const enum err e = servers_frame(&n->servers, n->connection, &frame, &n->back);
    ASSERT(e == ERR_OK);
    buffer_consume(&n->there, FRAME_HEADER_SIZE + frame.body.size);
    stream_node_writes(n); // what it refuses at once, and behind JOINED what was lost
    return true;
}

/* A frame that the router wants said: ROUTER_SEND_STREAM. */
static inline void stream_node_say(struct stream_node *n, uint8_t type, struct bytes body)
{
    uint8_t *at = buffer_reserve(&n->there, FRAME_HEADER_SIZE + body.size);

    at = store_u32(at, (uint32_t)(FRAME_HEADER_SIZE + body.size));
    at = store_u8(at, type);
    at = store_u8(at, 0);
    at = store_u16(at, 1);
    bytes_copy(at, body.data, body.size);
    n->there.size += FRAME_HEADER_SIZE + body.size;
}

#endif
