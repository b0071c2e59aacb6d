/* SPDX-License-Identifier: Apache-2.0
 *
 * Generations of the coordinators' group: who votes now, and who ever did.
 *
 * libraft cannot change its voters (guard rule G4), so a group never does. It
 * ends instead, with an entry that names the next one: the SEAL. Nothing after
 * it in that log has any effect, so whoever has applied it has the same state,
 * and the next generation begins from that, with other voters.
 *
 * An id stands for one folder for ever: a voter that left, or was wiped, comes
 * back under an id that was never used. Hence `former`.
 *
 * Pure.
 */
#ifndef RAFT_GENERATION_H
#define RAFT_GENERATION_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GENERATION_VOTERS_MAX = 5,
    GENERATION_FORMER_MAX = 250,
    GENERATION_ID_MAX = 255,
    GENERATION_ADDRESS_MAX = 127,
    GENERATION_MAX = 65535 /* it stands in 16 bits of each message */
};

struct generation_member {
    uint64_t id;
    uint64_t identity; /* of its folder; 0 = nobody knew it */
};

struct generation_voter {
    uint64_t id;
    uint64_t identity;
    char address[GENERATION_ADDRESS_MAX + 1];
};

struct generation {
    uint64_t
        number; /* 0 = as the group was founded: no voter's identity or address is known here */
    struct generation_voter voter[GENERATION_VOTERS_MAX]; /* by id */
    size_t voter_count;
    struct generation_member former[GENERATION_FORMER_MAX];
    size_t former_count;
};

/* One voter of the set that somebody wants. */
struct generation_wish {
    uint64_t id;
    char address[GENERATION_ADDRESS_MAX + 1];
    uint64_t identity; /* of its folder, if it is known, else 0 */
    bool linked;       /* it is there */
    bool empty;        /* it is there with a folder that waits to join */
};

/* The generation after `now` with the voters of `wish`. `now` has its voters' identities. False:
 * `why` says what is wrong, and `out` is not to be used. Refused are: any number but 1, 3 or 5; an
 * id or address twice; an id that was used before; a new one that is not there with an empty
 * folder; a set of which no majority is there; the set as it is. */
bool generation_next(const struct generation *now, const struct generation_wish *wish, size_t count,
                     struct generation *out, char *why, size_t why_size);

/* Likewise, of what is refused whichever processes are there now: all but those that are not there,
 * or not with an empty folder. Asks only for ids and addresses. */
bool generation_judge(const struct generation *now, const struct generation_wish *wish,
                      size_t count, char *why, size_t why_size);

/* Return the identity of the folder that is, or was, the voter of this id; 0 = nobody knew it, or
 * there was none. */
uint64_t generation_identity(const struct generation *g, uint64_t id);
/* NULL: it is none of them now. */
const struct generation_voter *generation_voter(const struct generation *g, uint64_t id);
/* True if the id was a voter's, in this generation or one before. */
bool generation_used(const struct generation *g, uint64_t id);

void generation_put(struct buffer *out, const struct generation *g);
/* False: it does not decode, or makes no sense. */
bool generation_get(struct bytes in, struct generation *out);

/* Write the generation as a command of a log: a SEAL (storage/log/entry.h). */
void generation_put_seal(struct buffer *out, const struct generation *g);
bool generation_get_seal(struct bytes command, struct generation *out);

/* "1=host:port,2=host:port" into wishes, ids and addresses only. False: it is no such list, or has
 * more than five. */
bool generation_parse(const char *text, struct generation_wish *wish, size_t *count);

#endif
