/* SPDX-License-Identifier: Apache-2.0
 *
 * What order.c (records) and saved.c (their answers) share.
 */
#ifndef NODE_BOOKS_ORDER_INSIDE_H
#define NODE_BOOKS_ORDER_INSIDE_H

#include "node/books/order.h"

/* Part of an order that it has only while requests came early, and while answers are saved that do
 * not fit into the record: one cache line. */
struct order_more {
    struct queue early;       /* sorted by seq: they wait for their predecessor */
    struct strand_link large; /* in the book's list, if one of its answers is large */
    uint64_t oldest_seq;      /* of `oldest`: a line less to look at */
    uint32_t order;
    uint32_t oldest;          /* struct saved, by seq; 0 = none */
    uint32_t newest;          /* without an oldest: memory for the next one; or 0 */
    uint32_t large_size : 24; /* bytes of its large answers */
    uint32_t saved_count : 8;
};
_Static_assert(sizeof(struct order_more) == 64, "a line");

/* ---- order.c */

/* NULL = it has none. */
struct order_more *order_more(const struct orders *o, const struct order *order);
/* Made if it has none. */
struct order_more *order_more_new(struct orders *o, struct order *order);
/* Given back if nothing is in it, with the memory that it keeps. */
void order_more_trim(struct orders *o, struct order *order);

/* ---- saved.c */

/* The least seq of its saved answers. False = there are none. */
bool order_oldest(const struct orders *o, const struct order *order, uint64_t *seq);
/* Release the oldest answer. The memory stays, as there may be another answer soon:
 * order_more_trim(). */
void order_release_oldest(struct orders *o, struct order *order);

#endif
