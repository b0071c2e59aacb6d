/* SPDX-License-Identifier: Apache-2.0
 *
 * A probe: it follows the calls that wait for each other, from the actor that asks to the one that
 * is asked, over as many nodes as there are on the way. One that comes back to the call where it
 * began has found a circle of actors that would wait for each other until their deadlines
 * (node/books/waits.h).
 *
 * Pure.
 */
#ifndef NODE_BOOKS_PROBE_H
#define NODE_BOOKS_PROBE_H

#include "base/bytes.h"
#include "base/err.h"
#include "wire/control.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* A call, as its request names it (wire/record.h): no other in the fleet has that name. All zero =
 * none. */
struct call_name {
    uint64_t node; /* incarnation of the node that hosts the caller */
    uint64_t session;
    uint64_t seq;
};

struct probe {
    struct call_name origin;   /* the call where it began, or the one that it goes on for */
    struct call_name call;     /* it comes along this call, … */
    uint16_t kind;             /* … to whom that asks */
    struct bytes id;           /* borrowed */
    struct call_name greatest; /* of the calls that were made on its way by an actor in whose
                                  mailbox the call before it waits */
    uint32_t round;            /* tells this probe from earlier ones of the same origin */
    uint32_t hops;             /* calls on its way so far */
};

/* < 0, 0, > 0 as memcmp(): any order will do that all nodes agree on. */
int call_name_compare(const struct call_name *a, const struct call_name *b);
static inline bool call_name_same(const struct call_name *a, const struct call_name *b)
{
    return a->node == b->node && a->session == b->session && a->seq == b->seq;
}

/* Append it as a packed Control. */
void probe_put(struct buffer *out, const struct probe *p);
/* Borrows from the message. ERR_CORRUPT: it names no call, or no actor. */
MUST_CHECK enum err probe_get(const Rh__Probe *in, struct probe *p);

#endif
