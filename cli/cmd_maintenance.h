/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold coordinators maintenance`.
 */
#ifndef CLI_CMD_MAINTENANCE_H
#define CLI_CMD_MAINTENANCE_H

/* The words after "maintenance". Returns the exit code: 1 also if a live node has no lease for it.
 */
int coordinators_maintenance(int argc, char **argv);

#endif
