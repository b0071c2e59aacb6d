/* SPDX-License-Identifier: Apache-2.0
 *
 * State versions: which states does a node hand over, and which does it read (decision 082)? Nodes
 * tell with each renewal, so a leader knows it of whoever is live; what he does not know yet he
 * takes for no obstacle, as the node that is to take a state looks at its version itself.
 *
 * Pure.
 */
#ifndef TXN_LEADER_STATE_VERSIONS_H
#define TXN_LEADER_STATE_VERSIONS_H

#include "ring/ring.h"
#include "wire/control.h"

struct coordinator;

struct kind_versions {
    uint16_t kind;
    uint32_t version; /* of what it hands over */
    uint32_t least;   /* it reads from here … */
    uint32_t most;    /* … to here */
};

/* What a node told; of a kind that is not there: its states have no version, and it reads none. */
struct state_versions {
    bool told; /* it renewed since I lead */
    uint16_t count;
    struct kind_versions kind[RING_SEGMENT_KINDS_MAX];
};

/* A state that `target` would get from `source`, and can't read. */
struct unread_state {
    uint16_t kind;
    uint32_t version;
    uint32_t least; /* what it reads */
    uint32_t most;
};

void state_versions_note(struct state_versions *own, const Rh__Renew *in);
/* Changes with what was told. */
uint64_t state_versions_mix(const struct state_versions *own);

/* True: of that segment (NULL: the default one) the node in slot `target` can't read what the one
 * in `source` writes; then `out` is the first kind of which that is so, if it is not NULL. A kind
 * that the target lacks doesn't matter: it keeps such a state, and hands it on. */
bool state_versions_unread(const struct coordinator *c, uint16_t source, uint16_t target,
                           const struct ring_segment *segment, struct unread_state *out);
/* Likewise, of any segment. */
bool state_versions_unread_any(const struct coordinator *c, uint16_t source, uint16_t target,
                               struct unread_state *out);

#endif
