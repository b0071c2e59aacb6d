/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32C by the processor's own instruction where there is one, else by a
 * table.
 */
#include "base/crc.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

enum { SLICES = 8, LINE = 64 };

static const uint32_t polynomial = 0x82f63b78u; /* 0x1EDC6F41 with its bits reversed */

// table[0] is the usual byte table; table[k] advances a byte that stands k
// bytes further on, so that eight bytes cost eight independent loads.
static uint32_t table[SLICES][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool by_machine; // it has an instruction for this

static void prepare(void)
{
#if defined(__x86_64__)
    by_machine = __builtin_cpu_supports("sse4.2") != 0;
#endif
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
        }
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < SLICES; k++) {
            table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xff];
        }
    }
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t more_by_machine(uint32_t crc, const uint8_t *at,
                                                                  size_t size)
{
    uint64_t word = 0;
    uint64_t sum = ~crc;

    for (; size >= LINE; size -= LINE, at += LINE) {
#pragma GCC unroll 8
        for (size_t i = 0; i < LINE; i += sizeof word) {
            memcpy(&word, at + i, sizeof word);
            sum = _mm_crc32_u64(sum, word);
        }
    }
    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        sum = _mm_crc32_u64(sum, word);
    }
    for (crc = (uint32_t)sum; size > 0; size--, at++) {
        crc = _mm_crc32_u8(crc, *at);
    }
    return ~crc;
}
#else
static uint32_t more_by_machine(uint32_t crc, const uint8_t *at, size_t size)
{
    return crc32c_more_by_table(crc, at, size);
}
#endif

uint32_t crc32c_more_by_table(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;

    (void)pthread_once(&once, prepare);
    crc = ~crc;
    for (; size >= SLICES; size -= SLICES, at += SLICES) {
        const uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                                    (uint32_t)at[3] << 24);

        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
              table[4][low >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^
              table[0][at[7]];
    }
    for (; size > 0; size--, at++) {
        crc = (crc >> 8) ^ table[0][(crc ^ *at) & 0xff];
    }
    return ~crc;
}

uint32_t crc32c_more(uint32_t crc, const void *data, size_t size)
{
    (void)pthread_once(&once, prepare);
    return by_machine ? more_by_machine(crc, data, size) : crc32c_more_by_table(crc, data, size);
}

uint32_t crc32c(const void *data, size_t size)
{
    return crc32c_more(0, data, size);
}
