/* SPDX-License-Identifier: Apache-2.0
 *
 * Catches SIGHUP on a loop and calls what reads the configuration again.
 */
#include "daemon/reload_uv.h"

#include <signal.h>

static void on_again(uv_signal_t *handle, int number)
{
    const struct reload *r = handle->data;

    (void)number;
    if (r->source.read == NULL || r->source.read(r->source.context)) {
        r->apply(r->owner);
    }
}

void reload_start(struct reload *r, uv_loop_t *loop, struct reload_source source,
                  void (*apply)(void *owner), void *owner)
{
    r->source = source;
    r->apply = apply;
    r->owner = owner;
    (void)uv_signal_init(loop, &r->again);
    r->again.data = r;
    (void)uv_signal_start(&r->again, on_again, SIGHUP);
    r->running = true;
}

void reload_stop(struct reload *r)
{
    if (r->running) {
        r->running = false;
        uv_close((uv_handle_t *)&r->again, NULL);
    }
}
