/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 in both directions. Decoding refuses every text that encoding would not
 * have produced.
 */
#include "base/base64.h"

static uint8_t letter_of(uint32_t value)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    return (uint8_t)letters[value & 63];
}

void base64_put(struct buffer *out, struct bytes in)
{
    uint8_t *at = buffer_reserve(out, BASE64_SIZE(in.size) + 1);
    uint32_t bits = 0;
    unsigned held = 0; // bits that are not written yet

    out->size += BASE64_SIZE(in.size);
    for (size_t i = 0; i < in.size; i++) {
        bits = bits << 8 | in.data[i];
        for (held += 8; held >= 6; held -= 6) {
            *at++ = letter_of(bits >> (held - 6));
        }
    }
    if (held > 0) {
        *at = letter_of(bits << (6 - held));
    }
}

/* -1: it is no letter. */
static int value_of(uint8_t c, enum base64_letters letters)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == (letters == BASE64_URL ? '-' : '+')) {
        return 62;
    }
    return c == (letters == BASE64_URL ? '_' : '/') ? 63 : -1;
}

static enum err drop_padding(struct bytes *text)
{
    size_t padding = 0;

    while (padding < 2 && text->size > padding && text->data[text->size - 1 - padding] == '=') {
        padding++;
    }
    if (padding > 0 && text->size % 4 != 0) {
        return ERR_CORRUPT;
    }
    text->size -= padding;
    return ERR_OK;
}

enum err base64_get(struct bytes text, enum base64_letters letters, uint8_t *out, size_t max,
                    size_t *size)
{
    uint32_t bits = 0;
    unsigned held = 0; // bits that are not taken yet

    *size = 0;
    if ((letters == BASE64_PLAIN && drop_padding(&text) != ERR_OK) || text.size % 4 == 1) {
        return ERR_CORRUPT;
    }
    for (size_t i = 0; i < text.size; i++) {
        const int value = value_of(text.data[i], letters);

        if (value < 0) {
            return ERR_CORRUPT;
        }
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            if (*size == max) {
                return ERR_TOO_BIG;
            }
            out[(*size)++] = (uint8_t)(bits >> held);
        }
    }
    return (bits & ((1u << held) - 1)) == 0 ? ERR_OK : ERR_CORRUPT;
}
