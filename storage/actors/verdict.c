/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges commits by the row of their actor.
 */
#include "storage/actors/verdict.h"

#include "base/log.h"
#include "base/mutant.h"
#include "base/stamp.h"

#include <inttypes.h>

struct store_row verdict_row_of(const struct store_task *commit)
{
    return (struct store_row){.fence = commit->fence, .number = commit->number};
}

bool verdict_went_back(const struct store_row *commit, const struct store_row *found)
{
    return !mutant(M_OLDSTORE) &&
           (found->fence < commit->fence || found->number + 1 < commit->number);
}

enum store_result verdict_of_doubt(const struct store_row *commit, const struct store_row *found)
{
    if (found->number < commit->number) {
        return STORE_UNAVAILABLE;
    }
    if (found->fence != commit->fence) {
        return STORE_UNKNOWN; // the number may be the new owner's
    }
    // A greater one under the same fence was raised past the commit, which was not done before.
    return found->number == commit->number ? STORE_DONE : STORE_UNAVAILABLE;
}

void verdict_stop(struct actor_store *s, uint16_t kind, const struct store_row *commit,
                  const struct store_row *found)
{
    if (s->counts.went_back++ == 0) {
        log_error("store",
                  "store_went_back",
                  "kind=%u fence=%s number=%" PRIu64 " has_fence=%s has_number=%" PRIu64
                  " remedy=\"it is an old copy: what was answered since is not in it. The node "
                  "refuses all that is for it from now on; put the newer one back, or restart all "
                  "nodes to go on with this one\"",
                  kind,
                  STAMP(commit->fence),
                  commit->number - 1,
                  STAMP(found->fence),
                  found->number);
    }
}

bool verdict_is_stopped(const struct actor_store *s)
{
    return s->counts.went_back > 0;
}
