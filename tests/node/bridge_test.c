/* SPDX-License-Identifier: Apache-2.0
 *
 * The bridge between a host and a runtime, with the host's records and a real runtime, but neither
 * machine's decisions: who is bound to whom, and whose completions reach the host.
 */
#include "tests/test.h"

#include "node/books/actor.h"
#include "node/bridge/bridge.h"
#include "tests/node/runtime_rig.h"

static struct runtime *runtime;
static struct actors actors;
static struct completion last;  /* that the runtime told, without what it borrows */
static size_t told;             /* so many it told */
static struct host_event heard; /* of the last one that the host heard */
static size_t heard_count;
static int answer;

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    (void)instance;
    return answer;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    (void)instance;
    (void)rh_reply(actor, rh_bytes_value(message->payload.data, message->payload.size));
}

static int on_flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence)
{
    (void)actor;
    (void)instance;
    (void)why;
    (void)fence;
    return RH_OK;
}

static const struct rh_actor_ops saving = {
    .abi = RH_ABI, .name = "saving", .brief = 1, .flush = on_flush};
static const struct rh_actor_ops ops = {.abi = RH_ABI,
                                        .name = "bridged",
                                        .brief = 1,
                                        .activate = on_activate,
                                        .message = on_message,
                                        .deactivate = runtime_rig_deactivate};

/* Nothing is between the two: what the runtime tells goes to the host at once. */
static void on_completion(void *context, const struct completion *c)
{
    (void)context;
    told++;
    last = *c;
    if (bridge_complete(c, &heard)) {
        heard_count++;
    }
}

static int open_both(void **state)
{
    const struct runtime_config config = {.on_completion = on_completion};

    (void)state;
    runtime = runtime_new(&config);
    actors_init(&actors);
    actors_set_grid(&actors, RING_GRID_MIN, 1u << RING_GRID_MIN);
    told = heard_count = 0;
    answer = RH_OK;
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    runtime_close(runtime, RH_STOP);
    actors_bury(&actors);
    actors_fini(&actors);
    return 0;
}

static struct actor *record(const char *id)
{
    return actor_new(&actors, (struct image_name){.kind = 3, .id = bytes_of(id, strlen(id))});
}

static bool submit(struct actor *a, struct submission s, struct bytes bytes)
{
    const struct host_effect e = {.type = HOST_SUBMIT, .actor = a, .submission = s};
    struct submission out;
    const bool any = bridge_submit(runtime, &ops, NULL, &e, &out);

    if (any) {
        runtime_perform(runtime, &out, bytes);
    }
    return any;
}

static struct actor *enter(const char *id)
{
    struct actor *a = record(id);

    assert_true(submit(a, (struct submission){.verb = VERB_ACTIVATE}, bytes_of("", 0)));
    return a;
}

static void leave(struct actor *a)
{
    if (actor_instance(a) != NULL) {
        (void)submit(a, (struct submission){.verb = VERB_DISCARD}, (struct bytes){0});
        activation_free(last.actor);
    }
    actor_discard(&actors, a);
}

static void an_activation_and_its_actor_know_each_other(void **state)
{
    struct actor *a = enter("ada");

    (void)state;
    assert_ptr_equal(activation_owner(actor_instance(a)), a);
    assert_true(bytes_equal(activation_name(actor_instance(a)).id, bytes_of("ada", 3)));
    assert_int_equal(activation_name(actor_instance(a)).kind, 3);
    assert_int_equal(heard.type, HOST_COMPLETED);
    assert_int_equal(heard.completion.verb, VERB_ACTIVATE);
    assert_ptr_equal(heard.actor, a);
    leave(a);
}

static void a_request_s_head_is_its_chain_and_its_answer_has_its_ticket(void **state)
{
    const uint64_t chain[] = {11, 12};
    struct buffer all = {0};
    struct actor *a = enter("ada");

    (void)state;
    buffer_put(&all, chain, sizeof chain);
    buffer_put(&all, "hello", 5);
    assert_true(
        submit(a,
               (struct submission){.verb = VERB_RUN, .ticket = 9, .head_size = sizeof chain},
               buffer_bytes(&all)));
    assert_int_equal(heard.completion.verb, VERB_RUN);
    assert_int_equal(heard.completion.ticket, 9);
    assert_int_equal(heard.completion.bytes.size, 5);
    buffer_fini(&all);
    leave(a);
}

static void what_a_discarded_one_told_is_dropped(void **state)
{
    struct actor *a = enter("ada");
    struct rh_actor *r = actor_instance(a);
    const struct completion late = {.verb = VERB_RUN, .actor = r};
    struct host_event event;
    const size_t before = heard_count;

    (void)state;
    assert_true(submit(a, (struct submission){.verb = VERB_DISCARD}, (struct bytes){0}));
    assert_null(actor_instance(a));
    assert_false(bridge_complete(&late, &event));
    assert_int_equal(last.verb, VERB_DISCARD);
    assert_true(completion_ends(&last));
    assert_int_equal(heard_count, before);
    activation_free(r);
    // Nothing of it is there: there is nothing to carry to its runtime either.
    assert_false(submit(a, (struct submission){.verb = VERB_DISCARD}, (struct bytes){0}));
    actor_discard(&actors, a);
}

static void one_that_does_not_come_to_life_is_bound_to_nobody(void **state)
{
    struct actor *a = record("ada");

    (void)state;
    answer = RH_FAILED;
    assert_true(submit(a, (struct submission){.verb = VERB_ACTIVATE}, bytes_of("", 0)));
    assert_int_equal(heard.completion.error, ERR_REFUSED);
    assert_true(completion_ends(&last));
    assert_null(actor_instance(a));
    activation_free(last.actor);
    actor_discard(&actors, a);
}

static void one_that_retires_is_bound_to_nobody(void **state)
{
    struct actor *a = enter("ada");

    (void)state;
    assert_true(submit(a, (struct submission){.verb = VERB_RETIRE}, (struct bytes){0}));
    assert_int_equal(heard.completion.verb, VERB_RETIRE);
    assert_true(completion_ends(&last));
    assert_null(actor_instance(a));
    activation_free(last.actor);
    actor_discard(&actors, a);
}

/* It is activated as if for the first time: its record goes, too. */
static void an_activate_that_is_returned_is_undone_and_a_run_is_not(void **state)
{
    const struct host_effect e = {.type = HOST_SUBMIT,
                                  .actor = record("ada"),
                                  .submission = {.verb = VERB_ACTIVATE, .ticket = 4}};
    struct submission s;
    struct host_event event;

    (void)state;
    assert_true(bridge_submit(runtime, &ops, NULL, &e, &s));
    struct completion back = submission_returned(&s, bytes_of("state", 5));
    assert_true(bridge_complete(&back, &event));
    assert_true(completion_ends(&back));
    assert_null(actor_instance(e.actor));
    assert_true(event.completion.returned);
    assert_int_equal(event.completion.ticket, 4);
    assert_int_equal(event.completion.bytes.size, 5);
    activation_free(back.actor);
    actor_discard(&actors, e.actor);

    struct actor *a = enter("bob");
    s = (struct submission){.verb = VERB_RUN, .activation = actor_instance(a)};
    back = submission_returned(&s, bytes_of("x", 1));
    assert_true(bridge_complete(&back, &event));
    assert_false(completion_ends(&back));
    assert_non_null(actor_instance(a));
    leave(a);
}

/* Only these may be run by the host's own thread: what else is done to an actor may save it. */
static void what_may_save_is_not_brief(void **state)
{
    static const enum verb verbs[] = {
        VERB_RUN, VERB_TURN, VERB_EXPORT, VERB_COPY, VERB_RETIRE, VERB_UNFREEZE};
    struct actor *a = enter("ada");

    (void)state;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        const struct host_effect e = {
            .type = HOST_SUBMIT, .actor = a, .submission = {.verb = (uint8_t)verbs[i]}};
        struct submission s;

        assert_true(bridge_submit(runtime, &ops, NULL, &e, &s));
        assert_true(s.brief);
        assert_true(bridge_submit(runtime, &saving, NULL, &e, &s));
        assert_int_equal(s.brief, i < 2);
        assert_ptr_equal(s.activation, actor_instance(a));
    }
    leave(a);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_activation_and_its_actor_know_each_other),
        CASE(a_request_s_head_is_its_chain_and_its_answer_has_its_ticket),
        CASE(what_a_discarded_one_told_is_dropped),
        CASE(one_that_does_not_come_to_life_is_bound_to_nobody),
        CASE(one_that_retires_is_bound_to_nobody),
        CASE(an_activate_that_is_returned_is_undone_and_a_run_is_not),
        CASE(what_may_save_is_not_brief),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
