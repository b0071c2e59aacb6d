/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes behind the handshake of a WebSocket: what is handed on is packets, one of them maybe
 * not whole, and little is answered. The first byte says in which pieces they come.
 */
#include "base/assert.h"
#include "gateway/protocol/packet.h"
#include "gateway/protocol/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGE_MAX = 1000, FRAME_MAX = 131 };

static void check_packets(struct bytes in, bool open)
{
    struct packet p;

    while (in.size > 0) {
        const enum packet_result result = packet_next(in, PACKET_BODY_MAX, &p);

        if (result == PACKET_MORE) {
            ASSERT(in.size < MESSAGE_MAX || !open);
            return;
        }
        ASSERT(result == PACKET_WHOLE && PACKET_HEADER + p.body.size <= MESSAGE_MAX);
        in = bytes_of(in.data + PACKET_HEADER + p.body.size, in.size - PACKET_HEADER - p.body.size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct websocket *ws = websocket_new(MESSAGE_MAX);
    struct buffer packets = {0};
    struct buffer out = {0};
    const size_t piece = size == 0 || data[0] == 0 ? size : data[0];

    for (size_t i = 1; i < size; i += piece) {
        const size_t count = size - i < piece ? size - i : piece;

        websocket_on_bytes(ws, bytes_of(data + i, count), &packets, &out);
    }
    check_packets(buffer_bytes(&packets), websocket_end(ws) == WEBSOCKET_OPEN);
    ASSERT(packets.size <= size);
    ASSERT(out.size <= (size_t)(WEBSOCKET_PINGS_MAX + 1) * FRAME_MAX);
    websocket_close(ws, WEBSOCKET_NORMAL, &out);
    ASSERT(websocket_end(ws) != WEBSOCKET_OPEN && out.size >= 2);
    websocket_free(ws);
    buffer_fini(&packets);
    buffer_fini(&out);
    return 0;
}
