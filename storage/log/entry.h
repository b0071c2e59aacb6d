/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Raft entry and a Raft snapshot hold: one body each, for the replica
 * that writes them and for the tool that reads a folder without one.
 *
 *     entry:     count u32 | count x (size u32 | command) | zeros to a multiple of 8
 *     SEAL:      a command of 0 "RHSEAL" 1 and a generation (raft/generation.h); the last one
 *                counts
 *     snapshot:  "rsnap001" | CRC-32C of the state u64 | raft index u64 | state
 *
 * Pure.
 */
#ifndef STORAGE_LOG_ENTRY_H
#define STORAGE_LOG_ENTRY_H

#include "base/bytes.h"
#include "wire/cursor.h"

#include <stdbool.h>

enum {
    ENTRY_HEAD_SIZE = 4,   /* the count */
    ENTRY_LENGTH_SIZE = 4, /* before each command */
    ENTRY_SNAPSHOT_HEAD_SIZE = 24,
    ENTRY_SEAL_SIZE = 8, /* what a SEAL begins with */
    /* An entry's type: libraft's numbers, which are on the disk. */
    ENTRY_COMMANDS = 1,
    ENTRY_BARRIER = 2,
    ENTRY_VOTERS = 3
};

struct entry_reader {
    struct reader in;
    uint32_t left; /* commands */
};

void entry_open(struct entry_reader *r, struct bytes entry);
/* The next command, borrowed. False at the end, or when the entry does not decode: entry_bad(). */
bool entry_next(struct entry_reader *r, struct bytes *command);
static inline bool entry_bad(const struct entry_reader *r)
{
    return r->in.bad;
}

/* True if the command is the end of its generation. */
bool entry_is_seal(struct bytes command);
void entry_put_seal(struct buffer *out);

/* Append the head and the state. */
void entry_seal_snapshot(struct buffer *out, uint64_t index, struct bytes state);
/* Write the head of a snapshot whose state comes after it. */
void entry_put_snapshot_head(uint8_t head[ENTRY_SNAPSHOT_HEAD_SIZE], uint64_t index,
                             struct bytes state);
/* False: it is not one, or it is damaged. `state` is borrowed. */
bool entry_open_snapshot(struct bytes snapshot, uint64_t *index, struct bytes *state);

#endif
