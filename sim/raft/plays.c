/* SPDX-License-Identifier: Apache-2.0
 *
 * Histories that are written by hand: what each rule prevents (enum
 * raft_scenario).
 */
#include "sim/raft/inside.h"

#include "raft/inside.h"

enum { S1, S2, S3 };

/* Hold the others' election timers back until `place` leads. */
static void make_leader(struct raft_world *w, unsigned place)
{
    for (unsigned ms = 0; ms < 5000 && !sim_voter_leads(&w->node[place]); ms++) {
        for (unsigned i = 0; i < w->count; i++) {
            struct sim_voter *n = &w->node[i];
            if (i != place && n->replica != NULL &&
                raft_state(replica_raft(n->replica)) == RAFT_FOLLOWER) {
                struct raft *raft = replica_raft(n->replica);
                raft->election_timer_start = w->now_us / 1000;
                raft->follower_state.current_leader.id = 0;
            }
        }
        raft_world_run_until(w, w->now_us + 1000);
    }
    if (!sim_voter_leads(&w->node[place])) {
        raft_world_violation(w, &w->node[place], "the scenario did not get the leader it needs");
    }
}

static void wait_ms(struct raft_world *w, unsigned ms)
{
    raft_world_run_until(w, w->now_us + ms * UINT64_C(1000));
}

static void propose_and_crash(struct raft_world *w, unsigned place)
{
    sim_voter_propose(&w->node[place]);
    wait_ms(w, 100);
    sim_voter_crash(&w->node[place]);
}

static uint64_t last_on_disk(const struct sim_voter *n)
{
    return n->disk.first + n->disk.entry_count - 1;
}

void raft_play_figure_8(struct raft_world *w)
{
    // Everybody equal, then X on S1 alone, which crashes.
    make_leader(w, S1);
    wait_ms(w, 500);
    w->mute[S1] = true;
    propose_and_crash(w, S1);
    const uint64_t x_index = last_on_disk(&w->node[S1]);
    // S3, elected by S2, has only its barrier, alone, and crashes.
    w->mute[S3] = true;
    make_leader(w, S3);
    propose_and_crash(w, S3);
    // S1 comes back, is elected by S2 and replicates X to it, while its own new entry is still on
    // its way to its slow disk: X is on a majority, and of an old term.
    w->mute[S1] = false;
    sim_voter_start(&w->node[S1]);
    sim_voter_set_disk(&w->node[S1], 300000);
    make_leader(w, S1);
    while (last_on_disk(&w->node[S2]) < x_index && sim_voter_leads(&w->node[S1])) {
        raft_world_run_until(w, w->now_us + 100);
    }
    w->mute[S1] = true;
    wait_ms(w, 100);
    sim_voter_crash(&w->node[S1]);
    // S3 comes back with an entry of a higher term, is elected by S2 and overwrites X there.
    w->mute[S3] = false;
    w->mute[S1] = false;
    sim_voter_start(&w->node[S3]);
    make_leader(w, S3);
    wait_ms(w, 500);
    sim_voter_propose(&w->node[S3]);
    wait_ms(w, 500);
    sim_voter_start(&w->node[S1]);
    wait_ms(w, 3000);
}

void raft_play_foreign_tail(struct raft_world *w)
{
    // S1 has a tail that nobody else has; it crashes and is back at once.
    make_leader(w, S1);
    wait_ms(w, 500);
    w->mute[S1] = true;
    propose_and_crash(w, S1);
    sim_voter_start(&w->node[S1]);
    // S2, elected by S3, puts its own entry at the tail's index, on its own fast disk alone; S1
    // answers its empty heartbeat with the index of its tail. Two of three, it seems.
    w->mute[S2] = true;
    sim_voter_set_disk(&w->node[S2], 100);
    make_leader(w, S2);
    wait_ms(w, 150);
    sim_voter_crash(&w->node[S2]);
    // S1's log is the longer one now.
    w->mute[S1] = false;
    make_leader(w, S1);
    wait_ms(w, 500);
    w->mute[S2] = false;
    sim_voter_start(&w->node[S2]);
    wait_ms(w, 3000);
}

void raft_play_whole_log(struct raft_world *w)
{
    enum { COMMANDS = 6 };
    struct sim_voter *s2 = &w->node[S2];

    sim_voter_crash(s2);
    s2->snapshot_entries = 2;
    s2->trailing_entries = 1;
    sim_voter_start(s2);
    make_leader(w, S1);
    wait_ms(w, 500);
    // Nothing that S2 answers arrives; it applies all the same, and keeps a snapshot instead.
    w->cut[S2][S1] = true;
    for (unsigned i = 0; i < COMMANDS; i++) {
        sim_voter_propose(&w->node[S1]);
        wait_ms(w, 100);
    }
    // It misses one, and refuses what comes after: S1 goes back to the last that it knows S2 to
    // have. That is below the snapshot, so S2 refuses again, until S1 sends all from the first on.
    w->cut[S1][S2] = true;
    sim_voter_propose(&w->node[S1]);
    wait_ms(w, 100);
    w->cut[S1][S2] = false;
    w->cut[S2][S1] = false;
    wait_ms(w, 3000);
    if (s2->applied < w->acked_index) {
        raft_world_violation(w, s2, "it was not given what it missed");
    }
}

void raft_play_old_answers(struct raft_world *w)
{
    enum { LATE_US = 400 * 1000 }; /* less than S1 waits before it leads no more */

    make_leader(w, S1);
    wait_ms(w, 500);
    // What the others answer to this round, they say while S1 leads; but it comes late, ...
    w->link_us[S2][S1] = w->now_us + LATE_US;
    w->link_us[S3][S1] = w->now_us + LATE_US;
    sim_voter_read(&w->node[S1]);
    wait_ms(w, 10);
    // ... when S2 has been elected by S3. The second barrier, which begins then, must not be done.
    w->cut[S1][S2] = true;
    w->cut[S1][S3] = true;
    replica_lost(w->node[S2].replica, w->now_us, S1 + 1);
    make_leader(w, S2);
    wait_ms(w, 100);
    sim_voter_propose(&w->node[S2]);
    wait_ms(w, 100);
    sim_voter_read(&w->node[S1]);
    wait_ms(w, 1000);
}
