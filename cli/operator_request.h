/* SPDX-License-Identifier: Apache-2.0
 *
 * What `ringhold kick` and `ringhold trace` share: a gateway sends something to
 * one actor.
 */
#ifndef CLI_OPERATOR_REQUEST_H
#define CLI_OPERATOR_REQUEST_H

#include "cli/actor_word.h"
#include "cli/query.h"

/* Send `what` to the one actor that the arguments name; it lacks only the actor, and who asks.
 * Returns what `tell` makes of the answer: an exit code; or 1 after printing why there is no
 * answer. */
int operator_request_run(const struct query *q, const char *command,
                         const Rh__AdminOperatorRequest *what,
                         int (*tell)(const struct query *q, const Rh__OperatorRequestAnswer *a));

/* Like operator_request_run(), but return the answer, which has `operator_request`; NULL after
 * printing why there is none. */
Rh__AdminReply *operator_request_send(const struct query *q, const char *command,
                                      const Rh__AdminOperatorRequest *what);

/* Say why the request did not reach its actor, for people; NULL = it did. */
const char *operator_request_fault(const Rh__OperatorRequestAnswer *answer);

#endif
