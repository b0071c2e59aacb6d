/* SPDX-License-Identifier: Apache-2.0
 *
 * What `ringhold kick` and `ringhold trace` share: a gateway sends something to
 * one actor.
 */
#ifndef CLI_OPERATOR_REQUEST_H
#define CLI_OPERATOR_REQUEST_H

#include "cli/actor_word.h"
#include "cli/query.h"

/* Of the one actor that the arguments name. `what` lacks only the actor, and who asks. NULL after
 * printing why; admin_free(). */
Rh__AdminReply *operator_request_send(const struct query *q, const char *command,
                                      const Rh__AdminOperatorRequest *what);

/* Why it did not come to its actor, for people; NULL = it did. */
const char *operator_request_fault(const Rh__OperatorRequestAnswer *answer);

#endif
