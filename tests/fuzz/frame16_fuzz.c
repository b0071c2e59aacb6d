/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as frames of skynet's clients, in any pieces: what is handed on is packets, one of them
 * maybe not whole; those that are make the same frames. The first byte says in which pieces.
 */
#include "base/assert.h"
#include "gateway/protocol/frame16.h"
#include "gateway/protocol/packet.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes of those that are whole. */
static size_t whole_of(struct bytes in)
{
    struct packet p;
    size_t at = 0;

    while (packet_next(bytes_of(in.data + at, in.size - at), FRAME16_BODY_MAX, &p) ==
           PACKET_WHOLE) {
        at += PACKET_HEADER + p.body.size;
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t piece = size == 0 || data[0] == 0 ? size : data[0];
    struct buffer packets = {0};
    struct buffer out = {0};
    struct frame16 f = {0};
    bool good = true;

    for (size_t i = 1; i < size && good; i += piece) {
        const size_t count = size - i < piece ? size - i : piece;

        good = frame16_on_bytes(&f, bytes_of(data + i, count), &packets);
    }
    const size_t whole = packets.size == 0 ? 0 : whole_of(buffer_bytes(&packets));
    if (whole > 0) {
        ASSERT(frame16_put(bytes_of(packets.data, whole), &out));
        ASSERT(out.size < size && memcmp(out.data, data + 1, out.size) == 0);
    }
    ASSERT(!good || packets.size - whole + f.left <= PACKET_HEADER + FRAME16_BODY_MAX);
    buffer_fini(&packets);
    buffer_fini(&out);
    return 0;
}
