/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes from a peer: decoded or refused, and what decodes encodes to the
 * same bytes.
 */
#include "raft/heap.h"
#include "raft/message.h"
#include "raft/voters.h"

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct heap heap;
    static struct voters voters;
    struct raft_message message;
    uint64_t round;
    struct buffer again = {0};

    if (voters.count == 0) {
        heap_init(&heap);
        if (voters_init(&voters, (const uint64_t[]){1, 2, 3}, 3) != ERR_OK) {
            UNREACHABLE();
        }
    }
    if (message_decode(&message, &round, 2, bytes_of(data, size), &voters) == ERR_OK) {
        if (message.type == RAFT_IO_APPEND_ENTRIES &&
            message.append_entries.leader_commit >
                message.append_entries.prev_log_index + message.append_entries.n_entries) {
            // Encoding would clamp it.
            message_fini(&message);
            return 0;
        }
        const enum err e = message_encode(&again, &message, round, &voters, SIZE_MAX);
        ASSERT(e == ERR_OK);
        ASSERT(bytes_equal(buffer_bytes(&again), bytes_of(data, size)));
        message_fini(&message);
        buffer_fini(&again);
    }
    return 0;
}
