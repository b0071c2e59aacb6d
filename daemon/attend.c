/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and closes what serves a daemon from outside: HTTP, and systemd's
 * socket.
 */
#include "daemon/attend.h"

bool attend_open(struct attend *a, const struct http_options *http, const char *daemon,
                 const struct http_fleet *fleet)
{
    *a = (struct attend){.daemon = daemon, .pages = pages_new()};
    return http_open(http, daemon, a->pages, fleet, &a->http) &&
           supervisor_open(daemon, a->pages, &a->supervisor);
}

bool attend_reload(struct attend *a, const struct http_options *http)
{
    return http_reload(a->http, http, a->daemon);
}

void attend_close(struct attend *a)
{
    supervisor_close(a->supervisor);
    http_close(a->http);
    pages_free(a->pages);
}
