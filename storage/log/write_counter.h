/* SPDX-License-Identifier: Apache-2.0
 *
 * Counter of a database's writes: how many writes it has confirmed. SQLite drops a
 * damaged end of its write-ahead log without a word, and a folder may be
 * restored from an old copy; then the database knows of fewer writes than the
 * counter does.
 *
 * It is written after each commit and never synced: what it says was on the
 * disk before, so it may lag behind, but it is never ahead of a sound database.
 */
#ifndef STORAGE_LOG_WRITE_COUNTER_H
#define STORAGE_LOG_WRITE_COUNTER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct write_counter {
    int file; /* -1 = closed */
    uint64_t identity;
};

/* Read the counter at `path`. ERR_NOT_FOUND; ERR_CORRUPT: not a counter; ERR_IO. */
MUST_CHECK enum err write_counter_read(const char *path, uint64_t *identity, uint64_t *writes);

/* Open it for writing, synced with this content. ERR_IO. */
MUST_CHECK enum err write_counter_open(struct write_counter *write_counter, const char *path,
                                       uint64_t identity, uint64_t writes);

/* ERR_IO. */
MUST_CHECK enum err write_counter_put(struct write_counter *write_counter, uint64_t writes);

void write_counter_close(struct write_counter *write_counter);

#endif
