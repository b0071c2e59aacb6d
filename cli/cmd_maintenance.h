/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold coordinators maintenance`.
 */
#ifndef CLI_CMD_MAINTENANCE_H
#define CLI_CMD_MAINTENANCE_H

#include "wire/control.h"

#include <stdint.h>

/* Microseconds for which the node of that row needs no coordinator, as it told last: until its
 * extended lease would be SOFT. 0 = it needs one: it is not live, or its lease is no longer than
 * the leader's own. */
uint64_t maintenance_alone_us(const Rh__AdminReply *reply, const Rh__NodeRow *n);

/* The words after "maintenance". Returns the exit code: 1 also if a live node has no lease for it.
 */
int coordinators_maintenance(int argc, char **argv);

#endif
