/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/reload_uv.h"

#include <signal.h>

static void on_again(uv_signal_t *handle, int number)
{
    (void)number;
    links_reload(handle->data);
}

void reload_start(struct reload *r, uv_loop_t *loop, struct links *links)
{
    (void)uv_signal_init(loop, &r->again);
    r->again.data = links;
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
