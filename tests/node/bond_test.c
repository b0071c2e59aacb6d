/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/runtime/bond.h: who is bound when several want to be.
 */
#include "node/runtime/bond.h"

#include "tests/test.h"

static const struct bond have = {
    .gateway = 1, .connection = 2, .round = 3, .stamp = {.fence = 5, .count = 6}};

static struct note note(enum note_type type, uint64_t connection, uint32_t round)
{
    return (struct note){
        .type = (uint8_t)type, .gateway = 1, .connection = connection, .round = round};
}

static void the_first_and_the_newest_are_bound(void **state)
{
    struct note bind = note(NOTE_BIND, 9, 1);

    (void)state;
    assert_int_equal(bond_judge(NULL, &bind), BOUND_NEW);
    assert_int_equal(bond_judge(&have, &bind), BOUND_NEW);
    bind = note(NOTE_BIND, 2, 1);
    bind.gateway = 8; // another gateway's connection 2
    assert_int_equal(bond_judge(&have, &bind), BOUND_NEW);
    assert_false(bond_is_of(&have, &bind));
}

static void a_copy_of_a_bind_changes_nothing(void **state)
{
    const struct note copy = note(NOTE_BIND, 2, 3);
    const struct note again = note(NOTE_BIND, 2, 4);

    (void)state;
    assert_true(bond_is_of(&have, &copy));
    assert_int_equal(bond_judge(&have, &copy), BOUND_KEPT);
    assert_int_equal(bond_judge(&have, &again), BOUND_NEW);
}

static void who_comes_again_is_kept_or_bound_anew(void **state)
{
    const struct note resume = note(NOTE_RESUME, 2, 9);
    struct bond kicked = have;

    (void)state;
    kicked.kicked = true;
    assert_int_equal(bond_judge(NULL, &resume), BOUND_NEW);
    assert_int_equal(bond_judge(&have, &resume), BOUND_KEPT);
    assert_int_equal(bond_judge(&kicked, &resume), BOUND_REFUSED);
}

/* Both were bound before a crash, and the older one was not told that it was replaced. */
static void of_two_that_come_again_the_newer_one_stays(void **state)
{
    struct note resume = note(NOTE_RESUME, 9, 9);

    (void)state;
    resume.stamp = (struct bond_stamp){.fence = 5, .count = 5};
    assert_int_equal(bond_judge(&have, &resume), BOUND_OLD);
    resume.stamp = (struct bond_stamp){.fence = 4, .count = 99};
    assert_int_equal(bond_judge(&have, &resume), BOUND_OLD);
    resume.stamp = (struct bond_stamp){.fence = 5, .count = 7};
    assert_int_equal(bond_judge(&have, &resume), BOUND_NEW);
}

/* Who comes back with the key of before its actor was begun afresh is not another client. */
static void of_one_that_was_begun_afresh_nothing_is_left(void **state)
{
    struct bond kept = have;
    struct note back = note(NOTE_RETURN, 9, 1);

    (void)state;
    kept.key = 5;
    kept.session = 6;
    back.key = 5;
    back.session = 6;
    assert_int_equal(bond_judge(&kept, &back), BOUND_KEPT);
    back.key = 4;
    assert_int_equal(bond_judge(&kept, &back), BOUND_GONE);
    back.session = 7;
    assert_int_equal(bond_judge(&kept, &back), BOUND_OLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_and_the_newest_are_bound),
        cmocka_unit_test(a_copy_of_a_bind_changes_nothing),
        cmocka_unit_test(who_comes_again_is_kept_or_bound_anew),
        cmocka_unit_test(of_two_that_come_again_the_newer_one_stays),
        cmocka_unit_test(of_one_that_was_begun_afresh_nothing_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
