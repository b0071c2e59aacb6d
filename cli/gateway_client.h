/* SPDX-License-Identifier: Apache-2.0
 *
 * A client at the fleet's gateways, by packets: what `ringhold call` and others share. It is
 * libringhold-client over TCP, with where the gateways are and the token out of options, the
 * environment or the context.
 */
#ifndef CLI_GATEWAY_CLIENT_H
#define CLI_GATEWAY_CLIENT_H

#include "cli/query.h"

#include <ringhold_client.h>

struct gateway_where {
    char gateway[CONTEXT_VALUE_SIZE]; /* "HOST:PORT,…" */
    char token[CONTEXT_VALUE_SIZE];   /* a file */
    uint32_t deadline_ms;
};

/* The rows --gateway, --token and --deadline; sets the defaults. */
enum { GATEWAY_OPTIONS = 3 };
void gateway_where_options(struct gateway_where *o, struct option rows[GATEWAY_OPTIONS]);

/* Open a client that is idle yet: rhc_start() it. A body may have `body_size` bytes. NULL after
 * printing "ringhold COMMAND: …". rhc_tcp_free() it. */
struct rhc_tcp *gateway_client(const char *command, const struct query *q,
                               const struct gateway_where *o, size_t body_size,
                               rhc_on_event *on_event, void *context);

/* Wait for the gateway, at most `max_ms` (-1: as long as nothing is due), and do what is due:
 * unlike in rhc_tcp_poll(), nothing is done before the wait, so what the caller has seen is still
 * so. */
void gateway_wait(struct rhc_tcp *tcp, int max_ms);

/* Exit codes by how a request ended: 0 answered, 4 the actor answered with an error, 5 it did not
 * run, 6 it may have run. */
int gateway_exit_code(unsigned status);

/* Say in words how it ended, for people. */
const char *gateway_status_text(unsigned status);

#endif
