/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that stood still (SIGSTOP, a debugger, a machine that slept): what becomes of its links
 * when it goes on. Its timers run before it reads, so what lies in its sockets is judged first.
 * docs/decisions/053.
 */
#ifndef LINK_STALL_H
#define LINK_STALL_H

#include "base/mutant.h"

#include <stdbool.h>
#include <stdint.h>

/* True if, after a gap in this process's clock, what it has not read yet is older than a request
 * may become on its way. */
static inline bool stall_is_stale(uint64_t gap_us, uint64_t silence_us)
{
    return gap_us >= silence_us && !mutant(M_KEEPLINKS);
}

#endif
