/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes traceparent.
 */
#include "base/traceparent.h"

#include "base/escape.h"

enum {
    TRACE_AT = 3,
    SPAN_AT = TRACE_AT + 2 * TRACE_ID_SIZE + 1,
    FLAGS_AT = SPAN_AT + 2 * TRACE_SPAN_SIZE + 1,
    VERSION_INVALID = 0xFF,
};

static const char digits[] = "0123456789abcdef";

/* `size` bytes, of twice as many digits. False: some are none, or capitals. */
static bool get_hex(const uint8_t *text, size_t size, uint8_t *out)
{
    for (size_t i = 0; i < size; i++) {
        const uint8_t high = text[2 * i];
        const uint8_t low = text[2 * i + 1];

        if (hex_of(high) < 0 || hex_of(low) < 0 || (high >= 'A' && high <= 'F') ||
            (low >= 'A' && low <= 'F')) {
            return false;
        }
        out[i] = (uint8_t)(hex_of(high) << 4 | hex_of(low));
    }
    return true;
}

static bool is_zero(const uint8_t *id, size_t size)
{
    uint8_t any = 0;

    for (size_t i = 0; i < size; i++) {
        any |= id[i];
    }
    return any == 0;
}

bool traceparent_parse(struct bytes text, struct trace_context *out)
{
    const uint8_t *at = text.data;
    uint8_t version = 0;

    if (text.size < TRACEPARENT_SIZE || !get_hex(at, 1, &version) || version == VERSION_INVALID ||
        at[TRACE_AT - 1] != '-' || at[SPAN_AT - 1] != '-' || at[FLAGS_AT - 1] != '-') {
        return false;
    }
    if (text.size > TRACEPARENT_SIZE && (version == 0 || at[TRACEPARENT_SIZE] != '-')) {
        return false;
    }
    return get_hex(at + TRACE_AT, TRACE_ID_SIZE, out->trace) &&
           get_hex(at + SPAN_AT, TRACE_SPAN_SIZE, out->span) &&
           get_hex(at + FLAGS_AT, 1, &out->flags) && !is_zero(out->trace, TRACE_ID_SIZE) &&
           !is_zero(out->span, TRACE_SPAN_SIZE);
}

const char *traceparent_hex(const uint8_t *id, size_t size, char *out)
{
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[id[i] >> 4];
        out[2 * i + 1] = digits[id[i] & 0xF];
    }
    out[2 * size] = '\0';
    return out;
}

const char *traceparent_print(const struct trace_context *c, char out[TRACEPARENT_SIZE + 1])
{
    memcpy(out, "00-", TRACE_AT);
    (void)traceparent_hex(c->trace, TRACE_ID_SIZE, out + TRACE_AT);
    out[SPAN_AT - 1] = '-';
    (void)traceparent_hex(c->span, TRACE_SPAN_SIZE, out + SPAN_AT);
    out[FLAGS_AT - 1] = '-';
    const uint8_t flags = c->flags & TRACE_SAMPLED;

    (void)traceparent_hex(&flags, 1, out + FLAGS_AT);
    return out;
}

bool trace_context_is_sampled(const struct trace_context *c)
{
    return (c->flags & TRACE_SAMPLED) != 0 && !is_zero(c->trace, TRACE_ID_SIZE) &&
           !is_zero(c->span, TRACE_SPAN_SIZE);
}
