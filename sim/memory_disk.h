/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk of a simulated machine, in memory: files with what processes see,
 * and beneath that what is still there when the power has failed. A write, a
 * size, a name stay for certain once they were synced. Without, each sector may
 * be as before or as after, or nothing of it; names as before or all as after.
 *
 *     /12/raft.db     the file raft.db on the disk 12
 *
 * Shipped code reaches it by base/files.h, SQLite by the default VFS that
 * memory_disk_install() makes. Nothing on it ever fails, nor is it full.
 */
#ifndef SIM_MEMORY_DISK_H
#define SIM_MEMORY_DISK_H

#include "base/prng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MEMORY_DISK_NAME_MAX = 23, MEMORY_DISK_NAMES_MAX = 8, MEMORY_DISK_SECTOR = 512 };

/* One content; a file that processes have open outlives its names. */
struct memory_disk_file {
    size_t users; /* names, before and after, and handles */
    uint8_t *now; /* owned: what processes see */
    size_t size;
    size_t room; /* of both */
    uint8_t *kept;
    size_t kept_size;
    size_t dirty_from; /* sectors that may differ */
    size_t dirty_to;   /* not one of them */
    uint8_t *dirty;    /* owned: which, a byte each */
};

struct memory_disk_name {
    char name[MEMORY_DISK_NAME_MAX + 1];
    struct memory_disk_file *file; /* NULL = no name */
};

struct memory_disk;

/* From now on base/files.h and SQLite are about such disks. */
void memory_disk_install(void);

/* An empty one; `seed` draws what is lost. */
struct memory_disk *memory_disk_new(uint64_t seed);
/* Takes NULL. Nobody has a file of it open. */
void memory_disk_free(struct memory_disk *p);
/* "/12": where it is found. */
const char *memory_disk_path(const struct memory_disk *p);

/* The power will fail at the `operations`-th change from now on; what is done to it after that is
 * seen, and is gone with memory_disk_lose(). */
void memory_disk_fail_at(struct memory_disk *p, unsigned operations);
bool memory_disk_has_power(const struct memory_disk *p);
/* The process that has its files open was killed: until `held` is false nothing is changed. */
void memory_disk_hold(struct memory_disk *p, bool held);
/* The power has failed, now or then, and is back. Nobody has a file open. */
void memory_disk_lose(struct memory_disk *p);

/* ---- for SQLite's shell, sim/memory_disk_sqlite.c ---- */

void memory_disk_install_sqlite(void);
/* By its whole path; made, if `make`. NULL: there is none. */
struct memory_disk_file *memory_disk_find(const char *path, bool make);
struct memory_disk *memory_disk_of(const char *path);
void memory_disk_release(struct memory_disk_file *file);
size_t memory_disk_read(const struct memory_disk_file *file, void *data, size_t size, size_t at);
void memory_disk_write(struct memory_disk *p, struct memory_disk_file *file, const void *data,
                       size_t size, size_t at);
void memory_disk_truncate(struct memory_disk *p, struct memory_disk_file *file, size_t size);
void memory_disk_sync(struct memory_disk *p, struct memory_disk_file *file);
void memory_disk_sync_names(struct memory_disk *p);
bool memory_disk_remove(const char *path);

#endif
