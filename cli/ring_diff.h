/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold ring --diff`: what the leader would move if a node came, went or had
 * another weight, and what that would take by what moves took lately.
 */
#ifndef CLI_RING_DIFF_H
#define CLI_RING_DIFF_H

#include "cli/query.h"

/* `what` is the word after --diff; q->arguments are what stands behind it. The exit code. */
int ring_diff(const struct query *q, const char *what, const char *role);

/* Print the plan of a reply, and what it would take. */
void ring_diff_print(const struct query *q, const Rh__AdminReply *reply);

#endif
