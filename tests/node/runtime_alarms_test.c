/* SPDX-License-Identifier: Apache-2.0
 *
 * Alarms of durable actors on a runtime: set, cancelled and fired by commits; when they go off, and
 * what becomes of one whose callback fails.
 */
#include "base/log.h"
#include "tests/node/memory_store.h"
#include "tests/node/runtime_rig.h"
#include "tests/planted.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { FENCE = 7, START_MS = 1000000000 /* by the wall clock */ };

struct sleeper {
    struct memory_store store;
    struct runtime_rig t;
    struct alarm_counts counts;
    struct durable_figures figures;
    struct rh_token token;
    size_t pokes;     /* seen so far */
    uint64_t now_ms;  /* of the runtime */
    uint64_t wall_ms; /* more than that */
    char rang[256];   /* "name=payload@due " of each call */
    int result;       /* of the next */
    char does[16];    /* what it does besides */
};

static struct rh_bytes of(const char *text)
{
    return (struct rh_bytes){text, strlen(text)};
}

static int activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance)
{
    (void)state;
    (void)fence;
    *instance = rh_shared(actor);
    return RH_OK;
}

static void deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)instance;
    (void)why;
    assert_int_equal(rh_alarm_set(actor, of("late"), 1, 0, of("")), RH_INVALID);
}

/* "set NAME DUE EVERY", "cancel NAME", "list", "undo NAME", "many" */
static void sets(struct rh_actor *actor, char *word)
{
    const char *name = strtok(word, " ");
    const uint64_t due_ms = START_MS + strtoull(strtok(NULL, " "), NULL, 10);
    const uint64_t every_ms = strtoull(strtok(NULL, " "), NULL, 10);

    assert_int_equal(rh_state_put(actor, of("k"), of(name)), RH_OK);
    assert_int_equal(rh_alarm_set(actor, of(name), due_ms, every_ms, of("!")), RH_OK);
}

static void lists(struct rh_actor *actor)
{
    struct rh_alarm alarm = {0};
    char all[128] = "";

    while (rh_alarm_next(actor, alarm.name, &alarm) == RH_OK) {
        (void)snprintf(all + strlen(all),
                       sizeof all - strlen(all),
                       "%.*s@%u/%u ",
                       (int)alarm.name.size,
                       (const char *)alarm.name.data,
                       (unsigned)(alarm.due_ms - START_MS),
                       (unsigned)alarm.every_ms);
    }
    (void)rh_reply(actor, rh_bytes_value(all, strlen(all)));
}

/* As many as there may be, set and cancelled, and one more. */
static void sets_many(struct rh_actor *actor)
{
    char name[16];

    for (unsigned i = 0; i < RH_ALARMS_MAX; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        assert_int_equal(rh_alarm_set(actor, of(name), START_MS + 1000, 0, of("")), RH_OK);
        assert_int_equal(rh_alarm_cancel(actor, of(name)), RH_OK);
    }
    assert_int_equal(rh_alarm_set(actor, of("more"), START_MS + 1000, 0, of("")), RH_FULL);
    assert_int_equal(rh_alarm_set(actor, of("7"), START_MS + 1000, 0, of("")), RH_OK);
}

static void refuses(struct rh_actor *actor)
{
    static char large[RH_ALARM_PAYLOAD_MAX + 1];

    assert_int_equal(rh_alarm_set(actor, of(""), 1, 0, of("")), RH_INVALID);
    assert_int_equal(rh_alarm_set(actor, of("a"), UINT64_MAX, 0, of("")), RH_INVALID);
    assert_int_equal(rh_alarm_set(actor, of("a"), 1, 99, of("")), RH_INVALID);
    assert_int_equal(rh_alarm_set(actor, of("a"), 1, UINT64_MAX, of("")), RH_INVALID);
    assert_int_equal(rh_alarm_set(actor, of("a"), 1, 0, (struct rh_bytes){large, sizeof large}),
                     RH_TOO_BIG);
    assert_int_equal(rh_alarm_cancel(actor, of("a")), RH_GONE);
    assert_int_equal(rh_alarm_cancel(actor, of("")), RH_INVALID);
    assert_int_equal(rh_alarm_next(actor, of(""), NULL), RH_INVALID);
}

static void message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    char word[64];

    (void)instance;
    (void)snprintf(word, sizeof word, "%.*s", (int)m->payload.size, (const char *)m->payload.data);
    if (strncmp(word, "set ", 4) == 0) {
        sets(actor, word + 4);
    } else if (strncmp(word, "cancel ", 7) == 0) {
        assert_int_equal(rh_alarm_cancel(actor, of(word + 7)), RH_OK);
    } else if (strncmp(word, "undo ", 5) == 0) {
        assert_int_equal(rh_alarm_set(actor, of(word + 5), START_MS, 0, of("")), RH_OK);
        assert_int_equal(rh_state_undo(actor), RH_OK);
    } else if (strcmp(word, "many") == 0) {
        sets_many(actor);
    } else if (strcmp(word, "refuses") == 0) {
        refuses(actor);
    } else {
        lists(actor);
    }
}

static int alarm_rings(struct rh_actor *actor, void *instance, const struct rh_alarm *alarm)
{
    struct sleeper *s = instance;
    const size_t used = strlen(s->rang);

    (void)snprintf(s->rang + used,
                   sizeof s->rang - used,
                   "%.*s=%.*s@%u ",
                   (int)alarm->name.size,
                   (const char *)alarm->name.data,
                   (int)alarm->payload.size,
                   (const char *)alarm->payload.data,
                   (unsigned)(alarm->due_ms - START_MS));
    assert_int_equal(rh_state_put(actor, of("rang"), alarm->name), RH_OK);
    if (strcmp(s->does, "again") == 0) {
        assert_int_equal(rh_alarm_set(actor, alarm->name, alarm->due_ms + 500, 0, of("new")),
                         RH_OK);
    } else if (strcmp(s->does, "undo") == 0) {
        assert_int_equal(rh_alarm_set(actor, alarm->name, alarm->due_ms + 500, 0, of("new")),
                         RH_OK);
        assert_int_equal(rh_state_undo(actor), RH_OK);
    } else if (strcmp(s->does, "cancel") == 0) {
        assert_int_equal(rh_alarm_cancel(actor, alarm->name), RH_OK);
    } else if (strcmp(s->does, "break") == 0) {
        (void)rh_fail(actor, "BROKEN on purpose");
    } else if (strcmp(s->does, "later") == 0) {
        s->token = rh_defer(actor);
        return RH_PENDING;
    }
    return s->result;
}

static const struct rh_actor_ops ops = {
    .abi = RH_ABI,
    .size = sizeof ops,
    .name = "sleeper",
    .activate = activate,
    .message = message,
    .deactivate = deactivate,
    .alarm = alarm_rings,
    .durable = 1,
};

/* ---- the rig */

static void enter_as(struct sleeper *s, const struct rh_actor_ops *as)
{
    const struct runtime_entry entry = {.ops = as, .shared = s, .fence = FENCE, .kind = 3};

    s->t.error = ERR_STOPPED;
    runtime_rig_enter(&s->t, &entry);
    memory_store_do(&s->store);
    runtime_tick(s->t.runtime, s->now_ms * 1000);
}

/* So much later, by both clocks. True: it has wanted a turn since the last time. */
static bool wakes_after(struct sleeper *s, uint64_t ms)
{
    const size_t before = s->pokes;

    s->now_ms += ms;
    runtime_set_wall(s->t.runtime, s->now_ms * 1000, (s->now_ms + s->wall_ms) * 1000);
    runtime_tick(s->t.runtime, s->now_ms * 1000);
    s->pokes = s->t.told[VERB_POKE];
    return s->pokes > before;
}

static void open_sleeper(struct sleeper *s)
{
    const struct runtime_config config = {.on_completion = runtime_rig_on_completion,
                                          .context = &s->t,
                                          .numbering = &runtime_rig_numbering,
                                          .alarm_counts = &s->counts,
                                          .figures = &s->figures,
                                          .on_store = memory_store_put,
                                          .store = &s->store};

    log_set_level(LOG_ERROR);
    *s = (struct sleeper){.wall_ms = START_MS};
    memory_store_open(&s->store);
    s->t.runtime = runtime_new(&config);
    (void)wakes_after(s, 0);
    enter_as(s, &ops);
    assert_int_equal(s->t.error, ERR_OK);
}

static void close_sleeper(struct sleeper *s)
{
    runtime_rig_close(&s->t);
    memory_store_close(&s->store);
}

static void saves(struct sleeper *s)
{
    memory_store_do(&s->store);
    runtime_tick(s->t.runtime, s->now_ms * 1000);
}

static void asks(struct sleeper *s, const char *text)
{
    (void)runtime_rig_call(&s->t, text);
    if (memory_store_waiting(&s->store) > 0) {
        saves(s);
    }
}

/* Its turn, with all that it saves. */
static void turns(struct sleeper *s)
{
    const size_t before = s->t.told[VERB_TURN];

    runtime_turn(s->t.actor, 9);
    while (memory_store_waiting(&s->store) > 0) {
        saves(s);
    }
    assert_int_equal(s->t.told[VERB_TURN], before + 1);
}

/* As after a crash: only the store knows. */
static void comes_back(struct sleeper *s)
{
    runtime_discard(s->t.actor, RH_FENCED);
    enter_as(s, &ops);
}

/* ---- the tests */

static void it_is_set_by_the_commit_of_its_callback(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    (void)runtime_rig_call(&s.t, "set tax 1000 0");
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "");
    memory_store_do(&s.store); // one commit, with the value
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "1000001000 0 !");
    assert_string_equal(memory_store_text(&s.store, "k"), "tax");
    runtime_tick(s.t.runtime, 0);
    asks(&s, "cancel tax");
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "");
    asks(&s, "undo tax");
    assert_string_equal(runtime_rig_call(&s.t, "list"), "");
    assert_int_equal(s.store.number, 2);
    assert_int_equal(atomic_load(&s.counts.set), 2);
    assert_int_equal(atomic_load(&s.counts.cancelled), 1);
    close_sleeper(&s);
}

static void it_goes_off_at_its_time_and_not_before(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 950 0");
    assert_false(wakes_after(&s, 949));
    assert_int_equal(atomic_load(&s.figures.of[FIGURE_ALARMS]), 1);
    assert_int_equal(atomic_load(&s.figures.of[FIGURE_DUE]), 0);
    assert_true(wakes_after(&s, 100));
    assert_int_equal(atomic_load(&s.figures.of[FIGURE_DUE]), 1);
    runtime_turn(s.t.actor, 9);
    assert_int_equal(atomic_load(&s.figures.of[FIGURE_ALARMS]), 0);
    assert_int_equal(atomic_load(&s.figures.of[FIGURE_DUE]), 0);
    assert_string_equal(s.rang, "tax=!@950 ");
    assert_int_equal(s.t.told[VERB_TURN], 0); // it is not saved yet
    saves(&s);                                // one commit: what it changed, and that it is gone
    assert_int_equal(s.t.told[VERB_TURN], 1);
    assert_string_equal(memory_store_text(&s.store, "rang"), "tax");
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "");
    assert_int_equal(s.store.number, 2);
    assert_false(wakes_after(&s, 100000));
    assert_int_equal(atomic_load(&s.counts.fired), 1);
    assert_int_equal(atomic_load(&s.counts.late), 0);
    close_sleeper(&s);
}

static void several_go_off_in_the_order_of_their_times(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set a 900 0");
    asks(&s, "set b 300 0");
    asks(&s, "set c 600 0");
    asks(&s, "set d 2000 0");
    assert_true(wakes_after(&s, 1000));
    turns(&s);
    assert_true(wakes_after(&s, 0));
    turns(&s);
    assert_true(wakes_after(&s, 0));
    turns(&s);
    assert_string_equal(s.rang, "b=!@300 c=!@600 a=!@900 ");
    assert_false(wakes_after(&s, 999));
    assert_true(wakes_after(&s, 1));
    turns(&s);
    assert_int_equal(atomic_load(&s.counts.late), 0);
    close_sleeper(&s);
}

static void a_periodic_one_goes_off_again_and_what_was_missed_once(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tick 500 200");
    assert_true(wakes_after(&s, 500));
    turns(&s);
    assert_string_equal(memory_store_alarm(&s.store, "tick"), "1000000700 200 !");
    assert_false(wakes_after(&s, 199));
    assert_true(wakes_after(&s, 5001)); // 5700: it has missed a lot
    turns(&s);
    assert_string_equal(s.rang, "tick=!@500 tick=!@700 ");
    assert_string_equal(memory_store_alarm(&s.store, "tick"), "1000005900 200 !");
    assert_int_equal(atomic_load(&s.counts.late), 1);
    close_sleeper(&s);
}

static void it_comes_with_the_actor(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    comes_back(&s);
    assert_string_equal(runtime_rig_call(&s.t, "list"), "tax@500/0 ");
    assert_true(wakes_after(&s, 500));
    runtime_discard(s.t.actor, RH_FENCED); // before its turn
    const size_t before = s.t.told[VERB_POKE];
    enter_as(&s, &ops);
    assert_int_equal(s.t.told[VERB_POKE], before + 1); // it was late already
    turns(&s);
    assert_string_equal(s.rang, "tax=!@500 ");
    close_sleeper(&s);
}

static void one_that_is_not_saved_goes_off_again(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    assert_true(wakes_after(&s, 500));
    runtime_turn(s.t.actor, 9);
    memory_store_refuse(&s.store, STORE_UNAVAILABLE);
    runtime_tick(s.t.runtime, s.now_ms * 1000);
    assert_int_equal(s.t.told[VERB_FAIL], 1);
    comes_back(&s);
    turns(&s);
    assert_string_equal(s.rang, "tax=!@500 tax=!@500 ");
    close_sleeper(&s);
}

static void one_whose_callback_fails_goes_off_after_a_back_off(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    asks(&s, "set other 600 0");
    s.result = RH_FAILED;
    assert_true(wakes_after(&s, 500));
    turns(&s);
    assert_string_equal(memory_store_text(&s.store, "rang"), "");
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "1000000500 0 !");
    s.result = RH_OK;
    assert_true(wakes_after(&s, 100)); // the other one waits for nothing
    turns(&s);
    assert_true(wakes_after(&s, 0));
    turns(&s);
    assert_string_equal(s.rang, "tax=!@500 other=!@600 tax=!@500 ");
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "");
    assert_int_equal(atomic_load(&s.counts.failed), 1);
    close_sleeper(&s);
}

static void the_back_off_doubles_up_to_half_a_minute(void **state)
{
    struct sleeper s;
    uint64_t ms = 100;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    s.result = RH_FAILED;
    assert_true(wakes_after(&s, 500));
    for (size_t i = 0; i < 12; i++) {
        s.rang[0] = '\0';
        turns(&s);
        assert_false(wakes_after(&s, ms - 1));
        assert_true(wakes_after(&s, 1));
        ms = ms * 2 < 30000 ? ms * 2 : 30000;
    }
    comes_back(&s); // and is late
    s.result = RH_OK;
    turns(&s);
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "");
    close_sleeper(&s);
}

static void one_that_breaks_its_actor_stays(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    (void)strcpy(s.does, "break");
    assert_true(wakes_after(&s, 500));
    turns(&s);
    assert_int_equal(s.t.told[VERB_FAIL], 1);
    assert_int_equal(s.store.number, 1);
    s.does[0] = '\0';
    comes_back(&s);
    turns(&s);
    assert_string_equal(s.rang, "tax=!@500 tax=!@500 ");
    close_sleeper(&s);
}

static void its_callback_may_set_it_anew(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    (void)strcpy(s.does, "again");
    assert_true(wakes_after(&s, 500));
    turns(&s);
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "1000001000 0 new");
    (void)strcpy(s.does, "undo"); // then it has fired, and that is all
    assert_true(wakes_after(&s, 500));
    turns(&s);
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "");
    asks(&s, "set tick 1500 200");
    (void)strcpy(s.does, "cancel");
    assert_true(wakes_after(&s, 500));
    turns(&s);
    assert_string_equal(memory_store_alarm(&s.store, "tick"), "");
    assert_false(wakes_after(&s, 10000));
    close_sleeper(&s);
}

static void one_that_finishes_later_is_gone_then(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    (void)strcpy(s.does, "later");
    assert_true(wakes_after(&s, 500));
    runtime_turn(s.t.actor, 9);
    saves(&s);
    assert_string_equal(memory_store_text(&s.store, "rang"), "tax");
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "1000000500 0 !");
    assert_int_equal(rh_done(s.token, RH_FAILED), RH_OK);
    runtime_tick(s.t.runtime, s.now_ms * 1000);
    assert_int_equal(s.t.told[VERB_TURN], 1);
    assert_true(wakes_after(&s, 100));
    runtime_turn(s.t.actor, 9);
    saves(&s);
    assert_int_equal(rh_done(s.token, RH_OK), RH_OK);
    runtime_tick(s.t.runtime, s.now_ms * 1000);
    assert_int_equal(s.t.told[VERB_TURN], 1);
    saves(&s);
    assert_int_equal(s.t.told[VERB_TURN], 2);
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "");
    close_sleeper(&s);
}

static void a_store_that_fails_ends_one_that_is_deferred(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    (void)strcpy(s.does, "later");
    assert_true(wakes_after(&s, 500));
    runtime_turn(s.t.actor, 9);
    memory_store_refuse(&s.store, STORE_UNAVAILABLE);
    runtime_tick(s.t.runtime, s.now_ms * 1000);
    assert_int_equal(s.t.told[VERB_FAIL], 1);
    assert_int_equal(s.t.told[VERB_TURN], 1);
    assert_int_equal(rh_done(s.token, RH_OK), RH_GONE);
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "1000000500 0 !");
    close_sleeper(&s);
}

static void a_clock_that_is_set_moves_it(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 60000 0");
    s.wall_ms += 59000; // forward
    assert_false(wakes_after(&s, 900));
    s.wall_ms -= 3600000; // back
    assert_false(wakes_after(&s, 1000));
    s.wall_ms += 3600000 + 86400000; // by more than a day: it is late at once
    assert_true(wakes_after(&s, 0));
    s.wall_ms -= 86400000; // back before its turn
    (void)wakes_after(&s, 0);
    turns(&s);
    assert_string_equal(s.rang, "tax=!@60000 ");
    close_sleeper(&s);
}

static void a_clock_that_goes_back_at_its_time_makes_it_wait(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    s.wall_ms -= 40; // too little to be seen as a jump
    assert_false(wakes_after(&s, 500));
    assert_true(wakes_after(&s, 140));
    turns(&s);
    close_sleeper(&s);
}

static void one_that_was_cancelled_meanwhile_does_not_go_off(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    assert_true(wakes_after(&s, 500));
    asks(&s, "cancel tax");
    turns(&s);
    assert_string_equal(s.rang, "");
    assert_false(wakes_after(&s, 10000));
    close_sleeper(&s);
}

static void one_that_moves_takes_its_alarm_along(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    runtime_export(s.t.actor);
    assert_false(wakes_after(&s, 600)); // frozen
    runtime_unfreeze(s.t.actor);
    assert_int_equal(s.t.told[VERB_POKE], 1);
    runtime_export(s.t.actor);
    runtime_discard(s.t.actor, RH_MOVED);
    enter_as(&s, &ops);
    turns(&s);
    assert_string_equal(s.rang, "tax=!@500 ");
    close_sleeper(&s);
}

static void many_in_one_callback_have_an_end(void **state)
{
    struct sleeper s;

    (void)state;
    open_sleeper(&s);
    asks(&s, "many");
    assert_int_equal(s.store.table[CHANGE_ALARM].there, 1);
    asks(&s, "refuses");
    assert_string_equal(runtime_rig_call(&s.t, "list"), "7@1000/0 ");
    close_sleeper(&s);
}

/* The kind has no callback for them any more: they rest. */
static void a_kind_without_alarms_leaves_them(void **state)
{
    struct rh_actor_ops without = ops;
    struct rh_alarm alarm;
    struct sleeper s;

    (void)state;
    without.alarm = NULL;
    open_sleeper(&s);
    asks(&s, "set tax 500 0");
    runtime_discard(s.t.actor, RH_STOP);
    enter_as(&s, &without);
    assert_false(wakes_after(&s, 10000));
    assert_string_equal(memory_store_alarm(&s.store, "tax"), "1000000500 0 !");
    assert_int_equal(rh_alarm_set(s.t.actor, of("a"), 1, 0, of("")), RH_INVALID);
    assert_int_equal(rh_alarm_set(NULL, of("a"), 1, 0, of("")), RH_INVALID);
    assert_int_equal(rh_alarm_cancel(NULL, of("a")), RH_INVALID);
    assert_int_equal(rh_alarm_next(NULL, of(""), &alarm), RH_INVALID);
    close_sleeper(&s);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_set_by_the_commit_of_its_callback),
        cmocka_unit_test(it_goes_off_at_its_time_and_not_before),
        cmocka_unit_test(several_go_off_in_the_order_of_their_times),
        cmocka_unit_test(a_periodic_one_goes_off_again_and_what_was_missed_once),
        cmocka_unit_test(it_comes_with_the_actor),
        cmocka_unit_test(one_that_is_not_saved_goes_off_again),
        cmocka_unit_test(one_whose_callback_fails_goes_off_after_a_back_off),
        cmocka_unit_test(the_back_off_doubles_up_to_half_a_minute),
        cmocka_unit_test(one_that_breaks_its_actor_stays),
        cmocka_unit_test(its_callback_may_set_it_anew),
        cmocka_unit_test(one_that_finishes_later_is_gone_then),
        cmocka_unit_test(a_store_that_fails_ends_one_that_is_deferred),
        cmocka_unit_test(a_clock_that_is_set_moves_it),
        cmocka_unit_test(a_clock_that_goes_back_at_its_time_makes_it_wait),
        cmocka_unit_test(one_that_was_cancelled_meanwhile_does_not_go_off),
        cmocka_unit_test(one_that_moves_takes_its_alarm_along),
        cmocka_unit_test(many_in_one_callback_have_an_end),
        cmocka_unit_test(a_kind_without_alarms_leaves_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_ALARMLOST, M_ALARMEARLY, M_ALARMAPART};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
