/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks fences and leases: nothing leaves a node that is over, nothing is given
 * away early.
 */
#include "base/mutant.h"
#include "sim/fleet.h"

/* The kill margin is that part of a lease (node/books/lease.h). */
enum { KILL_MS = 80, LEASE_MS = 3000 };

/* In the last part of its lease, which is that, a node says nothing (I8). */
enum { GATE_PART = 10 };

static void check_gate(struct fleet *f, const struct sim_node *n)
{
    const uint64_t clock_us = sim_clock_read(&n->process.clock, f->world.now_us);
    struct host_stats stats;

    host_stats(n->core, &stats);
    if (stats.lease_in_force && stats.lease_until_us != 0 && !f->options.serves &&
        clock_us + stats.lease_us / GATE_PART > stats.lease_until_us) {
        world_violate(&f->world,
                      "gate",
                      "%s says something %lld us before its lease ends",
                      n->process.name,
                      (long long)(stats.lease_until_us - clock_us));
    }
}

void check_output(struct fleet *f, const struct sim_node *n)
{
    record_output(f, n);
    check_gate(f, n);
    if (f->profile != PROFILE_CLOCKS && n->incarnation != 0 && n->incarnation <= n->reassigned &&
        !f->options.serves) {
        world_violate(&f->world,
                      "fence",
                      "%s still speaks as incarnation %llu, whose vnodes were given to others",
                      n->process.name,
                      (unsigned long long)n->incarnation);
    }
}

void check_trouble(const struct fleet *f, struct sim_node *n)
{
    n->trouble_us = f->world.now_us;
    n->trouble_view = f->ledger.view_count;
}

/* All that the moved vnodes' actors had is gone with their node. */
static void lose_moved(struct fleet *f, const Rh__CommandReassign *command, uint64_t version)
{
    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        struct entity *e = &f->ledger.entity[i];
        const ring_hit hit =
            view_lookup(&f->raft.truth.view, entity_kind(e), bytes_of(e->id, e->id_size));

        for (size_t k = 0; k < command->n_moves; k++) {
            if (command->moves[k]->vnode == ring_hit_vnode(hit)) {
                e->lost = true;
                e->cold_us = f->world.now_us;
                e->cold_version = version;
            }
        }
    }
}

/* So long it may run something yet, by its own clock. */
uint64_t check_may_run_us(const struct fleet *f, const struct sim_node *n)
{
    struct host_stats stats;
    const uint64_t now_us = sim_clock_read(&n->process.clock, f->world.now_us);

    host_stats(n->core, &stats);
    const uint64_t end_us = stats.lease_until_us - stats.lease_us * KILL_MS / LEASE_MS;
    return stats.lease_until_us != 0 && now_us < end_us ? end_us - now_us : 0;
}

void check_over(struct fleet *f, const struct sim_node *n)
{
    if (n->core == NULL || f->profile == PROFILE_CLOCKS || f->options.serves) {
        return;
    }
    if (check_may_run_us(f, n) > 0) {
        world_violate(&f->world,
                      "fence",
                      "the vnodes of %s are given to others %llu us before it may run no more",
                      n->process.name,
                      (unsigned long long)check_may_run_us(f, n));
    } else if (host_running(n->core) > 0 && !n->process.gate.shut) {
        world_violate(&f->world,
                      "fence",
                      "%s still runs an actor when its vnodes are given to others",
                      n->process.name);
    }
}

bool check_is_early(void)
{
    return mutant(M_NOWAIT) || mutant(M_NEWLEAD) || mutant(M_DRIFT) || mutant(M_NOSTOP) ||
           mutant(M_FENCEPEND);
}

/* Decision 047: who is silent is barred as late as others may have its vnodes. Before, it could
 * come back with its memory. */
void check_fenced(struct fleet *f, const Rh__CommandFence *command)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        if (f->node[i].last_incarnation == command->incarnation) {
            check_trouble(f, &f->node[i]);
            check_bank_death(f, &f->node[i]);
            f->node[i].parted = command->clean ? command->incarnation : f->node[i].parted;
        }
        if (f->node[i].named == command->incarnation) {
            f->node[i].named = 0; // it may be named anew
        }
    }
    if (check_is_early()) {
        return;
    }
    if (!command->clean) {
        check_waited(f, command->incarnation, "fenced");
    }
    for (unsigned i = 0; i < f->nodes && f->profile != PROFILE_CLOCKS && !command->clean; i++) {
        const struct sim_node *n = &f->node[i];

        if (n->core != NULL && n->incarnation == command->incarnation &&
            check_may_run_us(f, n) > 0) {
            world_violate(&f->world,
                          "fence",
                          "%s is fenced %llu us before it may run no more",
                          n->process.name,
                          (unsigned long long)check_may_run_us(f, n));
        }
    }
}

void check_reassigned(struct fleet *f, const Rh__CommandReassign *command, uint64_t version)
{
    if (command->incarnation == 0) {
        return; // it was nobody's
    }
    f->ledger.reassigned += command->n_moves;
    check_waited(f, command->incarnation, "its vnodes are given to others");
    lose_moved(f, command, version);
    for (unsigned i = 0; i < f->nodes; i++) {
        struct sim_node *n = &f->node[i];

        if (n->incarnation == command->incarnation) {
            check_over(f, n);
        }
        if (n->last_incarnation == command->incarnation) {
            n->reassigned = command->incarnation;
            check_trouble(f, n);
            check_bank_death(f, n);
            check_served(f, n);
        }
    }
}

void check_down(struct fleet *f, struct sim_node *n)
{
    const struct view *view = &f->raft.truth.view;
    const struct view_member *m = view_member_named(view, process_says(&n->process));

    if (n->down_us == 0 && m != NULL && ring_owned_count(&view->ring, m->slot) > 0) {
        n->down_us = f->world.now_us;
    }
}

void check_served(struct fleet *f, struct sim_node *n)
{
    if (n->down_us != 0) {
        histogram_add(&f->ledger.stall, f->world.now_us - n->down_us);
        n->down_us = 0;
    }
}
