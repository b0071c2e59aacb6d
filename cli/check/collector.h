/* SPDX-License-Identifier: Apache-2.0
 *
 * A collection: what all processes of a fleet say of themselves at about one time.
 * Coordinators are asked directly, nodes and gateways through each of them.
 *
 * collection_* fill it; cli/check/check.h reads it, and knows nothing of links.
 */
#ifndef CLI_CHECK_COLLECTOR_H
#define CLI_CHECK_COLLECTOR_H

#include "daemon/admin.h"

#include <stdbool.h>

/* One address that was asked. */
struct collection_coordinator {
    char address[128];
    char why[128];         /* no answer: the reason, "" = not known */
    Rh__AdminReply *reply; /* owned, with its inspection; NULL = no answer */
};

struct collection {
    struct collection_coordinator coordinator[ADMIN_COORDINATORS_MAX];
    size_t coordinator_count;
    Rh__InspectAnswer **process; /* owned; one of each process that answered */
    size_t process_count;
};

void collection_fini(struct collection *s);

/* The leader's answer; without a leader that of who knows the latest state; NULL = nobody
 * answered. */
const Rh__AdminReply *collection_reference(const struct collection *s);

/* Take the answer of a process; a later one of the same process replaces it. Takes `answer`. */
void collection_put_process(struct collection *s, Rh__InspectAnswer *answer);

/* True if that process has answered. If `link` has incarnation 0 (not registered when the link came
 * up), any incarnation counts. */
bool collection_has(const struct collection *s, const Rh__LinkRow *link);

/* Some coordinator has a link to that node or gateway. */
bool collection_linked(const struct collection *s, uint32_t role, const char *name,
                       uint64_t incarnation);

/* ---- asking ---- */

struct collector;

/* `where` as in admin_open(). NULL after printing what is wrong with it. */
struct collector *collector_new(const struct admin_where *where);
void collector_free(struct collector *v);

/* Ask all, wait until all that are linked have answered, at most `timeout_ms`. Voters that the
 * list left out are asked too. `out` is overwritten; collection_fini(). */
void collector_ask(struct collector *v, uint32_t timeout_ms, struct collection *out);

#endif
