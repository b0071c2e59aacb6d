/* SPDX-License-Identifier: Apache-2.0
 *
 * Forwards: what becomes of requests of streams whose entity is another node's (R8F)?
 *
 *     request that is not mine -> forwards_pass() -> stream/forward.h -> log of the owner's stream
 *     answer of the owner -> forwards_on_frame() -> log of the stream that the request came by
 *
 * The node asks as a gateway does, under its incarnation. It asks by links that it has dialled
 * itself: then of the two streams of two nodes each has a link of its own, and what comes by a link
 * is of one of them. What cannot be forwarded is refused, MOVED: the lane's order is kept by that,
 * too (R7).
 */
#ifndef NODE_HOST_FORWARDS_H
#define NODE_HOST_FORWARDS_H

#include "node/host/requests.h"
#include "ring/view.h"
#include "stream/asker.h"

struct forwards {
    struct stream_asker asker; /* its id is 0 before the node is registered */
    uint64_t again_us;         /* from then on what is not joined is asked for again */
};

void forwards_init(struct host *h);
void forwards_fini(struct host *h);
/* The node serves under another incarnation, or (0) none: what it has sent on is UNKNOWN. Before
 * the streams by which that came are over. */
void forwards_begin(struct host *h, uint64_t incarnation);

/* Send a request of a stream on to its owner. False: it is to be refused. */
bool forwards_pass(struct host *h, struct admission *in, uint64_t position,
                   const struct view_member *owner);
/* Requests for that node may come to be sent on soon: a link is wanted. */
void forwards_expect(struct host *h, uint16_t slot);

/* Links to nodes came up, or members came: streams begin, or go on. */
void forwards_join(struct host *h);
/* That link has gone. Behind its end as a neighbour. */
void forwards_on_down(struct host *h, uint64_t link);
/* A frame of the stream that goes by that link, with its head, and what is behind that. */
void forwards_on_frame(struct host *h, const struct host_event *event,
                       const struct stream_head *head, struct reader *records);
/* Follow the ring that the view has: what was sent to those that are over is UNKNOWN. Behind the
 * deaths of those that ask here, and before anything says that ring, or a hold is released. */
void forwards_adopt(struct host *h);
void forwards_tick(struct host *h);

/* The next log that has something for the network, and its link; NULL = none. */
struct sendlog *forwards_unsent(struct host *h, uint64_t *link);
/* The stream that goes by that link; NULL = none. */
struct stream_client *forwards_by(const struct host *h, uint64_t link);
void forwards_feed(struct host *h, uint64_t link);
void forwards_check(const struct host *h);

#endif
