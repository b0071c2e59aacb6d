/* SPDX-License-Identifier: Apache-2.0
 *
 * Which actor is meant: its id, its kind, and where the ring has it.
 */
#ifndef NODE_BOOKS_IMAGE_NAME_H
#define NODE_BOOKS_IMAGE_NAME_H

#include "base/bytes.h"

#include <stdint.h>

struct image_name {
    uint64_t position;
    uint16_t kind;
    struct bytes id;
};

#endif
