/* SPDX-License-Identifier: Apache-2.0
 *
 * Pins: the cells that operators want to be at a node, because an id is to live
 * there, or the vnode. An id has no smaller place than its cell, so all others of
 * that cell go along; hence pins with a cell in common must say the same.
 *
 * By the node's name, for that outlives its registrations: a node that stops and
 * comes back has its pins again. The leader's plans do what they say
 * (txn/leader/wishes.h); here they are only kept.
 *
 * Pure and deterministic: part of the replicated state (specification §3.1), from
 * FLEET_FORMAT_PLACEMENT on.
 */
#ifndef TXN_STATE_PINS_H
#define TXN_STATE_PINS_H

#include "txn/state/change.h"

enum { PINS_MAX = 100000, PINS_OF_COMMAND_MAX = 4096 };

void apply_pin(struct change *c, const Rh__CommandPin *in);

/* Fill `pin` from the wire's form; of an id the cell is found by the state's ring and key. It
 * borrows the id. What is wrong with it (static text), or NULL. */
const char *pins_read(const struct state *s, const Rh__Pin *in, struct state_pin *pin);
/* The first pin that has a cell in common with `pin`, which says something else, and does not take
 * its place; NULL = none. O(pins). */
const struct state_pin *pins_rival(const struct state *s, const struct state_pin *pin);
/* Order of two pins: < 0, 0, > 0. Equal ones take each other's place. */
int pins_compare(const struct state_pin *a, const struct state_pin *b);
/* Two pins of one command that exclude each other. */
struct pins_clash {
    size_t first; /* indices: first < second */
    size_t second;
    bool twice; /* they name the same; else they have a cell in common and say different things */
};
/* Write the first `max` clashes among pins in any order into `out`; returns how many there are.
 * O(count log count); of many that clash with the same one, each is a clash with that one. */
size_t pins_clashes(const struct state_pin *pin, size_t count, struct pins_clash *out, size_t max);
/* The pin at that place; NULL = none. */
const struct state_pin *pins_find(const struct state *s, const struct state_pin *pin);
/* Append one behind the others, for whoever loads them in their order: of up to 255 bytes of id, or
 * none, which are copied; the rest as `pin` says. */
void pins_append(struct state *s, const struct state_pin *pin, struct bytes id);
/* True: they are in order, in the ring, not too many, and none is another's rival. */
bool pins_are_good(const struct state *s);
void pins_fini(struct state *s);

static inline struct bytes pins_id(const struct state_pin *pin)
{
    return bytes_of(pin->id, pin->id_size);
}

#endif
