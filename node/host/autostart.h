/* SPDX-License-Identifier: Apache-2.0
 *
 * Autostart: which actors live without being asked, and which of them are still to be started?
 *
 * wake.c starts ids that the shell lists, and what is handed over of such kinds. always.c says
 * which singletons and daemons there are: it follows from the configuration alone. The id of a
 * singleton is its kind's name, those of a set are "name/0", "name/1" … up to as many as there are.
 * After each change, and once a second in case one could not start, those that are this node's go
 * the way of HOST_WAKE, which starts what is not alive, so many a second. Those of a set that was
 * made smaller end.
 */
#ifndef NODE_HOST_AUTOSTART_H
#define NODE_HOST_AUTOSTART_H

#include "node/books/actor.h"
#include "node/host/host.h"

/* Ids to be started without a request. The actors among them are ABSENT, linked by `idle`. */
struct autostart {
    uint16_t *remembered; /* owned; numbers of the remembered kinds */
    size_t remembered_count;
    struct actor_list wanted;  /* so many a second */
    struct actor_list arrived; /* handed over: at once */
    struct list late;          /* ids of held cells */
    size_t count;              /* in the three */
    uint64_t credit;           /* millionths of a start */
    uint64_t paced_us;         /* when it was reckoned */
    uint64_t list_us;          /* next LIST that nothing asks for */
    uint64_t listed_cold;      /* greatest cold stamp of my vnodes at the last LIST */
    uint64_t aged_us;          /* when the next two are taken anew */
    uint64_t seen_cold;        /* greatest cold stamp of all vnodes then … */
    uint64_t old_cold;         /* … and the time before: who owned them has long listed them */
    bool lost;                 /* there was no room for some: ask again */
    uint64_t always_us;        /* next look at those that live always */
    uint64_t woken;
    uint64_t wake_dropped;
};

/* ---- wake.c ---- */

void wake_init(struct host *h);
void wake_fini(struct autostart *s);
/* Forget what waits to be woken, for all actors are gone. */
void wake_forget(struct autostart *s);
void wake_on_wake(struct host *h, uint16_t kind, struct bytes id);
/* Start the actor now. False: it is another node's, or held, or lives, or may not be started. */
bool wake_start(struct host *h, uint16_t kind, struct bytes id);
/* ABSENT: it is started later, if it shall live unasked. */
void wake_if_wanted(struct host *h, struct actor *a);
/* Just handed over. */
void wake_arrived(struct host *h, struct actor *a);
/* Take the actor out of the list of those that wait. */
void wake_unlist(struct host *h, struct actor *a);
/* Ask for the list of ids again: some that should live may not be in it. */
void wake_list_again(struct autostart *s);
bool wake_has_more(const struct host *h);
void wake_go_on(struct host *h);
void wake_tick(struct host *h);
/* The cell was not mine, and is. */
void wake_came(struct host *h, uint32_t cell);
/* The configuration changed: did ids come to me cold? */
void wake_adopt(struct host *h);

/* ---- always.c ---- */

/* The configuration changed: look at once. */
void always_adopt(struct host *h);
void always_tick(struct host *h);
/* The actor need not live any more: it ends like one that asked to, unless it goes away. */
void always_stop(struct host *h, struct actor *a);
/* True if there can be an actor of this kind and id: any id of a kind that hashes, of other kinds
 * only those that live always. Otherwise a stranger could make any number of actors that nothing
 * ends. */
bool always_knows(const struct host *h, uint16_t kind, struct bytes id);

#endif
