/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a group of shipped replicas under faults, from one seed.
 */
#include "sim/raft/inside.h"

#include "raft/inside.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

enum {
    CLIENT_US = 4 * 1000,        /* mean time between commands */
    READ_PERCENT = 10,           /* with so many of them all are asked for a barrier, too */
    READER_US_MAX = 1500 * 1000, /* so long a voter is asked for nothing but barriers */
    HEAL_US = 5 * 1000 * 1000,
    QUIET_S_MAX = 600
};

/* ---- faults ---- */

static struct sim_voter *pick_victim(struct raft_world *w)
{
    struct sim_voter *victim = &w->node[prng_between(&w->prng, 0, w->count - 1)];

    for (unsigned i = 0; i < w->count && prng_chance(&w->prng, 80); i++) {
        if (sim_voter_leads(&w->node[i])) {
            victim = &w->node[i]; // leaders hurt most
        }
    }
    return victim;
}

void raft_world_end_links(struct raft_world *w, const struct sim_voter *gone)
{
    for (unsigned i = 0; w->links_end && i < w->count; i++) {
        // Some ends are never noticed.
        if (i != gone->place && prng_chance(&w->links, 80)) {
            raft_world_push(
                w,
                (struct raft_event){.at_us = w->now_us + prng_between(&w->links, 100, 30000),
                                    .kind = ON_LOST,
                                    .node = i,
                                    .life = w->node[i].life,
                                    .about = gone->place});
        }
    }
}

/* A leader's links end though it is well: of all, or of some. */
static void nemesis_ends_links(struct raft_world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        if (sim_voter_leads(&w->node[i])) {
            raft_world_end_links(w, &w->node[i]);
        }
    }
}

static void nemesis_crashes(struct raft_world *w)
{
    struct sim_voter *n = pick_victim(w);

    if (n->replica != NULL) {
        sim_voter_crash(n);
        raft_world_push_for(
            w, ON_RESTART, n, w->now_us + 10000 + prng_between(&w->prng, 0, w->fault_max_us));
    }
}

static void nemesis_cuts(struct raft_world *w)
{
    const struct sim_voter *n = pick_victim(w);
    const uint64_t mode = prng_between(&w->prng, 0, 2); // both ways, in, out

    for (unsigned i = 0; i < w->count; i++) {
        if (i != n->place) {
            w->cut[n->place][i] = w->cut[n->place][i] || mode != 1;
            w->cut[i][n->place] = w->cut[i][n->place] || mode != 2;
        }
    }
    raft_world_say(w, n, "is cut off");
    w->result->partitions++;
    raft_world_push_for(
        w, ON_HEAL, n, w->now_us + 10000 + prng_between(&w->prng, 0, w->fault_max_us));
}

static void nemesis_transfers(struct raft_world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        if (sim_voter_leads(&w->node[i])) {
            replica_transfer(w->node[i].replica);
        }
    }
}

static void nemesis(struct raft_world *w)
{
    if (prng_chance(&w->prng, 50)) {
        nemesis_crashes(w);
    }
    if (prng_chance(&w->prng, 50)) {
        nemesis_cuts(w);
    }
    if (prng_chance(&w->prng, 20)) {
        nemesis_transfers(w);
    }
    if (w->links_end && prng_chance(&w->links, 40)) {
        nemesis_ends_links(w);
    }
    raft_world_push_for(
        w, ON_NEMESIS, &w->node[0], w->now_us + 50000 + prng_between(&w->prng, 0, w->fault_max_us));
}

/* A leader that has just committed, perhaps what it must not, dies before it can tell anybody:
 * what it had sent is lost with it. */
static void maybe_shoot(struct raft_world *w, struct sim_voter *n)
{
    enum { YOUNG_US = 400 * 1000 };
    const uint64_t commit = replica_raft(n->replica)->commit_index;
    const bool moved = commit > n->commit;

    n->commit = commit;
    if (!moved || w->healing || w->now_us - n->led_since_us > YOUNG_US ||
        !prng_chance(&w->prng, w->shot_percent)) {
        return;
    }
    for (size_t i = 0; i < w->heap_count; i++) {
        struct raft_packet *p = w->heap[i].packet;
        if (p != NULL && p->from == n->place) {
            p->lost = true;
        }
    }
    sim_voter_crash(n);
    raft_world_push_for(
        w, ON_RESTART, n, w->now_us + 10000 + prng_between(&w->prng, 0, w->fault_max_us));
}

/* ---- the loop ---- */

static void do_node_event(struct raft_world *w, struct sim_voter *n, const struct raft_event *e)
{
    switch (e->kind) {
    case ON_TICK:
        raft_world_push_for(w, ON_TICK, n, w->now_us + raft_world_tick_us(w));
        replica_tick(n->replica, w->now_us);
        break;
    case ON_DISK:
        raft_disk_finish(&n->disk);
        replica_poll(n->replica, w->now_us);
        break;
    case ON_POLL:
        n->polling = false;
        replica_poll(n->replica, w->now_us);
        break;
    case ON_LOST:
        replica_lost(n->replica, w->now_us, e->about + 1);
        break;
    case ON_MESSAGE:
        ASSERT(e->packet != NULL);
        replica_receive(
            n->replica, w->now_us, e->packet->from + 1, bytes_of(e->packet->data, e->packet->size));
        break;
    case ON_CLIENT:
    case ON_NEMESIS:
    case ON_OPERATOR:
    case ON_CRASH:
    case ON_RESTART:
    case ON_HEAL:
        UNREACHABLE();
    }
    sim_voter_watch(n);
    if (sim_voter_leads(n)) {
        maybe_shoot(w, n);
    }
}

/* A leader with a command in flight begins no round, and one that is cut off has one for ever: so
 * one voter at a time is not given any, while whoever else leads is. */
static void clients_ask(struct raft_world *w)
{
    const bool all_read = prng_chance(&w->reads, READ_PERCENT);

    if (w->now_us >= w->reader_until_us) {
        w->reader = (unsigned)prng_between(&w->reads, 0, UINT64_C(2) * w->count - 1);
        w->reader_until_us = w->now_us + prng_between(&w->reads, 1, READER_US_MAX);
    }
    for (unsigned i = 0; i < w->count; i++) {
        if (i != w->reader && sim_voter_leads(&w->node[i])) {
            sim_voter_propose(&w->node[i]);
        }
        if (i == w->reader || all_read) {
            sim_voter_read(&w->node[i]);
        }
    }
}

static void do_world_event(struct raft_world *w, struct sim_voter *n, const struct raft_event *e)
{
    if (e->kind == ON_CLIENT && !w->quiet) {
        clients_ask(w);
        raft_world_push_for(
            w, ON_CLIENT, n, w->now_us + prng_between(&w->prng, 1, UINT64_C(2) * CLIENT_US));
    } else if (e->kind == ON_NEMESIS && !w->healing) {
        nemesis(w);
    } else if (e->kind == ON_OPERATOR && !w->healing) {
        raft_changes_operator(w);
    } else if (e->kind == ON_CRASH && n->replica != NULL && n->life == e->life) {
        sim_voter_crash(n);
        raft_world_push_for(w, ON_RESTART, n, w->now_us + 10000);
    } else if (e->kind == ON_HEAL) {
        memset(w->cut, 0, sizeof w->cut);
    } else if (e->kind == ON_RESTART && n->replica == NULL && n->life == e->life &&
               (!n->dead || w->healing)) {
        sim_voter_start(n);
    }
}

/* False: the replica found itself broken and is to be thrown away. */
static bool survives(struct raft_world *w, struct sim_voter *n, const struct raft_event *e)
{
    if (setjmp(w->stop) != 0) { // NOLINT(cert-err52-cpp): see on_broken()
        return false;
    }
    do_node_event(w, n, e);
    return true;
}

static void step(struct raft_world *w)
{
    const struct raft_event e = raft_world_pop(w);
    struct sim_voter *n = &w->node[e.node];
    struct raft_packet *p = e.packet;

    w->now_us = e.at_us;
    w->result->events++;
    if (e.kind > ON_MESSAGE) {
        do_world_event(w, n, &e);
    } else if (n->replica != NULL && n->life == e.life &&
               !(p != NULL && (p->lost || w->cut[p->from][n->place]))) {
        if (p != NULL) {
            raft_world_trace(w, p->size * 8 + p->from);
        }
        if (!survives(w, n, &e)) {
            sim_voter_crash(w->broken);
            raft_world_push_for(w, ON_RESTART, w->broken, w->now_us + 200000);
        }
    }
    mem_free(p);
}

void raft_world_run_until(struct raft_world *w, uint64_t at_us)
{
    while (w->heap_count > 0 && w->heap[0].at_us <= at_us) {
        step(w);
    }
    w->now_us = at_us;
}

/* ---- one seed ---- */

/* Voters may differ in this: one that never takes a snapshot sends its whole log to one that has
 * nothing but a snapshot. */
static void draw_snapshots(struct raft_world *w, struct sim_voter *n)
{
    n->snapshot_entries = 1u << prng_between(&w->prng, 3, 9);
    n->trailing_entries = (unsigned)prng_between(&w->prng, 1, n->snapshot_entries);
    if (w->options.scenario != RANDOM_FAULTS || prng_chance(&w->prng, 33)) {
        n->snapshot_entries = 1000000;
    }
}

struct sim_voter *raft_world_add(struct raft_world *w)
{
    const struct raft_world_options *options = &w->options;
    struct sim_voter *n = &w->node[w->count];

    n->world = w;
    n->place = w->count++;
    n->disk.prng = &w->prng;
    n->disk.write_min_us = options->disk_min_ms * UINT64_C(1000);
    n->disk.write_max_us = options->disk_max_ms * UINT64_C(1000);
    if (options->scenario == RANDOM_FAULTS && prng_chance(&w->prng, 15)) {
        sim_voter_set_disk(n, 100); // a fast one among slow ones
    }
    n->disk.stall_percent = options->scenario != RANDOM_FAULTS ? 0 : prng_between(&w->prng, 0, 5);
    n->disk.stall_us = 400000;
    sim_voter_plug(n);
    draw_snapshots(w, n);
    return n;
}

static void world_init(struct raft_world *w, const struct raft_world_options *options,
                       struct raft_world_result *result)
{
    uint64_t ids[NODES_MAX];

    w->options = *options;
    w->result = result;
    w->prng.state = options->seed * 0x2545f4914f6cdd1du + 1;
    w->links.state = options->seed * 0x9e3779b97f4a7c15u + 1;
    w->links_end = options->scenario == RANDOM_FAULTS && options->seed % 2 == 0;
    w->changes.state = options->seed * 0xbf58476d1ce4e5b9u + 1;
    w->reads.state = options->seed * 0xd6e8feb86659fd93u + 1;
    w->now_us = 1000000;
    result->trace = 14695981039346656037u;
    w->ordered = prng_chance(&w->prng, 50);
    w->delay_percent = prng_between(&w->prng, 0, 2);
    w->shot_percent = prng_between(&w->prng, 0, 3) * 15;
    // Half of the seeds with the product's limits, half with those that interleave most: one entry
    // a message, many leaders.
    w->entries_size_max = prng_chance(&w->prng, 50) ? 0 : 1;
    w->election_ms = prng_chance(&w->prng, 50) ? 500 : 160;
    w->fault_max_us = 1000 * (prng_chance(&w->prng, 60) ? prng_between(&w->prng, 30, 400)
                                                        : prng_between(&w->prng, 400, 2000));
    if (options->scenario != RANDOM_FAULTS) {
        w->ordered = true;
        w->delay_percent = 0;
        w->shot_percent = 0;
        w->options.loss_ppm = 0;
        w->entries_size_max = 1;
        w->election_ms = 500;
    }
    for (unsigned i = 0; i < options->voters; i++) {
        ids[i] = i + 1;
    }
    const enum err e = voters_init(&w->voters, ids, options->voters);
    ASSERT(e == ERR_OK);
    for (unsigned i = 0; i < options->voters; i++) {
        struct sim_voter *n = raft_world_add(w);
        raft_disk_init(&n->disk, 1000 + i, voters_configuration(&w->voters));
        sim_voter_ship(n);
        sim_voter_start(n);
    }
    for (unsigned i = 0; i < options->voters; i++) {
        for (unsigned k = 0; k < options->voters; k++) {
            if (i != k && replica_meet(w->node[i].replica, k + 1, 1000 + k, true) != ERR_OK) {
                UNREACHABLE();
            }
        }
    }
}

static bool all_have_what_was_acked(const struct raft_world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        if (raft_changes_in(w, &w->node[i]) && w->node[i].applied < w->acked_index) {
            return false;
        }
    }
    return raft_changes_behind(w) == NULL;
}

static void heal(struct raft_world *w)
{
    w->healing = true;
    w->delay_percent = 0;
    memset(w->cut, 0, sizeof w->cut);
    for (unsigned i = 0; i < w->count; i++) {
        w->node[i].disk.stall_percent = 0;
        if (w->node[i].replica == NULL) {
            sim_voter_start(&w->node[i]);
        }
    }
    raft_world_run_until(w, w->now_us + HEAL_US);
    w->quiet = true;
    // At one entry a message, a voter far behind takes its time.
    for (unsigned s = 0; s < QUIET_S_MAX && (s < 2 || !all_have_what_was_acked(w)); s++) {
        raft_world_run_until(w, w->now_us + 1000000);
    }
}

static void check_end(struct raft_world *w)
{
    unsigned leaders = 0;

    for (unsigned i = 0; i < w->count; i++) {
        struct sim_voter *n = &w->node[i];
        leaders += sim_voter_leads(n) && raft_changes_in(w, n);
        if (raft_changes_in(w, n) && n->applied < w->acked_index) {
            raft_world_violation(w, n, "an acknowledged command is missing after all healed");
        }
        if (n->disk.holes > 0) {
            raft_world_violation(w, n, "an append left a hole on the disk");
        }
    }
    if (raft_changes_behind(w) != NULL) {
        raft_world_violation(w, raft_changes_behind(w), "it has not heard of the last voters");
    }
    if (leaders != 1) {
        raft_world_violation(w, &w->node[0], "no leader, or two, after all healed");
    }
}

static void world_fini(struct raft_world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct sim_voter *n = &w->node[i];
        if (n->replica != NULL) {
            sim_voter_count_cuts(n);
            replica_close(n->replica);
        }
        w->result->power_losses += n->disk.power_losses;
        raft_disk_fini(&n->disk);
    }
    while (w->heap_count > 0) {
        mem_free(w->heap[--w->heap_count].packet);
    }
    mem_free(w->heap);
    mem_free(w->chain_at);
    mem_free(w->index_of);
}

void raft_world_run(const struct raft_world_options *options, struct raft_world_result *result)
{
    struct raft_world *w = mem_new(1, sizeof *w);

    *result = (struct raft_world_result){0};
    world_init(w, options, result);
    if (options->scenario == FIGURE_8) {
        raft_play_figure_8(w);
    } else if (options->scenario == FOREIGN_TAIL) {
        raft_play_foreign_tail(w);
    } else if (options->scenario == WHOLE_LOG) {
        raft_play_whole_log(w);
    } else if (options->scenario == OLD_ANSWERS) {
        raft_play_old_answers(w);
    } else {
        raft_world_push_for(w, ON_CLIENT, &w->node[0], w->now_us);
        raft_world_push_for(w, ON_NEMESIS, &w->node[0], w->now_us + 2000000);
        if (options->change) {
            raft_world_push_for(w, ON_OPERATOR, &w->node[0], w->now_us + 3000000);
        }
        raft_world_run_until(w, w->now_us + options->seconds * 1000000);
        heal(w);
        check_end(w);
    }
    result->virtual_us = w->now_us - 1000000;
    world_fini(w);
    mem_free(w);
}
