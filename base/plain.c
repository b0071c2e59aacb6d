/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and replaces what is not plain text: control characters, and bytes that
 * are no UTF-8.
 */
#include "base/plain.h"

#include <stdint.h>

static size_t size_by_first(uint8_t c)
{
    return c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Bytes of the character at `at`, which is terminated; 0: a control character, or none. Of UTF-8
 * all that a terminal could take for one: C1 is two bytes, or a single one that is no UTF-8. */
static size_t character_size(const char *at)
{
    const uint8_t *c = (const uint8_t *)at;
    const size_t size = size_by_first(c[0]);

    if (size == 0 || c[0] < ' ' || c[0] == 0x7f || c[0] > 0xf4 || (c[0] == 0xc2 && c[1] < 0xa0)) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    // Written too long, a half of UTF-16, or beyond Unicode: such bytes are no UTF-8 (RFC 3629).
    return (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
                   (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f)
               ? 0
               : size;
}

bool plain_is(const char *text)
{
    for (size_t size; *text != '\0'; text += size) {
        size = character_size(text);
        if (size == 0) {
            return false;
        }
    }
    return true;
}

bool plain_is_lines(const char *text, size_t size)
{
    for (size_t at = 0, step; at < size; at += step) {
        const bool blank = text[at] == '\n' || text[at] == '\t';
        const bool whole = size_by_first((uint8_t)text[at]) <= size - at;

        step = blank ? 1 : whole ? character_size(text + at) : 0;
        if (step == 0) {
            return false;
        }
    }
    return true;
}

void plain_make(char *text)
{
    while (*text != '\0') {
        const size_t size = character_size(text);

        if (size == 0) {
            *text = '?';
        }
        text += size == 0 ? 1 : size;
    }
}
