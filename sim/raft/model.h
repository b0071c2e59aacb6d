/* SPDX-License-Identifier: Apache-2.0
 *
 * An abstract Raft group: one committed log, and replicas that apply it late.
 *
 *     propose --delay--> committed --lag--> applied at each replica --> done
 *        |                   ^
 *        +-- leader falls: a prefix is kept by the next one, the rest is lost
 *
 * What it keeps of Raft: commands of a leader commit in order and only while it
 * truly leads; a fallen leader learns of it late, and until then goes on acting
 * on what it knew; the next one leads only when it has applied everything
 * committed and a barrier of its own; a barrier of a fallen leader never ends
 * well. Each replica has a struct state of its own and must agree at each index
 * with all others (checker `raft-state`). M_BARRIER plants one that acts before
 * it applied that: in a real group raft/replica.c keeps the rule.
 */
#ifndef SIM_RAFT_MODEL_H
#define SIM_RAFT_MODEL_H

#include "sim/mirror.h"
#include "sim/network.h"
#include "txn/state/state.h"

enum { RAFT_MODEL_MAX = 5 };

struct raft_model_events {
    void *context;
    void (*applied)(void *context, unsigned replica, uint64_t tag, const Rh__Command *command,
                    const struct state_result *result);
    /* `leader`: its voter id (index + 1), 0 = unknown. */
    void (*role)(void *context, unsigned replica, bool leading, uint64_t term, uint64_t leader);
    void (*done)(void *context, unsigned replica, uint64_t tag, enum err error);
    /* A command was committed: `truth` has it. */
    void (*committed)(void *context, const Rh__Command *command, const struct state_result *result);
};

struct raft_model_faults {
    uint64_t commit_max_us; /* of a proposal */
    uint64_t lag_max_us;    /* of a follower's apply */
    uint64_t stale_max_us;  /* how long a fallen leader does not know */
};

struct raft_entry;

struct raft_member {
    struct process *process;
    struct state state; /* valid while the process is up */
    uint64_t applied;
    uint64_t apply_limit; /* a leader that does not know it fell gets no newer entries */
    bool believes;        /* told that it leads */
    bool fallen;          /* believes, wrongly */
    uint64_t term;        /* that it believes to lead in */
    bool applying;        /* an apply event is on its way */
};

struct raft_model {
    struct world *world;
    struct raft_model_events events;
    struct raft_model_faults faults;
    struct raft_member member[RAFT_MODEL_MAX];
    unsigned count;
    struct raft_entry *log; /* owned; committed */
    size_t log_count;
    size_t log_cap;
    struct raft_entry *waiting; /* owned; proposed, not committed, of the last true leader */
    size_t waiting_count;
    size_t waiting_cap;
    uint64_t commit_us; /* when the newest waiting one commits */
    uint64_t term;
    uint64_t lease_us; /* the longest that any leader may have granted, as an operator knows it */
    int leader;        /* true leader, -1 = none */
    size_t lead_from;  /* entries up to its barrier */
    bool electing;
    size_t restored;    /* entries up to the last restore, it included */
    uint64_t era;       /* the greatest that was put back to a smaller one; 0 = none was */
    struct state truth; /* with every committed command */
    bool mirrored;      /* in this seed the shipped state.db goes along */
    struct mirror mirror;
    uint64_t changes; /* of leaders */
    /* Since when the last one leads, as the shipped replica tells it: with all applied that it has.
     * UINT64_MAX: one was elected, and applies. Here each barrier of a long history takes its time
     * again, which counts for no bound of K7: raft/ begins at a snapshot, and a barrier does
     * nothing. */
    uint64_t elected_us;
};

void raft_model_init(struct raft_model *r, struct world *world,
                     const struct raft_model_events *events);
void raft_model_fini(struct raft_model *r);
/* Before the first start; its index is the count before. */
void raft_model_add(struct raft_model *r, struct process *process);
/* The process is up: rebuild its state from a snapshot at a random index and the log after it. */
void raft_model_start(struct raft_model *r, unsigned replica);
/* The process died. */
void raft_model_stop(struct raft_model *r, unsigned replica);
/* The leader falls now; another is elected later. */
void raft_model_fall(struct raft_model *r);
/* Like raft_model_fall(), but the old leader goes on believing that it leads for so long. */
void raft_model_fall_late(struct raft_model *r, uint64_t stale_us);
/* The process stands still: a leader is deposed after an election timeout, and learns of it when it
 * goes on. */
void raft_model_stall(struct raft_model *r, unsigned replica);

/* All replicas are down, and their folders are lost: they get a backup that has the first `keep`
 * entries, raised to the next era as `ringhold recover` does it. False: the cluster had not begun
 * by then, and nothing is done. */
bool raft_model_restore(struct raft_model *r, size_t keep);

/* Like raft_model_restore(), but the backup is put back as it is, without a new era: terms go back,
 * too. The next restore's era is above all that there were. */
bool raft_model_put_back(struct raft_model *r, size_t keep);

/* One number for the part of the state that replicas must agree on; never 0. */
uint64_t raft_model_hash(const struct state *s);

/* As replica_propose() and replica_barrier(); the end is always told by `done`, later. */
void raft_model_propose(struct raft_model *r, unsigned replica, uint64_t tag, struct bytes command);
void raft_model_barrier(struct raft_model *r, unsigned replica, uint64_t tag);

#endif
