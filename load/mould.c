/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's packet that is made once, and copied for each request.
 */
#include "load/mould.h"

#include "base/big.h"
#include "base/mem.h"
#include "gateway/protocol/packet.h"

#include <stdio.h>
#include <string.h>

void mould_init(struct mould *m, const struct mould_config *config)
{
    uint8_t *payload = mem_new(1, config->size + 1);
    char id[16];

    const int width = snprintf(NULL, 0, "%u", (unsigned)config->ids);
    const int size = snprintf(id, sizeof id, "b%0*u", width, 0u);

    memset(payload, 'x', config->size);
    *m = (struct mould){.digits = (size_t)width,
                        .digits_at = PACKET_HEADER + PACKET_REQUEST_HEADER + 1};
    packet_put_request(&m->packet,
                       PACKET_REQUEST,
                       &(struct request_packet){.kind = config->kind,
                                                .id = bytes_of(id, (size_t)size),
                                                .payload = bytes_of(payload, config->size)});
    mem_free(payload);
}

void mould_fini(struct mould *m)
{
    buffer_fini(&m->packet);
}

/* Two digits at a time, from the last ones. */
static void put_digits(uint8_t *at, size_t digits, uint32_t value)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "6869707172737475767778798081828384858687888990919293949596979899";

    for (; digits >= 2; digits -= 2, value /= 100) {
        memcpy(at + digits - 2, pairs + (size_t)2 * (value % 100), 2);
    }
    if (digits == 1) {
        *at = (uint8_t)('0' + value % 10);
    }
}

void mould_put(const struct mould *m, struct buffer *out, uint32_t request, uint32_t id)
{
    uint8_t *at = buffer_reserve(out, m->packet.size);

    memcpy(at, m->packet.data, m->packet.size);
    out->size += m->packet.size;
    big_put32(at + PACKET_HEADER, request);
    put_digits(at + m->digits_at, m->digits, id);
}
