/* SPDX-License-Identifier: Apache-2.0
 *
 * Fair shares: nobody takes all, and who comes next finds room. With --mutants (make MUTANTS=1): a
 * gateway that doesn't count is caught.
 */
#include "route/share.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/table.h"
#include "tests/planted.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

enum { GREEDY_MAX = 50 };

static const uint64_t room = 10000;

static const struct share_rule ninth = {.times = 1, .parts = 8, .least = 16};
static const struct share_rule most = {.times = 8, .parts = 1, .least = 16};

/* Hashes as holders have them. */
static uint64_t holder(uint64_t number)
{
    return table_mix(number + 1);
}

static bool may(const struct share *s, uint64_t who, const struct share_rule *rule, uint64_t used)
{
    return used < room && share_of(s, who).count < share_allowed(rule, room, used);
}

/* So many take in turns whatever they may have. What is left then. */
static uint64_t left_by(uint64_t greedy, const struct share_rule *rule)
{
    struct share *s = mem_new(1, sizeof *s);
    uint64_t used = 0;
    bool more = true;

    while (more) {
        more = false;
        for (uint64_t i = 0; i < greedy; i++) {
            if (may(s, holder(i), rule, used)) {
                share_add(s, holder(i), 0);
                used++;
                more = true;
            }
        }
    }
    mem_free(s);
    return room - used;
}

/* As a function that tells, for mutants. */
static bool who_wants_all_leaves_room(void)
{
    bool left = left_by(1, &ninth) >= room * 8 / 9 - 1 && left_by(1, &most) >= room / 9 - 1;

    for (uint64_t i = 1; i <= GREEDY_MAX; i++) {
        left = left && left_by(i, &ninth) >= room * 8 / (8 + i) - i; // each has less
    }
    return left;
}

static void one_or_many_that_want_all_leave_room(void **state)
{
    (void)state;
    assert_true(who_wants_all_leaves_room());
    // None of them is kept from what is nobody's.
    assert_in_range(left_by(1, &ninth), room * 8 / 9 - 1, room * 8 / 9 + 8);
    assert_in_range(left_by(1, &most), room / 9 - 1, room / 9 + 8);
}

static void a_rule_has_its_ends(void **state)
{
    const struct share_rule rule = {.times = 1, .parts = 8, .least = 32, .most = 256};

    (void)state;
    assert_int_equal(share_allowed(&rule, 100000, 0), 256);
    assert_int_equal(share_allowed(&rule, 1600, 0), 200);
    assert_int_equal(share_allowed(&rule, 1600, 1600), 32);
    assert_int_equal(share_allowed(&rule, 1600, 2000), 32); // it was more before
    assert_int_equal(share_allowed(&most, UINT64_C(1) << 40, 0), UINT64_C(1) << 43);
}

/* Never less than it is, and nothing when all is given back. */
static void what_is_held_is_counted(void **state)
{
    enum { HOLDERS = 300, STEPS = 200000 };
    struct share *s = mem_new(1, sizeof *s);
    static struct share none;
    uint32_t count[HOLDERS] = {0};
    struct prng chance = {.state = 7};
    unsigned exact = 0;

    (void)state;
    for (unsigned i = 0; i < STEPS; i++) {
        const size_t who = prng_between(&chance, 0, HOLDERS - 1);

        if (count[who] > 0 && prng_between(&chance, 0, 1) == 0) {
            share_sub(s, holder(who), 100 + who);
            count[who]--;
        } else {
            share_add(s, holder(who), 100 + who);
            count[who]++;
        }
    }
    for (size_t i = 0; i < HOLDERS; i++) {
        const struct share_held held = share_of(s, holder(i));

        assert_true(held.count >= count[i] && held.size >= (uint64_t)count[i] * (100 + i));
        exact += held.count == count[i];
    }
    assert_true(exact > HOLDERS * 8 / 10);
    for (size_t i = 0; i < HOLDERS; i++) {
        while (count[i]-- > 0) {
            share_sub(s, holder(i), 100 + i);
        }
    }
    assert_memory_equal(s, &none, sizeof none);
    mem_free(s);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_or_many_that_want_all_leave_room),
        cmocka_unit_test(a_rule_has_its_ends),
        cmocka_unit_test(what_is_held_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {
#define X(name, text) name,
        MUTANT_SHARE_LIST(X)
#undef X
    };

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
