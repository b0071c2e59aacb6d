/* SPDX-License-Identifier: Apache-2.0
 *
 * A backup: what the coordinators agreed on at one moment, in one file. Or the
 * founding of a group: the same with the new era already in it, and the new
 * identity of each voter, so that several machines found one and the same group.
 *
 *     "RHBACKUP" | format u32 | kind u32 | cluster 64 | voters 128 | era number index
 *     term raft_term time_us u64 | 5 x (voter, identity, used u64) | state size u64
 *     CRC-32C of the state u32 | CRC-32C of all before u32 | the state
 *
 * Files are written under another name, fsynced, and renamed.
 */
#ifndef STORAGE_STATE_BACKUP_H
#define STORAGE_STATE_BACKUP_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { BACKUP_VOTERS_MAX = 5, BACKUP_WHY_MAX = 160 };

enum backup_kind { BACKUP_COPY = 1, BACKUP_FOUNDING = 2 };

struct backup_member {
    uint64_t voter; /* 0 = empty place; ascending */
    uint64_t identity;
    bool used; /* installed from this file: a second time it could vote twice */
};

struct backup {
    enum backup_kind kind;
    char cluster[64];
    char voters[128]; /* "1,2,3" */
    uint64_t era;
    uint64_t number;
    uint64_t index;                                 /* last log entry that is in it */
    uint64_t term;                                  /* of that entry */
    uint64_t raft_term;                             /* of the folder it came from */
    uint64_t time_us;                               /* when it was taken; wall clock */
    struct backup_member member[BACKUP_VOTERS_MAX]; /* FOUNDING */
    struct buffer state;                            /* owned */
};

/* Write it to `path`; `replace`: also over a file that is there. ERR_CONFLICT: one is; ERR_IO. */
MUST_CHECK enum err backup_write(const struct backup *b, const char *path, bool replace,
                                 char why[BACKUP_WHY_MAX]);
/* ERR_NOT_FOUND, ERR_IO, ERR_FOREIGN: of another format; ERR_CORRUPT. backup_fini() in any case. */
MUST_CHECK enum err backup_read(struct backup *b, const char *path, char why[BACKUP_WHY_MAX]);
void backup_fini(struct backup *b);

#endif
