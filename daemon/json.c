/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes JSON values into a buffer, with commas and escapes.
 */
#include "daemon/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EXACT_BITS = 53 };

static void put(struct buffer *out, const char *text)
{
    buffer_put(out, text, strlen(text));
}

static void put_quoted(struct buffer *out, const char *text)
{
    char escaped[8];

    put(out, "\"");
    for (const char *at = text; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;

        if (c == '"' || c == '\\' || c < 0x20) {
            (void)snprintf(escaped, sizeof escaped, "\\u%04x", c);
            put(out, escaped);
        } else {
            buffer_put(out, at, 1);
        }
    }
    put(out, "\"");
}

static void begin_value(struct buffer *out, const char *key)
{
    const uint8_t last = out->size == 0 ? '{' : out->data[out->size - 1];

    if (last != '{' && last != '[') {
        put(out, ",");
    }
    if (key != NULL) {
        put_quoted(out, key);
        put(out, ":");
    }
}

void json_begin(struct buffer *out, const char *key, char bracket)
{
    begin_value(out, key);
    buffer_put(out, &bracket, 1);
}

void json_end(struct buffer *out, char bracket)
{
    buffer_put(out, &bracket, 1);
}

void json_text(struct buffer *out, const char *key, const char *text)
{
    begin_value(out, key);
    put_quoted(out, text);
}

void json_number(struct buffer *out, const char *key, uint64_t value)
{
    char text[32];

    begin_value(out, key);
    (void)snprintf(
        text, sizeof text, value >> EXACT_BITS == 0 ? "%" PRIu64 : "\"%" PRIu64 "\"", value);
    put(out, text);
}

void json_bool(struct buffer *out, const char *key, bool value)
{
    begin_value(out, key);
    put(out, value ? "true" : "false");
}
