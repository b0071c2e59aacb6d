/* SPDX-License-Identifier: Apache-2.0
 *
 * The output gate (specification §4.1, hole 30, I8): effects that came too late to
 * be done, in order, until a grant reopens it or the incarnation is over.
 *
 * Pure.
 */
#ifndef NODE_HOST_GATE_H
#define NODE_HOST_GATE_H

#include "base/list.h"
#include "node/host/host.h"

/* One effect and its bytes. */
struct kept_effect {
    struct list_link link; /* in `kept` */
    size_t size;
    uint64_t since_us;
    struct host_effect effect;
    uint8_t data[];
};

struct gate {
    struct list kept;
    size_t count;
    size_t size;     /* bytes of outputs */
    size_t tasks;    /* kept: their actors wait for an answer, but nothing runs */
    size_t actors;   /* effects kept that name an actor */
    size_t size_max; /* outputs beyond it are lost, as on a link that breaks */
    uint64_t kept_total;
    uint64_t dropped[HOST_DROP_COUNT];
};

void gate_init(struct gate *g, size_t size_max);
void gate_fini(struct gate *g);
/* Copies the effect. False: there is no room for the output, which is lost. */
bool gate_keep(struct gate *g, const struct host_effect *e, struct bytes bytes, uint64_t now_us);
/* Take the kept effect out; the caller frees it. */
void gate_take(struct gate *g, struct kept_effect *k);
/* The outputs are lost; what was to be done to actors is kept. */
void gate_drop_outputs(struct gate *g, enum host_drop why);
/* Drop the effects that were to be done to this actor. */
void gate_forget(struct gate *g, const struct actor *a);

#endif
