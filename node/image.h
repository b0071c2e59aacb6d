/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor's image: what travels to its new owner. Its order records, then the
 * state that its own code exported. Made once, never changed, shared by count.
 *
 *     0        1       2        4             8
 *     +--------+-------+--------+-------------+---------------------+---------+
 *     | format | flags | u16 0  | order count | count order records | state … |
 *     +--------+-------+--------+-------------+---------------------+---------+
 *       u8 = 1   u8               u32           28 bytes each
 *     order record: u64 session, u32 epoch, u64 last, u64 base
 *     flags: 1 = it has state
 *
 * Little endian. Pure.
 */
#ifndef NODE_IMAGE_H
#define NODE_IMAGE_H

#include "base/bytes.h"
#include "node/order.h"

#include <stdbool.h>

enum { IMAGE_FORMAT = 1, IMAGE_HEADER_SIZE = 8, IMAGE_ORDER_SIZE = 28 };

struct image {
    size_t refs;
    uint64_t position;
    uint16_t kind;
    struct bytes id;
    struct bytes data;  /* the whole of the above */
    struct bytes state; /* its end */
    bool has_state;
    uint32_t order_count;
    uint8_t memory[];
};

struct image_order {
    uint64_t session;
    uint32_t epoch;
    uint64_t last;
    uint64_t base;
};

/* Whose image it is. */
struct image_name {
    uint64_t position;
    uint16_t kind;
    struct bytes id;
};

/* Returns an image with one reference. `orders` is an actor's list of struct order; `state` NULL
 * = the actor has none. */
struct image *image_make(struct image_name name, const struct list *orders,
                         const struct bytes *state);
/* From received bytes; NULL if they are no image. */
struct image *image_parse(struct image_name name, struct bytes data);
struct image *image_share(struct image *image);
void image_free(struct image *image); /* one reference; takes NULL */

struct image_order image_order_at(const struct image *image, uint32_t index);

#endif
