/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the simulator: the same seed is the same history.
 */
#include "base/log.h"
#include "base/mem.h"
#include "sim/fleet.h"
#include "tests/test.h"

static void no_log(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

/* Runs one seed; returns the hash of its history. */
static uint64_t run_as(enum profile profile, uint64_t seed)
{
    const struct fleet_options options = {.seconds = 5, .profile = profile};
    struct fleet *f = mem_new(1, sizeof *f);
    uint64_t hash;

    sim_fleet_init(f, seed, &options);
    sim_fleet_run(f);
    if (f->world.checker != NULL) {
        fail_msg(
            "seed %llu: %s: %s", (unsigned long long)seed, f->world.checker, f->world.violation);
    }
    assert_true(f->ledger.ask_count > 0);
    hash = f->world.hash;
    sim_fleet_fini(f);
    mem_free(f);
    return hash;
}

static uint64_t run(uint64_t seed)
{
    return run_as(PROFILE_DRAWN, seed);
}

static void one_seed_is_one_history(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        assert_int_equal(run(seed), run(seed));
    }
    assert_int_not_equal(run(1), run(2));
}

static void a_handful_of_fleets_keep_every_rule(void **state)
{
    (void)state;
    for (uint64_t seed = 101; seed <= 110; seed++) {
        (void)run(seed);
    }
}

static void accounts_are_the_same_in_each_run_of_a_seed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        assert_int_equal(run_as(PROFILE_DURABLE, seed), run_as(PROFILE_DURABLE, seed));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_seed_is_one_history),
        cmocka_unit_test(a_handful_of_fleets_keep_every_rule),
        cmocka_unit_test(accounts_are_the_same_in_each_run_of_a_seed),
    };

    log_set_sink(no_log, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
