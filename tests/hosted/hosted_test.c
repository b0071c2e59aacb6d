/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors at a host: the conversation of docs/host-protocol.md byte for byte, turns and steps, and
 * hosts that end, hang, are slow, or say what can't be.
 */
#include "tests/hosted/hosted_rig.h"

#include "base/log.h"
#include "tests/hex.h"
#include "tests/planted.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- the page's conversation */

enum { FRAMES_MAX = 32 };

/* The frames of the page, in order. */
static size_t read_page(struct buffer frames[FRAMES_MAX])
{
    FILE *page = fopen("docs/host-protocol.md", "r");
    struct buffer bytes = {0};
    char line[512];
    size_t count = 0;
    bool told = false;

    assert_non_null(page);
    while (fgets(line, sizeof line, page) != NULL) {
        told = told || strcmp(line, "## A conversation\n") == 0;
        if (!told || strncmp(line, "    ", 4) != 0 || !isxdigit((unsigned char)line[4]) ||
            line[6] != ' ') {
            continue;
        }
        for (const char *at = line + 4; isxdigit((unsigned char)*at); at += 3) {
            const uint8_t byte = (uint8_t)strtoul((char[]){at[0], at[1], '\0'}, NULL, 16);

            buffer_put(&bytes, &byte, 1);
        }
        while (bytes.size >= 4 && bytes.size >= 4 + (size_t)bytes.data[3]) {
            const size_t size = 4 + (size_t)bytes.data[3];

            buffer_put(&frames[count++], bytes.data, size);
            buffer_consume(&bytes, size);
        }
    }
    (void)fclose(page);
    assert_int_equal(bytes.size, 0);
    buffer_fini(&bytes);
    return count;
}

static void host_says(struct hosted_rig *t, const struct buffer *frame)
{
    hosted_link_receive(t->link, buffer_bytes(frame));
    hosted_rig_wait(t, 0);
}

static void node_says(struct hosted_rig *t, const struct buffer *frame)
{
    const struct bytes heard = hosted_rig_heard(t);

    assert_int_equal(heard.size, frame->size);
    assert_memory_equal(heard.data, frame->data, frame->size);
}

static void the_conversation_of_the_page_is_as_it_says(void **state)
{
    struct buffer frame[FRAMES_MAX] = {{0}};
    const size_t count = read_page(frame);
    struct hosted_rig t;

    (void)state;
    assert_int_equal(count, 11);
    hosted_rig_open(&t, "player");
    t.link = hosted_link_new(t.hosted);
    host_says(&t, &frame[0]);
    node_says(&t, &frame[1]);
    hosted_rig_activate(&t, "ann");
    node_says(&t, &frame[2]);
    host_says(&t, &frame[3]);
    assert_int_equal(t.stage.told[VERB_ACTIVATE], 1);
    (void)runtime_rig_call(&t.stage, "hi");
    node_says(&t, &frame[4]);
    host_says(&t, &frame[5]);
    assert_string_equal((const char *)memcpy((char[16]){0}, t.stage.called.data, 11),
                        "3 bob hello");
    const struct call_answer answer = {
        .number = t.stage.call.number, .status = RH_OK, .payload = bytes_of("hey", 3)};
    runtime_answer(t.stage.runtime, &answer);
    node_says(&t, &frame[6]);
    host_says(&t, &frame[7]);
    assert_string_equal(t.stage.text, "done");
    hosted_rig_wait(&t, HOSTED_PING_MS);
    node_says(&t, &frame[8]);
    host_says(&t, &frame[9]);
    runtime_retire(t.stage.actor);
    assert_int_equal(t.stage.told[VERB_RETIRE], 1);
    node_says(&t, &frame[10]);
    assert_int_equal(t.link->state, LINK_OPEN);
    hosted_rig_close(&t);
    for (size_t i = 0; i < count; i++) {
        buffer_fini(&frame[i]);
    }
}

/* ---- turns */

static void a_message_waits_for_its_step(void **state)
{
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    assert_string_equal(runtime_rig_command(&t.stage, "GET x"), "");
    Rh__Host__ToHost *to = hosted_rig_said(&t);
    assert_int_equal(to->says[0]->message->n_argument, 2);
    assert_memory_equal(to->says[0]->message->argument[0].data, "GET", 3);
    rh__host__to_host__free_unpacked(to, NULL);
    assert_int_equal(t.stage.told[VERB_DEFER], 2);
    hosted_rig_reply(&t, 1, 2, "here");
    assert_string_equal(t.stage.text, "s:here");
    hosted_rig_close(&t);
}

static void an_actor_that_failed_is_told_why(void **state)
{
    static char why[] = "ERR on purpose";
    Rh__Host__Done done = RH__HOST__DONE__INIT;
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    (void)runtime_rig_call(&t.stage, "x");
    done.fail = why;
    hosted_rig_step(&t, 1, 2, NULL, &done);
    assert_string_equal(t.stage.text, "ERR on purpose");
    assert_int_equal(t.stage.told[VERB_FAIL], 1);
    runtime_discard(t.stage.actor, RH_BROKEN);
    hosted_rig_heard(&t);
    assert_int_equal(atomic_load(&t.hosted->stats.failed_said), 1);
    hosted_rig_close(&t);
}

static void an_activation_that_failed_leaves_nothing(void **state)
{
    Rh__Host__Done done = RH__HOST__DONE__INIT;
    struct hosted_rig t;

    (void)state;
    hosted_rig_open(&t, "player");
    hosted_rig_connect(&t);
    hosted_rig_activate(&t, "ann");
    done.result = RH__HOST__RESULT__RESULT_FAILED;
    hosted_rig_step(&t, 1, 1, NULL, &done);
    assert_int_equal(t.stage.error, ERR_REFUSED);
    assert_int_equal(t.link->actors.count, 0);
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_ACTIVATE); // and no deactivate
    hosted_rig_close(&t);
}

static void a_state_moves(void **state)
{
    static uint8_t bytes[] = "the state";
    Rh__Host__Done done = RH__HOST__DONE__INIT;
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    runtime_export(t.stage.actor);
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_HANDOFF);
    done.state = (ProtobufCBinaryData){sizeof bytes - 1, bytes};
    hosted_rig_step(&t, 1, 2, NULL, &done);
    assert_int_equal(t.stage.told[VERB_EXPORT], 1);
    assert_true(t.stage.has_state);
    assert_int_equal(t.stage.state.size, sizeof bytes - 1);
    runtime_unfreeze(t.stage.actor);
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_RESUME);
    runtime_export(t.stage.actor);
    done.result = RH__HOST__RESULT__RESULT_COLD;
    hosted_rig_step(&t, 1, 3, NULL, &done);
    assert_false(t.stage.has_state);
    runtime_discard(t.stage.actor, RH_MOVED);
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_DEACTIVATE);
    hosted_rig_close(&t);
}

static void a_timer_is_a_turn(void **state)
{
    Rh__Host__StartTimer start = RH__HOST__START_TIMER__INIT;
    Rh__Host__Effect effect = RH__HOST__EFFECT__INIT;
    Rh__Host__Done done = RH__HOST__DONE__INIT;
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    (void)runtime_rig_call(&t.stage, "x");
    start.timer = 9;
    start.ms = 50;
    effect.type_case = RH__HOST__EFFECT__TYPE_START_TIMER;
    effect.start_timer = &start;
    hosted_rig_step(&t, 1, 2, &effect, &done);
    (void)hosted_rig_heard(&t);
    hosted_rig_wait(&t, 50);
    runtime_turn(t.stage.actor, 1);
    Rh__Host__ToHost *to = hosted_rig_said(&t);
    assert_int_equal(to->says[0]->body_case, RH__HOST__NODE_SAYS__BODY_TIMER);
    assert_int_equal(to->says[0]->timer->timer, 9);
    rh__host__to_host__free_unpacked(to, NULL);
    assert_int_equal(t.stage.told[VERB_TURN], 0);
    hosted_rig_done(&t, 1, 3);
    assert_int_equal(t.stage.told[VERB_TURN], 1);
    hosted_rig_close(&t);
}

/* ---- credit */

static void what_has_no_credit_waits(void **state)
{
    Rh__Host__Window window = RH__HOST__WINDOW__INIT;
    Rh__Host__HostSays says = RH__HOST__HOST_SAYS__INIT;
    struct hosted_rig t;
    struct runtime_rig other;

    (void)state;
    hosted_rig_live(&t, "player");
    window.turns = 1;
    window.bytes = 1;
    says.body_case = RH__HOST__HOST_SAYS__BODY_WINDOW;
    says.window = &window;
    hosted_rig_say(&t, &says);
    (void)runtime_rig_call(&t.stage, "more than the window alone");
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_MESSAGE);
    // Another actor, of another worker.
    runtime_rig_build(&other);
    const struct runtime_entry entry = {
        .ops = t.ops, .shared = t.shared, .kind = 3, .id = bytes_of("bob", 3), .actor = &other};
    other.actor = runtime_activate(other.runtime, &entry);
    assert_int_equal(hosted_rig_last(&t), 0);
    assert_int_equal(atomic_load(&t.hosted->stats.waiting), 1);
    hosted_rig_reply(&t, 1, 2, "done");
    assert_string_equal(t.stage.text, "done");
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_ACTIVATE);
    assert_int_equal(atomic_load(&t.hosted->stats.waiting), 0);
    runtime_rig_close(&other);
    hosted_rig_close(&t);
}

static void an_activation_waits_for_a_host(void **state)
{
    struct hosted_rig t;

    (void)state;
    hosted_rig_open(&t, "player");
    hosted_rig_activate(&t, "ann");
    hosted_rig_wait(&t, HOSTED_WAIT_MS / 2);
    hosted_rig_connect(&t);
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_ACTIVATE);
    hosted_rig_done(&t, 1, 1);
    assert_int_equal(t.stage.error, ERR_OK);
    assert_non_null(t.stage.actor);
    hosted_rig_close(&t);
    // Or none comes.
    hosted_rig_open(&t, "player");
    hosted_rig_activate(&t, "ann");
    hosted_rig_wait(&t, HOSTED_WAIT_MS);
    assert_int_equal(t.stage.error, ERR_REFUSED);
    assert_int_equal(atomic_load(&t.hosted->stats.unserved), 1);
    hosted_rig_close(&t);
}

/* ---- hosts that end */

static void who_was_at_a_host_that_ends_fails(void **state)
{
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    (void)runtime_rig_call(&t.stage, "x");
    hosted_rig_drop_link(&t);
    hosted_rig_wait(&t, 0);
    assert_string_equal(t.stage.text, "UNKNOWN outcome: the actor's host ended amidst it");
    assert_int_equal(t.stage.told[VERB_FAIL], 1);
    assert_int_equal(atomic_load(&t.hosted->stats.failed_gone), 1);
    hosted_rig_close(&t);
}

static void who_is_idle_fails_between_messages(void **state)
{
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    hosted_rig_drop_link(&t);
    hosted_rig_wait(&t, 0);
    assert_int_equal(t.stage.told[VERB_POKE], 1);
    runtime_turn(t.stage.actor, 1);
    assert_int_equal(t.stage.told[VERB_FAIL], 1);
    hosted_rig_close(&t);
    // Or a message comes first: it did not run.
    hosted_rig_live(&t, "player");
    hosted_rig_drop_link(&t);
    (void)runtime_rig_call(&t.stage, "x");
    assert_string_equal(t.stage.text, "REJECTED the actor's host ended; the request did not run");
    assert_int_equal(t.stage.told[VERB_FAIL], 1);
    hosted_rig_close(&t);
}

static void who_moves_away_from_a_host_that_ends_goes_cold(void **state)
{
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    runtime_export(t.stage.actor); // amidst its handoff
    hosted_rig_drop_link(&t);
    hosted_rig_wait(&t, 0);
    assert_int_equal(t.stage.told[VERB_EXPORT], 1);
    assert_int_equal(t.stage.error, ERR_OK);
    assert_false(t.stage.has_state);
    runtime_unfreeze(t.stage.actor); // It stays after all: then it fails.
    assert_int_equal(t.stage.told[VERB_POKE], 1);
    runtime_turn(t.stage.actor, 1);
    assert_int_equal(t.stage.told[VERB_FAIL], 1);
    hosted_rig_close(&t);
    hosted_rig_live(&t, "player");
    hosted_rig_drop_link(&t); // or before
    runtime_export(t.stage.actor);
    assert_false(t.stage.has_state);
    hosted_rig_close(&t);
}

static void what_was_not_begun_goes_to_another_host(void **state)
{
    Rh__Host__Window window = RH__HOST__WINDOW__INIT;
    Rh__Host__HostSays says = RH__HOST__HOST_SAYS__INIT;
    struct hosted_rig t;
    struct runtime_rig other;

    (void)state;
    hosted_rig_live(&t, "player");
    window.turns = 1;
    window.bytes = 1;
    says.body_case = RH__HOST__HOST_SAYS__BODY_WINDOW;
    says.window = &window;
    hosted_rig_say(&t, &says);
    (void)runtime_rig_call(&t.stage, "x");
    runtime_rig_build(&other);
    const struct runtime_entry entry = {
        .ops = t.ops, .shared = t.shared, .kind = 3, .id = bytes_of("bob", 3), .actor = &other};
    other.actor = runtime_activate(other.runtime, &entry);
    hosted_rig_drop_link(&t);
    hosted_rig_wait(&t, 0);
    runtime_tick(other.runtime, t.now_us);
    assert_int_equal(other.told[VERB_ACTIVATE], 0);
    hosted_rig_connect(&t);
    hosted_rig_done(&t, 2, 1);
    runtime_tick(other.runtime, t.now_us);
    runtime_tick(other.runtime, t.now_us);
    assert_int_equal(other.told[VERB_ACTIVATE], 1);
    assert_int_equal(other.error, ERR_OK);
    runtime_rig_close(&other);
    hosted_rig_close(&t);
}

static void who_lets_a_ping_wait_is_hung(void **state)
{
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    (void)runtime_rig_call(&t.stage, "x");
    for (unsigned i = 0; i < 6; i++) {
        hosted_rig_wait(&t, 800);
    }
    assert_int_equal(t.link->state, LINK_OVER);
    assert_int_equal(atomic_load(&t.hosted->stats.ended[RH__HOST__REASON__REASON_HUNG]), 1);
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_GOODBYE);
    assert_int_equal(t.stage.told[VERB_FAIL], 1);
    hosted_rig_reply(&t, 1, 2, "too late");
    assert_string_equal(t.stage.text, "UNKNOWN outcome: the actor's host ended amidst it");
    hosted_rig_close(&t);
    // A node that slept itself does not blame its hosts.
    hosted_rig_live(&t, "player");
    hosted_rig_wait(&t, 1000);
    hosted_rig_wait(&t, 60000);
    assert_int_equal(t.link->state, LINK_OPEN);
    hosted_rig_close(&t);
}

static void a_turn_that_lasts_ends_its_actor(void **state)
{
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player,turn=1");
    (void)runtime_rig_call(&t.stage, "x");
    hosted_rig_wait(&t, 999);
    assert_int_equal(t.stage.told[VERB_FAIL], 0);
    hosted_rig_wait(&t, 1);
    assert_string_equal(t.stage.text,
                        "UNKNOWN outcome: the actor's host did not end the turn in 1000 ms");
    assert_int_equal(t.stage.told[VERB_FAIL], 1);
    runtime_discard(t.stage.actor, RH_BROKEN);
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_DEACTIVATE);
    assert_int_equal(t.link->state, LINK_OPEN);
    hosted_rig_close(&t);
}

/* ---- what a host may not say */

static void what_is_of_a_turn_that_is_over_is_dropped(void **state)
{
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    (void)runtime_rig_call(&t.stage, "x");
    hosted_rig_reply(&t, 1, 1, "of the turn before");
    assert_string_equal(t.stage.text, "");
    hosted_rig_reply(&t, 1, 2, "mine");
    assert_string_equal(t.stage.text, "mine");
    hosted_rig_reply(&t, 1, 2, "again");
    assert_int_equal(atomic_load(&t.hosted->stats.stale), 2);
    // Of a life that is over.
    runtime_discard(t.stage.actor, RH_FENCED);
    hosted_rig_reply(&t, 1, 2, "from beyond");
    assert_int_equal(atomic_load(&t.hosted->stats.stale), 3);
    assert_int_equal(t.link->state, LINK_OPEN);
    hosted_rig_close(&t);
}

static void what_was_never_given_ends_the_host(void **state)
{
    static const uint64_t wrong[][2] = {{0, 1}, {2, 1}, {1, 0}, {1, 3}, {UINT64_MAX, 1}};
    struct hosted_rig t;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hosted_rig_live(&t, "player");
        (void)runtime_rig_call(&t.stage, "x");
        hosted_rig_reply(&t, wrong[i][0], wrong[i][1], "mine");
        assert_int_equal(t.link->state, LINK_OVER);
        assert_int_equal(t.link->reason, RH__HOST__REASON__REASON_NEVER_GIVEN);
        assert_int_equal(t.stage.told[VERB_FAIL], 1);
        hosted_rig_close(&t);
    }
}

static void an_effect_that_cannot_be_breaks_its_actor_alone(void **state)
{
    Rh__Host__Put put = RH__HOST__PUT__INIT;
    Rh__Host__Effect effect = RH__HOST__EFFECT__INIT;
    Rh__Host__Done done = RH__HOST__DONE__INIT;
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    (void)runtime_rig_call(&t.stage, "x");
    effect.type_case = RH__HOST__EFFECT__TYPE_PUT;
    effect.put = &put;
    hosted_rig_step(&t, 1, 2, &effect, &done);
    assert_string_equal(t.stage.text, "ERR a value that can't be put");
    assert_int_equal(t.stage.told[VERB_FAIL], 1);
    assert_int_equal(t.link->state, LINK_OPEN);
    hosted_rig_close(&t);
}

static void check_refused(const char *hex, enum _Rh__Host__Reason reason)
{
    struct hosted_rig t;
    uint8_t bytes[64];
    size_t size = 0;

    hosted_rig_open(&t, "player");
    t.link = hosted_link_new(t.hosted);
    for (; *hex != '\0'; hex += 2) {
        bytes[size++] = (uint8_t)strtoul((char[]){hex[0], hex[1], '\0'}, NULL, 16);
    }
    for (size_t i = 0; i < size; i++) { // by the byte
        hosted_link_receive(t.link, bytes_of(bytes + i, 1));
    }
    assert_int_equal(t.link->state, LINK_OVER);
    assert_int_equal(t.link->reason, reason);
    assert_int_equal(atomic_load(&t.hosted->stats.ended[reason]), 1);
    assert_int_equal(hosted_rig_last(&t), RH__HOST__NODE_SAYS__BODY_GOODBYE);
    hosted_rig_close(&t);
}

static void what_is_no_hello_is_refused(void **state)
{
    (void)state;
    check_refused("474554202f", RH__HOST__REASON__REASON_MALFORMED); // "GET /": too long
    check_refused("00010001", RH__HOST__REASON__REASON_MALFORMED);
    check_refused("00000003ffffff", RH__HOST__REASON__REASON_MALFORMED);
    check_refused("000000020a00", RH__HOST__REASON__REASON_MALFORMED);      // no body
    check_refused("000000040a021200", RH__HOST__REASON__REASON_UNEXPECTED); // a pong
    check_refused("000000040a020a00", RH__HOST__REASON__REASON_VERSION);    // an empty hello
}

static void who_says_no_hello_is_late(void **state)
{
    struct hosted_rig t;

    (void)state;
    hosted_rig_open(&t, "player");
    t.link = hosted_link_new(t.hosted);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(t.link->state, LINK_GREETED);
        hosted_rig_wait(&t, 1000);
    }
    assert_int_equal(t.link->reason, RH__HOST__REASON__REASON_LATE);
    hosted_rig_close(&t);
}

static void a_kind_has_one_host_and_says_what_it_is(void **state)
{
    Rh__Host__HostedKind kind = RH__HOST__HOSTED_KIND__INIT;
    struct hosted_rig t;

    (void)state;
    hosted_rig_live(&t, "player");
    struct hosted_link *first = t.link;
    t.link = hosted_link_new(t.hosted);
    hosted_rig_hello(&t, &kind);
    assert_int_equal(t.link->reason, RH__HOST__REASON__REASON_KIND_TAKEN);
    hosted_rig_drop_link(&t);
    t.link = first;
    (void)runtime_rig_call(&t.stage, "x"); // It is still served.
    hosted_rig_reply(&t, 1, 2, "here");
    assert_string_equal(t.stage.text, "here");
    hosted_rig_close(&t);
    hosted_rig_open(&t, "player");
    t.link = hosted_link_new(t.hosted);
    kind.flush = 1;
    hosted_rig_hello(&t, &kind);
    assert_int_equal(t.link->reason, RH__HOST__REASON__REASON_KIND_DIFFERS);
    hosted_rig_close(&t);
}

static void there_are_so_many_connections(void **state)
{
    struct hosted_link *link[HOSTED_LINKS_MAX];
    struct hosted_rig t;

    (void)state;
    hosted_rig_open(&t, "player");
    for (size_t i = 0; i < HOSTED_LINKS_MAX; i++) {
        link[i] = hosted_link_new(t.hosted);
        assert_int_equal(link[i]->state, LINK_GREETED);
    }
    t.link = hosted_link_new(t.hosted);
    assert_int_equal(t.link->reason, RH__HOST__REASON__REASON_FULL);
    for (size_t i = 0; i < HOSTED_LINKS_MAX; i++) {
        hosted_link_free(link[i]);
    }
    hosted_rig_close(&t);
}

static void words_of_a_kind_make_sense_or_not(void **state)
{
    static const char *const wrong[] = {"",
                                        ",durable",
                                        "a,alarms",
                                        "a,durable,flush",
                                        "a,sessions=x",
                                        "a,turn=",
                                        "a,turn=0",
                                        "a,turn=3601",
                                        "a,state=67108865",
                                        "a,bogus",
                                        "a=b",
                                        "player"};
    struct hosted_rig t;

    (void)state;
    hosted_rig_open(&t, "player,sessions=allow,idle=5,state=99,mailbox=7");
    assert_int_equal(t.ops->sessions, RH_SESSIONS_ALLOW);
    assert_int_equal(t.ops->idle_ms, 5000);
    assert_int_equal(t.ops->state_max, 99);
    assert_int_equal(t.ops->mailbox, 7);
    assert_null(t.ops->alarm);
    assert_null(t.ops->flush);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_null(hosted_kind(t.hosted, wrong[i]));
    }
    const struct rh_actor_ops *durable = hosted_kind(t.hosted, "b,durable,alarms");
    assert_int_equal(durable->durable, 1);
    assert_non_null(durable->alarm);
    hosted_rig_close(&t);
}

static void no_line(void *context, enum log_level level, const char *text)
{
    (void)context;
    (void)level;
    (void)text;
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_conversation_of_the_page_is_as_it_says),
        cmocka_unit_test(a_message_waits_for_its_step),
        cmocka_unit_test(an_actor_that_failed_is_told_why),
        cmocka_unit_test(an_activation_that_failed_leaves_nothing),
        cmocka_unit_test(a_state_moves),
        cmocka_unit_test(a_timer_is_a_turn),
        cmocka_unit_test(what_has_no_credit_waits),
        cmocka_unit_test(an_activation_waits_for_a_host),
        cmocka_unit_test(who_was_at_a_host_that_ends_fails),
        cmocka_unit_test(who_is_idle_fails_between_messages),
        cmocka_unit_test(who_moves_away_from_a_host_that_ends_goes_cold),
        cmocka_unit_test(what_was_not_begun_goes_to_another_host),
        cmocka_unit_test(who_lets_a_ping_wait_is_hung),
        cmocka_unit_test(a_turn_that_lasts_ends_its_actor),
        cmocka_unit_test(what_is_of_a_turn_that_is_over_is_dropped),
        cmocka_unit_test(what_was_never_given_ends_the_host),
        cmocka_unit_test(an_effect_that_cannot_be_breaks_its_actor_alone),
        cmocka_unit_test(what_is_no_hello_is_refused),
        cmocka_unit_test(who_says_no_hello_is_late),
        cmocka_unit_test(a_kind_has_one_host_and_says_what_it_is),
        cmocka_unit_test(there_are_so_many_connections),
        cmocka_unit_test(words_of_a_kind_make_sense_or_not),
    };

    log_set_sink(no_line, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_STALESTEP, M_HOSTSTAYS};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
