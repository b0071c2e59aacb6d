/* SPDX-License-Identifier: Apache-2.0
 *
 * Who looks after a daemon from outside while it runs: HTTP for probes and
 * Prometheus, and systemd. Both ask its loop for pages, from threads of their own.
 */
#ifndef DAEMON_ATTEND_H
#define DAEMON_ATTEND_H

#include "daemon/http_mhd.h"
#include "daemon/supervisor.h"

struct attend {
    const char *daemon;  /* borrowed */
    struct pages *pages; /* owned; the daemon attaches its loop to them */
    struct http *http;   /* owned; NULL = none, as the next */
    struct supervisor *supervisor;
};

/* Begin. False after printing why not; attend_close() is due all the same. `fleet` as of
 * http_open(). */
bool attend_open(struct attend *a, const struct http_options *http, const char *daemon,
                 const struct http_fleet *fleet);
/* Read again what files say. False after printing what is wrong: nothing changed. */
bool attend_reload(struct attend *a, const struct http_options *http);
void attend_close(struct attend *a);

#endif
