/* SPDX-License-Identifier: Apache-2.0
 *
 * Who looks after a daemon from outside while it runs: HTTP for probes and
 * Prometheus, and systemd. Both ask its loop for pages, from threads of their own.
 */
#ifndef DAEMON_SERVICES_H
#define DAEMON_SERVICES_H

#include "daemon/http_mhd.h"
#include "daemon/supervisor.h"

struct daemon_services {
    const char *daemon;  /* borrowed */
    struct pages *pages; /* owned; the daemon attaches its loop to them */
    struct http *http;   /* owned; NULL = none, as the next */
    struct supervisor *supervisor;
};

/* Begin. False after printing why not; daemon_services_close() is due all the same. `fleet` as of
 * http_open(). */
bool daemon_services_open(struct daemon_services *a, const struct http_options *http,
                          const char *daemon, const struct http_fleet *fleet);
/* Read again what files say. False after printing what is wrong: nothing changed. */
bool daemon_services_reload(struct daemon_services *a, const struct http_options *http);
void daemon_services_close(struct daemon_services *a);

#endif
