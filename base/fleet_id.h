/* SPDX-License-Identifier: Apache-2.0
 *
 * Which fleet is this? 128 random bits, drawn when its first coordinators form
 * and kept for its life. The cluster's name is chosen by people, so two fleets
 * may have the same; docs/decisions/038.
 *
 * Pure.
 */
#ifndef BASE_FLEET_ID_H
#define BASE_FLEET_ID_H

#include <stdbool.h>
#include <stdint.h>

enum { FLEET_ID_TEXT_SIZE = 33 }; /* 32 hexadecimal digits and the NUL */

struct fleet_id {
    uint64_t high; /* both 0: not known */
    uint64_t low;
};

static inline bool fleet_id_known(struct fleet_id f)
{
    return f.high != 0 || f.low != 0;
}

static inline bool fleet_id_same(struct fleet_id a, struct fleet_id b)
{
    return a.high == b.high && a.low == b.low;
}

/* True if these are two fleets. A process that doesn't know its own fleet yet may belong to any. */
static inline bool fleet_id_differs(struct fleet_id a, struct fleet_id b)
{
    return fleet_id_known(a) && fleet_id_known(b) && !fleet_id_same(a, b);
}

/* "0f3c…", or "" if it is not known. */
void fleet_id_print(struct fleet_id f, char text[FLEET_ID_TEXT_SIZE]);

/* Read an id of 32 digits, up to the text's end or a newline. False: these are no 32 digits, or all
 * are 0. */
bool fleet_id_parse(const char *text, struct fleet_id *out);

#endif
