/* SPDX-License-Identifier: Apache-2.0
 *
 * The watchdog: a thread of its own that sees to it that no task runs past the
 * hard end of the lease (PROTOCOL §4.1, hole 30), even when the loop is blocked
 * by that very task.
 *
 * It sleeps on a timer of CLOCK_BOOTTIME, which also counts while the machine
 * is suspended or the process stopped: then this is the first thing it does
 * when it wakes.
 */
#ifndef NODE_WATCHDOG_UV_H
#define NODE_WATCHDOG_UV_H

#include "base/bytes.h"
#include "base/err.h"

#include <ringhold.h>
#include <stddef.h>

struct watchdog;

/* NULL = no thread or timer to be had; one line about it was printed. */
struct watchdog *watchdog_new(enum rh_on_lease_overrun on_overrun);
/* Takes NULL. */
void watchdog_free(struct watchdog *w);
/* No task may run from `end_us` on (UINT64_MAX = any time); `tasks` have been started and not
 * ended. Cheap when nothing changed. On the loop, like the two below. */
void watchdog_set(struct watchdog *w, uint64_t end_us, size_t tasks);
/* The loop enters an actor's code, for the message; and leaves it. */
void watchdog_enter(struct watchdog *w, uint16_t kind, struct bytes id);
void watchdog_leave(struct watchdog *w);
/* Times that a task ran past the end and was left to go on. */
uint64_t watchdog_overruns(struct watchdog *w);

#endif
