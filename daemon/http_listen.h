/* SPDX-License-Identifier: Apache-2.0
 *
 * The socket of a daemon's administration.
 */
#ifndef DAEMON_HTTP_LISTEN_H
#define DAEMON_HTTP_LISTEN_H

/* Open a listening socket at "HOST:PORT", which is the caller's; below 0: errno says why not. */
int http_listen_tcp(const char *text);

/* … at a path, which the caller unlinks. One that was left by a process that died is no obstacle;
 * one that lives is. */
int http_listen_unix(const char *path);

#endif
