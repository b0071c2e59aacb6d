/* SPDX-License-Identifier: Apache-2.0
 *
 * What daemons share before they start: where they may listen, how they log.
 */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include "daemon/options.h"

#include <stdbool.h>

/* True if a daemon may listen at the address that the key has: beyond loopback only if it is
 * encrypted and asks who comes (`guarded`), or with --insecure. False after printing why. */
bool listen_allowed(const char *daemon, const char *key, const char *address, bool guarded);

/* The row --log-level, which SIGHUP takes over. */
struct option log_level_option(char *level, size_t size);
/* True if it is a log level; false after printing why not. */
bool log_level_check(const char *daemon, const char *level);

#endif
