/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the ring's segments: roles, singletons, daemons.
 */
#include "base/mem.h"
#include "ring/plan.h"
#include "ring/ring.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ring_key key = {1, 2};

static struct bytes text(const char *s)
{
    return bytes_of(s, strlen(s));
}

static struct ring_segment segment(enum ring_policy policy, const char *role, uint16_t kind)
{
    struct ring_segment s = {.policy = policy, .kind_count = 1, .kind = {kind}};

    s.bits = ring_is_hashed(&s) ? 14 : policy == RING_OLDEST ? 0 : RING_DAEMON_BITS;
    memcpy(s.role, role, strlen(role));
    return s;
}

/* Default cells, a role "match" for kind 3, a singleton of kind 7, five daemons of kind 9. */
static void make(struct ring *r)
{
    struct ring_segment match = segment(RING_HASH, "match", 3);
    struct ring_segment boss = segment(RING_OLDEST, "match", 7);
    struct ring_segment mail = segment(RING_SPREAD, "", 9);

    mail.open = 5;
    ring_init(r, 14);
    ring_create(r, 64, 1, 10);
    ring_put_segment(r, 0, &match, 64, 11);
    ring_put_segment(r, 1, &boss, 64, 12);
    ring_put_segment(r, 2, &mail, 64, 13);
    ring_check_invariants(r);
}

static uint32_t cell_of(const struct ring *r, uint16_t kind, const char *id)
{
    return ring_point_cell(ring_point(r, kind, ring_key_of_kind(key, kind), text(id)));
}

static void a_kind_has_the_cells_of_its_segment(void **s)
{
    struct ring r;

    (void)s;
    make(&r);
    assert_int_equal(r.cell_count, 16384 + 16384 + 1 + 1024);
    assert_int_equal(r.vnode_count, 64 + 64 + 1 + 6);
    for (unsigned i = 0; i < 1000; i++) {
        char id[16];
        uint32_t c;

        (void)snprintf(id, sizeof id, "id%u", i);
        assert_true(cell_of(&r, 0, id) < 16384);
        assert_int_equal(cell_of(&r, 0, id),
                         ring_cell_of(&r, ring_position(ring_key_of_kind(key, 0), text(id))));
        c = cell_of(&r, 3, id);
        assert_true(c >= 16384 && c < 32768);
        assert_ptr_equal(ring_segment_at(&r, c), &r.segment[0]);
        assert_int_equal(cell_of(&r, 7, id), 32768);
        (void)snprintf(id, sizeof id, "mail/%u", i);
        assert_int_equal(cell_of(&r, 9, id), 32769 + i);
    }
    assert_null(ring_segment_at(&r, 16383));
    assert_null(ring_segment_of_kind(&r, 0));
    assert_int_equal(ring_hit_node(r.cell[0]), 1);
    assert_int_equal(ring_hit_node(r.cell[16384]), RING_NODE_NONE);
    ring_fini(&r);
}

/* As make(), and a segment of the default role for kinds 4 and 5, which are placed together. */
static void make_together(struct ring *r)
{
    struct ring_segment s = segment(RING_TOGETHER, "", 4);

    s.kind[1] = 5;
    s.kind_count = 2;
    make(r);
    r->tags = ring_key_of_tags(key);
    ring_put_segment(r, 3, &s, 64, 14);
    ring_check_invariants(r);
}

static void ids_of_one_tag_share_a_cell_whatever_their_kind(void **s)
{
    struct ring r;
    size_t others = 0;

    (void)s;
    make_together(&r);
    for (unsigned i = 0; i < 1000; i++) {
        char room[40];
        char seat[40];
        char tag[24];
        const uint16_t kind = (uint16_t)(4 + i % 2);

        (void)snprintf(tag, sizeof tag, "match-%u", i);
        (void)snprintf(room, sizeof room, "room-7{%s}", tag);
        (void)snprintf(seat, sizeof seat, "{%s}ann", tag);
        const uint32_t cell = cell_of(&r, kind, room);
        assert_ptr_equal(ring_segment_at(&r, cell), &r.segment[3]);
        assert_int_equal(cell, cell_of(&r, (uint16_t)(9 - kind), seat));
        assert_int_equal(cell, cell_of(&r, kind, tag));
        assert_int_equal(cell - r.segment[3].from,
                         ring_position(ring_key_of_tags(key), text(tag)) >> (64 - 14));
        assert_true(cell_of(&r, 3, room) < 32768); // of a kind that is not placed so
        others += cell != cell_of(&r, kind, "room-7{match-0}");
        // Who they are is told by the whole id.
        assert_int_not_equal(ring_point(&r, 4, ring_key_of_kind(key, 4), text(room)),
                             ring_point(&r, 4, ring_key_of_kind(key, 4), text(seat)));
    }
    assert_true(others > 990);
    ring_fini(&r);
}

static void a_daemon_has_one_text(void **s)
{
    static const char *const bad[] = {
        "", "7", "/", "/7", "m/", "m/07", "m/1024", "m/10000", "m/7 ", "m7", "m/-1", "m/+1"};
    uint32_t number = 0;

    (void)s;
    assert_true(ring_daemon_number(text("m/0"), &number));
    assert_int_equal(number, 0);
    assert_true(ring_daemon_number(text("a/b/1023"), &number));
    assert_int_equal(number, 1023);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(ring_daemon_number(text(bad[i]), &number));
    }
}

static void bytes_come_back_and_damage_is_found(void **s)
{
    struct buffer out = {0};
    struct buffer again = {0};
    struct ring r;
    struct ring copy;

    (void)s;
    make(&r);
    ring_encode(&r, &out);
    assert_int_equal(ring_decode(&copy, buffer_bytes(&out)), ERR_OK);
    ring_check_invariants(&copy);
    assert_memory_equal(copy.digest, r.digest, sizeof r.digest);
    assert_int_equal(copy.segment_count, 3);
    assert_string_equal(copy.segment[1].role, "match");
    assert_int_equal(copy.segment[2].open, 5);
    ring_encode(&copy, &again);
    assert_int_equal(out.size, again.size);
    assert_memory_equal(out.data, again.data, out.size);
    ring_fini(&copy);
    for (size_t i = 0; i < out.size; i++) {
        out.data[i] ^= 0x10;
        assert_int_not_equal(ring_decode(&copy, buffer_bytes(&out)), ERR_OK);
        ring_fini(&copy);
        out.data[i] ^= 0x10;
    }
    buffer_fini(&out);
    buffer_fini(&again);
    ring_fini(&r);
}

/* Two rings with the same vnodes, whose segments differ, are told apart. */
static void the_digest_covers_segments(void **s)
{
    struct ring r;
    uint64_t before[2];
    struct ring_segment more;

    (void)s;
    make(&r);
    memcpy(before, r.digest, sizeof before);
    more = r.segment[2];
    more.open = 6;
    ring_put_segment(&r, 2, &more, 0, 14);
    ring_check_invariants(&r);
    assert_memory_not_equal(before, r.digest, sizeof before);
    more.open = 5;
    ring_put_segment(&r, 2, &more, 0, 15);
    assert_memory_equal(before, r.digest, sizeof before);
    ring_fini(&r);
}

static void no_merge_reaches_over_a_border(void **s)
{
    struct ring r;
    const struct ring_vnode *left;
    const struct ring_vnode *right;
    struct ring_op op = {.kind = RING_MERGE};
    struct ring_op move = {.kind = RING_MOVE, .to = 1};

    (void)s;
    make(&r);
    right = ring_find(&r, ring_hit_vnode(r.cell[16384]));
    left = right - 1;
    move.vnode = right->id;
    ring_reassign(&r, &move, 1, 20);
    op.vnode = left->id;
    op.other = right->id;
    assert_int_equal(left->owner, right->owner);
    assert_int_equal(ring_check(&r, &op, 1), ERR_CONFLICT);
    ring_fini(&r);
}

static void faults_are_named(void **s)
{
    struct ring r;
    struct ring_segment x;

    (void)s;
    make(&r);
    x = segment(RING_HASH, "chat", 3);
    assert_non_null(strstr(ring_segment_fault(&r, 3, &x), "bound to another"));
    x = segment(RING_HASH, "chat", 4);
    assert_null(ring_segment_fault(&r, 3, &x));
    assert_non_null(ring_segment_fault(&r, 4, &x)); // a gap
    assert_non_null(ring_segment_fault(&r, 0, &x)); // another role there
    x.bits = 17;
    assert_non_null(ring_segment_fault(&r, 3, &x));
    x = segment(RING_HASH, "", 4);
    assert_non_null(ring_segment_fault(&r, 3, &x)); // the default role has its cells
    x = segment(RING_TOGETHER, "", 4);
    assert_null(ring_segment_fault(&r, 3, &x));
    x.open = 1;
    assert_non_null(ring_segment_fault(&r, 3, &x));
    x = segment(RING_TOGETHER, "match", 3);
    assert_non_null(ring_segment_fault(&r, 0, &x)); // a segment keeps its policy
    x = r.segment[2];
    x.open = 1024;
    assert_non_null(ring_segment_fault(&r, 2, &x));
    x = segment(RING_HASH, "chat", 4);
    x.kind_count = 2;
    x.kind[1] = 4;
    assert_non_null(strstr(ring_segment_fault(&r, 3, &x), "order"));
    ring_fini(&r);
}

/* ---- plans ---- */

static const struct plan_limits limits = {
    .vnodes_per_weight = 16, .moves_per_txn = 8, .wave_cap = 4, .owned_only = true};

static void run(struct ring *r, const struct plan_node *nodes, size_t count)
{
    struct plan plan;

    assert_int_equal(
        plan_make(&plan, plan_by_weight, &(struct plan_view){r, nodes, count}, NULL, NULL, &limits),
        ERR_OK);
    for (size_t i = 0; i < plan.txn_count; i++) {
        ring_apply(r, plan.txn[i].ops, plan.txn[i].op_count, r->version + 1, 1);
    }
    plan_fini(&plan);
    ring_check_invariants(r);
    assert_int_equal(
        plan_make(&plan, plan_by_weight, &(struct plan_view){r, nodes, count}, NULL, NULL, &limits),
        ERR_OK);
    assert_int_equal(plan.txn_count, 0); // and rests
    plan_fini(&plan);
}

static size_t give(struct ring *r, const struct plan_node *nodes, size_t count, uint16_t from)
{
    size_t moved = 0;
    struct ring_op *moves = plan_reassign(&(struct plan_view){r, nodes, count}, NULL, from, &moved);

    if (moved > 0) {
        assert_int_equal(ring_check(r, moves, moved), ERR_OK);
        ring_reassign(r, moves, moved, r->version + 1);
    }
    mem_free(moves);
    ring_check_invariants(r);
    return moved;
}

/* Every vnode of a segment belongs to a node of its role. */
static void check_roles(const struct ring *r, const struct plan_node *nodes, size_t count)
{
    for (size_t i = 0; i < r->vnode_count; i++) {
        const struct ring_segment *s = ring_segment_at(r, r->vnode[i].from);

        for (size_t k = 0; k < count; k++) {
            if (nodes[k].slot == r->vnode[i].owner) {
                assert_true(plan_fits(&nodes[k], s));
            }
        }
    }
}

static uint32_t cells_of(const struct ring *r, size_t segment, uint32_t count, uint16_t owner)
{
    uint32_t own = 0;

    for (uint32_t c = 0; c < count; c++) {
        own += ring_hit_node(r->cell[r->segment[segment].from + c]) == owner;
    }
    return own;
}

static void each_role_has_a_ring_of_its_own(void **s)
{
    struct plan_node nodes[] = {{.slot = 1, .weight = 1, .incarnation = 5},
                                {.slot = 2, .weight = 1, .incarnation = 9},
                                {.slot = 3, .weight = 1, .incarnation = 7, .role = "match"},
                                {.slot = 4, .weight = 3, .incarnation = 6, .role = "match"},
                                {.slot = 5, .weight = 1, .incarnation = 8, .role = "match"}};
    struct ring r;

    (void)s;
    make(&r);
    run(&r, nodes, 2); // nobody of that role yet: only the default ring is evened out
    assert_int_equal(ring_hit_node(r.cell[16384]), RING_NODE_NONE);
    assert_true(give(&r, nodes, 5, RING_NODE_NONE) > 64);
    run(&r, nodes, 5);
    check_roles(&r, nodes, 5);
    assert_in_range(cells_of(&r, 0, 16384, 4), 16384 * 11 / 20, 16384 * 13 / 20);
    assert_in_range(cells_of(&r, 0, 16384, 5), 16384 * 3 / 20, 16384 * 5 / 20);
    assert_int_equal(ring_hit_node(r.cell[r.segment[1].from]), 4); // the oldest of "match"
    nodes[3].leaving = true;
    run(&r, nodes, 5);
    check_roles(&r, nodes, 5);
    assert_int_equal(ring_hit_node(r.cell[r.segment[1].from]), 3);
    assert_int_equal(ring_owned_count(&r, 4), 0);
    assert_true(give(&r, nodes, 5, 3) > 0); // slot 3 dies
    check_roles(&r, nodes, 5);
    assert_int_equal(ring_hit_node(r.cell[r.segment[1].from]), 5);
    nodes[3].role = "";
    nodes[2].role = "";
    assert_int_equal(give(&r, nodes, 5, 5), 0); // rather nobody than another role's
    ring_fini(&r);
}

static void a_new_node_does_not_take_the_singleton(void **s)
{
    struct plan_node nodes[] = {{.slot = 1, .weight = 1, .incarnation = 5},
                                {.slot = 2, .weight = 1, .incarnation = 9, .role = "match"},
                                {.slot = 3, .weight = 1, .incarnation = 20, .role = "match"}};
    struct ring r;

    (void)s;
    make(&r);
    (void)give(&r, nodes, 2, RING_NODE_NONE);
    run(&r, nodes, 3);
    assert_int_equal(ring_hit_node(r.cell[r.segment[1].from]), 2);
    nodes[1].incarnation = 30; // it was restarted
    run(&r, nodes, 3);
    assert_int_equal(ring_hit_node(r.cell[r.segment[1].from]), 3);
    ring_fini(&r);
}

static void daemons_are_spread_one_by_one(void **s)
{
    struct plan_node nodes[4];
    struct ring r;

    (void)s;
    make(&r);
    for (uint16_t i = 0; i < 4; i++) {
        nodes[i] = (struct plan_node){
            .slot = (uint16_t)(i + 1), .weight = i == 3 ? 2 : 1, .incarnation = i + 1u};
    }
    (void)give(&r, nodes, 1, RING_NODE_NONE);
    assert_int_equal(cells_of(&r, 2, 1024, 1), 1024);
    for (uint32_t open = 0; open < 64; open += 7) {
        struct ring_segment set = r.segment[2];

        set.open = open * 11 % 60; // up and down
        ring_put_segment(&r, 2, &set, 0, r.version + 1);
        for (uint16_t i = 0; i < 4; i++) {
            nodes[i].leaving = i == open % 5;
        }
        run(&r, nodes, 4);
        for (uint16_t i = 0; i < 4; i++) {
            const uint32_t weight = 5 - (open % 5 < 4 ? nodes[open % 5].weight : 0);
            const uint32_t share = nodes[i].leaving ? 0 : set.open * nodes[i].weight / weight;

            assert_in_range(cells_of(&r, 2, set.open, nodes[i].slot),
                            share,
                            share + (nodes[i].leaving ? 0 : 1));
        }
    }
    for (uint16_t i = 0; i < 4; i++) {
        nodes[i].leaving = false;
    }
    run(&r, nodes, 4);
    (void)give(&r, nodes, 3, 4); // a crash: the others get them, evenly
    for (uint16_t slot = 1; slot <= 3; slot++) {
        assert_in_range(cells_of(&r, 2, r.segment[2].open, slot),
                        r.segment[2].open / 3,
                        r.segment[2].open / 3 + 1);
    }
    ring_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_has_the_cells_of_its_segment),
        cmocka_unit_test(ids_of_one_tag_share_a_cell_whatever_their_kind),
        cmocka_unit_test(a_daemon_has_one_text),
        cmocka_unit_test(bytes_come_back_and_damage_is_found),
        cmocka_unit_test(the_digest_covers_segments),
        cmocka_unit_test(no_merge_reaches_over_a_border),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(each_role_has_a_ring_of_its_own),
        cmocka_unit_test(a_new_node_does_not_take_the_singleton),
        cmocka_unit_test(daemons_are_spread_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
