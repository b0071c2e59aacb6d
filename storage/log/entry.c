/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes the body of a Raft entry and the head of a snapshot.
 */
#include "storage/log/entry.h"

#include "base/crc.h"

#include <string.h>

static const uint64_t snapshot_magic = 0x31303070616e7372u; /* "rsnap001" */

// No command of the state begins with a zero: in its encoding that would be a field without number.
static const uint8_t seal[ENTRY_SEAL_SIZE] = {0, 'R', 'H', 'S', 'E', 'A', 'L', 1};

bool entry_is_seal(struct bytes command)
{
    return command.size > sizeof seal && memcmp(command.data, seal, sizeof seal) == 0;
}

void entry_put_seal(struct buffer *out)
{
    buffer_put(out, seal, sizeof seal);
}

void entry_open(struct entry_reader *r, struct bytes entry)
{
    *r = (struct entry_reader){.in = {.at = entry.data, .left = entry.size}};
    r->left = get_u32(&r->in);
}

bool entry_next(struct entry_reader *r, struct bytes *command)
{
    if (r->left == 0 || r->in.bad) {
        return false;
    }
    const uint32_t size = get_u32(&r->in);
    const uint8_t *data = get_bytes(&r->in, size);
    if (r->in.bad) {
        return false;
    }
    r->left--;
    *command = bytes_of(data, size);
    return true;
}

// NOLINTNEXTLINE(readability-non-const-parameter): it is written through the cursor
void entry_put_snapshot_head(uint8_t head[ENTRY_SNAPSHOT_HEAD_SIZE], uint64_t index,
                             struct bytes state)
{
    struct writer w = {.at = head, .left = ENTRY_SNAPSHOT_HEAD_SIZE};

    put_u64(&w, snapshot_magic);
    put_u64(&w, crc32c(state.data, state.size));
    put_u64(&w, index);
}

void entry_seal_snapshot(struct buffer *out, uint64_t index, struct bytes state)
{
    entry_put_snapshot_head(buffer_reserve(out, ENTRY_SNAPSHOT_HEAD_SIZE), index, state);
    out->size += ENTRY_SNAPSHOT_HEAD_SIZE;
    buffer_put(out, state.data, state.size);
}

bool entry_open_snapshot(struct bytes snapshot, uint64_t *index, struct bytes *state)
{
    struct reader in = {.at = snapshot.data, .left = snapshot.size};
    const uint64_t magic = get_u64(&in);
    const uint64_t crc = get_u64(&in);

    *index = get_u64(&in);
    *state = bytes_of(in.at, in.left);
    return !in.bad && magic == snapshot_magic && crc == crc32c(state->data, state->size);
}
