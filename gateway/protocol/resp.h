/* SPDX-License-Identifier: Apache-2.0
 *
 * RESP, the protocol of Redis: commands in, replies out.
 *
 * A command is an array of bulk strings or one inline line with words, quoted
 * where wanted. The parser takes what has come so far and goes on where it
 * stopped, so its work is linear however the bytes are cut: it remembers where
 * it is, and looks for the arguments once all have come. Pure.
 *
 *     *2\r\n $3\r\nGET\r\n $1\r\nx\r\n        GET x\r\n        GET "x"\n
 */
#ifndef GATEWAY_PROTOCOL_RESP_H
#define GATEWAY_PROTOCOL_RESP_H

#include "base/bytes.h"
#include "wire/args.h" // values
#include "wire/cursor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    RESP_ARGS_MAX = 2049,               /* of one command, its name included */
    RESP_BULK_MAX = 1024 * 1024,        /* one argument */
    RESP_LINE_MAX = 64 * 1024,          /* an inline command; also the line before a bulk */
    RESP_COMMAND_MAX = 2 * 1024 * 1024, /* all bytes of a command */
    /* A command over these is dropped as it comes, and refused when it is over; beyond what Redis
     * takes by default it is a protocol error. */
    RESP_DROP_ARGS_MAX = 1024 * 1024,
    RESP_DROP_MAX = 512 * 1024 * 1024,
};

struct resp_parser {
    const char *refusal; /* the limit that the command is over: it is dropped; NULL = none */
    uint32_t dropped;    /* bytes of it, by former calls */
    uint32_t at;         /* bytes of the command that are parsed */
    uint32_t scanned;    /* bytes searched for the end of the line, from `at` */
    uint32_t bulk;       /* bytes of the argument that are to come yet, if in_bulk */
    uint32_t want;       /* arguments of the array; 0 = its header was not read yet */
    uint32_t count;
    bool in_bulk;
};

struct resp_command {
    size_t count; /* 0 = an empty one: no reply */
    struct bytes arg[RESP_ARGS_MAX];
};

enum resp_result {
    RESP_COMMAND, /* `command` is whole and took `taken` bytes of the input */
    RESP_MORE,    /* not whole: call again with the bytes behind `taken` and more after them */
    RESP_REFUSED, /* a whole command of `taken` bytes that is over a limit: send `error` */
    RESP_ERROR,   /* not RESP: send `error` and close */
};

struct resp_output {
    struct resp_command command; /* borrows from the input and from `scratch` */
    size_t taken;
    const char *error; /* as Redis words it: "Protocol error: …"; static, or it is `text` */
    char text[48];
};

/* Make the parser fresh; one that is all zero is fresh. */
void resp_parser_reset(struct resp_parser *p);
/* True if nothing of a command was seen yet. */
static inline bool resp_parser_is_fresh(const struct resp_parser *p)
{
    return p->at == 0 && p->scanned == 0 && p->refusal == NULL;
}

/* Parse from `in`, which begins where the last command ended. `scratch` keeps the words of an
 * inline command until the next call; many parsers may share it. */
enum resp_result resp_parse(struct resp_parser *p, struct bytes in, struct buffer *scratch,
                            struct resp_output *out);

/* How most commands begin: "*3\r\n$3\r\nSET\r\n", an array of up to 9 words whose first one has up
 * to 6 bytes. All zero is none. */
enum { RESP_HEAD_MAX = 16 };
struct resp_head {
    uint64_t text[2]; /* its bytes, and 0 */
    uint64_t mask;    /* of text[1]: those that are of it */
    uint8_t size;
    uint8_t count;
    uint8_t word;
};
/* What a command begins with that was parsed whole from `in`. False: it begins in another way. */
bool resp_head_of(struct bytes in, const struct resp_command *command, struct resp_head *out);
/* True if the input begins like that. */
static inline bool resp_begins(struct bytes in, const struct resp_head *head)
{
    uint64_t text[2];

    if (in.size < RESP_HEAD_MAX) {
        return false;
    }
    memcpy(&text[0], in.data, sizeof text[0]);
    memcpy(&text[1], in.data + sizeof text[0], sizeof text[1]);
    return ((text[0] ^ head->text[0]) | ((text[1] ^ head->text[1]) & head->mask)) == 0;
}
/* Parse as resp_parse() does what begins like that. False: not all of it is there, or it is
 * unusual, and the parser has seen nothing of it. */
bool resp_parse_behind(const struct resp_parser *p, struct bytes in, const struct resp_head *head,
                       struct resp_output *out);

/* resp_take_bulk() of one that is longer, or unusual. */
const uint8_t *resp_take_any_bulk(const uint8_t *at, const uint8_t *end, struct bytes *out);
static inline bool resp_ends_line(const uint8_t *at)
{
    return load_u16(at) == ('\r' | '\n' << 8);
}
/* Take the next argument of a command, inline: one of up to 99 bytes, as most are. Returns what is
 * behind it; NULL: its bytes are not all there, or not like that. */
__attribute__((always_inline)) static inline const uint8_t *
resp_take_bulk(const uint8_t *at, const uint8_t *end, struct bytes *out)
{
    const uint8_t *text = NULL;
    size_t size = 0;

    if (__builtin_expect(end - at >= 6 && at[0] == '$', true)) {
        const size_t first = (size_t)at[1] - '0';
        const size_t second = (size_t)at[2] - '0';

        if (resp_ends_line(at + 3) && first - 1 < 9 && second <= 9) { // "$64\r\n"
            size = first * 10 + second;
            text = at + 5;
        } else if (resp_ends_line(at + 2) && first <= 9) { // "$3\r\n"
            size = first;
            text = at + 4;
        }
    }
    if (__builtin_expect(text == NULL, false)) {
        struct bytes any = {0}; // so that `out` stays in registers

        text = resp_take_any_bulk(at, end, &any);
        *out = any;
        return text;
    }
    if (__builtin_expect((size_t)(end - text) < size + 2 || !resp_ends_line(text + size), false)) {
        return NULL;
    }
    *out = bytes_of(text, size);
    return text + size + 2;
}

/* A number of at most 10 digits as Redis takes it: a sign, no leading zero, nothing else. */
bool resp_number(struct bytes text, int64_t *number);

/* ---- replies; `protocol` is 2 or 3 ---- */

void resp_put_simple(struct buffer *out, const char *text); /* no line breaks */
/* "OK", inline. */
static inline void resp_put_ok(struct buffer *out)
{
    uint8_t *at = buffer_reserve(out, 5);

    (void)store_u8(store_u32(at, '+' | 'O' << 8 | 'K' << 16 | (uint32_t)'\r' << 24), '\n');
    out->size += 5;
}
void resp_put_error(struct buffer *out, struct bytes text); /* line breaks become spaces */
void resp_put_integer(struct buffer *out, int64_t integer);
void resp_put_bulk(struct buffer *out, struct bytes bulk);
/* Likewise, inline: for one of 10 to 99 bytes, as many are. */
__attribute__((always_inline)) static inline void resp_put_bulk_now(struct buffer *out,
                                                                    struct bytes bulk)
{
    enum { HEAD = 5, END = 2 }; // "$64\r\n"
    const uint32_t size = (uint32_t)bulk.size;

    if (bulk.size - 10 >= 90) {
        resp_put_bulk(out, bulk);
        return;
    }
    uint8_t *at = buffer_reserve(out, HEAD + bulk.size + END);
    const uint32_t tens = size * 205 >> 11;

    (void)store_u8(
        store_u32(at,
                  '$' | ('0' + tens) << 8 | ('0' + size - tens * 10) << 16 | (uint32_t)'\r' << 24),
        '\n');
    bytes_copy_value(at + HEAD, bulk.data, bulk.size);
    (void)store_u16(at + HEAD + bulk.size, '\r' | '\n' << 8);
    out->size += HEAD + bulk.size + END;
}
void resp_put_text(struct buffer *out, const char *text); /* as a bulk */
void resp_put_nil(struct buffer *out, int protocol);
void resp_put_array(struct buffer *out, size_t count);             /* its items follow */
void resp_put_map(struct buffer *out, int protocol, size_t pairs); /* keys and values follow */

/* Begin a message that nobody asked for; its items follow. In RESP2 it looks like one of
 * SUBSCRIBE. */
void resp_put_push(struct buffer *out, int protocol, size_t count);

/* Write a value that an actor answered. An error text without a code of its own gets "ERR ". */
void resp_put_value(struct buffer *out, int protocol, const struct value *value);

#endif
