/* SPDX-License-Identifier: Apache-2.0
 *
 * A voter's disk in virtual time: a log_store whose writes take as long as the
 * world says and are done one after the other. What is done survives a crash,
 * and of what was queued a random prefix: power fails between write and answer.
 */
#ifndef SIM_RAFT_DISK_H
#define SIM_RAFT_DISK_H

#include "base/list.h"
#include "base/prng.h"
#include "storage/log.h"

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

    /* What survives. */
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

    /* What does not. */
    struct list queued;   /* log_request */
    struct list finished; /* log_request */
    uint64_t free_us;     /* when the last queued write is done */
    uint64_t holes;       /* appends that did not fit: each is a bug */
};

/* A new folder: first term, first entry. `joining` may be set after it. */
void raft_disk_init(struct raft_disk *disk, uint64_t identity, struct bytes configuration);
void raft_disk_fini(struct raft_disk *disk);

/* Fill an image, as a start from this disk does. */
void raft_disk_load(const struct raft_disk *disk, struct log_image *image);

/* The oldest queued write is done now. */
void raft_disk_finish(struct raft_disk *disk);

#endif
