/* SPDX-License-Identifier: Apache-2.0
 *
 * What dead nodes owe: bounds, the way over the wire, and when it is over.
 */
#include "ring/unanswered.h"

#include "base/mem.h"
#include "tests/command.h"
#include "tests/test.h"

#include <stdio.h>

static struct bytes text(const char *id)
{
    return bytes_of(id, strlen(id));
}

static void each_actor_stands_once_and_the_first_ones_stay(void **state)
{
    struct unanswered u = {0};
    struct unanswered_node *n = unanswered_begin(&u, 7);
    char id[16];

    (void)state;
    for (unsigned i = 0; i < 2 * UNANSWERED_ACTORS_MAX - 1; i++) {
        (void)snprintf(id, sizeof id, "e%u", i / 2);
        assert_true(unanswered_put(n, 3, text(id), 0));
    }
    assert_int_equal(n->count, UNANSWERED_ACTORS_MAX);
    assert_false(unanswered_put(n, 4, text("late"), 0));
    assert_true(bytes_equal(quarantined_id(&n->actor[0].actor), text("e0")));
    n = unanswered_begin(&u, 7);
    assert_int_equal(u.count, 1);
    assert_int_equal(n->count, 0);
    for (uint64_t i = 8; i < 8 + UNANSWERED_NODES_MAX; i++) {
        assert_true(unanswered_put(unanswered_begin(&u, i), 3, text("a"), 0));
    }
    assert_int_equal(u.count, UNANSWERED_NODES_MAX);
    assert_int_equal(u.node[0].incarnation, 8); // 7 made room
    unanswered_drop(&u, 9);
    assert_int_equal(u.count, UNANSWERED_NODES_MAX - 1);
    assert_int_equal(u.node[1].incarnation, 10);
    unanswered_fini(&u);
    assert_int_equal(u.count, 0);
}

static void it_comes_over_the_wire_and_nonsense_does_not(void **state)
{
    struct unanswered u = {0};
    struct unanswered back = {0};
    Rh__Actor bad = RH__ACTOR__INIT;                                 // of no kind
    Rh__Suspect suspect[2] = {RH__SUSPECT__INIT, RH__SUSPECT__INIT}; // the first has no name
    Rh__Suspect *list[] = {&suspect[0], &suspect[1]};
    Rh__Unanswered none = RH__UNANSWERED__INIT;
    Rh__Unanswered *many[UNANSWERED_NODES_MAX + 1];

    (void)state;
    assert_null(unanswered_wire(&u));
    (void)unanswered_put(unanswered_begin(&u, 7), 3, text("boss 7"), 6);
    (void)unanswered_put(unanswered_begin(&u, 8), 0, text("ann"), 0);
    Rh__Unanswered **wire = unanswered_wire(&u);
    unanswered_read(&back, wire, u.count);
    unanswered_read(&back, wire, u.count); // in the place of the same
    assert_int_equal(back.count, 2);
    assert_int_equal(back.node[0].incarnation, 7);
    assert_int_equal(back.node[0].actor[0].actor.kind, 3);
    assert_int_equal(back.node[0].actor[0].before, 6);
    assert_true(bytes_equal(quarantined_id(&back.node[0].actor[0].actor), text("boss 7")));
    assert_int_equal(back.node[1].count, 1);
    unanswered_wire_free(wire, u.count);
    suspect[1].actor = &bad;
    bad.kind = 70000;
    bad.id = proto_bytes(text("x"));
    none.actors = list;
    none.n_actors = 2;
    for (size_t i = 0; i <= UNANSWERED_NODES_MAX; i++) {
        many[i] = &none;
    }
    unanswered_read(&back, many, UNANSWERED_NODES_MAX + 1);
    assert_int_equal(back.count, 1);
    assert_int_equal(back.node[0].count, 0);
    unanswered_fini(&back);
    unanswered_fini(&u);
}

/* n1 has the ring, n2 nothing. */
static void who_owns_nothing_owes_nothing(void **state)
{
    struct state s;
    struct unanswered u = {0};

    (void)state;
    init(&s);
    const uint64_t n1 = stamp_of(enroll(&s, "n1", 11, 0));
    const uint64_t n2 = stamp_of(enroll(&s, "n2", 12, 0));
    (void)unanswered_begin(&u, n2);
    (void)unanswered_begin(&u, n1);
    (void)unanswered_begin(&u, n2 + 5);
    unanswered_follow(&u, &s.view);
    assert_int_equal(u.count, 1);
    assert_int_equal(u.node[0].incarnation, n1);
    assert_int_not_equal(stamp_of(enroll(&s, "n1", 13, n1)), 0); // it is back
    unanswered_follow(&u, &s.view);
    assert_int_equal(u.count, 0);
    state_fini(&s);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(each_actor_stands_once_and_the_first_ones_stay),
        cmocka_unit_test(it_comes_over_the_wire_and_nonsense_does_not),
        cmocka_unit_test(who_owns_nothing_owes_nothing),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
