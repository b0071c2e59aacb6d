/* SPDX-License-Identifier: Apache-2.0
 *
 * What the HTTP server's options come to: its tokens, and where it listens.
 */
#ifndef DAEMON_HTTP_OPTIONS_H
#define DAEMON_HTTP_OPTIONS_H

#include "daemon/bearer.h"
#include "daemon/http_mhd.h"

enum { HTTP_UNIX_PATH_SIZE = 108 }; /* of sockaddr_un, the NUL included */

/* size 0 = there is none. */
struct http_tokens {
    struct bearer reader;   /* of --admin-token */
    struct bearer operator; /* of --operator-token */
};

/* Read the files. False after printing what is wrong. */
bool http_tokens_load(struct http_tokens *t, const struct http_options *o, const char *daemon);
void http_tokens_wipe(struct http_tokens *t);

/* Path of the socket; NULL = it is no UNIX socket. Borrows `o`. */
const char *http_unix_path(const struct http_options *o);

#endif
