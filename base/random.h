/* SPDX-License-Identifier: Apache-2.0
 *
 * Randomness of the kernel, for shells only: cores draw from a seeded prng.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Fill with the kernel's randomness; aborts if it gives none. */
void random_fill(void *data, size_t size);

/* Return a random number, never 0. */
uint64_t random_u64(void);

#endif
