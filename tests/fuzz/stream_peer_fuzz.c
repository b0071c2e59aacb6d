/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever a peer says by streams: frames to a server and to an asker that has requests under way.
 * A byte before each frame says to whom it goes. Who is spoken to may end the connection, and
 * nothing else: its counts stay right.
 */
#include "base/mem.h"
#include "stream/asker.h"
#include "stream/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ASKER = 7, NODE = 9, FRAMES_MAX = 64, LANES = 3, BUSY_OF = 4 };

struct peers {
    struct stream_chunks chunks;
    struct stream_server server;
    struct stream_asker asker;
    struct stream_client *client;
    uint64_t connection;
};

static struct stream_client *owner(void *context, const struct stream_entity *entity)
{
    struct peers *p = context;

    (void)entity;
    return p->client->left ? NULL : p->client;
}

static uint32_t on_reply(void *context, const struct stream_reply *reply)
{
    (void)context;
    (void)reply;
    return 0;
}

static void begin(struct peers *p)
{
    struct stream_asker_config config = asker_config_default();

    *p = (struct peers){.chunks = {.spare_max = 4}, .connection = 1};
    config.id = ASKER;
    config.window = 4;
    config.context = p;
    config.owner = owner;
    config.reply = on_reply;
    server_init(&p->server, &p->chunks, ASKER, NODE);
    asker_init(&p->asker, &config);
    p->client = asker_add(&p->asker, NODE);
    (void)asker_connect(&p->asker, p->client, p->connection);
}

static void ask(struct peers *p, uint64_t number)
{
    struct stream_request r = {
        .session = 1 + number % LANES, .flags = REQUEST_IDEMPOTENT, .id = bytes_of("k", 1)};

    (void)asker_ask(&p->asker, p->client->left ? NULL : p->client, &r, number % 2, number);
}

static void to_server(struct peers *p, const struct frame *f, const struct stream_head *head,
                      struct reader *in)
{
    if ((enum stream_frame)f->type == STREAM_BEGIN || (enum stream_frame)f->type == STREAM_JOIN) {
        if (server_join(&p->server, p->connection, (enum stream_frame)f->type, head) ==
            SERVER_JOINED) {
            (void)server_joined(&p->server);
        }
        return;
    }
    if (server_open(&p->server, p->connection, head, 1000) != SERVER_OPEN) {
        return;
    }
    for (unsigned i = 0; i < f->count; i++) {
        struct stream_request r;

        if (stream_request_get(in, &r) != ERR_OK) {
            return;
        }
        if (server_take(&p->server, head->first + i, head->ack, r.rid, r.session) != SERVER_RUN) {
            continue;
        }
        if (r.kind % BUSY_OF == 0) {
            server_refuse(&p->server, r.rid, r.session, ANSWER_BUSY, 1);
        } else if (r.kind % BUSY_OF == 1) {
            server_answer(&p->server, &(struct stream_answer){.rid = r.rid, .body = r.body});
        }
    }
}

static void to_asker(struct peers *p, const struct frame *f, const struct stream_head *head,
                     struct reader *in)
{
    if ((enum stream_frame)f->type != STREAM_ANSWER) {
        if (asker_joined(&p->asker, p->client, p->connection, (enum stream_frame)f->type, head) !=
                ERR_OK ||
            (enum stream_frame)f->type == STREAM_GONE) {
            asker_lost(&p->asker, p->client, p->connection);
            (void)asker_connect(&p->asker, p->client, ++p->connection);
        }
        return;
    }
    if (asker_open(p->client, p->connection, head) != ERR_OK) {
        return;
    }
    for (unsigned i = 0; i < f->count; i++) {
        struct stream_answer a;

        if (stream_answer_get(in, &a) != ERR_OK ||
            asker_answer(&p->asker, p->client, head->first + i, head->version, &a) != ERR_OK) {
            return;
        }
    }
}

static void hand_out(struct sendlog *l)
{
    for (struct bytes out = sendlog_unsent(l); out.size > 0; out = sendlog_unsent(l)) {
        sendlog_sent(l, out.size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peers p;

    begin(&p);
    for (unsigned i = 0; i < FRAMES_MAX && size > STREAM_HEADER_SIZE; i++) {
        const bool there = (data[0] & 1) != 0;
        const uint8_t *at = data + 1;
        const uint32_t whole = load_u32(at);
        struct stream_head head;
        struct reader in;

        if (whole < STREAM_HEADER_SIZE || whole > size - 1) {
            break;
        }
        const struct frame f = {.type = (enum frame_type)at[4],
                                .count = load_u16(at + 6),
                                .body =
                                    bytes_of(at + FRAME_HEADER_SIZE, whole - FRAME_HEADER_SIZE)};
        ask(&p, i);
        if (stream_head_get(&f, &head, &in) == ERR_OK) {
            // Who they are is seldom guessed.
            head.from = there ? ASKER : NODE;
            head.to = there ? NODE : ASKER;
            (there ? to_server : to_asker)(&p, &f, &head, &in);
        }
        asker_turn(&p.asker, i);
        asker_check(&p.asker);
        server_check(&p.server);
        hand_out(&p.client->log);
        hand_out(&p.server.log);
        data += 1 + whole;
        size -= 1 + whole;
    }
    asker_fini(&p.asker);
    sendlog_drop(&p.server.log);
    stream_chunks_fini(&p.chunks);
    return 0;
}
