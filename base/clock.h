/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks, for shells only: cores get time in their events.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_BOOTTIME in microseconds: goes on in suspend, never jumps (hole 28). */
uint64_t clock_boottime_us(void);

/* CLOCK_REALTIME in microseconds since 1970: for people to read, and for what other machines sign
 * with a date. Never for the protocol's times. */
uint64_t clock_wall_us(void);

#endif
