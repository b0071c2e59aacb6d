/* SPDX-License-Identifier: Apache-2.0
 *
 * A command while it is applied: what its handlers share. A handler first refuses, then acts: once
 * it has drawn a stamp it does not fail.
 */
#ifndef TXN_STATE_CHANGE_H
#define TXN_STATE_CHANGE_H

#include "txn/state/state.h"

struct change {
    struct state *s;
    struct state_result *r;
    uint64_t time_us;
    const char *by; /* who asked for it; "" = the coordinator by itself */
};

/* The command is rejected; `why` is static text. */
void change_refuse(struct change *c, const char *why);
/* The next stamp. */
uint64_t change_draw(struct change *c);
/* Seal the delta, change the view by the code that everyone else runs, hand it out. Takes it. */
void change_delta(struct change *c, Rh__Delta *delta);
/* Fill a field of the state of `size` bytes, all of them. */
void change_text(char *to, const char *from, size_t size);

/* The transaction, and only while it pends; NULL = none. */
struct state_txn *change_txn(struct state *s, uint64_t number);
struct state_txn *change_pending(struct state *s, uint64_t number);
void change_abort(struct change *c, struct state_txn *t, const char *why);

/* True if one vnode is moved twice. */
bool change_moves_twice(const struct ring_op *ops, size_t count);
/* False if a vnode is to go to a node of another role: that one could not run what lives there. */
bool change_keeps_roles(const struct state *s, const struct ring_op *ops, size_t count);

/* ---- apply_txn.c ---- */

void apply_begin(struct change *c, const Rh__CommandBegin *in);
void apply_commit(struct change *c, const Rh__CommandCommit *in);
void apply_abort(struct change *c, const Rh__CommandAbort *in);

/* ---- apply_node.c ---- */

void apply_register(struct change *c, const Rh__CommandRegister *in);
void apply_desire(struct change *c, const Rh__CommandDesire *in);
void apply_fence(struct change *c, const Rh__CommandFence *in);
void apply_reassign(struct change *c, const Rh__CommandReassign *in);
void apply_deregister(struct change *c, const Rh__CommandDeregister *in);

#endif
