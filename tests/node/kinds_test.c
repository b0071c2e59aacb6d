/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/worker/kinds.h: bundled kinds, shared objects, and what is
 * refused.
 */
#include "tests/test.h"

#include "node/actors/actors.h"
#include "node/worker/kinds.h"
#include "tests/node/runtime_rig.h"

#include <stdlib.h>
#include <unistd.h>

/* A shared object that was built beside this test: "examples/counter.so". */
static void object_path(char *path, size_t size, const char *name)
{
    char self[400] = "";

    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    char *slash = strrchr(self, '/');
    assert_non_null(slash);
    *slash = '\0';
    (void)snprintf(path, size, "%s/../../%s", self, name);
}

static enum err add_object(struct kinds *k, const char *name)
{
    char path[512];

    object_path(path, sizeof path, name);
    return kinds_add_named(k, 0, path);
}

static void bundled_actors_have_names(void **state)
{
    struct kinds k = {0};

    (void)state;
    assert_int_equal(kinds_add_named(&k, 0, "kv"), ERR_OK);
    assert_int_equal(kinds_add_named(&k, 3, "echo=x=y"), ERR_OK);
    assert_int_equal(kinds_add_named(&k, 3, "kv"), ERR_CONFLICT);
    assert_int_equal(kinds_add_named(&k, 4, "nonsense"), ERR_NOT_FOUND);
    assert_int_equal(kinds_start(&k, "n1"), ERR_OK);
    assert_int_equal(k.count, 2);
    assert_string_equal(kinds_find(&k, 0)->ops.name, "kv");
    assert_string_equal(kinds_find(&k, 3)->ops.name, "echo");
    assert_string_equal(kinds_find(&k, 3)->argument, "x=y");
    assert_null(kinds_find(&k, 4));
    kinds_fini(&k);
}

static void a_kind_whose_ids_hash_may_be_remembered(void **state)
{
    static const char *const never[] = {"1@singleton@remember:kv",
                                        "1@daemons=2@remember:kv",
                                        "1@remember@together:kv",
                                        "@remember:kv",
                                        "1@remembered:kv"};
    struct rh_actor_ops ops = actor_kv;
    const struct rh_kind singleton = {.number = 6, .ops = &ops, .placement = RH_PLACE_SINGLETON};
    struct kinds k = {0};

    (void)state;
    assert_true(kinds_add_lines(&k, "1@remember:kv\n2@together@remember:kv\n3@together:kv"));
    assert_true(k.hosted[0].remember && k.hosted[1].remember && !k.hosted[2].remember);
    assert_int_equal(k.hosted[1].placement, RH_PLACE_TOGETHER);
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        assert_false(kinds_add_lines(&k, never[i]));
    }
    assert_int_equal(k.count, 3);
    ops.remember = 1;
    assert_int_equal(kinds_add(&k, &(struct rh_kind){.number = 5, .ops = &ops}), ERR_OK);
    assert_int_equal(kinds_add(&k, &singleton), ERR_OK); // it lives anyway
    assert_true(k.hosted[3].remember && !k.hosted[4].remember);
    kinds_fini(&k);
}

static void a_part_has_three_decimals_at_most(void **state)
{
    static const struct {
        const char *line;
        uint16_t withheld;
    } good[] = {{"3@hosts:kv", 0},
                {"3@1:kv", 0},
                {"3@1.000:kv", 0},
                {"3@0.1:kv", 900},
                {"3@0.025:kv", 975},
                {"3@0.001:kv", 999},
                {"3@0:kv", 1000},
                {"3@0.0:kv", 1000}};
    static const char *const bad[] = {"3@1.1:kv",
                                      "3@2:kv",
                                      "3@0.0001:kv",
                                      "3@0,1:kv",
                                      "3@.1:kv",
                                      "3@-1:kv",
                                      "3@hosts=1:kv",
                                      "3@0.1x:kv",
                                      "3@:kv"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct kinds k = {0};

        assert_true(kinds_add_lines(&k, good[i].line));
        assert_int_equal(k.hosted[0].placement, RH_PLACE_HOSTS);
        assert_int_equal(k.hosted[0].withheld, good[i].withheld);
        assert_true(kinds_add_lines(&k, "4:kv"));
        assert_int_equal(k.hosted[1].withheld, 0);
        kinds_fini(&k);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kinds k = {0};

        assert_false(kinds_add_lines(&k, bad[i]));
    }
}

/* It is found beside a program of this installation, which this test is not: by its path here. */
static void the_demos_actor_is_a_shared_object(void **state)
{
    struct kinds k = {0};

    (void)state;
    assert_int_equal(kinds_add_named(&k, 0, "ledger"), ERR_NOT_FOUND);
    assert_int_equal(add_object(&k, "ledger.so"), ERR_OK);
    assert_string_equal(kinds_find(&k, 0)->ops.name, "ledger");
    kinds_fini(&k);
}

/* What is said on stderr of a kind that is refused. */
static const char *refusal(const char *name, enum err want)
{
    static char text[1024];
    struct kinds k = {0};
    FILE *file = tmpfile();
    const int stands = dup(STDERR_FILENO);

    assert_non_null(file);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    const enum err error = add_object(&k, name);
    assert_true(dup2(stands, STDERR_FILENO) >= 0);
    assert_int_equal(close(stands), 0);
    assert_int_equal(error, want);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    kinds_fini(&k);
    return text;
}

static void a_shared_object_is_an_actor(void **state)
{
    struct kinds k = {0};
    struct runtime_rig t;

    (void)state;
    assert_int_equal(add_object(&k, "examples/counter.so"), ERR_OK);
    assert_int_equal(kinds_start(&k, "n1"), ERR_OK);
    const struct rh_actor_ops *ops = &kinds_find(&k, 0)->ops;
    assert_string_equal(ops->name, "counter");
    runtime_rig_open(&t, ops, NULL);
    assert_string_equal(runtime_rig_call(&t, "x"), "1");
    assert_string_equal(runtime_rig_command(&t, "INCR x"), "i:2");
    runtime_rig_move(&t, ops, NULL);
    assert_string_equal(runtime_rig_call(&t, "x"), "3");
    runtime_rig_close(&t);
    kinds_fini(&k);
}

static const char *says(const struct kinds *k, uint16_t number)
{
    static struct runtime_rig t;

    runtime_rig_open(&t, &kinds_find(k, number)->ops, NULL);
    (void)runtime_rig_call(&t, "what");
    runtime_rig_close(&t);
    return t.text;
}

static void a_shared_object_may_have_several_kinds(void **state)
{
    struct kinds k = {0};
    char path[512];
    char lines[1200];

    (void)state;
    object_path(path, sizeof path, "tests/plugins/several.so");
    (void)snprintf(lines, sizeof lines, "3:%s:orc=green\n4@singleton:%s:wolf", path, path);
    assert_true(kinds_add_lines(&k, lines));
    assert_string_equal(kinds_find(&k, 3)->argument, "green");
    assert_string_equal(says(&k, 3), "orc");
    assert_string_equal(says(&k, 4), "wolf");
    object_path(path, sizeof path, "examples/counter.so:counter"); // of one that has a single kind
    assert_int_equal(kinds_add_named(&k, 5, path), ERR_OK);
    kinds_fini(&k);
}

static void who_names_no_kind_of_an_object_is_told_which_there_are(void **state)
{
    (void)state;
    assert_non_null(strstr(refusal("tests/plugins/several.so:cat", ERR_NOT_FOUND),
                           "several.so: it has no kind 'cat'. It has orc, wolf, ghost\n"));
    assert_non_null(strstr(refusal("tests/plugins/several.so", ERR_NOT_FOUND),
                           "several.so:NAME. It has orc, wolf, ghost\n"));
    assert_non_null(strstr(refusal("tests/plugins/several.so:ghost", ERR_INVALID), "it lacks one"));
    assert_non_null(strstr(refusal("examples/counter.so:cat", ERR_NOT_FOUND),
                           "it has no kind 'cat'. It has counter\n"));
    assert_non_null(strstr(refusal("tests/plugins/nameless.so:cat", ERR_NOT_FOUND), "neither"));
    assert_non_null(strstr(refusal("tests/plugins/foreign.so:cat", ERR_FOREIGN), "this is ABI 2"));
    assert_non_null(strstr(refusal("tests/plugins/none.so:cat", ERR_NOT_FOUND), "none.so: "));
}

static void a_bad_shared_object_is_refused(void **state)
{
    struct kinds k = {0};

    (void)state;
    assert_int_equal(add_object(&k, "tests/plugins/foreign.so"), ERR_FOREIGN);
    assert_int_equal(add_object(&k, "tests/plugins/nameless.so"), ERR_NOT_FOUND);
    assert_int_equal(add_object(&k, "tests/plugins/incomplete.so"), ERR_INVALID);
    assert_int_equal(add_object(&k, "tests/plugins/not_there.so"), ERR_NOT_FOUND);
    assert_int_equal(add_object(&k, "tests/node/kinds_test.d"), ERR_NOT_FOUND);
    assert_int_equal(k.count, 0);
    kinds_fini(&k);
}

/* Three calls at one owner, one at the next. "" = it could not start. */
static const char *counted_over(const char *before, const char *after, struct runtime_rig *t)
{
    struct kinds k = {0};
    struct runtime_rig old;

    assert_int_equal(add_object(&k, before), ERR_OK);
    runtime_rig_open(&old, &kinds_find(&k, 0)->ops, NULL);
    for (unsigned i = 0; i < 3; i++) {
        (void)runtime_rig_call(&old, "x");
    }
    runtime_export(old.actor);
    const uint32_t version = k.hosted[0].state_version;
    struct kinds next = {0};
    assert_int_equal(add_object(&next, after), ERR_OK);
    const struct runtime_entry entry = {.ops = &kinds_find(&next, 0)->ops,
                                        .state = buffer_bytes(&old.state),
                                        .has_state = true,
                                        .state_version = version};
    runtime_rig_build(t);
    runtime_rig_enter(t, &entry);
    if (t->actor == NULL) {
        assert_int_equal(t->error, ERR_REFUSED);
        t->text[0] = '\0';
    } else {
        (void)runtime_rig_call(t, "x");
    }
    runtime_rig_close(&old);
    runtime_rig_close(t);
    kinds_fini(&k);
    kinds_fini(&next);
    return t->text;
}

static void a_state_of_another_version_is_upgraded_before_it_is_activated(void **state)
{
    static const char *const builds[] = {
        "tests/plugins/tally.so", "tests/plugins/tally_bridge.so", "tests/plugins/tally_next.so"};
    static const char *const want[3][3] = {
        {"4", "4", "4"}, {"4", "4", "4"}, {"", "4", "4"}}; // [from][to]
    struct runtime_rig t;

    (void)state;
    for (size_t from = 0; from < 3; from++) {
        for (size_t to = 0; to < 3; to++) {
            assert_string_equal(counted_over(builds[from], builds[to], &t), want[from][to]);
        }
    }
}

static int keep(struct rh_actor *actor, uint32_t version, const struct rh_bytes *state,
                struct rh_out *out)
{
    (void)actor;
    (void)version;
    rh_out_put(out, state->data, state->size);
    return RH_OK;
}

static void what_a_kind_reads_holds_what_it_writes(void **state)
{
    static const struct {
        uint32_t given[3]; /* version, least, most */
        bool upgrades;
        enum err want;
        uint32_t reads[2];
    } cases[] = {
        {{0, 0, 0}, false, ERR_OK, {0, 0}},
        {{3, 0, 0}, false, ERR_OK, {3, 3}},
        {{3, 0, 0}, true, ERR_OK, {0, 3}},
        {{3, 2, 0}, true, ERR_OK, {2, 3}},
        {{3, 2, 5}, true, ERR_OK, {2, 5}},
        {{0, 0, 1}, true, ERR_OK, {0, 1}},
        {{3, 2, 0}, false, ERR_INVALID, {0, 0}},
        {{3, 0, 4}, false, ERR_INVALID, {0, 0}},
        {{3, 4, 0}, true, ERR_INVALID, {0, 0}},
        {{3, 0, 2}, true, ERR_INVALID, {0, 0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kinds k = {0};
        struct rh_actor_ops ops = actor_echo;

        ops.state_version = cases[i].given[0];
        ops.state_version_least = cases[i].given[1];
        ops.state_version_most = cases[i].given[2];
        ops.upgrade = cases[i].upgrades ? keep : NULL;
        assert_int_equal(kinds_add(&k, &(struct rh_kind){.ops = &ops}), cases[i].want);
        if (cases[i].want == ERR_OK) {
            assert_int_equal(k.hosted[0].state_version, cases[i].given[0]);
            assert_int_equal(k.hosted[0].state_least, cases[i].reads[0]);
            assert_int_equal(k.hosted[0].state_most, cases[i].reads[1]);
        }
        kinds_fini(&k);
    }
}

static void tables_may_grow_at_their_end(void **state)
{
    struct {
        struct rh_actor_ops ops;
        void (*later)(void);
    } newer = {.ops = actor_echo};
    struct kinds k = {0};
    const struct rh_kind kind = {.number = 1, .ops = &newer.ops};

    (void)state;
    newer.ops.size = sizeof newer;
    assert_int_equal(kinds_add(&k, &kind), ERR_OK);
    const struct rh_kind again = {.number = 2, .ops = &newer.ops};
    newer.later = (void (*)(void))abort;
    assert_int_equal(kinds_add(&k, &again), ERR_FOREIGN);
    newer.ops.size = offsetof(struct rh_actor_ops, session);
    newer.ops.session = (int (*)(struct rh_actor *, void *, const struct rh_session *))abort;
    assert_int_equal(kinds_add(&k, &again), ERR_OK); // one that ends before `session`
    assert_null(kinds_find(&k, 2)->ops.session);
    const struct rh_kind third = {.number = 3, .ops = &newer.ops};
    newer.ops.size--;
    assert_int_equal(kinds_add(&k, &third), ERR_FOREIGN);
    kinds_fini(&k);
}

static int stopped;

static int refuse(const struct rh_kind_info *info, void **shared)
{
    (void)shared;
    assert_string_equal(info->node, "n1");
    assert_string_equal(info->argument, "why");
    return RH_FAILED;
}

static void count_stop(void *shared)
{
    assert_null(shared);
    stopped++;
}

static void an_actor_may_refuse_to_start(void **state)
{
    struct kinds k = {0};
    struct rh_actor_ops first = actor_echo;
    struct rh_actor_ops second = actor_echo;

    (void)state;
    first.stop = count_stop;
    second.stop = count_stop;
    second.start = refuse;
    assert_int_equal(kinds_add(&k, &(struct rh_kind){.number = 1, .ops = &first}), ERR_OK);
    assert_int_equal(
        kinds_add(&k, &(struct rh_kind){.number = 2, .ops = &second, .argument = "why"}), ERR_OK);
    assert_int_equal(kinds_start(&k, "n1"), ERR_REFUSED);
    kinds_fini(&k);
    assert_int_equal(stopped, 1); // Only what was started.
}

static int never_flushes(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence)
{
    (void)actor;
    (void)instance;
    (void)why;
    (void)fence;
    return RH_FAILED;
}

static int never_rings(struct rh_actor *actor, void *instance, const struct rh_alarm *alarm)
{
    (void)actor;
    (void)instance;
    (void)alarm;
    return RH_FAILED;
}

static void a_kind_with_alarms_is_durable(void **state)
{
    struct kinds k = {0};
    struct rh_actor_ops ops = actor_echo;
    const struct rh_kind kind = {.number = 3, .ops = &ops};

    (void)state;
    ops.alarm = never_rings;
    assert_int_equal(kinds_add(&k, &kind), ERR_INVALID);
    ops.durable = 1;
    assert_int_equal(kinds_add(&k, &kind), ERR_OK);
    assert_true(k.hosted[0].alarms);
    kinds_fini(&k);
}

static void a_durable_kind_has_no_flush(void **state)
{
    struct kinds k = {0};
    struct rh_actor_ops ops = actor_echo;
    const struct rh_kind kind = {.number = 3, .ops = &ops};

    (void)state;
    ops.durable = 2;
    assert_int_equal(kinds_add(&k, &kind), ERR_INVALID);
    ops.durable = 1;
    ops.flush = never_flushes;
    assert_int_equal(kinds_add(&k, &kind), ERR_INVALID);
    assert_null(kinds_durable(&k));
    ops.flush = NULL;
    assert_int_equal(kinds_add(&k, &kind), ERR_OK);
    assert_string_equal(kinds_durable(&k), ops.name);
    kinds_fini(&k);
}

static void too_many_sessions_are_refused(void **state)
{
    struct rh_actor_ops ops = actor_echo;
    const struct rh_kind kind = {.number = 1, .ops = &ops};
    struct kinds k = {0};

    (void)state;
    ops.sessions = RH_SESSIONS_ALLOW + 1;
    assert_int_equal(kinds_add(&k, &kind), ERR_INVALID);
    ops.sessions = RH_SESSIONS_ALLOW;
    ops.sessions_max = RH_SESSIONS_MAX + 1;
    assert_int_equal(kinds_add(&k, &kind), ERR_INVALID);
    ops.sessions_max = RH_SESSIONS_MAX;
    assert_int_equal(kinds_add(&k, &kind), ERR_OK);
    kinds_fini(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_with_alarms_is_durable),
        cmocka_unit_test(a_durable_kind_has_no_flush),
        cmocka_unit_test(too_many_sessions_are_refused),
        cmocka_unit_test(bundled_actors_have_names),
        cmocka_unit_test(a_kind_whose_ids_hash_may_be_remembered),
        cmocka_unit_test(a_part_has_three_decimals_at_most),
        cmocka_unit_test(the_demos_actor_is_a_shared_object),
        cmocka_unit_test(a_shared_object_is_an_actor),
        cmocka_unit_test(a_shared_object_may_have_several_kinds),
        cmocka_unit_test(who_names_no_kind_of_an_object_is_told_which_there_are),
        cmocka_unit_test(a_bad_shared_object_is_refused),
        cmocka_unit_test(a_state_of_another_version_is_upgraded_before_it_is_activated),
        cmocka_unit_test(what_a_kind_reads_holds_what_it_writes),
        cmocka_unit_test(tables_may_grow_at_their_end),
        cmocka_unit_test(an_actor_may_refuse_to_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
