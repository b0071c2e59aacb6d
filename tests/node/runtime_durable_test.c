/* SPDX-License-Identifier: Apache-2.0
 *
 * Durable actors on a runtime: what leaves when, what a store that is slow, full or lost does to
 * them, what is dropped, and what is answered when it is asked again.
 */
#include "base/log.h"
#include "node/durable/answers.h"
#include "tests/node/memory_store.h"
#include "tests/node/runtime_rig.h"
#include "tests/planted.h"
#include "wire/values_ask.h"

enum { FENCE = 7 };

struct account {
    struct memory_store store;
    struct runtime_rig t;
    struct durable_figures figures;
    struct rh_token token;
    size_t started;
    size_t ended;
    enum rh_why why;
    char found[64]; /* of "k", as activate read it */
    bool putting;   /* activate puts "a" */
    bool later;     /* … and finishes later */
};

static struct rh_bytes of(const char *text)
{
    return (struct rh_bytes){text, strlen(text)};
}

static int activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance)
{
    struct account *a = rh_shared(actor);
    struct rh_bytes value = {0};

    (void)state;
    (void)fence;
    *instance = a;
    a->started++;
    (void)rh_state_get(actor, of("k"), &value);
    (void)snprintf(a->found, sizeof a->found, "%.*s", (int)value.size, (const char *)value.data);
    if (a->putting) {
        assert_int_equal(rh_state_put(actor, of("a"), of("1")), RH_OK);
    }
    if (a->later) {
        a->token = rh_defer(actor);
        return RH_PENDING;
    }
    return RH_OK;
}

static void deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct account *a = instance;

    assert_int_equal(rh_state_put(actor, of("k"), of("late")), RH_INVALID);
    a->ended++;
    a->why = why;
}

static void on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                      void *argument)
{
    (void)instance;
    (void)argument;
    assert_int_equal(rh_state_put(actor, of("answer"), answer->payload), RH_OK);
    (void)rh_reply(actor, rh_text("done"));
}

static void on_told(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                    void *argument)
{
    (void)instance;
    (void)argument;
    (void)rh_reply(actor, rh_bytes_value(answer->payload.data, answer->payload.size));
}

static int session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    (void)instance;
    if (event->type != RH_SESSION_LOST) {
        assert_int_equal(rh_state_put(actor, of("bound"), of("1")), RH_OK);
        assert_int_equal(rh_push(actor, of("welcome")), RH_OK);
    }
    return RH_OK;
}

static void timer(struct rh_actor *actor, void *instance, uint64_t number, void *argument)
{
    (void)instance;
    (void)number;
    (void)argument;
    assert_int_equal(rh_state_put(actor, of("timer"), of("1")), RH_OK);
    (void)rh_send(actor, 3, of("friend"), of("timer"));
}

static void reads(struct rh_actor *actor, const char *key)
{
    struct rh_bytes value = {0};

    if (rh_state_get(actor, of(key), &value) == RH_OK) {
        (void)rh_reply(actor, rh_bytes_value(value.data, value.size));
    }
}

static void lists(struct rh_actor *actor)
{
    struct rh_bytes key = {0};
    struct rh_bytes value = {0};
    char all[64] = "";
    size_t used = 0;

    while (rh_state_next(actor, key, &key, &value) == RH_OK) {
        used += (size_t)snprintf(all + used,
                                 sizeof all - used,
                                 "%.*s=%.*s ",
                                 (int)key.size,
                                 (const char *)key.data,
                                 (int)value.size,
                                 (const char *)value.data);
    }
    (void)rh_reply(actor, rh_bytes_value(all, used));
}

/* All but `get` and `list` put "k" first, but `send`. */
static void message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    struct account *a = instance;
    char word[64];

    (void)snprintf(word, sizeof word, "%.*s", (int)m->payload.size, (const char *)m->payload.data);
    if (strncmp(word, "get ", 4) == 0) {
        reads(actor, word + 4);
        return;
    }
    if (strcmp(word, "list") == 0) {
        lists(actor);
        return;
    }
    if (strcmp(word, "send") == 0) {
        assert_int_equal(rh_send(actor, 3, of("friend"), of("hello")), RH_OK);
        (void)rh_reply(actor, rh_text("sent"));
    }
    assert_int_equal(rh_state_put(actor, of("k"), m->payload), RH_OK);
    if (strcmp(word, "answer and fail") == 0) {
        (void)rh_reply(actor, rh_text("it is done"));
        (void)rh_fail(actor, "BROKEN after all");
    } else if (strcmp(word, "fail") == 0) {
        assert_int_equal(rh_send(actor, 3, of("friend"), of("never")), RH_OK);
        (void)rh_fail(actor, "BROKEN on purpose");
    } else if (strcmp(word, "undo") == 0) {
        assert_int_equal(rh_state_undo(actor), RH_OK);
        (void)rh_reply(actor, rh_error("ERR not enough"));
    } else if (strcmp(word, "delete") == 0) {
        assert_int_equal(rh_state_delete(actor, of("k")), RH_OK);
        assert_int_equal(rh_state_delete(actor, of("k")), RH_GONE);
    } else if (strcmp(word, "later") == 0) {
        a->token = rh_defer(actor);
    } else if (strcmp(word, "call") == 0) {
        (void)rh_defer(actor);
        assert_int_equal(rh_call(actor, 3, of("friend"), of("give"), 1000, 0, on_answer, NULL),
                         RH_OK);
    } else if (strcmp(word, "ask") == 0) {
        assert_int_equal(rh_state_undo(actor), RH_OK);
        (void)rh_defer(actor);
        assert_int_equal(rh_call(actor, 3, of("friend"), of("give"), 1000, 0, on_told, NULL),
                         RH_OK);
    } else if (strcmp(word, "tell") == 0) {
        assert_int_equal(rh_state_undo(actor), RH_OK);
        assert_int_equal(rh_send(actor, 3, of("friend"), of("hello")), RH_OK);
    } else if (strcmp(word, "timer") == 0) {
        assert_true(rh_timer_start(actor, 1, 0, NULL) > 0);
    }
}

static const struct rh_actor_ops ops = {
    .abi = RH_ABI,
    .size = sizeof ops,
    .name = "account",
    .activate = activate,
    .message = message,
    .timer = timer,
    .session = session,
    .deactivate = deactivate,
    .durable = 1,
};

static void enter(struct account *a, uint64_t fence)
{
    const struct runtime_entry entry = {.ops = &ops, .shared = a, .fence = fence, .kind = 3};

    a->t.error = ERR_STOPPED;
    runtime_rig_enter(&a->t, &entry);
}

static void tick(struct account *a)
{
    runtime_tick(a->t.runtime, 0);
}

static void saves(struct account *a)
{
    memory_store_do(&a->store);
    tick(a);
}

static void refuses(struct account *a, enum store_result result)
{
    memory_store_refuse(&a->store, result);
    tick(a);
}

/* It is not there yet. */
static void build(struct account *a)
{
    const struct runtime_config config = {.on_completion = runtime_rig_on_completion,
                                          .context = &a->t,
                                          .numbering = &runtime_rig_numbering,
                                          .figures = &a->figures,
                                          .on_store = memory_store_put,
                                          .store = &a->store};

    log_set_level(LOG_ERROR);
    *a = (struct account){0};
    memory_store_open(&a->store);
    a->t.runtime = runtime_new(&config);
}

static void open_account(struct account *a)
{
    build(a);
    enter(a, FENCE);
    saves(a);
    assert_int_equal(a->t.error, ERR_OK);
    assert_int_equal(a->started, 1);
}

static void close_account(struct account *a)
{
    runtime_rig_close(&a->t);
    memory_store_close(&a->store);
}

/* A request with a name; what it was answered at once, or "". */
static const char *ask(struct account *a, const char *payload, uint64_t number, enum asked asked)
{
    const struct runtime_message message = {.ticket = 1,
                                            .body = bytes_of(payload, strlen(payload)),
                                            .asked = (uint8_t)asked,
                                            .name = {77, number}};

    a->t.text[0] = '\0';
    runtime_run(a->t.actor, &message);
    return a->t.text;
}

/* Its node dies, and the next owner has it. */
static void comes_again(struct account *a)
{
    runtime_discard(a->t.actor, RH_FENCED);
    enter(a, FENCE + 2);
    saves(a);
    assert_int_equal(a->t.error, ERR_OK);
}

static void the_values_are_loaded_before_it_starts(void **state)
{
    struct account a;

    (void)state;
    build(&a);
    assert_int_equal(
        named_values_put(&a.store.table[CHANGE_VALUE], bytes_of("k", 1), bytes_of("old", 3)),
        NAMED_PUT_DONE);
    enter(&a, FENCE);
    assert_int_equal(a.started, 0);
    assert_int_equal(a.t.told[VERB_ACTIVATE], 0);
    saves(&a);
    assert_int_equal(a.t.told[VERB_ACTIVATE], 1);
    assert_int_equal(a.t.error, ERR_OK);
    assert_string_equal(a.found, "old");
    assert_string_equal(runtime_rig_call(&a.t, "get k"), "old");
    assert_int_equal(a.store.count, 1); // reading asks for nothing
    close_account(&a);
}

static void an_answer_leaves_when_it_is_saved(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    assert_string_equal(runtime_rig_call(&a.t, "one"), "");
    assert_int_equal(a.t.told[VERB_RUN], 0);
    memory_store_do(&a.store);
    assert_int_equal(a.t.told[VERB_RUN], 0);
    assert_string_equal(memory_store_text(&a.store, "k"), "one");
    tick(&a);
    assert_int_equal(a.t.told[VERB_RUN], 1);
    assert_int_equal(a.t.code, ANSWER_OK);
    assert_int_equal(a.store.number, 1);
    close_account(&a);
}

static void what_it_sends_leaves_before_its_answer_and_when_it_is_saved(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "send"); // it sends and answers, and then puts
    assert_int_equal(a.t.told[VERB_CALL], 0);
    assert_int_equal(a.t.told[VERB_RUN], 0);
    saves(&a);
    assert_int_equal(a.t.told[VERB_CALL], 1);
    assert_string_equal((const char *)a.t.text, "sent");
    buffer_put(&a.t.called, "", 1);
    assert_string_equal((const char *)a.t.called.data, "3 friend hello");
    close_account(&a);
}

static void who_fails_changes_nothing(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "one");
    saves(&a);
    assert_string_equal(runtime_rig_call(&a.t, "fail"), "BROKEN on purpose");
    assert_int_equal(a.t.told[VERB_FAIL], 1);
    assert_int_equal(a.t.told[VERB_CALL], 0);
    assert_int_equal(memory_store_waiting(&a.store), 0);
    runtime_discard(a.t.actor, RH_BROKEN);
    enter(&a, FENCE);
    saves(&a);
    assert_string_equal(runtime_rig_call(&a.t, "get k"), "one");
    close_account(&a);
}

static void who_fails_after_its_answer_has_not_given_it(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "answer and fail");
    assert_int_equal(a.t.told[VERB_FAIL], 1);
    assert_int_equal(a.t.told[VERB_RUN], 1);
    assert_int_equal(a.t.code, ANSWER_APP_ERROR);
    assert_memory_equal(a.t.text, "STORE_UNAVAILABLE ", 18);
    assert_int_equal(memory_store_waiting(&a.store), 0);
    close_account(&a);
}

static void an_error_keeps_what_is_not_undone(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    assert_string_equal(runtime_rig_call(&a.t, "undo"), "ERR not enough");
    assert_int_equal(a.t.code, ANSWER_APP_ERROR);
    assert_int_equal(memory_store_waiting(&a.store), 0);
    assert_string_equal(runtime_rig_call(&a.t, "list"), "");
    close_account(&a);
}

static void a_value_may_go_again(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "one");
    saves(&a);
    (void)runtime_rig_call(&a.t, "delete");
    saves(&a);
    assert_int_equal(a.store.table[CHANGE_VALUE].there, 0);
    assert_string_equal(runtime_rig_call(&a.t, "list"), "");
    close_account(&a);
}

/* The store says so before the actor could answer. */
static void who_is_deposed_has_changed_nothing(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    a.store.fence = FENCE + 2; // the new owner was there
    (void)runtime_rig_call(&a.t, "send");
    saves(&a);
    assert_int_equal(a.t.told[VERB_FAIL], 1);
    assert_int_equal(a.t.told[VERB_CALL], 0);
    assert_int_equal(a.t.code, ANSWER_APP_ERROR);
    assert_memory_equal(a.t.text, "STORE_FENCED ", 13);
    assert_string_equal(memory_store_text(&a.store, "k"), "");
    assert_true(activation_has_ended(a.t.actor));
    runtime_discard(a.t.actor, RH_BROKEN);
    enter(&a, FENCE);
    saves(&a);
    assert_int_equal(a.t.error, ERR_REFUSED); // as long as it has that fence
    assert_null(a.t.actor);
    assert_int_equal(a.started, 1);
    close_account(&a);
}

static void a_store_that_fails_ends_the_actor(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "one");
    refuses(&a, STORE_UNAVAILABLE);
    assert_int_equal(a.t.told[VERB_FAIL], 1);
    assert_int_equal(a.t.code, ANSWER_APP_ERROR);
    assert_memory_equal(a.t.text, "STORE_UNAVAILABLE ", 18);
    runtime_discard(a.t.actor, RH_BROKEN);
    enter(&a, FENCE);
    refuses(&a, STORE_UNAVAILABLE);
    assert_int_equal(a.t.error, ERR_REFUSED);
    assert_int_equal(a.started, 1);
    enter(&a, FENCE);
    saves(&a);
    assert_string_equal(runtime_rig_call(&a.t, "list"), "");
    close_account(&a);
}

static void of_what_nobody_knows_it_says_so(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "one");
    refuses(&a, STORE_UNKNOWN);
    assert_int_equal(a.t.told[VERB_FAIL], 1);
    assert_int_equal(a.t.told[VERB_RUN], 1);
    assert_int_equal(a.t.code, ANSWER_LOST);
    close_account(&a);
}

static void a_later_answer_waits_for_the_commit_and_for_who_gives_it(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "later");
    assert_int_equal(a.t.told[VERB_DEFER], 1);
    assert_int_equal(rh_reply_later(a.token, rh_text("there")), RH_OK);
    tick(&a);
    assert_int_equal(a.t.told[VERB_RUN], 0);
    saves(&a);
    assert_string_equal(a.t.text, "there");
    (void)runtime_rig_call(&a.t, "later");
    saves(&a);
    assert_int_equal(a.t.told[VERB_RUN], 1);
    assert_int_equal(rh_reply_later(a.token, rh_text("here")), RH_OK);
    tick(&a);
    assert_string_equal(a.t.text, "here");
    close_account(&a);
}

/* Two commits: what it did before the call, and what it did with the answer. */
static void a_call_leaves_when_what_led_to_it_is_saved(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "call");
    assert_int_equal(a.t.told[VERB_CALL], 0);
    saves(&a);
    assert_int_equal(a.t.told[VERB_CALL], 1);
    const struct call_answer answer = {
        .number = a.t.call.number, .status = RH_OK, .payload = bytes_of("gold", 4)};
    runtime_answer(a.t.runtime, &answer);
    assert_int_equal(a.t.told[VERB_RUN], 0);
    saves(&a);
    assert_string_equal(a.t.text, "done");
    assert_string_equal(memory_store_text(&a.store, "answer"), "gold");
    assert_int_equal(a.store.number, 2);
    close_account(&a);
}

static void a_deferred_message_hears_that_it_is_not_saved(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "later");
    refuses(&a, STORE_UNAVAILABLE);
    assert_int_equal(a.t.told[VERB_FINISH], 1);
    assert_int_equal(a.t.told[VERB_RUN], 1);
    assert_memory_equal(a.t.text, "STORE_UNAVAILABLE ", 18);
    assert_int_equal(rh_reply_later(a.token, rh_nil()), RH_GONE);
    close_account(&a);
}

static void a_timer_is_saved_before_its_turn_ends(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "timer");
    saves(&a);
    runtime_tick(a.t.runtime, 5000);
    assert_int_equal(a.t.told[VERB_POKE], 1);
    runtime_turn(a.t.actor, 9);
    assert_int_equal(a.t.told[VERB_TURN], 0);
    assert_int_equal(a.t.told[VERB_CALL], 0);
    saves(&a);
    assert_int_equal(a.t.told[VERB_TURN], 1);
    assert_int_equal(a.t.told[VERB_CALL], 1);
    assert_string_equal(memory_store_text(&a.store, "timer"), "1");
    close_account(&a);
}

static void what_activate_puts_is_saved_before_it_is_there(void **state)
{
    struct account a;

    (void)state;
    build(&a);
    a.putting = true;
    enter(&a, FENCE);
    saves(&a);
    assert_int_equal(a.started, 1);
    assert_int_equal(a.t.told[VERB_ACTIVATE], 0);
    saves(&a);
    assert_int_equal(a.t.told[VERB_ACTIVATE], 1);
    assert_int_equal(a.t.error, ERR_OK);
    runtime_discard(a.t.actor, RH_STOP);
    a.store.number = 0;
    enter(&a, FENCE);
    saves(&a);
    refuses(&a, STORE_UNAVAILABLE);
    assert_int_equal(a.t.error, ERR_REFUSED);
    assert_null(a.t.actor);
    assert_int_equal(a.ended, 2);
    assert_int_equal(a.why, RH_BROKEN);
    close_account(&a);
}

static void one_that_is_still_starting_may_fail_by_the_store(void **state)
{
    struct account a;

    (void)state;
    build(&a);
    a.putting = a.later = true;
    enter(&a, FENCE);
    saves(&a);
    refuses(&a, STORE_UNAVAILABLE);
    assert_int_equal(a.t.told[VERB_FINISH], 1);
    assert_int_equal(a.t.error, ERR_REFUSED);
    assert_null(a.t.actor);
    assert_int_equal(a.ended, 1); // what it made is freed there
    assert_int_equal(rh_done(a.token, RH_OK), RH_GONE);
    enter(&a, FENCE);
    saves(&a);
    assert_int_equal(rh_done(a.token, RH_OK), RH_OK);
    tick(&a);
    assert_int_equal(a.t.told[VERB_ACTIVATE], 1); // the one that was refused
    saves(&a);
    assert_int_equal(a.t.told[VERB_ACTIVATE], 2);
    assert_int_equal(a.t.error, ERR_OK);
    close_account(&a);
}

static void a_client_is_bound_when_that_is_saved(void **state)
{
    const struct note note = {.type = NOTE_BIND, .gateway = 70, .connection = 5, .round = 1};
    struct account a;

    (void)state;
    open_account(&a);
    runtime_rig_note(&a.t, &note);
    assert_int_equal(a.t.told[VERB_RUN], 0);
    assert_int_equal(a.t.told[VERB_PUSH], 0);
    saves(&a);
    assert_int_equal(a.t.told[VERB_PUSH], 1);
    assert_int_equal(a.t.push.type, PUSH_DATA);
    assert_int_equal(runtime_rig_bound(&a.t).result, BOUND_NEW);
    runtime_discard(a.t.actor, RH_STOP);
    enter(&a, FENCE);
    saves(&a);
    runtime_rig_note(&a.t, &note);
    refuses(&a, STORE_UNAVAILABLE);
    assert_int_equal(a.t.told[VERB_RUN], 2);
    assert_int_equal(a.t.answer.size, 0); // no answer, so it is asked again
    assert_int_equal(a.t.told[VERB_PUSH], 1);
    runtime_discard(a.t.actor, RH_BROKEN);
    assert_int_equal(a.t.push.type, PUSH_AGAIN);
    close_account(&a);
}

static void who_is_stopped_meanwhile_hears_of_nothing(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "one");
    runtime_discard(a.t.actor, RH_FENCED);
    assert_int_equal(a.ended, 1);
    enter(&a, FENCE); // it comes back here: its claim stands behind its commit
    saves(&a);
    saves(&a);
    assert_int_equal(a.t.told[VERB_RUN], 0);
    assert_string_equal(runtime_rig_call(&a.t, "get k"), "one");
    runtime_discard(a.t.actor, RH_STOP);
    enter(&a, FENCE);
    runtime_discard(a.t.actor, RH_FENCED); // it has not begun to live
    assert_int_equal(a.ended, 2);
    saves(&a);
    assert_int_equal(a.started, 2);
    close_account(&a);
}

static void a_store_may_answer_when_nobody_is_there_any_more(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "one");
    runtime_rig_close(&a.t);
    memory_store_do(&a.store);
    assert_string_equal(memory_store_text(&a.store, "k"), "one");
    memory_store_close(&a.store);
}

static void it_moves_by_the_store(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)runtime_rig_call(&a.t, "one");
    saves(&a);
    runtime_export(a.t.actor);
    assert_int_equal(a.t.told[VERB_EXPORT], 1);
    runtime_discard(a.t.actor, RH_MOVED);
    enter(&a, FENCE + 1);
    saves(&a);
    assert_int_equal(a.store.fence, FENCE + 1);
    assert_string_equal(a.found, "one");
    close_account(&a);
}

/* What a request costs beside its answer is told at once where it runs. */
static struct at_once *now_running;

static void what_only_reads_is_answered_at_once(void **state)
{
    struct at_once run = {.room = NULL};
    struct account a;
    const struct runtime_config config = {.on_completion = runtime_rig_on_completion,
                                          .context = &a.t,
                                          .numbering = &runtime_rig_numbering,
                                          .at_once = &now_running,
                                          .on_store = memory_store_put,
                                          .store = &a.store};

    (void)state;
    a = (struct account){0};
    memory_store_open(&a.store);
    a.t.runtime = runtime_new(&config);
    enter(&a, FENCE);
    saves(&a);
    now_running = &run;
    (void)runtime_rig_call(&a.t, "list");
    assert_true(run.done);
    run.done = false;
    now_running = &run;
    (void)runtime_rig_call(&a.t, "one");
    now_running = NULL; // it leaves there
    assert_false(run.done);
    assert_int_equal(a.t.told[VERB_RUN], 0);
    saves(&a);
    assert_int_equal(a.t.told[VERB_RUN], 1);
    close_account(&a);
}

static void what_is_asked_again_is_answered_and_does_not_run(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)ask(&a, "undo and", 4, ASKED_FIRST);
    saves(&a);
    (void)ask(&a, "send", 5, ASKED_FIRST);
    memory_store_do(&a.store); // it is saved, and nobody heard
    const uint64_t kept = atomic_load(&a.figures.of[FIGURE_ANSWERS]);
    assert_true(kept > 0 && atomic_load(&a.figures.of[FIGURE_ANSWER_BYTES]) > 0);
    comes_again(&a);
    assert_int_equal(atomic_load(&a.figures.of[FIGURE_ANSWERS]), kept);
    a.t.told[VERB_CALL] = 0;
    assert_string_equal(ask(&a, "send", 5, ASKED_AGAIN), "sent");
    assert_int_equal(a.t.code, ANSWER_OK);
    assert_int_equal(a.t.told[VERB_CALL], 0);
    assert_int_equal(memory_store_waiting(&a.store), 0);
    assert_string_equal(ask(&a, "send", 5, ASKED_AGAIN), "sent"); // and again
    (void)ask(&a, "new", 6, ASKED_AGAIN);                         // that never ran
    saves(&a);
    assert_string_equal(memory_store_text(&a.store, "k"), "new");
    close_account(&a);
}

static void what_is_asked_late_is_answered_or_lost(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)ask(&a, "one", 5, ASKED_FIRST);
    memory_store_do(&a.store); // it is saved, and nobody heard
    comes_again(&a);
    (void)ask(&a, "two", 7, ASKED_FIRST);
    saves(&a);
    (void)ask(&a, "send", 5, ASKED_LATE);
    assert_int_equal(a.t.code, ANSWER_OK);
    (void)ask(&a, "three", 6, ASKED_LATE); // that never ran, and would run behind 7
    assert_int_equal(a.t.code, ANSWER_LOST);
    assert_int_equal(memory_store_waiting(&a.store), 0);
    assert_string_equal(memory_store_text(&a.store, "k"), "two");
    (void)ask(&a, "four", 8, ASKED_FIRST);
    saves(&a);
    assert_int_equal(a.t.code, ANSWER_OK);
    assert_string_equal(memory_store_text(&a.store, "k"), "four");
    close_account(&a);
}

static void what_changed_nothing_is_not_saved_and_runs_again(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    assert_string_equal(ask(&a, "undo", 5, ASKED_FIRST), "ERR not enough");
    assert_string_equal(ask(&a, "get k", 6, ASKED_FIRST), "");
    assert_int_equal(memory_store_waiting(&a.store), 0);
    assert_string_equal(ask(&a, "undo", 5, ASKED_AGAIN), "ERR not enough");
    assert_int_equal(a.store.table[CHANGE_ANSWER].there, 0);
    close_account(&a);
}

/* It would be told twice. */
static void who_told_others_has_changed_something(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)ask(&a, "tell", 5, ASKED_FIRST);
    assert_int_equal(a.t.told[VERB_CALL], 0);
    saves(&a);
    assert_int_equal(a.t.told[VERB_CALL], 1);
    comes_again(&a);
    (void)ask(&a, "tell", 5, ASKED_AGAIN);
    assert_int_equal(a.t.told[VERB_CALL], 1);
    close_account(&a);
}

static void what_may_run_again_does(void **state)
{
    struct account a;
    const struct runtime_message message = {.ticket = 1,
                                            .flags = REQUEST_IDEMPOTENT,
                                            .body = bytes_of("one", 3),
                                            .asked = ASKED_AGAIN,
                                            .name = {77, 5}};

    (void)state;
    open_account(&a);
    for (unsigned i = 1; i <= 2; i++) {
        runtime_run(a.t.actor, &message);
        saves(&a);
        assert_int_equal(a.store.number, i);
    }
    assert_int_equal(a.store.table[CHANGE_ANSWER].there, 0);
    close_account(&a);
}

static void what_was_amidst_its_work_is_interrupted(void **state)
{
    static const char *const words[] = {"call", "ask"}; // the second changes nothing itself

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct account a;

        open_account(&a);
        (void)ask(&a, words[i], 5, ASKED_FIRST);
        assert_int_equal(a.t.told[VERB_CALL], 0);
        saves(&a);
        assert_int_equal(a.t.told[VERB_CALL], 1);
        comes_again(&a);
        assert_memory_equal(ask(&a, words[i], 5, ASKED_AGAIN), "INTERRUPTED ", 12);
        assert_int_equal(a.t.code, ANSWER_APP_ERROR);
        assert_int_equal(a.t.told[VERB_CALL], 1);
        close_account(&a);
    }
}

/* Also when its end changed nothing more: nobody is to hear that it was interrupted. */
static void what_went_on_after_a_commit_has_its_answer_saved(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)ask(&a, "ask", 5, ASKED_FIRST);
    saves(&a);
    const struct call_answer answer = {
        .number = a.t.call.number, .status = RH_OK, .payload = bytes_of("gold", 4)};
    runtime_answer(a.t.runtime, &answer);
    assert_int_equal(a.t.told[VERB_RUN], 0);
    saves(&a);
    assert_string_equal(a.t.text, "gold");
    (void)ask(&a, "later", 6, ASKED_FIRST);
    saves(&a);
    assert_int_equal(rh_reply_later(a.token, rh_text("there")), RH_OK);
    tick(&a);
    assert_string_equal(a.t.text, "");
    saves(&a);
    assert_string_equal(a.t.text, "there");
    comes_again(&a);
    assert_string_equal(ask(&a, "ask", 5, ASKED_AGAIN), "gold");
    assert_string_equal(ask(&a, "later", 6, ASKED_AGAIN), "there");
    close_account(&a);
}

/* Its answer comes while its first commit is on its way. */
static void an_early_end_is_saved_behind_the_beginning(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)ask(&a, "later", 6, ASKED_FIRST);
    assert_int_equal(rh_reply_later(a.token, rh_text("there")), RH_OK);
    tick(&a);
    saves(&a);
    assert_string_equal(a.t.text, "");
    saves(&a);
    assert_string_equal(a.t.text, "there");
    assert_int_equal(memory_store_waiting(&a.store), 0);
    comes_again(&a);
    assert_string_equal(ask(&a, "later", 6, ASKED_AGAIN), "there");
    close_account(&a);
}

static void of_what_was_forgotten_nobody_knows(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    for (uint64_t i = 1; i <= (uint64_t)ANSWERS_MAX + 1; i++) {
        (void)ask(&a, "one", i, ASKED_FIRST);
        saves(&a);
    }
    comes_again(&a);
    assert_string_equal(ask(&a, "one", 1, ASKED_AGAIN), "");
    assert_int_equal(a.t.code, ANSWER_LOST);
    close_account(&a);
}

/* The next owner has the fence: what the dead one still wanted saved is not, nor its answer. */
static void what_is_deposed_saves_no_answer(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)ask(&a, "one", 5, ASKED_FIRST);
    a.store.fence = FENCE + 2;
    saves(&a);
    assert_memory_equal(a.t.text, "STORE_FENCED ", 13);
    comes_again(&a);
    assert_string_equal(ask(&a, "two", 5, ASKED_AGAIN), ""); // it runs
    saves(&a);
    assert_string_equal(memory_store_text(&a.store, "k"), "two");
    close_account(&a);
}

static void who_failed_saves_no_answer(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    (void)ask(&a, "answer and fail", 5, ASKED_FIRST);
    assert_int_equal(memory_store_waiting(&a.store), 0);
    comes_again(&a);
    (void)ask(&a, "one", 5, ASKED_AGAIN);
    saves(&a);
    assert_string_equal(memory_store_text(&a.store, "k"), "one");
    close_account(&a);
}

static void other_kinds_have_no_values(void **state)
{
    static const struct rh_actor_ops plain = {.abi = RH_ABI,
                                              .size = sizeof plain,
                                              .name = "plain",
                                              .activate = runtime_rig_activate,
                                              .message = message,
                                              .deactivate = runtime_rig_deactivate};
    struct runtime_rig t;
    struct rh_bytes value = {0};

    (void)state;
    runtime_rig_open(&t, &plain, NULL);
    assert_int_equal(rh_state_get(t.actor, of("k"), &value), RH_INVALID);
    assert_int_equal(rh_state_put(t.actor, of("k"), of("v")), RH_INVALID);
    assert_int_equal(rh_state_next(t.actor, of(""), &value, &value), RH_INVALID);
    assert_int_equal(rh_state_delete(t.actor, of("k")), RH_INVALID);
    assert_int_equal(rh_state_undo(NULL), RH_INVALID);
    runtime_rig_close(&t);
}

/* ---- operators ---- */

static void operator_asks(struct account *a, const struct values_ask *ask)
{
    struct buffer question = {0};

    values_ask_put(&question, ask);
    runtime_rig_note(&a->t,
                     &(struct note){.type = NOTE_VALUES, .payload = buffer_bytes(&question)});
    buffer_fini(&question);
}

static void operator_puts(struct account *a, const char *key, const char *value)
{
    struct buffer rows = {0};

    values_row_put(&rows,
                   &(struct values_row){.key = bytes_of(key, strlen(key)),
                                        .value = bytes_of(value, strlen(value))});
    operator_asks(
        a,
        &(struct values_ask){
            .verb = VALUES_CHANGE, .last = true, .batch = 1, .page = buffer_bytes(&rows)});
    buffer_fini(&rows);
}

static enum values_status answered(const struct account *a)
{
    struct values_answer answer;

    assert_int_equal(values_answer_get(buffer_bytes(&a->t.answer), &answer), ERR_OK);
    return (enum values_status)answer.status;
}

static void what_an_operator_changes_is_a_commit_that_the_actor_sees(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    operator_puts(&a, "k", "gift");
    assert_int_equal(a.t.told[VERB_RUN], 0); // not before it is saved
    saves(&a);
    assert_int_equal(a.t.told[VERB_RUN], 1);
    assert_int_equal(answered(&a), VALUES_DONE);
    assert_string_equal(memory_store_text(&a.store, "k"), "gift");
    assert_string_equal(runtime_rig_call(&a.t, "get k"), "gift");
    const size_t commits = a.store.count;
    operator_asks(&a, &(struct values_ask){.verb = VALUES_READ});
    assert_int_equal(answered(&a), VALUES_DONE);
    assert_int_equal(a.store.count, commits); // who reads waits for nothing
    close_account(&a);
}

static void what_an_operator_could_not_save_has_no_answer(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    operator_puts(&a, "k", "gift");
    refuses(&a, STORE_UNAVAILABLE);
    assert_int_equal(a.t.told[VERB_RUN], 1);
    assert_int_equal(a.t.answer.size, 0);
    assert_int_equal(a.t.told[VERB_FAIL], 1); // its memory is ahead of the store
    close_account(&a);
}

static void nonsense_of_an_operator_changes_nothing(void **state)
{
    struct account a;

    (void)state;
    open_account(&a);
    runtime_rig_note(&a.t, &(struct note){.type = NOTE_VALUES, .payload = bytes_of("nonsense", 8)});
    assert_int_equal(answered(&a), VALUES_MALFORMED);
    assert_int_equal(a.store.count, 1); // its claim
    close_account(&a);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_values_are_loaded_before_it_starts),
        cmocka_unit_test(an_answer_leaves_when_it_is_saved),
        cmocka_unit_test(what_it_sends_leaves_before_its_answer_and_when_it_is_saved),
        cmocka_unit_test(who_fails_changes_nothing),
        cmocka_unit_test(who_fails_after_its_answer_has_not_given_it),
        cmocka_unit_test(an_error_keeps_what_is_not_undone),
        cmocka_unit_test(a_value_may_go_again),
        cmocka_unit_test(who_is_deposed_has_changed_nothing),
        cmocka_unit_test(a_store_that_fails_ends_the_actor),
        cmocka_unit_test(of_what_nobody_knows_it_says_so),
        cmocka_unit_test(a_later_answer_waits_for_the_commit_and_for_who_gives_it),
        cmocka_unit_test(a_call_leaves_when_what_led_to_it_is_saved),
        cmocka_unit_test(a_deferred_message_hears_that_it_is_not_saved),
        cmocka_unit_test(a_timer_is_saved_before_its_turn_ends),
        cmocka_unit_test(what_activate_puts_is_saved_before_it_is_there),
        cmocka_unit_test(one_that_is_still_starting_may_fail_by_the_store),
        cmocka_unit_test(a_client_is_bound_when_that_is_saved),
        cmocka_unit_test(who_is_stopped_meanwhile_hears_of_nothing),
        cmocka_unit_test(a_store_may_answer_when_nobody_is_there_any_more),
        cmocka_unit_test(it_moves_by_the_store),
        cmocka_unit_test(what_only_reads_is_answered_at_once),
        cmocka_unit_test(what_is_asked_again_is_answered_and_does_not_run),
        cmocka_unit_test(what_is_asked_late_is_answered_or_lost),
        cmocka_unit_test(what_changed_nothing_is_not_saved_and_runs_again),
        cmocka_unit_test(who_told_others_has_changed_something),
        cmocka_unit_test(what_may_run_again_does),
        cmocka_unit_test(what_was_amidst_its_work_is_interrupted),
        cmocka_unit_test(what_went_on_after_a_commit_has_its_answer_saved),
        cmocka_unit_test(an_early_end_is_saved_behind_the_beginning),
        cmocka_unit_test(of_what_was_forgotten_nobody_knows),
        cmocka_unit_test(what_is_deposed_saves_no_answer),
        cmocka_unit_test(who_failed_saves_no_answer),
        cmocka_unit_test(other_kinds_have_no_values),
        cmocka_unit_test(what_an_operator_changes_is_a_commit_that_the_actor_sees),
        cmocka_unit_test(what_an_operator_could_not_save_has_no_answer),
        cmocka_unit_test(nonsense_of_an_operator_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_ANSWERFIRST, M_NOSAVEDANSWER, M_LATERUNS};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
