/* SPDX-License-Identifier: Apache-2.0
 *
 * SipHash-1-3 of eight messages of one size at once, where the processor has
 * registers for it (AVX-512). The same results as ring/hash.h.
 */
#ifndef RING_LANES_H
#define RING_LANES_H

#include "ring/ring.h"

enum {
    LANES = 8,
    LANES_WORDS_MAX = 32, /* of a message of 255 bytes: 31 whole ones, and the last */
};

/* False: do not call lanes_hash(). */
bool lanes_usable(void);

/* word[w][lane] is word w of a message, little endian; the last one as siphash_end() takes it. */
void lanes_hash(struct ring_key key, uint64_t (*word)[LANES], size_t words, uint64_t hash[LANES]);

#endif
