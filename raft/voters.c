/* SPDX-License-Identifier: Apache-2.0
 *
 * The voters of a generation, sorted, and as libraft's configuration.
 */
#include "raft/voters.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void insert_sorted(struct voters *voters, uint64_t id)
{
    size_t at = voters->count++;

    for (; at > 0 && voters->id[at - 1] > id; at--) {
        voters->id[at] = voters->id[at - 1];
    }
    voters->id[at] = id;
}

enum err voters_init(struct voters *voters, const uint64_t *id, size_t count)
{
    struct raft_configuration configuration;
    struct raft_buffer encoded;

    *voters = (struct voters){0};
    if (count != 1 && count != 3 && count != 5) {
        return ERR_INVALID;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (id[i] == id[k]) {
                return ERR_INVALID;
            }
        }
        if (id[i] == 0 || id[i] > INT64_MAX) {
            return ERR_INVALID;
        }
        insert_sorted(voters, id[i]);
    }
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(voters->address[i], sizeof voters->address[i], "%" PRIu64, voters->id[i]);
    }
    voters_configure(voters, &configuration);
    const int failed = raft_configuration_encode(&configuration, &encoded);
    ASSERT(failed == 0 && encoded.len <= sizeof voters->configuration);
    // The padding is not written by libraft; entries are compared byte by byte.
    size_t used = 1 + 8;
    for (size_t i = 0; i < count; i++) {
        used += 8 + strlen(voters->address[i]) + 1 + 1;
    }
    memcpy(voters->configuration, encoded.base, used);
    voters->configuration_size = encoded.len;
    raft_free(encoded.base);
    raft_configuration_close(&configuration);
    return ERR_OK;
}

const char *voters_address(const struct voters *voters, uint64_t id)
{
    for (size_t i = 0; i < voters->count; i++) {
        if (voters->id[i] == id) {
            return voters->address[i];
        }
    }
    return NULL;
}

struct bytes voters_configuration(const struct voters *voters)
{
    return bytes_of(voters->configuration, voters->configuration_size);
}

void voters_configure(const struct voters *voters, struct raft_configuration *out)
{
    raft_configuration_init(out);
    for (size_t i = 0; i < voters->count; i++) {
        const int failed =
            raft_configuration_add(out, voters->id[i], voters->address[i], RAFT_VOTER);
        ASSERT(failed == 0);
    }
}
