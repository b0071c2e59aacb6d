/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: what becomes of requests that come by streams, and of their answers (decision 074)?
 *
 *     frame -> streams_on_frame() -> stream/servers.h -+-> steady, brief: runs at once (serve.c)
 *                                                      +-> admit_again(), as a record
 *     whatever ends it -> streams_end(), streams_refuse() -> the stream's log -> host_unsent()
 *
 * A request of a stream has no record of order: its lane's order is that of arrival. So it waits
 * in two places only, which keep that, its actor's mailbox and a hold. What would have to wait for
 * anything else is refused, and the fence of the refusal keeps back what is behind it (R7). Who
 * does not own its entity refuses it, too: MOVED (R8F allows that).
 *
 * Rules Rn are in stream/README.md.
 */
#ifndef NODE_HOST_STREAMS_H
#define NODE_HOST_STREAMS_H

#include "node/host/host.h"
#include "node/host/requests.h"
#include "stream/servers.h"

struct streams {
    struct stream_servers servers;    /* its incarnation is 0 before the node is registered */
    const struct host_server *server; /* runs what is steady in this step; NULL = nobody does */
    uint64_t forgotten;               /* streams that were away for T_gone (R15) */
};

void streams_init(struct host *h);
void streams_fini(struct host *h);
/* The node serves under another incarnation: streams to that may begin. */
void streams_begin(struct host *h);
/* Nothing of any request is left here: all streams are over. */
void streams_drop_all(struct host *h);

/* Take the frame of a HOST_FRAME. A peer that may not send it loses its link. */
void streams_on_frame(struct host *h, const struct host_event *event);
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
/* True if a request that has waited may run now (R7, R14). If not, it has been ended. */
bool streams_may_run(struct host *h, struct admission *in, uint64_t position);
/* The entry of a request that ran. */
void streams_end(struct host *h, const struct stream_mark *mark, const struct answer_record *a);
/* The entry of one that did not run, and of its fence. */
void streams_refuse(struct host *h, const struct stream_mark *mark, uint64_t position,
                    enum answer_code code, uint64_t aux);

#endif
