/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes the hops of a traced request.
 */
#include "wire/trace.h"

enum { HOP_FIXED_SIZE = 1 + 8 + 4 + 4 + 1, RAN_BEFORE_END = 4 + 1 };

void trace_put(struct buffer *out, const struct trace_hop *hop)
{
    const size_t name = hop->node.size < TRACE_NAME_MAX ? hop->node.size : TRACE_NAME_MAX;
    const size_t size = HOP_FIXED_SIZE + name;

    if (out->size + size > TRACE_SIZE_MAX) {
        return;
    }
    struct writer w = {.at = buffer_reserve(out, size), .left = size};

    put_u8(&w, (uint8_t)name);
    put_bytes(&w, hop->node.data, name);
    put_u64(&w, hop->version);
    put_u32(&w, hop->waited_us);
    put_u32(&w, hop->ran_us);
    put_u8(&w, hop->did);
    out->size += size;
}

bool trace_next(struct reader *in, struct trace_hop *hop)
{
    if (in->left == 0) {
        return false;
    }
    const size_t name = get_u8(in);
    const uint8_t *at = get_bytes(in, name);

    *hop = (struct trace_hop){.node = bytes_of(at, at == NULL ? 0 : name)};
    hop->version = get_u64(in);
    hop->waited_us = get_u32(in);
    hop->ran_us = get_u32(in);
    hop->did = get_u8(in);
    in->bad =
        in->bad || name > TRACE_NAME_MAX || hop->did > (TRACE_HELD | TRACE_FORWARD | TRACE_RAN);
    return !in->bad;
}

bool trace_has(struct bytes hops, uint8_t did)
{
    struct reader in = {.at = hops.data, .left = hops.size};
    struct trace_hop hop;
    bool has = false;

    while (trace_next(&in, &hop)) {
        has = has || (hop.did & did) != 0;
    }
    return has;
}

void trace_set_ran(struct buffer *hops, uint32_t ran_us)
{
    if (hops->size >= HOP_FIXED_SIZE) {
        struct writer w = {.at = hops->data + hops->size - RAN_BEFORE_END, .left = RAN_BEFORE_END};

        put_u32(&w, ran_us);
    }
}
