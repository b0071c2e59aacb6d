/* SPDX-License-Identifier: Apache-2.0
 *
 * What `ringhold trace` brings back: a hop for each node that the request came
 * to, each written by that node from its own clock. It travels as the payload of
 * a session note (wire/session.h) and comes back as its answer's body.
 *
 * A hop is u8 size and bytes of the node's name, u64 version, u32 waited_us,
 * u32 ran_us, u8 did. Little endian.
 */
#ifndef WIRE_TRACE_H
#define WIRE_TRACE_H

#include "base/bytes.h"
#include "base/err.h"
#include "wire/cursor.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_NAME_MAX = 63, TRACE_SIZE_MAX = 1024 /* more hops than a request can make */ };

enum trace_did {
    TRACE_HELD = 1,    /* it waited here for a vnode's move */
    TRACE_FORWARD = 2, /* it was sent on to the next */
    TRACE_RAN = 4,     /* it came to its actor */
};

struct trace_hop {
    struct bytes node;  /* at most TRACE_NAME_MAX; borrowed */
    uint64_t version;   /* of the node's ring then */
    uint32_t waited_us; /* from its arrival until it was run or sent on */
    uint32_t ran_us;    /* RAN: until the actor's turn was over, its worker's queue included */
    uint8_t did;        /* enum trace_did */
};

/* Append one behind the others; not if they would be more than TRACE_SIZE_MAX with it. */
void trace_put(struct buffer *out, const struct trace_hop *hop);
/* Take the next one off; false = no more, or it makes no sense: then `in->bad`. */
bool trace_next(struct reader *in, struct trace_hop *hop);
/* One of these hops has done that. */
bool trace_has(struct bytes hops, uint8_t did);
/* Fill in how long the actor of the last hop took, which was not known when the hop was put. */
void trace_set_ran(struct buffer *hops, uint32_t ran_us);

#endif
