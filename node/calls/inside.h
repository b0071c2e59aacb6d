/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files calls*.c share. Nobody else includes this.
 */
#ifndef NODE_CALLS_INSIDE_H
#define NODE_CALLS_INSIDE_H

#include "node/books/waits.h"
#include "node/calls/calls.h"

/* A link to or from another node. */
struct road {
    uint64_t peer;
    uint64_t incarnation;
    char name[VIEW_NAME_MAX + 1];
    uint16_t slot; /* of that name and incarnation, as the view has it; 0 = it has not */
    bool streams;  /* its protocol has them */
};

/* An actor that came here asked for something where it was, which may be under way there. */
struct former {
    struct list_link in_calls;
    uint64_t incarnation; /* of that node, … */
    uint64_t session;     /* … where it was this one; */
    uint64_t mine;        /* here it is this one, 0 = it asked for nothing yet */
    uint64_t until_us;    /* then all of it is over */
    uint64_t asked;       /* the peer that was asked; 0 = none */
    uint16_t kind;
    uint8_t id_size;
    uint8_t id[]; /* flexible */
};

/* Another node is to be told when a session of here has nothing under way. */
struct asker {
    uint64_t peer;
    uint64_t session;
};

struct calls {
    struct router_config limits;
    struct router *router; /* NULL while the node is not registered */
    struct router_effects out;
    struct router_effects doing;
    size_t at; /* of `doing`, taken */
    uint64_t now_us;
    uint64_t incarnation;
    uint16_t slot; /* mine; 0 = the view does not have me */
    const struct view *view;
    uint64_t caller;       /* session of the last that asked; 0 = none, by the view as it is … */
    uint64_t caller_point; /* … and where it lives */
    uint64_t version;      /* of the view, as the router knows it, … */
    uint64_t digest[2];    /* … and its ring */
    struct road *road;     /* owned; in the order they came up */
    size_t road_count;
    size_t road_cap;
    uint64_t *in_use; /* owned, by slot: the peer that requests go to, 0 = none */
    bool begins;      /* the host is to be told of CALLS_LINK */
    bool tells;       /* the host is to be told `awaits` and the version */
    bool awaits;      /* as the host knows it */
    struct waits waits;
    struct wait_effect *probing; /* owned; taken last, or NULL */
    struct buffer packed;        /* a probe that leaves */
    struct broadcasts broadcasts;
    struct list formers; /* struct former, owned */
    struct asker *asker; /* owned */
    size_t asker_count;
    size_t asker_cap;
    struct buffer said;         /* of a CALLS_SEND to or of a former */
    _Atomic size_t *waiting;    /* borrowed; NULL = nobody counts them */
    struct call_answer refused; /* a call that waited for its turn too long … */
    bool refuses;               /* … and is to be told */
};

/* Give the router an event. Time does not go back. */
void calls_step(struct calls *c, struct router_event event, uint64_t now_us);
/* ---- former.c */

/* If this is the first call here of an actor that came from elsewhere, bar its session: its
 * broadcasts wait. */
void former_begins(struct calls *c, const struct call *call);
/* Let the session go on: nothing of it waits for another node any more. */
void former_lift(struct calls *c, uint64_t session);
void formers_drop(struct calls *c);
void formers_lose_peer(struct calls *c, uint64_t peer);
/* Lift what waits for nothing any more. */
void formers_look(struct calls *c);
/* The next that is to be said to another node; false = nothing. */
bool former_take(struct calls *c, struct calls_effect *out);

/* The member with this incarnation, or NULL. */
const struct view_member *calls_member(const struct calls *c, uint64_t incarnation);
/* The link, or NULL. */
struct road *calls_road(const struct calls *c, uint64_t peer);

#endif
