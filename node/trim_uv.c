/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of many actors that are gone goes back to the system. What lies below memory in use the C
 * library keeps otherwise, however much it is.
 *
 * On a worker thread. Others that allocate wait for it, a tenth of a millisecond for each MiB: so
 * it is done only when an eighth of all is gone, and never for little.
 */
#include "node/shell_uv.h"

#include "base/assert.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { AGAIN_US = 1000000, LEAST = 10000 };

static void on_work(uv_work_t *work)
{
    (void)work;
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

static void on_trimmed(uv_work_t *work, int status)
{
    (void)status;
    CONTAINER_OF(work, struct trim, work)->busy = false;
}

void trim_tick(struct shell *s)
{
    struct trim *t = &s->trim;
    struct host_stats host;

    host_stats(s->host, &host);
    const uint64_t held = host.live + host.actors;
    t->most = held > t->most ? held : t->most; // also of those that live for less than AGAIN_US
    if (t->busy || s->now_us - t->trimmed_us < AGAIN_US) {
        return;
    }
    if (t->most - held >= LEAST && t->most - held >= t->most / 8) {
        t->most = held;
        t->trimmed_us = s->now_us;
        t->busy = true;
        ASSERT(uv_queue_work(&s->loop, &t->work, on_work, on_trimmed) == 0);
    }
}
