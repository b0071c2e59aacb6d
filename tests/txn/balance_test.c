/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement by load in a fleet of a hundred nodes: the shipped leader, in virtual time, hears from
 * each what a Zipf load costs it, and moves what is to move by transactions.
 */
#include "sim/scale.h"

#include "tests/test.h"

#include "base/log.h"

#include <inttypes.h>

static void a_hundred_nodes_share_a_zipf_load_within_a_minute(void **state)
{
    struct scale_result r;
    const struct scale_options options = {
        .nodes = 100, .gateways = 1, .grid = 16, .idle_us = UINT64_C(660000000), .zipf = 70};

    (void)state;
    log_set_level(LOG_ERROR);
    assert_true(scale_run(&options, &r));
    print_message("max/mean in thousandths: %" PRIu64 " by hash, %" PRIu64
                  " after 60 s and %" PRIu64 " moves of vnodes or parts; at most %" PRIu64
                  " in the ten minutes after, %" PRIu64 " moves; %" PRIu64 " moves back; %" PRIu64
                  " bytes of renewals a second\n",
                  r.begin_permille,
                  r.minute_permille,
                  r.minute_moves,
                  r.most_permille,
                  r.moves - r.minute_moves,
                  r.moves_back,
                  r.to_leader.bytes / 660);
    assert_true(r.begin_permille > 1250);
    assert_true(r.minute_permille <= 1150);
    assert_true(r.most_permille <= 1150);
    assert_int_equal(r.moves_back, 0);
    assert_true(r.moves - r.minute_moves <= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_nodes_share_a_zipf_load_within_a_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
