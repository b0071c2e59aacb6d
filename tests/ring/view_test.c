/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of ring/view.h: which change applies to which version.
 */
#include "ring/view.h"

#include "base/mem.h"
#include "wire/control.h"

#include "tests/test.h"

static Rh__Member member(uint32_t slot, const char *name)
{
    Rh__Member m = RH__MEMBER__INIT;

    m.slot = slot;
    m.name = proto_text(name);
    m.address = proto_text("h:1");
    m.incarnation = slot;
    m.weight = 1;
    return m;
}

/* n1 with 8 vnodes at version 1, n2 with none at version 2. */
static void start(struct view *v)
{
    Rh__Member n1 = member(1, "n1");
    Rh__Member n2 = member(2, "n2");
    Rh__Member *changed = &n1;
    Rh__Delta delta = RH__DELTA__INIT;

    view_init(v, RING_GRID_MIN);
    v->key = (struct ring_key){5, 6};
    delta.version = 1;
    delta.created_vnodes = 8;
    delta.renewed = 1;
    delta.n_changed = 1;
    delta.changed = &changed;
    assert_true(view_seal(v, &delta));
    assert_int_equal(view_apply(v, &delta), VIEW_APPLIED);
    changed = &n2;
    delta.created_vnodes = 0;
    delta.renewed = 0;
    delta.version = 2;
    assert_true(view_seal(v, &delta));
    assert_int_equal(view_apply(v, &delta), VIEW_APPLIED);
}

static Rh__RingOp move = RH__RING_OP__INIT;
static Rh__RingOp *moves[] = {&move};

static Rh__Delta move_delta(uint64_t version)
{
    Rh__Delta delta = RH__DELTA__INIT;

    move.kind = RING_MOVE;
    move.vnode = 3;
    move.from = 1;
    move.to = 2;
    delta.version = version;
    delta.txn = 9;
    delta.n_ops = 1;
    delta.ops = moves;
    return delta;
}

static void deltas_apply_in_order_only(void **state)
{
    Rh__Delta delta = move_delta(4);
    struct view v;

    (void)state;
    start(&v);
    assert_true(view_seal(&v, &delta));
    assert_int_equal(delta.prev_version, 2);
    delta.prev_version = 3;
    assert_int_equal(view_apply(&v, &delta), VIEW_GAP);
    delta.prev_version = 2;
    delta.version = 2;
    assert_int_equal(view_apply(&v, &delta), VIEW_OLD);
    delta.version = 4;
    assert_int_equal(view_apply(&v, &delta), VIEW_APPLIED);
    assert_int_equal(view_apply(&v, &delta), VIEW_OLD);
    assert_int_equal(ring_find(&v.ring, 3)->owner, 2);
    assert_int_equal(ring_find(&v.ring, 3)->generation, 4);
    assert_int_equal(ring_find(&v.ring, 3)->cold, 1);
    view_fini(&v);
}

static void a_view_without_the_key_takes_no_delta(void **state)
{
    Rh__Member n1 = member(1, "n1");
    Rh__Member *changed = &n1;
    Rh__Delta delta = RH__DELTA__INIT;
    struct view v;

    (void)state;
    view_init(&v, RING_GRID_MIN);
    delta.version = 1;
    delta.created_vnodes = 8;
    delta.renewed = 1;
    delta.n_changed = 1;
    delta.changed = &changed;
    assert_true(view_seal(&v, &delta));
    assert_int_equal(view_apply(&v, &delta), VIEW_GAP);
    v.key.k1 = 1;
    assert_int_equal(view_apply(&v, &delta), VIEW_APPLIED);
    view_fini(&v);
}

static void a_delta_that_does_not_fit_changes_nothing(void **state)
{
    Rh__Member wrong = member(3, "n1"); // a name in two slots
    Rh__Member *changed = &wrong;
    uint32_t removed = 1; // an owner
    struct view v;
    Rh__Delta delta;

    (void)state;
    start(&v);
    for (int i = 0; i < 7; i++) {
        delta = move_delta(4);
        assert_true(view_seal(&v, &delta));
        delta.digest0 += i == 0;
        move.from = i == 1 ? 2 : 1;
        move.to = i == 2 ? 7 : 2; // nobody
        move.kind = i == 3 ? 8 : RING_MOVE;
        delta.n_changed = i == 4;
        delta.changed = &changed;
        delta.n_removed = i == 5;
        delta.removed = &removed;
        delta.created_vnodes = i == 6 ? 4 : 0;
        assert_int_equal(view_apply(&v, &delta), VIEW_DIFFERS);
        assert_int_equal(v.ring.version, 2);
        assert_int_equal(v.member_count, 2);
        ring_check_invariants(&v.ring);
    }
    view_fini(&v);
}

static void a_cold_delta_raises_cold(void **state)
{
    Rh__Delta delta = move_delta(4);
    struct view v;

    (void)state;
    start(&v);
    delta.cold = true;
    assert_true(view_seal(&v, &delta));
    assert_int_equal(view_apply(&v, &delta), VIEW_APPLIED);
    assert_int_equal(ring_find(&v.ring, 3)->cold, 4);
    assert_int_equal(ring_find(&v.ring, 3)->txn, 0);
    move.kind = RING_SPLIT;
    delta.version = 5;
    assert_false(view_seal(&v, &delta)); // cold takes MOVEs only
    view_fini(&v);
}

/* `count` MOVEs of vnodes 3 and 5, there and back again: what view_apply() makes of them is what
 * ring_apply() makes of them. */
static void assert_moves_end_the_same(size_t count, bool cold)
{
    Rh__RingOp *ops = mem_new(count, sizeof *ops);
    Rh__RingOp **list = mem_new(count, sizeof(Rh__RingOp *));
    struct ring_op *plain;
    Rh__Delta delta = move_delta(7);
    const uint32_t *cell;
    struct ring ring;
    struct view v;

    start(&v);
    for (size_t i = 0; i < count; i++) {
        ops[i] = move;
        ops[i].vnode = i % 3 == 0 ? 5 : 3;
        ops[i].from = (i % 3 == 0 ? i / 3 : i - i / 3 - 1) % 2 == 0 ? 1 : 2;
        ops[i].to = 3 - ops[i].from;
        list[i] = &ops[i];
    }
    delta.ops = list;
    delta.n_ops = count;
    delta.cold = cold;
    plain = view_ops(list, count);
    ring_copy(&ring, &v.ring);
    if (cold) {
        ring_reassign(&ring, plain, count, 7);
    } else {
        ring_apply(&ring, plain, count, 7, 9);
    }
    cell = v.ring.cell;
    assert_true(view_seal(&v, &delta));
    assert_int_equal(delta.digest0, ring.digest[0]);
    assert_int_equal(delta.digest1, ring.digest[1]);
    assert_int_equal(view_apply(&v, &delta), VIEW_APPLIED);
    assert_int_equal(v.ring.version, 7);
    assert_ptr_equal(v.ring.cell, cell); // it was not copied
    ring_check_invariants(&v.ring);
    assert_memory_equal(v.ring.digest, ring.digest, sizeof ring.digest);
    ring_fini(&ring);
    mem_free(plain);
    mem_free(ops);
    mem_free(list);
    view_fini(&v);
}

static void moves_do_not_copy_the_ring(void **state)
{
    (void)state;
    for (size_t count = 1; count < 9; count++) {
        assert_moves_end_the_same(count, false);
        assert_moves_end_the_same(count, true);
    }
    assert_moves_end_the_same(256, false);
    assert_moves_end_the_same(300, false);
}

static void a_change_of_members_does_not_copy_the_ring(void **state)
{
    Rh__Member n2 = member(2, "n2");
    Rh__Member *changed = &n2;
    Rh__Delta delta = RH__DELTA__INIT;
    const uint32_t *cell;
    struct view v;

    (void)state;
    start(&v);
    cell = v.ring.cell;
    n2.leaving = true;
    delta.version = 5;
    delta.n_changed = 1;
    delta.changed = &changed;
    assert_true(view_seal(&v, &delta));
    delta.digest1++;
    assert_int_equal(view_apply(&v, &delta), VIEW_DIFFERS);
    assert_false(view_member(&v, 2)->leaving);
    assert_int_equal(v.ring.version, 2);
    delta.digest1--;
    assert_int_equal(view_apply(&v, &delta), VIEW_APPLIED);
    assert_true(view_member(&v, 2)->leaving);
    assert_int_equal(v.ring.version, 5);
    assert_ptr_equal(v.ring.cell, cell);
    ring_check_invariants(&v.ring);
    view_fini(&v);
}

static void a_configuration_makes_an_equal_view(void **state)
{
    struct view v;
    struct view other;
    Rh__Config config;
    const struct bytes id = bytes_of("player-1", 8);

    (void)state;
    start(&v);
    v.era = 4;
    v.fleet = (struct fleet_id){5, 6};
    view_config(&v, &config);
    view_init(&other, RING_GRID_MAX);
    assert_int_equal(view_load(&other, &config, false), VIEW_APPLIED);
    assert_int_equal(other.ring.version, 2);
    assert_int_equal(other.ring.digest[1], v.ring.digest[1]);
    assert_int_equal(other.era, 4);
    assert_true(fleet_id_same(other.fleet, v.fleet));
    assert_int_equal(other.member_count, 2);
    assert_string_equal(view_member_named(&other, "n2")->address, "h:1");
    assert_int_equal(view_lookup(&other, 3, id), view_lookup(&v, 3, id));
    assert_int_equal(ring_hit_node(view_lookup(&other, 3, id)), 1);
    assert_int_equal(view_load(&other, &config, false), VIEW_OLD);
    assert_int_equal(view_load(&other, &config, true), VIEW_APPLIED);
    view_config_fini(&config);
    view_fini(&other);
    view_fini(&v);
}

static void a_configuration_of_another_fleet_is_not_taken(void **state)
{
    struct view v;
    struct view other;
    Rh__Config config;

    (void)state;
    start(&v);
    v.fleet = (struct fleet_id){5, 6};
    view_config(&v, &config);
    view_init(&other, RING_GRID_MIN);
    other.fleet = (struct fleet_id){5, 7};
    assert_int_equal(view_load(&other, &config, true), VIEW_DIFFERS);
    assert_int_equal(other.ring.version, 0);
    other.fleet.low = 6;
    assert_int_equal(view_load(&other, &config, true), VIEW_APPLIED);
    view_config_fini(&config);
    view_fini(&other);
    view_fini(&v);
}

static void a_bad_configuration_changes_nothing(void **state)
{
    struct view v;
    struct view other;
    Rh__Config config;

    (void)state;
    start(&v);
    view_config(&v, &config);
    view_init(&other, RING_GRID_MIN);
    config.version = 7; // not the ring's
    assert_int_equal(view_load(&other, &config, true), VIEW_DIFFERS);
    config.version = 2;
    config.ring.data[30] ^= 1;
    assert_int_equal(view_load(&other, &config, true), VIEW_DIFFERS);
    config.ring.data[30] ^= 1;
    config.members[0]->slot = 2; // twice, and the owner's slot is missing
    assert_int_equal(view_load(&other, &config, true), VIEW_DIFFERS);
    config.members[0]->slot = 1;
    config.members[0]->weight = 1001;
    assert_int_equal(view_load(&other, &config, true), VIEW_DIFFERS);
    assert_int_equal(other.ring.version, 0);
    assert_int_equal(ring_hit_node(view_lookup(&other, 0, bytes_of("x", 1))), RING_NODE_NONE);
    view_config_fini(&config);
    view_fini(&other);
    view_fini(&v);
}

static void members_are_found_by_slot_and_name_and_can_go(void **state)
{
    uint32_t removed = 2;
    Rh__Delta delta = RH__DELTA__INIT;
    struct view v;

    (void)state;
    start(&v);
    assert_string_equal(view_member(&v, 2)->name, "n2");
    assert_null(view_member(&v, 3));
    assert_null(view_member_named(&v, "n3"));
    delta.version = 3;
    delta.n_removed = 1;
    delta.removed = &removed;
    assert_true(view_seal(&v, &delta));
    assert_int_equal(view_apply(&v, &delta), VIEW_APPLIED);
    assert_null(view_member(&v, 2));
    delta.version = 4;
    assert_false(view_seal(&v, &delta)); // it is gone already
    view_fini(&v);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(deltas_apply_in_order_only),
        cmocka_unit_test(a_view_without_the_key_takes_no_delta),
        cmocka_unit_test(a_delta_that_does_not_fit_changes_nothing),
        cmocka_unit_test(a_cold_delta_raises_cold),
        cmocka_unit_test(moves_do_not_copy_the_ring),
        cmocka_unit_test(a_change_of_members_does_not_copy_the_ring),
        cmocka_unit_test(a_configuration_makes_an_equal_view),
        cmocka_unit_test(a_configuration_of_another_fleet_is_not_taken),
        cmocka_unit_test(a_bad_configuration_changes_nothing),
        cmocka_unit_test(members_are_found_by_slot_and_name_and_can_go),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
