/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the demo's actor `ledger`.
 */
#include "tests/test.h"

#include "demo/journal.h"
#include "tests/folder.h"
#include "tests/node/runtime_rig.h"

#include <unistd.h>

static char folder[256];
static void *journal;
static char path[512];

static int set_up(void **state)
{
    (void)state;
    folder_make(folder, sizeof folder);
    const struct rh_kind_info info = {.size = sizeof info, .node = "n1", .argument = folder};
    assert_int_equal(ringhold_actor.start(&info, &journal), RH_OK);
    (void)snprintf(path, sizeof path, "%s/n1-%ld.journal", folder, (long)getpid());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ringhold_actor.stop(journal);
    folder_remove(folder);
    return 0;
}

static void it_counts_each_client(void **state)
{
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &ringhold_actor, journal);
    assert_string_equal(runtime_rig_call(&t, "1 1"), "OK 1");
    assert_string_equal(runtime_rig_call(&t, "2 1"), "OK 1");
    assert_string_equal(runtime_rig_call(&t, "1 2"), "OK 2");
    runtime_rig_move(&t, &ringhold_actor, journal);
    assert_string_equal(runtime_rig_call(&t, "1 3"), "OK 3");
    assert_string_equal(runtime_rig_call(&t, "2 2"), "OK 2");
    runtime_rig_close(&t);
}

/* A byte of the ballast that is lost on the way is noticed. */
static void it_looks_at_its_ballast(void **state)
{
    struct runtime_rig t;
    struct runtime_rig other;
    void *shared = NULL;
    const struct rh_kind_info info = {.size = sizeof info, .node = "n2", .argument = folder};

    (void)state;
    assert_int_equal(setenv("RINGHOLD_BALLAST", "1024", 1), 0);
    assert_int_equal(ringhold_actor.start(&info, &shared), RH_OK);
    assert_int_equal(unsetenv("RINGHOLD_BALLAST"), 0);
    runtime_rig_open(&t, &ringhold_actor, shared);
    assert_string_equal(runtime_rig_call(&t, "1 1"), "OK 1");
    runtime_rig_move(&t, &ringhold_actor, shared);
    assert_string_equal(runtime_rig_call(&t, "1 2"), "OK 2");
    runtime_export(t.actor);
    assert_int_equal(t.state.size, 8 + 1024 + 20);
    runtime_unfreeze(t.actor);
    t.state.data[500] ^= 1;
    const struct runtime_entry entry = {.ops = &ringhold_actor,
                                        .shared = shared,
                                        .state = buffer_bytes(&t.state),
                                        .has_state = true,
                                        .fence = 9};
    runtime_rig_build(&other);
    runtime_rig_enter(&other, &entry);
    assert_int_equal(other.error, ERR_REFUSED);
    runtime_rig_close(&other);
    runtime_rig_close(&t);
    ringhold_actor.stop(shared);
}

static void it_takes_its_time(void **state)
{
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &ringhold_actor, journal);
    runtime_tick(t.runtime, 1000);
    (void)runtime_rig_call(&t, "1 1 250");
    assert_int_equal(t.answers, 0);
    runtime_tick(t.runtime, 250000);
    assert_int_equal(t.answers, 0);
    runtime_tick(t.runtime, 251000);
    assert_int_equal(t.answers, 1);
    assert_string_equal(t.text, "OK 1");
    runtime_rig_close(&t);
}

static void it_refuses_other_payloads(void **state)
{
    static const char *const bad[] = {
        "", "1", "1 ", "x 1", "1 x", "1 1 x", "1 1 1 1", "1 1 60001", "4294967296 1", "1  1"};
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &ringhold_actor, journal);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_string_equal(runtime_rig_call(&t, bad[i]),
                            "ERR the ledger takes 'client seq [milliseconds]'");
        assert_int_equal(t.code, ANSWER_APP_ERROR);
    }
    runtime_rig_close(&t);
}

static void it_refuses_a_state_that_is_not_its_own(void **state)
{
    struct runtime_rig t;
    const struct runtime_entry entry = {
        .ops = &ringhold_actor, .shared = journal, .state = bytes_of("odd", 3), .has_state = true};

    (void)state;
    runtime_rig_build(&t);
    runtime_rig_enter(&t, &entry);
    assert_int_equal(t.error, ERR_REFUSED);
    runtime_rig_close(&t);
}

static void everything_is_in_the_journal(void **state)
{
    static const struct journal_record want[] = {
        {.event = JOURNAL_ACTIVATE, .fence = 7},
        {.event = JOURNAL_RUN_BEGIN, .fence = 7, .client = 3, .seq = 8},
        {.event = JOURNAL_RUN_END, .fence = 7, .client = 3, .seq = 8},
        {.event = JOURNAL_EXPORT, .fence = 7},
        {.event = JOURNAL_RESUME, .fence = 7},
        {.event = JOURNAL_EXPORT, .fence = 7},
        {.event = JOURNAL_DISCARD, .fence = 7, .seq = RH_MOVED},
        {.event = JOURNAL_ACTIVATE, .fence = 9},
        {.event = JOURNAL_DISCARD, .fence = 9, .seq = RH_STOP},
    };
    const size_t count = sizeof want / sizeof want[0];
    struct journal_view v;
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &ringhold_actor, journal);
    (void)runtime_rig_call(&t, "3 8");
    runtime_export(t.actor);
    runtime_unfreeze(t.actor);
    runtime_rig_move(&t, &ringhold_actor, journal);
    runtime_rig_close(&t);
    assert_int_equal(journal_view_open(&v, path), ERR_OK);
    assert_true(v.count >= count);
    for (size_t i = 0; i < count; i++) {
        const struct journal_record *got = &v.record[v.count - count + i];

        assert_int_equal(got->event, want[i].event);
        assert_int_equal(got->fence, want[i].fence);
        assert_int_equal(got->client, want[i].client);
        assert_int_equal(got->seq, want[i].seq);
        assert_true(got->id_hash == journal_id_hash(bytes_of("id", 2)));
    }
    journal_view_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_counts_each_client),
        cmocka_unit_test(it_looks_at_its_ballast),
        cmocka_unit_test(it_takes_its_time),
        cmocka_unit_test(it_refuses_other_payloads),
        cmocka_unit_test(it_refuses_a_state_that_is_not_its_own),
        cmocka_unit_test(everything_is_in_the_journal),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
