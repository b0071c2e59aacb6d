/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: what becomes of requests that come by streams, and of their answers (decision 074)?
 *
 *     frame -> streams_on_frame() -> stream/servers.h -+-> steady, brief: runs at once (serve.c)
 *                                                      +-> admit_again(), as a record -> runs, or
 *                                                          goes on to its owner (forwards.h)
 *     whatever ends it -> streams_end(), streams_refuse() -> the stream's log -> host_unsent()
 *
 * A request of a stream has no record of order: its lane's order is that of arrival. So it waits
 * in two places only, which keep that, its actor's mailbox and a hold. What would have to wait for
 * anything else is refused, and the fence of the refusal keeps back what is behind it (R7).
 *
 * A node that asks is over when the ring does not name its incarnation any more, or when others
 * took over what it had, and it is in the ring still: that one never serves again.
 *
 * Rules Rn are in stream/README.md.
 */
#ifndef NODE_HOST_STREAMS_H
#define NODE_HOST_STREAMS_H

#include "node/host/cells.h"
#include "node/host/requests.h"
#include "stream/servers.h"

struct streams {
    struct stream_servers servers;    /* its incarnation is 0 before the node is registered */
    const struct host_server *server; /* runs what is steady in this step; NULL = nobody does */
    uint64_t dropped[STREAM_DROP_COUNT];
    uint64_t *over; /* owned: incarnations that the ring names, and are over */
    size_t over_count;
    unsigned unlooked;             /* requests of a frame since the last look at the clock */
    const struct kind_state *kind; /* of the last request in this step; NULL = none, or not here */
};

/* Some requests of a frame on their way to their actors (streams.c, serve.c). */
struct some_taken {
    const struct stream_some *some;
    uint64_t position[STREAM_TAKEN_AT_ONCE];
    struct actor *found[STREAM_TAKEN_AT_ONCE]; /* by prefetch_taken(); NULL = none, or not known any
                                                  more */
    struct at_once run; /* of the one that runs. Those before it left `chain_count` 0 */
};

void streams_init(struct host *h);
void streams_fini(struct host *h);
/* The node serves under another incarnation: streams to that may begin. */
void streams_begin(struct host *h);
/* Nothing of any request is left here: all streams are over. */
void streams_drop_all(struct host *h);

/* Take the frame of a HOST_FRAME. A peer that may not send it loses its link. */
void streams_on_frame(struct host *h, const struct host_event *event);
/* An output did not leave, nor will. A stream of which it was JOINED has no connection now, so its
 * log waits; its asker says JOIN again. */
void streams_unsaid(struct host *h, const struct host_effect *e);
/* That link goes: before it is no neighbour any more. */
void streams_on_down(struct host *h, uint64_t peer);
/* Follow the ring that the view has: nodes that are over are dead askers, and what is said from now
 * on says so. Before holds are released. */
void streams_adopt(struct host *h);
/* Frames that waited for that ring are taken. Behind the holds, whose actors may be asked for. */
void streams_go_on(struct host *h);
void streams_tick(struct host *h);
/* R16: no asker waits for anything of this node, nor has something on its way that is not known
 * of. */
bool streams_rest(const struct host *h);

/* A request that was taken just now, as a record, which `record` gets; it borrows that. */
struct admission streams_admission(const struct host *h, const struct stream_taken *t,
                                   struct request_record *record);
/* True if a request that has waited in its mailbox may run now (R7, R14, R8F). If not, it has been
 * ended. */
bool streams_may_run(struct host *h, struct admission *in, uint64_t position);
/* True if a request may be admitted that is for this node or (`mine` is false) to be sent on.
 * Likewise. */
bool streams_may_go_on(struct host *h, struct admission *in, uint64_t position, bool mine);
/* The entry of a request that ran. */
void streams_end(struct host *h, const struct stream_mark *mark, const struct answer_record *a);
/* Likewise, of one that began some time ago. If three times the sum is in logs then, and its stream
 * has its share, that is over, and loses its connection. */
void streams_ran(struct host *h, const struct stream_mark *mark, const struct answer_record *a);
/* The entry of one that was at it when its actor ended. It may be asked again, behind a fence. */
void streams_unknown(struct host *h, const struct stream_mark *mark, uint64_t position);
/* The entry of one that did not run, and of its fence. */
void streams_refuse(struct host *h, const struct stream_mark *mark, uint64_t position,
                    enum answer_code code, uint64_t aux);
/* Count a frame of what would be another node's stream, and is dropped: none that is joined has it.
 */
void streams_stray(struct host *h);
/* The log of that stream has grown by what came back of a forward: as streams_ran(). */
void streams_relayed(struct host *h, struct stream_server *s);

/* ---- who is over */

/* True if a node of that incarnation is over by the ring. */
bool streams_is_over(const struct host *h, uint64_t incarnation);
/* A change was applied to the view. */
void streams_note_taken_over(struct host *h, const Rh__Delta *delta);
/* A whole configuration was, behind that one. */
void streams_note_robbed(struct host *h, const struct view *before);

#endif
