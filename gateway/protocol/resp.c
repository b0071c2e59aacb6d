/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses RESP commands, also inline and in pieces, and writes RESP2 and RESP3
 * replies.
 */
#include "gateway/protocol/resp.h"

#include "base/assert.h"
#include "base/decimal.h"
#include "base/escape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_DIGITS_MAX = 10, NUMBER_TEXT_MAX = 24 };

static const char too_many[] = "ERR a command has at most 2048 arguments after its name";
static const char too_long[] = "ERR an argument has at most 1048576 bytes";
static const char too_large[] = "ERR a command has at most 2097152 bytes";

void resp_parser_reset(struct resp_parser *p)
{
    *p = (struct resp_parser){0};
}

static enum resp_result fail(struct resp_output *out, const char *error)
{
    out->error = error;
    return RESP_ERROR;
}

/* The line from p->at without its line feed. RESP_MORE: not whole yet. */
static enum resp_result find_line(struct resp_parser *p, struct bytes in, const char *too_big,
                                  struct resp_output *out)
{
    const uint8_t *from = in.data + p->at + p->scanned;
    const size_t left = in.size - p->at - p->scanned;
    const uint8_t *end = left == 0 ? NULL : memchr(from, '\n', left);
    const size_t size = end == NULL ? in.size - p->at : (size_t)(end - in.data) - p->at;

    if (size > RESP_LINE_MAX) {
        return fail(out, too_big);
    }
    if (end == NULL) {
        p->scanned = (uint32_t)size;
        return RESP_MORE;
    }
    p->scanned = 0;
    out->taken = p->at + size + 1;
    return RESP_COMMAND;
}

bool resp_number(struct bytes text, int64_t *number)
{
    const bool negative = text.size > 0 && text.data[0] == '-';
    const size_t first = negative ? 1 : 0;
    const size_t digits = text.size - first;
    int64_t value = 0;

    if (digits == 0 || digits > NUMBER_DIGITS_MAX ||
        (text.data[first] == '0' && (digits > 1 || negative))) {
        return false;
    }
    for (size_t i = first; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        value = value * 10 + (text.data[i] - '0');
    }
    *number = negative ? -value : value;
    return true;
}

/* The number on a header line such as "*3\r\n" that ends before `end`. */
static bool header_number(struct bytes in, size_t at, size_t end, int64_t *number)
{
    const size_t size = end - at;

    // The shortest is a mark, a digit, \r and \n.
    if (size < 4 || in.data[end - 2] != '\r') {
        return false;
    }
    return resp_number(bytes_of(in.data + at + 1, size - 3), number);
}

/* ---- inline commands ---- */

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

struct inline_words {
    struct bytes line;
    size_t at;
    struct buffer *text; /* the words' bytes, one after the other */
};

static uint8_t peek(const struct inline_words *w, size_t ahead)
{
    return w->at + ahead < w->line.size ? w->line.data[w->at + ahead] : 0;
}

static void put_byte(struct inline_words *w, uint8_t byte)
{
    buffer_put(w->text, &byte, 1);
}

/* One character of a quoted word, escapes undone. */
static void take_quoted(struct inline_words *w, uint8_t quote)
{
    const uint8_t c = peek(w, 0);

    if (quote == '"' && c == '\\' && peek(w, 1) == 'x' && hex_of(peek(w, 2)) >= 0 &&
        hex_of(peek(w, 3)) >= 0) {
        put_byte(w, (uint8_t)(hex_of(peek(w, 2)) * 16 + hex_of(peek(w, 3))));
        w->at += 4;
    } else if (quote == '"' && c == '\\' && w->at + 1 < w->line.size) {
        put_byte(w, escape_of(peek(w, 1)));
        w->at += 2;
    } else if (quote == '\'' && c == '\\' && peek(w, 1) == '\'') {
        put_byte(w, '\'');
        w->at += 2;
    } else {
        put_byte(w, c);
        w->at++;
    }
}

/* A quoted part, from its opening quote. False: it is not closed, or something clings to it. */
static bool take_quotes(struct inline_words *w)
{
    const uint8_t quote = peek(w, 0);

    w->at++;
    while (w->at < w->line.size && peek(w, 0) != quote) {
        take_quoted(w, quote);
    }
    if (w->at == w->line.size) {
        return false;
    }
    w->at++;
    return w->at == w->line.size || is_space(peek(w, 0));
}

/* One word; false: quotes that don't match. */
static bool take_word(struct inline_words *w)
{
    while (w->at < w->line.size && !is_space(peek(w, 0))) {
        if (peek(w, 0) == '"' || peek(w, 0) == '\'') {
            return take_quotes(w);
        }
        put_byte(w, peek(w, 0));
        w->at++;
    }
    return true;
}

static enum resp_result parse_inline(struct resp_parser *p, struct bytes in, struct buffer *scratch,
                                     struct resp_output *out)
{
    const enum resp_result found = find_line(p, in, "Protocol error: too big inline request", out);

    if (found != RESP_COMMAND) {
        return found;
    }
    struct inline_words w = {.line = {in.data, out->taken - 1}, .text = scratch};
    size_t start[RESP_ARGS_MAX + 1];
    size_t count = 0;

    buffer_clear(scratch);
    (void)buffer_reserve(scratch, w.line.size + 1); // so that even an empty word has an address
    for (;;) {
        while (w.at < w.line.size && is_space(peek(&w, 0))) {
            w.at++;
        }
        if (w.at == w.line.size) {
            break;
        }
        if (count == RESP_ARGS_MAX) {
            resp_parser_reset(p);
            out->error = too_many;
            return RESP_REFUSED;
        }
        start[count++] = scratch->size;
        if (!take_word(&w)) {
            return fail(out, "Protocol error: unbalanced quotes in request");
        }
    }
    start[count] = scratch->size;
    for (size_t i = 0; i < count; i++) {
        out->command.arg[i] = bytes_of(scratch->data + start[i], start[i + 1] - start[i]);
    }
    out->command.count = count;
    resp_parser_reset(p);
    return RESP_COMMAND;
}

/* ---- arrays ---- */

static enum resp_result take_array_header(struct resp_parser *p, struct bytes in,
                                          struct resp_output *out)
{
    const enum resp_result found =
        find_line(p, in, "Protocol error: too big mbulk count string", out);
    int64_t count = 0;

    if (found != RESP_COMMAND) {
        return found;
    }
    if (!header_number(in, p->at, out->taken, &count) || count > RESP_DROP_ARGS_MAX) {
        return fail(out, "Protocol error: invalid multibulk length");
    }
    p->at = (uint32_t)out->taken;
    p->want = count > 0 ? (uint32_t)count : 0;
    p->refusal = count > RESP_ARGS_MAX ? too_many : NULL;
    return RESP_COMMAND;
}

static enum resp_result expected_bulk(struct resp_output *out, uint8_t got)
{
    const bool line_break = got == '\r' || got == '\n'; // which an error can't have
    const bool shown = got >= ' ' && got <= '~';

    (void)snprintf(out->text,
                   sizeof out->text,
                   shown || line_break ? "Protocol error: expected '$', got '%c'"
                                       : "Protocol error: expected '$', got '\\x%02x'",
                   line_break ? ' ' : got);
    return fail(out, out->text);
}

static enum resp_result take_bulk_header(struct resp_parser *p, struct bytes in,
                                         struct resp_output *out)
{
    int64_t size = 0;

    if (in.size == p->at) {
        return RESP_MORE;
    }
    if (in.data[p->at] != '$') {
        return expected_bulk(out, in.data[p->at]);
    }
    const enum resp_result found =
        find_line(p, in, "Protocol error: too big bulk count string", out);
    if (found != RESP_COMMAND) {
        return found;
    }
    if (!header_number(in, p->at, out->taken, &size) || size < 0) {
        return fail(out, "Protocol error: invalid bulk length");
    }
    const size_t all = p->dropped + out->taken + (size_t)size + 2;
    if (all > RESP_DROP_MAX) {
        return fail(out, "Protocol error: invalid bulk length");
    }
    if (p->refusal == NULL && (size > RESP_BULK_MAX || all > RESP_COMMAND_MAX)) {
        p->refusal = size > RESP_BULK_MAX ? too_long : too_large;
    }
    p->at = (uint32_t)out->taken;
    p->bulk = (uint32_t)size + 2;
    p->in_bulk = true;
    return RESP_COMMAND;
}

/* Part of an argument, as much as there is. */
static enum resp_result drop_bulk(struct resp_parser *p, struct bytes in)
{
    const size_t left = in.size - p->at;
    const uint32_t part = left < p->bulk ? (uint32_t)left : p->bulk;

    p->at += part;
    p->bulk -= part;
    if (p->bulk > 0) {
        return RESP_MORE;
    }
    p->in_bulk = false;
    p->count++;
    return RESP_COMMAND;
}

/* The command is over a limit: its bytes go as they come. So its error arrives, and the connection
 * goes on, where a connection closed with bytes unread may take the error with it. */
static enum resp_result drop(struct resp_parser *p, struct bytes in, struct resp_output *out)
{
    enum resp_result found = RESP_COMMAND;

    while (found == RESP_COMMAND && p->count < p->want) {
        found = p->in_bulk ? drop_bulk(p, in) : take_bulk_header(p, in, out);
    }
    if (found == RESP_ERROR) {
        return found;
    }
    out->taken = p->at;
    p->dropped += p->at;
    p->at = 0;
    if (found == RESP_MORE) {
        return found;
    }
    out->error = p->refusal;
    resp_parser_reset(p);
    return RESP_REFUSED;
}

static enum resp_result take_bulk(struct resp_parser *p, struct bytes in, struct resp_output *out)
{
    const size_t end = (size_t)p->at + p->bulk;

    if (in.size < end) {
        return RESP_MORE;
    }
    if (in.data[end - 2] != '\r' || in.data[end - 1] != '\n') {
        return fail(out, "Protocol error: a bulk string does not end with CRLF at its length");
    }
    p->count++;
    p->at = (uint32_t)end;
    p->in_bulk = false;
    return RESP_COMMAND;
}

/* The number on a line "$64\r\n"; the byte after the line, or NULL: not like that, or not whole. */
static const uint8_t *take_long_number(const uint8_t *at, const uint8_t *end, size_t *number)
{
    size_t value = (size_t)at[1] - '0';

    if (value > 9 || (value == 0 && at[2] != '\r')) {
        return NULL;
    }
    for (at += 2; at < end && at[0] >= '0' && at[0] <= '9'; at++) {
        if (value > RESP_BULK_MAX) {
            return NULL; // over every limit, and one digit more is no overflow
        }
        value = value * 10 + (size_t)(at[0] - '0');
    }
    if (end - at < 2 || at[0] != '\r' || at[1] != '\n') {
        return NULL;
    }
    *number = value;
    return at + 2;
}

/* Most have one digit, or two. */
static inline const uint8_t *take_number(const uint8_t *at, const uint8_t *end, uint8_t mark,
                                         size_t *number)
{
    if (end - at < 5 || at[0] != mark) {
        return end - at < 4 || at[0] != mark ? NULL : take_long_number(at, end, number);
    }
    const size_t first = (size_t)at[1] - '0';

    if (resp_ends_line(at + 2) && first <= 9) {
        *number = first;
        return at + 4;
    }
    const size_t second = (size_t)at[2] - '0';

    if (resp_ends_line(at + 3) && first - 1 < 9 && second <= 9) {
        *number = first * 10 + second;
        return at + 5;
    }
    return take_long_number(at, end, number);
}

const uint8_t *resp_take_any_bulk(const uint8_t *at, const uint8_t *end, struct bytes *out)
{
    size_t size = 0;

    at = take_number(at, end, '$', &size);
    if (at == NULL || (size_t)(end - at) < size + 2 || size > RESP_BULK_MAX ||
        !resp_ends_line(at + size)) {
        return NULL;
    }
    *out = bytes_of(at, size);
    return at + size + 2;
}

/* Arguments from number `first` on, of which every byte is there. False: they are not. */
__attribute__((always_inline)) static inline bool
parse_bulks(struct bytes in, const uint8_t *at, size_t first, size_t count, struct resp_output *out)
{
    const uint8_t *end = in.data + in.size;

    for (size_t i = first; i < count; i++) {
        at = resp_take_bulk(at, end, &out->command.arg[i]);
        if (at == NULL) {
            return false;
        }
    }
    out->taken = (size_t)(at - in.data);
    if (out->taken > RESP_COMMAND_MAX) {
        out->taken = 0;
        return false;
    }
    out->command.count = count;
    return true;
}

/* The usual case in one go: an array whose every byte is there. False: it is not, and the parser
 * has seen nothing of it. */
static bool parse_whole(struct bytes in, struct resp_output *out)
{
    size_t count = 0;
    const uint8_t *at = take_number(in.data, in.data + in.size, '*', &count);

    return at != NULL && count >= 1 && count <= RESP_ARGS_MAX && parse_bulks(in, at, 0, count, out);
}

bool resp_head_of(struct bytes in, const struct resp_command *command, struct resp_head *out)
{
    enum { WORD_AT = 8 };
    const size_t word = command->count > 0 ? command->arg[0].size : 0;
    const size_t size = WORD_AT + word + 2;
    uint8_t text[RESP_HEAD_MAX] = {0};

    if (command->count > 9 || word == 0 || size > RESP_HEAD_MAX || in.size < RESP_HEAD_MAX ||
        command->arg[0].data != in.data + WORD_AT) {
        return false;
    }
    *out = (struct resp_head){
        .size = (uint8_t)size, .count = (uint8_t)command->count, .word = (uint8_t)word};
    memcpy(text, in.data, size);
    memcpy(out->text, text, sizeof out->text);
    memset(text, 0, sizeof text);
    memset(text, 0xff, size);
    memcpy(&out->mask, text + sizeof out->mask, sizeof out->mask);
    return true;
}

bool resp_parse_behind(const struct resp_parser *p, struct bytes in, const struct resp_head *head,
                       struct resp_output *out)
{
    if (!resp_parser_is_fresh(p)) {
        return false;
    }
    out->command.arg[0] = bytes_of(in.data + head->size - 2 - head->word, head->word);
    return parse_bulks(in, in.data + head->size, 1, head->count, out);
}

static enum resp_result parse_array(struct resp_parser *p, struct bytes in, struct resp_output *out)
{
    if (p->want == 0) {
        const enum resp_result found = take_array_header(p, in, out);

        if (found != RESP_COMMAND) {
            return found;
        }
    }
    while (p->refusal == NULL && p->count < p->want) {
        const enum resp_result found =
            p->in_bulk ? take_bulk(p, in, out) : take_bulk_header(p, in, out);

        if (found != RESP_COMMAND) {
            out->taken = 0; // the lines before are still needed
            return found;
        }
    }
    if (p->refusal != NULL) {
        return drop(p, in, out);
    }
    const bool whole = p->want == 0 || parse_whole(in, out);

    ASSERT(whole);
    out->taken = p->at;
    resp_parser_reset(p);
    return RESP_COMMAND;
}

enum resp_result resp_parse(struct resp_parser *p, struct bytes in, struct buffer *scratch,
                            struct resp_output *out)
{
    out->command.count = 0;
    out->taken = 0;
    out->error = NULL;
    if (in.size == 0) {
        return RESP_MORE;
    }
    if (resp_parser_is_fresh(p) && parse_whole(in, out)) {
        return RESP_COMMAND;
    }
    ASSERT((size_t)p->at + p->scanned <= in.size);
    if (p->refusal != NULL) {
        return drop(p, in, out);
    }
    return in.data[0] == '*' ? parse_array(p, in, out) : parse_inline(p, in, scratch, out);
}

/* ---- replies ---- */

/* A line with a number: at most NUMBER_TEXT_MAX bytes. Returns how many. */
static size_t long_number_line(uint8_t *to, char mark, int64_t number)
{
    char text[NUMBER_TEXT_MAX] = {[NUMBER_TEXT_MAX - 2] = '\r', [NUMBER_TEXT_MAX - 1] = '\n'};
    char *at = decimal_before(text + sizeof text - 2, number);

    *--at = mark;
    const size_t size = (size_t)(text + sizeof text - at);
    memcpy(to, at, size);
    return size;
}

static inline size_t number_line(uint8_t *to, char mark, int64_t number)
{
    const bool two = number >= 10;
    const size_t last = two ? 2 : 1;

    if (number < 0 || number > 99) {
        return long_number_line(to, mark, number);
    }
    to[0] = (uint8_t)mark;
    to[1] = (uint8_t)('0' + number / 10);
    to[last] = (uint8_t)('0' + number % 10);
    to[last + 1] = '\r';
    to[last + 2] = '\n';
    return last + 3;
}

static void put_number(struct buffer *out, char mark, int64_t number)
{
    out->size += number_line(buffer_reserve(out, NUMBER_TEXT_MAX), mark, number);
}

void resp_put_simple(struct buffer *out, const char *text)
{
    buffer_put(out, "+", 1);
    buffer_put(out, text, strlen(text));
    buffer_put(out, "\r\n", 2);
}

/* Text on one line: in RESP a line break would end the reply early. */
static void put_line(struct buffer *out, const char *mark, size_t mark_size, struct bytes text)
{
    uint8_t *at = buffer_reserve(out, mark_size + text.size + 2);

    bytes_copy(at, mark, mark_size);
    at += mark_size;
    for (size_t i = 0; i < text.size; i++) {
        at[i] = text.data[i] == '\r' || text.data[i] == '\n' ? ' ' : text.data[i];
    }
    at[text.size] = '\r';
    at[text.size + 1] = '\n';
    out->size += mark_size + text.size + 2;
}

void resp_put_error(struct buffer *out, struct bytes text)
{
    put_line(out, "-", 1, text);
}

void resp_put_integer(struct buffer *out, int64_t integer)
{
    put_number(out, ':', integer);
}

void resp_put_bulk(struct buffer *out, struct bytes bulk)
{
    uint8_t *at = buffer_reserve(out, NUMBER_TEXT_MAX + bulk.size + 2);
    const size_t head = number_line(at, '$', (int64_t)bulk.size);

    bytes_copy(at + head, bulk.data, bulk.size);
    at[head + bulk.size] = '\r';
    at[head + bulk.size + 1] = '\n';
    out->size += head + bulk.size + 2;
}

void resp_put_text(struct buffer *out, const char *text)
{
    resp_put_bulk(out, bytes_of(text, strlen(text)));
}

void resp_put_nil(struct buffer *out, int protocol)
{
    if (protocol == 3) {
        buffer_put(out, "_\r\n", 3);
    } else {
        buffer_put(out, "$-1\r\n", 5);
    }
}

void resp_put_array(struct buffer *out, size_t count)
{
    put_number(out, '*', (int64_t)count);
}

void resp_put_map(struct buffer *out, int protocol, size_t pairs)
{
    if (protocol == 3) {
        put_number(out, '%', (int64_t)pairs);
    } else {
        put_number(out, '*', (int64_t)pairs * 2);
    }
}

void resp_put_push(struct buffer *out, int protocol, size_t count)
{
    put_number(out, protocol == 3 ? '>' : '*', (int64_t)count);
}

/* "WRONGTYPE …" has a code, "no such thing" has not. */
static bool has_code(struct bytes text)
{
    size_t i = 0;

    while (i < text.size && text.data[i] >= 'A' && text.data[i] <= 'Z') {
        i++;
    }
    return i >= 2 && (i == text.size || text.data[i] == ' ');
}

void resp_put_value(struct buffer *out, int protocol, const struct value *value)
{
    switch (value->type) {
    case VALUE_INTEGER:
        resp_put_integer(out, value->integer);
        break;
    case VALUE_BULK:
        resp_put_bulk(out, value->text);
        break;
    case VALUE_SIMPLE:
        put_line(out, "+", 1, value->text);
        break;
    case VALUE_NIL:
        resp_put_nil(out, protocol);
        break;
    case VALUE_ERROR:
        put_line(out, "-ERR ", has_code(value->text) ? 1 : 5, value->text);
        break;
    }
}
