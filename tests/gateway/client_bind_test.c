/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that are bound to an actor: what their gateway makes of notes and pushes.
 */
#include "tests/gateway/client_rig.h"

#include "tests/planted.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t second_us = 1000000;

struct bound_rig {
    struct client_rig r;
    struct client *c;
};

static void start(struct bound_rig *b)
{
    const struct router_config router = router_config_default();
    struct clients_config clients = clients_config_default();

    clients.push_unread_max = 1000;
    client_rig_init(&b->r, &clients, &router);
    client_rig_ring(&b->r);
    b->c = client_new(b->r.all, CLIENT_RESP, "x", b->r.rig.now_us);
}

static void stop(struct bound_rig *b)
{
    if (b->c != NULL) {
        client_rig_free(&b->r, b->c);
    }
    client_rig_fini(&b->r);
}

static struct push_stats stats(const struct bound_rig *b)
{
    struct clients_stats f;

    clients_stats(b->r.all, &f);
    return f.pushes;
}

/* What the client got since the last time. */
static void reads(struct bound_rig *b, const char *text)
{
    const struct bytes out = client_output(b->c);

    assert_int_equal(out.size, strlen(text));
    assert_memory_equal(out.data == NULL ? (const void *)"" : out.data, text, out.size);
    client_sent(b->c, out.size, b->r.rig.now_us);
}

/* Request `number` is a note of that type. */
static struct note note_at(const struct bound_rig *b, size_t number, enum note_type type)
{
    const struct request_record q = client_rig_request(&b->r, number);
    struct note note = {0};

    assert_int_equal(b->r.request_count, number);
    assert_true((q.flags & REQUEST_SESSION) != 0);
    // What begins a round runs at one incarnation only.
    assert_int_equal((q.flags & REQUEST_IDEMPOTENT) != 0, type == NOTE_LOST);
    assert_int_equal((q.flags & REQUEST_AWAKE) != 0, type == NOTE_LOST);
    assert_true(bytes_equal(q.id, bytes_of("a", 1)));
    assert_int_equal(note_get(q.body, &note), ERR_OK);
    assert_int_equal(note.type, type);
    assert_int_equal(note.gateway, q.gateway);
    assert_int_equal(note.connection, q.session);
    return note;
}

static void answer(struct bound_rig *b, size_t number, enum bound_result result, uint32_t round)
{
    const struct bound bound = {.result = (uint8_t)result, .round = round, .stamp = {3, number}};
    struct buffer body = {0};

    bound_put(&body, &bound);
    client_rig_answer(&b->r, number, ANSWER_OK, buffer_bytes(&body));
    buffer_fini(&body);
}

static struct push_record push_of(const struct bound_rig *b, uint32_t round, uint64_t number)
{
    const struct request_record q = client_rig_request(&b->r, 1);

    return (struct push_record){.gateway = q.gateway,
                                .connection = q.session,
                                .round = round,
                                .number = number,
                                .payload = bytes_of(number % 2 == 0 ? "even" : "odd", 3)};
}

static bool pushed(struct bound_rig *b, uint32_t round, uint64_t number)
{
    const struct push_record push = push_of(b, round, number);

    return clients_on_push(b->r.all, &push, b->r.rig.now_us) != NULL;
}

/* All that is due at once, and what the router wants of it. */
static size_t go_on(struct bound_rig *b, uint64_t us)
{
    size_t count = 0;

    b->r.rig.now_us += us;
    while (clients_go_on(b->r.all, b->r.rig.now_us, &b->r.effects) != NULL) {
        count++;
    }
    client_rig_do_effects(&b->r);
    return count;
}

static void bind(struct bound_rig *b)
{
    client_rig_text(&b->r, b->c, "BIND a\r\n");
    assert_int_equal(note_at(b, 1, NOTE_BIND).round, 1);
    answer(b, 1, BOUND_NEW, 1);
    reads(b, "+OK\r\n");
    assert_int_equal(stats(b).bound, 1);
}

static void pushes_follow_the_reply(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    client_rig_text(&b.r, b.c, "BIND a\r\n");
    assert_true(pushed(&b, 1, 1)); // the actor was faster than its answer
    reads(&b, "");
    answer(&b, 1, BOUND_NEW, 1);
    reads(&b, "+OK\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$3\r\nodd\r\n");
    client_rig_text(&b.r, b.c, "HELLO 3\r\n");
    client_sent(b.c, client_output(b.c).size, b.r.rig.now_us);
    assert_true(pushed(&b, 1, 2));
    reads(&b, ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$3\r\neve\r\n");
    stop(&b);
}

/* A command before BIND has no answer yet: its reply comes first, then +OK, then pushes. */
static void nothing_overtakes_a_reply(void **state)
{
    const struct value value = {.type = VALUE_INTEGER, .integer = 5};
    const struct bound bound = {.result = BOUND_NEW, .round = 1};
    struct buffer body = {0};
    struct bound_rig b;

    (void)state;
    start(&b);
    client_rig_text(&b.r, b.c, "STRLEN b\r\nBIND a\r\n");
    bound_put(&body, &bound);
    client_rig_answer(&b.r, 2, ANSWER_OK, buffer_bytes(&body));
    buffer_fini(&body);
    assert_true(pushed(&b, 1, 1));
    reads(&b, "");
    client_rig_value(&b.r, 1, &value);
    reads(&b, ":5\r\n+OK\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$3\r\nodd\r\n");
    stop(&b);
}

static void refusals_are_told_and_leave_nothing(void **state)
{
    static const struct {
        enum bound_result result;
        const char *says;
    } refusals[] = {
        {BOUND_REFUSED, "-REFUSED the actor does not take this session\r\n"},
        {BOUND_NEVER, "-NOSESSION actors of this kind take no sessions\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct bound_rig b;

        start(&b);
        client_rig_text(&b.r, b.c, "BIND a\r\n");
        answer(&b, 1, refusals[i].result, 1);
        reads(&b, refusals[i].says);
        assert_int_equal(stats(&b).bound, 0);
        client_rig_free(&b.r, b.c); // nobody has to be told
        b.c = NULL;
        assert_int_equal(b.r.request_count, 1);
        stop(&b);
    }
}

static void an_answer_that_is_none_is_an_error(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    client_rig_text(&b.r, b.c, "BIND a\r\n");
    client_rig_answer(&b.r, 1, ANSWER_OK, bytes_of("junk", 4));
    reads(&b, "-ERR the node's answer is not a valid answer\r\n");
    client_rig_text(&b.r, b.c, "UNBIND\r\n");
    reads(&b, "-ERR this connection is not bound: BIND first\r\n");
    stop(&b);
}

static void the_actor_is_told_when_it_goes(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    client_rig_free(&b.r, b.c);
    b.c = NULL;
    assert_int_equal(note_at(&b, 2, NOTE_LOST).why, NOTE_LOST_CLOSED);
    assert_int_equal(stats(&b).bound, 0);
    assert_false(pushed(&b, 1, 1));
    assert_int_equal(stats(&b).dropped_unknown, 1);
    stop(&b);
}

static void who_unbinds_may_bind_again(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    client_rig_text(&b.r, b.c, "UNBIND\r\n");
    (void)note_at(&b, 2, NOTE_LOST);
    assert_false(pushed(&b, 1, 1));                                // nobody listens any more
    client_rig_answer(&b.r, 2, ANSWER_NO_KIND, (struct bytes){0}); // its actor sleeps already
    reads(&b, "+OK\r\n");
    client_rig_text(&b.r, b.c, "BIND a\r\n");
    assert_int_equal(note_at(&b, 3, NOTE_BIND).round, 2);
    answer(&b, 3, BOUND_NEW, 2);
    assert_true(pushed(&b, 1, 2)); // of the time before
    assert_true(pushed(&b, 2, 1));
    reads(&b, "+OK\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$3\r\nodd\r\n");
    assert_int_equal(stats(&b).dropped_stale, 1);
    stop(&b);
}

/* An actor that isn't told of it would refuse the next client, if its kind does: where who asks for
 * something else is told that there is no room, it is asked on. */
static void who_unbinds_is_told_of_however_full_the_node_is(void **state)
{
    const uint64_t patience_us = (uint64_t)router_config_default().overload_ms * 1000;
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    client_rig_text(&b.r, b.c, "UNBIND\r\n");
    const uint64_t until_us = b.r.rig.now_us + 4 * patience_us;
    assert_int_equal(client_rig_request(&b.r, 2).ttl_ms, REQUEST_TTL_MAX_MS);
    for (size_t number = 2; b.r.rig.now_us < until_us; number++) {
        (void)note_at(&b, number, NOTE_LOST);
        client_rig_answer(&b.r, number, ANSWER_OVERLOAD, (struct bytes){0});
        while (b.r.request_count == number) {
            reads(&b, "");
            b.r.rig.now_us += 10000;
            client_rig_event(&b.r, (struct router_event){.type = ROUTER_TICK});
        }
    }
    client_rig_answer(&b.r, b.r.request_count, ANSWER_OK, (struct bytes){0});
    reads(&b, "+OK\r\n");
    stop(&b);
}

static void a_kick_is_the_last_thing_that_it_reads(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    struct push_record kick = push_of(&b, 1, 2);
    kick.type = PUSH_KICK;
    kick.code = 1000;
    assert_non_null(clients_on_push(b.r.all, &kick, b.r.rig.now_us));
    reads(&b, ""); // the one before is still on its way
    assert_true(pushed(&b, 1, 1));
    assert_true(pushed(&b, 1, 3));
    assert_false(client_wants_input(b.c));
    reads(&b,
          "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$3\r\nodd\r\n"
          "*3\r\n$4\r\nkick\r\n:1000\r\n$3\r\neve\r\n");
    assert_true(client_is_done(b.c));
    client_rig_free(&b.r, b.c);
    b.c = NULL;
    assert_int_equal(note_at(&b, 2, NOTE_LOST).why, NOTE_LOST_KICKED);
    stop(&b);
}

static void who_does_not_read_is_cut(void **state)
{
    struct bound_rig b;
    uint64_t number = 0;

    (void)state;
    start(&b);
    bind(&b);
    while (!client_is_done(b.c)) {
        assert_true(number < 1000);
        (void)pushed(&b, 1, ++number);
    }
    assert_true(client_output(b.c).size <= 1100);
    assert_int_equal(stats(&b).cut, 1);
    client_rig_free(&b.r, b.c);
    b.c = NULL;
    assert_int_equal(note_at(&b, 2, NOTE_LOST).why, NOTE_LOST_SLOW);
    stop(&b);
}

static void a_link_that_was_away_is_reason_to_ask(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    assert_int_equal(go_on(&b, 10), 0);
    clients_on_node_up(b.r.all, 2, b.r.rig.now_us); // not its owner
    assert_int_equal(go_on(&b, 10), 0);
    clients_on_node_up(b.r.all, 1, b.r.rig.now_us);
    assert_int_equal(go_on(&b, 10), 1);
    const struct note resume = note_at(&b, 2, NOTE_RESUME);
    assert_true(resume.round == 2 && resume.stamp.fence == 3 && resume.stamp.count == 1);

    // It is bound still: what was pushed meanwhile goes on by its numbers.
    assert_true(pushed(&b, 1, 1));
    reads(&b, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$3\r\nodd\r\n");
    answer(&b, 2, BOUND_KEPT, 1);
    assert_true(pushed(&b, 1, 2));
    reads(&b, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$3\r\neve\r\n");
    assert_int_equal(go_on(&b, 10), 0);
    stop(&b);
}

static void second_node(struct bound_rig *b)
{
    rig_add_member(&b->r.rig, 2, 20);
    rig_config(&b->r.rig);
    rig_step(&b->r.rig,
             (struct router_event){.type = ROUTER_NODE_UP, .slot = 2, .incarnation = 20});
}

/* What the actor pushed last may have been lost where it is by now, or where it was: nothing that
 * follows shows that there is a gap (fleet_sim --profile sessions --seed 3891). */
static void a_link_that_was_away_while_its_actor_moved_is_reason_to_ask(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    second_node(&b);
    clients_on_node_up(b.r.all, 2, b.r.rig.now_us);
    bind(&b);
    rig_move(&b.r.rig, bytes_of("a", 1), 2, 10, true);
    assert_int_equal(go_on(&b, 10), 0); // all links were there
    rig_move(&b.r.rig, bytes_of("a", 1), 1, 11, true);
    assert_int_equal(go_on(&b, 10), 0);
    clients_on_node_down(b.r.all, 1, b.r.rig.now_us); // its owner: until it can be asked
    assert_int_equal(go_on(&b, 10), 0);
    clients_on_node_down(b.r.all, 2, b.r.rig.now_us); // where it was before
    assert_int_equal(go_on(&b, 10), 1);
    (void)note_at(&b, 2, NOTE_RESUME);
    answer(&b, 2, BOUND_KEPT, 1);

    clients_on_node_up(b.r.all, 2, b.r.rig.now_us); // what the ring does not say yet
    assert_int_equal(go_on(&b, 10), 0);
    rig_move(&b.r.rig, bytes_of("a", 1), 2, 12, true);
    assert_int_equal(go_on(&b, 10), 1);
    (void)note_at(&b, 3, NOTE_RESUME);
    answer(&b, 3, BOUND_KEPT, 1);
    assert_int_equal(go_on(&b, 10), 0);
    stop(&b);
}

static void an_actor_that_began_afresh_counts_anew(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    assert_true(pushed(&b, 1, 1));
    client_sent(b.c, client_output(b.c).size, b.r.rig.now_us);
    struct push_record again = push_of(&b, 1, 0);
    again.type = PUSH_AGAIN;
    assert_non_null(clients_on_push(b.r.all, &again, b.r.rig.now_us));
    (void)go_on(&b, 10);
    (void)note_at(&b, 2, NOTE_RESUME);
    assert_true(pushed(&b, 2, 1)); // ahead of its answer
    reads(&b, "");
    answer(&b, 2, BOUND_NEW, 2);
    reads(&b, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$3\r\nodd\r\n");
    assert_true(pushed(&b, 1, 2)); // the one before is gone
    reads(&b, "");
    assert_int_equal(stats(&b).dropped_stale, 1);
    stop(&b);
}

static void one_that_has_no_answer_asks_again(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    clients_on_node_up(b.r.all, 1, b.r.rig.now_us);
    (void)go_on(&b, 10);
    client_rig_answer(&b.r, 2, ANSWER_APP_ERROR, bytes_of("no", 2));
    assert_int_equal(b.r.request_count, 2);
    (void)go_on(&b, second_us / 2);
    assert_int_equal(b.r.request_count, 2);
    (void)go_on(&b, second_us);
    (void)note_at(&b, 3, NOTE_RESUME);
    answer(&b, 3, BOUND_OLD, 0);
    reads(&b, "*3\r\n$4\r\nkick\r\n:1\r\n$43\r\nREPLACED another connection was bound since\r\n");
    assert_true(client_is_done(b.c));
    stop(&b);
}

/* It was kicked before, and did not hear: its actor waits for LOST (fleet_sim --profile sessions
 * --seed 3039). */
static void who_is_refused_as_it_comes_again_is_told_gone(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    clients_on_node_up(b.r.all, 1, b.r.rig.now_us);
    (void)go_on(&b, 10);
    (void)note_at(&b, 2, NOTE_RESUME);
    answer(&b, 2, BOUND_REFUSED, 0);
    reads(&b, "*3\r\n$4\r\nkick\r\n:2\r\n$44\r\nREFUSED the actor does not take this session\r\n");
    assert_true(client_is_done(b.c));
    client_rig_free(&b.r, b.c);
    b.c = NULL;
    assert_int_equal(note_at(&b, 3, NOTE_LOST).why, NOTE_LOST_KICKED);
    stop(&b);
}

static void a_gap_is_waited_for_and_given_up(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    assert_true(pushed(&b, 1, 3));
    assert_int_equal(go_on(&b, 10), 1);
    reads(&b, "");
    assert_int_equal(go_on(&b, PUSHES_GAP_US), 1);
    reads(&b, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$3\r\nodd\r\n");
    assert_int_equal(stats(&b).lost, 2);
    assert_int_equal(go_on(&b, 10), 0);
    stop(&b);
}

static void forged_pushes_are_counted(void **state)
{
    struct bound_rig b;

    (void)state;
    start(&b);
    bind(&b);
    struct push_record push = push_of(&b, 1, 1);
    push.gateway++;
    assert_null(clients_on_push(b.r.all, &push, b.r.rig.now_us));
    push = push_of(&b, 1, 1);
    push.connection++;
    assert_null(clients_on_push(b.r.all, &push, b.r.rig.now_us));
    push = push_of(&b, 7, 1); // a round that nobody has asked for
    assert_null(clients_on_push(b.r.all, &push, b.r.rig.now_us));
    push = push_of(&b, 1, UINT64_MAX);
    (void)clients_on_push(b.r.all, &push, b.r.rig.now_us);
    assert_int_equal(stats(&b).dropped_unknown, 3);
    reads(&b, "");
    stop(&b);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushes_follow_the_reply),
        cmocka_unit_test(nothing_overtakes_a_reply),
        cmocka_unit_test(refusals_are_told_and_leave_nothing),
        cmocka_unit_test(an_answer_that_is_none_is_an_error),
        cmocka_unit_test(the_actor_is_told_when_it_goes),
        cmocka_unit_test(who_unbinds_may_bind_again),
        cmocka_unit_test(who_unbinds_is_told_of_however_full_the_node_is),
        cmocka_unit_test(a_kick_is_the_last_thing_that_it_reads),
        cmocka_unit_test(who_does_not_read_is_cut),
        cmocka_unit_test(a_link_that_was_away_is_reason_to_ask),
        cmocka_unit_test(a_link_that_was_away_while_its_actor_moved_is_reason_to_ask),
        cmocka_unit_test(an_actor_that_began_afresh_counts_anew),
        cmocka_unit_test(one_that_has_no_answer_asks_again),
        cmocka_unit_test(who_is_refused_as_it_comes_again_is_told_gone),
        cmocka_unit_test(a_gap_is_waited_for_and_given_up),
        cmocka_unit_test(forged_pushes_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_NOTETWICE};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
