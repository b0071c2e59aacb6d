/* SPDX-License-Identifier: Apache-2.0
 *
 * The durable log in a folder: `raft.db` (SQLite, WAL, synchronous=FULL, a
 * checksum on every row), `raft.tail` (how many writes were confirmed, so that
 * a database that lost some is found out) and `raft.lock` (one process).
 *
 * Log and snapshot are written by one worker thread, all that waits in one
 * transaction. Everything else is called on the loop thread.
 */
#ifndef STORAGE_LOG_LOG_SQLITE_H
#define STORAGE_LOG_LOG_SQLITE_H

#include "storage/log/log.h"

struct log_sqlite_config {
    const char *directory; /* made, with those it is in, if it is not there */
    const char *cluster;
    uint64_t voter;             /* whose folder it is */
    const uint64_t *voters;     /* the whole group, ascending */
    size_t voter_count;         /* 1..LOG_VOTERS_MAX */
    struct bytes configuration; /* libraft's encoding of the group: entry 1 of a new log */
    uint64_t identity;          /* for a new folder; random, 1..2^63-1 */
    uint64_t readmit;           /* forget the recorded identity of this voter; 0 = none */
    bool joining; /* a new folder belongs to no group yet; one that does is all right */
    void *context;
    void (*wake)(void *context); /* from the worker: something is completed */
};

/* Open or create, lock, verify every row, load into `image` (initialised by the caller, who owns
 * it). On error the log says which file, why and what to do:
 * ERR_IO       the folder cannot be made or written
 * ERR_LOCKED   another process holds it
 * ERR_FOREIGN  of another cluster, voter, voter set or version
 * ERR_CORRUPT  damaged, incomplete, or older than what was confirmed
 * The config is borrowed during the call. */
MUST_CHECK enum err log_sqlite_open(struct log_store **out, struct log_image *image,
                                    const struct log_sqlite_config *config);

/* Turn a stopped copy of another voter's folder into the folder of `config->voter`: a new identity,
 * no vote, same log and term. For the documented remedy only. Errors as above, and ERR_CONFLICT
 * when the folder is already that voter's own. */
MUST_CHECK enum err log_sqlite_adopt(const struct log_sqlite_config *config);

/* Facts about a stopped voter's folder. Of two logs the more up-to-date one has the higher
 * last_term or, with equal last_terms, the higher last_index. */
struct log_folder {
    char cluster[64];
    char voters[128]; /* "1,2,3" */
    uint64_t voter;
    uint64_t identity;
    uint64_t term;
    uint64_t last_index;
    uint64_t last_term;
};

/* Look at a folder, without changing it. ERR_NOT_FOUND: no raft.db there; else as above. */
MUST_CHECK enum err log_sqlite_inspect(const char *directory, struct log_folder *out);

/* Block until everything submitted is finished: for tests, which have a clock of their own. */
void log_sqlite_wait(struct log_store *store);

#endif
