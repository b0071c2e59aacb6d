/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that speak packets: what their connections may and may not do.
 */
#include "tests/gateway/packet_talk.h"

#include "base/prng.h"
#include "tests/test.h"

#include <string.h>

static const uint64_t second_us = 1000000;

static void answers_come_as_they_are_made(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    say(&t, PACKET_REQUEST, 7, "slow");
    say(&t, PACKET_REQUEST, 8, "fast");
    send(&t);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("second"));
    assert_true(bytes_equal(hears_answer(&t, 8, STATUS_OK).payload, of("second")));
    client_rig_answer(&t.r, 1, ANSWER_APP_ERROR, of("no"));
    assert_true(bytes_equal(hears_answer(&t, 7, STATUS_ACTOR_FAILED).payload, of("no")));
    hears_nothing(&t);
    stop(&t);
}

static void flags_and_deadlines_reach_the_node(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    packet_put_request(&t.said,
                       PACKET_REQUEST,
                       &(struct request_packet){.request = 1,
                                                .flags = PACKET_IDEMPOTENT | PACKET_DEADLINE,
                                                .deadline_ms = 100,
                                                .id = of("a")});
    say(&t, PACKET_NOTIFY, 2, "a");
    send(&t);
    assert_int_equal(client_rig_request(&t.r, 1).ttl_ms, 128);
    assert_int_equal(client_rig_request(&t.r, 1).flags, REQUEST_IDEMPOTENT);
    assert_int_equal(client_rig_request(&t.r, 2).ttl_ms, 10000);
    assert_int_equal(client_rig_request(&t.r, 2).flags, REQUEST_NO_REPLY);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("nobody hears it"));
    hears_nothing(&t);
    t.r.rig.now_us += second_us;
    client_rig_event(&t.r, (struct router_event){.type = ROUTER_TICK});
    hears_answer(&t, 1, STATUS_TIMEOUT);
    stop(&t);
}

/* Whatever its actor or node left out. */
static void every_status_but_ok_comes_with_a_text(void **state)
{
    static const struct {
        enum answer_code code;
        enum packet_status status;
        const char *why;
    } cases[] = {
        {ANSWER_OK, STATUS_OK, ""},
        {ANSWER_APP_ERROR, STATUS_ACTOR_FAILED, "the actor gave no reason"},
        {ANSWER_LOST,
         STATUS_UNKNOWN,
         "the node that had the request was lost: the request may have run, at most once"},
        {ANSWER_EXPIRED, STATUS_MOVING, "no node could run the request in time: it did not run"},
        {ANSWER_NO_KIND, STATUS_NO_OWNER, "no node hosts an actor of this kind and id"},
    };
    struct talk t;
    uint32_t n = 0;

    (void)state;
    start_greeted(&t);
    for (; n < sizeof cases / sizeof cases[0]; n++) {
        say(&t, PACKET_REQUEST, n + 1, "a");
        send(&t);
        client_rig_answer(&t.r, n + 1, cases[n].code, of(""));
        const struct response_packet r = hears_answer(&t, n + 1, cases[n].status);
        assert_true(bytes_equal(r.payload, of(cases[n].why)));
    }
    // Its node has no room, and is asked again for a second.
    say(&t, PACKET_REQUEST, ++n, "a");
    send(&t);
    client_rig_answer(&t.r, n, ANSWER_OVERLOAD, of(""));
    t.r.rig.now_us += 2 * second_us;
    client_rig_event(&t.r, (struct router_event){.type = ROUTER_TICK});
    client_rig_answer(&t.r, n + 1, ANSWER_OVERLOAD, of(""));
    hears_answer(&t, n, STATUS_OVERLOADED);
    say(&t, PACKET_REQUEST, ++n, "a");
    send(&t);
    t.r.rig.now_us += 11 * second_us;
    client_rig_event(&t.r, (struct router_event){.type = ROUTER_TICK});
    hears_answer(&t, n, STATUS_TIMEOUT);
    stop(&t);
}

static void what_did_not_run_says_when_to_come_again(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    say(&t, PACKET_REQUEST, 1, "a");
    say(&t, PACKET_REQUEST, 2, "b");
    say(&t, PACKET_REQUEST, 3, "c");
    send(&t);
    client_rig_answer(&t.r, 1, ANSWER_EXPIRED, of(""));
    assert_int_equal(hears_answer(&t, 1, STATUS_MOVING).retry_ms, 1000);
    client_rig_answer(&t.r, 2, ANSWER_NO_KIND, of(""));
    assert_int_equal(hears_answer(&t, 2, STATUS_NO_OWNER).retry_ms, 0);
    client_rig_answer(&t.r, 3, ANSWER_LOST, of(""));
    assert_int_equal(hears_answer(&t, 3, STATUS_UNKNOWN).retry_ms, 0);
    // A request that nobody took until its deadline.
    client_rig_event(&t.r, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = 1});
    say(&t, PACKET_REQUEST, 4, "d");
    send(&t);
    t.r.rig.now_us += 11 * second_us;
    client_rig_event(&t.r, (struct router_event){.type = ROUTER_TICK});
    assert_int_equal(hears_answer(&t, 4, STATUS_MOVING).retry_ms, 1000);
    stop(&t);
}

static void a_hello_that_comes_byte_by_byte_must_be_whole_in_time(void **state)
{
    const struct clients_config clients = clients_config_default();
    struct talk t;

    (void)state;
    start(&t, &clients);
    for (int i = 0; i < 6; i++) {
        client_rig_bytes(&t.r, t.c, bytes_of(&"\x01\x00\x00\x06RH"[i], 1));
        pass(&t, second_us);
    }
    hears_notice(&t, PACKET_KICK, PACKET_KICK_NO_HELLO);
    assert_true(client_is_done(t.c));
    stop(&t);
}

static void an_older_and_a_newer_client_are_told_who_is_to_be_upgraded(void **state)
{
    static const struct {
        uint8_t versions[2];
        const char *text; /* NULL: version 1 is taken */
    } cases[] = {
        {{1, 1}, NULL},
        {{0, 9}, NULL},
        {{2, 3}, "the client speaks versions 2 to 3, this gateway 1: upgrade the gateway"},
        {{255, 255}, "the client speaks versions 255 to 255, this gateway 1: upgrade the gateway"},
        {{0, 0}, "the client speaks versions 0 to 0, this gateway 1: upgrade the client"},
    };
    const struct clients_config clients = clients_config_default();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct notice_packet n = {0};
        struct talk t;

        start(&t, &clients);
        packet_put_hello(&t.said,
                         &(struct hello_packet){.version_min = cases[i].versions[0],
                                                .version_max = cases[i].versions[1]});
        send(&t);
        const struct packet p = hear(&t);
        assert_int_equal(p.type, cases[i].text == NULL ? PACKET_HELLO_ACK : PACKET_KICK);
        if (cases[i].text != NULL) {
            assert_int_equal(packet_get_notice(p.body, &n), ERR_OK);
            assert_int_equal(n.number, PACKET_KICK_VERSION);
            assert_true(bytes_equal(n.text, bytes_of(cases[i].text, strlen(cases[i].text))));
        }
        stop(&t);
    }
}

static void a_hello_must_come_in_time(void **state)
{
    const struct clients_config clients = clients_config_default();
    struct clients_stats f;
    struct talk t;

    (void)state;
    start(&t, &clients);
    pass(&t, 5 * second_us);
    hears_nothing(&t);
    assert_false(client_is_done(t.c));
    pass(&t, second_us);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_NO_HELLO);
    assert_true(client_is_done(t.c));
    clients_stats(t.r.all, &f);
    assert_int_equal(f.kicks[PACKET_KICK_NO_HELLO - PACKET_KICK_BAD_PACKET], 1);
    stop(&t);
}

static void who_is_silent_is_asked_and_then_kicked(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    pass(&t, 31 * second_us);
    assert_int_equal(hear(&t).type, PACKET_PING);
    pass(&t, second_us);
    hears_nothing(&t); // once is enough
    packet_put_ping(&t.said, PACKET_PONG, of(""));
    send(&t);
    pass(&t, 31 * second_us);
    assert_int_equal(hear(&t).type, PACKET_PING);
    pass(&t, 30 * second_us);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_SILENT);
    assert_true(client_is_done(t.c));
    stop(&t);
}

static void nothing_follows_a_kick(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    say(&t, PACKET_REQUEST, 1, "a");
    send(&t);
    buffer_put(&t.said, "\x63\0\0\0", 4);
    say(&t, PACKET_REQUEST, 2, "a");
    send(&t);
    assert_int_equal(t.r.request_count, 1);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_BAD_PACKET);
    client_rig_answer(&t.r, 1, ANSWER_OK, of("late"));
    hears_nothing(&t);
    assert_true(client_is_done(t.c));
    stop(&t);
}

static void more_than_the_limit_is_not_read(void **state)
{
    struct clients_config clients = clients_config_default();
    struct talk t;

    (void)state;
    clients.in_flight_max = 2;
    start(&t, &clients);
    greet(&t);
    for (uint32_t i = 1; i <= 5; i++) {
        say(&t, PACKET_REQUEST, i, "a");
    }
    send(&t);
    assert_int_equal(t.r.request_count, 2);
    assert_false(client_wants_input(t.c));
    assert_false(client_has_input(t.c));
    pass(&t, 100 * second_us);
    hears_nothing(&t); // it is not listened to, so it is not silent
    t.r.rig.now_us -= 100 * second_us;
    client_rig_answer(&t.r, 1, ANSWER_OK, of("x"));
    assert_true(client_has_input(t.c));
    client_resume(t.c, t.r.rig.now_us, &t.r.effects);
    client_rig_do_effects(&t.r);
    assert_int_equal(t.r.request_count, 3);
    hears_answer(&t, 1, STATUS_OK);
    stop(&t);
}

static void who_does_not_read_is_not_read_from_and_then_closed(void **state)
{
    struct clients_config clients = clients_config_default();
    static const uint8_t large[4000] = {0};
    struct talk t;

    (void)state;
    clients.unsent_max = 10000;
    start(&t, &clients);
    greet(&t);
    for (uint32_t i = 1; client_wants_input(t.c); i++) {
        say(&t, PACKET_REQUEST, i, "a");
        send(&t);
        client_rig_answer(&t.r, i, ANSWER_OK, bytes_of(large, sizeof large));
        assert_true(i < 10);
    }
    assert_true(client_output(t.c).size < 10000 + sizeof large);
    t.r.rig.now_us += 59 * second_us;
    assert_false(client_is_stuck(t.c, t.r.rig.now_us));
    t.r.rig.now_us += 2 * second_us;
    assert_true(client_is_stuck(t.c, t.r.rig.now_us));
    stop(&t);
}

static void a_client_that_hangs_up_gets_its_answers_first(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    say(&t, PACKET_REQUEST, 1, "a");
    send(&t);
    client_on_end(t.c);
    assert_false(client_is_done(t.c));
    client_rig_answer(&t.r, 1, ANSWER_OK, of("x"));
    assert_false(client_is_done(t.c));
    hears_answer(&t, 1, STATUS_OK);
    assert_true(client_is_done(t.c));
    stop(&t);
}

static void a_gateway_that_stops_takes_no_new_requests(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    say(&t, PACKET_REQUEST, 1, "a");
    send(&t);
    client_drain(t.c, t.r.rig.now_us);
    hears_notice(&t, PACKET_GOAWAY, 100);
    say(&t, PACKET_REQUEST, 2, "a");
    say(&t, PACKET_NOTIFY, 3, "a");
    send(&t);
    assert_int_equal(hears_answer(&t, 2, STATUS_MOVING).retry_ms, 100);
    assert_int_equal(t.r.request_count, 1);
    client_rig_answer(&t.r, 1, ANSWER_OK, of("x"));
    hears_answer(&t, 1, STATUS_OK);
    assert_false(client_is_done(t.c)); // it may still be reading: the client closes
    client_on_end(t.c);
    assert_true(client_is_done(t.c));
    stop(&t);
}

static void one_too_many_is_sent_away(void **state)
{
    struct clients_config clients = clients_config_default();
    struct notice_packet n;
    struct admission_result a;
    struct packet p;
    struct talk t;

    (void)state;
    clients.connections_max = 1;
    start(&t, &clients);
    assert_false(clients_admit(t.r.all, CLIENT_PACKETS, "10.0.0.1:1", t.r.rig.now_us, &a));
    assert_int_equal(packet_next(a.refusal, PACKET_BODY_MAX, &p), PACKET_WHOLE);
    assert_int_equal(p.type, PACKET_GOAWAY);
    assert_int_equal(packet_get_notice(p.body, &n), ERR_OK);
    assert_in_range(n.number, 1000, 1500);
    stop(&t);
}

/* ---- sessions ---- */

static void bound(struct talk *t, size_t number, enum bound_result result)
{
    const struct bound b = {.result = (uint8_t)result, .round = 1, .stamp = {3, number}};
    struct buffer body = {0};

    bound_put(&body, &b);
    client_rig_answer(&t->r, number, ANSWER_OK, buffer_bytes(&body));
    buffer_fini(&body);
}

static void push(struct talk *t, enum push_type type, uint64_t number)
{
    const struct request_record q = client_rig_request(&t->r, 1);
    const struct push_record p = {.gateway = q.gateway,
                                  .connection = q.session,
                                  .round = 1,
                                  .number = number,
                                  .type = (uint8_t)type,
                                  .code = 1007,
                                  .payload = of("hey")};

    assert_non_null(clients_on_push(t->r.all, &p, t->r.rig.now_us));
}

static void pushes_follow_the_answer_to_the_bind(void **state)
{
    struct talk t;
    struct push_packet p;

    (void)state;
    start_greeted(&t);
    say(&t, PACKET_BIND, 1, "a");
    say(&t, PACKET_BIND, 2, "b");
    send(&t);
    hears_answer(&t, 2, STATUS_BAD_REQUEST);
    push(&t, PUSH_DATA, 1); // the actor was faster than its answer
    hears_nothing(&t);
    bound(&t, 1, BOUND_NEW);
    hears_answer(&t, 1, STATUS_OK);
    const struct packet first = hear(&t);
    assert_int_equal(first.type, PACKET_PUSH);
    assert_int_equal(packet_get_push(first.body, &p), ERR_OK);
    assert_int_equal(p.sequence, 1);
    assert_true(bytes_equal(p.payload, of("hey")));
    push(&t, PUSH_KICK, 2);
    hears_notice(&t, PACKET_KICK, 1007);
    assert_true(client_is_done(t.c));
    stop(&t);
}

static void a_bind_may_be_refused_and_a_bond_ended(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    packet_put_unbind(&t.said, 1);
    send(&t);
    hears_answer(&t, 1, STATUS_BAD_REQUEST);
    say(&t, PACKET_BIND, 2, "a");
    send(&t);
    bound(&t, 1, BOUND_NEVER);
    hears_answer(&t, 2, STATUS_REJECTED);
    say(&t, PACKET_BIND, 3, "a");
    send(&t);
    bound(&t, 2, BOUND_NEW);
    hears_answer(&t, 3, STATUS_OK);
    packet_put_unbind(&t.said, 4);
    send(&t);
    client_rig_answer(&t.r, 3, ANSWER_OK, of(""));
    hears_answer(&t, 4, STATUS_OK);
    stop(&t);
}

/* ---- hostile bytes ---- */

static void put_noise(struct prng *random, struct buffer *out)
{
    static const uint8_t types[] = {PACKET_PING,
                                    PACKET_PONG,
                                    PACKET_REQUEST,
                                    PACKET_NOTIFY,
                                    PACKET_BIND,
                                    PACKET_UNBIND,
                                    PACKET_OPTIONAL};
    const uint64_t size = prng_between(random, 4, 24);
    const uint8_t type = prng_chance(random, 5) ? (uint8_t)prng_between(random, 0, 255)
                                                : types[prng_between(random, 0, sizeof types - 1)];
    const uint8_t head[4] = {type, 0, 0, (uint8_t)size};

    buffer_put(out, head, sizeof head);
    for (uint64_t i = 0; i < size; i++) {
        const uint8_t byte = (uint8_t)prng_between(random, 0, prng_chance(random, 10) ? 255 : 4);

        buffer_put(out, &byte, 1);
    }
}

/* Feed it in pieces of `step`; returns what it made of that: requests and all output. */
static size_t feed(struct bytes in, size_t step, struct buffer *out)
{
    struct talk t;

    start_greeted(&t);
    for (size_t at = 0; at < in.size; at += step) {
        const size_t size = in.size - at < step ? in.size - at : step;

        client_rig_bytes(&t.r, t.c, bytes_of(in.data + at, size));
    }
    const struct bytes said = client_output(t.c);
    const size_t requests = t.r.request_count;

    buffer_put(out, said.data, said.size);
    stop(&t);
    return requests;
}

static void any_bytes_mean_the_same_however_they_are_cut(void **state)
{
    struct prng random = {.state = 7};
    size_t requests = 0;

    (void)state;
    for (int i = 0; i < 400; i++) {
        struct buffer noise = {0};
        struct buffer whole = {0};
        struct buffer cut = {0};

        for (int n = 0; n < 8; n++) {
            put_noise(&random, &noise);
        }
        const size_t count = feed(buffer_bytes(&noise), noise.size, &whole);

        assert_int_equal(feed(buffer_bytes(&noise), prng_between(&random, 1, 7), &cut), count);
        assert_true(bytes_equal(buffer_bytes(&whole), buffer_bytes(&cut)));
        requests += count;
        buffer_fini(&noise);
        buffer_fini(&whole);
        buffer_fini(&cut);
    }
    assert_true(requests > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_as_they_are_made),
        cmocka_unit_test(flags_and_deadlines_reach_the_node),
        cmocka_unit_test(every_status_but_ok_comes_with_a_text),
        cmocka_unit_test(what_did_not_run_says_when_to_come_again),
        cmocka_unit_test(an_older_and_a_newer_client_are_told_who_is_to_be_upgraded),
        cmocka_unit_test(a_hello_must_come_in_time),
        cmocka_unit_test(a_hello_that_comes_byte_by_byte_must_be_whole_in_time),
        cmocka_unit_test(who_is_silent_is_asked_and_then_kicked),
        cmocka_unit_test(nothing_follows_a_kick),
        cmocka_unit_test(more_than_the_limit_is_not_read),
        cmocka_unit_test(who_does_not_read_is_not_read_from_and_then_closed),
        cmocka_unit_test(a_client_that_hangs_up_gets_its_answers_first),
        cmocka_unit_test(a_gateway_that_stops_takes_no_new_requests),
        cmocka_unit_test(one_too_many_is_sent_away),
        cmocka_unit_test(pushes_follow_the_answer_to_the_bind),
        cmocka_unit_test(a_bind_may_be_refused_and_a_bond_ended),
        cmocka_unit_test(any_bytes_mean_the_same_however_they_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
