/* SPDX-License-Identifier: Apache-2.0
 *
 * SIGHUP: links read their certificates again. Without any it does nothing: who is told to
 * read again what he has not must not die of it. One a loop.
 */
#ifndef WIRE_RELOAD_UV_H
#define WIRE_RELOAD_UV_H

#include "wire/link.h"

#include <stdbool.h>
#include <uv.h>

struct reload {
    bool running; /* the handle below is open */
    uv_signal_t again;
};

/* From now on. `links` is borrowed until reload_stop(). */
void reload_start(struct reload *r, uv_loop_t *loop, struct links *links);
/* No more. */
void reload_stop(struct reload *r);

#endif
