/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of wire/finder.h. With --mutants (make MUTANTS=1): the bug that is planted in it is found.
 */
#include "wire/finder.h"

#include "tests/planted.h"
#include "tests/test.h"

static void nobody_leads_until_someone_says_so(void **state)
{
    struct finder f;

    (void)state;
    finder_init(&f, 3);
    assert_int_equal(finder_leader(&f), -1);
    finder_on_leader(&f, 1, false, 7);
    assert_int_equal(finder_leader(&f), -1);
    finder_on_leader(&f, 2, true, 7);
    assert_int_equal(finder_leader(&f), 2);
}

static void the_claim_of_the_higher_term_wins_in_any_order(void **state)
{
    struct finder f;

    (void)state;
    finder_init(&f, 3);
    finder_on_leader(&f, 0, true, 5);
    finder_on_leader(&f, 2, true, 6);
    assert_int_equal(finder_leader(&f), 2);
    finder_on_leader(&f, 0, true, 5);
    assert_int_equal(finder_leader(&f), 2);
    finder_on_leader(&f, 0, true, 9);
    assert_int_equal(finder_leader(&f), 0);
}

static void a_lost_link_and_a_refusal_end_a_claim(void **state)
{
    struct finder f;

    (void)state;
    finder_init(&f, 2);
    finder_on_leader(&f, 0, true, 8);
    finder_on_leader(&f, 1, true, 7);
    finder_on_down(&f, 0);
    assert_int_equal(finder_leader(&f), 1);
    finder_on_not_leader(&f, 1, 6); // it said so before it led
    assert_int_equal(finder_leader(&f), 1);
    finder_on_not_leader(&f, 1, 7);
    assert_int_equal(finder_leader(&f), -1);
    finder_on_leader(&f, 1, true, 7);
    finder_on_not_leader(&f, 1, 0); // an older process
    assert_int_equal(finder_leader(&f), -1);
    finder_on_leader(&f, 0, true, 8);
    assert_int_equal(finder_leader(&f), 0);
    finder_on_leader(&f, 0, false, 9);
    assert_int_equal(finder_leader(&f), -1);
}

/* Else a node that took it for news would not renew its lease (fleet_sim --profile sessions --seed
 * 1719). */
static void what_was_said_in_an_earlier_term_comes_too_late(void **state)
{
    struct finder f;

    (void)state;
    finder_init(&f, 2);
    finder_on_leader(&f, 0, true, 8);
    finder_on_leader(&f, 0, false, 7);
    assert_int_equal(finder_leader(&f), 0);
    finder_on_leader(&f, 1, true, 7);
    finder_on_leader(&f, 0, true, 6);
    assert_int_equal(finder_leader(&f), 0);
    finder_on_leader(&f, 0, false, 8); // it steps down
    assert_int_equal(finder_leader(&f), 1);
    finder_on_down(&f, 1);
    finder_on_leader(&f, 1, true, 2); // a new process, whose group begins anew
    assert_int_equal(finder_leader(&f), 1);
}

static void a_new_address_takes_the_place_of_one_that_is_gone(void **state)
{
    char text[][4] = {"a:1", "e:1", "f:1"};
    char *voters[] = {text[0], text[1], text[2]};
    struct finder_known known[4] = {{"a:1", false}, {"b:1", true}, {"c:1", false}, {NULL, false}};

    (void)state;
    assert_int_equal(finder_place(known, 4, "b:1", voters, 3), 1);
    assert_int_equal(finder_place(known, 4, "e:1", voters, 3), 3); // there is room
    known[3] = (struct finder_known){"d:1", true};
    assert_int_equal(finder_place(known, 4, "e:1", voters, 3), 2); // a votes, b and d are there
    known[2] = (struct finder_known){"e:1", false};
    assert_int_equal(finder_place(known, 4, "f:1", voters, 3), 4); // none, until one has gone
    known[1].linked = false;
    assert_int_equal(finder_place(known, 4, "f:1", voters, 3), 1);
}

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(nobody_leads_until_someone_says_so),
        cmocka_unit_test(the_claim_of_the_higher_term_wins_in_any_order),
        cmocka_unit_test(a_lost_link_and_a_refusal_end_a_claim),
        cmocka_unit_test(what_was_said_in_an_earlier_term_comes_too_late),
        cmocka_unit_test(a_new_address_takes_the_place_of_one_that_is_gone),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_LATEREFUSAL};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
