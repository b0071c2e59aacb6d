/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks what leases are for and what they are not for: whose lease may last is waited for though
 * it be dead, nothing begins in a lease's last part, and nobody is fenced, or registered twice,
 * without need.
 */
#include "sim/fleet.h"

#include "sim/raft/group.h"
#include "wire/control.h"
#include <string.h>

enum {
    SOFT_PART = 5, /* the last part of a lease, in which nothing begins (node/books/lease.h) */
    TWIN_LATE_US = 3000000, /* what a dead twin asked for comes so late, at most */
};

/* ---- who is dead, as the leader can't know */

void check_leaves_lease(struct fleet *f, struct sim_node *n)
{
    const uint64_t left_us = check_may_run_us(f, n);

    if (n->incarnation == 0 || n->process.gate.shut) {
        return;
    }
    n->dead_incarnation = n->incarnation;
    n->dead_until_us =
        left_us == 0 ? 0
                     : sim_clock_when(&n->process.clock,
                                      sim_clock_read(&n->process.clock, f->world.now_us) + left_us,
                                      f->world.now_us);
    n->dead_boots = n->boots;
    n->dead_wipes = n->wipes;
}

void check_waited(struct fleet *f, uint64_t incarnation, const char *what)
{
    for (unsigned i = 0; i < f->nodes && f->profile != PROFILE_CLOCKS; i++) {
        const struct sim_node *n = &f->node[i];

        if (n->dead_incarnation == incarnation && incarnation != 0 &&
            n->dead_until_us > f->world.now_us) {
            world_violate(&f->world,
                          "fence",
                          "%s is dead and %s %llu us before its lease would have ended",
                          n->process.name,
                          what,
                          (unsigned long long)(n->dead_until_us - f->world.now_us));
        }
    }
}

/* ---- registrations */

/* The same machine, the same folder, and its lock: the kernel proves that the former is dead. */
static bool is_proven(const struct sim_node *n, const struct sim_node *dead)
{
    return n == dead && n->boots == dead->dead_boots && n->wipes == dead->dead_wipes;
}

/* It may ask for its name again. */
void check_deregistered(struct fleet *f, uint64_t incarnation)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        f->node[i].named = f->node[i].named == incarnation ? 0 : f->node[i].named;
    }
}

void check_register(struct fleet *f, const Rh__CommandRegister *in, uint64_t incarnation)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        struct sim_node *n = &f->node[i];

        if (n->nonce != in->nonce && strcmp(process_says(&n->process), in->name) == 0) {
            n->named = 0; // it is replaced, and may ask for its name again
        }
        if (n->core == NULL || n->nonce != in->nonce) {
            continue;
        }
        if (n->named_nonce == in->nonce && n->named != 0 && n->named >> 40 == incarnation >> 40 &&
            !past_doubts(f, n->named)) {
            world_violate(&f->world,
                          "needless",
                          "%s is registered as %llu, and is %llu already",
                          n->process.name,
                          (unsigned long long)incarnation,
                          (unsigned long long)n->named);
        }
        n->named_nonce = in->nonce;
        n->named = incarnation;
        // By that its leader hears of it, too, and is deaf no more.
        if (f->raft.leader >= 0) {
            check_heard_of(f, &f->coordinator[f->raft.leader], n);
        }
        for (unsigned k = 0; k < f->nodes; k++) {
            if (f->node[k].dead_incarnation == in->replaces && !is_proven(n, &f->node[k])) {
                check_waited(f, in->replaces, "replaced");
            }
        }
    }
}

/* ---- fences */

/* A leader's own lease; the longest of all is no shorter. */
static uint64_t least_wait_us(const struct fleet *f)
{
    return coordinators_lease_min_us(f) / 2;
}

void check_heard_of(struct fleet *f, const struct sim_coordinator *c, const struct sim_node *n)
{
    uint64_t *heard_us = f->heard_us[c->process.number];
    const uint64_t fresh_us = f->lease_us / 2;
    uint64_t last_us = 0;

    for (unsigned i = 0; i < f->nodes; i++) {
        last_us = heard_us[i] > last_us ? heard_us[i] : last_us;
    }
    if (f->world.now_us - last_us > 2 * fresh_us + 200000) {
        f->deaf_us[c->process.number] = f->world.now_us;
    }
    heard_us[n - f->node] = f->world.now_us;
}

/* Else it asks to be registered anew: the incarnation that it had is over. One with a twin is
 * fenced for that as soon as it has no lease: also if it never had one. */
static bool is_serving(const struct fleet *f, const struct sim_node *n)
{
    struct host_stats figures = {0};

    if (n->core != NULL) {
        host_stats(n->core, &figures);
    }
    return figures.serving && (twin_of(f, n) == NULL || figures.lease_until_us > 0);
}

/* A twin that asks for its name has it fenced as soon as may be: also one that is dead by now,
 * whose message is late. */
static bool has_twin(const struct fleet *f, const struct sim_node *n)
{
    const bool had = n->twinned_us != 0 && f->world.now_us - n->twinned_us < TWIN_LATE_US;

    return had || twin_of(f, n) != NULL;
}

/* It was silent for less than half of a lease, or was itself the one that heard nothing. The
 * leader waits for the whole of the longest, and more. */
void check_fence_wish(struct fleet *f, const struct sim_coordinator *c, struct bytes bytes)
{
    Rh__Command *command = command_get(bytes);
    const uint64_t now_us = f->world.now_us;
    const unsigned at = c->process.number;

    if (command != NULL && command->body_case == RH__COMMAND__BODY_FENCE &&
        !command->fence->clean && !check_is_early() && f->profile != PROFILE_CLOCKS) {
        for (unsigned i = 0; i < f->nodes; i++) {
            const struct sim_node *n = &f->node[i];
            const uint64_t heard_us = f->heard_us[at][i];
            const bool deaf = !has_twin(f, n) && now_us - f->deaf_us[at] < least_wait_us(f);
            const bool silent = now_us - heard_us >= least_wait_us(f) && !deaf;

            if (n->incarnation == command->fence->incarnation && !silent && is_serving(f, n)) {
                world_violate(&f->world,
                              "needless",
                              "%s fences %s, heard of %llu ms ago, and of anybody again since "
                              "%llu ms",
                              c->process.name,
                              n->process.name,
                              (unsigned long long)(now_us - heard_us) / 1000,
                              (unsigned long long)(now_us - f->deaf_us[at]) / 1000);
            }
        }
    }
    command_free(command);
}

/* ---- what is granted, and waited for */

static const struct state *state_of(const struct fleet *f, const struct sim_coordinator *c)
{
    const unsigned at = c->process.number;

    return f->group != NULL ? group_state(f, at) : &f->raft.member[at].state;
}

/* D and δL: of the longest lease that anybody may have granted (specification §4.3), reckoned here
 * once more. */
static uint64_t wait_us(const struct fleet *f, const struct sim_coordinator *c)
{
    enum { MARGIN_PART = 10 };
    const uint64_t mine_us = f->leases_differ ? c->lease_us / 1000 * 1000 : f->lease_us;
    const uint64_t longest_us = state_of(f, c)->lease_us;
    const uint64_t least_us = longest_us > mine_us ? longest_us : mine_us;

    return least_us + least_us / MARGIN_PART;
}

static void judge_wait(struct fleet *f, const struct sim_coordinator *c, uint64_t incarnation,
                       const char *what)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        const bool mine = c->granted[i] == incarnation && c->granted_us[i] > c->lead_us;
        const uint64_t from_us = mine ? c->granted_us[i] : c->lead_us;

        if (f->node[i].last_incarnation == incarnation && c->step_us - from_us < wait_us(f, c)) {
            world_violate(&f->world,
                          "fence",
                          "%s wants %s of %s, %llu us since its last lease or its own election: "
                          "the longest and its margin are %llu",
                          c->process.name,
                          what,
                          f->node[i].process.name,
                          (unsigned long long)(c->step_us - from_us),
                          (unsigned long long)wait_us(f, c));
        }
    }
}

/* Asked again by who was of the era before a restore: its process serves nothing, and says so. */
static bool is_elder(const struct fleet *f, const struct sim_coordinator *c, uint64_t incarnation)
{
    return incarnation >> STATE_NUMBER_BITS < state_of(f, c)->view.era;
}

void check_wait(struct fleet *f, const struct sim_coordinator *c, struct bytes bytes)
{
    Rh__Command *command = command_get(bytes);

    if (command == NULL || f->lease_us == 0 || check_is_early()) {
        // There is nothing to wait for.
    } else if (command->body_case == RH__COMMAND__BODY_FENCE && !command->fence->clean &&
               !is_elder(f, c, command->fence->incarnation)) {
        judge_wait(f, c, command->fence->incarnation, "a FENCE");
    } else if (command->body_case == RH__COMMAND__BODY_REASSIGN &&
               command->reassign->incarnation != 0) {
        judge_wait(f, c, command->reassign->incarnation, "the vnodes");
    }
    command_free(command);
}

void check_grant(struct fleet *f, struct sim_coordinator *c, const struct net_end *end,
                 struct bytes bytes)
{
    Rh__Control *message = end->other->role == ROLE_NODE ? control_get(bytes) : NULL;

    if (message != NULL && message->body_case == RH__CONTROL__BODY_GRANT) {
        struct sim_node *n = fleet_node(end->other);
        const uint64_t clock_us = sim_clock_read(&n->process.clock, f->world.now_us);
        const uint64_t end_us = clock_us + message->grant->lease_us;
        const bool again = n->granted == message->target_incarnation;

        c->granted[n - f->node] = message->target_incarnation;
        c->granted_us[n - f->node] = c->step_us;
        n->lease_end_us = again && n->lease_end_us > end_us ? n->lease_end_us : end_us;
        n->granted = message->target_incarnation;
        // When it was decided: who stands still in between sends what is over by then. A former
        // leader that does not know it yet answers what the node sent before its lease was a later
        // leader's: judge_longest() sees whether the node takes that.
        if (message->grant->lease_us > c->longest_us &&
            (f->group != NULL || f->raft.leader == (int)c->process.number)) {
            world_violate(&f->world,
                          "lease",
                          "%s grants %s a lease of %llu us, and the longest in the log has %llu",
                          c->process.name,
                          n->process.name,
                          (unsigned long long)message->grant->lease_us,
                          (unsigned long long)c->longest_us);
        }
        maintenance_granted(f, c, n, message->grant);
    }
    control_free(message);
}

/* By what is left of it, which is less than what was granted. Old files have forgotten that leases
 * were longer. */
static void judge_longest(struct fleet *f, const struct sim_node *n)
{
    const uint64_t longest_us = f->raft.truth.lease_us;
    const bool judged = n->core != NULL && f->profile != PROFILE_CLOCKS && !f->past;
    const uint64_t left_us = judged ? check_may_run_us(f, n) : 0;

    // Who said BYE has stopped its actors, and owns nothing.
    if (left_us > longest_us && n->parted != n->incarnation) {
        world_violate(&f->world,
                      "lease",
                      "%s has a lease for %llu us more, and none is longer than %llu from now on",
                      n->process.name,
                      (unsigned long long)left_us,
                      (unsigned long long)longest_us);
    }
}

void check_longest(struct fleet *f)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        judge_longest(f, &f->node[i]);
    }
}

void check_lease(struct fleet *f, struct sim_node *n, const Rh__Control *message)
{
    struct host_stats figures;

    if (message->body_case != RH__CONTROL__BODY_GRANT || n->core == NULL ||
        n->granted != n->incarnation) {
        return;
    }
    host_stats(n->core, &figures);
    if (figures.lease_until_us > n->lease_end_us) {
        world_violate(&f->world,
                      "lease",
                      "%s has a lease that ends %llu us behind the last that it was granted",
                      n->process.name,
                      (unsigned long long)(figures.lease_until_us - n->lease_end_us));
    }
    judge_longest(f, n);
    maintenance_took(f, n, message->grant);
}

/* ---- what begins */

void check_begins(struct fleet *f, const struct sim_node *n)
{
    const uint64_t clock_us = sim_clock_read(&n->process.clock, f->world.now_us);
    struct host_stats figures;

    host_stats(n->core, &figures);
    const uint64_t soft_us = figures.lease_us / SOFT_PART;

    if (figures.lease_in_force && !f->options.serves &&
        clock_us + soft_us > figures.lease_until_us) {
        world_violate(&f->world,
                      "soft",
                      "%s begins something %lld us before its lease ends",
                      n->process.name,
                      (long long)(figures.lease_until_us - clock_us));
    }
}
