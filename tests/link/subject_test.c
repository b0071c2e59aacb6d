/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in certificates: what is one, and what may be said with it.
 */
#include "link/subject.h"

#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static bool parses(const char *text, struct subject *s)
{
    return subject_parse(bytes_of(text, strlen(text)), s);
}

static void a_name_comes_back_as_it_was_put(void **state)
{
    (void)state;
    for (enum link_role role = ROLE_COORDINATOR; role <= ROLE_CLI; role++) {
        struct subject s = {.cluster = "prod-1", .role = role, .name = "Game_7.eu"};
        struct subject back;
        char uri[SUBJECT_URI_SIZE];

        subject_format(&s, uri);
        assert_true(parses(uri, &back));
        assert_string_equal(back.cluster, "prod-1");
        assert_int_equal(back.role, role);
        assert_string_equal(back.name, "Game_7.eu");
    }
}

static void what_is_no_name_is_none(void **state)
{
    static const char *const table[] = {
        "",
        "ringhold:",
        "ringhold://",
        "ringhold://prod",
        "ringhold://prod/",
        "ringhold://prod/node",
        "ringhold://prod/node/",
        "ringhold://prod/node/a/",
        "ringhold://prod/node/a/b",
        "ringhold://prod//a",
        "ringhold:///node/a",
        "ringhold://prod/cli/a",
        "ringhold://prod/Node/a",
        "ringhold://prod/node/a b",
        "ringhold://prod/node/a?b",
        "ringhold://prod/node/a%20",
        "ringhold://prod:1/node/a",
        "ringhold://me@prod/node/a",
        "Ringhold://prod/node/a",
        "https://prod/node/a",
        "ringhold://prod/node/0123456789012345678901234567890123456789012345678901234567890123",
    };
    struct subject s = {.name = "untouched"};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (parses(table[i], &s)) {
            fail_msg("%s", table[i]);
        }
    }
    assert_false(subject_parse(bytes_of("ringhold://prod/node/a\0b", 24), &s));
    assert_string_equal(s.name, "untouched");
}

static void each_prefix_of_a_name_is_none_or_another(void **state)
{
    static const char uri[] = "ringhold://prod/gateway/g1";
    struct subject s;

    (void)state;
    for (size_t size = 0; size < sizeof uri - 2; size++) {
        assert_false(subject_parse(bytes_of(uri, size), &s));
    }
    assert_true(subject_parse(bytes_of(uri, sizeof uri - 2), &s));
    assert_string_equal(s.name, "g");
}

static void each_role_may_be_itself_and_no_other(void **state)
{
    /* Rows: the certificate's; columns: the hello's. */
    static const bool may[4][4] = {
        {true, false, false, true}, // a coordinator may give commands
        {false, true, false, false},
        {false, false, true, false},
        {false, false, false, true},
    };

    (void)state;
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 4; k++) {
            const struct subject s = {.cluster = "c", .role = (enum link_role)(i + 1), .name = "a"};
            const struct hello hello = {
                .cluster = "c", .role = (enum link_role)(k + 1), .name = "a"};

            assert_int_equal(subject_refusal(&s, &hello), may[i][k] ? REFUSAL_NONE : REFUSAL_ROLE);
        }
    }
}

static void a_name_and_a_cluster_have_to_be_the_same(void **state)
{
    const struct subject node = {.cluster = "c", .role = ROLE_NODE, .name = "a"};
    const struct subject admin = {.cluster = "c", .role = ROLE_CLI, .name = "alice"};
    struct hello hello = {.cluster = "c", .role = ROLE_NODE, .name = "b"};

    (void)state;
    assert_int_equal(subject_refusal(&node, &hello), REFUSAL_NAME);
    strcpy(hello.name, "a");
    strcpy(hello.cluster, "d");
    assert_int_equal(subject_refusal(&node, &hello), REFUSAL_CLUSTER);
    strcpy(hello.cluster, "");
    assert_int_equal(subject_refusal(&node, &hello), REFUSAL_CLUSTER);
    hello.role = ROLE_CLI; // it may ask whichever cluster its certificate is of
    assert_int_equal(subject_refusal(&admin, &hello), REFUSAL_NONE);
    strcpy(hello.cluster, "d");
    assert_int_equal(subject_refusal(&admin, &hello), REFUSAL_CLUSTER);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_name_comes_back_as_it_was_put),
        cmocka_unit_test(what_is_no_name_is_none),
        cmocka_unit_test(each_prefix_of_a_name_is_none_or_another),
        cmocka_unit_test(each_role_may_be_itself_and_no_other),
        cmocka_unit_test(a_name_and_a_cluster_have_to_be_the_same),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
