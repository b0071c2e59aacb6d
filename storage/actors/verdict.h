/* SPDX-License-Identifier: Apache-2.0
 *
 * What the row of an actor says of a commit: the same for every database. Both numbers of a row
 * only grow, as long as nobody puts an old copy of the database in its place.
 *
 * Pure.
 */
#ifndef STORAGE_ACTORS_VERDICT_H
#define STORAGE_ACTORS_VERDICT_H

#include "storage/actors/store.h"

#include <stdbool.h>

/* The row of an actor; all 0 = there is none. And what a commit would make of it. */
struct store_row {
    uint64_t fence;
    uint64_t number;
};

struct store_row verdict_row_of(const struct store_task *commit);
/* True if the row is of an earlier time than what the commit's owner has seen of it: its claim and
 * its last commit were acknowledged, and are not there. */
bool verdict_went_back(const struct store_row *commit, const struct store_row *found);
/* What became of a commit that can't be done any more, the row as it was found. */
enum store_result verdict_of_doubt(const struct store_row *commit, const struct store_row *found);
/* Log that the store is an old copy of itself, and count it: from then on it refuses everything. */
void verdict_stop(struct actor_store *s, uint16_t kind, const struct store_row *commit,
                  const struct store_row *found);
/* True if it was stopped. */
bool verdict_is_stopped(const struct actor_store *s);

#endif
