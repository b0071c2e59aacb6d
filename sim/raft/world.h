/* SPDX-License-Identifier: Apache-2.0
 *
 * A group of shipped replicas (raft/) in virtual time, from one seed: slow
 * disks, loss, delay, reordering, asymmetric partitions, crashes that keep a
 * prefix of what was being written, restarts, snapshots, handed-over leadership.
 *
 * Checked after each step:
 *   - no two voters lead in one term (Election Safety)
 *   - all voters apply the same commands at the same index, and no command
 *     twice: one hash chain for all (State Machine Safety)
 *   - a command answered ERR_OK is applied, and at the end, when all is healed,
 *     every voter has it (durability), and there is a leader (liveness)
 *   - a command answered ERR_NOT_LEADER is applied by nobody
 *   - no term has two leaders, whatever generation; at the end all who ever voted know the voters
 *   - libraft never gives up, never appends where its log does not end
 */
#ifndef SIM_RAFT_WORLD_H
#define SIM_RAFT_WORLD_H

#include <stdbool.h>
#include <stdint.h>

/* Directed plays instead of random faults: what a rule prevents, step by step. */
enum raft_scenario {
    RANDOM_FAULTS,
    FIGURE_8,     /* G1: an old-term entry on a majority, of the Raft paper */
    FOREIGN_TAIL, /* G2: a voter confirms entries that its leader never saw */
    WHOLE_LOG,    /* G3: a leader sends its log from the first entry to a voter with a snapshot */
    OLD_ANSWERS   /* a deposed leader gets late what was answered to its last round */
};

struct raft_world_options {
    uint64_t seed;
    uint64_t seconds; /* virtual, of faults; the healing comes on top */
    unsigned voters;  /* 1, 3 or 5 */
    unsigned disk_min_ms;
    unsigned disk_max_ms;
    unsigned loss_ppm;
    unsigned rules_off; /* bits: guard_rule, reconfiguration_rule, REPLICA_IO_ROUNDS */
    enum raft_scenario scenario;
    bool change;  /* an operator changes the voters all the time */
    bool verbose; /* a trace on stdout */
};

struct raft_world_result {
    uint64_t virtual_us;
    uint64_t events;
    uint64_t messages;
    uint64_t elections;
    uint64_t crashes;
    uint64_t power_losses; /* of these, where there are shipped folders */
    uint64_t partitions;
    uint64_t installs; /* snapshots restored in a running voter */
    uint64_t acked;
    uint64_t reads;   /* barriers that were done */
    uint64_t changes; /* of voters */
    uint64_t grown;   /* changes to a larger set */
    uint64_t replaced;
    uint64_t refused; /* changes not begun */
    uint64_t violations;
    uint64_t cuts[4]; /* times that G1, G2, G3, the others acted */
    uint64_t trace;   /* hash of all that happened: same seed, same trace */
    char first_violation[160];
};

/* Run one seed to its end. */
void raft_world_run(const struct raft_world_options *options, struct raft_world_result *result);

#endif
