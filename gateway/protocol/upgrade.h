/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP request that begins a WebSocket (RFC 6455, 4), and its answer.
 *
 * Pure. A request is a GET of HTTP/1.1 of at most UPGRADE_SIZE_MAX bytes, without a
 * body. What isn't one is refused with a status, a reason and a text.
 */
#ifndef GATEWAY_PROTOCOL_UPGRADE_H
#define GATEWAY_PROTOCOL_UPGRADE_H

#include "base/bytes.h"

enum { UPGRADE_SIZE_MAX = 8192, UPGRADE_KEY_SIZE = 24, UPGRADE_ACCEPT_SIZE = 28 };

/* The protocol that a client may name, and is told if it did. */
#define UPGRADE_PROTOCOL "ringhold.v1"

enum upgrade_result {
    UPGRADE_GOOD,
    UPGRADE_MORE,        /* not whole yet */
    UPGRADE_BAD_REQUEST, /* 400: no HTTP/1.1, or a header that makes no sense */
    UPGRADE_FORBIDDEN,   /* 403: a page of another origin */
    UPGRADE_NOT_FOUND,   /* 404: another path */
    UPGRADE_METHOD,      /* 405: no GET */
    UPGRADE_TIMEOUT,     /* 408: it did not come in time; upgrade_parse() never says so */
    UPGRADE_REQUIRED,    /* 426: a GET, but not for a WebSocket of version 13 */
    UPGRADE_TOO_LARGE,   /* 431 */
    UPGRADE_FULL,        /* 503: too many connections; upgrade_parse() never says so */
};

struct upgrade_rules {
    const char *path;    /* that is asked for, without "?…" */
    const char *origins; /* "https://a.example,https://b.example"; "" = pages of any origin */
};

struct upgrade {
    size_t size;      /* of the request: what follows is the WebSocket's */
    struct bytes key; /* of UPGRADE_KEY_SIZE; borrowed from the input */
    bool named;       /* it asked for UPGRADE_PROTOCOL */
};

/* The request at the front of `in`. `scanned` is the caller's: 0 at first, then what the call
 * before left there. `out` is set if it is GOOD. */
enum upgrade_result upgrade_parse(struct bytes in, size_t *scanned,
                                  const struct upgrade_rules *rules, struct upgrade *out);

/* Append the answer to a good one. */
void upgrade_put_answer(struct buffer *out, const struct upgrade *upgrade);
/* Append the answer to one that is not: the connection is to be closed behind it. `retry_s`: when
 * it may try again, of FULL. */
void upgrade_put_refusal(struct buffer *out, enum upgrade_result why, uint32_t retry_s);

/* Compute Sec-WebSocket-Accept, which proves that the request was read as a WebSocket's
 * (upgrade_ssl.c). */
void upgrade_accept(struct bytes key, char accept[UPGRADE_ACCEPT_SIZE + 1]);

#endif
