/* SPDX-License-Identifier: Apache-2.0
 *
 * A change of owners in few bytes: message Moves of wire/control.proto. While
 * a fleet of a thousand nodes is rebalanced thousands of such changes go to
 * each node and gateway. Only wire/control.c calls this; to all others such a
 * message is a Commit.
 *
 *     frame | version | Moves: prev, txn back by | digest | pair: from, to, vnode
 *       8   |    9    |   2       2..3     2..3  |   18   |   2   3   3   2 + 3
 */
#ifndef WIRE_MOVES_H
#define WIRE_MOVES_H

#include "base/bytes.h"
#include "wire/control.pb-c.h"

#include <stdbool.h>

enum {
    MOVES_MAX = 4096, /* of one message; a Commit with more stays one */
    MOVES_KIND = 3,   /* RingOp.kind of a MOVE */
    MOVES_ERA_BIT = 40,
};

/* Append `control` as Moves, if it is a Commit that says nothing which Moves cannot say. */
bool moves_put(struct buffer *out, const Rh__Control *control);

/* Turn a decoded Moves into the Commit it stands for, which control_free() frees. False: there are
 * none, or too many; control_free() frees it still. */
bool moves_unfold(Rh__Control *control);

#endif
