/* SPDX-License-Identifier: Apache-2.0
 *
 * A daemon's administration over HTTP: /metrics, /healthz, /readyz, /status; of
 * coordinators also the web page, what it shows (/fleet, /where, /hot, /actors), and what operators
 * may do by it. A thread of its own (libmicrohttpd) that asks the daemon's loop for each page, so a
 * slow or hostile client of it costs the loop nothing.
 */
#ifndef DAEMON_HTTP_MHD_H
#define DAEMON_HTTP_MHD_H

#include "base/bytes.h"
#include "daemon/http_form.h"
#include "daemon/options.h"
#include "daemon/page_uv.h"
#include "wire/address.h"

struct http_options {
    char admin[ADDRESS_SIZE_MAX]; /* "HOST:PORT" or "unix:/PATH"; "" = none */
    char token[512];              /* a file; "" = none */
    char operator_token[512];     /* likewise, of coordinators alone */
};

/* The rows --admin and --admin-token; and --operator-token, which coordinators have. */
struct option http_address_option(struct http_options *o);
struct option http_token_option(struct http_options *o);
struct option http_operator_option(struct http_options *o);

/* False after printing why `daemon` must not start with them: no address, one beyond loopback
 * without a token, or a file that is none. */
bool http_check(const struct http_options *o, const char *daemon);

/* Which page of a node's actors is asked for: the words of the URL, NULL = not there. */
struct http_actors {
    const char *node;
    const char *kind;
    const char *prefix;
    const char *cursor;
    const char *limit;
};

/* What a page of the fleet is to have. */
struct http_look {
    const char *known;   /* version of the ring that the page has, "" = none */
    const char *trend;   /* the words of the URL: number of the first point, NULL = none */
    const char *changes; /* whether this connection may change the fleet: "yes", "no" (there is no
                            --operator-token), "elsewhere" (it does not come from this machine) */
};

/* What an operator may do by the page: X(deed, path). Each is a POST with the operator's token. */
#define HTTP_DEEDS(X)                          \
    X(DRAIN, "/drain")   /* node */            \
    X(CANCEL, "/cancel") /* node: its drain */ \
    X(PIN, "/pin")       /* id, node */        \
    X(UNPIN, "/unpin")   /* id */              \
    X(VALUES, "/values") /* id: shows what a durable actor has; nothing changes */

#define X(name, path) HTTP_##name,
enum http_deed { HTTP_DEEDS(X) HTTP_DEED_COUNT };
#undef X

enum http_told {
    HTTP_TOLD,
    HTTP_TOLD_MALFORMED, /* no question: the text says why */
    HTTP_TOLD_REFUSED,   /* the leader does not do that: likewise */
    HTTP_TOLD_NOT,       /* it could not be had: likewise */
};

/* Data source of the web page and of /actors, and who does what operators want. All are called on
 * the thread of HTTP, take some seconds at most, and append JSON. */
struct http_fleet {
    void *context;
    /* False: it could not be had, and the text says why. */
    bool (*put)(void *context, const struct http_look *look, struct buffer *out);
    /* A page of who lives at a node. */
    enum http_told (*put_actors)(void *context, const struct http_actors *asked,
                                 struct buffer *out);
    /* Where the actor lives; `id` is KIND/ID or an ID of kind 0, NULL = not there. */
    enum http_told (*put_where)(void *context, const char *id, struct buffer *out);
    /* Which actors are slow or busy. */
    enum http_told (*put_hot)(void *context, struct buffer *out);
    /* Do it. `from` is the address of who asks. */
    enum http_told (*operate)(void *context, enum http_deed deed, const struct http_fields *fields,
                              const char *from, struct buffer *out);
};

struct http;
/* Listen, and answer from a thread of its own. False after printing why not. Nothing to do is done:
 * *out is NULL then. `fleet`: serve the web page, which shows this; NULL = none. It and `pages` are
 * borrowed until http_close(). */
bool http_open(const struct http_options *o, const char *daemon, struct pages *pages,
               const struct http_fleet *fleet, struct http **out);
/* Read the files of the tokens again. False after printing what is wrong: those it had go on.
 * Takes NULL. */
bool http_reload(struct http *h, const struct http_options *o, const char *daemon);
/* Takes NULL. */
void http_close(struct http *h);

#endif
