/* SPDX-License-Identifier: Apache-2.0
 *
 * What a failed ASSERT does: it logs the place, prints the last log lines, and
 * aborts the process.
 */
#include "base/assert.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

void assert_failed(const char *what, const char *file, int line, const char *func)
{
    (void)fprintf(stderr, "%s:%d: %s: assertion failed: %s\n", file, line, func, what);
    log_dump_recent(stderr);
    abort();
}
