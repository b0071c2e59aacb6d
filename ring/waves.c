/* SPDX-License-Identifier: Apache-2.0
 *
 * Waves are an edge colouring: nodes are the vertices, transactions the edges,
 * and a colour may meet at one node wave_cap times. No schedule is shorter
 * than the busiest node's transactions / wave_cap; serving the busiest nodes
 * first in every wave reaches that in all but odd cases.
 */
#include "ring/waves.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* SPLITs or MERGEs that go into one transaction: bounds its message. */
enum { CUTS_PER_TXN = 1024 };

/* Of MOVEs; struct plan_limits and struct plan_loads say what each means. */
struct caps {
    uint32_t moves_per_txn;
    uint32_t wave_cap;
    const uint32_t *cells_of;
};

/* A run of steps that becomes one transaction. */
struct group {
    const struct step *step; /* of sorted */
    size_t count;
    uint32_t wave;
    uint32_t busy; /* transactions of its busier end */
};

struct schedule {
    struct group *group; /* owned */
    size_t count;
    size_t cap;
    uint32_t waves;
};

struct sorted {
    struct step step;
    size_t order;
};

static int by_pair(const void *a, const void *b)
{
    const struct sorted *x = a;
    const struct sorted *y = b;

    if (x->step.source != y->step.source) {
        return x->step.source < y->step.source ? -1 : 1;
    }
    if (x->step.target != y->step.target) {
        return x->step.target < y->step.target ? -1 : 1;
    }
    return (x->order > y->order) - (x->order < y->order);
}

/* Returns owned steps: those of one source and target side by side, each pair's in order. */
static struct step *sort_by_pair(const struct steps *s)
{
    struct sorted *sorted = mem_new(s->count, sizeof *sorted);
    struct step *result = mem_new(s->count, sizeof *result);

    for (size_t i = 0; i < s->count; i++) {
        sorted[i] = (struct sorted){s->step[i], i};
    }
    qsort(sorted, s->count, sizeof *sorted, by_pair);
    for (size_t i = 0; i < s->count; i++) {
        result[i] = sorted[i].step;
    }
    mem_free(sorted);
    return result;
}

static void add_group(struct schedule *s, struct group group)
{
    if (s->count == s->cap) {
        s->cap = s->cap == 0 ? 64 : 2 * s->cap;
        s->group = mem_resize(s->group, s->cap * sizeof *s->group);
    }
    ASSERT(s->group != NULL);
    s->group[s->count++] = group;
}

static bool same_pair(const struct step *a, const struct step *b)
{
    return a->source == b->source && a->target == b->target;
}

/* How many of the `count` steps make the first transaction. */
static size_t fit(const struct step *step, size_t count, const struct caps *caps)
{
    const size_t most = caps == NULL ? CUTS_PER_TXN : caps->moves_per_txn;
    const uint64_t cells =
        caps == NULL || caps->cells_of == NULL ? 0 : caps->cells_of[step->source];
    uint64_t sum = step->cells;
    size_t size = 1;

    while (size < most && size < count && same_pair(step, &step[size])) {
        sum += step[size].cells;
        if (cells != 0 && sum > cells) {
            break;
        }
        size++;
    }
    return size;
}

/* Cut `count` sorted steps into groups of one pair, and at most CUTS_PER_TXN steps, or with
 * `caps` what those say of the source's moves. A group's `wave` is its number among its pair's.
 */
static void add_groups(struct schedule *s, const struct step *step, size_t count,
                       const struct caps *caps)
{
    for (size_t at = 0, size = 0; at < count; at += size) {
        const struct group *before = s->count == 0 ? NULL : &s->group[s->count - 1];
        const struct step *first = step + at;
        const bool same = before != NULL && at > 0 && same_pair(before->step, first);
        uint32_t number = same ? before->wave + 1 : 0;

        size = fit(first, count - at, caps);
        add_group(s, (struct group){.step = first, .count = size, .wave = number});
    }
}

/* Each group may build on the one before. */
static void schedule_together(struct schedule *s, const struct step *step, size_t count)
{
    for (size_t at = 0; at < count; at += CUTS_PER_TXN) {
        const size_t left = count - at;

        add_group(s,
                  (struct group){.step = step + at,
                                 .count = left < CUTS_PER_TXN ? left : CUTS_PER_TXN,
                                 .wave = s->waves++});
    }
}

/* One owner's SPLITs may build on each other: its second group waits for its first. */
static void schedule_by_owner(struct schedule *s, const struct step *step, size_t count)
{
    size_t first = s->count;
    uint32_t start = s->waves;

    add_groups(s, step, count, NULL);
    for (size_t i = first; i < s->count; i++) {
        s->group[i].wave += start;
        s->waves = s->group[i].wave + 1 > s->waves ? s->group[i].wave + 1 : s->waves;
    }
}

/* Does it build on a vnode that is busy, by itself or by steps before it? What it makes is busy
 * then, too. */
static bool is_busy(uint8_t *busy, const struct ring_op *op)
{
    const bool yes = busy[op->vnode] != 0 || busy[op->other] != 0;

    if (yes) {
        busy[op->vnode] = 1;
        busy[op->other] = 1;
    }
    return yes;
}

/* Take the busy steps out of `all`, which closes up; both keep their order. */
static void part_busy(struct steps *all, struct steps *parted, const struct plan_limits *limits)
{
    uint8_t *busy = mem_new(RING_VNODES_MAX + 1, 1);
    size_t kept = 0;

    memcpy(busy, limits->busy, limits->busy_count);
    parted->step = mem_new(all->count, sizeof *parted->step);
    for (size_t i = 0; i < all->count; i++) {
        if (is_busy(busy, &all->step[i].op)) {
            parted->step[parted->count++] = all->step[i];
        } else {
            all->step[kept++] = all->step[i];
        }
    }
    all->count = kept;
    mem_free(busy);
}

/* Most go together, for each transaction is told to everyone: a join of one to a thousand nodes
 * cuts vnodes of 64. What waits for something else must not let the others wait. Returns owned
 * steps that the schedule borrows. */
static struct step *schedule_cuts(struct schedule *s, struct steps *cuts,
                                  const struct plan_limits *limits)
{
    struct steps parted = {0};
    struct step *sorted;

    if (limits->busy != NULL && cuts->count > 0) {
        part_busy(cuts, &parted, limits);
    }
    sorted = sort_by_pair(&parted);
    mem_free(parted.step);
    schedule_together(s, cuts->step, cuts->count);
    schedule_by_owner(s, sorted, parted.count);
    return sorted;
}

static int busiest_first(const void *a, const void *b)
{
    const struct group *x = a;
    const struct group *y = b;

    if (x->busy != y->busy) {
        return x->busy > y->busy ? -1 : 1;
    }
    if (x->wave != y->wave) { // not all of one pair first: several sources give at a time
        return x->wave < y->wave ? -1 : 1;
    }
    return (x->step > y->step) - (x->step < y->step);
}

static void sort_by_busy(struct group *group, size_t count)
{
    uint32_t *degree = mem_new(RING_NODES_MAX + 1, sizeof *degree);

    for (size_t i = 0; i < count; i++) {
        degree[group[i].step->source]++;
        degree[group[i].step->target]++;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t source = degree[group[i].step->source];
        uint32_t target = degree[group[i].step->target];

        group[i].busy = source > target ? source : target;
    }
    qsort(group, count, sizeof *group, busiest_first);
    mem_free(degree);
}

/* Give wave number `wave` to as many groups as find room in it, the first ones first. They go to
 * `done`; the others close up and keep their order. Returns how many those are. */
static size_t fill_wave(struct group *group, size_t count, struct group *done, uint32_t wave,
                        uint32_t cap)
{
    uint32_t *taken = mem_new(RING_NODES_MAX + 1, sizeof *taken);
    size_t left = 0;

    for (size_t i = 0; i < count; i++) {
        struct group g = group[i];

        if (taken[g.step->source] >= cap || taken[g.step->target] >= cap) {
            group[left++] = g;
            continue;
        }
        taken[g.step->source]++;
        taken[g.step->target]++;
        g.wave = wave;
        *done++ = g;
    }
    mem_free(taken);
    return left;
}

static void schedule_moves(struct schedule *s, const struct step *step, size_t count,
                           const struct caps *caps)
{
    size_t first = s->count;
    struct group *done;

    if (count == 0) {
        return;
    }
    add_groups(s, step, count, caps);
    sort_by_busy(s->group + first, s->count - first);
    done = mem_new(s->count - first, sizeof *done);
    for (size_t all = s->count - first, left = all; left > 0; s->waves++) {
        left = fill_wave(s->group + first, left, done + (all - left), s->waves, caps->wave_cap);
    }
    memcpy(s->group + first, done, (s->count - first) * sizeof *done);
    mem_free(done);
}

static int by_wave(const void *a, const void *b)
{
    const struct group *x = a;
    const struct group *y = b;

    if (x->wave != y->wave) {
        return x->wave < y->wave ? -1 : 1;
    }
    if (x->step->source != y->step->source) {
        return x->step->source < y->step->source ? -1 : 1;
    }
    if (x->step->target != y->step->target) {
        return x->step->target < y->step->target ? -1 : 1;
    }
    return (x->step > y->step) - (x->step < y->step);
}

/* The transactions and, behind them in the same memory, their ops. */
static void fill_plan(struct plan *plan, const struct schedule *s)
{
    size_t head = s->count * sizeof *plan->txn;
    size_t ops = 0;
    struct ring_op *op;

    for (size_t i = 0; i < s->count; i++) {
        ops += s->group[i].count;
    }
    plan->txn = mem_new(1, head + ops * sizeof *op);
    plan->txn_count = s->count;
    plan->wave_count = s->waves;
    op = (struct ring_op *)(void *)(plan->txn + s->count);
    for (size_t i = 0; i < s->count; i++) {
        const struct group *g = &s->group[i];
        bool move = g->step->op.kind == RING_MOVE;

        plan->txn[i] = (struct plan_txn){.ops = op,
                                         .op_count = g->count,
                                         .source = move ? g->step->source : RING_NODE_NONE,
                                         .target = move ? g->step->target : RING_NODE_NONE,
                                         .wave = g->wave};
        for (size_t k = 0; k < g->count; k++) {
            *op++ = g->step[k].op;
        }
    }
}

void waves_make(struct plan *plan, struct pieces *p, const struct plan_limits *limits,
                const uint32_t *cells_of)
{
    const struct caps caps = {limits->moves_per_txn, limits->wave_cap, cells_of};
    struct step *moves = sort_by_pair(&p->moves);
    struct step *splits;
    struct step *merges;
    struct schedule s = {0};

    *plan = (struct plan){.moved_cells = p->moved_cells};
    splits = schedule_cuts(&s, &p->splits, limits);
    schedule_moves(&s, moves, p->moves.count, &caps);
    merges = schedule_cuts(&s, &p->merges, limits);
    if (s.count > 0) {
        qsort(s.group, s.count, sizeof *s.group, by_wave);
        fill_plan(plan, &s);
    }
    mem_free(s.group);
    mem_free(splits);
    mem_free(moves);
    mem_free(merges);
}
