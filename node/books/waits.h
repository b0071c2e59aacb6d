/* SPDX-License-Identifier: Apache-2.0
 *
 * Who waits for whom: which actors of this node have asked another one in the midst of a message,
 * and take no other message before that is answered; and is that a circle?
 *
 * Ann runs a message, asks bob and waits; bob runs one, asks ann and waits. Each call stands in the
 * other one's mailbox, and both would stand there until their deadlines. No node sees such a circle
 * as a whole. So a call that was not answered in 100 ms sends a probe after itself, and again when
 * it has waited 200, 400 … ms. Where a probe comes to, the actor that is asked runs another message
 * in whose midst it has asked others itself: then the probe goes on along each of those calls. When
 * it comes back to the actor that made the call where it began, there is a circle, and the call by
 * which it came, which waits in that actor's mailbox, is refused: DEADLOCK. It did not run and
 * never will, so its caller goes on, and with it the others.
 *
 * This is edge chasing for processes that wait for all that they have asked: K. M. Chandy, J.
 * Misra, L. M. Haas, "Distributed deadlock detection", ACM TOCS 1(2), 1983. What is added:
 *
 *   One victim.     Of a circle several calls may stand in mailboxes, and one of them is enough.
 * The actor whose own call has the greatest name, of those in whose mailbox one of them stands,
 * refuses what stands there. The probe learns on its way who that is; who meets his own probe and
 * is not the one sends it round once more, for that one. It ends.        Probes make HOPS_MAX
 * steps, an edge lets one of each origin pass a round, and those that a node sends on between two
 * ticks are bounded. What is not found so is found by a later probe, or ends at its deadline, as
 * before.
 *
 * An actor that can answer without what it asked for (by a timer, or after the first of two
 * answers) is taken for one that waits all the same: then a call may be refused that would have run
 * after that. It is told the truth: it did not run.
 *
 * Pure.
 */
#ifndef NODE_BOOKS_WAITS_H
#define NODE_BOOKS_WAITS_H

#include "base/list.h"
#include "base/pool.h"
#include "base/table.h"
#include "node/books/delay.h"
#include "node/books/probe.h"

/* A call that an actor made in the midst of a message and that has not been answered. */
struct wait_of {
    uint64_t number; /* the caller's name of it; not that of another one that waits */
    uint64_t run;    /* the host's ticket of that message */
    struct call_name name;
    uint16_t kind; /* whom it asks */
    struct bytes id;
    uint64_t deadline_us;
};

/* Answer of host_blocked() to a probe: the call that the one it came along with waits for. */
struct blocked {
    uint64_t
        run;     /* the ticket of what the actor runs that was asked; 0 = for nothing that I know */
    bool queued; /* the call waits in its mailbox; false: it is what runs */
};

enum { WAITS_PASSED = 2048 };

struct waits {
    struct pool memory;     /* struct wait */
    struct table by_number; /* the same */
    struct table by_run;    /* of each run the one that was asked first, of those that are left */
    struct delays delays;
    struct list out;               /* struct wait_effect */
    unsigned sent;                 /* probes since the last tick */
    uint64_t circles;              /* found here */
    uint64_t passed[WAITS_PASSED]; /* which probes went along which calls of late: their hashes,
                                      each at the place that it gives, where it puts out another */
};

enum wait_effect_type {
    WAIT_PROBE,  /* probe: to the node of the actor that it names */
    WAIT_REFUSE, /* probe.call waits in the mailbox of an actor here, named by the probe, that runs
                    `run`: it is refused */
};

struct wait_effect {
    struct list_link link;
    enum wait_effect_type type;
    struct probe probe; /* its id is behind */
    uint64_t run;
    uint8_t id[]; /* flexible */
};

void waits_init(struct waits *w);
/* Forget all that wait. */
void waits_clear(struct waits *w);
void waits_add(struct waits *w, const struct wait_of *of, uint64_t now_us);
/* The call was answered. Does nothing for a call that does not wait. */
void waits_end(struct waits *w, uint64_t number);
/* Send probes for those that have waited long; every 10..50 ms. */
void waits_tick(struct waits *w, uint64_t now_us);
/* A probe has come to this node, and the host says `b`. */
void waits_chase(struct waits *w, const struct probe *p, struct blocked b);
/* The next effect, owned by the caller: mem_free(). NULL = none. */
struct wait_effect *waits_take(struct waits *w);

#endif
