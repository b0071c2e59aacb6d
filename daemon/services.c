/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and closes what serves a daemon from outside: HTTP, and systemd's
 * socket.
 */
#include "daemon/services.h"

bool daemon_services_open(struct daemon_services *a, const struct http_options *http,
                          const char *daemon, const struct http_fleet *fleet)
{
    *a = (struct daemon_services){.daemon = daemon, .pages = pages_new()};
    return http_open(http, daemon, a->pages, fleet, &a->http) &&
           supervisor_open(daemon, a->pages, &a->supervisor);
}

bool daemon_services_reload(struct daemon_services *a, const struct http_options *http)
{
    return http_reload(a->http, http, a->daemon);
}

void daemon_services_close(struct daemon_services *a)
{
    supervisor_close(a->supervisor);
    http_close(a->http);
    pages_free(a->pages);
}
