/* SPDX-License-Identifier: Apache-2.0
 *
 * A WebSocket's frames by wslay: messages in, packets out, and the rules that
 * wslay does not check.
 */
#include "gateway/protocol/websocket.h"

#include "base/assert.h"
#include "base/big.h"
#include "base/mem.h"
#include "gateway/protocol/packet.h"

#include <string.h>
#include <wslay/wslay.h>

enum {
    HEADER_MAX = 10,
    SMALL_MAX = 125,
    SMALL_MASK = 0x7f,
    FINAL = 0x80,
    LENGTH_16 = 126,
    LENGTH_64 = 127,
    MASKED = 0x80,
    HEAD_MAX = 14,      /* of a frame that comes in: two bytes, eight of a length, a mask */
    CODE_SIZE = 2,      /* of a close */
    LATER_FIRST = 1012, /* codes that were registered behind RFC 6455, which wslay refuses */
    LATER_LAST = 1014,
};

struct websocket {
    wslay_event_context_ptr wslay; /* owned */
    size_t message_max;
    enum websocket_end end;
    enum websocket_end refused; /* by us: wslay's own close, if there is one, is not sent */
    unsigned pings;
    bool data;    /* the frame that comes in is one of data */
    bool closing; /* … or a close */
    uint8_t code[CODE_SIZE];
    size_t code_size; /* bytes of it that came */
    /* Where in a frame the input ends. */
    uint8_t head[HEAD_MAX];
    size_t head_size;
    uint64_t left; /* bytes of its body that are to come */
    /* The message that comes in. */
    size_t got;
    size_t whole; /* once its packet's header is there; PACKET_HEADER before */
    uint8_t header[PACKET_HEADER];
    /* Of this call. */
    struct bytes in;
    struct buffer *packets;
    struct buffer *out;
};

/* ---- output ---- */

static void put_frame(struct buffer *out, uint8_t opcode, struct bytes body)
{
    uint8_t *const start = buffer_reserve(out, HEADER_MAX + body.size);
    uint8_t *at = big_put8(start, (uint8_t)(FINAL | opcode));

    if (body.size <= SMALL_MAX) {
        at = big_put8(at, (uint8_t)body.size);
    } else if (body.size <= UINT16_MAX) {
        at = big_put16(big_put8(at, LENGTH_16), (uint16_t)body.size);
    } else {
        at = big_put64(big_put8(at, LENGTH_64), body.size);
    }
    if (body.size > 0) {
        memcpy(at, body.data, body.size);
    }
    out->size += (size_t)(at - start) + body.size;
}

static bool is_later(uint32_t code)
{
    return code >= LATER_FIRST && code <= LATER_LAST;
}

static void put_close(struct buffer *out, uint16_t code)
{
    uint8_t body[2];

    (void)big_put16(body, code);
    put_frame(out, WSLAY_CONNECTION_CLOSE, bytes_of(body, sizeof body));
}

void websocket_put(const struct websocket *ws, struct bytes packets, struct buffer *out)
{
    struct packet p;

    if (ws->end != WEBSOCKET_OPEN) {
        return;
    }
    while (packets.size > 0) {
        const enum packet_result result = packet_next(packets, PACKET_BODY_MAX, &p);
        ASSERT(result == PACKET_WHOLE);
        const size_t size = PACKET_HEADER + p.body.size;

        put_frame(out, WSLAY_BINARY_FRAME, bytes_of(packets.data, size));
        packets = bytes_of(packets.data + size, packets.size - size);
    }
}

/* ---- end ---- */

static uint16_t code_of(enum websocket_end why)
{
    switch (why) {
    case WEBSOCKET_PROTOCOL:
        return WSLAY_CODE_PROTOCOL_ERROR;
    case WEBSOCKET_TEXT:
        return WSLAY_CODE_UNSUPPORTED_DATA;
    case WEBSOCKET_BAD_UTF8:
        return WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA;
    case WEBSOCKET_BAD_MESSAGE:
    case WEBSOCKET_PINGS:
        return WSLAY_CODE_POLICY_VIOLATION;
    case WEBSOCKET_TOO_LARGE:
        return WSLAY_CODE_MESSAGE_TOO_BIG;
    case WEBSOCKET_OPEN:
    case WEBSOCKET_LEFT:
        break;
    }
    return WSLAY_CODE_NORMAL_CLOSURE;
}

/* In a callback of wslay: it is to stop. */
static void refuse(struct websocket *ws, enum websocket_end why)
{
    if (ws->refused == WEBSOCKET_OPEN) {
        ws->refused = why;
        wslay_event_shutdown_read(ws->wslay);
    }
}

/* ---- input ---- */

static ssize_t on_recv(wslay_event_context_ptr wslay, uint8_t *to, size_t size, int flags,
                       void *user)
{
    struct websocket *ws = user;
    const size_t count = ws->in.size < size ? ws->in.size : size;

    (void)flags;
    if (count == 0) {
        wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, ws->in.data, count);
    ws->in = bytes_of(ws->in.data + count, ws->in.size - count);
    return (ssize_t)count;
}

static ssize_t on_send(wslay_event_context_ptr wslay, const uint8_t *data, size_t size, int flags,
                       void *user)
{
    struct websocket *ws = user;

    (void)wslay;
    (void)flags;
    buffer_put(ws->out, data, size);
    return (ssize_t)size;
}

static void on_frame(wslay_event_context_ptr wslay,
                     const struct wslay_event_on_frame_recv_start_arg *frame, void *user)
{
    struct websocket *ws = user;

    (void)wslay;
    ws->data = !wslay_is_ctrl_frame(frame->opcode);
    ws->closing = frame->opcode == WSLAY_CONNECTION_CLOSE;
    if (frame->opcode == WSLAY_TEXT_FRAME) {
        refuse(ws, WEBSOCKET_TEXT);
    } else if (frame->opcode == WSLAY_PING && ++ws->pings > WEBSOCKET_PINGS_MAX) {
        refuse(ws, WEBSOCKET_PINGS);
    }
}

/* The packet's header says how long the message is to be. */
static void take_header(struct websocket *ws, struct bytes *data)
{
    while (ws->got < PACKET_HEADER && data->size > 0) {
        ws->header[ws->got++] = data->data[0];
        *data = bytes_of(data->data + 1, data->size - 1);
    }
    if (ws->got == PACKET_HEADER) {
        ws->whole = PACKET_HEADER + ((size_t)ws->header[1] << 16 | big_get16(ws->header + 2));
        buffer_put(ws->packets, ws->header, PACKET_HEADER);
    }
}

static void take_data(struct websocket *ws, struct bytes data)
{
    if (ws->got < PACKET_HEADER) {
        take_header(ws, &data);
    }
    if (ws->got + data.size > ws->message_max) {
        refuse(ws, WEBSOCKET_TOO_LARGE);
    } else if (data.size > ws->whole - ws->got) {
        refuse(ws, WEBSOCKET_BAD_MESSAGE);
    } else {
        buffer_put(ws->packets, data.data, data.size);
        ws->got += data.size;
    }
}

/* Of a close: its code comes first. */
static void take_code(struct websocket *ws, struct bytes data)
{
    for (size_t i = 0; i < data.size && ws->code_size < CODE_SIZE; i++) {
        ws->code[ws->code_size++] = data.data[i];
    }
    if (ws->code_size == CODE_SIZE && is_later(big_get16(ws->code))) {
        refuse(ws, WEBSOCKET_LEFT);
    }
}

static void on_chunk(wslay_event_context_ptr wslay,
                     const struct wslay_event_on_frame_recv_chunk_arg *chunk, void *user)
{
    struct websocket *ws = user;

    (void)wslay;
    if (ws->data && ws->refused == WEBSOCKET_OPEN) {
        take_data(ws, bytes_of(chunk->data, chunk->data_length));
    } else if (ws->closing) {
        take_code(ws, bytes_of(chunk->data, chunk->data_length));
    }
}

/* A message, or a control frame, is whole. */
static void on_message(wslay_event_context_ptr wslay, const struct wslay_event_on_msg_recv_arg *m,
                       void *user)
{
    struct websocket *ws = user;

    (void)wslay;
    if (m->opcode == WSLAY_CONNECTION_CLOSE && m->msg_length == 1) {
        refuse(ws, WEBSOCKET_PROTOCOL); // half a code
    } else if (m->opcode == WSLAY_BINARY_FRAME && ws->refused == WEBSOCKET_OPEN) {
        if (ws->got < PACKET_HEADER || ws->got != ws->whole) {
            refuse(ws, WEBSOCKET_BAD_MESSAGE);
        }
        ws->got = 0;
        ws->whole = PACKET_HEADER;
    }
}

/* What wslay found wrong, by the code of the close that it has sent. */
static enum websocket_end end_of(uint16_t code)
{
    switch (code) {
    case WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA:
        return WEBSOCKET_BAD_UTF8;
    case WSLAY_CODE_MESSAGE_TOO_BIG:
        return WEBSOCKET_TOO_LARGE;
    default:
        return WEBSOCKET_PROTOCOL;
    }
}

/* wslay has stopped to read: how did it end? */
static void finish(struct websocket *ws, bool broken)
{
    if (broken && ws->refused == WEBSOCKET_OPEN) {
        ws->refused = WEBSOCKET_PROTOCOL; // wslay's own close would say nothing
    }
    if (ws->refused != WEBSOCKET_OPEN) {
        ws->end = ws->refused;
        put_close(ws->out,
                  ws->end == WEBSOCKET_LEFT ? (uint16_t)big_get16(ws->code) : code_of(ws->end));
        return;
    }
    (void)wslay_event_send(ws->wslay);
    ws->end = wslay_event_get_close_received(ws->wslay)
                  ? WEBSOCKET_LEFT
                  : end_of(wslay_event_get_status_code_sent(ws->wslay));
}

static size_t head_size(const struct websocket *ws)
{
    const uint8_t second = ws->head_size < 2 ? 0 : ws->head[1];
    const uint8_t length = second & SMALL_MASK;
    const size_t more = length == LENGTH_16 ? 2 : length == LENGTH_64 ? 8 : 0;

    return 2 + more + ((second & MASKED) != 0 ? 4 : 0);
}

static uint64_t body_size(const struct websocket *ws)
{
    const uint8_t length = ws->head[1] & SMALL_MASK;

    return length == LENGTH_16   ? big_get16(ws->head + 2)
           : length == LENGTH_64 ? big_get64(ws->head + 2)
                                 : length;
}

/* wslay tells of a frame at the first byte of its body: what it says of its size is looked at here,
 * where its header ends. Returns how much of `in` is to be read: all, unless a size may not be. */
static size_t follow(struct websocket *ws, struct bytes in)
{
    size_t at = 0;

    while (at < in.size) {
        if (ws->left > 0) {
            const size_t part = in.size - at < ws->left ? in.size - at : (size_t)ws->left;

            ws->left -= part;
            at += part;
            continue;
        }
        ws->head[ws->head_size++] = in.data[at++];
        if (ws->head_size < 2 || ws->head_size < head_size(ws)) {
            continue;
        }
        ws->left = body_size(ws);
        ws->head_size = 0;
        if (ws->left > ws->message_max) {
            break;
        }
    }
    return at;
}

void websocket_on_bytes(struct websocket *ws, struct bytes in, struct buffer *packets,
                        struct buffer *out)
{
    if (ws->end != WEBSOCKET_OPEN) {
        return;
    }
    ws->in = bytes_of(in.data, follow(ws, in));
    ws->packets = packets;
    ws->out = out;
    const bool broken = wslay_event_recv(ws->wslay) != 0;
    if (!broken && ws->left > ws->message_max && wslay_event_want_read(ws->wslay)) {
        refuse(ws, WEBSOCKET_TOO_LARGE);
    }
    if (broken || !wslay_event_want_read(ws->wslay)) {
        finish(ws, broken);
    } else {
        (void)wslay_event_send(ws->wslay); // pongs
    }
}

void websocket_rest(struct websocket *ws)
{
    ws->pings = 0;
}

void websocket_close(struct websocket *ws, uint16_t code, struct buffer *out)
{
    if (ws->end == WEBSOCKET_OPEN) {
        ws->end = WEBSOCKET_LEFT;
        put_close(out, code);
    }
}

/* ---- life ---- */

struct websocket *websocket_new(size_t message_max)
{
    static const struct wslay_event_callbacks callbacks = {.recv_callback = on_recv,
                                                           .send_callback = on_send,
                                                           .on_frame_recv_start_callback = on_frame,
                                                           .on_frame_recv_chunk_callback = on_chunk,
                                                           .on_msg_recv_callback = on_message};
    struct websocket *ws = mem_new(1, sizeof *ws);

    ws->message_max = message_max;
    ws->whole = PACKET_HEADER;
    const int failed = wslay_event_context_server_init(&ws->wslay, &callbacks, ws);
    ASSERT(failed == 0); // no memory, as in mem_new()
    wslay_event_config_set_no_buffering(ws->wslay, 1);
    wslay_event_config_set_max_recv_msg_length(ws->wslay, message_max);
    return ws;
}

void websocket_free(struct websocket *ws)
{
    if (ws != NULL) {
        wslay_event_context_free(ws->wslay);
        mem_free(ws);
    }
}

enum websocket_end websocket_end(const struct websocket *ws)
{
    return ws->end;
}
