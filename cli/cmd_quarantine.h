/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of `ringhold quarantine list`, which `ringhold status` shows too.
 */
#ifndef CLI_CMD_QUARANTINE_H
#define CLI_CMD_QUARANTINE_H

#include "cli/rows.h"
#include "wire/control.pb-c.h"

/* Rows of the actors in quarantine; with `suspects` also of those with strikes. */
void quarantine_rows(const Rh__AdminReply *reply, bool suspects, struct rows *r);

#endif
