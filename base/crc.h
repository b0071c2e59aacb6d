/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32C (Castagnoli, polynomial 0x1EDC6F41 reflected): finds torn and rotten
 * bytes on disk and in hand-overs. It is no protection against an attacker.
 */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Checksum of a whole run of bytes; 0 for none. "123456789" gives 0xE3069283. */
uint32_t crc32c(const void *data, size_t size);

/* Go on from `crc`, the checksum of the bytes before these:
 * crc32c_more(crc32c(a), b) is crc32c of a followed by b. */
uint32_t crc32c_more(uint32_t crc, const void *data, size_t size);

/* Like crc32c_more(), but never uses the CPU's CRC instruction. For machines without one, and for
 * tests. */
uint32_t crc32c_more_by_table(uint32_t crc, const void *data, size_t size);

#endif
