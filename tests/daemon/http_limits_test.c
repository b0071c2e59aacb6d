/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of daemon/http_limits.h: who is cut when strangers crowd an HTTP server.
 */
#include "tests/test.h"

#include "daemon/http_limits.h"

static struct http_client *come(struct http_limits *s, uint8_t from, uint64_t now_ms)
{
    struct http_client *client = http_limits_come(s, &(struct http_client_address){{from}}, now_ms);

    assert_non_null(client);
    return client;
}

static void who_has_no_answer_by_the_deadline_is_cut(void **state)
{
    struct http_limits s = {0};
    struct http_client *slow = come(&s, 1, 1000);
    struct http_client *kept = come(&s, 2, 1000);

    (void)state;
    assert_int_equal(http_limits_wait_ms(&s, 1500), HTTP_DEADLINE_MS - 500);
    http_limits_answered(&s, kept, 3000);
    assert_null(http_limits_cut(&s, 1000 + HTTP_DEADLINE_MS - 1));
    assert_ptr_equal(http_limits_cut(&s, 1000 + HTTP_DEADLINE_MS), slow);
    assert_null(http_limits_cut(&s, 1000 + HTTP_DEADLINE_MS));
    assert_int_equal(http_limits_wait_ms(&s, 1000 + HTTP_DEADLINE_MS), 2000);
    assert_ptr_equal(http_limits_cut(&s, 9000 + HTTP_DEADLINE_MS), kept);
    assert_int_equal(s.cut[HTTP_CUT_DEADLINE], 1);
    assert_int_equal(s.cut[HTTP_CUT_IDLE], 1);
    assert_int_equal(http_limits_wait_ms(&s, 9000), UINT64_MAX);
    http_limits_gone(&s, slow);
    http_limits_gone(&s, kept);
    assert_int_equal(s.taken, 0);
}

static void a_prober_outlasts_a_flood_from_one_address(void **state)
{
    struct http_limits s = {0};
    struct http_client *prober = come(&s, 9, 0);

    (void)state;
    for (size_t i = 1; i < 10000; i++) {
        struct http_client *gone = NULL;

        (void)come(&s, 1, i % HTTP_DEADLINE_MS);
        gone = http_limits_cut(&s, i % HTTP_DEADLINE_MS);
        assert_int_equal(gone != NULL, i >= HTTP_CLIENTS_TAKEN_MAX);
        if (gone != NULL) {
            assert_ptr_not_equal(gone, prober);
            http_limits_gone(&s, gone);
        }
    }
    assert_int_equal(s.taken, HTTP_CLIENTS_TAKEN_MAX);
    assert_int_equal(s.cut[HTTP_CUT_CROWDED], 10000 - HTTP_CLIENTS_TAKEN_MAX);
}

static void of_strangers_from_everywhere_the_oldest_goes(void **state)
{
    struct http_limits s = {0};
    struct http_client *first = come(&s, 0, 0);
    struct http_client *second = come(&s, 1, 0);

    (void)state;
    for (size_t i = 2; i <= HTTP_CLIENTS_TAKEN_MAX; i++) {
        assert_null(http_limits_cut(&s, 0));
        (void)come(&s, (uint8_t)i, 0);
    }
    http_limits_answered(&s, first, 0); // it asks again, and has not waited for long
    assert_ptr_equal(http_limits_cut(&s, 0), second);
    assert_null(http_limits_cut(&s, 0));
}

static void none_is_cut_twice_or_seated_before_it_is_gone(void **state)
{
    struct http_limits s = {0};
    struct http_client *client = NULL;
    size_t cut = 0;

    (void)state;
    for (size_t i = 0; i < HTTP_CLIENTS_MAX; i++) {
        (void)come(&s, 1, 0);
    }
    assert_null(http_limits_come(&s, &(struct http_client_address){{1}}, 0));
    while (http_limits_cut(&s, 0) != NULL) {
        cut++;
    }
    assert_int_equal(cut, HTTP_CLIENTS_MAX - HTTP_CLIENTS_TAKEN_MAX);
    while ((client = http_limits_cut(&s, HTTP_DEADLINE_MS)) != NULL) {
        cut++;
        http_limits_gone(&s, client);
    }
    assert_int_equal(cut, HTTP_CLIENTS_MAX);
    (void)come(&s, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_no_answer_by_the_deadline_is_cut),
        cmocka_unit_test(a_prober_outlasts_a_flood_from_one_address),
        cmocka_unit_test(of_strangers_from_everywhere_the_oldest_goes),
        cmocka_unit_test(none_is_cut_twice_or_seated_before_it_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
