/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups: who is a member, what their actor pushes to them, and how they move.
 */
#include "node/calls/broadcasts.h"
#include "tests/hex.h"
#include "tests/node/runtime_rig.h"
#include "tests/test.h"

#include <ringhold.h>

static struct runtime_rig runtime_rig;
static struct rh_group *group; /* of the actor */
static int pushed;
static struct broadcasting broadcasting;

static struct rh_bytes id_of(const char *text)
{
    return (struct rh_bytes){text, strlen(text)};
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct rh_bytes left = state == NULL ? id_of("") : *state;

    (void)actor;
    (void)fence;
    *instance = NULL;
    group = state == NULL ? rh_group_new(5, 3) : rh_group_load(&left);
    return group != NULL && left.size == 0 ? RH_OK : RH_FAILED;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    (void)instance;
    pushed = rh_group_push(actor, group, m->payload);
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    (void)instance;
    rh_group_save(group, out);
    pushed = rh_group_push(actor, group, id_of("x"));
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
    rh_group_free(group);
}

static const struct rh_actor_ops ops = {
    .abi = RH_ABI,
    .size = sizeof ops,
    .name = "room",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
};

static int set_up(void **state)
{
    const struct runtime_entry entry = {.ops = &ops, .fence = 7, .kind = 3};
    const struct runtime_config config = {.on_completion = runtime_rig_on_completion,
                                          .context = &runtime_rig,
                                          .broadcasting = &broadcasting};

    (void)state;
    runtime_rig = (struct runtime_rig){0};
    broadcasting.size = 0;
    runtime_rig.runtime = runtime_new(&config);
    runtime_rig_enter(&runtime_rig, &entry);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    runtime_rig_close(&runtime_rig);
    return 0;
}

static void each_is_a_member_once_until_it_leaves(void **state)
{
    (void)state;
    assert_int_equal(rh_group_join(group, id_of("ann")), RH_OK);
    assert_int_equal(rh_group_join(group, id_of("bob")), RH_OK);
    assert_int_equal(rh_group_join(group, id_of("ann")), RH_OK);
    assert_int_equal(rh_group_count(group), 2);
    assert_int_equal(rh_group_has(group, id_of("bob")), 1);
    assert_int_equal(rh_group_has(group, id_of("bo")), 0);
    assert_int_equal(rh_group_leave(group, id_of("ann")), RH_OK);
    assert_int_equal(rh_group_leave(group, id_of("ann")), RH_GONE);
    assert_int_equal(rh_group_count(group), 1);
    assert_memory_equal(rh_group_at(group, 0).data, "bob", 3);
    assert_int_equal(rh_group_at(group, 1).size, 0);
}

static void it_takes_no_more_than_it_may(void **state)
{
    static char long_id[RH_ID_MAX + 1];

    (void)state;
    memset(long_id, 'x', sizeof long_id);
    assert_int_equal(rh_group_join(group, (struct rh_bytes){long_id, RH_ID_MAX}), RH_OK);
    assert_int_equal(rh_group_join(group, id_of("b")), RH_OK);
    assert_int_equal(rh_group_join(group, id_of("c")), RH_OK);
    assert_int_equal(rh_group_join(group, id_of("d")), RH_FULL);
    assert_int_equal(rh_group_join(group, id_of("c")), RH_OK);
    assert_int_equal(rh_group_join(group, (struct rh_bytes){long_id, sizeof long_id}), RH_INVALID);
    assert_int_equal(rh_group_join(group, (struct rh_bytes){long_id, 0}), RH_INVALID);
    assert_int_equal(rh_group_join(group, (struct rh_bytes){NULL, 1}), RH_INVALID);
    assert_int_equal(rh_group_leave(group, (struct rh_bytes){NULL, 1}), RH_GONE);
    assert_null(rh_group_new(0, RH_GROUP_MAX + 1));
    rh_group_free(NULL);
}

/* Against a plain list, as many go in and out. */
static void it_is_the_set_that_it_should_be(void **state)
{
    enum { IDS = 200, STEPS = 20000 };
    struct rh_group *g = rh_group_new(0, IDS / 2);
    bool in[IDS] = {false};
    size_t count = 0;
    uint64_t prng = 7;

    (void)state;
    for (int i = 0; i < STEPS; i++) {
        prng = prng * 6364136223846793005u + 1442695040888963407u;
        const uint32_t n = (uint32_t)(prng >> 33) % IDS;
        const struct rh_bytes id = {&n, sizeof n};

        if ((prng >> 20) % 3 != 0) {
            const int joined = rh_group_join(g, id);

            assert_int_equal(joined, in[n] || count < IDS / 2 ? RH_OK : RH_FULL);
            count += !in[n] && joined == RH_OK ? 1 : 0;
            in[n] = in[n] || joined == RH_OK;
        } else {
            assert_int_equal(rh_group_leave(g, id), in[n] ? RH_OK : RH_GONE);
            count -= in[n] ? 1 : 0;
            in[n] = false;
        }
        assert_int_equal(rh_group_count(g), count);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t n = 0;

        memcpy(&n, rh_group_at(g, i).data, sizeof n);
        assert_true(in[n]);
        in[n] = false;
    }
    rh_group_free(g);
}

static void a_push_is_told_once_for_all_members(void **state)
{
    (void)state;
    (void)runtime_rig_call(&runtime_rig, "nobody");
    assert_int_equal(pushed, RH_OK);
    assert_int_equal(runtime_rig.told[VERB_CALL], 0);
    (void)rh_group_join(group, id_of("ann"));
    (void)rh_group_join(group, id_of("bob"));
    (void)runtime_rig_call(&runtime_rig, "hi");
    assert_int_equal(pushed, RH_OK);
    assert_int_equal(runtime_rig.told[VERB_CALL], 1);
    assert_int_equal(runtime_rig.call.count, 2);
    assert_int_equal(runtime_rig.call.kind, 5);
    assert_true(runtime_rig.call.push);
    static const char told[] = "5 \3ann\3bob \4hi"; // the ids, then a note PUSH
    assert_true(bytes_equal(buffer_bytes(&runtime_rig.called), bytes_of(told, sizeof told - 1)));
    assert_int_equal(broadcasting.size, 8 + 3);
}

static void a_push_is_refused_while_too_much_waits(void **state)
{
    (void)state;
    (void)rh_group_join(group, id_of("ann"));
    broadcasting.size = BROADCASTS_SIZE_MAX;
    (void)runtime_rig_call(&runtime_rig, "hi");
    assert_int_equal(pushed, RH_OVERLOADED);
    assert_int_equal(runtime_rig.told[VERB_CALL], 0);
    assert_int_equal(broadcasting.size, BROADCASTS_SIZE_MAX);
    assert_int_equal(broadcasting.refused, 1);
    broadcasting.size = 0;
    (void)runtime_rig_call(&runtime_rig, "hi");
    assert_int_equal(pushed, RH_OK);
}

static void what_is_too_large_is_refused(void **state)
{
    static char big[RH_PUSH_MAX + 1];

    (void)state;
    (void)rh_group_join(group, id_of("ann"));
    runtime_rig_run(&runtime_rig, 0, bytes_of(big, sizeof big));
    assert_int_equal(pushed, RH_TOO_BIG);
    runtime_rig_run(&runtime_rig, 0, bytes_of(big, RH_PUSH_MAX));
    assert_int_equal(pushed, RH_OK);
}

static void it_moves_with_its_actor(void **state)
{
    (void)state;
    (void)rh_group_join(group, id_of("ann"));
    (void)rh_group_join(group, id_of("b"));
    runtime_rig_move(&runtime_rig, &ops, NULL);
    assert_int_equal(pushed, RH_INVALID); // not in handoff
    assert_hex(buffer_bytes(&runtime_rig.state), "01 0500 03000000 02000000 03 616e6e 01 62");
    assert_int_equal(rh_group_count(group), 2);
    assert_int_equal(rh_group_has(group, id_of("ann")), 1);
    (void)rh_group_join(group, id_of("c"));
    assert_int_equal(rh_group_join(group, id_of("d")), RH_FULL);
}

static void what_is_no_group_is_not_loaded(void **state)
{
    static const uint8_t good[] = {1, 5, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 'a', 1, 'b', 'r'};
    uint8_t bytes[sizeof good];
    struct rh_bytes in = {good, sizeof good};

    (void)state;
    struct rh_group *g = rh_group_load(&in);
    assert_non_null(g);
    assert_int_equal(in.size, 1); // the rest is somebody else's
    assert_memory_equal(in.data, "r", 1);
    rh_group_free(g);
    for (size_t cut = 0; cut < sizeof good - 1; cut++) {
        uint8_t *exact = mem_copy(good, cut);

        in = (struct rh_bytes){exact, cut};
        assert_null(rh_group_load(&in));
        assert_int_equal(in.size, cut);
        mem_free(exact);
    }
    // Another version; more than may be; more than its own most; an empty id; nobody twice counts.
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 2}, {5, 2}, {7, 4}, {3, 0}, {11, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memcpy(bytes, good, sizeof good);
        bytes[bad[i].at] = bad[i].value;
        in = (struct rh_bytes){bytes, sizeof bytes};
        assert_null(rh_group_load(&in));
    }
    in = (struct rh_bytes){NULL, 0};
    assert_null(rh_group_load(&in));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest cases[] = {
        CASE(each_is_a_member_once_until_it_leaves),
        CASE(it_takes_no_more_than_it_may),
        CASE(it_is_the_set_that_it_should_be),
        CASE(a_push_is_told_once_for_all_members),
        CASE(a_push_is_refused_while_too_much_waits),
        CASE(what_is_too_large_is_refused),
        CASE(it_moves_with_its_actor),
        CASE(what_is_no_group_is_not_loaded),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
