/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors that ran when their process died, and those that are in quarantine for
 * it. When its vnodes are given to others, those who asked it say whom they asked
 * in vain; a node that comes back says what its former process ran: a strike for
 * each, one of each death, and its own word is the right one: who did not run
 * has none. SUSPECT_STRIKES of them, none more than SUSPECT_WINDOW_US after the one
 * before, and the actor is in quarantine until an operator takes it out.
 *
 * Whoever pulls a plug strikes whatever happens to run, once: hence the count.
 *
 * Pure and deterministic: part of the replicated state (specification §3.1). Time is
 * that of the commands, and never goes back here: a leader whose clock is behind
 * counts from the newest strike.
 */
#ifndef TXN_STATE_SUSPECT_H
#define TXN_STATE_SUSPECT_H

#include "txn/state/state.h"

enum {
    SUSPECT_STRIKES = 3,
    SUSPECTS_MAX = 1024,         /* those not in quarantine; the one struck longest ago goes out */
    SUSPECTS_OF_DEATH_MAX = 256, /* of one registration: a process has fewer workers */
    SUSPECTS_UNANSWERED_MAX = 128, /* of one REASSIGN */
    SUSPECT_STRUCK_MAX = 4096,     /* strikes that others told of; the first one goes out */
};
#define SUSPECT_WINDOW_US (UINT64_C(600) * 1000000)

/* NULL = it has no strike and is not in quarantine. */
const struct state_suspect *suspect_find(const struct state *s, const struct quarantined *actor);

/* The cells of these moves are given away, for their owner is dead: they are of the ring as it is.
 */
void suspect_lose(struct state *s, uint64_t incarnation, const struct ring_op *moves, size_t count);
/* The incarnation's name now belongs to another incarnation, or to none: forget what it lost and
 * who was struck at its death. */
void suspect_forget(struct state *s, uint64_t incarnation);

/* The node `in` takes the place of an incarnation: strike what ran in it, of its own: what it has
 * or was taken from it as it was dead. The ring is still the one before. Who is in quarantine now,
 * and who had to make room, goes into `delta`. Before FLEET_FORMAT_KINDS any actor was struck. */
void suspect_strike(struct state *s, const Rh__CommandRegister *in, uint64_t time_us,
                    Rh__Delta *delta);

/* From FLEET_FORMAT_STRIKES on: the same at the REASSIGN of a dead incarnation, for those of its
 * actors that others had asked for, if one before it died with the same request, which is struck
 * as well, or if they have a strike already. The ring is still the one before. */
void suspect_unanswered(struct state *s, const Rh__CommandReassign *in, uint64_t time_us,
                        Rh__Delta *delta);

/* Put an actor into quarantine for an operator; it is not in yet. */
void suspect_add(struct state *s, const struct quarantined *actor, uint64_t time_us,
                 Rh__Delta *delta);
/* Forget it, strikes and all; `delta` tells if it was in quarantine. */
void suspect_clear(struct state *s, const struct state_suspect *suspect, Rh__Delta *delta);

#endif
