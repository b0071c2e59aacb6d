/* SPDX-License-Identifier: Apache-2.0
 *
 * Witness of a database: how many writes it has confirmed. SQLite drops a
 * damaged end of its write-ahead log without a word, and a folder may be
 * restored from an old copy; then the database knows of fewer writes than the
 * witness does.
 *
 * It is written after each commit and never synced: what it says was on the
 * disk before, so it may lag behind, but it is never ahead of a sound database.
 */
#ifndef STORAGE_LOG_TAIL_H
#define STORAGE_LOG_TAIL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct tail {
    int file; /* -1 = closed */
    uint64_t identity;
};

/* Read the witness at `path`. ERR_NOT_FOUND; ERR_CORRUPT: not a witness; ERR_IO. */
MUST_CHECK enum err tail_read(const char *path, uint64_t *identity, uint64_t *writes);

/* Open it for writing, synced with this content. ERR_IO. */
MUST_CHECK enum err tail_open(struct tail *tail, const char *path, uint64_t identity,
                              uint64_t writes);

/* ERR_IO. */
MUST_CHECK enum err tail_put(struct tail *tail, uint64_t writes);

void tail_close(struct tail *tail);

#endif
