/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of voters of one generation, and libraft's configuration made from
 * it. It never changes within one (libraft 0.15.0 breaks when it does), so every
 * configuration met in a log, a snapshot or a message must be these bytes.
 */
#ifndef RAFT_VOTERS_H
#define RAFT_VOTERS_H

#include "base/bytes.h"
#include "base/err.h"
#include "storage/log/log.h"

#include <raft.h>
#include <stdbool.h>

struct voters {
    uint64_t id[LOG_VOTERS_MAX]; /* ascending */
    size_t count;
    uint16_t generation;              /* of the group: in each message (raft/generation.h) */
    char address[LOG_VOTERS_MAX][24]; /* the id as text: real addresses are no business of Raft */
    uint8_t configuration[LOG_CONFIGURATION_MAX];
    size_t configuration_size;
};

/* ERR_INVALID: not 1, 3 or 5 of them, a zero, or one twice. */
MUST_CHECK enum err voters_init(struct voters *voters, const uint64_t *id, size_t count);

/* Address of `id`, or NULL if it is none of them. */
const char *voters_address(const struct voters *voters, uint64_t id);

/* The voters in libraft's encoding. Borrowed from `voters`. */
struct bytes voters_configuration(const struct voters *voters);

/* Fill an uninitialised configuration; the caller closes it. */
void voters_configure(const struct voters *voters, struct raft_configuration *out);

#endif
