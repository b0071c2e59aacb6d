/* SPDX-License-Identifier: Apache-2.0
 *
 * systemd, where it started this daemon (Type=notify): it is told when the daemon
 * serves, what it does, and, as long as the daemon's loop turns, that it lives.
 * A thread of its own asks the loop, as HTTP's does; a loop that hangs is not
 * spoken for, so WatchdogSec= ends it.
 *
 * The protocol is that of sd_notify(3), which says that others may speak it.
 */
#ifndef DAEMON_SUPERVISOR_H
#define DAEMON_SUPERVISOR_H

#include "daemon/page_uv.h"

struct supervisor;

/* Begin, if the environment has NOTIFY_SOCKET; else *out is NULL. False after printing why not.
 * `pages` is borrowed until supervisor_close(). Before other threads read the environment. */
bool supervisor_open(const char *daemon, struct pages *pages, struct supervisor **out);
/* Says that the daemon has stopped. Takes NULL. */
void supervisor_close(struct supervisor *s);

#endif
