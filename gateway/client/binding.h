/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection's bond with an actor: what the files bind*.c share. Nobody else includes this.
 */
#ifndef GATEWAY_CLIENT_BINDING_H
#define GATEWAY_CLIENT_BINDING_H

#include "base/machine.h"
#include "gateway/client/inside.h"

enum { BINDING_KEY_MAX = RECORD_ID_MAX + 7 };

enum binding_state {
    BINDING_ASKED,
    BINDING_BOUND,
    BINDING_RESUMING,
    BINDING_ENDING, /* BIND had no answer: the actor may think that it is bound; or rebound */
};

struct binding {
    struct list_link in_bound;
    struct list_link in_due;
    struct client *client;
    struct pushes pushes;
    struct bond_stamp stamp;
    uint64_t ticket;   /* of BIND: pushes follow its answer */
    uint64_t version;  /* of the ring when it was asked for last: of take-overs since it knows
                          nothing */
    uint64_t again_us; /* RESUME then; 0 = need not */
    uint64_t breaks;   /* of all links, when it was asked for last … */
    uint16_t owner;    /* … where its actor lives, as the ring has it … */
    uint16_t before;  /* … and where it lived before, since then; RING_NODE_NONE = nowhere else */
    uint32_t round;   /* of the last note */
    bool asks_again;  /* the first one had no answer … */
    bool asked_again; /* … once */
    /* Of one that is kept without its connection. */
    struct session_name name; /* session 0 = it is not */
    uint64_t next_key;        /* that a RENEW would give it */
    uint64_t acked;           /* its client has all pushes to this one */
    uint64_t said;            /* what its client said of that last */
    uint64_t old_last; /* pushes were numbered below this before its actor began afresh … */
    uint32_t unheard;  /* … so often; not counting those that its client has heard of */
    uint64_t told;     /* `acked`, as its actor knows */
    uint64_t told_us;
    uint64_t renewed_us; /* RENEW was asked then, for a gap */
    uint32_t keep_ms;
    uint32_t epoch;
    bool rebound;         /* its client goes on as another entity */
    uint32_t has_answers; /* RETURN: of all requests below */
    enum note_type type;  /* BIND, KEEP, RETURN */
    uint8_t state;        /* enum binding_state */
    uint16_t kind;
    uint8_t id_size;
    uint16_t key_size;
    uint8_t key[BINDING_KEY_MAX]; /* as the client names it; ends with the id */
};

extern const struct machine binding_machine;

static inline void binding_enter(struct binding *b, enum binding_state state)
{
    b->state = machine_enter(&binding_machine, b->state, state);
}

static inline struct bytes binding_id(const struct binding *b)
{
    return bytes_of(b->key + b->key_size - b->id_size, b->id_size);
}

void binding_set_due(struct binding *b);
/* Return the slot of the node where the actor lives by the ring. */
uint16_t binding_owner(const struct binding *b);
/* Ask for the binding in a new round of its own. */
void binding_begin_round(struct binding *b);
/* Say why the client isn't bound; NULL = it is. */
const char *binding_refusal(enum bound_result result);
/* The binding's actor has confirmed it. */
void binding_confirm(struct client *c, const struct bound *bound);

/* ---- bind_note.c */

/* A note for which no command waits. */
void binding_tell(struct client *c, enum note_type type, uint64_t now_us,
                  struct router_effects *effects);
/* One whose answer comes to `ticket`. */
void binding_ask_note(struct client *c, enum note_type type, uint64_t ticket);

/* ---- bind_push.c */

/* Tell the client why, and let it go. */
void binding_kick(struct client *c, uint32_t code, struct bytes text);

/* ---- bind_again.c */

/* Ask its actor then if it is bound still. */
void binding_want_resume(struct binding *b, uint64_t at_us);

#endif
