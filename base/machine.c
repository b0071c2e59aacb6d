/* SPDX-License-Identifier: Apache-2.0
 *
 * What machine_enter() does when a step is not in the table.
 */
#include "base/machine.h"

#include <stdio.h>
#include <stdlib.h>

void (*machine_trace)(const struct machine *m, unsigned from, unsigned to);

void machine_refuse(const struct machine *m, unsigned from, unsigned to)
{
    (void)fprintf(stderr,
                  "ringhold: %s must not go from %s to %s\n",
                  m->name,
                  m->state[from].name,
                  m->state[to].name);
    abort();
}
