/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the zones in which roles are kept.
 */
#include "txn/leader/zones.h"

#include "tests/test.h"

static const struct coordinator_config config = {
    .zone = {{"match", "a"}, {"match", "b"}, {"", "a"}}, .zone_count = 3};

static void a_role_is_kept_in_its_zones_and_others_anywhere(void **state)
{
    (void)state;
    assert_true(zones_has(&config, "match", "a"));
    assert_true(zones_has(&config, "match", "b"));
    assert_false(zones_has(&config, "match", "c"));
    assert_false(zones_has(&config, "match", ""));
    assert_false(zones_has(&config, "", "b"));
    assert_true(zones_has(&config, "chat", "c"));
    assert_true(zones_has(&config, "chat", ""));
}

static void who_is_outside_leaves_while_one_inside_stays(void **state)
{
    struct plan_node node[] = {
        {.slot = 1, .role = "match", .zone = "c"},
        {.slot = 2, .role = "match", .zone = "b"},
        {.slot = 3, .role = "", .zone = "b"},
        {.slot = 4, .role = "chat", .zone = "c"},
        {.slot = 5, .role = "match", .zone = ""},
    };

    (void)state;
    zones_keep(&config, node, 5);
    assert_true(node[0].leaving);
    assert_false(node[1].leaving);
    assert_false(node[2].leaving); // of its role nobody is inside
    assert_false(node[3].leaving);
    assert_true(node[4].leaving);
}

static void who_leaves_himself_is_nobodys_home(void **state)
{
    struct plan_node node[] = {
        {.slot = 1, .role = "match", .zone = "c"},
        {.slot = 2, .role = "match", .zone = "a", .leaving = true},
    };

    (void)state;
    zones_keep(&config, node, 2);
    assert_false(node[0].leaving);
    assert_true(node[1].leaving);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_role_is_kept_in_its_zones_and_others_anywhere),
        cmocka_unit_test(who_is_outside_leaves_while_one_inside_stays),
        cmocka_unit_test(who_leaves_himself_is_nobodys_home),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
