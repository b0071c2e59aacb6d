/* SPDX-License-Identifier: Apache-2.0
 *
 * What nodes were asked for and had not answered when a link to them was lost.
 * Whoever asked tells the leader until that node is back, or its vnodes are
 * others': should it have died, one of these actors may have killed it
 * (docs/decisions/054-strikes-at-the-death.md).
 *
 * Pure.
 */
#ifndef RING_UNANSWERED_H
#define RING_UNANSWERED_H

#include "ring/quarantine.h"
#include "ring/view.h"

enum {
    UNANSWERED_NODES_MAX = 4,   /* at a time, of one who asks; the oldest goes out */
    UNANSWERED_ACTORS_MAX = 32, /* of one node: those that were asked first */
};

struct unanswered_actor {
    struct quarantined actor;
    uint64_t before; /* that died, too, with the same request; 0 = none */
};

struct unanswered_node {
    uint64_t incarnation;
    struct unanswered_actor *actor; /* owned */
    size_t count;
};

/* All zero is an empty one. */
struct unanswered {
    struct unanswered_node node[UNANSWERED_NODES_MAX];
    size_t count;
};

void unanswered_fini(struct unanswered *u);

/* Begin a note of that incarnation, in the place of one that there is; it has no actors yet. */
struct unanswered_node *unanswered_begin(struct unanswered *u, uint64_t incarnation);
/* Add a request. False: there is no room for its actor. */
bool unanswered_put(struct unanswered_node *n, uint16_t kind, struct bytes id, uint64_t before);
/* The node is there again: drop its entry. */
void unanswered_drop(struct unanswered *u, uint64_t incarnation);
/* Drop those that own nothing by that view: they left, came back as another, or were replaced. */
void unanswered_follow(struct unanswered *u, const struct view *view);

/* Return the list as the wire has it: `u->count` entries, owned; NULL if there are none. */
Rh__Unanswered **unanswered_wire(const struct unanswered *u);
void unanswered_wire_free(Rh__Unanswered **wire, size_t count);
/* The other way, in the place of what `u` had. What is out of range is left out. */
void unanswered_read(struct unanswered *u, Rh__Unanswered *const *wire, size_t count);
Rh__Suspect *unanswered_suspect(const struct unanswered_actor *a);
/* False: it is none. */
bool unanswered_read_suspect(struct unanswered_actor *a, const Rh__Suspect *in);

#endif
