/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor's image: what travels to its new owner. Its order records, then the
 * state that its own code exported. Made once, never changed, shared by count.
 *
 *     0        1       2        4             8
 *     +--------+-------+--------+-------------+---------------------+---------+
 *     | format | flags | u16 0  | order count | count order records | state … |
 *     +--------+-------+--------+-------------+---------------------+---------+
 *       u8 = 2   u8               u32
 *     order record: u64 session, u32 epoch, u64 last, u64 base, u8 count of saved answers, these
 *     saved answer: u64 seq (growing), u64 fence, u8 code, u32 size, its bytes
 *     flags: 1 = it has state; 2 = the bond of its client stands before that (wire/session.h);
 *     4 = a bond of another size does, behind a u32 of that; 8 = the state has a version: a u32,
 *     never 0, behind the order records. A process that does not know of versions takes such an
 *     image for none, and so refuses it, as it can't tell whether it reads the state; 16, 32 and
 *     48 = what the fleet remembers of it, enum actor_memory
 *
 * Of the answers the newest of each record go along, as many as IMAGE_ANSWERS_SIZE_MAX takes.
 *
 * Little endian. Pure.
 */
#ifndef NODE_BOOKS_IMAGE_H
#define NODE_BOOKS_IMAGE_H

#include "base/bytes.h"
#include "base/table.h"
#include "node/books/image_name.h"
#include "node/books/order.h"
#include "wire/cursor.h"

#include <stdbool.h>

enum {
    IMAGE_FORMAT = 2,
    IMAGE_HEADER_SIZE = 8,
    IMAGE_ORDER_SIZE = 29,
    IMAGE_ANSWER_SIZE = 21,
    IMAGE_ANSWERS_SIZE_MAX = 256 * 1024, /* bytes of saved answers in one image */
};

struct image_block;

/* Memory for images, in blocks: it is asked for once for many of them. A block goes with the last
 * of its images, so where one may stay long by itself blocks are small. */
struct image_store {
    uint32_t block_size;
    struct image_block *open; /* the next one is put there; NULL = none */
};
enum {
    IMAGE_BLOCK_BRIEF = 64 * 1024, /* of images that go soon, and together */
    IMAGE_BLOCK_LONG = 8 * 1024,
};

struct image {
    size_t refs;
    struct image_block *block; /* it is in that; NULL = its memory is its own */
    uint64_t position;
    uint16_t kind;
    uint32_t state_version; /* 0 = it has none */
    struct bytes id;
    struct bytes data;  /* the whole of the above */
    struct bytes bond;  /* of the client that is bound to it; empty = none */
    struct bytes state; /* right behind: the end */
    bool has_state;
    uint8_t actor_memory; /* enum actor_memory */
    uint32_t order_count;
    uint32_t staged_at;       /* its place in its staging, … */
    struct table_link staged; /* … and by position there */
    uint8_t memory[];
};

struct image_order {
    uint64_t session;
    uint32_t epoch;
    uint64_t last;
    uint64_t base;
    uint8_t answer_count;
};

/* Returns an image with one reference, with the orders of `a`: NULL = there are none. `state` NULL
 * = the actor has none. */
struct image *image_make(struct image_name name, const struct orders *orders, const struct actor *a,
                         const struct bytes *state);
/* Contents of an image. */
struct image_cargo {
    const struct orders *orders; /* with `actor`: its order records go along; may be NULL */
    const struct actor *actor;
    struct bytes bond;         /* of its client; empty = it has none */
    const struct bytes *state; /* NULL = it has none */
    uint32_t state_version;    /* of the state; 0 = none */
    struct image_store *store; /* where to put it; NULL = on its own */
};
struct image *image_make_bound(struct image_name name, const struct image_cargo *cargo);
/* Bond and state as they go to its code. */
static inline struct bytes image_carried(const struct image *image)
{
    return bytes_of(image->bond.data, image->bond.size + image->state.size);
}
/* From received bytes; NULL if they are no image. `store` as in image_cargo. */
struct image *image_parse(struct image_name name, struct bytes data, struct image_store *store);
struct image *image_share(struct image *image);
void image_free(struct image *image); /* one reference; takes NULL */
/* Close the store. Its images may outlive it. */
void image_store_fini(struct image_store *store);

/* Reads the orders of an image, in turn, each with its answers. */
struct image_walk {
    struct reader in;
    uint32_t orders_left;
    uint8_t answers_left; /* of the order read last */
};
struct image_walk image_walk(const struct image *image);
/* False = no more. */
bool image_next_order(struct image_walk *w, struct image_order *out);
/* Read the next answer of the order read last; the body is borrowed from the image. False = no
 * more. */
bool image_next_answer(struct image_walk *w, struct order_answer *out);

#endif
