/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends that arrive once: a durable actor's outbox and another one's inbox, over commits that are
 * slow, refused or lost, and over take-overs. Both actors are of one runtime's kind; the test
 * carries what one says to the other.
 */
#include "base/log.h"
#include "tests/node/memory_store.h"
#include "tests/node/runtime_rig.h"
#include "tests/planted.h"
#include "wire/session.h"

enum { FENCE = 7, KIND = 3 };

/* A player: it is told "earn", "give NAME" (a send of "take"), "take", "refuse" or "fail". */
struct purse {
    struct memory_store store;
    struct runtime_rig t;
    uint64_t fence;
    uint64_t now_us;
    struct buffer note; /* of the last send that left: as its receiver gets it */
    uint64_t number;    /* of its call */
    struct durable_figures figures;
};

static struct rh_bytes of(const char *text)
{
    return (struct rh_bytes){text, strlen(text)};
}

static long gold_of(struct rh_actor *actor)
{
    struct rh_bytes value = {0};

    return rh_state_get(actor, of("gold"), &value) == RH_OK ? (long)value.size : 0;
}

/* As many bytes as there is gold. */
static void put_gold(struct rh_actor *actor, long gold)
{
    static const char coins[] = "oooooooooooooooooooo";

    assert_int_equal(rh_state_put(actor, of("gold"), (struct rh_bytes){coins, (size_t)gold}),
                     RH_OK);
}

/* What "wait" does then. */
static bool waits_in_vain;

static void waited(struct rh_actor *actor, void *instance, void *argument)
{
    (void)instance;
    (void)argument;
    put_gold(actor, gold_of(actor) + 1);
    (void)rh_reply(actor, waits_in_vain ? rh_error("FULL") : rh_nil());
}

static void message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    char word[32];

    (void)instance;
    (void)snprintf(word, sizeof word, "%.*s", (int)m->payload.size, (const char *)m->payload.data);
    if (strncmp(word, "give ", 5) == 0) {
        put_gold(actor, gold_of(actor) - 1);
        assert_int_equal(rh_send_once(actor, KIND, of(word + 5), of("take")), RH_OK);
    } else if (strcmp(word, "take") == 0) {
        assert_true((m->flags & RH_NO_REPLY) != 0);
        assert_int_equal(m->from_kind, KIND);
        put_gold(actor, gold_of(actor) + 1);
    } else if (strcmp(word, "wait") == 0) {
        (void)rh_defer(actor);
        (void)rh_after(actor, 100, waited, NULL);
    } else if (strcmp(word, "refuse") == 0) {
        put_gold(actor, gold_of(actor) + 1);
        assert_int_equal(rh_send_once(actor, KIND, of("cid"), of("never")), RH_OK);
        (void)rh_reply(actor, rh_error("FULL"));
    } else if (strcmp(word, "fail") == 0) {
        put_gold(actor, gold_of(actor) + 1);
        (void)rh_fail(actor, "BROKEN");
    } else if (strcmp(word, "earn") == 0) {
        put_gold(actor, gold_of(actor) + 1);
    }
}

static const struct rh_actor_ops ops = {.size = sizeof ops,
                                        .activate = runtime_rig_activate,
                                        .message = message,
                                        .deactivate = runtime_rig_deactivate,
                                        .durable = 1};

/* ---- the rig ---- */

static void enter(struct purse *p)
{
    const struct runtime_entry entry = {.ops = &ops, .shared = p, .fence = p->fence, .kind = KIND};

    runtime_rig_enter(&p->t, &entry);
}

static void tick(struct purse *p, uint64_t ms)
{
    p->now_us += ms * 1000;
    runtime_tick(p->t.runtime, p->now_us);
}

/* The store does all that it was asked for, and all that comes of that. */
static void saves(struct purse *p)
{
    while (memory_store_waiting(&p->store) > 0) {
        memory_store_do(&p->store);
        tick(p, 0);
    }
}

static void open_purse(struct purse *p)
{
    const struct runtime_config config = {.on_completion = runtime_rig_on_completion,
                                          .context = &p->t,
                                          .numbering = &runtime_rig_numbering,
                                          .figures = &p->figures,
                                          .on_store = memory_store_put,
                                          .store = &p->store};

    log_set_level(LOG_ERROR);
    *p = (struct purse){.fence = FENCE};
    memory_store_open(&p->store);
    p->t.runtime = runtime_new(&config);
    enter(p);
    saves(p);
    assert_int_equal(p->t.error, ERR_OK);
}

static void close_purse(struct purse *p)
{
    runtime_rig_close(&p->t);
    memory_store_close(&p->store);
    buffer_fini(&p->note);
}

/* Its node is gone; another one has it, with what the store has. */
static void takes_over(struct purse *p)
{
    runtime_discard(p->t.actor, RH_FENCED);
    p->fence++;
    enter(p);
    saves(p);
}

static size_t gold(const struct purse *p)
{
    return strlen(memory_store_text(&p->store, "gold"));
}

/* How many rows of that table there are. */
static size_t rows(const struct purse *p, enum change_of of)
{
    return p->store.table[of].there;
}

/* What left last, as a body with its sender; its call's number is kept. */
static void keep_send(struct purse *p, const char *to)
{
    const struct caller from = {.kind = KIND, .id = bytes_of("id", 2)};
    const size_t head = strlen("3 ") + strlen(to) + 1;
    uint8_t caller[64];
    struct writer w = {.at = caller, .left = sizeof caller};

    assert_memory_equal(p->t.called.data, "3 ", 2);
    assert_memory_equal(p->t.called.data + 2, to, strlen(to));
    assert_true(p->t.call.outgoing);
    caller_put(&w, &from);
    buffer_clear(&p->note);
    buffer_put(&p->note, caller, sizeof caller - w.left);
    buffer_put(&p->note, p->t.called.data + head, p->t.called.size - head);
    p->number = p->t.call.number;
}

/* The receiver gets it. Returns true if it says that it is taken, once all is saved. */
static bool takes(struct purse *p, const struct purse *sender)
{
    const size_t before = p->t.answers;

    runtime_rig_run(&p->t, REQUEST_SESSION | REQUEST_CALL, buffer_bytes(&sender->note));
    saves(p);
    assert_int_equal(p->t.answers, before + 1);
    assert_int_equal(p->t.code, ANSWER_OK);
    return p->t.answer.size == 1 && p->t.answer.data[0] == 1;
}

static void hears(struct purse *p, bool taken)
{
    static const uint8_t yes = 1;
    const struct call_answer answer = {
        .number = p->number, .status = RH_OK, .payload = bytes_of(&yes, taken ? 1 : 0)};

    runtime_answer(p->t.runtime, &answer);
    tick(p, 0);
}

static void is_told(struct purse *p, int status)
{
    const struct call_answer answer = {.number = p->number, .status = status};

    runtime_answer(p->t.runtime, &answer);
    tick(p, 0);
}

static void earns(struct purse *p)
{
    (void)runtime_rig_call(&p->t, "earn");
    saves(p);
}

/* It has one piece of gold, and gives that to bob: its commit is done. */
static void gives(struct purse *p)
{
    earns(p);
    (void)runtime_rig_call(&p->t, "give bob");
    saves(p);
}

/* ---- */

static uint64_t figure(struct purse *p, enum durable_figure of)
{
    return atomic_load(&p->figures.of[of]);
}

static void it_leaves_when_it_is_saved_and_goes_when_it_is_taken(void **state)
{
    struct purse ann;
    struct purse bob;

    (void)state;
    open_purse(&ann);
    open_purse(&bob);
    earns(&ann);
    (void)runtime_rig_call(&ann.t, "give bob");
    assert_int_equal(ann.t.told[VERB_CALL], 0);
    assert_int_equal(figure(&ann, FIGURE_SENDS), 1);
    saves(&ann);
    assert_int_equal(ann.t.told[VERB_CALL], 1);
    assert_int_equal(figure(&ann, FIGURE_SENDS), 1);
    assert_true(figure(&ann, FIGURE_SEND_BYTES) > 3);
    assert_int_equal(gold(&ann), 0);
    assert_int_equal(rows(&ann, CHANGE_SEND), 1);
    assert_int_equal(rows(&ann, CHANGE_ALARM), 1);
    keep_send(&ann, "bob");
    assert_true(takes(&bob, &ann));
    assert_int_equal(gold(&bob), 1);
    hears(&ann, true);
    assert_int_equal(figure(&ann, FIGURE_SENDS), 0);
    assert_int_equal(figure(&ann, FIGURE_SEND_BYTES), 0);
    saves(&ann);
    assert_int_equal(rows(&ann, CHANGE_SEND), 0);
    assert_int_equal(rows(&ann, CHANGE_ALARM), 0);
    assert_int_equal(rows(&bob, CHANGE_TAKEN), 1);
    close_purse(&bob);
    close_purse(&ann);
}

static void it_goes_again_and_is_not_taken_twice(void **state)
{
    struct purse ann;
    struct purse bob;

    (void)state;
    open_purse(&ann);
    open_purse(&bob);
    gives(&ann);
    keep_send(&ann, "bob");
    assert_true(takes(&bob, &ann));
    is_told(&ann, RH_UNKNOWN); // but ann does not hear of it
    assert_int_equal(ann.t.told[VERB_CALL], 1);
    tick(&ann, 50);
    assert_int_equal(ann.t.told[VERB_CALL], 2);
    keep_send(&ann, "bob");
    takes_over(&bob);
    assert_true(takes(&bob, &ann));
    assert_int_equal(gold(&bob), 1);
    runtime_discard(ann.t.actor, RH_FENCED); // her node dies before she hears of it
    assert_int_equal(figure(&ann, FIGURE_SENDS), 0);
    ann.fence++;
    enter(&ann);
    saves(&ann);
    assert_int_equal(figure(&ann, FIGURE_SENDS), 1);
    assert_int_equal(ann.t.told[VERB_CALL], 3);
    keep_send(&ann, "bob");
    assert_true(takes(&bob, &ann));
    assert_int_equal(gold(&bob), 1);
    hears(&ann, true);
    saves(&ann);
    assert_int_equal(rows(&ann, CHANGE_SEND), 0);
    close_purse(&bob);
    close_purse(&ann);
}

static void a_callback_that_fails_sends_nothing(void **state)
{
    struct purse ann;

    (void)state;
    open_purse(&ann);
    earns(&ann);
    (void)runtime_rig_call(&ann.t, "give bob");
    memory_store_refuse(&ann.store, STORE_UNAVAILABLE);
    tick(&ann, 0);
    assert_int_equal(ann.t.told[VERB_CALL], 0);
    assert_int_equal(ann.t.told[VERB_FAIL], 1);
    takes_over(&ann);
    tick(&ann, 60000);
    assert_int_equal(ann.t.told[VERB_CALL], 0);
    assert_int_equal(gold(&ann), 1);
    close_purse(&ann);
}

/* By an error or a failure; it comes again until it is taken. */
static void refuses(const char *how)
{
    struct purse ann;
    struct purse bob;

    open_purse(&ann);
    open_purse(&bob);
    gives(&ann);
    keep_send(&ann, "bob");
    ann.note.size -= strlen("take");
    buffer_put(&ann.note, how, strlen(how));
    assert_false(takes(&bob, &ann));
    assert_int_equal(gold(&bob), 0);
    assert_int_equal(rows(&bob, CHANGE_TAKEN), 0);
    assert_int_equal(rows(&bob, CHANGE_SEND), 0);
    assert_int_equal(bob.t.told[VERB_CALL], 0);
    hears(&ann, false);
    assert_int_equal(rows(&ann, CHANGE_SEND), 1);
    tick(&ann, 50);
    assert_int_equal(ann.t.told[VERB_CALL], 2);
    keep_send(&ann, "bob");
    if (bob.t.told[VERB_FAIL] > 0) {
        takes_over(&bob);
    }
    assert_true(takes(&bob, &ann));
    assert_int_equal(gold(&bob), 1);
    close_purse(&bob);
    close_purse(&ann);
}

static void what_is_refused_changes_nothing_and_comes_again(void **state)
{
    (void)state;
    refuses("refuse");
    refuses("fail");
}

/* Bob gets ann's send as "wait": he has changed nothing yet. */
static void makes_wait(struct purse *bob, struct purse *ann)
{
    keep_send(ann, "bob");
    ann->note.size -= strlen("take");
    buffer_put(&ann->note, "wait", 4);
    runtime_rig_run(&bob->t, REQUEST_SESSION | REQUEST_CALL, buffer_bytes(&ann->note));
    assert_int_equal(memory_store_waiting(&bob->store), 0);
}

/* As every message of an actor whose code is at a host does. */
static void one_that_waits_is_taken_with_what_it_comes_to(void **state)
{
    struct purse ann;
    struct purse bob;

    (void)state;
    waits_in_vain = false;
    open_purse(&ann);
    open_purse(&bob);
    gives(&ann);
    makes_wait(&bob, &ann);
    takes_over(&bob); // his node dies: nothing of it was saved
    assert_int_equal(rows(&bob, CHANGE_TAKEN), 0);
    waits_in_vain = true;
    makes_wait(&bob, &ann);
    tick(&bob, 100);
    saves(&bob);
    assert_int_equal(bob.t.answers, 1);
    assert_int_equal(bob.t.answer.size, 0); // an error: it is not taken
    assert_int_equal(gold(&bob) + rows(&bob, CHANGE_TAKEN), 0);
    waits_in_vain = false;
    makes_wait(&bob, &ann);
    tick(&bob, 100);
    saves(&bob);
    assert_int_equal(bob.t.answers, 2);
    assert_int_equal(bob.t.answer.size, 1);
    assert_int_equal(gold(&bob), 1);
    assert_int_equal(rows(&bob, CHANGE_TAKEN), 1);
    close_purse(&bob);
    close_purse(&ann);
}

static void one_with_an_outbox_does_not_sleep(void **state)
{
    struct purse ann;

    (void)state;
    open_purse(&ann);
    gives(&ann);
    runtime_retire(ann.t.actor);
    assert_int_equal(ann.t.error, ERR_BUSY);
    keep_send(&ann, "bob");
    hears(&ann, true);
    saves(&ann);
    runtime_retire(ann.t.actor);
    assert_int_equal(ann.t.error, ERR_OK);
    close_purse(&ann);
}

static void one_that_moves_says_nothing_more(void **state)
{
    struct purse ann;

    (void)state;
    open_purse(&ann);
    gives(&ann);
    keep_send(&ann, "bob");
    runtime_export(ann.t.actor);
    assert_int_equal(ann.t.error, ERR_OK);
    hears(&ann, false);
    tick(&ann, 60000);
    assert_int_equal(ann.t.told[VERB_CALL], 1);
    runtime_unfreeze(ann.t.actor); // it stays after all
    tick(&ann, 60000);
    assert_int_equal(ann.t.told[VERB_CALL], 2);
    close_purse(&ann);
}

/* Ann has heard that her gift was taken: the commit that deletes its row is on its way, and nothing
 * waits for it. */
static void deletes_a_row(struct purse *ann)
{
    open_purse(ann);
    gives(ann);
    keep_send(ann, "bob");
    hears(ann, true);
    assert_int_equal(memory_store_waiting(&ann->store), 1);
}

/* fleet_sim --profile durable --seed 7: what was changed meanwhile was saved under the number of
 * what was not. */
static void what_stands_behind_a_commit_that_fails_is_not_saved(void **state)
{
    struct purse ann;

    (void)state;
    deletes_a_row(&ann);
    const uint64_t number = ann.store.number;
    (void)runtime_rig_call(&ann.t, "earn");
    memory_store_refuse(&ann.store, STORE_UNAVAILABLE);
    tick(&ann, 0);
    assert_int_equal(memory_store_waiting(&ann.store), 0);
    assert_memory_equal(ann.t.text, "STORE_UNAVAILABLE ", 18);
    assert_int_equal(ann.store.number, number);
    assert_int_equal(gold(&ann), 0);
    takes_over(&ann);
    earns(&ann);
    assert_int_equal(gold(&ann), 1);
    close_purse(&ann);
}

/* fleet_sim --profile durable --seed 46: its host waited for that for ever. */
static void who_does_not_sleep_says_so_whatever_becomes_of_a_commit(void **state)
{
    struct purse ann;

    (void)state;
    open_purse(&ann);
    earns(&ann);
    gives(&ann);
    keep_send(&ann, "bob");
    (void)runtime_rig_call(&ann.t, "give cid");
    saves(&ann);
    hears(&ann, true);
    assert_int_equal(memory_store_waiting(&ann.store), 1);
    ann.t.told[VERB_RETIRE] = 0;
    runtime_retire(ann.t.actor);
    assert_int_equal(ann.t.told[VERB_RETIRE], 1);
    memory_store_refuse(&ann.store, STORE_UNAVAILABLE);
    tick(&ann, 0);
    assert_int_equal(ann.t.told[VERB_RETIRE], 1);
    close_purse(&ann);
}

static void runs(struct purse *p, enum asked asked)
{
    const struct runtime_message message = {
        .ticket = 1, .body = bytes_of("earn", 4), .asked = (uint8_t)asked, .name = {77, 5}};

    runtime_run(p->t.actor, &message);
}

/* fleet_sim --profile durable --seed 5: it was told that nothing of it was saved. */
static void a_saved_answer_waits_for_no_commit(void **state)
{
    struct purse ann;

    (void)state;
    open_purse(&ann);
    runs(&ann, ASKED_FIRST);
    saves(&ann);
    (void)runtime_rig_call(&ann.t, "give bob");
    saves(&ann);
    keep_send(&ann, "bob");
    hears(&ann, true);
    assert_int_equal(memory_store_waiting(&ann.store), 1);
    const size_t before = ann.t.answers;
    runs(&ann, ASKED_AGAIN);
    assert_int_equal(ann.t.answers, before + 1);
    assert_int_equal(ann.t.code, ANSWER_OK);
    memory_store_refuse(&ann.store, STORE_UNAVAILABLE);
    tick(&ann, 0);
    assert_int_equal(ann.t.answers, before + 1);
    close_purse(&ann);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_leaves_when_it_is_saved_and_goes_when_it_is_taken),
        cmocka_unit_test(it_goes_again_and_is_not_taken_twice),
        cmocka_unit_test(a_callback_that_fails_sends_nothing),
        cmocka_unit_test(what_is_refused_changes_nothing_and_comes_again),
        cmocka_unit_test(one_with_an_outbox_does_not_sleep),
        cmocka_unit_test(one_that_moves_says_nothing_more),
        cmocka_unit_test(what_stands_behind_a_commit_that_fails_is_not_saved),
        cmocka_unit_test(who_does_not_sleep_says_so_whatever_becomes_of_a_commit),
        cmocka_unit_test(one_that_waits_is_taken_with_what_it_comes_to),
        cmocka_unit_test(a_saved_answer_waits_for_no_commit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_TAKENEARLY};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
