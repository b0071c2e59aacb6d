/* SPDX-License-Identifier: Apache-2.0
 *
 * A daemon's administration over HTTP: /metrics, /healthz, /readyz, /status; of
 * coordinators also the web page, /fleet, which it shows, and /actors. A thread of its own
 * (libmicrohttpd) that asks the daemon's loop for each page, so a slow or hostile client of it
 * costs the loop nothing.
 */
#ifndef DAEMON_HTTP_MHD_H
#define DAEMON_HTTP_MHD_H

#include "base/bytes.h"
#include "daemon/options.h"
#include "daemon/page_uv.h"
#include "wire/address.h"

struct http_options {
    char admin[ADDRESS_SIZE_MAX]; /* "HOST:PORT" or "unix:/PATH"; "" = none */
    char token[512];              /* a file; "" = none */
};

/* The rows --admin and --admin-token. */
struct option http_address_option(struct http_options *o);
struct option http_token_option(struct http_options *o);

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

enum http_told {
    HTTP_TOLD,
    HTTP_TOLD_MALFORMED, /* no question: the text says why */
    HTTP_TOLD_NOT,       /* it could not be had: likewise */
};

/* Data source of the web page and of /actors. */
struct http_fleet {
    void *context;
    /* Append it as JSON. `known` is the version of the ring that the page has, "" = none. False: it
     * could not be had, and the text says why. Called on the thread of HTTP, for a second at most.
     */
    bool (*put)(void *context, const char *known, struct buffer *out);
    /* Likewise, a page of who lives at a node. */
    enum http_told (*put_actors)(void *context, const struct http_actors *asked,
                                 struct buffer *out);
};

struct http;
/* Listen, and answer from a thread of its own. False after printing why not. Nothing to do is done:
 * *out is NULL then. `fleet`: serve the web page, which shows this; NULL = none. It and `pages` are
 * borrowed until http_close(). */
bool http_open(const struct http_options *o, const char *daemon, struct pages *pages,
               const struct http_fleet *fleet, struct http **out);
/* Read the file of the token again. False after printing what is wrong: the one it had goes on.
 * Takes NULL. */
bool http_reload(struct http *h, const struct http_options *o, const char *daemon);
/* Takes NULL. */
void http_close(struct http *h);

#endif
