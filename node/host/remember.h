/* SPDX-License-Identifier: Apache-2.0
 *
 * Remember: which of the actors here does the fleet know, so that they live again when this node is
 * gone (docs/decisions/084)? Of kinds that say so alone.
 *
 *     struct actor.memory
 *     NONE     the fleet does not know it, or nobody asked yet
 *     ASKED    a row for it is on its way; what a request would start waits for the answer
 *     KNOWN    the fleet remembers it
 *     LEAVING  it has ended itself, and a row for that is on its way; a request waits, too
 *
 *     NONE -a request would start it, or it has started-> ASKED -Remembered-> KNOWN
 *     ASKED, KNOWN -it ended itself-> LEAVING -Remembered-> NONE
 *
 * It moves with the actor. What was under way there may be refused, for it came too late: of an
 * ASKED and a LEAVING one the new owner tells itself.
 *
 * Rows leave in one message at a time, so what comes meanwhile goes together in the next. When
 * nobody has answered for REMEMBER_PATIENCE_MS the node goes on without, and tells later.
 *
 * The other way: when this node came to own ids that nobody handed over, it asks the leader for
 * those that are remembered, page by page, and starts them as wake.c does.
 */
#ifndef NODE_HOST_REMEMBER_H
#define NODE_HOST_REMEMBER_H

#include "base/list.h"
#include "node/books/actor.h"
#include "node/host/host.h"

enum {
    REMEMBER_ROWS_MAX = 200000, /* that wait here; what is more is not remembered */
    REMEMBER_AT_ONCE = 1000,    /* rows of one message */
    /* Longer than a lease as it is by default: within that a node without coordinators stops by
     * itself, so only one that is to go on without them comes so far. */
    REMEMBER_PATIENCE_MS = 5000,
};

struct remember {
    struct list rows; /* struct told_row: not acknowledged, in order */
    size_t count;
    size_t sent;       /* the first so many are under way */
    uint64_t number;   /* of the message with them */
    uint64_t send_us;  /* it leaves again then */
    uint64_t heard_us; /* last answer; or when the first row came, if that was later */
    bool unsure;       /* nobody answers: on without */

    bool recalling;
    size_t kind; /* asked for: index in config.kinds */
    uint8_t after[RECORD_ID_MAX];
    uint8_t after_size;
    uint64_t ask_us; /* it is asked (again) then */

    uint64_t refused;      /* rows that the leader refused */
    uint64_t unsure_total; /* actors that started before the fleet knew them */
    uint64_t dropped;      /* rows for which there was no room */
};

void remember_init(struct remember *r);
/* All actors are gone: forget what was to be told of them. */
void remember_forget(struct remember *r);

/* A request would start the ABSENT actor. True: not yet, and when it may, actor_proceed() is
 * called. */
bool remember_holds(struct host *h, struct actor *a);
/* The actor that waits to be woken would start. True: not yet, and it waits no more: it is woken
 * when the fleet knows it. */
bool remember_puts_off(struct host *h, struct actor *a);
/* The actor has an instance now. */
void remember_started(struct host *h, struct actor *a);
/* The actor has ended because it asked to. */
void remember_ended(struct host *h, struct actor *a);
/* The new record came with a move. True: it lived there, and is to live here. */
bool remember_arrived(struct host *h, struct actor *a);

/* Ids came to me that nobody handed over: ask which of them are remembered. */
void remember_recall(struct host *h);
void remember_on_remembered(struct host *h, const Rh__Remembered *in);
void remember_on_recalled(struct host *h, const Rh__Recalled *in);
/* An operator had it forgotten. */
void remember_on_forgotten(struct host *h, const Rh__Forgotten *in);
/* There is another leader: tell that one. */
void remember_soon(struct remember *r);
/* The end of a step. */
void remember_go_on(struct host *h);
void remember_tick(struct host *h);

#endif
