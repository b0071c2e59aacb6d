/* SPDX-License-Identifier: Apache-2.0
 *
 * What a ring costs as the fleet grows: `scale_bench NODES GATEWAYS`, one line
 * "NAME VALUE UNIT" for each figure; bench/scale reads them. 64 vnodes a node.
 *
 *     planning   plan_make() for one node more, for a tenth more at once, for one to be drained
 *     memory     ring, snapshots, configuration, state, as bytes of their arrays
 *     deltas     what a MOVE and a SPLIT cost who applies them
 *     fleet      sim/scale.h: idle, one join, many joins at once, a drain
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "ring/plan.h"
#include "ring/view.h"
#include "sim/scale.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { VNODES = 64, ROUNDS = 21, MOVES = 1000, NODES_MAX = 4000, IDLE_US = 5000000 };

static const struct plan_limits limits = {
    .vnodes_per_weight = VNODES, .moves_per_txn = 8, .wave_cap = 4, .owned_only = true};

static double now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *sample, size_t count)
{
    qsort(sample, count, sizeof *sample, by_value);
    return sample[count / 2];
}

static void tell(const char *name, double value, const char *unit)
{
    (void)printf("%s %.6g %s\n", name, value, unit);
    (void)fflush(stdout);
}

/* Cells for 64 vnodes a node, four each at least. */
static uint8_t grid_of(unsigned nodes)
{
    uint8_t grid = RING_GRID_MIN;

    while ((UINT64_C(1) << grid) < (uint64_t)nodes * VNODES * 4) {
        grid++;
    }
    return grid;
}

/* ---- planning ---- */

/* Nodes 1..count; the last `leaving` of them drain. */
static struct plan_node *make_nodes(unsigned count, unsigned leaving)
{
    struct plan_node *node = mem_new(count, sizeof *node);

    for (unsigned i = 0; i < count; i++) {
        node[i] = (struct plan_node){.slot = (uint16_t)(i + 1),
                                     .weight = 1,
                                     .incarnation = i + 1,
                                     .leaving = i >= count - leaving};
    }
    return node;
}

static void carry_out(struct ring *r, const struct plan *plan)
{
    for (size_t i = 0; i < plan->txn_count; i++) {
        ring_apply(r, plan->txn[i].ops, plan->txn[i].op_count, r->version + 1, r->version);
    }
}

static void share(struct ring *r, unsigned nodes)
{
    struct plan_node *node = make_nodes(nodes, 0);
    struct plan plan;
    const enum err e =
        plan_make(&plan, plan_by_weight, &(struct plan_view){r, node, nodes}, NULL, NULL, &limits);

    ASSERT(e == ERR_OK);
    carry_out(r, &plan);
    plan_fini(&plan);
    mem_free(node);
}

static void measure_plan(const char *name, const struct ring *r, unsigned nodes, unsigned leaving)
{
    struct plan_node *node = make_nodes(nodes, leaving);
    double took[ROUNDS];
    char text[64];
    struct plan plan;
    size_t txns = 0;
    size_t ops = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        const double begin = now_us();
        const enum err e = plan_make(
            &plan, plan_by_weight, &(struct plan_view){r, node, nodes}, NULL, NULL, &limits);

        took[i] = now_us() - begin;
        ASSERT(e == ERR_OK);
        txns = plan.txn_count;
        ops = 0;
        for (size_t t = 0; t < txns; t++) {
            ops += plan.txn[t].op_count;
        }
        plan_fini(&plan);
    }
    mem_free(node);
    (void)snprintf(text, sizeof text, "plan_%s", name);
    tell(text, median(took, ROUNDS) / 1e3, "ms");
    (void)snprintf(text, sizeof text, "plan_%s_txns", name);
    tell(text, (double)txns, "transactions");
    (void)snprintf(text, sizeof text, "plan_%s_ops", name);
    tell(text, (double)ops, "operations");
}

/* ---- memory ---- */

static void measure_memory(const struct ring *r)
{
    double before = scale_allocated();
    struct buffer bytes = {0};
    struct ring copy;

    ring_copy(&copy, r);
    tell("ring_memory", scale_allocated() - before, "bytes");
    tell("ring_table", (double)r->cell_count * sizeof *r->cell, "bytes");
    ring_fini(&copy);
    ring_encode(r, &bytes);
    tell("ring_wire", (double)bytes.size, "bytes");
    buffer_fini(&bytes);
}

/* ---- deltas ---- */

static Rh__Delta *delta_of(const struct view *v, struct ring_op op)
{
    Rh__Delta *delta = mem_new(1, sizeof *delta);

    *delta = (Rh__Delta)RH__DELTA__INIT;
    delta->version = v->ring.version + 1;
    delta->txn = v->ring.version;
    delta->ops = view_wire_ops(&op, 1);
    delta->n_ops = 1;
    return delta;
}

static double apply_one(struct view *v, struct ring_op op)
{
    Rh__Delta *delta = delta_of(v, op);
    const bool good = view_seal(v, delta);
    const double begin = now_us();
    const enum view_result result = view_apply(v, delta);
    const double took = now_us() - begin;

    ASSERT(good && result == VIEW_APPLIED);
    proto_free(&delta->base);
    return took;
}

static struct ring_op move_of(const struct ring *r, unsigned at)
{
    const struct ring_vnode *v = &r->vnode[at % r->vnode_count];

    return (struct ring_op){.kind = RING_MOVE,
                            .vnode = v->id,
                            .from = v->owner,
                            .to = v->owner == 1 ? 2 : (uint16_t)(v->owner - 1)};
}

static struct ring_op split_of(const struct ring *r, unsigned at)
{
    const struct ring_vnode *v = &r->vnode[at % r->vnode_count];

    return (struct ring_op){.kind = RING_SPLIT,
                            .vnode = v->id,
                            .other = (uint32_t)r->vnode_count,
                            .at = v->from + (ring_end(r, v) - v->from) / 2};
}

static void measure_deltas(const struct ring *r, unsigned nodes)
{
    struct view v = {.key = {1, 2}, .era = 1};
    static double took[MOVES];
    unsigned splits = 0;

    ring_copy(&v.ring, r);
    v.member = mem_new(nodes, sizeof *v.member);
    v.member_count = nodes;
    for (unsigned i = 0; i < nodes; i++) {
        v.member[i].slot = (uint16_t)(i + 1);
    }
    for (unsigned i = 0; i < MOVES; i++) {
        took[i] = apply_one(&v, move_of(&v.ring, i * 7919));
    }
    tell("apply_move", median(took, MOVES), "us");
    for (unsigned i = 0; splits < ROUNDS; i += 31) {
        const struct ring_op op = split_of(&v.ring, i);

        if (op.at > ring_find(&v.ring, op.vnode)->from) {
            took[splits++] = apply_one(&v, op);
        }
    }
    tell("apply_split", median(took, ROUNDS), "us");
    view_fini(&v);
}

/* ---- the fleet ---- */

static void tell_flow(const char *what, const char *name, struct scale_flow flow)
{
    char text[96];

    (void)snprintf(text, sizeof text, "%s_%s_messages", what, name);
    tell(text, (double)flow.messages, "messages");
    (void)snprintf(text, sizeof text, "%s_%s_bytes", what, name);
    tell(text, (double)flow.bytes, "bytes");
}

static void tell_one(const char *what, const char *name, double value, const char *unit)
{
    char text[96];

    (void)snprintf(text, sizeof text, "%s_%s", what, name);
    tell(text, value, unit);
}

static bool measure_fleet(const char *what, const struct scale_options *options)
{
    struct scale_result r;

    if (!scale_run(options, &r)) {
        (void)fprintf(stderr, "%s: the fleet did not come to rest\n", what);
        return false;
    }
    tell_one(what, "time", (double)r.virtual_us / 1e6, "s");
    tell_one(what, "plans", (double)r.plans, "plans");
    tell_one(what, "changes", (double)r.changes, "changes");
    tell_one(what, "moves", (double)r.moves, "vnodes");
    tell_one(what, "leader_cpu", r.leader_cpu_s * 1e3, "ms");
    tell_one(what, "gateway_cpu", r.gateway_cpu_s * 1e3, "ms");
    tell_one(what, "leader_memory", r.leader_bytes, "bytes");
    tell_one(what, "gateway_memory", r.gateway_bytes, "bytes");
    tell_flow(what, "to_gateways", r.to_gateways);
    tell_flow(what, "changes_to_gateways", r.changes_to_gateways);
    tell_flow(what, "moves_to_gateways", r.moves_to_gateways);
    tell_flow(what, "to_nodes", r.to_nodes);
    tell_flow(what, "to_leader", r.to_leader);
    tell_flow(what, "gateway_to_nodes", r.gateway_to_nodes);
    tell_flow(what, "entries", r.entries);
    return true;
}

static bool measure_fleets(unsigned nodes, unsigned gateways, uint8_t grid)
{
    struct scale_options options = {
        .nodes = nodes, .gateways = gateways, .grid = grid, .idle_us = IDLE_US};
    bool good = measure_fleet("idle", &options);

    options.joiners = 1;
    good = measure_fleet("join", &options) && good;
    options.joiners = nodes / 10 == 0 ? 1 : nodes / 10;
    good = measure_fleet("joins", &options) && good;
    options.joiners = 0;
    options.leavers = 1;
    return measure_fleet("drain", &options) && good;
}

int main(int argc, char **argv)
{
    const unsigned nodes = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    const unsigned gateways = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    struct ring ring;

    if (nodes < 2 || nodes > NODES_MAX || gateways < 1) {
        (void)fprintf(stderr, "usage: scale_bench NODES [GATEWAYS]\n");
        return 2;
    }
    log_set_level(LOG_ERROR);
    ring_init(&ring, grid_of(nodes));
    ring_create(&ring, VNODES, 1, 1);
    share(&ring, nodes);
    tell("vnodes", (double)ring.vnode_count, "vnodes");
    measure_plan("join", &ring, nodes + 1, 0);
    measure_plan("joins", &ring, nodes + (nodes / 10 == 0 ? 1 : nodes / 10), 0);
    measure_plan("drain", &ring, nodes, 1);
    measure_memory(&ring);
    measure_deltas(&ring, nodes);
    ring_fini(&ring);
    return measure_fleets(nodes, gateways, grid_of(nodes)) ? 0 : 1;
}
