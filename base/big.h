/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as the clients' protocol writes them: big endian. The caller has
 * checked that there is room. put… return where the next field goes.
 */
#ifndef BASE_BIG_H
#define BASE_BIG_H

#include <stdint.h>

static inline uint32_t big_get16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static inline uint32_t big_get24(const uint8_t *at)
{
    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

static inline uint32_t big_get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | big_get24(at + 1);
}

static inline uint64_t big_get64(const uint8_t *at)
{
    return (uint64_t)big_get32(at) << 32 | big_get32(at + 4);
}

static inline uint8_t *big_put8(uint8_t *at, uint8_t value)
{
    *at = value;
    return at + 1;
}

static inline uint8_t *big_put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

static inline uint8_t *big_put32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
    return at + 4;
}

static inline uint8_t *big_put64(uint8_t *at, uint64_t value)
{
    return big_put32(big_put32(at, (uint32_t)(value >> 32)), (uint32_t)value);
}

#endif
