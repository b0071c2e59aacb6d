/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints KIND/ID and reads it.
 */
#include "base/actor_name.h"

#include "base/escape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* No shell takes it for anything else. */
static bool is_plain(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("-_.:/@+={}", c) != NULL);
}

size_t actor_name_kind(struct bytes text, uint16_t *kind)
{
    uint32_t number = 0;
    size_t at = 0;

    for (; at < text.size && at < 5 && is_digit(text.data[at]); at++) {
        number = number * 10 + (uint32_t)(text.data[at] - '0');
    }
    if (at == 0 || at + 1 >= text.size || text.data[at] != '/' || number > ACTOR_NAME_KIND_MAX ||
        (text.data[0] == '0' && at > 1)) {
        return 0;
    }
    *kind = (uint16_t)number;
    return at + 1;
}

bool actor_name_parse_id(struct bytes text, uint8_t id[ACTOR_NAME_ID_MAX], size_t *size)
{
    *size = 0;
    for (size_t at = 0; at < text.size; at++) {
        uint8_t byte = text.data[at];

        if (byte == '%') {
            const int high = at + 2 < text.size ? hex_of(text.data[at + 1]) : -1;
            const int low = high < 0 ? -1 : hex_of(text.data[at + 2]);

            if (low < 0) {
                return false;
            }
            byte = (uint8_t)(high * 16 + low);
            at += 2;
        }
        if (*size == ACTOR_NAME_ID_MAX) {
            return false;
        }
        id[(*size)++] = byte;
    }
    return *size > 0;
}

static struct bytes behind(struct bytes text, size_t skip)
{
    return bytes_of(text.data + skip, text.size - skip);
}

static bool is_number(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (!is_digit(text.data[i])) {
            return false;
        }
    }
    return true;
}

/* A text with a slash. */
static enum actor_spelling parse_whole(struct bytes text, struct actor_name *out)
{
    const uint8_t *slash = memchr(text.data, '/', text.size);
    const size_t head = (size_t)(slash - text.data);
    const size_t skip = actor_name_kind(text, &out->kind);

    if (!actor_name_parse_id(behind(text, head + 1), out->id, &out->id_size)) {
        return ACTOR_SPELLING_NONE;
    }
    if (skip > 0) {
        return ACTOR_SPELLING_NUMBER;
    }
    out->kind_name = bytes_of(text.data, head);
    return is_number(out->kind_name) ? ACTOR_SPELLING_NONE : ACTOR_SPELLING_NAME;
}

enum actor_spelling actor_name_parse(struct bytes text, struct actor_name *out)
{
    *out = (struct actor_name){.kind = 0};
    if (text.size == 0) {
        return ACTOR_SPELLING_NONE;
    }
    if (memchr(text.data, '/', text.size) == NULL) {
        return actor_name_parse_id(text, out->id, &out->id_size) ? ACTOR_SPELLING_BARE
                                                                 : ACTOR_SPELLING_NONE;
    }
    out->at = text.data[0] == '@';
    return parse_whole(out->at ? behind(text, 1) : text, out);
}

const char *actor_name_print_id(struct bytes id, char out[ACTOR_NAME_ID_SIZE])
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;

    for (size_t i = 0; i < id.size && i < ACTOR_NAME_ID_MAX; i++) {
        const uint8_t byte = id.data[i];
        // A shell makes three words of {1..3}.
        const bool doubled = byte == '.' && i > 0 && out[used - 1] == '.';

        if (is_plain(byte) && !doubled) {
            out[used++] = (char)byte;
        } else {
            out[used++] = '%';
            out[used++] = digits[byte >> 4];
            out[used++] = digits[byte & 15];
        }
    }
    out[used] = '\0';
    return out;
}

const char *actor_name_print(uint32_t kind, struct bytes id, char out[ACTOR_NAME_SIZE])
{
    const int head = snprintf(out, ACTOR_NAME_SIZE, "%" PRIu32 "/", kind);

    (void)actor_name_print_id(id, out + head);
    return out;
}
