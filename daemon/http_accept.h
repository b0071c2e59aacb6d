/* SPDX-License-Identifier: Apache-2.0
 *
 * The header Accept of who scrapes /metrics: OpenMetrics, or the older text of Prometheus? Pure.
 */
#ifndef DAEMON_HTTP_ACCEPT_H
#define DAEMON_HTTP_ACCEPT_H

#include <stdbool.h>

/* Return true if OpenMetrics (application/openmetrics-text) is asked for by name, and text/plain is
 * not wanted more. NULL: there is no such header. What is malformed in it is passed over. */
bool http_accept_open(const char *accept);

#endif
