/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers with actors that are slow, stuck, or answered from elsewhere; and what
 * a worker may begin when the lease is about to end. No sleeping for an event: who
 * waits, waits for what the worker tells.
 *
 *     node_threads_test --mutants     each bug planted in the workers must fail it
 */
#include "tests/planted.h"
#include "tests/test.h"

#include "base/clock.h"
#include "node/calls/call.h"
#include "node/worker/worker_uv.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ACTORS = 64, PATIENCE_S = 20, BODY = 16 };

/* ---- actors */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool released;  /* those that block may go on */
static size_t blocked; /* so many do */
static size_t news;    /* on_completed() so often */
static struct rh_token deferred[ACTORS];
static size_t deferred_count;
static atomic_size_t began;
static pthread_t ran_on; /* the last message did */

static void wait_for(const bool *flag)
{
    while (!*flag) {
        (void)pthread_cond_wait(&changed, &lock);
    }
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = NULL;
    return RH_OK;
}

static void on_alarm(struct rh_actor *actor, void *instance, void *argument)
{
    (void)instance;
    (void)argument;
    assert_int_equal(rh_reply(actor, rh_nil()), RH_OK);
}

static void on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                      void *argument)
{
    (void)instance;
    (void)argument;
    assert_int_equal(answer->status, RH_OK);
    assert_int_equal(rh_reply(actor, rh_nil()), RH_OK);
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    const char what = *(const char *)message->payload.data;

    (void)instance;
    atomic_fetch_add(&began, 1);
    (void)pthread_mutex_lock(&lock);
    ran_on = pthread_self();
    if (what == 'b') {
        blocked++;
        (void)pthread_cond_broadcast(&changed);
        wait_for(&released);
    } else if (what == 'd') {
        deferred[deferred_count++ % ACTORS] = rh_defer(actor);
        (void)pthread_cond_broadcast(&changed);
    } else if (what == 'a') {
        (void)rh_defer(actor);
        (void)rh_after(actor, 1, on_alarm, NULL);
    } else if (what == 'c') {
        (void)rh_defer(actor);
        (void)rh_call(
            actor, 0, (struct rh_bytes){"x", 1}, (struct rh_bytes){0}, 1000, 0, on_answer, NULL);
    }
    (void)pthread_mutex_unlock(&lock);
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

static const struct kind kind = {.ops = {.abi = RH_ABI,
                                         .size = sizeof(struct rh_actor_ops),
                                         .name = "slow",
                                         .activate = on_activate,
                                         .message = on_message,
                                         .deactivate = on_deactivate}};

/* ---- workers */

static struct limits limits;
static struct numbering numbering;
static struct watchdog *watchdog;
static struct worker *worker[2];
static size_t worker_count;
static struct rh_actor *activations[ACTORS];
static size_t ran;
static size_t returned;
static size_t over; /* ran or returned */
static size_t discarded;
static uint64_t last_ticket;
static bool brief; /* so is what is submitted */
static struct crash_record_slot crash_record[CRASH_RECORD_SLOTS];

static size_t taken;         /* calls that were taken */
static size_t called;        /* calls that were heard at once, … */
static uint64_t call_number; /* … of them the last */

static void on_call(void *context, const struct completion *c)
{
    (void)context;
    assert_int_equal(c->verb, VERB_CALL);
    call_number = c->call->number;
    called++;
}

static void on_completed(void *context)
{
    (void)context;
    (void)pthread_mutex_lock(&lock);
    news++;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

static void open_workers(size_t count, bool embedded)
{
    atomic_store(&limits.start_us, UINT64_MAX);
    atomic_store(&limits.gate_us, UINT64_MAX);
    atomic_store(&limits.hard_end_us, UINT64_MAX);
    released = false;
    brief = false;
    called = taken = 0;
    blocked = news = deferred_count = ran = returned = over = discarded = 0;
    atomic_store(&began, 0);
    watchdog = watchdog_new(RH_OVERRUN_GATE, count);
    assert_non_null(watchdog);
    for (worker_count = 0; worker_count < count; worker_count++) {
        const struct worker_config config = {.index = (uint32_t)worker_count,
                                             .embedded = embedded,
                                             .limits = &limits,
                                             .watchdog = watchdog,
                                             .crash_record = &crash_record[worker_count],
                                             .numbering = &numbering,
                                             .on_completed = on_completed,
                                             .on_call = on_call};

        worker[worker_count] = worker_new(&config);
        assert_non_null(worker[worker_count]);
    }
}

static void submit(struct rh_actor *r, enum verb verb, uint64_t ticket, const char *bytes)
{
    const struct submission what = {.verb = (uint8_t)verb,
                                    .activation = r,
                                    .ops = &kind.ops,
                                    .ticket = ticket,
                                    .why = DISCARD_STOP,
                                    .brief = brief};

    worker_submit(activation_owner(r), &what, bytes_of(bytes, strlen(bytes)));
}

static struct rh_actor *enter(size_t index, size_t on)
{
    const uint8_t id = (uint8_t)index;
    struct rh_actor *r =
        activation_new(worker_runtime(worker[on]), 0, bytes_of(&id, 1), worker[on]);

    activations[index] = r;
    submit(r, VERB_ACTIVATE, 0, "");
    return r;
}

static void send_all(void)
{
    for (size_t i = 0; i < worker_count; i++) {
        worker_send(worker[i]);
    }
}

static void take_all(void)
{
    const struct completion *c = NULL;

    for (size_t i = 0; i < worker_count; i++) {
        while ((c = worker_take(worker[i])) != NULL) {
            if (c->returned) {
                assert_int_equal(c->bytes.size, c->verb == VERB_RUN ? 1 : 0);
                returned++;
                over++;
            } else if (c->verb == VERB_DISCARD) {
                discarded++;
            } else if (c->verb == VERB_CALL) {
                call_number = c->call->number;
                taken++;
            } else if (c->verb == VERB_RUN || c->verb == VERB_TURN) {
                last_ticket = c->ticket;
                ran++;
                over++;
            }
        }
    }
}

/* Until *count is at least so much; it is counted by take_all(). */
static void until(const size_t *count, size_t least)
{
    for (;;) {
        struct timespec at;

        (void)pthread_mutex_lock(&lock);
        const size_t seen = news;
        (void)pthread_mutex_unlock(&lock);
        take_all();
        (void)pthread_mutex_lock(&lock);
        if (*count >= least) {
            (void)pthread_mutex_unlock(&lock);
            return;
        }
        (void)clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec += PATIENCE_S;
        while (news == seen && *count < least) {
            assert_int_equal(pthread_cond_timedwait(&changed, &lock, &at), 0);
        }
        (void)pthread_mutex_unlock(&lock);
    }
}

static void release(void)
{
    (void)pthread_mutex_lock(&lock);
    released = true;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

static void close_workers(void)
{
    for (size_t i = 0; i < worker_count; i++) {
        worker_stop(worker[i], 0);
    }
    for (size_t i = 0; i < worker_count; i++) {
        assert_true(worker_join(worker[i], clock_boottime_us() + PATIENCE_S * 1000000ull));
        worker_free(worker[i]);
    }
    watchdog_free(watchdog);
}

/* ---- cases */

static void a_slow_actor_delays_its_worker_alone(void **state)
{
    (void)state;
    open_workers(2, false);
    struct rh_actor *slow = enter(0, 0);
    struct rh_actor *behind = enter(1, 0);
    struct rh_actor *other = enter(2, 1);
    submit(slow, VERB_RUN, 1, "b");
    submit(behind, VERB_RUN, 2, "x");
    send_all();
    until(&blocked, 1);
    for (uint64_t i = 0; i < 1000; i++) {
        submit(other, VERB_RUN, 100 + i, "x");
    }
    send_all();
    until(&ran, 1000);
    assert_int_equal(last_ticket, 1099);
    watchdog_hold(watchdog);
    const struct watched_at at = watchdog_at(watchdog, 0);
    assert_ptr_equal(at.actor, slow);
    watchdog_release(watchdog);
    release();
    until(&ran, 1002);
    close_workers();
}

static void what_stands_behind_a_slow_one_is_recalled(void **state)
{
    (void)state;
    open_workers(1, false);
    struct rh_actor *slow = enter(0, 0);
    struct rh_actor *behind = enter(1, 0);
    submit(slow, VERB_RUN, 1, "b");
    submit(behind, VERB_RUN, 2, "x");
    send_all();
    until(&blocked, 1);
    atomic_store(&limits.start_us, 1);
    worker_recall(worker[0], clock_boottime_us());
    until(&returned, 1);
    worker_recall(worker[0], clock_boottime_us());
    take_all();
    assert_int_equal(returned, 1); // Never twice …
    atomic_store(&limits.start_us, UINT64_MAX);
    submit(slow, VERB_RUN, 3, "x");
    send_all();
    release();
    until(&over, 3);
    assert_int_equal(last_ticket, 3);
    assert_int_equal(ran, 2);
    assert_int_equal(atomic_load(&began), 2); // … and never both, although the lease is back.
    close_workers();
}

static void what_comes_too_late_is_returned(void **state)
{
    (void)state;
    open_workers(1, false);
    struct rh_actor *r = enter(0, 0);
    submit(r, VERB_RUN, 1, "x");
    send_all();
    until(&ran, 1);
    atomic_store(&limits.start_us, 1);
    submit(r, VERB_RUN, 2, "x");
    submit(r, VERB_TURN, 3, "");
    send_all();
    until(&over, 3);
    assert_int_equal(returned, 2);
    assert_int_equal(atomic_load(&began), 1);
    submit(r, VERB_DISCARD, 0, ""); // That needs no lease.
    send_all();
    until(&discarded, 1);
    close_workers();
}

static void *answer_all(void *argument)
{
    const size_t first = *(const size_t *)argument;

    for (size_t i = first; i < ACTORS; i += 2) {
        assert_int_equal(rh_reply_later(deferred[i], rh_integer((int64_t)i)), RH_OK);
        assert_int_equal(rh_reply_later(deferred[i], rh_integer(0)), RH_GONE);
    }
    return NULL;
}

static void two_threads_answer_for_two_workers(void **state)
{
    static size_t first[2] = {0, 1};
    pthread_t thread[2];
    static size_t all;

    (void)state;
    open_workers(2, false);
    for (size_t i = 0; i < ACTORS; i++) {
        submit(enter(i, i % 2), VERB_RUN, i, "d");
    }
    send_all();
    all = 0;
    while (all < ACTORS) {
        (void)pthread_mutex_lock(&lock);
        all = deferred_count;
        (void)pthread_mutex_unlock(&lock);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, answer_all, &first[i]), 0);
    }
    until(&ran, ACTORS);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    close_workers();
}

static void a_worker_that_is_stuck_is_left(void **state)
{
    (void)state;
    open_workers(1, false);
    submit(enter(0, 0), VERB_RUN, 1, "b");
    send_all();
    until(&blocked, 1);
    worker_stop(worker[0], 0);
    assert_false(worker_join(worker[0], 0));
    release();
    close_workers();
    assert_int_equal(ran, 0); // Nobody listens any more.
}

static void without_a_thread_the_caller_does_the_work(void **state)
{
    (void)state;
    open_workers(1, true);
    assert_true(worker_fd(worker[0]) >= 0);
    submit(enter(0, 0), VERB_RUN, 1, "x");
    send_all();
    assert_true(worker_poll(worker[0], 1000000));
    take_all();
    assert_int_equal(ran, 1);
    submit(activations[0], VERB_RUN, 2, "d");
    send_all();
    assert_true(worker_poll(worker[0], 1000000));
    assert_int_equal(rh_reply_later(deferred[0], rh_nil()), RH_OK);
    assert_true(worker_poll(worker[0], 1000000));
    take_all();
    assert_int_equal(ran, 2);
    worker_stop(worker[0], 0);
    assert_false(worker_poll(worker[0], 1000000));
    assert_false(worker_poll(worker[0], 1000000));
    close_workers();
}

/* As soon as it sleeps. */
static void run_inline(void)
{
    while (worker_run_inline(worker[0], 1) == 0) {
    }
    take_all();
}

static void what_is_brief_wakes_nobody(void **state)
{
    (void)state;
    open_workers(1, false);
    brief = true;
    struct rh_actor *r = enter(0, 0);
    run_inline();
    for (uint64_t i = 1; i <= 1000; i++) {
        submit(r, VERB_RUN, i, "x");
        run_inline();
        assert_int_equal(ran, i);
        assert_int_equal(last_ticket, i);
        assert_true(pthread_equal(ran_on, pthread_self()));
    }
    assert_int_equal(news, 0);
    close_workers();
}

static void what_is_not_brief_or_too_much_waits_for_the_worker(void **state)
{
    (void)state;
    open_workers(1, false);
    brief = true;
    struct rh_actor *r = enter(0, 0);
    struct rh_actor *other = enter(1, 0);
    assert_int_equal(worker_run_inline(worker[0], 1), 0); // too much
    send_all();
    submit(r, VERB_RUN, 1, "x");
    brief = false;
    submit(other, VERB_RUN, 2, "b");
    assert_int_equal(worker_run_inline(worker[0], 2), 0); // One of the two is not.
    send_all();
    until(&blocked, 1);
    brief = true;
    submit(r, VERB_RUN, 3, "x");
    assert_int_equal(worker_run_inline(worker[0], 1), 0); // It is at work.
    send_all();
    assert_int_equal(worker_run_inline(worker[0], 1), 0); // There is none.
    release();
    until(&ran, 3);
    assert_int_equal(last_ticket, 3);
    assert_false(pthread_equal(ran_on, pthread_self()));
    close_workers();
}

static void what_is_too_late_is_returned_to_an_inline_run(void **state)
{
    (void)state;
    open_workers(1, false);
    brief = true;
    struct rh_actor *r = enter(0, 0);
    run_inline();
    atomic_store(&limits.start_us, 1);
    submit(r, VERB_RUN, 1, "x");
    run_inline();
    assert_int_equal(returned, 1);
    assert_int_equal(atomic_load(&began), 0);
    close_workers();
}

static void *answer_each(void *argument)
{
    const size_t count = *(const size_t *)argument;

    for (size_t i = 0; i < count; i++) {
        (void)pthread_mutex_lock(&lock);
        while (deferred_count <= i) {
            (void)pthread_cond_wait(&changed, &lock);
        }
        const struct rh_token token = deferred[i % ACTORS];
        (void)pthread_mutex_unlock(&lock);
        assert_int_equal(rh_reply_later(token, rh_nil()), RH_OK);
    }
    return NULL;
}

/* A third thread rings before, in and after an inline run; and timers are set in one.
 * The worker hears of all: who waits for what it does not would wait for ever. */
static void no_wake_up_is_lost_between_an_inline_run_and_the_worker(void **state)
{
    enum { ROUNDS = 12000, LATE_EACH = 3, ALARM_EACH = 400 };
    static size_t late = ROUNDS / LATE_EACH;
    pthread_t answerer;

    (void)state;
    open_workers(1, false);
    struct rh_actor *r = enter(0, 0);
    brief = true;
    assert_int_equal(pthread_create(&answerer, NULL, answer_each, &late), 0);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        const char *what = i % LATE_EACH == 0 ? "d" : i % ALARM_EACH == 1 ? "a" : "x";

        submit(r, VERB_RUN, i, what);
        if (worker_run_inline(worker[0], 1) == 0) {
            send_all();
        }
        until(&ran, i + 1);
        assert_int_equal(last_ticket, i);
    }
    assert_int_equal(pthread_join(answerer, NULL), 0);
    close_workers();
}

/* Once the worker sleeps, and all is taken. */
static void enter_inline(void)
{
    while (!worker_enter_inline(worker[0])) {
        (void)sched_yield();
    }
    take_all();
}

static void leave_inline(void)
{
    uint64_t at_us = 0;

    (void)worker_leave_inline(worker[0], &at_us);
    take_all();
}

static void a_call_and_its_answer_wake_nobody(void **state)
{
    (void)state;
    open_workers(1, false);
    struct rh_actor *r = enter(0, 0);
    send_all();
    for (uint64_t i = 1; i <= 100; i++) {
        struct at_once run = {.instance = r,
                              .id = bytes_of("x", 1),
                              .message = {.ticket = i, .body = bytes_of("c", 1)}};

        enter_inline();
        assert_int_equal(worker_run_one(worker[0], &run), HOST_RAN_LATER);
        assert_true(pthread_equal(ran_on, pthread_self()));
        assert_int_equal(called, i);
        const struct call_answer answer = {.number = call_number, .status = RH_OK};
        assert_true(worker_answer_one(worker[0], &answer));
        leave_inline();
        assert_int_equal(ran, i);
        assert_int_equal(last_ticket, i);
    }
    assert_int_equal(taken, 0);
    close_workers();
}

/* What the other side has not taken yet was said before it. */
static void a_call_stands_behind_what_was_said_before_it(void **state)
{
    (void)state;
    open_workers(1, false);
    struct rh_actor *first = enter(0, 0);
    struct rh_actor *second = enter(1, 0);
    struct at_once run = {.instance = first, .id = bytes_of("x", 1)};
    send_all();
    enter_inline();
    run.message = (struct runtime_message){.ticket = 1, .body = bytes_of("d", 1)};
    assert_int_equal(worker_run_one(worker[0], &run), HOST_RAN_LATER);
    assert_int_equal(rh_reply_later(deferred[0], rh_nil()), RH_OK);
    leave_inline();
    until(&ran, 1);
    enter_inline();
    run.message.body = bytes_of("c", 1);
    assert_int_equal(worker_run_one(worker[0], &run), HOST_RAN_LATER);
    const struct call_answer answer = {.number = call_number, .status = RH_OK};
    assert_true(worker_answer_one(worker[0], &answer)); // it completes the run
    run.instance = second;
    assert_int_equal(worker_run_one(worker[0], &run), HOST_RAN_LATER);
    assert_int_equal(called, 1);
    leave_inline();
    assert_int_equal(taken, 1);
    close_workers();
}

static void an_answer_waits_behind_what_is_submitted_and_behind_the_lease(void **state)
{
    (void)state;
    open_workers(1, false);
    struct rh_actor *r = enter(0, 0);
    struct at_once run = {
        .instance = r, .id = bytes_of("x", 1), .message = {.ticket = 1, .body = bytes_of("c", 1)}};
    send_all();
    enter_inline();
    assert_int_equal(worker_run_one(worker[0], &run), HOST_RAN_LATER);
    const struct call_answer answer = {.number = call_number, .status = RH_OK};
    atomic_store(&limits.hard_end_us, clock_boottime_us());
    assert_false(worker_answer_one(worker[0], &answer));
    atomic_store(&limits.hard_end_us, UINT64_MAX);
    (void)enter(1, 0);
    assert_false(worker_answer_one(worker[0], &answer));
    leave_inline();
    assert_int_equal(ran, 0);
    send_all();
    enter_inline();
    assert_true(worker_answer_one(worker[0], &answer));
    leave_inline();
    assert_int_equal(ran, 1);
    close_workers();
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_actor_delays_its_worker_alone),
        cmocka_unit_test(what_stands_behind_a_slow_one_is_recalled),
        cmocka_unit_test(what_comes_too_late_is_returned),
        cmocka_unit_test(two_threads_answer_for_two_workers),
        cmocka_unit_test(a_worker_that_is_stuck_is_left),
        cmocka_unit_test(without_a_thread_the_caller_does_the_work),
        cmocka_unit_test(what_is_brief_wakes_nobody),
        cmocka_unit_test(what_is_not_brief_or_too_much_waits_for_the_worker),
        cmocka_unit_test(what_is_too_late_is_returned_to_an_inline_run),
        cmocka_unit_test(no_wake_up_is_lost_between_an_inline_run_and_the_worker),
        cmocka_unit_test(a_call_and_its_answer_wake_nobody),
        cmocka_unit_test(a_call_stands_behind_what_was_said_before_it),
        cmocka_unit_test(an_answer_waits_behind_what_is_submitted_and_behind_the_lease),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {
#define X(name, text) name,
        MUTANT_THREAD_LIST(X)
#undef X
    };

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
