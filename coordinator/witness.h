/* SPDX-License-Identifier: Apache-2.0
 *
 * A coordinator's witness: the highest number and log index it has applied, on
 * disk beside the databases. A raft.db that is put back from an older copy is
 * noticed: it must not serve, or numbers would be used twice.
 *
 * What is noted is written by a thread of its own, so the loop never waits for
 * the disk, and ten times a second at most, so that raft.db hardly shares the disk
 * with it. A crash may lose the last note, which only makes the check weaker by
 * that much: raft.tail knows of each write, and a copy is older than 100 ms.
 */
#ifndef COORDINATOR_WITNESS_H
#define COORDINATOR_WITNESS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct witness;

/* Open FOLDER/witness. Says why on error. */
MUST_CHECK enum err witness_open(struct witness **out, const char *folder);
/* Write what was noted last, then stop. Takes NULL. */
void witness_close(struct witness *w);

uint64_t witness_number(const struct witness *w); /* as found at the start */
uint64_t witness_index(const struct witness *w);
/* True unless `number`, of a leader that has applied all, is below what was found. */
bool witness_agrees(const struct witness *w, uint64_t number);

/* Applied so far. Returns at once. */
void witness_note(struct witness *w, uint64_t number, uint64_t index);

#endif
