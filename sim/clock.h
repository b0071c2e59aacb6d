/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine's CLOCK_BOOTTIME as its processes read it: it started at some
 * moment of its own, and runs a little fast or slow all its life. Only a
 * hypervisor stops it.
 */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>

struct sim_clock {
    uint64_t from_us;  /* virtual time … */
    uint64_t shows_us; /* … at which it showed this */
    int32_t rate_ppm;  /* it gains so much in a million */
};

uint64_t sim_clock_read(const struct sim_clock *c, uint64_t now_us);
/* The virtual time at which it shows `shows_us`, or a little later. Not in the past of `now_us`. */
uint64_t sim_clock_when(const struct sim_clock *c, uint64_t shows_us, uint64_t now_us);
/* The clock stood still for `time_us` until now. */
void sim_clock_stood(struct sim_clock *c, uint64_t now_us, uint64_t time_us);

#endif
