/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 for back ends: requests as they come, answers, and problems (RFC 9110, 9112, 9457).
 *
 * Pure, and strict: what two readers could take for two different requests is refused, and the
 * connection ends behind it. That is two lengths, a length beside a transfer coding, a line that
 * goes on with the one before, a line that ends with LF alone, and a control character in a header.
 *
 *     HEAD    -the empty line-> BODY, told once as HTTP_HEADED if bytes of the body are missing
 *     BODY    -its last byte, or its last chunk and trailers-> HEAD, HTTP_WHOLE
 *     any     -what makes no sense, or is over a limit-> HTTP_REFUSED: read no further
 *
 * The bytes of a request stay in the caller's buffer until it is whole; each is looked at once, and
 * a head that had to wait for its body twice.
 */
#ifndef GATEWAY_PROTOCOL_HTTP_H
#define GATEWAY_PROTOCOL_HTTP_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HTTP_HEAD_MAX = 8192,                    /* bytes of a request's line and headers */
    HTTP_HEADERS_MAX = 64,                   /* lines of them */
    HTTP_CONTENT_MAX = 1024 * 1024,          /* bytes of a body, as of any request to an actor */
    HTTP_CHUNK_LINE_MAX = 256,               /* of a chunk's size with what stands behind it */
    HTTP_TRAILERS_MAX = 4096,                /* bytes behind the last chunk */
    HTTP_CHUNKED_MAX = 2 * HTTP_CONTENT_MAX, /* bytes of a chunked body with its sizes */
};

/* Why a request is not run: its status, its word for programs and metrics, the fleet's name for
 * such errors, and a text. Status 0: the connection ends without a word. */
/* clang-format off */
#define HTTP_REFUSALS(X)                                                                            \
    X(BAD_LINE, 400, "bad_request_line", "BAD_REQUEST", "The request's first line is not one of HTTP/1.1.") \
    X(BAD_HEADER, 400, "bad_header", "BAD_REQUEST", "A header is not valid, is there twice, or its line does not end with CR LF.") \
    X(BAD_HOST, 400, "bad_host", "BAD_REQUEST", "A request of HTTP/1.1 has exactly one Host header.") \
    X(BAD_LENGTH, 400, "bad_length", "BAD_REQUEST", "The length of the body is not clear: one Content-Length, or Transfer-Encoding: chunked, not both.") \
    X(BAD_CHUNK, 400, "bad_chunk", "BAD_REQUEST", "The chunks of the body are not valid.")          \
    X(BAD_ACTOR, 400, "bad_actor", "BAD_REQUEST", "The path does not name an actor: KIND is a number from 0 to 65535, ID has 1 to 255 bytes, with %XX.") \
    X(BAD_QUERY, 400, "bad_query", "BAD_REQUEST", "The query is not valid: mode=call, tell or read, deadline=500ms or 2s.") \
    X(BAD_KEY, 400, "bad_key", "BAD_REQUEST", "Idempotency-Key has 1 to 255 visible characters; Ringhold-Again is a number and needs it.") \
    X(BAD_EVENT_ID, 400, "bad_event_id", "BAD_REQUEST", "Last-Event-ID is not one of this service.") \
    X(NO_TOKEN, 401, "no_token", "UNAUTHORIZED", "This gateway asks for a token: Authorization: Bearer TOKEN.") \
    X(TOKEN_MALFORMED, 401, "token_malformed", "UNAUTHORIZED", "The token is not one.")             \
    X(TOKEN_UNKNOWN_KEY, 401, "token_unknown_key", "UNAUTHORIZED", "The token is signed with a secret that this gateway does not have.") \
    X(TOKEN_FORGED, 401, "token_forged", "UNAUTHORIZED", "The token is not signed with the secret that it names.") \
    X(TOKEN_FOREIGN, 401, "token_foreign", "UNAUTHORIZED", "The token is for another cluster.")     \
    X(TOKEN_EXPIRED, 401, "token_expired", "UNAUTHORIZED", "The token has expired.")                \
    X(BROWSER, 403, "browser", "UNAUTHORIZED", "Web pages may not use this interface: they have the WebSocket of --ws.") \
    X(OTHER_ENTITY, 403, "other_entity", "UNAUTHORIZED", "The token is for another entity.")        \
    X(NOT_FOUND, 404, "not_found", "BAD_REQUEST", "There is nothing at this path: see /v1/actors/KIND/ID.") \
    X(METHOD, 405, "method", "BAD_REQUEST", "This path does not take that method.")                 \
    X(TIMEOUT, 408, "timeout", "BAD_REQUEST", "The request was not complete in time.")              \
    X(KEY_IN_USE, 409, "key_in_use", "OVERLOADED", "A request with this Idempotency-Key is under way on another connection.") \
    X(NO_SESSION, 409, "no_session", "REJECTED", "The actor takes no session of this client.")      \
    X(SESSION_GONE, 410, "session_gone", "REJECTED", "There is nothing to resume: the session ended, another client is bound, or the actor was lost.") \
    X(BODY_TOO_LARGE, 413, "body_too_large", "BAD_REQUEST", "The body is over 1 MiB.")              \
    X(CONTENT_CODING, 415, "content_coding", "BAD_REQUEST", "The body is passed on as it is: no Content-Encoding is taken.") \
    X(EXPECTATION, 417, "expectation", "BAD_REQUEST", "Expect: 100-continue is the only expectation that is met.") \
    X(RATE, 429, "rate", "RATE_LIMITED", "This connection sends more requests a second than it may.") \
    X(HEAD_TOO_LARGE, 431, "head_too_large", "BAD_REQUEST", "The request's line and headers are over 8 KiB or 64 lines.") \
    X(TRANSFER_CODING, 501, "transfer_coding", "BAD_REQUEST", "Transfer-Encoding: chunked is the only transfer coding that is taken.") \
    X(NO_RING, 503, "no_ring", "MOVING", "The gateway knows no ring yet.")                          \
    X(NO_MEMORY, 503, "no_memory", "OVERLOADED", "There is no memory for a request of this size now.") \
    X(STOPPING, 503, "stopping", "MOVING", "This gateway is stopping: ask another one.")            \
    X(SHARE, 503, "entity_share", "OVERLOADED", "This entity has used its share of connections.")   \
    X(TURNED_AWAY, 503, "turned_away", "OVERLOADED", "Too many connections.")                       \
    X(VERSION, 505, "version", "BAD_REQUEST", "Only HTTP/1.1 and HTTP/1.0 are spoken here.")        \
    X(IDLE, 0, "idle", "", "No request came for too long.")                                         \
    X(BEHIND_EVENTS, 0, "behind_events", "", "Bytes came behind the request for events.")
/* clang-format on */

#define HTTP_REFUSAL(name, status, word, code, text) HTTP_##name,
enum http_refusal { HTTP_REFUSALS(HTTP_REFUSAL) HTTP_REFUSAL_COUNT };
#undef HTTP_REFUSAL

struct http_why {
    unsigned status;
    const char *word; /* "bad_header" */
    const char *code; /* "BAD_REQUEST" */
    const char *text;
};
const struct http_why *http_why(enum http_refusal refusal);

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_OPTIONS, HTTP_OTHER };

/* A request. All bytes are borrowed from the input, or from the buffer for chunks; a header that is
 * not there has the data NULL. */
struct api_request {
    enum http_method method;
    struct bytes path;  /* of the target, not decoded */
    struct bytes query; /* behind its '?' */
    bool last;          /* the connection is to end behind its answer */
    bool expects;       /* it waits for "100 Continue" before it sends its body */
    bool browser;       /* a web page asks */
    bool coded;         /* its body has a content coding */
    bool chunked;
    uint64_t body_size; /* by Content-Length */
    size_t head_size;
    size_t size; /* of all of it: what follows is the next one */
    struct bytes body;
    struct bytes authorization;
    struct bytes idempotency_key;
    struct bytes again; /* Ringhold-Again */
    struct bytes last_event_id;
    struct bytes traceparent; /* W3C trace context, as it came; empty if there are two of it */
};

enum http_step {
    HTTP_MORE,
    HTTP_HEADED, /* all but `body` and `size` is known; once, and only if some of it is missing */
    HTTP_WHOLE,
    HTTP_REFUSED,
};

/* All zero before the first request. */
struct http_reader {
    size_t scanned;   /* of the head */
    size_t head_size; /* 0 = it is not whole yet */
    size_t length;    /* of the body … */
    bool chunked;     /* … unless it comes in chunks … */
    bool body;        /* … which are all there */
    struct {
        size_t at;   /* what was read of it, behind the head */
        size_t left; /* of the chunk that is coming, its CR LF included; 0 = its size */
        size_t size; /* of the chunks' bytes */
        bool last;   /* the last came: what follows are trailers */
        size_t trailers;
    } chunks;
};

/* Read the request at the front of `in`, which begins where that request does: at each call with
 * what came since behind it. `chunked` gets the body of one that comes in chunks. REFUSED: `why`
 * has the reason, and the reader is not to be used again. */
enum http_step http_read(struct http_reader *r, struct bytes in, struct buffer *chunked,
                         struct api_request *out, enum http_refusal *why);

/* What an answer's head says, beside its status. */
struct http_head {
    const char *type;  /* NULL = there is no body, nor a length */
    size_t body_size;  /* that is told; the caller appends so many, or none for HEAD */
    const char *allow; /* "GET, HEAD"; NULL = not said */
    uint32_t retry_s;  /* 0 = not said */
    uint64_t ring;     /* Ringhold-Ring: the version of the ring; 0 = not said */
    bool challenge;    /* WWW-Authenticate: Bearer */
    bool bodiless;     /* for the caller: the body is left out, as HEAD has it */
    bool last;         /* Connection: close */
    bool stream;       /* of events: it has a type, and its end is the connection's */
};
/* Append the head of an answer, with the empty line. */
void http_put_head(struct buffer *out, unsigned status, const struct http_head *head);

/* A body of application/problem+json. */
struct http_problem {
    unsigned status;
    const char *word; /* of its type */
    const char *code; /* the fleet's name */
    struct bytes detail;
    bool may_have_run;
};
void http_put_problem(struct buffer *out, const struct http_problem *p);

/* Append a text in quotes, as JSON: what is no plain UTF-8 becomes '?'; at most 1 KiB of it. */
void http_put_json_text(struct buffer *out, struct bytes text);

#endif
