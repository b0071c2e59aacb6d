/* SPDX-License-Identifier: Apache-2.0
 *
 * SIGHUP: what a process was started with is read again. First the configuration,
 * by who has one; if that is good the owner of the loop takes over what it can, and
 * reads certificates and keys again. Who has nothing to read must not die of it.
 */
#ifndef DAEMON_RELOAD_UV_H
#define DAEMON_RELOAD_UV_H

#include <stdbool.h>
#include <uv.h>

/* Source of a daemon's options, for a reload. */
struct reload_source {
    bool (*read)(void *context); /* on the loop; false: a fault, nothing changes. NULL = no one */
    void *context;
};

struct reload {
    bool running; /* the handle below is open */
    uv_signal_t again;
    struct reload_source source;
    void (*apply)(void *owner);
    void *owner;
};

/* From now on, until reload_stop(). */
void reload_start(struct reload *r, uv_loop_t *loop, struct reload_source source,
                  void (*apply)(void *owner), void *owner);
/* Stop catching the signal. */
void reload_stop(struct reload *r);

#endif
