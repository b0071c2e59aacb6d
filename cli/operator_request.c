/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends an operator's request to one actor by way of a gateway, and words what
 * went wrong.
 */
#include "cli/operator_request.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_COMES_MS = 500 /* that the answer of a gateway has to come here */ };

Rh__AdminReply *operator_request_send(const struct query *q, const char *command,
                                      const Rh__AdminOperatorRequest *what)
{
    Rh__AdminOperatorRequest whole = *what;
    Rh__Actor actor = RH__ACTOR__INIT;
    uint8_t id[ACTOR_ID_MAX];

    if (!actor_read_short(q, command, q->arguments[0], &actor, id)) {
        return NULL;
    }
    whole.actor = &actor;
    whole.by = query_who();
    whole.timeout_ms = q->timeout_ms > 2 * ANSWER_COMES_MS ? q->timeout_ms - ANSWER_COMES_MS
                                                           : q->timeout_ms / 2 + 1;
    Rh__AdminReply *reply = query_ask(q, &whole.base);
    if (reply != NULL && reply->operator_request == NULL) {
        (void)fprintf(stderr, "ringhold %s: the leader's answer can't be decoded\n", command);
        admin_free(reply);
        return NULL;
    }
    return reply;
}

int operator_request_run(const struct query *q, const char *command,
                         const Rh__AdminOperatorRequest *what,
                         int (*tell)(const struct query *q, const Rh__OperatorRequestAnswer *a))
{
    Rh__AdminReply *reply = operator_request_send(q, command, what);
    const int result = reply == NULL ? 1 : tell(q, reply->operator_request);

    admin_free(reply);
    return result;
}

const char *operator_request_fault(const Rh__OperatorRequestAnswer *answer)
{
    static const struct {
        const char *outcome;
        const char *text;
    } faults[] = {
        {"nobody", "the actor is not live"},
        {"quarantined", "the actor is in quarantine: it killed its node's process repeatedly"},
        {"timeout",
         "no answer in time: the actor is busy, or its vnode moves (`ringhold top`, `ringhold txn "
         "list`)"},
        {"unknown", "the actor's node was lost before it answered"},
        {"rejected",
         "the request could not be delivered in time: the actor's vnode moves, or has no owner "
         "yet"},
        {"overloaded", "the actor's node has no room for more requests"},
        {"busy", "whom it was sent to has too many of these requests in progress"},
        {"malformed",
         "whom it was sent to does not understand the request: check whether it is an older "
         "version"},
        {"error", "the actor's node answered with an error: check whether it is an older version"},
    };

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        if (strcmp(answer->outcome, faults[i].outcome) == 0) {
            return faults[i].text;
        }
    }
    return NULL;
}
