/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring against a naive model: an array with one entry per cell.
 */
#include "base/prng.h"
#include "ring/ring.h"

#include "tests/test.h"

#include <string.h>

/* ---- the model ---- */

enum { MODEL_CELLS = 1 << 14, MODEL_IDS = 512 };

struct model {
    uint32_t cells;
    int id[MODEL_CELLS];
    struct ring_vnode of[MODEL_IDS]; /* stamps and owner; `from` is unused */
};

static void model_init(struct model *m, uint32_t cells, uint32_t vnodes)
{
    memset(m, 0, sizeof *m);
    m->cells = cells;
    for (uint32_t i = 0; i < vnodes; i++) {
        m->of[i] = (struct ring_vnode){.owner = 1, .generation = 5, .cold = 5};
        for (uint64_t c = (uint64_t)i * m->cells / vnodes;
             c < (uint64_t)(i + 1) * m->cells / vnodes;
             c++) {
            m->id[c] = (int)i;
        }
    }
}

static uint32_t model_first(const struct model *m, int id)
{
    uint32_t c = 0;

    while (c < m->cells && m->id[c] != id) {
        c++;
    }
    return c;
}

static uint32_t model_size(const struct model *m, int id)
{
    uint32_t size = 0;

    for (uint32_t c = 0; c < m->cells; c++) {
        size += m->id[c] == id;
    }
    return size;
}

static void model_paint(struct model *m, uint32_t from, uint32_t size, int id)
{
    for (uint32_t c = from; c < from + size; c++) {
        m->id[c] = id;
    }
}

static bool model_split(struct model *m, const struct ring_op *op)
{
    uint32_t from = model_first(m, (int)op->vnode);
    uint32_t size = model_size(m, (int)op->vnode);

    if (op->at <= from || op->at >= from + size || op->other > RING_VNODES_MAX) {
        return false;
    }
    if (model_size(m, (int)op->other) != 0) {
        return false;
    }
    model_paint(m, op->at, from + size - op->at, (int)op->other);
    m->of[op->other] = m->of[op->vnode];
    return true;
}

#define GREATER(a, b) ((a) > (b) ? (a) : (b))

static bool model_merge(struct model *m, const struct ring_op *op)
{
    uint32_t from = model_first(m, (int)op->vnode);
    uint32_t size = model_size(m, (int)op->vnode);
    uint32_t other = model_size(m, (int)op->other);
    struct ring_vnode *l = &m->of[op->vnode];
    const struct ring_vnode *r = &m->of[op->other];

    if (other == 0 || model_first(m, (int)op->other) != from + size || l->owner != r->owner) {
        return false;
    }
    model_paint(m, from + size, other, (int)op->vnode);
    l->generation = GREATER(l->generation, r->generation);
    l->cold = GREATER(l->cold, r->cold);
    l->txn = GREATER(l->txn, r->txn);
    return true;
}

/* False if the op is illegal; the model is then unchanged. */
static bool model_apply(struct model *m, const struct ring_op *op, uint64_t version, uint64_t txn)
{
    if (model_size(m, (int)op->vnode) == 0) {
        return false;
    }
    if (op->kind == RING_SPLIT) {
        return model_split(m, op);
    }
    if (op->kind == RING_MERGE) {
        return model_merge(m, op);
    }
    if (op->kind != RING_MOVE || m->of[op->vnode].owner != op->from || op->to == op->from ||
        op->to == RING_NODE_NONE || op->to > RING_NODES_MAX) {
        return false;
    }
    m->of[op->vnode].owner = op->to;
    m->of[op->vnode].generation = version;
    m->of[op->vnode].txn = txn;
    return true;
}

static void model_renew(struct model *m, uint16_t owner, uint64_t version)
{
    for (uint32_t c = 0; c < m->cells; c++) {
        struct ring_vnode *v = &m->of[m->id[c]];

        v->generation = v->owner == owner ? version : v->generation;
        v->cold = v->owner == owner ? version : v->cold;
    }
}

static void assert_same(const struct ring *r, const struct model *m)
{
    size_t vnodes = 0;

    ring_check_invariants(r);
    for (uint32_t c = 0; c < m->cells; c++) {
        const struct ring_vnode *want = &m->of[m->id[c]];

        assert_int_equal(r->cell[c], (uint32_t)m->id[c] << 12 | want->owner);
        if (c == 0 || m->id[c] != m->id[c - 1]) {
            const struct ring_vnode *v = ring_find(r, (uint32_t)m->id[c]);

            vnodes++;
            assert_non_null(v);
            assert_int_equal(v->id, m->id[c]);
            assert_int_equal(v->from, c);
            assert_int_equal(v->owner, want->owner);
            assert_int_equal(v->generation, want->generation);
            assert_int_equal(v->cold, want->cold);
            assert_int_equal(v->txn, want->txn);
        }
    }
    assert_int_equal(r->vnode_count, vnodes);
}

/* ---- every state and every op of a ring of four cells ---- */

static uint32_t signature(const struct ring *r)
{
    uint32_t sum = 0;

    for (unsigned c = 0; c < 4; c++) {
        sum = sum << 4 | ring_hit_vnode(r->cell[c]) << 2 | ring_hit_node(r->cell[c]);
    }
    return sum;
}

/* Two nodes, vnode ids 0..3, and some ids, owners and cuts that are out of range. */
static size_t every_op(struct ring_op *ops)
{
    size_t n = 0;

    for (uint32_t v = 0; v <= 4; v++) {
        for (uint32_t other = 0; other <= 3; other++) {
            ops[n++] = (struct ring_op){.kind = RING_MERGE, .vnode = v, .other = other};
            for (uint32_t at = 0; at <= 4; at++) {
                ops[n++] =
                    (struct ring_op){.kind = RING_SPLIT, .vnode = v, .other = other, .at = at};
            }
        }
        for (uint16_t from = 0; from <= 2; from++) {
            for (uint16_t to = 0; to <= 2; to++) {
                ops[n++] = (struct ring_op){.kind = RING_MOVE, .vnode = v, .from = from, .to = to};
            }
        }
    }
    return n;
}

static void model_of(struct model *m, const struct ring *r)
{
    memset(m, 0, sizeof *m);
    m->cells = 4;
    for (unsigned c = 0; c < 4; c++) {
        m->id[c] = (int)ring_hit_vnode(r->cell[c]);
        m->of[m->id[c]] = *ring_find(r, (uint32_t)m->id[c]);
    }
}

static void every_small_ring_takes_every_op_as_the_model_does(void **state)
{
    static struct ring seen[512];
    static bool known[1 << 16];
    static struct model m;
    static struct ring_op ops[256];
    size_t op_count = every_op(ops);
    size_t count = 1;

    (void)state;
    ring_init(&seen[0], 2);
    ring_create(&seen[0], 1, 1, 1);
    known[signature(&seen[0])] = true;
    for (size_t i = 0; i < count; i++) {
        for (size_t o = 0; o < op_count; o++) {
            bool legal = ring_check(&seen[i], &ops[o], 1) == ERR_OK;
            struct ring next;

            model_of(&m, &seen[i]);
            assert_int_equal(legal, model_apply(&m, &ops[o], 1, 0));
            if (!legal) {
                continue;
            }
            ring_copy(&next, &seen[i]);
            ring_apply(&next, &ops[o], 1, 1, 0);
            assert_same(&next, &m);
            if (known[signature(&next)]) {
                ring_fini(&next);
                continue;
            }
            known[signature(&next)] = true;
            assert_true(count < 512);
            seen[count++] = next;
        }
    }
    // 1, 3, 3, 1 ways to cut four cells into 1 to 4 vnodes, times owners, times the ids of
    // all but the first, which stays 0: 2 + 36 + 144 + 96.
    assert_int_equal(count, 278);
    for (size_t i = 0; i < count; i++) {
        ring_fini(&seen[i]);
    }
}

/* ---- random transactions on a larger one ---- */

static struct ring_op random_op(struct prng *p, const struct ring *r)
{
    const struct ring_vnode *v = &r->vnode[prng_u64(p) % r->vnode_count];
    struct ring_op op = {.vnode = v->id, .other = (uint32_t)(prng_u64(p) % MODEL_IDS)};

    switch (prng_u64(p) % 3) {
    case 0:
        op.kind = RING_SPLIT;
        op.at = (uint32_t)prng_between(p, v->from, ring_end(r, v));
        break;
    case 1:
        op.kind = RING_MERGE;
        if (v + 1 < r->vnode + r->vnode_count) {
            op.other = v[1].id;
        }
        break;
    default:
        op.kind = RING_MOVE;
        op.from = prng_chance(p, 90) ? v->owner : 1;
        op.to = (uint16_t)prng_between(p, 0, 3);
    }
    return op;
}

static void random_transactions_match_the_model(void **state)
{
    static struct model m;
    static struct model after;
    struct prng p = {1};
    struct ring r;
    unsigned refused = 0;

    (void)state;
    ring_init(&r, 9);
    ring_create(&r, 20, 1, 5);
    model_init(&m, 1u << 9, 20);
    for (uint64_t version = 6; version < 3000; version++) {
        struct ring_op ops[5];
        size_t count = prng_u64(&p) % 6;
        bool legal = true;

        if (prng_chance(&p, 5)) {
            ring_renew_owner(&r, 2, version);
            model_renew(&m, 2, version);
        }
        memcpy(&after, &m, sizeof m);
        for (size_t i = 0; i < count; i++) {
            ops[i] = random_op(&p, &r);
            legal = legal && model_apply(&after, &ops[i], version, version / 2);
        }
        assert_int_equal(ring_check(&r, ops, count) == ERR_OK, legal);
        if (!legal) {
            refused++;
            continue;
        }
        ring_apply(&r, ops, count, version, version / 2);
        assert_int_equal(r.version, version);
        memcpy(&m, &after, sizeof m);
        assert_same(&r, &m);
    }
    assert_in_range(refused, 100, 2900);
    ring_fini(&r);
}

static void one_transaction_may_move_a_vnode_twice(void **state)
{
    const struct ring_op ops[] = {
        {.kind = RING_MOVE, .vnode = 3, .from = 1, .to = 2},
        {.kind = RING_MOVE, .vnode = 3, .from = 2, .to = 3},
    };
    struct ring r;

    (void)state;
    ring_init(&r, 4);
    ring_create(&r, 8, 1, 1);
    assert_int_equal(ring_check(&r, ops, 2), ERR_OK);
    assert_int_equal(ring_check(&r, ops + 1, 1), ERR_CONFLICT);
    ring_apply(&r, ops, 2, 2, 1);
    assert_int_equal(ring_find(&r, 3)->owner, 3);
    ring_check_invariants(&r);
    ring_fini(&r);
}

static void moves_of_distinct_vnodes_commute(void **state)
{
    struct ring_op ops[400];
    struct ring a;
    struct ring b;
    struct prng p = {3};

    (void)state;
    ring_init(&a, 14);
    ring_create(&a, 1000, 1, 1);
    ring_copy(&b, &a);
    for (uint32_t i = 0; i < 400; i++) {
        ops[i] = (struct ring_op){.kind = RING_MOVE,
                                  .vnode = i * 2,
                                  .from = 1,
                                  .to = (uint16_t)prng_between(&p, 2, 4095)};
    }
    for (size_t i = 0; i < 400; i++) {
        ring_apply(&a, &ops[i], 1, 2, 1);
        ring_apply(&b, &ops[399 - i], 1, 2, 1);
    }
    assert_memory_equal(a.cell, b.cell, sizeof *a.cell << 14);
    assert_memory_equal(a.digest, b.digest, sizeof a.digest);
    assert_int_equal(ring_check(&a, ops, 400), ERR_CONFLICT);
    ring_check_invariants(&a);
    ring_fini(&a);
    ring_fini(&b);
}

static void renewed_and_reassigned_vnodes_are_cold(void **state)
{
    const struct ring_op moves[] = {{.kind = RING_MOVE, .vnode = 1, .from = 1, .to = 2}};
    struct ring r;

    (void)state;
    ring_init(&r, 4);
    ring_create(&r, 4, 1, 1);
    ring_apply(&r, moves, 1, 2, 7);
    assert_int_equal(ring_find(&r, 1)->cold, 1);
    ring_renew_owner(&r, 2, 3);
    assert_int_equal(ring_find(&r, 1)->cold, 3);
    assert_int_equal(ring_find(&r, 1)->generation, 3);
    assert_int_equal(ring_find(&r, 1)->txn, 7);
    assert_int_equal(ring_find(&r, 0)->generation, 1);
    ring_renew_owner(&r, 9, 4);
    assert_int_equal(r.version, 4);
    ring_reassign(&r, &(struct ring_op){.kind = RING_MOVE, .vnode = 1, .from = 2, .to = 3}, 1, 5);
    assert_int_equal(ring_find(&r, 1)->owner, 3);
    assert_int_equal(ring_find(&r, 1)->cold, 5);
    assert_int_equal(ring_owned_count(&r, 1), 3);
    assert_int_equal(ring_owned_cells(&r, 1), 12);
    assert_int_equal(ring_owned_cells(&r, 3), 4);
    ring_check_invariants(&r);
    ring_fini(&r);
}

static void an_empty_ring_owns_nothing(void **state)
{
    const struct ring_op op = {.kind = RING_SPLIT, .vnode = 0, .other = 1, .at = 1};
    const struct ring_op move = {.kind = RING_MOVE, .vnode = 0, .from = 0, .to = 1};
    struct ring r;

    (void)state;
    ring_init(&r, 14);
    assert_int_equal(ring_hit_node(ring_at(&r, UINT64_MAX)), RING_NODE_NONE);
    assert_int_equal(ring_check(&r, &op, 1), ERR_NOT_FOUND);
    assert_int_equal(ring_check(&r, &move, 1), ERR_NOT_FOUND);
    assert_int_equal(ring_check(&r, NULL, 0), ERR_OK);
    assert_null(ring_find(&r, 0));
    ring_check_invariants(&r);
    ring_fini(&r);
}

static void a_lookup_takes_the_top_bits_of_the_position(void **state)
{
    struct ring r;

    (void)state;
    ring_init(&r, 14);
    ring_create(&r, 1u << 14, 5, 1);
    assert_int_equal(ring_hit_vnode(ring_at(&r, 0)), 0);
    assert_int_equal(ring_hit_vnode(ring_at(&r, UINT64_MAX)), (1u << 14) - 1);
    assert_int_equal(ring_hit_vnode(ring_at(&r, (uint64_t)77 << 50)), 77);
    assert_int_equal(ring_hit_vnode(ring_at(&r, ((uint64_t)77 << 50) - 1)), 76);
    assert_int_equal(ring_cell_of(&r, (uint64_t)77 << 50), 77);
    assert_int_equal(ring_hit_node(ring_at(&r, 12345)), 5);
    ring_fini(&r);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_small_ring_takes_every_op_as_the_model_does),
        cmocka_unit_test(random_transactions_match_the_model),
        cmocka_unit_test(one_transaction_may_move_a_vnode_twice),
        cmocka_unit_test(moves_of_distinct_vnodes_commute),
        cmocka_unit_test(renewed_and_reassigned_vnodes_are_cold),
        cmocka_unit_test(an_empty_ring_owns_nothing),
        cmocka_unit_test(a_lookup_takes_the_top_bits_of_the_position),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
