/* SPDX-License-Identifier: Apache-2.0
 *
 * A data folder seen from outside, its daemon stopped: what it is, what it
 * holds, and which of its files are sound. Nothing here changes a folder;
 * storage/state/bootstrap.h does.
 */
#ifndef STORAGE_STATE_RECOVER_H
#define STORAGE_STATE_RECOVER_H

#include "storage/log/log.h"
#include "storage/log/watermark_record.h"
#include "storage/state/replay.h"
#include "txn/state/state.h"

enum { RECOVER_FILES_MAX = 12, RECOVER_PATH_MAX = 4096, RECOVER_TEXT_MAX = 256 };

enum recover_kind { RECOVER_UNKNOWN, RECOVER_COORDINATOR, RECOVER_NODE };

enum recover_health {
    RECOVER_SOUND,
    RECOVER_ABSENT,  /* not there, and need not be */
    RECOVER_MISSING, /* not there, and should be */
    RECOVER_DAMAGED
};

struct recover_file {
    char name[24];
    enum recover_health health;
    uint64_t size;
    char what[RECOVER_TEXT_MAX];   /* what is wrong, or a remark, or empty */
    char remedy[RECOVER_TEXT_MAX]; /* when something is wrong */
};

/* Facts about state.db as it stands on disk: a copy on which nothing is decided. */
struct recover_cache {
    bool readable;
    uint64_t applied;
    uint64_t number;
    uint64_t era;
    uint64_t version;
    char digest[33];
};

struct recover_folder {
    enum recover_kind kind;
    char path[RECOVER_PATH_MAX];
    bool in_use; /* a process holds its lock: what is said here is of different moments */
    struct recover_file file[RECOVER_FILES_MAX];
    size_t file_count;
    int lock; /* descriptor that holds the folder's lock while we look; -1 = none */
    char cluster[64];

    /* Fields of a coordinator's folder. */
    bool has_log; /* raft.db is sound: the fields below */
    char voters[128];
    uint64_t voter;
    uint64_t writes; /* that raft.db knows of */
    struct log_image image;
    uint64_t log_bad; /* deep: rows of the log that are damaged */
    bool has_note;
    struct watermark_record watermark;
    bool has_state; /* the log could be replayed: `replay` holds all of it */
    struct replay replay;
    struct recover_cache cache;
    bool has_write_counter;
    uint64_t confirmed_writes;

    /* Fields of a node's folder. */
    char node[64];
    char uuid[40];
    bool has_record;
    struct buffer record; /* owned; the payload of its number file */
};

/* Look at the folder. `deep`: verify each row and compare state.db as well. False: there is no such
 * folder, or it is none of ours: `why` says it. recover_fini() in any case. */
bool recover_look(struct recover_folder *f, const char *path, bool deep, struct replay_watch watch,
                  char why[RECOVER_TEXT_MAX]);
void recover_fini(struct recover_folder *f);

/* Files that are damaged or missing. */
size_t recover_damage(const struct recover_folder *f);
/* Term of the last entry, or of the snapshot when no entry follows it. */
uint64_t recover_last_term(const struct recover_folder *f);
uint64_t recover_last_index(const struct recover_folder *f);

const char *recover_health_name(enum recover_health health);

#endif
