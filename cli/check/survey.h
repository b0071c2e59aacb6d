/* SPDX-License-Identifier: Apache-2.0
 *
 * A survey: what all processes of a fleet say of themselves at about one time.
 * Coordinators are asked directly, nodes and gateways through each of them.
 *
 * survey_* fill it; cli/check/check.h reads it, and knows nothing of links.
 */
#ifndef CLI_CHECK_SURVEY_H
#define CLI_CHECK_SURVEY_H

#include "daemon/admin.h"

#include <stdbool.h>

/* One address that was asked. */
struct survey_coordinator {
    char address[128];
    char why[128];         /* no answer: the reason, "" = not known */
    Rh__AdminReply *reply; /* owned, with its inspection; NULL = no answer */
};

struct survey {
    struct survey_coordinator coordinator[ADMIN_COORDINATORS_MAX];
    size_t coordinator_count;
    Rh__InspectAnswer **process; /* owned; one of each process that answered */
    size_t process_count;
};

void survey_fini(struct survey *s);

/* The leader's answer; without a leader that of who knows the latest state; NULL = nobody
 * answered. */
const Rh__AdminReply *survey_reference(const struct survey *s);

/* Take the answer of a process; a later one of the same process replaces it. Takes `answer`. */
void survey_put_process(struct survey *s, Rh__InspectAnswer *answer);

/* It has answered. Incarnation 0 in `link`: not registered when its link came up, any will do. */
bool survey_has(const struct survey *s, const Rh__LinkRow *link);

/* Some coordinator has a link to that node or gateway. */
bool survey_linked(const struct survey *s, uint32_t role, const char *name, uint64_t incarnation);

/* ---- asking ---- */

struct surveyor;

/* `where` as in admin_open(). NULL after printing what is wrong with it. */
struct surveyor *surveyor_new(const struct admin_where *where);
void surveyor_free(struct surveyor *v);

/* Ask all, wait until all that are linked have answered, at most `timeout_ms`. Voters that the
 * list left out are asked too. `out` is overwritten; survey_fini(). */
void surveyor_ask(struct surveyor *v, uint32_t timeout_ms, struct survey *out);

#endif
