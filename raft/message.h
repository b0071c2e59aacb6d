/* SPDX-License-Identifier: Apache-2.0
 *
 * libraft's messages on our links. Little-endian, no padding:
 *
 *     u8 format (1)  u8 type  u16 generation, then by type (7 to 9: raft/reconfiguration.h):
 *     1 AppendEntries        u64 term, prev index, prev term, commit; u32 count;
 *                            count x { u64 term, u16 type, u32 size }; the entries' bytes
 *     2 its result           u64 term, rejected, last index
 *     3 RequestVote          u64 term, candidate, last index, last term; u8 disrupt, pre-vote
 *     4 its result           u64 term; u8 granted, u8 pre-vote (libraft's tribool)
 *     5 InstallSnapshot      u64 term, last index, last term, configuration index;
 *                            u32 configuration size, u32 data size; both
 *     6 TimeoutNow           u64 term, last index, last term
 *
 * Format 2: a round, u64, stands before what is by type. A leader counts its rounds; a voter
 * repeats the last one that it heard of in the leader's term. AppendEntries of format 1 without
 * entries, in a term in which the voter has heard a round: only a refusal is an answer.
 *
 * A message is decoded whole or not at all; nothing in it is believed that
 * libraft would not check itself: sizes, counts, entry types, configurations.
 */
#ifndef RAFT_MESSAGE_H
#define RAFT_MESSAGE_H

#include "base/bytes.h"
#include "base/err.h"
#include "raft/voters.h"

#include <raft.h>

enum {
    MESSAGE_FORMAT = 1,
    MESSAGE_FORMAT_ROUND = 2,
    /* Entries of one AppendEntries: no more bytes than this unless a single one is larger. The
     * rest follows in the next message, so one lagging voter cannot fill a link. */
    MESSAGE_ENTRIES_SIZE_MAX = 4 << 20,
    MESSAGE_SNAPSHOT_SIZE_MAX = 60 << 20 /* a link carries 64 MiB */
};

static inline bool message_is_format(uint8_t format)
{
    return format == MESSAGE_FORMAT || format == MESSAGE_FORMAT_ROUND;
}

/* Append `message` to `out`; `round`: 0 = none. Cuts an AppendEntries to `entries_size_max`, and
 * its commit index to what it then shows. ERR_TOO_BIG: a snapshot over the limit; nothing was
 * appended. */
MUST_CHECK enum err message_encode(struct buffer *out, const struct raft_message *message,
                                   uint64_t round, const struct voters *voters,
                                   size_t entries_size_max);

/* Decode what `from`, one of `voters`, sent; `round` gets 0 if it has none. Entries are one
 * raft_malloc()ed batch; libraft or message_fini() frees. ERR_CORRUPT: nothing is allocated. */
MUST_CHECK enum err message_decode(struct raft_message *out, uint64_t *round, uint64_t from,
                                   struct bytes in, const struct voters *voters);

/* Free what a decoded message holds. */
void message_fini(struct raft_message *message);

#endif
