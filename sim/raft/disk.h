/* SPDX-License-Identifier: Apache-2.0
 *
 * A voter's disk in virtual time: a log_store whose writes take as long as the
 * world says and are done one after the other. What is done survives a crash,
 * and of what was queued a random prefix: power fails between write and answer.
 *
 * It may have the shipped raft.db and raft.tail beside it, on a disk in memory. Then
 * some crashes are power losses, in the middle of a write, too, and what the
 * folder gives back must be what was confirmed, and what was under way either
 * whole or not.
 */
#ifndef SIM_RAFT_DISK_H
#define SIM_RAFT_DISK_H

#include "base/list.h"
#include "base/prng.h"
#include "sim/memory_disk.h"
#include "storage/log/log_sqlite.h"

#include <stdbool.h>
#include <stdint.h>

struct raft_disk_entry {
    struct log_entry entry;
    void *memory; /* owned: the entry's bytes */
};

struct raft_disk {
    struct log_store store; /* must be first */
    struct prng *prng;      /* the world's */
    uint64_t write_min_us;
    uint64_t write_max_us;
    uint64_t stall_percent; /* of the writes take stall_us longer at most */
    uint64_t stall_us;
    uint64_t (*now)(void *context);
    /* Call raft_disk_finish() at `at_us`. */
    void (*schedule)(void *context, struct raft_disk *disk, uint64_t at_us);
    void *context;

    /* Part that survives a crash. */
    uint64_t term;
    uint64_t vote;
    uint64_t identity;
    bool admitted;
    bool joining;        /* in no group yet */
    uint8_t *generation; /* owned; NULL = the first */
    size_t generation_size;
    struct log_peer peer[LOG_VOTERS_MAX];
    size_t peer_count;
    uint64_t first;                /* index of entry[0] */
    struct raft_disk_entry *entry; /* owned */
    size_t entry_count;
    size_t entry_max;
    struct log_request *snapshot; /* NULL = none */

    /* Part that does not survive a crash. */
    struct list queued;   /* log_request */
    struct list finished; /* log_request */
    uint64_t free_us;     /* when the last queued write is done */
    uint64_t holes;       /* appends that did not fit: each is a bug */

    /* The shipped folder. */
    struct memory_disk *memory_disk; /* owned; NULL = there is none */
    struct prng luck;                /* its own: the world's draws stay as they are */
    struct bytes founders;           /* configuration that it began with; borrowed */
    bool founded;                    /* it was opened once */
    struct raftdb *db;               /* NULL while its process is down */
    struct list doubtful;            /* log_request: in one write, at which the power failed */
    uint64_t power_losses;
};

/* A new folder: first term, first entry. `joining` may be set after it. `configuration` is
 * borrowed.
 */
void raft_disk_init(struct raft_disk *disk, uint64_t identity, struct bytes configuration);
void raft_disk_fini(struct raft_disk *disk);

/* From its making on it has a shipped folder, too. */
void raft_disk_ship(struct raft_disk *disk, uint64_t seed);

/* Fill an image, as a start from this disk does. `config`: whose folder it is, by its voters and
 * configuration; the rest is filled in. What is wrong with the shipped folder, or NULL. */
const char *raft_disk_load(struct raft_disk *disk, const struct log_sqlite_config *config,
                           struct log_image *image);

/* The oldest queued write is done now. */
void raft_disk_finish(struct raft_disk *disk);

#endif
