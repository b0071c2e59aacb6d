/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up what many histories did and prints it.
 */
#include "sim/check/totals.h"

#include "sim/bank/bank.h"

#include <inttypes.h>
#include <stdio.h>

static void count_voters(struct group_counts *t, struct group_counts more)
{
    t->changes += more.changes;
    t->grown += more.grown;
    t->shrunk += more.shrunk;
    t->replaced += more.replaced;
    t->refused += more.refused;
    t->unknown += more.unknown;
}

static void count_bank(struct totals *t, const struct fleet *f)
{
    if (f->bank != NULL) {
        t->bank.commits += f->bank->total.commits;
        t->bank.again += f->bank->total.again;
        t->bank.saved += f->bank->total.saved;
        t->bank.sends += f->bank->total.sends;
        t->bank.refused += f->bank->total.refused;
        t->bank.alarms += f->bank->total.alarms;
        t->bank.unknown += f->bank->total.unknown;
    }
}

static void add_bank(struct totals *t, const struct totals *more)
{
    t->bank.commits += more->bank.commits;
    t->bank.again += more->bank.again;
    t->bank.saved += more->bank.saved;
    t->bank.sends += more->bank.sends;
    t->bank.refused += more->bank.refused;
    t->bank.alarms += more->bank.alarms;
    t->bank.unknown += more->bank.unknown;
}

void totals_count(struct totals *t, const struct fleet *f)
{
    t->seeds++;
    t->profile[f->profile]++;
    t->players += f->players != NULL;
    count_bank(t, f);
    t->virtual_us += f->world.now_us;
    t->events += f->world.events;
    t->moves += f->ledger.moves;
    t->commits += f->ledger.commits;
    t->aborts += f->ledger.aborts;
    t->reassigned += f->ledger.reassigned;
    t->crashes[0] += f->crashes;
    t->crashes[1] += f->coordinator_crashes;
    t->crashes[2] += f->gateway_crashes;
    t->power_losses += f->power_losses;
    t->pauses += f->pauses;
    for (size_t i = 0; i < PAUSE_KEEPS; i++) {
        t->pauses_beyond[i] += f->pauses_beyond[i];
    }
    t->stops_of_all += f->stops_of_all;
    t->twins += f->twins;
    t->stale += f->network.stale;
    t->cuts += f->cuts;
    t->restores += f->restores;
    t->other_leases += f->other_leases;
    t->maintenances += f->maintenances;
    t->extended += f->extended;
    t->floods += f->floods;
    t->old_copies += f->old_copies;
    t->noticed += f->noticed;
    t->hands_asked += f->hands_asked;
    t->hands_done += f->hands_done;
    t->balanced += f->balanced;
    t->leader_changes += f->raft.changes;
    t->groups += f->group != NULL;
    count_voters(&t->voters, group_counts(f));
    t->resets += f->network.resets;
    t->hits += f->network.hits;
    t->lulls += f->lulls;
    t->requests += f->ledger.ask_count;
    t->nested += f->ledger.nested;
    t->store_refused += f->ledger.store_refused;
    t->store_doubts += f->ledger.store_doubts;
    for (size_t i = 0; i <= REPLY_DEADLOCK; i++) {
        t->answers[i] += f->ledger.answers[i];
    }
    histogram_merge(&t->hold, &f->ledger.hold);
    histogram_merge(&t->stall, &f->ledger.stall);
}

void totals_add(struct totals *t, const struct totals *more)
{
    t->seeds += more->seeds;
    for (size_t i = 0; i < PROFILES; i++) {
        t->profile[i] += more->profile[i];
    }
    t->players += more->players;
    add_bank(t, more);
    t->virtual_us += more->virtual_us;
    t->events += more->events;
    t->moves += more->moves;
    t->commits += more->commits;
    t->aborts += more->aborts;
    t->reassigned += more->reassigned;
    for (size_t i = 0; i < 3; i++) {
        t->crashes[i] += more->crashes[i];
    }
    t->power_losses += more->power_losses;
    t->pauses += more->pauses;
    for (size_t i = 0; i < PAUSE_KEEPS; i++) {
        t->pauses_beyond[i] += more->pauses_beyond[i];
    }
    t->stops_of_all += more->stops_of_all;
    t->twins += more->twins;
    t->stale += more->stale;
    t->cuts += more->cuts;
    t->restores += more->restores;
    t->other_leases += more->other_leases;
    t->maintenances += more->maintenances;
    t->extended += more->extended;
    t->floods += more->floods;
    t->old_copies += more->old_copies;
    t->noticed += more->noticed;
    t->hands_asked += more->hands_asked;
    t->hands_done += more->hands_done;
    t->balanced += more->balanced;
    t->leader_changes += more->leader_changes;
    t->groups += more->groups;
    count_voters(&t->voters, more->voters);
    t->resets += more->resets;
    t->hits += more->hits;
    t->lulls += more->lulls;
    t->requests += more->requests;
    t->nested += more->nested;
    t->store_refused += more->store_refused;
    t->store_doubts += more->store_doubts;
    for (size_t i = 0; i <= REPLY_DEADLOCK; i++) {
        t->answers[i] += more->answers[i];
    }
    histogram_merge(&t->hold, &more->hold);
    histogram_merge(&t->stall, &more->stall);
}

static void print_times(const char *what, const struct histogram *t)
{
    if (t->count > 0) {
        (void)printf("%s: %" PRIu64 ", p50 %.2f s, p99 %.2f s, max %.2f s\n",
                     what,
                     t->count,
                     (double)histogram_at(t, 500) / 1e6,
                     (double)histogram_at(t, 990) / 1e6,
                     (double)t->max_us / 1e6);
    }
}

static void print_requests(const struct totals *t)
{
    const uint64_t all = t->requests == 0 ? 1 : t->requests;

    (void)printf("requests %" PRIu64 " (%" PRIu64 " by actors): OK %" PRIu64 ", UNKNOWN %" PRIu64
                 " (%.3f %%), TIMEOUT %" PRIu64 ", REJECTED %" PRIu64 "\n",
                 t->requests,
                 t->nested,
                 t->answers[REPLY_OK] + t->answers[REPLY_APP_ERROR],
                 t->answers[REPLY_UNKNOWN],
                 100.0 * (double)t->answers[REPLY_UNKNOWN] / (double)all,
                 t->answers[REPLY_TIMEOUT],
                 t->answers[REPLY_REJECTED]);
    (void)printf("more than 1,024 requests at once to one actor %" PRIu64
                 "; refused as too many %" PRIu64 "\n",
                 t->floods,
                 t->answers[REPLY_OVERLOADED]);
    (void)printf("old copies of all coordinators' files put back %" PRIu64 ", noticed %" PRIu64
                 "\n",
                 t->old_copies,
                 t->noticed);
    (void)printf("decisions and repairs that an operator asked for %" PRIu64 ", done %" PRIu64 "\n",
                 t->hands_asked,
                 t->hands_done);
    (void)printf("vnodes that moved for what they cost %" PRIu64 "\n", t->balanced);
    print_times("holds of an actor", &t->hold);
    print_times("vnodes without a server after a crash", &t->stall);
}

void totals_print(const struct totals *t, double seconds)
{
    const double hours = (double)t->virtual_us / 3.6e9;

    (void)printf("simulated %.2f h in %.1f s (%.1f h a minute), %" PRIu64 " events\n",
                 hours,
                 seconds,
                 hours / (seconds / 60),
                 t->events);
    (void)printf("seeds:");
    for (size_t i = 0; i < PROFILES; i++) {
        if (t->profile[i] > 0) {
            (void)printf(" %s %" PRIu64 ",", profile_name((enum profile)i), t->profile[i]);
        }
    }
    (void)printf(" with players %" PRIu64 "\n", t->players);
    (void)printf("moves %" PRIu64 ", commits %" PRIu64 ", aborts %" PRIu64
                 ", reassigned after a crash %" PRIu64 "\n",
                 t->moves,
                 t->commits,
                 t->aborts,
                 t->reassigned);
    (void)printf("crashes: nodes %" PRIu64 ", coordinators %" PRIu64 ", gateways %" PRIu64
                 "; power losses %" PRIu64 ", leader changes %" PRIu64 ", restores %" PRIu64
                 ", coordinators that came back with another lease %" PRIu64
                 ", maintenances %" PRIu64 " with %" PRIu64 " extended leases\n",
                 t->crashes[0],
                 t->crashes[1],
                 t->crashes[2],
                 t->power_losses,
                 t->leader_changes,
                 t->restores,
                 t->other_leases,
                 t->maintenances,
                 t->extended);
    if (t->groups > 0) {
        (void)printf("changes of coordinators %" PRIu64 " in %" PRIu64 " fleets: %" PRIu64
                     " grew, %" PRIu64 " shrank, %" PRIu64 " replaced one; refused %" PRIu64
                     ", lost the leader meanwhile %" PRIu64 "\n",
                     t->voters.changes,
                     t->groups,
                     t->voters.grown,
                     t->voters.shrunk,
                     t->voters.replaced,
                     t->voters.refused,
                     t->voters.unknown);
    }
    (void)printf("partitions %" PRIu64 ", link resets %" PRIu64 ", frames aimed at %" PRIu64
                 ", lulls %" PRIu64 ", pauses %" PRIu64
                 ", late writes refused by the store %" PRIu64 ", commits in doubt %" PRIu64 "\n",
                 t->cuts,
                 t->resets,
                 t->hits,
                 t->lulls,
                 t->pauses,
                 t->store_refused,
                 t->store_doubts);
    (void)printf("pauses beyond a lease %" PRIu64 ", a link %" PRIu64 ", forwards %" PRIu64
                 ", what guards against copies %" PRIu64 "; of all at once %" PRIu64
                 "; ends of links dropped for it %" PRIu64 "; nodes started twice %" PRIu64 "\n",
                 t->pauses_beyond[PAUSE_LEASE],
                 t->pauses_beyond[PAUSE_CONN],
                 t->pauses_beyond[PAUSE_LINGER],
                 t->pauses_beyond[PAUSE_SESSION],
                 t->stops_of_all,
                 t->stale,
                 t->twins);
    print_requests(t);
    if (t->bank.commits > 0) {
        (void)printf("accounts: commits %" PRIu64 ", sends taken %" PRIu64 ", refused %" PRIu64
                     ", alarms %" PRIu64 ", requests that came again %" PRIu64
                     ", of these answered from the store %" PRIu64 ", UNKNOWN %" PRIu64 "\n",
                     t->bank.commits,
                     t->bank.sends,
                     t->bank.refused,
                     t->bank.alarms,
                     t->bank.again,
                     t->bank.saved,
                     t->bank.unknown);
    }
}
