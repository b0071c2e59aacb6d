/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits a client's text into words, with quotes as in redis-cli.
 */
#include "lua/words.h"

#include "base/escape.h"

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What stands for one byte at `*at`, behind it `*at` is left. */
static uint8_t next(struct bytes in, size_t *at, uint8_t quote)
{
    const uint8_t *c = in.data + *at;
    const size_t left = in.size - *at;

    if (c[0] != '\\' || left < 2 || (quote == '\'' && c[1] != '\'')) {
        *at += 1;
        return c[0];
    }
    if (quote == '"' && left >= 4 && c[1] == 'x' && hex_of(c[2]) >= 0 && hex_of(c[3]) >= 0) {
        *at += 4;
        return (uint8_t)(hex_of(c[2]) * 16 + hex_of(c[3]));
    }
    *at += 2;
    return quote == '"' ? escape_of(c[1]) : c[1];
}

/* Behind the quote that ends it; false if there is none. */
static bool take_quoted(struct bytes in, size_t *at, uint8_t *out, size_t *size)
{
    const uint8_t quote = in.data[(*at)++];

    while (*at < in.size && in.data[*at] != quote) {
        out[(*size)++] = next(in, at, quote);
    }
    if (*at == in.size) {
        return false;
    }
    *at += 1;
    return *at == in.size || is_space(in.data[*at]);
}

enum err words_split(struct bytes payload, struct words *out)
{
    size_t at = 0;

    out->count = 0;
    buffer_clear(&out->text);
    // Words are never longer than what they are written as, so one piece of memory is enough.
    uint8_t *to = buffer_reserve(&out->text, payload.size + 1);
    for (;;) {
        while (at < payload.size && is_space(payload.data[at])) {
            at++;
        }
        if (at == payload.size) {
            return ERR_OK;
        }
        if (out->count == WORDS_MAX) {
            return ERR_TOO_BIG;
        }
        size_t size = 0;
        if (payload.data[at] != '"' && payload.data[at] != '\'') {
            while (at < payload.size && !is_space(payload.data[at])) {
                to[size++] = payload.data[at++];
            }
        } else if (!take_quoted(payload, &at, to, &size)) {
            return ERR_INVALID;
        }
        out->word[out->count++] = bytes_of(to, size);
        to += size;
    }
}

void words_fini(struct words *w)
{
    buffer_fini(&w->text);
    w->count = 0;
}
