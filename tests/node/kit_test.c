/* SPDX-License-Identifier: Apache-2.0
 *
 * The kit for tests of actors (ringhold_test.h): what it says that a node does, it does.
 */
#include "tests/test.h"

#include <ringhold_test.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTER = 1, SAVED = 2 };

/* It counts what it is told, in memory, and notes how it ended. */
struct counter {
    long count;
    long ticks;
};
static char ends[64];

static int activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance)
{
    struct counter *c = calloc(1, sizeof *c);

    (void)actor;
    (void)fence;
    if (state != NULL) {
        assert_int_equal(state->size, sizeof c->count);
        memcpy(&c->count, state->data, sizeof c->count);
    }
    *instance = c;
    return RH_OK;
}

static void deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    static const char *const names[] = {"moved", "stop", "fenced", "idle", "broken", "periodic"};
    const size_t used = strlen(ends);

    (void)actor;
    (void)snprintf(ends + used, sizeof ends - used, "%s ", names[why]);
    free(instance);
}

static int handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct counter *c = instance;

    (void)actor;
    rh_out_put(out, &c->count, sizeof c->count);
    return RH_OK;
}

static void timer(struct rh_actor *actor, void *instance, uint64_t number, void *argument)
{
    struct counter *c = instance;

    (void)actor;
    (void)number;
    (void)argument;
    c->ticks++;
}

static void on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                      void *argument)
{
    char text[64];

    (void)instance;
    (void)argument;
    (void)snprintf(text,
                   sizeof text,
                   "%d %.*s",
                   answer->status,
                   answer->status == RH_OK ? (int)answer->payload.size : 0,
                   (const char *)answer->payload.data);
    (void)rh_reply(actor, rh_text(text));
}

static int session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    (void)instance;
    return event->type == RH_SESSION_BOUND ? rh_push(actor, (struct rh_bytes){"welcome", 7})
                                           : RH_OK;
}

static void owned_tick(struct rh_actor *actor, void *instance, void *argument)
{
    struct counter *c = instance;

    (void)actor;
    c->ticks += *(long *)argument;
}

static size_t freed;
static void *owned_new(long value)
{
    long *owned = malloc(sizeof *owned);

    assert_non_null(owned);
    *owned = value;
    return owned;
}

static void owned_free(void *argument)
{
    freed++;
    free(argument);
}

static void message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    struct counter *c = instance;
    char word[64];

    (void)snprintf(word, sizeof word, "%.*s", (int)m->payload.size, (const char *)m->payload.data);
    if (strncmp(word, "ask ", 4) == 0) {
        assert_int_equal(rh_call_owned(actor,
                                       COUNTER,
                                       (struct rh_bytes){word + 4, strlen(word + 4)},
                                       (struct rh_bytes){"add", 3},
                                       500,
                                       0,
                                       on_answer,
                                       owned_new(0),
                                       owned_free),
                         RH_OK);
        (void)rh_defer(actor);
    } else if (strcmp(word, "tock") == 0) {
        assert_true(rh_timer_call(actor, 100, 100, owned_tick, owned_new(2), owned_free) > 0);
    } else if (strcmp(word, "life") == 0) {
        char text[RH_INCARNATION_TEXT];

        rh_incarnation_text(rh_incarnation(actor), text);
        (void)rh_reply(actor, rh_text(text));
    } else if (strcmp(word, "sleep") == 0) {
        (void)rh_defer(actor);
    } else if (strcmp(word, "tick") == 0) {
        (void)rh_timer_start(actor, 100, 100, NULL);
    } else if (strcmp(word, "ticks") == 0) {
        (void)rh_reply(actor, rh_integer(c->ticks));
    } else if (strcmp(word, "push") == 0) {
        (void)rh_reply(actor, rh_integer(rh_push(actor, (struct rh_bytes){"news", 4})));
    } else if (strcmp(word, "fail") == 0) {
        (void)rh_fail(actor, "BROKEN by itself");
    } else if (strcmp(word, "end") == 0) {
        (void)rh_passivate(actor);
    } else {
        (void)rh_reply(actor, rh_integer(++c->count));
    }
}

static const struct rh_actor_ops counter = {.abi = RH_ABI,
                                            .size = sizeof counter,
                                            .name = "counter",
                                            .activate = activate,
                                            .message = message,
                                            .handoff = handoff,
                                            .deactivate = deactivate,
                                            .timer = timer,
                                            .session = session};

/* ---- a durable one: "add" counts, "wake" sets an alarm of an hour */

static long saved(const struct rh_actor *actor, const char *name)
{
    struct rh_bytes value;

    return rh_state_get(actor, (struct rh_bytes){name, strlen(name)}, &value) == RH_OK
               ? (long)value.size
               : 0;
}

static void add(struct rh_actor *actor, const char *name)
{
    static const char ones[] = "1111111111111111";

    assert_int_equal(rh_state_put(actor,
                                  (struct rh_bytes){name, strlen(name)},
                                  (struct rh_bytes){ones, (size_t)saved(actor, name) + 1}),
                     RH_OK);
}

static struct rh_test *world;

static void save_message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    (void)instance;
    if (m->payload.size == 4) {
        assert_int_equal(rh_alarm_set(actor,
                                      (struct rh_bytes){"bell", 4},
                                      rh_test_clock(world) + 3600000,
                                      0,
                                      (struct rh_bytes){"", 0}),
                         RH_OK);
    } else if (m->payload.size == 5) {
        (void)rh_reply(actor, rh_integer(saved(actor, "rings")));
        return;
    } else {
        add(actor, "count");
    }
    (void)rh_reply(actor, rh_integer(saved(actor, "count")));
}

static int alarm_rings(struct rh_actor *actor, void *instance, const struct rh_alarm *alarm)
{
    (void)instance;
    assert_true(alarm->due_ms <= rh_test_clock(world));
    add(actor, "rings");
    return RH_OK;
}

static const struct rh_actor_ops durable = {.abi = RH_ABI,
                                            .size = sizeof durable,
                                            .name = "saved",
                                            .activate = activate,
                                            .message = save_message,
                                            .deactivate = deactivate,
                                            .alarm = alarm_rings,
                                            .durable = 1};

static struct rh_test *open_world(void)
{
    world = rh_test_new();
    ends[0] = '\0';
    assert_int_equal(rh_test_host(world, COUNTER, &counter, NULL), RH_OK);
    assert_int_equal(rh_test_host(world, SAVED, &durable, NULL), RH_OK);
    return world;
}

static void a_move_takes_memory_along_and_a_crash_does_not(void **state)
{
    struct rh_test *t = open_world();

    (void)state;
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "add"), "1");
    assert_int_equal(rh_test_move(t, COUNTER, "ann"), RH_OK);
    assert_string_equal(ends, "moved ");
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "add"), "2");
    rh_test_crash(t);
    assert_int_equal(rh_test_lives(t, COUNTER, "ann"), 0);
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "add"), "1");
    assert_string_equal(ends, "moved fenced ");
    rh_test_free(t);
    assert_string_equal(ends, "moved fenced stop ");
}

static void timers_come_in_their_time(void **state)
{
    struct rh_test *t = open_world();

    (void)state;
    (void)rh_test_call(t, COUNTER, "ann", "tick");
    rh_test_advance(t, 99);
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "ticks"), "0");
    rh_test_advance(t, 951);
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "ticks"), "10");
    rh_test_free(t);
}

static void timers_with_a_function_end_with_their_actor(void **state)
{
    struct rh_test *t = open_world();

    (void)state;
    freed = 0;
    (void)rh_test_call(t, COUNTER, "ann", "tock");
    rh_test_advance(t, 350);
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "ticks"), "6");
    assert_int_equal(freed, 0);
    assert_int_equal(rh_test_move(t, COUNTER, "ann"), RH_OK);
    assert_int_equal(freed, 1);
    rh_test_advance(t, 1000);
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "ticks"), "0");
    (void)rh_test_call(t, COUNTER, "ann", "tock");
    rh_test_crash(t);
    assert_int_equal(freed, 2);
    rh_test_free(t);
}

static void each_life_is_another(void **state)
{
    static const char *const ways[] = {"fail", "end", "move", "crash"};
    struct rh_test *t = open_world();
    char before[RH_INCARNATION_TEXT] = "";

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        const char *way = ways[i % 4];
        const char *now = rh_test_call(t, COUNTER, "ann", "life");

        assert_true(strcmp(before, now) < 0);
        (void)snprintf(before, sizeof before, "%s", now);
        assert_string_equal(rh_test_call(t, COUNTER, "ann", "life"), before);
        if (strcmp(way, "move") == 0) {
            assert_int_equal(rh_test_move(t, COUNTER, "ann"), RH_OK);
        } else if (strcmp(way, "crash") == 0) {
            rh_test_crash(t);
        } else {
            (void)rh_test_call(t, COUNTER, "ann", way);
        }
    }
    rh_test_free(t);
}

static void actors_call_each_other(void **state)
{
    struct rh_test *t = open_world();

    (void)state;
    freed = 0;
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "ask bob"), "0 1");
    rh_test_send(t, COUNTER, "cid", "sleep"); // it answers nobody
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "ask cid"), "9 ");
    assert_int_equal(freed, 2);
    rh_test_send(t, COUNTER, "ann", "ask cid");
    rh_test_crash(t); // Nobody answers it.
    assert_int_equal(freed, 3);
    rh_test_send(t, COUNTER, "cid", "sleep");
    assert_int_equal(rh_test_move(t, COUNTER, "cid"), RH_BUSY);
    rh_test_free(t);
}

static void who_fails_begins_anew(void **state)
{
    struct rh_test *t = open_world();

    (void)state;
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "add"), "1");
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "fail"), "BROKEN by itself");
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "add"), "1");
    (void)rh_test_call(t, COUNTER, "ann", "end");
    assert_int_equal(rh_test_lives(t, COUNTER, "ann"), 0);
    assert_string_equal(ends, "broken idle ");
    rh_test_free(t);
}

static void a_client_gets_pushes(void **state)
{
    struct rh_test *t = open_world();

    (void)state;
    assert_null(rh_test_pushed(t, COUNTER, "ann"));
    assert_int_equal(rh_test_bind(t, COUNTER, "ann"), RH_OK);
    assert_string_equal(rh_test_pushed(t, COUNTER, "ann"), "welcome");
    assert_int_equal(rh_test_move(t, COUNTER, "ann"), RH_OK);
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "push"), "0");
    assert_string_equal(rh_test_pushed(t, COUNTER, "ann"), "news");
    rh_test_leave(t, COUNTER, "ann");
    assert_string_equal(rh_test_call(t, COUNTER, "ann", "push"), "14");
    assert_null(rh_test_pushed(t, COUNTER, "ann"));
    rh_test_free(t);
}

static void what_was_answered_is_saved(void **state)
{
    static const enum rh_test_commits kills[] = {RH_TEST_COMMITS_BEFORE, RH_TEST_COMMITS_BEHIND};
    struct rh_test *t = open_world();

    (void)state;
    assert_string_equal(rh_test_call(t, SAVED, "ann", "add"), "1");
    for (size_t i = 0; i < 2; i++) {
        rh_test_commits(t, kills[i], 1);
        assert_string_equal(rh_test_call(t, SAVED, "ann", "add"), i == 0 ? "2" : "3");
    }
    rh_test_commits(t, RH_TEST_COMMITS_REFUSED, 1);
    assert_memory_equal(rh_test_call(t, SAVED, "ann", "add"), "STORE_UNAVAILABLE", 17);
    rh_test_commits(t, RH_TEST_COMMITS_UNKNOWN, 1);
    assert_memory_equal(rh_test_call(t, SAVED, "ann", "add"), "UNKNOWN", 7);
    assert_string_equal(rh_test_call(t, SAVED, "ann", "add"), "4");
    rh_test_free(t);
}

static void an_alarm_wakes_who_sleeps(void **state)
{
    struct rh_test *t = open_world();

    (void)state;
    (void)rh_test_call(t, SAVED, "ann", "wake");
    rh_test_crash(t);
    rh_test_advance(t, 3599000);
    assert_int_equal(rh_test_lives(t, SAVED, "ann"), 0);
    rh_test_advance(t, 3000);
    assert_int_equal(rh_test_lives(t, SAVED, "ann"), 1);
    assert_string_equal(rh_test_call(t, SAVED, "ann", "rings"), "1");
    rh_test_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_move_takes_memory_along_and_a_crash_does_not),
        cmocka_unit_test(timers_come_in_their_time),
        cmocka_unit_test(timers_with_a_function_end_with_their_actor),
        cmocka_unit_test(each_life_is_another),
        cmocka_unit_test(actors_call_each_other),
        cmocka_unit_test(who_fails_begins_anew),
        cmocka_unit_test(a_client_gets_pushes),
        cmocka_unit_test(what_was_answered_is_saved),
        cmocka_unit_test(an_alarm_wakes_who_sleeps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
