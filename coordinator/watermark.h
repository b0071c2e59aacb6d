/* SPDX-License-Identifier: Apache-2.0
 *
 * A coordinator's watermark, its file `witness`: the highest number and log index it has applied,
 * on disk beside the databases. A raft.db that is put back from an older copy is noticed: it must
 * not serve, or numbers would be used twice.
 *
 * What is noted is written by a thread of its own, so the loop never waits for
 * the disk, and ten times a second at most, so that raft.db hardly shares the disk
 * with it. A crash may lose the last note, which only makes the check weaker by
 * that much: raft.tail knows of each write, and a copy is older than 100 ms.
 */
#ifndef COORDINATOR_WATERMARK_H
#define COORDINATOR_WATERMARK_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct watermark;

/* Open FOLDER/witness. Says why on error. */
MUST_CHECK enum err watermark_open(struct watermark **out, const char *folder);
/* Write what was noted last, then stop. Takes NULL. */
void watermark_close(struct watermark *w);

uint64_t watermark_number(const struct watermark *w); /* as found at the start */
uint64_t watermark_index(const struct watermark *w);
/* True unless `number`, of a leader that has applied all, is below what was found. */
bool watermark_agrees(const struct watermark *w, uint64_t number);

/* Applied so far. Returns at once. */
void watermark_put(struct watermark *w, uint64_t number, uint64_t index);

#endif
