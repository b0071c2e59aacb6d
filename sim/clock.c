/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine's clock that runs at its own rate.
 */
#include "sim/clock.h"

#include "base/assert.h"

enum { MILLION = 1000000 };

uint64_t sim_clock_read(const struct sim_clock *c, uint64_t now_us)
{
    ASSERT(now_us >= c->from_us);
    const uint64_t gone_us = now_us - c->from_us;

    return c->shows_us + gone_us * (uint64_t)(MILLION + c->rate_ppm) / MILLION;
}

uint64_t sim_clock_when(const struct sim_clock *c, uint64_t shows_us, uint64_t now_us)
{
    const uint64_t shown_us = sim_clock_read(c, now_us);

    return shows_us <= shown_us
               ? now_us
               : now_us + (shows_us - shown_us) * MILLION / (uint64_t)(MILLION + c->rate_ppm) + 2;
}

void sim_clock_stood(struct sim_clock *c, uint64_t now_us, uint64_t time_us)
{
    c->shows_us = sim_clock_read(c, now_us - time_us);
    c->from_us = now_us;
}
