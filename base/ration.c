/* SPDX-License-Identifier: Apache-2.0
 *
 * A budget of log lines a second, with a count of those left out.
 */
#include "base/ration.h"

enum { SECOND_US = 1000000 };

bool ration_take(struct ration *r, uint64_t now_us, uint32_t max, uint32_t *refused)
{
    *refused = 0;
    if (r->taken == 0 || now_us < r->since_us || now_us - r->since_us >= SECOND_US) {
        *refused = r->refused;
        *r = (struct ration){.since_us = now_us};
    }
    if (r->taken == max) {
        r->refused++;
        return false;
    }
    r->taken++;
    return true;
}
