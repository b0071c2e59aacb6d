/* SPDX-License-Identifier: Apache-2.0
 *
 * What `ringhold kick` and `ringhold trace` share: a gateway sends something to
 * one actor.
 */
#ifndef CLI_ERRAND_H
#define CLI_ERRAND_H

#include "cli/actor_word.h"
#include "cli/query.h"

/* Of the one actor that the arguments name. `what` lacks only the actor, and who asks. NULL after
 * printing why; admin_free(). */
Rh__AdminReply *errand_send(const struct query *q, const char *command,
                            const Rh__AdminErrand *what);

/* Why it did not come to its actor, for people; NULL = it did. */
const char *errand_fault(const Rh__ErrandAnswer *answer);

#endif
