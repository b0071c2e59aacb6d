/* SPDX-License-Identifier: Apache-2.0
 *
 * Which version each process of a fleet is of, for who shows it.
 */
#ifndef CLI_BUILDS_H
#define CLI_BUILDS_H

#include "cli/rows.h"
#include "wire/control.pb-c.h"

/* A row for each process that the leader tells of; to be rows_fini()d. */
void builds_rows(const Rh__AdminReply *reply, struct rows *r);
/* True if the processes are not all of one version. */
bool builds_mixed(const Rh__AdminReply *reply);

#endif
