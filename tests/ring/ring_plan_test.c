/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans are carried out here, transaction by transaction, and what comes out
 * is judged: is it legal, is it balanced, did no more move than had to?
 */
#include "base/mem.h"
#include "base/prng.h"
#include "ring/plan.h"

#include "tests/test.h"

#include <string.h>

enum { NODES = RING_NODES_MAX };

struct fleet {
    struct ring ring;
    struct plan_node node[NODES];
    size_t count;
    struct plan_limits limits;
    struct plan_loads loads;
    struct plan_wishes wishes; /* borrowed */
    struct plan plan;          /* the last one */
};

static void fleet_init(struct fleet *f, uint8_t grid, uint32_t vnodes_per_weight)
{
    *f = (struct fleet){
        .limits = {.vnodes_per_weight = vnodes_per_weight, .moves_per_txn = 8, .wave_cap = 4}};
    ring_init(&f->ring, grid);
    ring_create(&f->ring, 1, 1, 1);
}

static void fleet_fini(struct fleet *f)
{
    plan_fini(&f->plan);
    ring_fini(&f->ring);
}

static void add(struct fleet *f, uint16_t slot, uint32_t weight)
{
    f->node[f->count++] = (struct plan_node){.slot = slot, .weight = weight};
}

static void add_many(struct fleet *f, uint16_t from, uint16_t to)
{
    for (uint16_t slot = from; slot <= to; slot++) {
        add(f, slot, 1);
    }
}

static void forget(struct fleet *f, size_t index)
{
    f->count--;
    memmove(&f->node[index], &f->node[index + 1], (f->count - index) * sizeof f->node[0]);
}

static void make_plan(struct fleet *f)
{
    plan_fini(&f->plan);
    assert_int_equal(plan_make(&f->plan,
                               plan_by_weight,
                               &(struct plan_view){&f->ring, f->node, f->count},
                               &f->loads,
                               &f->wishes,
                               &f->limits),
                     ERR_OK);
}

static void carry_out(struct fleet *f)
{
    for (size_t i = 0; i < f->plan.txn_count; i++) {
        const struct plan_txn *t = &f->plan.txn[i];

        assert_int_equal(ring_check(&f->ring, t->ops, t->op_count), ERR_OK);
        ring_apply(&f->ring, t->ops, t->op_count, f->ring.version + 1, i + 1);
    }
}

/* Make a plan and carry it out; returns the cells it moved. */
static uint64_t settle(struct fleet *f)
{
    make_plan(f);
    carry_out(f);
    return f->plan.moved_cells;
}

static uint64_t weight_of_fleet(const struct fleet *f)
{
    uint64_t weight = 0;

    for (size_t i = 0; i < f->count; i++) {
        weight += f->node[i].leaving ? 0 : f->node[i].weight;
    }
    return weight;
}

/* The greatest share among nodes that stay, in thousandths of what it should be. */
static uint64_t worst_share(const struct fleet *f)
{
    static uint64_t own[RING_NODES_MAX + 1];
    uint64_t weight = weight_of_fleet(f);
    uint64_t worst = 0;

    memset(own, 0, sizeof own);
    for (size_t i = 0; i < f->ring.vnode_count; i++) {
        const struct ring_vnode *v = &f->ring.vnode[i];

        own[v->owner] += ring_end(&f->ring, v) - v->from;
    }
    for (size_t i = 0; i < f->count; i++) {
        uint64_t share =
            (own[f->node[i].slot] * weight * 10000 / f->node[i].weight) >> f->ring.grid;

        assert_true(!f->node[i].leaving || own[f->node[i].slot] == 0);
        worst = !f->node[i].leaving && share > worst ? share : worst;
    }
    return worst;
}

/* ---- legal: what every plan must keep ---- */

static void assert_txn_is_one_kind(const struct plan_txn *t, const struct plan_limits *limits)
{
    assert_true(t->op_count > 0);
    for (size_t k = 0; k < t->op_count; k++) {
        assert_int_equal(t->ops[k].kind, t->ops[0].kind);
        if (t->ops[0].kind == RING_MOVE) {
            assert_int_equal(t->ops[k].from, t->source);
            assert_int_equal(t->ops[k].to, t->target);
        }
    }
    if (t->ops[0].kind == RING_MOVE) {
        assert_true(t->op_count <= limits->moves_per_txn);
        assert_true(t->target != RING_NODE_NONE);
    } else {
        assert_int_equal(t->source, 0);
        assert_int_equal(t->target, 0);
    }
}

static void assert_waves_are_in_order(const struct plan *p)
{
    enum ring_op_kind kind = RING_SPLIT;
    uint32_t wave = 0;

    for (size_t i = 0; i < p->txn_count; i++) {
        const struct plan_txn *t = &p->txn[i];

        assert_true(t->wave == wave || t->wave == wave + 1 || i == 0);
        // SPLIT, then MOVE, then MERGE; never two kinds in one wave.
        if (i > 0 && t->ops[0].kind != kind) {
            assert_int_equal(t->wave, wave + 1);
            assert_true(kind == RING_SPLIT || t->ops[0].kind == RING_MERGE);
        }
        kind = t->ops[0].kind;
        wave = t->wave;
    }
    assert_int_equal(p->wave_count, p->txn_count == 0 ? 0 : wave + 1);
}

/* Returns the most transactions that one node takes part in. */
static uint32_t assert_cap_is_kept(const struct plan *p, uint32_t cap)
{
    static uint32_t in_wave[RING_NODES_MAX + 1];
    static uint32_t in_all[RING_NODES_MAX + 1];
    uint32_t most = 0;

    memset(in_all, 0, sizeof in_all);
    memset(in_wave, 0, sizeof in_wave);
    for (size_t i = 0; i < p->txn_count; i++) {
        const struct plan_txn *t = &p->txn[i];

        if (i > 0 && t->wave != p->txn[i - 1].wave) {
            memset(in_wave, 0, sizeof in_wave);
        }
        if (t->target == 0) {
            continue;
        }
        in_all[t->source]++;
        in_all[t->target]++;
        assert_true(++in_wave[t->source] <= cap);
        assert_true(++in_wave[t->target] <= cap);
        most = in_all[t->source] > most ? in_all[t->source] : most;
        most = in_all[t->target] > most ? in_all[t->target] : most;
    }
    return most;
}

/* Transactions of one wave may run in any order: here each wave runs backwards. */
static void assert_waves_commute(const struct fleet *f)
{
    const struct plan *p = &f->plan;
    struct ring a;
    struct ring b;

    ring_copy(&a, &f->ring);
    ring_copy(&b, &f->ring);
    for (size_t i = 0; i < p->txn_count; i++) {
        ring_apply(&a, p->txn[i].ops, p->txn[i].op_count, a.version, 1);
    }
    for (size_t start = 0, end = 0; start < p->txn_count; start = end) {
        while (end < p->txn_count && p->txn[end].wave == p->txn[start].wave) {
            end++;
        }
        for (size_t i = end; i > start; i--) {
            const struct plan_txn *t = &p->txn[i - 1];

            assert_int_equal(ring_check(&b, t->ops, t->op_count), ERR_OK);
            ring_apply(&b, t->ops, t->op_count, b.version, 1);
        }
    }
    assert_memory_equal(a.digest, b.digest, sizeof a.digest);
    ring_fini(&a);
    ring_fini(&b);
}

static void assert_legal(const struct fleet *f)
{
    for (size_t i = 0; i < f->plan.txn_count; i++) {
        assert_txn_is_one_kind(&f->plan.txn[i], &f->limits);
    }
    assert_waves_are_in_order(&f->plan);
    (void)assert_cap_is_kept(&f->plan, f->limits.wave_cap);
    assert_waves_commute(f);
}

static void assert_same_plan(const struct plan *a, const struct plan *b)
{
    assert_int_equal(a->txn_count, b->txn_count);
    assert_int_equal(a->wave_count, b->wave_count);
    assert_int_equal(a->moved_cells, b->moved_cells);
    for (size_t i = 0; i < a->txn_count; i++) {
        assert_int_equal(a->txn[i].op_count, b->txn[i].op_count);
        assert_memory_equal(
            a->txn[i].ops, b->txn[i].ops, a->txn[i].op_count * sizeof *a->txn[i].ops);
    }
}

/* The order in which the nodes are named must not matter. */
static void assert_deterministic(const struct fleet *f)
{
    static struct plan_node reversed[NODES];
    struct plan other;

    for (size_t i = 0; i < f->count; i++) {
        reversed[i] = f->node[f->count - 1 - i];
    }
    assert_int_equal(plan_make(&other,
                               plan_by_weight,
                               &(struct plan_view){&f->ring, reversed, f->count},
                               &f->loads,
                               &f->wishes,
                               &f->limits),
                     ERR_OK);
    assert_same_plan(&f->plan, &other);
    plan_fini(&other);
}

static void assert_nothing_left_to_do(const struct fleet *f)
{
    struct plan again;

    assert_int_equal(plan_make(&again,
                               plan_by_weight,
                               &(struct plan_view){&f->ring, f->node, f->count},
                               &f->loads,
                               &f->wishes,
                               &f->limits),
                     ERR_OK);
    assert_int_equal(again.txn_count, 0);
    assert_int_equal(again.moved_cells, 0);
    plan_fini(&again);
}

/* Join, leave, change weight, several at once. */
static void change_at_random(struct fleet *f, struct prng *p)
{
    for (uint64_t n = prng_between(p, 1, 4); n > 0 && f->count > 0; n--) {
        size_t i = (size_t)(prng_u64(p) % f->count);

        switch (prng_between(p, 0, 3)) {
        case 0:
            f->node[i].leaving = f->count > 1 && i > 0;
            break;
        case 1:
            f->node[i].weight = (uint32_t)prng_between(p, 1, 5);
            break;
        default:
            add(f, (uint16_t)(f->node[f->count - 1].slot + prng_between(p, 1, 3)), 1);
        }
    }
    f->node[0].leaving = false;
}

static void forget_who_left(struct fleet *f)
{
    for (size_t i = f->count; i > 0; i--) {
        if (f->node[i - 1].leaving) {
            forget(f, i - 1);
        }
    }
}

static void any_change_of_any_fleet_gives_a_legal_plan(void **state)
{
    static struct fleet f;
    struct prng p = {5};

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        fleet_init(&f, (uint8_t)prng_between(&p, 4, 12), (uint32_t)prng_between(&p, 1, 16));
        f.limits.moves_per_txn = (uint32_t)prng_between(&p, 1, 9);
        f.limits.wave_cap = (uint32_t)prng_between(&p, 1, 5);
        add(&f, 1, (uint32_t)prng_between(&p, 1, 3));
        for (unsigned step = 0; step < 8 && f.count < 100; step++) {
            change_at_random(&f, &p);
            make_plan(&f);
            assert_legal(&f);
            assert_deterministic(&f);
            carry_out(&f);
            ring_check_invariants(&f.ring);
            (void)worst_share(&f);
            assert_nothing_left_to_do(&f);
            forget_who_left(&f);
        }
        fleet_fini(&f);
    }
}

/* ---- sources of many actors ---- */

/* Whose what is, by which transactions it came so aside. */
static void placement_digest(const struct ring *r, uint64_t digest[2])
{
    struct ring bare;

    ring_copy(&bare, r);
    for (size_t i = 0; i < bare.vnode_count; i++) {
        bare.vnode[i].generation = bare.vnode[i].cold = bare.vnode[i].txn = 0;
    }
    ring_digest(&bare, digest);
    ring_fini(&bare);
}

/* Returns how many MOVEs the plan has; none of a source in `cells_of` takes more cells than that.
 */
static size_t assert_slices_fit(const struct fleet *f, const uint32_t *cells_of)
{
    size_t moves = 0;
    struct ring r;

    ring_copy(&r, &f->ring);
    for (size_t i = 0; i < f->plan.txn_count; i++) {
        const struct plan_txn *t = &f->plan.txn[i];
        uint32_t cells = 0;

        for (size_t k = 0; k < t->op_count && t->ops[0].kind == RING_MOVE; k++, moves++) {
            const struct ring_vnode *v = ring_find(&r, t->ops[k].vnode);

            cells += ring_end(&r, v) - v->from;
        }
        assert_true(cells_of[t->source] == 0 || cells <= cells_of[t->source]);
        ring_apply(&r, t->ops, t->op_count, r.version + 1, i + 1);
    }
    ring_fini(&r);
    return moves;
}

/* Of one change two plans, with and without a limit: the same ring comes of both. */
static void assert_limit_leaves_the_ring_as_it_is(const struct fleet *f)
{
    struct fleet plain = {.count = 0};
    uint64_t a[2];
    uint64_t b[2];

    ring_copy(&plain.ring, &f->ring);
    assert_int_equal(plan_make(&plain.plan,
                               plan_by_weight,
                               &(struct plan_view){&plain.ring, f->node, f->count},
                               NULL,
                               NULL,
                               &f->limits),
                     ERR_OK);
    assert_int_equal(plain.plan.moved_cells, f->plan.moved_cells);
    carry_out(&plain);
    placement_digest(&plain.ring, a);
    fleet_fini(&plain);
    ring_copy(&plain.ring, &f->ring);
    plain.plan = f->plan;
    carry_out(&plain);
    placement_digest(&plain.ring, b);
    ring_fini(&plain.ring);
    assert_memory_equal(a, b, sizeof a);
}

static void a_source_of_many_actors_gives_little_at_a_time(void **state)
{
    static uint32_t cells_of[RING_NODES_MAX + 1];
    static struct fleet f;
    size_t of_1 = 0;
    size_t of_2 = 0;

    (void)state;
    fleet_init(&f, 12, 16);
    add(&f, 1, 1);
    add(&f, 2, 1);
    (void)settle(&f); // vnodes of 128 cells
    cells_of[1] = 50;
    f.loads.cells_of = cells_of;
    add(&f, 3, 1);
    make_plan(&f);
    assert_legal(&f);
    (void)assert_slices_fit(&f, cells_of);
    assert_limit_leaves_the_ring_as_it_is(&f);
    for (size_t i = 0; i < f.plan.txn_count; i++) {
        of_1 += f.plan.txn[i].source == 1;
        of_2 += f.plan.txn[i].source == 2;
    }
    assert_true(of_1 >= 4096 / 2 / 3 / 50);
    assert_in_range(of_2, 1, 2); // eight vnodes at a time
    carry_out(&f);
    assert_nothing_left_to_do(&f);
    fleet_fini(&f);
}

static void what_fits_together_goes_together(void **state)
{
    static uint32_t cells_of[RING_NODES_MAX + 1];
    static struct fleet f;

    (void)state;
    fleet_init(&f, 12, 16);
    add(&f, 1, 1);
    add(&f, 2, 1);
    (void)settle(&f);
    cells_of[1] = 256; // two vnodes
    f.loads.cells_of = cells_of;
    add(&f, 3, 1);
    make_plan(&f);
    assert_legal(&f);
    (void)assert_slices_fit(&f, cells_of);
    for (size_t i = 0; i < f.plan.txn_count; i++) {
        assert_true(f.plan.txn[i].ops[0].kind != RING_MERGE);
        assert_true(f.plan.txn[i].source != 1 || f.plan.txn[i].op_count <= 2);
    }
    fleet_fini(&f);
}

static void slices_are_larger_where_they_would_be_too_many(void **state)
{
    static uint32_t cells_of[RING_NODES_MAX + 1];
    static const uint32_t no_limit[RING_NODES_MAX + 1];
    static struct fleet f;
    size_t whole;
    size_t sliced;

    (void)state;
    fleet_init(&f, 18, 64);
    add_many(&f, 1, 10);
    (void)settle(&f);
    add_many(&f, 11, 12);
    make_plan(&f);
    whole = assert_slices_fit(&f, no_limit);
    for (size_t slot = 1; slot <= 10; slot++) {
        cells_of[slot] = 1;
    }
    f.loads.cells_of = cells_of;
    make_plan(&f);
    assert_legal(&f);
    sliced = assert_slices_fit(&f, no_limit);
    assert_in_range(sliced, whole + 256, whole + 1024);
    assert_limit_leaves_the_ring_as_it_is(&f);
    fleet_fini(&f);
}

/* A plan that is dropped on its way leaves vnodes cut: the next one takes them as they are. */
static void a_plan_in_the_midst_of_another_one_is_as_good(void **state)
{
    static uint32_t cells_of[RING_NODES_MAX + 1];
    static struct fleet f;
    struct prng p = {36};

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        fleet_init(&f, (uint8_t)prng_between(&p, 6, 12), (uint32_t)prng_between(&p, 1, 16));
        add(&f, 1, (uint32_t)prng_between(&p, 1, 3));
        f.loads.cells_of = cells_of;
        for (unsigned step = 0; step < 8 && f.count < 100; step++) {
            for (size_t slot = 1; slot <= RING_NODES_MAX; slot++) {
                cells_of[slot] = prng_chance(&p, 50) ? (uint32_t)prng_between(&p, 1, 64) : 0;
            }
            change_at_random(&f, &p);
            make_plan(&f);
            assert_legal(&f);
            assert_deterministic(&f);
            assert_limit_leaves_the_ring_as_it_is(&f);
            f.plan.txn_count = (size_t)prng_between(&p, 0, f.plan.txn_count);
            carry_out(&f);
            change_at_random(&f, &p);
            make_plan(&f);
            assert_legal(&f);
            carry_out(&f);
            (void)worst_share(&f);
            assert_nothing_left_to_do(&f);
            ring_check_invariants(&f.ring);
            forget_who_left(&f);
        }
        fleet_fini(&f);
    }
}

/* ---- balanced, with no more moved than must be ---- */

static void churn_keeps_balance_and_moves_the_minimum(void **state)
{
    static struct fleet f;
    struct prng p = {42};
    uint16_t next = 101;
    uint64_t moved = 0;
    uint64_t minimum = 0;

    (void)state;
    fleet_init(&f, 16, 64);
    add_many(&f, 1, 100);
    (void)settle(&f);
    for (unsigned event = 0; event < 400; event++) {
        bool join = f.count < 91 || (f.count < 110 && prng_chance(&p, 50));

        if (join) {
            add(&f, next++, 1);
            minimum += (1u << 16) / f.count;
            moved += settle(&f);
        } else {
            size_t i = (size_t)(prng_u64(&p) % f.count);

            minimum += ring_owned_cells(&f.ring, f.node[i].slot);
            f.node[i].leaving = true;
            moved += settle(&f);
            assert_int_equal(ring_owned_count(&f.ring, f.node[i].slot), 0);
            forget(&f, i);
        }
        assert_true(worst_share(&f) <= 10150);
    }
    assert_true(moved * 100 <= minimum * 101);
    // V stays V: splits for a fit are rare, and joined again when there are too many.
    assert_in_range(f.ring.vnode_count, f.count * 64, f.count * 64 * 3 / 2);
    ring_check_invariants(&f.ring);
    fleet_fini(&f);
}

static void a_fleet_that_grows_one_by_one_is_always_balanced(void **state)
{
    static struct fleet f;
    uint64_t minimum = 0;
    uint64_t all = 0;

    (void)state;
    fleet_init(&f, 16, 64);
    for (uint16_t slot = 1; slot <= 200; slot++) {
        uint64_t moved;

        add(&f, slot, 1);
        moved = settle(&f);
        assert_true(worst_share(&f) <= 10150);
        // The newcomer's share, and now and then a move among the others.
        minimum += (1u << 16) / slot;
        assert_true(slot == 1 || moved * slot * 10 <= (uint64_t)11 << 16);
        all += slot == 1 ? 0 : moved;
    }
    minimum -= 1u << 16;
    assert_true(all * 100 <= minimum * 101);
    assert_int_equal(f.ring.vnode_count, 200 * 64);
    fleet_fini(&f);
}

static void weights_are_kept(void **state)
{
    static struct fleet f;
    uint64_t moved;

    (void)state;
    fleet_init(&f, 18, 64);
    for (uint16_t slot = 1; slot <= 30; slot++) {
        add(&f, slot, 1u << slot % 3);
    }
    (void)settle(&f);
    assert_true(worst_share(&f) <= 10150);
    // From weight 1 to 2 of 70: 69/71 of its old share doubled, that is 1/71 of all.
    f.node[2].weight = 2;
    moved = settle(&f);
    assert_true(worst_share(&f) <= 10150);
    assert_in_range(moved * 71, (1u << 18) * 95 / 100, (1u << 18) * 105 / 100);
    fleet_fini(&f);
}

static void a_shrunk_fleet_joins_its_vnodes_again(void **state)
{
    static struct fleet f;
    bool merged = false;

    (void)state;
    fleet_init(&f, 14, 16);
    add_many(&f, 1, 40);
    (void)settle(&f);
    assert_int_equal(f.ring.vnode_count, 640);
    while (f.count > 2) {
        f.node[f.count - 1].leaving = true;
        make_plan(&f);
        assert_legal(&f);
        carry_out(&f);
        f.count--;
        merged = merged || f.plan.txn[f.plan.txn_count - 1].ops[0].kind == RING_MERGE;
        ring_check_invariants(&f.ring);
        assert_nothing_left_to_do(&f);
    }
    assert_true(merged);
    // Two nodes, mixed at random: half of the neighbours can't be joined.
    assert_true(f.ring.vnode_count < 400);
    fleet_fini(&f);
}

/* Two vnodes of 200 cells, then 64 of node 2 and 16 of node 1 in turn: balanced, many, and the
 * only neighbours of one owner are the two large ones. */
static void what_would_be_too_large_to_move_is_not_joined(void **state)
{
    static struct fleet f;
    uint32_t at = 200;

    (void)state;
    fleet_init(&f, 10, 4);
    add_many(&f, 1, 2);
    for (uint32_t id = 1; id <= 16; id++) {
        const struct ring_op ops[] = {
            {.kind = RING_SPLIT, .vnode = id - 1, .other = id, .at = at},
            {.kind = RING_MOVE, .vnode = id, .from = 1, .to = 2},
        };
        const struct ring_op hand_back = {.kind = RING_MOVE, .vnode = id, .from = 2, .to = 1};

        if (ring_find(&f.ring, id - 1)->owner == 2) {
            ring_apply(&f.ring, ops, 1, 1, 1);
            ring_apply(&f.ring, &hand_back, 1, 1, 1);
        } else {
            ring_apply(&f.ring, ops, id == 1 ? 1 : 2, 1, 1);
        }
        at += id == 1 ? 200 : id % 2 == 0 ? 64 : 16;
    }
    assert_int_equal(ring_owned_cells(&f.ring, 2), 512);
    assert_nothing_left_to_do(&f);
    fleet_fini(&f);
}

static void waves_are_as_few_as_the_busiest_node_allows(void **state)
{
    static struct fleet f;

    (void)state;
    fleet_init(&f, 16, 64);
    add_many(&f, 1, 100);
    (void)settle(&f);
    add_many(&f, 101, 110);
    for (uint32_t cap = 1; cap <= 16; cap *= 2) {
        uint32_t most;
        uint32_t waves;

        f.limits.wave_cap = cap;
        make_plan(&f);
        assert_legal(&f);
        most = assert_cap_is_kept(&f.plan, cap);
        // All waves but the first, which holds the SPLITs.
        waves = f.plan.wave_count - 1;
        assert_in_range(waves, (most + cap - 1) / cap, (most + cap - 1) / cap + 1);
    }
    fleet_fini(&f);
}

static void vnodes_of_nobody_are_given_away(void **state)
{
    static struct fleet f;

    (void)state;
    fleet_init(&f, 14, 64);
    ring_create(&f.ring, 64, RING_NODE_NONE, 1);
    add_many(&f, 1, 3);
    make_plan(&f);
    assert_legal(&f);
    carry_out(&f);
    assert_int_equal(ring_owned_count(&f.ring, RING_NODE_NONE), 0);
    assert_true(worst_share(&f) <= 10150);
    assert_nothing_left_to_do(&f);
    fleet_fini(&f);
}

/* Of each slot: it can't take what a later one has. */
static uint8_t version_of[RING_NODES_MAX + 1];

static bool is_not_older(const void *context, uint16_t source, uint16_t target,
                         const struct ring_segment *segment)
{
    const uint8_t *version = context;

    assert_null(segment);
    return version[target] >= version[source];
}

static size_t owned_by(const struct fleet *f, uint16_t slot)
{
    return ring_owned_count(&f->ring, slot);
}

static bool anyone_may_take(const struct fleet *f, uint16_t slot)
{
    for (size_t i = 0; i < f->count; i++) {
        if (!f->node[i].leaving && version_of[f->node[i].slot] >= version_of[slot]) {
            return true;
        }
    }
    return false;
}

static void nobody_is_given_what_he_may_not_take(void **state)
{
    struct prng prng = {.state = 99};

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        struct fleet f;

        fleet_init(&f, 10, 8);
        f.limits.may = is_not_older;
        f.limits.context = version_of;
        add_many(&f, 1, (uint16_t)prng_between(&prng, 2, 9));
        memset(version_of, 1, sizeof version_of);
        (void)settle(&f);
        // As in a deploy: some have been replaced, then some leave.
        for (size_t i = 0; i < f.count; i++) {
            version_of[f.node[i].slot] = (uint8_t)prng_between(&prng, 1, 3);
            f.node[i].leaving = i > 0 && prng_chance(&prng, 40);
        }
        make_plan(&f);
        for (size_t i = 0; i < f.plan.txn_count; i++) {
            const struct plan_txn *t = &f.plan.txn[i];

            assert_true(t->target == 0 || version_of[t->target] >= version_of[t->source]);
        }
        carry_out(&f);
        for (size_t i = 0; i < f.count; i++) {
            const uint16_t slot = f.node[i].slot;

            assert_true(!f.node[i].leaving ||
                        (owned_by(&f, slot) == 0) == anyone_may_take(&f, slot));
        }
        make_plan(&f);
        assert_int_equal(f.plan.moved_cells, 0); // and it rests
        fleet_fini(&f);
    }
}

static void the_largest_fleet_is_planned(void **state)
{
    static struct fleet f;

    (void)state;
    fleet_init(&f, 18, 16);
    add_many(&f, 1, 4095);
    (void)settle(&f);
    assert_in_range(f.ring.vnode_count, 4095 * 16, 4095 * 17);
    assert_true(worst_share(&f) <= 10000 + 10000 / 16);
    assert_nothing_left_to_do(&f);
    fleet_fini(&f);
}

/* ---- SPLITs ---- */

static void cuts_go_together_but_those_of_busy_vnodes(void **state)
{
    static uint8_t busy[RING_VNODES_MAX + 1];
    static struct fleet f;
    size_t splits = 0;
    size_t parted = 0;

    (void)state;
    fleet_init(&f, 16, 16);
    add_many(&f, 1, 40);
    (void)settle(&f);
    add_many(&f, 41, 42); // one more alone finds enough vnodes
    make_plan(&f);
    assert_true(f.plan.txn_count > 1 && f.plan.txn[0].ops[0].kind == RING_SPLIT);
    assert_true(f.plan.txn[0].op_count > 1);
    assert_int_not_equal(f.plan.txn[1].ops[0].kind, RING_SPLIT);
    splits = f.plan.txn[0].op_count;
    busy[f.plan.txn[0].ops[0].vnode] = 1;
    f.limits.busy = busy;
    f.limits.busy_count = sizeof busy;
    make_plan(&f);
    assert_legal(&f);
    for (size_t i = 0; i < f.plan.txn[0].op_count; i++) {
        assert_int_equal(busy[f.plan.txn[0].ops[i].vnode], 0);
    }
    for (size_t i = 1; f.plan.txn[i].ops[0].kind == RING_SPLIT; i++) {
        parted += f.plan.txn[i].op_count;
    }
    assert_true(parted > 0);
    assert_int_equal(f.plan.txn[0].op_count + parted, splits);
    fleet_fini(&f);
}

/* ---- golden: another result is another placement of every cluster ---- */

static void planned_placements_are_golden(void **state)
{
    static const struct {
        uint8_t grid;
        uint16_t nodes;
        uint64_t digest[2];
    } want[] = {
        {14, 3, {0x75dfb2d9d6b86328u, 0x60dcf5d95fd22200u}},
        {16, 10, {0x6d2a82b5961beb7cu, 0x6f5ba086fc02e14du}},
        {18, 100, {0x304ef89fa1485f57u, 0x0bec50bdb56b993eu}},
    };
    static struct fleet f;
    uint64_t digest[2];

    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        fleet_init(&f, want[i].grid, 64);
        // From one node to all, then weights, then one leaves.
        add(&f, 1, 1);
        (void)settle(&f);
        add_many(&f, 2, want[i].nodes);
        (void)settle(&f);
        f.node[1].weight = 2;
        (void)settle(&f);
        f.node[0].leaving = true;
        (void)settle(&f);
        placement_digest(&f.ring, digest);
        assert_int_equal(digest[0], want[i].digest[0]);
        assert_int_equal(digest[1], want[i].digest[1]);
        fleet_fini(&f);
    }
}

/* ---- refused ---- */

#define LIMITS(v, m, w)                                                                      \
    {                                                                                        \
        .vnodes_per_weight = (v), .moves_per_txn = (m), .wave_cap = (w), .owned_only = false \
    }

static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *what;
        struct plan_node node[2];
        struct plan_limits limits;
        size_t count;
    } cases[] = {
        {"nobody", {{0}}, LIMITS(64, 8, 4), 0},
        {"nobody stays",
         {{.weight = 1, .slot = 1, .leaving = true}, {.weight = 1, .slot = 2, .leaving = true}},
         LIMITS(64, 8, 4),
         2},
        {"an owner unknown", {{.weight = 1, .slot = 2}}, LIMITS(64, 8, 4), 1},
        {"a slot twice", {{.weight = 1, .slot = 1}, {.weight = 1, .slot = 1}}, LIMITS(64, 8, 4), 2},
        {"slot 0", {{.weight = 1, .slot = 1}, {.weight = 1, .slot = 0}}, LIMITS(64, 8, 4), 2},
        {"slot 4096", {{.weight = 1, .slot = 1}, {.weight = 1, .slot = 4096}}, LIMITS(64, 8, 4), 2},
        {"weight 0", {{.weight = 0, .slot = 1}}, LIMITS(64, 8, 4), 1},
        {"weight 1001", {{.weight = 1001, .slot = 1}}, LIMITS(64, 8, 4), 1},
        {"no vnodes", {{.weight = 1, .slot = 1}}, LIMITS(0, 8, 4), 1},
        {"no moves", {{.weight = 1, .slot = 1}}, LIMITS(64, 0, 4), 1},
        {"no waves", {{.weight = 1, .slot = 1}}, LIMITS(64, 8, 0), 1},
    };
    struct ring r;
    struct plan plan;

    (void)state;
    ring_init(&r, 14);
    ring_create(&r, 4, 1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("%s\n", cases[i].what);
        assert_int_equal(plan_make(&plan,
                                   plan_by_weight,
                                   &(struct plan_view){&r, cases[i].node, cases[i].count},
                                   NULL,
                                   NULL,
                                   &cases[i].limits),
                         ERR_INVALID);
        assert_int_equal(plan.txn_count, 0);
        plan_fini(&plan);
    }
    ring_fini(&r);
}

static void an_empty_ring_needs_nothing(void **state)
{
    const struct plan_node node = {.slot = 1, .weight = 1};
    const struct plan_limits limits = LIMITS(64, 8, 4);
    struct ring r;
    struct plan plan;

    (void)state;
    ring_init(&r, 14);
    assert_int_equal(
        plan_make(&plan, plan_by_weight, &(struct plan_view){&r, &node, 1}, NULL, NULL, &limits),
        ERR_OK);
    assert_int_equal(plan.txn_count, 0);
    plan_fini(&plan);
    ring_fini(&r);
}

/* ---- what a dead node leaves ---- */

static void reassign(struct fleet *f, uint16_t dead, size_t *count)
{
    struct ring_op *moves =
        plan_reassign(&(struct plan_view){&f->ring, f->node, f->count}, NULL, dead, count);

    assert_int_equal(*count, ring_owned_count(&f->ring, dead));
    if (*count > 0) {
        assert_int_equal(ring_check(&f->ring, moves, *count), ERR_OK);
        ring_reassign(&f->ring, moves, *count, f->ring.version + 1);
    }
    mem_free(moves);
}

static void a_loss_is_shared_by_all(void **state)
{
    static struct fleet f;

    (void)state;
    for (uint16_t nodes = 2; nodes <= 64; nodes *= 2) {
        size_t count;

        fleet_init(&f, 16, 64);
        add_many(&f, 1, nodes);
        (void)settle(&f);
        forget(&f, 0);
        reassign(&f, 1, &count);
        assert_int_equal(ring_owned_count(&f.ring, 1), 0);
        print_message("%u nodes: %zu vnodes, worst share %u / 10000\n",
                      nodes,
                      count,
                      (unsigned)worst_share(&f));
        // The planner promises 1 + 0.85/64; whole vnodes may add one more.
        assert_true(worst_share(&f) <= 10000 + 10000 * 185 / 100 / 64);
        fleet_fini(&f);
    }
}

static void a_loss_goes_by_weight_and_not_to_who_leaves(void **state)
{
    static struct fleet f;
    size_t count;

    (void)state;
    fleet_init(&f, 16, 64);
    add(&f, 1, 1);
    add(&f, 2, 1);
    add(&f, 3, 3);
    add(&f, 4, 1);
    (void)settle(&f);
    f.node[3].leaving = true;
    const uint64_t before = ring_owned_cells(&f.ring, 4);
    reassign(&f, 1, &count);
    assert_int_equal(ring_owned_cells(&f.ring, 4), before);
    assert_true(ring_owned_cells(&f.ring, 3) > 2 * ring_owned_cells(&f.ring, 2));
    fleet_fini(&f);
}

static void nobody_left_takes_nothing(void **state)
{
    static struct fleet f;
    size_t count = 7;

    (void)state;
    fleet_init(&f, 14, 8);
    add(&f, 1, 1);
    (void)settle(&f);
    assert_null(plan_reassign(
        &(struct plan_view){&f.ring, f.node, 1}, NULL, 1, &count)); // only the dead one itself
    assert_int_equal(count, 0);
    assert_null(plan_reassign(&(struct plan_view){&f.ring, f.node, 0}, NULL, 1, &count));
    add(&f, 2, 1);
    assert_null(
        plan_reassign(&(struct plan_view){&f.ring, f.node, 2}, NULL, 2, &count)); // it owns nothing
    assert_int_equal(count, 0);
    fleet_fini(&f);
}

/* How far the node at that index is below its share, in cells. */
static int64_t lack_of(const struct fleet *f, size_t index)
{
    uint64_t others = 0;

    for (size_t i = 1; i < f->count; i++) {
        others += i == index ? 0 : f->node[i].weight;
    }
    const uint64_t weight = others + f->node[index].weight;
    ASSERT(weight != 0);
    return (int64_t)((uint64_t)f->ring.cell_count * f->node[index].weight / weight) -
           (int64_t)ring_owned_cells(&f->ring, f->node[index].slot);
}

/* The largest vnode of the one at index 0, who dies. */
static int64_t largest_of_dead(const struct ring *r)
{
    int64_t largest = 0;

    for (size_t i = 0; i < r->vnode_count; i++) {
        const int64_t size = ring_end(r, &r->vnode[i]) - r->vnode[i].from;

        largest = r->vnode[i].owner == 1 && size > largest ? size : largest;
    }
    return largest;
}

static void what_a_node_leaves_stays_in_its_zone_as_far_as_shares_go(void **state)
{
    static const char *const zones[] = {"", "a", "b", "c"};
    static struct fleet f;
    struct prng p = {11};

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        int64_t before[16] = {0};
        bool far = false;
        size_t count;

        fleet_init(&f, 14, 16);
        for (unsigned slot = 1; slot <= 3 + round % 12; slot++) {
            add(&f, (uint16_t)slot, (uint32_t)(1 + prng_u64(&p) % 3));
        }
        (void)settle(&f);
        for (size_t i = 0; i < f.count; i++) {
            f.node[i].zone = zones[prng_u64(&p) % 4];
            before[i] = lack_of(&f, i);
        }
        f.node[0].leaving = true;
        const int64_t largest = largest_of_dead(&f.ring);
        reassign(&f, 1, &count);
        for (size_t i = 1; i < f.count; i++) {
            far =
                far || (strcmp(f.node[i].zone, f.node[0].zone) != 0 && lack_of(&f, i) < before[i]);
            // Nobody ends further above its share than by one vnode.
            assert_true(lack_of(&f, i) == before[i] || lack_of(&f, i) > -largest - 1);
        }
        for (size_t i = 1; i < f.count && f.node[0].zone[0] != '\0' && far; i++) {
            // Others got something: then all of its zone have what is theirs.
            assert_true(strcmp(f.node[i].zone, f.node[0].zone) != 0 || lack_of(&f, i) <= 0);
        }
        fleet_fini(&f);
    }
}

static void a_neighbour_gets_all_that_it_lacks(void **state)
{
    static struct fleet f;
    size_t count;

    (void)state;
    fleet_init(&f, 14, 64);
    add_many(&f, 1, 3);
    (void)settle(&f);
    add_many(&f, 4, 5); // they have just come, and have nothing yet
    f.node[0].leaving = true;
    f.node[0].zone = "a";
    f.node[3].zone = "b";
    f.node[4].zone = "a";
    reassign(&f, 1, &count);
    assert_true(ring_owned_cells(&f.ring, 5) >= 16384 / 4);
    assert_true(ring_owned_cells(&f.ring, 4) < 16384 / 8);
    fleet_fini(&f);
}

static void thousands_of_vnodes_find_a_place(void **state)
{
    static struct fleet f;
    size_t count;

    (void)state;
    fleet_init(&f, 16, 64);
    for (uint16_t slot = 1; slot <= 4; slot++) {
        add(&f, slot, 100);
    }
    f.limits.vnodes_per_weight = 40; // 16000 vnodes
    (void)settle(&f);
    forget(&f, 1);
    reassign(&f, 2, &count);
    assert_true(count > 3500);
    assert_true(worst_share(&f) <= 10010);
    fleet_fini(&f);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(any_change_of_any_fleet_gives_a_legal_plan),
        cmocka_unit_test(a_source_of_many_actors_gives_little_at_a_time),
        cmocka_unit_test(what_fits_together_goes_together),
        cmocka_unit_test(slices_are_larger_where_they_would_be_too_many),
        cmocka_unit_test(a_plan_in_the_midst_of_another_one_is_as_good),
        cmocka_unit_test(churn_keeps_balance_and_moves_the_minimum),
        cmocka_unit_test(a_fleet_that_grows_one_by_one_is_always_balanced),
        cmocka_unit_test(weights_are_kept),
        cmocka_unit_test(a_shrunk_fleet_joins_its_vnodes_again),
        cmocka_unit_test(what_would_be_too_large_to_move_is_not_joined),
        cmocka_unit_test(waves_are_as_few_as_the_busiest_node_allows),
        cmocka_unit_test(vnodes_of_nobody_are_given_away),
        cmocka_unit_test(nobody_is_given_what_he_may_not_take),
        cmocka_unit_test(the_largest_fleet_is_planned),
        cmocka_unit_test(cuts_go_together_but_those_of_busy_vnodes),
        cmocka_unit_test(planned_placements_are_golden),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(an_empty_ring_needs_nothing),
        cmocka_unit_test(a_loss_is_shared_by_all),
        cmocka_unit_test(a_loss_goes_by_weight_and_not_to_who_leaves),
        cmocka_unit_test(nobody_left_takes_nothing),
        cmocka_unit_test(what_a_node_leaves_stays_in_its_zone_as_far_as_shares_go),
        cmocka_unit_test(a_neighbour_gets_all_that_it_lacks),
        cmocka_unit_test(thousands_of_vnodes_find_a_place),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
