/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads the JSON of an actor's values.
 */
#include "cli/values_json.h"

#include "base/base64.h"
#include "base/escape.h"
#include "base/mem.h"
#include "base/plain.h"
#include "daemon/json.h"
#include "wire/values_ask.h"

#include <stdio.h>
#include <string.h>

enum { KEY_MAX = 255, VALUE_MAX = 1024 * 1024, STRING_MAX = 2 * VALUE_MAX };

/* ---- writing ---- */

/* With a 0 behind it. Line breaks and the like may be in a text, but no 0. */
static bool is_text(struct bytes bytes)
{
    char *plain = mem_copy(bytes.data, bytes.size);

    for (size_t i = 0; i < bytes.size; i++) {
        if (plain[i] > 0 && plain[i] < ' ') {
            plain[i] = ' ';
        }
    }
    const bool is = strlen(plain) + 1 == bytes.size && plain_is(plain);
    mem_free(plain);
    return is;
}

static void write_member(struct buffer *out, const char *name, const char *name64,
                         struct bytes bytes)
{
    struct buffer text = {0};

    buffer_put(&text, bytes.data, bytes.size);
    buffer_put(&text, "", 1);
    const bool plain = is_text(buffer_bytes(&text));
    if (!plain) {
        buffer_clear(&text);
        base64_put(&text, bytes);
        buffer_put(&text, "", 1);
    }
    json_text(out, plain ? name : name64, (const char *)text.data);
    buffer_fini(&text);
}

void values_json_row(struct buffer *out, struct bytes key, struct bytes value)
{
    write_member(out, "key", "key64", key);
    write_member(out, "value", "value64", value);
}

void values_json_write(struct buffer *out, const char *actor, uint64_t number, struct bytes rows)
{
    struct reader in = {.at = rows.data, .left = rows.size};
    struct values_row row;
    bool first = true;

    json_begin(out, NULL, '{');
    json_text(out, "actor", actor);
    json_number(out, "number", number);
    json_begin(out, "values", '[');
    while (values_row_next(&in, &row)) {
        buffer_put(out, first ? "\n{" : ",\n{", first ? 2 : 3);
        values_json_row(out, row.key, row.value);
        json_end(out, '}');
        first = false;
    }
    json_end(out, ']');
    json_end(out, '}');
    buffer_put(out, "\n", 1);
}

/* ---- reading ---- */

/* The first fault stays: what is read behind it is nothing. */
struct json_reader {
    struct reader in;
    const char *fault; /* NULL = none */
};

static void spoil(struct json_reader *r, const char *fault)
{
    r->fault = r->fault == NULL ? fault : r->fault;
    r->in.left = 0;
}

/* The next byte that is no space, without taking it; 0 at the end. */
static uint8_t peek(struct json_reader *r)
{
    while (r->in.left > 0 && strchr(" \t\r\n", r->in.at[0]) != NULL && r->in.at[0] != 0) {
        (void)get_u8(&r->in);
    }
    return r->in.left == 0 ? 0 : r->in.at[0];
}

static bool take(struct json_reader *r, uint8_t c)
{
    if (peek(r) != c) {
        return false;
    }
    (void)get_u8(&r->in);
    return true;
}

static void expect(struct json_reader *r, uint8_t c, const char *fault)
{
    if (!take(r, c)) {
        spoil(r, fault);
    }
}

static uint32_t hex4(struct json_reader *r)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        const int digit = hex_of(r->in.left == 0 ? 0 : get_u8(&r->in));

        if (digit < 0) {
            spoil(r, "\\u is followed by four hexadecimal digits");
            return 0;
        }
        value = value * 16 + (uint32_t)digit;
    }
    return value;
}

static bool is_between(uint32_t c, uint32_t least, uint32_t most)
{
    return c >= least && c <= most;
}

/* Behind \u: as UTF-8. */
static void put_character(struct json_reader *r, struct buffer *out)
{
    uint32_t c = hex4(r);

    if (is_between(c, 0xd800, 0xdbff) && r->in.left > 6 && memcmp(r->in.at, "\\u", 2) == 0) {
        (void)get_u16(&r->in);
        const uint32_t low = hex4(r);

        c = is_between(low, 0xdc00, 0xdfff) ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : c;
    }
    if (is_between(c, 0xd800, 0xdfff)) {
        spoil(r, "half of a surrogate pair");
        return;
    }
    const uint8_t head = c < 0x80 ? 0 : c < 0x800 ? 0xc0 : c < 0x10000 ? 0xe0 : 0xf0;
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    const uint8_t first = (uint8_t)(head | c >> 6 * more);

    buffer_put(out, &first, 1);
    for (int i = more - 1; i >= 0; i--) {
        const uint8_t next = (uint8_t)(0x80 | (c >> 6 * i & 0x3f));

        buffer_put(out, &next, 1);
    }
}

static void put_escaped(struct json_reader *r, struct buffer *out)
{
    const uint8_t c = r->in.left == 0 ? 0 : get_u8(&r->in);
    const uint8_t byte = c == 'f' ? '\f' : escape_of(c);

    if (c == 'u') {
        put_character(r, out);
    } else if (c == 0 || strchr("\"\\/bfnrt", c) == NULL) {
        spoil(r, "an unknown escape");
    } else {
        buffer_put(out, &byte, 1);
    }
}

static void read_string(struct json_reader *r, struct buffer *out)
{
    buffer_clear(out);
    expect(r, '"', "a text in quotes is missing");
    while (r->in.left > 0 && r->in.at[0] != '"') {
        const uint8_t c = get_u8(&r->in);

        if (c == '\\') {
            put_escaped(r, out);
        } else if (c < ' ' || out->size >= STRING_MAX) {
            spoil(r, c < ' ' ? "a control character in a text" : "a text is too long");
        } else {
            buffer_put(out, &c, 1);
        }
    }
    if (r->in.left == 0) {
        spoil(r, "a text does not end");
    } else {
        (void)get_u8(&r->in);
    }
}

/* In place. */
static void decode(struct json_reader *r, struct buffer *text)
{
    const struct bytes in = buffer_bytes(text);
    const bool url = in.size == 0 || (memchr(in.data, '+', in.size) == NULL &&
                                      memchr(in.data, '/', in.size) == NULL &&
                                      memchr(in.data, '=', in.size) == NULL);
    struct buffer out = {0};
    uint8_t *room = buffer_reserve(&out, in.size + 1);

    if (base64_get(in, url ? BASE64_URL : BASE64_PLAIN, room, in.size, &out.size) != ERR_OK) {
        out.size = 0;
        spoil(r, "a text that is not base64");
    }
    buffer_fini(text);
    *text = out;
}

static bool is(const struct buffer *text, const char *word)
{
    return text->size == strlen(word) && memcmp(text->data, word, text->size) == 0;
}

/* One member of a value. */
static void read_member(struct json_reader *r, struct buffer *name, struct buffer *key,
                        struct buffer *value, unsigned *seen)
{
    read_string(r, name);
    expect(r, ':', "a colon is missing");
    const bool names_key = is(name, "key") || is(name, "key64");
    const bool names_value = is(name, "value") || is(name, "value64");
    struct buffer *to = names_key ? key : value;

    if (!names_key && !names_value) {
        spoil(r, "a member of a value that is not key, key64, value or value64");
        return;
    }
    read_string(r, to);
    if (is(name, "key64") || is(name, "value64")) {
        decode(r, to);
    }
    *seen += names_key ? 1 : 16;
}

enum { SEEN_BOTH = 17 };

static void read_value(struct json_reader *r, struct buffer *rows)
{
    struct buffer name = {0};
    struct buffer key = {0};
    struct buffer value = {0};
    unsigned seen = 0;

    expect(r, '{', "a value does not begin with {");
    do {
        read_member(r, &name, &key, &value, &seen);
    } while (take(r, ','));
    expect(r, '}', "a value does not end with }");
    if (seen != SEEN_BOTH) {
        spoil(r, "a value has not one key and one value");
    } else if (key.size < 1 || key.size > KEY_MAX || value.size > VALUE_MAX) {
        spoil(r, "a key has 1 to 255 bytes, a value at most 1 MiB");
    } else if (rows->size + key.size + value.size > VALUES_BATCH_MAX) {
        spoil(r, "an actor has at most 64 MiB");
    } else {
        values_row_put(
            rows, &(struct values_row){.key = buffer_bytes(&key), .value = buffer_bytes(&value)});
    }
    buffer_fini(&name);
    buffer_fini(&key);
    buffer_fini(&value);
}

static void read_values(struct json_reader *r, struct buffer *rows)
{
    expect(r, '[', "values do not begin with [");
    if (take(r, ']')) {
        return;
    }
    do {
        read_value(r, rows);
    } while (r->fault == NULL && take(r, ','));
    expect(r, ']', "values do not end with ]");
}

/* The number, or a text. */
static void pass_over(struct json_reader *r)
{
    struct buffer text = {0};

    if (peek(r) == '"') {
        read_string(r, &text);
    }
    while (r->in.left > 0 && is_between(r->in.at[0], '0', '9')) {
        (void)get_u8(&r->in);
    }
    buffer_fini(&text);
}

bool values_json_read(struct bytes text, struct buffer *rows, char why[VALUES_JSON_WHY_SIZE])
{
    struct json_reader r = {.in = {.at = text.data, .left = text.size}};
    struct buffer name = {0};
    bool seen = false;

    expect(&r, '{', "it does not begin with {");
    do {
        read_string(&r, &name);
        expect(&r, ':', "a colon is missing");
        if (is(&name, "values")) {
            read_values(&r, rows);
            seen = true;
        } else if (is(&name, "actor") || is(&name, "number")) {
            pass_over(&r);
        } else {
            spoil(&r, "a member that is not actor, number or values");
        }
    } while (r.fault == NULL && take(&r, ','));
    expect(&r, '}', "it does not end with }");
    if (!seen || peek(&r) != 0 || r.in.left > 0) {
        spoil(&r, seen ? "there is more behind its end" : "values are missing");
    }
    buffer_fini(&name);
    (void)snprintf(why, VALUES_JSON_WHY_SIZE, "%s", r.fault == NULL ? "" : r.fault);
    return r.fault == NULL;
}
