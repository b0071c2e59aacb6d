/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client's key means: which entity of which kind.
 *
 *     player-1      of the gateway's kind: 0, or that of its --role
 *     @7/boss       kind 7, id "boss"
 *     @0/@7/boss    kind 0, id "@7/boss"
 *
 * Only a number without leading zeros and up to 65535, then a slash and an id,
 * makes a prefix: "@home" and "@7" are ids.
 *
 * Pure.
 */
#ifndef GATEWAY_CLIENT_TARGET_H
#define GATEWAY_CLIENT_TARGET_H

#include "ring/view.h"

struct target {
    uint16_t kind;
    struct bytes id; /* borrowed from the key */
};

/* True if the key names its kind; else all of it is the id, and `kind` is not set. */
bool target_read(struct bytes key, struct target *out);

/* The kind that the nodes of a role host by hash, the first by number; "" has kind 0. False: no
 * node of that role is known. */
bool target_kind_of_role(const struct view *view, const char *role, uint16_t *kind);

#endif
