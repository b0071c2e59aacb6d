/* SPDX-License-Identifier: Apache-2.0
 *
 * What the node does for one unfinished transaction: the cells it holds, the
 * requests that wait, the images that leave or come in. One hold per entry of
 * the participant's book, `part->user`. Specification §5.1, §5.2.
 *
 * Pure.
 */
#ifndef NODE_HOST_HOLD_H
#define NODE_HOST_HOLD_H

#include "node/books/actor.h"
#include "node/books/waiting.h"
#include "node/host/handover.h"
#include "txn/participant.h"

/* What goes ahead of a hold: hold_ahead.c. */
struct ahead {
    enum { AHEAD_NOT_YET, AHEAD_GOES, AHEAD_OVER } state;
    size_t arc; /* its cells from here on were not looked at */
    uint32_t cell;
    size_t asked;       /* actors that are to answer */
    uint64_t until_us;  /* the more that goes, the longer, … */
    uint64_t latest_us; /* … until then at the most */
    uint64_t sent;      /* images */
    uint64_t kept;      /* of these: their actors froze as they were */
    size_t size;        /* bytes of those that were sent */
};

enum { HOLD_WHY_SIZE = 64 };

struct hold {
    struct part *part;
    struct queue held; /* requests to its OUT arcs, in order of arrival */
    uint64_t ticket;   /* of the PERSIST that makes its number durable */
    uint64_t begun_us; /* PREPARE came */
    uint64_t since_us; /* its OUT arcs are held since; 0 = not yet */
    uint64_t pass_us;  /* the next calls may pass then; 0 = none did yet */
    uint64_t told_us;  /* Draining was sent last */
    bool durable;      /* its number is: it drains when its turn comes */
    bool told_refused;
    bool filling;         /* its actors are just being gone through */
    size_t busy;          /* actors of its OUT arcs that are not frozen; counted from DRAINING on */
    struct list streams;  /* struct handover_stream: one for each target */
    struct list stagings; /* struct staging: one for each source that sent something */
    uint64_t actors;      /* handed over */
    uint64_t bytes;
    struct ahead ahead;
    char why[HOLD_WHY_SIZE]; /* it was refused, for the leader; "" = nothing is known */
};

struct hold *hold_new(struct part *part);
/* Free the hold's streams and stages. Its queue must be empty. */
void hold_free(struct hold *hold);

/* The OUT or IN arc that covers the cell, or NULL. */
const struct part_arc *hold_arc(const struct hold *hold, uint32_t cell, bool out);
/* The stream to that arc's target; made when missing. */
struct handover_stream *hold_stream(struct hold *hold, const struct part_arc *arc, uint64_t source);
struct handover_stream *hold_first_stream(const struct hold *hold); /* NULL = none */
struct handover_stream *hold_next_stream(const struct hold *hold,
                                         const struct handover_stream *s); /* NULL = none */
struct staging *hold_staging(const struct hold *hold, uint64_t source);    /* NULL = none yet */
size_t hold_staged_count(const struct hold *hold); /* images that came, of all sources */

#endif
