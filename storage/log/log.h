/* SPDX-License-Identifier: Apache-2.0
 *
 * The durable side of one Raft voter: its term and vote, its log, its last
 * snapshot, who it is and whom it has met. A contract with two bodies: SQLite
 * (storage/log/log_sqlite.h) and the simulator's disk in virtual time.
 *
 * Term, vote and meetings are written at once: the call returns when they are
 * on the disk. Log and snapshot go through a queue: requests are made durable
 * in the order of log_store_submit() and come back, in that order, from
 * log_store_completed(). After a crash a prefix of the queue is on the disk.
 *
 * No write fails: a store that cannot write ends the process (exit 74), because
 * a voter that does not know what is on its disk must not speak.
 */
#ifndef STORAGE_LOG_LOG_H
#define STORAGE_LOG_LOG_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOG_VOTERS_MAX = 5,
    LOG_CONFIGURATION_MAX = 512 /* bytes of an encoded voter set */
};

struct log_entry {
    uint64_t term;
    uint16_t type; /* libraft's: 1 command, 2 barrier, 3 configuration */
    struct bytes data;
};

struct log_snapshot {
    uint64_t index; /* last entry it covers; 0 = no snapshot */
    uint64_t term;  /* of that entry */
    uint64_t configuration_index;
    struct bytes configuration;
    struct bytes data;
};

/* Another voter as this folder met it first. */
struct log_peer {
    uint64_t voter;    /* 0 = empty place */
    uint64_t identity; /* of its folder */
    bool founder;      /* it had taken part in nothing then */
};

/* Contents of the log on disk. The image owns everything. */
struct log_image {
    uint64_t term;
    uint64_t vote;     /* 0 = none in this term */
    uint64_t identity; /* of this folder, random, never 0 */
    bool admitted;     /* this voter may take part in elections: docs/raft.md */
    struct log_peer peer[LOG_VOTERS_MAX];
    size_t peer_count;
    uint64_t first; /* index of entry[0]; where the next one goes when there is none */
    struct log_entry *entry;
    size_t entry_count;
    struct log_snapshot snapshot;
    struct bytes generation; /* of the group, as raft/generation.h encodes it; none: the first */
    bool joining;            /* the folder of one that waits to be taken into a group */
    struct list memory;      /* blocks behind `entry` and the byte runs */
};

void log_image_init(struct log_image *image);
/* Returns `size` zeroed bytes that live as long as the image. */
void *log_image_memory(struct log_image *image, size_t size);
void log_image_fini(struct log_image *image);

enum log_request_kind { LOG_APPEND, LOG_TRUNCATE, LOG_SNAPSHOT, LOG_READ_SNAPSHOT, LOG_FOUND };

/* The begin of a group's next generation, from a snapshot: docs/raft.md. */
struct log_founding {
    struct bytes generation;
    const uint64_t *voters; /* ids, ascending */
    size_t voter_count;
    uint64_t term; /* no vote was cast in it: of the snapshot at least, and none below this one's */
    bool admitted; /* this one is among them */
    struct log_peer peer[LOG_VOTERS_MAX];
    size_t peer_count;
    struct log_snapshot snapshot;
};

/* One queued piece of work; a single block of memory with all it needs. */
struct log_request {
    struct list_link link;
    enum log_request_kind kind;
    void *tag;      /* the caller's, untouched */
    uint64_t index; /* APPEND: of entry[0]. TRUNCATE: this and later entries go */
    struct log_entry *entry;
    size_t entry_count;
    size_t entry_max;
    uint8_t *free_bytes;          /* where the next entry's data goes */
    struct log_snapshot snapshot; /* SNAPSHOT: to store. READ_SNAPSHOT: what was found */
    uint64_t keep_from;           /* SNAPSHOT: entries below this index go; UINT64_MAX: all */
    void *read_memory;            /* owned; READ_SNAPSHOT's bytes */
    struct log_founding founding; /* FOUND: without its snapshot, which is above */
};

/* Returns an owned request for up to `entry_max` entries of `data_size` bytes in all; the caller
 * sets its index. */
struct log_request *log_append_new(size_t entry_max, size_t data_size);
/* Copy one more entry into it. */
void log_append_add(struct log_request *request, const struct log_entry *entry);
struct log_request *log_truncate_new(uint64_t index);
/* Copies the snapshot. */
struct log_request *log_snapshot_new(const struct log_snapshot *snapshot, uint64_t keep_from);
/* Asks for the last snapshot that the requests before it leave on the disk. */
struct log_request *log_read_new(void);
/* Copies the founding. In one write the log goes, the snapshot, the voters and those met are these,
 * and there is no vote in the term. */
struct log_request *log_found_new(const struct log_founding *founding);
/* Takes NULL. */
void log_request_free(struct log_request *request);
/* The first of a list of them, which is the caller's then; NULL: the list is empty. */
struct log_request *log_requests_take(struct list *requests);
/* Free all requests of a list. */
void log_requests_free(struct list *requests);

struct log_store;

struct log_store_ops {
    uint64_t (*set_vote)(struct log_store *store, uint64_t term, uint64_t vote);
    void (*set_peer)(struct log_store *store, const struct log_peer *peer);
    void (*set_admitted)(struct log_store *store);
    void (*set_format)(struct log_store *store, uint32_t fleet_format);
    void (*submit)(struct log_store *store, struct log_request *request);
    struct log_request *(*completed)(struct log_store *store);
    void (*close)(struct log_store *store);
};

/* The first member of each body. */
struct log_store {
    const struct log_store_ops *ops;
};

/* Durable on return, both in one write. `vote` 0: none in this term yet. Returns how long the
 * caller was kept waiting, in us: no silence of anybody else (0 in virtual time). */
static inline uint64_t log_store_set_vote(struct log_store *store, uint64_t term, uint64_t vote)
{
    return store->ops->set_vote(store, term, vote);
}

/* Durable on return. Replaces what was known of that voter. */
static inline void log_store_set_peer(struct log_store *store, const struct log_peer *peer)
{
    store->ops->set_peer(store, peer);
}

/* Durable on return. */
static inline void log_store_set_admitted(struct log_store *store)
{
    store->ops->set_admitted(store);
}

/* Durable on return: a version that does not read this format of the fleet refuses the folder. */
static inline void log_store_set_format(struct log_store *store, uint32_t fleet_format)
{
    store->ops->set_format(store, fleet_format);
}

/* Takes the request. */
static inline void log_store_submit(struct log_store *store, struct log_request *request)
{
    store->ops->submit(store, request);
}

/* Returns the next finished request, owned by the caller, or NULL. */
static inline struct log_request *log_store_completed(struct log_store *store)
{
    return store->ops->completed(store);
}

/* Drops what is queued, releases the folder, frees the store. */
static inline void log_store_close(struct log_store *store)
{
    store->ops->close(store);
}

#endif
