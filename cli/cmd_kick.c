/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold kick`: has an actor end the session of its client.
 */
#include "cli/commands.h"
#include "cli/operator_request.h"

#include <stdio.h>
#include <string.h>

enum { CODE_GAME = 1000, TEXT_SIZE = 256 };

/* Who is bound was told; 1 if nobody is. */
static int tell(const struct query *q, const Rh__OperatorRequestAnswer *answer)
{
    const char *fault = operator_request_fault(answer);
    const bool asleep = strcmp(answer->outcome, "nobody") == 0;
    const bool kicked = fault == NULL && answer->body.len == 1 && answer->body.data[0] == 1;

    if (q->json && (fault == NULL || asleep)) {
        (void)printf("{\"kicked\":%s}\n", kicked ? "true" : "false");
    } else if (kicked) {
        (void)printf("kicked\n");
        query_next(
            q, "the player may log in again; `ringhold quarantine add` keeps the actor from it");
    } else if (fault != NULL && !asleep) {
        (void)fprintf(stderr, "ringhold kick: %s\n", fault);
    } else {
        (void)fprintf(stderr, "ringhold kick: %s has no session\n", q->arguments[0]);
    }
    return kicked ? 0 : 1;
}

int cmd_kick(int argc, char **argv)
{
    struct query q;
    uint32_t code = CODE_GAME;
    char text[TEXT_SIZE] = "ended by an operator";
    const struct option more[] = {
        option_number("code",
                      &code,
                      (struct option_range){CODE_GAME, UINT32_MAX},
                      "code that the client is given, one of the game's own (%)"),
        option_text("text",
                    "TEXT",
                    text,
                    sizeof text,
                    "text that the client is given (ended by an operator)"),
        query_reason(&q),
    };
    const struct command command = {
        .name = "kick",
        .summary = "End the session of the player who is bound to an actor.",
        .arguments = "KIND/ID",
        .details = "The actor itself sends the kick, behind everything it pushed, wherever it "
                   "lives; the session is\n"
                   "not kept for a resume. The actor is told as for any client that it kicks. The "
                   "player may log in\n"
                   "again. Without --reason the history has the text as the reason.\n"
                   "Exit code: 0 kicked, 1 the actor has no session, or an error.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int parsed = query_parse(&q, &command, argc, argv);
    Rh__AdminOperatorRequest what = RH__ADMIN_OPERATOR_REQUEST__INIT;

    if (parsed >= 0) {
        return parsed;
    }
    what.what = RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK;
    what.code = code;
    what.text = text;
    what.reason = q.reason;
    return operator_request_run(&q, command.name, &what, tell);
}
