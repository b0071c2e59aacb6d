/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinators' Raft group as it ships: raft/ and libraft over disks and
 * links in virtual time, in place of sim/raft/model.h. Its voters change
 * (raft/generation.h): an operator grows it from 1 to 3 to 5, shrinks it, and
 * replaces those whose machine is lost.
 *
 *     machine 0..7      free ----> waits to join ----> votes ----> retired
 *                        ^                               |            |
 *                        +--- its folder goes, a new id -+-- lost ----+
 *
 * What the checkers look at, `fleet.raft.truth`, has each command that any
 * replica applied, in the order of the log. Checked at each apply and at each
 * state that is handed on: all replicas have the same commands at the same
 * index and the same state behind it, in whatever generation (`raft-state`); no
 * two are told to lead in one term (`raft-term`). At the end every voter of the
 * newest generation has all, and whoever ever voted knows of it.
 */
#ifndef SIM_RAFT_GROUP_H
#define SIM_RAFT_GROUP_H

#include "sim/fleet.h"

/* The first `founders` machines found the group; the others are free. */
void group_init(struct fleet *f, unsigned founders);
void group_fini(struct fleet *f);

/* As raft_model_start(), …: the process of that machine. */
void group_start(struct fleet *f, unsigned at);
void group_stop(struct fleet *f, unsigned at);
/* The state of the group's machine; valid for the whole run. */
const struct state *group_state(const struct fleet *f, unsigned at);
/* The voter id that the machine in this place tells; 0 = the place is free. */
uint64_t group_id(const struct fleet *f, unsigned at);
uint64_t group_identity(const struct fleet *f, unsigned at);
/* The machine is there no more, and nobody starts it. */
bool group_is_lost(const struct fleet *f, unsigned at);

void group_tick(struct fleet *f, unsigned at);
void group_propose(struct fleet *f, unsigned at, uint64_t tag, struct bytes command);
void group_barrier(struct fleet *f, unsigned at, uint64_t tag);
void group_receive(struct fleet *f, unsigned at, struct bytes bytes);
void group_up(struct fleet *f, unsigned at, struct net_end *end);
void group_down(struct fleet *f, unsigned at, const struct net_end *end);
/* The voters as its folder knows them, as an event for the core. */
void group_tell_voters(struct fleet *f, unsigned at);

/* The operator begins (sim/raft/group_changes.c); all machines are back. */
void group_changes_start(struct fleet *f);
void group_heal(struct fleet *f);
/* What the group still waits for, or NULL. */
const char *group_waits(struct fleet *f);

/* How many changes of voters there were, and of which kind. */
struct group_counts {
    uint64_t changes;
    uint64_t grown;
    uint64_t shrunk;
    uint64_t replaced; /* one, as many as before */
    uint64_t refused;
    uint64_t unknown; /* leadership was lost meanwhile */
};
struct group_counts group_counts(const struct fleet *f);

#endif
