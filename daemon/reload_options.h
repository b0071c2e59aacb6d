/* SPDX-License-Identifier: Apache-2.0
 *
 * SIGHUP: a daemon reads its options again as it did when it started, and compares
 * them key by key with what it runs with.
 *
 *     a fault anywhere          one line says where, nothing changes
 *     a key that reloads        changes; `info config changed`
 *     any other key             stays until a restart; `warn config needs_restart`
 *
 * What it would run with then must go together too: a value that is fine beside
 * another that needs a restart, and not beside the present one, is such a fault.
 */
#ifndef DAEMON_RELOAD_OPTIONS_H
#define DAEMON_RELOAD_OPTIONS_H

#include "base/metrics.h"
#include "daemon/reload_uv.h"
#include "daemon/services.h"
#include "daemon/settings.h"

struct reload_options {
    struct settings *running; /* borrowed, as the rest */
    int argc;
    char **argv;
    struct daemon_services *services;
    const struct http_options *http;
};

/* The log's level is what the settings say. From now on `r` is what the source of reload_start()
 * reads again; on the thread of the daemon's loop. */
struct reload_source reload_begin(struct reload_options *r);

/* Write how the last reload went; any thread. */
void reload_metrics(struct metrics *m);

#endif
