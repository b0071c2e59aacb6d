/* SPDX-License-Identifier: Apache-2.0
 *
 * A sentence for each command of the history.
 */
#include "cli/event_text.h"

#include "base/stamp.h"

#include <stdio.h>
#include <string.h>

enum { SUBJECT_SIZE = 288 };

/* % is the subject, and stands once at most. A refused one begins with `refused` and its subject.
 */
static const struct {
    const char *command;
    const char *text;
} sentences[] = {
    {"init", "the fleet was founded"},
    {"register", "% joined the fleet"},
    {"begin", "% began"},
    {"commit", "% was committed: the ring has changed"},
    {"abort", "% was aborted: the ring stays as it was"},
    {"resolve", "% was decided by an operator"},
    {"drain", "% is to be drained"},
    {"cancel", "the drain of % was cancelled"},
    {"stop", "% is stopping: its vnodes move away first"},
    {"remove", "% is removed from the fleet"},
    {"replace", "% is replaced"},
    {"weight", "% has another weight"},
    {"fence", "% was fenced: its lease has ended, and it never serves again"},
    {"reassign", "the vnodes of % were given to others"},
    {"deregister", "% left the fleet"},
    {"voter", "a coordinator told its address"},
    {"settled", "the leases of before the restore have ended"},
    {"lease", "the longest lease that may be granted changed"},
    {"ahead", "numbers were drawn ahead"},
    {"upgrade", "the fleet was raised to %"},
    {"quarantine", "% was put into quarantine"},
    {"release", "% was released from quarantine"},
    {"pin", "% is pinned"},
    {"unpin", "% is not pinned any more"},
    {"forget", "% is not remembered any more"},
    {"daemons", "a set has another count: %"},
    {"fix", "% is repaired by an operator"},
    {"kick", "an operator kicked %"},
    {"trace", "an operator traced a request to %"},
    {"values", "an operator changed values of %"},
    {"move", "an operator moved %"},
    {"coordinators", "the %"},
};

/* The node that registered with that incarnation, or NULL. */
static const char *registered(const Rh__AdminReply *history, uint64_t incarnation)
{
    for (size_t i = 0; i < history->n_events; i++) {
        const Rh__EventRow *e = history->events[i];

        if (e->stamp == incarnation && strcmp(e->command, "register") == 0 && e->accepted) {
            return e->subject;
        }
    }
    return NULL;
}

/* "txn 1.28" is a transaction, "incarnation 1.2" is node n1, if that is known. */
static void subject_of(const Rh__EventRow *e, const Rh__AdminReply *history, char out[SUBJECT_SIZE])
{
    static const char txn[] = "txn ";
    static const char incarnation[] = "incarnation ";
    uint64_t number;

    (void)snprintf(out, SUBJECT_SIZE, "%s", e->subject);
    if (strncmp(e->subject, txn, sizeof txn - 1) == 0 &&
        stamp_parse(e->subject + sizeof txn - 1, &number)) {
        (void)snprintf(out, SUBJECT_SIZE, "transaction %s", STAMP(number));
    } else if (strncmp(e->subject, incarnation, sizeof incarnation - 1) == 0 &&
               stamp_parse(e->subject + sizeof incarnation - 1, &number)) {
        const char *node = registered(history, number);

        (void)snprintf(out,
                       SUBJECT_SIZE,
                       "%s (incarnation %s)",
                       node == NULL ? "a node" : node,
                       STAMP(number));
    } else if (strcmp(e->subject, "nobody's vnodes") == 0) {
        (void)snprintf(out, SUBJECT_SIZE, "nobody");
    }
}

static void put(char out[EVENT_TEXT_SIZE], const char *before, const char *text)
{
    const size_t used = strlen(out);

    if (text[0] != '\0') {
        (void)snprintf(out + used, EVENT_TEXT_SIZE - used, "%s%s", before, text);
    }
}

const char *event_text(const Rh__EventRow *event, const Rh__AdminReply *history,
                       char out[EVENT_TEXT_SIZE])
{
    const char *text = NULL;
    char subject[SUBJECT_SIZE];
    char part[EVENT_TEXT_SIZE];

    subject_of(event, history, subject);
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        text = strcmp(event->command, sentences[i].command) == 0 ? sentences[i].text : text;
    }
    out[0] = '\0';
    if (!event->accepted || text == NULL) { // a command of another version is told as it is
        put(out, event->accepted ? "" : "refused: ", event->command);
        put(out, " ", subject);
    } else {
        (void)snprintf(part, sizeof part, "%.*s", (int)strcspn(text, "%"), text);
        put(out, "", part);
        put(out, "", strchr(text, '%') == NULL ? "" : subject);
        put(out, "", strchr(text, '%') == NULL ? "" : strchr(text, '%') + 1);
    }
    put(out, ": ", event->why);
    put(out, "; by ", event->by);
    put(out, ", because: ", event->reason);
    return out;
}
