/* SPDX-License-Identifier: Apache-2.0
 *
 * Traced requests: what does this node tell of each (base/span.h)?
 *
 * All of it is below the span that asks: what held the request, that it was sent on, how long it
 * waited for its actor, and the actor's code, which has the context of that span.
 */
#ifndef NODE_HOST_TRACED_H
#define NODE_HOST_TRACED_H

#include "base/bytes.h"
#include "node/books/waiting.h"

struct host;
struct host_effect;
struct admission;

static inline bool traced_is(const struct request_record *r)
{
    return __builtin_expect((r->flags & REQUEST_TRACED) != 0, false);
}
/* What waited for that transaction goes on: one request, and all of a queue. */
void traced_held(struct host *h, const struct waiting *w, uint64_t txn);
void traced_all_held(struct host *h, const struct queue *q, uint64_t txn);
/* The request is being sent to another node. */
void traced_forward(struct host *h, const struct admission *in);
/* The actor begins to run it, by that ticket: put its body, with the handler's context, behind the
 * effect's bytes. */
void traced_run(struct host *h, const struct admission *in, uint64_t ticket, struct host_effect *e);
/* The run of that ticket has ended so. */
void traced_end(struct host *h, uint64_t ticket, enum answer_code code);
/* Take the context off a record that a node of an older version gets. */
void traced_strip(struct request_record *r);

#endif
