/* SPDX-License-Identifier: Apache-2.0
 *
 * Remembered ids: the actors that are to live again, unasked, when what had them is gone. Nodes
 * tell which ids of such kinds live (node/host/remember.c), and ask for them when they own cells
 * that nobody hands over.
 *
 * By kind and id, and not by cell: where an id lives is the ring's to say, also when its kind is
 * placed another way later.
 *
 * Pure and deterministic: part of the replicated state (specification §3.1), from
 * FLEET_FORMAT_PLACEMENT on. It is not in what gateways and nodes get.
 */
#ifndef TXN_STATE_REMEMBERED_H
#define TXN_STATE_REMEMBERED_H

#include "txn/state/change.h"

/* In all, whatever a leader's option says; rows of one command. */
enum { REMEMBERED_MAX = 1000000, REMEMBERED_OF_COMMAND_MAX = 1024 };

void apply_remember(struct change *c, const Rh__CommandRemember *in);

/* True: these bytes and this number can be an id and a kind. */
bool remembered_is_name(const Rh__Actor *actor);
/* The node owns the cell of the id: its word of it counts. */
bool remembered_owns(const struct state *s, const struct state_node *node, const Rh__Actor *actor);
/* The index of the first row at or behind that place; `remembered_count` = none is. */
size_t remembered_from(const struct state *s, uint16_t kind, struct bytes id);
bool remembered_has(const struct state *s, uint16_t kind, struct bytes id);
/* Append one behind the others, for whoever loads them in their order; the id is copied. */
void remembered_append(struct state *s, uint16_t kind, struct bytes id);
/* True: they are in order, and not too many. */
bool remembered_are_good(const struct state *s);
void remembered_fini(struct state *s);

static inline struct bytes remembered_id(const struct state_remembered *r)
{
    return bytes_of(r->id, r->id_size);
}

#endif
