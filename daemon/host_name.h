/* SPDX-License-Identifier: Apache-2.0
 *
 * Which Host a request for the figures of a daemon on loopback may name.
 */
#ifndef DAEMON_HOST_NAME_H
#define DAEMON_HOST_NAME_H

#include <stdbool.h>

/* A page of the web whose name was made to lead here (DNS rebinding) names itself, and a browser
 * lets it read what it gets. So only these will do: the number of an address, localhost, and none,
 * as no browser has it. The header's value, with or without a port; NULL = there is none. */
bool host_is_local(const char *host);

#endif
