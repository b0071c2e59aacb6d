/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of gateway/client/stats.h and figure.h: every figure is told and added
 * up.
 */
#include "gateway/client/stats.h"

#include "tests/test.h"

#include <string.h>

/* Of figures that are added up: all but version and digest. */
static struct gateway_stats every_figure_is(uint64_t value)
{
    struct gateway_stats t;
    uint64_t word[sizeof t / sizeof(uint64_t)] = {0};

    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++) {
        word[i] = value;
    }
    memcpy(&t, word, sizeof t);
    return t;
}

static void every_figure_is_added_up(void **state)
{
    struct gateway_stats sum = every_figure_is(3);
    struct gateway_stats want = every_figure_is(7);
    const struct gateway_stats more = every_figure_is(4);

    (void)state;
    gateway_stats_add(&sum, &more);
    // Of two rings it tells the older.
    want.router.version = want.router.digest[0] = want.router.digest[1] = 3;
    assert_memory_equal(&sum, &want, sizeof sum);

    sum.router.version = 9;
    gateway_stats_add(&sum, &more);
    assert_int_equal(sum.router.version, 4);
    assert_int_equal(sum.router.digest[1], 4);
}

static void a_thread_sees_itself_now_and_the_others_as_they_were(void **state)
{
    struct thread_stats *b = thread_stats_new(3);
    struct gateway_stats own = every_figure_is(1);
    struct gateway_stats sum;

    (void)state;
    thread_stats_sum(b, 0, &own, &sum); // nothing was put
    assert_memory_equal(&sum, &own, sizeof sum);
    thread_stats_put(b, 0, &own);
    thread_stats_put(b, 2, &own);
    own = every_figure_is(10);
    thread_stats_sum(b, 0, &own, &sum);
    assert_int_equal(sum.clients.commands, 11);
    assert_int_equal(sum.router.version, 1);
    thread_stats_sum(b, 1, &own, &sum);
    assert_int_equal(sum.router.requests, 12);
    thread_stats_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure_is_added_up),
        cmocka_unit_test(a_thread_sees_itself_now_and_the_others_as_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
