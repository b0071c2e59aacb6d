/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers that coordinators draw: of transactions, of the ring's versions, of incarnations and
 * generations. The era is in the upper bits, and each restore of a backup raises it, so people see
 * them as ERA.COUNT: "1.76".
 *
 * Pure.
 */
#ifndef BASE_STAMP_H
#define BASE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

enum { STAMP_COUNT_BITS = 40, STAMP_TEXT_SIZE = 24 };

/* Write "1.76" into `text`, and return it. One of no era, as 0 for none, is an integer: "0". */
const char *stamp_text(uint64_t number, char text[STAMP_TEXT_SIZE]);

/* The text of a number, for the block in which it stands: printf("%s", STAMP(txn)). */
#define STAMP(number) stamp_text((number), (char[STAMP_TEXT_SIZE]){0})

/* Read "1.76", or the same as an integer, "1099511627852". False: it is neither. */
bool stamp_parse(const char *text, uint64_t *number);

#endif
