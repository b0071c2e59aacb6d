/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk of a simulated machine, in memory: files with what processes see,
 * and beneath that what is still there when the power has failed. A write, a
 * size, a name stay for certain once they were synced. Without, each sector may
 * be as before or as after, or nothing of it; names as before or all as after.
 *
 *     /12/raft.db     the file raft.db on the platter 12
 *
 * Shipped code reaches it by base/files.h, SQLite by the default VFS that
 * platter_install() makes. Nothing on it ever fails, nor is it full.
 */
#ifndef SIM_PLATTER_H
#define SIM_PLATTER_H

#include "base/prng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PLATTER_NAME_MAX = 23, PLATTER_NAMES_MAX = 8, PLATTER_SECTOR = 512 };

/* One content; a file that processes have open outlives its names. */
struct platter_file {
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

struct platter_name {
    char name[PLATTER_NAME_MAX + 1];
    struct platter_file *file; /* NULL = no name */
};

struct platter;

/* From now on base/files.h and SQLite are about platters. */
void platter_install(void);

/* An empty one; `seed` draws what is lost. */
struct platter *platter_new(uint64_t seed);
/* Takes NULL. Nobody has a file of it open. */
void platter_free(struct platter *p);
/* "/12": where it is found. */
const char *platter_path(const struct platter *p);

/* The power will fail at the `operations`-th change from now on; what is done to it after that is
 * seen, and is gone with platter_lose(). */
void platter_fail_at(struct platter *p, unsigned operations);
bool platter_has_power(const struct platter *p);
/* The process that has its files open was killed: until `held` is false nothing is changed. */
void platter_hold(struct platter *p, bool held);
/* The power has failed, now or then, and is back. Nobody has a file open. */
void platter_lose(struct platter *p);

/* ---- for SQLite's shell, sim/platter_sqlite.c ---- */

void platter_install_sqlite(void);
/* By its whole path; made, if `make`. NULL: there is none. */
struct platter_file *platter_find(const char *path, bool make);
struct platter *platter_of(const char *path);
void platter_release(struct platter_file *file);
size_t platter_read(const struct platter_file *file, void *data, size_t size, size_t at);
void platter_write(struct platter *p, struct platter_file *file, const void *data, size_t size,
                   size_t at);
void platter_truncate(struct platter *p, struct platter_file *file, size_t size);
void platter_sync(struct platter *p, struct platter_file *file);
void platter_sync_names(struct platter *p);
bool platter_remove(const char *path);

#endif
