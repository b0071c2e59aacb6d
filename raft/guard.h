/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules that make libraft 0.15.0 safe. Each stands between libraft and one
 * defect of it that loses or corrupts acknowledged data; docs/raft.md tells how
 * each was found and what the simulator shows without it.
 *
 *  G1  A new leader counts the others' copies of old-term entries and commits
 *      them (figure 8 of the Raft paper). Until an entry of our own term is on
 *      our own disk, successful results tell libraft nothing but "I am here".
 *  G2  A follower confirms, and commits, all that it has stored, even a tail
 *      that this leader never compared. Results and commit indexes are cut to
 *      what this leader has shown.
 *  G3  Entries at or below our snapshot are appended a second time, at the end
 *      of the log. They are committed and thus the same: they are cut off.
 *  G4  Changing the voters at run time is broken: they are fixed (voters.h).
 *  G5  A failed write corrupts libraft's state: a store never fails, it ends
 *      the process (storage/log/log.h).
 *  G6  While it hands leadership over, a voter that was deposed meanwhile votes
 *      for the heir even if it has voted already: a second vote is refused.
 *  G7  A leader that hears of another leader of its own term, which takes a
 *      wiped voter, goes on with a corrupt state: such a message is dropped.
 *
 * Only public fields of libraft are used.
 */
#ifndef RAFT_GUARD_H
#define RAFT_GUARD_H

#include <raft.h>
#include <stdbool.h>

/* Rules to leave out: for the simulator, to show that it catches what they prevent. */
enum guard_rule { GUARD_G1 = 1, GUARD_G2 = 2, GUARD_G3 = 4 };

enum { GUARD_VOTERS_MAX = 5 };

struct guard_hidden {
    raft_id from;
    const char *address;
    struct raft_append_entries_result result;
};

struct guard {
    unsigned rules_off;   /* guard_rule bits; 0 in production */
    raft_term own_stored; /* G1: highest term of which an entry of ours, as leader, is stored */
    struct guard_hidden hidden[GUARD_VOTERS_MAX]; /* G1: what it hid, the newest of each voter */
    size_t hidden_count;
    raft_term shown_term;      /* G2: what the leader of this term ... */
    raft_index shown;          /* ... has shown and we found to match, up to this index */
    raft_index showing;        /* G2: last index of the message being received, 0 = none */
    raft_term showing_term;    /* its term */
    bool refused;              /* G2: it was answered with a rejection */
    unsigned long long cut[4]; /* times that G1..G3 and G6/G7 acted */
};

/* Look at a message before libraft gets it; may change it. False: dropped and freed. */
bool guard_before(struct guard *guard, struct raft *raft, struct raft_message *message);

/* Count as shown what libraft took of its leader's entries, after each message. */
void guard_after(struct guard *guard, const struct raft *raft);

/* Change a message on its way out. */
void guard_send(struct guard *guard, struct raft_message *message);

/* Return, after guard_stored(), the next of the results that G1 hid meanwhile, as if it came only
 * now; otherwise the voters would repeat them at the next heartbeat. False: there is none. */
bool guard_recall(struct guard *guard, const struct raft *raft, struct raft_message *out);

/* Entries that we appended as leader of `term` are on our disk. */
void guard_stored(struct guard *guard, raft_term term);

#endif
