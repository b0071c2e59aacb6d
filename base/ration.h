/* SPDX-License-Identifier: Apache-2.0
 *
 * So many a second, and how many there were more: for log lines that a
 * misbehaving peer or actor could write without end. Pure. All zero is ready.
 */
#ifndef BASE_RATION_H
#define BASE_RATION_H

#include <stdbool.h>
#include <stdint.h>

struct ration {
    uint64_t since_us; /* of this second's first */
    uint32_t taken;
    uint32_t refused;
};

/* False: this second had `max` already. `refused`: when a second begins, how many the last one had
 * over that; else 0. */
bool ration_take(struct ration *r, uint64_t now_us, uint32_t max, uint32_t *refused);

#endif
