/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the kernel's clocks: CLOCK_BOOTTIME for leases and time-outs,
 * CLOCK_REALTIME for people.
 */
#include "base/clock.h"

#include "base/assert.h"

#include <time.h>

#ifndef CLOCK_BOOTTIME
#define CLOCK_BOOTTIME 7
#endif

static uint64_t read_us(clockid_t id)
{
    struct timespec now = {0};

    ASSERT(clock_gettime(id, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

uint64_t clock_boottime_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

uint64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}
