/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may come in, and how much a client may ask.
 */
#include "tests/gateway/packet_talk.h"

static const uint64_t second_us = 1000000;

static struct clients_stats stats(const struct talk *t)
{
    struct clients_stats f;

    clients_stats(t->r.all, &f);
    return f;
}

static struct client *let_in(struct talk *t, enum client_speech speech, const char *address)
{
    struct admission_result a;

    if (!clients_admit(t->r.all, speech, address, t->r.rig.now_us, &a)) {
        assert_true(a.refusal.size > 0);
        return NULL;
    }
    struct client *c = client_new(t->r.all, speech, address, t->r.rig.now_us);
    client_let_in(c, a.client_address);
    return c;
}

/* It is told to go, and when to come back. */
static uint32_t refused(struct talk *t, const char *address)
{
    struct admission_result a;
    struct packet p;
    struct notice_packet n = {0};

    assert_false(clients_admit(t->r.all, CLIENT_PACKETS, address, t->r.rig.now_us, &a));
    assert_int_equal(packet_next(a.refusal, PACKET_BODY_MAX, &p), PACKET_WHOLE);
    assert_int_equal(p.body.size + PACKET_HEADER, a.refusal.size);
    assert_int_equal(p.type, PACKET_GOAWAY);
    assert_int_equal(packet_get_notice(p.body, &n), ERR_OK);
    return n.number;
}

static void requests_are_so_many_a_second_and_the_others_are_told_when(void **state)
{
    struct clients_config clients = clients_config_default();
    struct talk t;

    (void)state;
    clients.requests = (struct bucket_rate){.rate = 10, .burst = 2};
    start(&t, &clients);
    greet(&t);
    say(&t, PACKET_REQUEST, 1, "a");
    say(&t, PACKET_NOTIFY, 2, "a");
    say(&t, PACKET_REQUEST, 3, "a");
    say(&t, PACKET_NOTIFY, 4, "a");
    say(&t, PACKET_BIND, 5, "a");
    packet_put_ping(&t.said, PACKET_PING, (struct bytes){NULL, 0}); // is no request
    send(&t);
    assert_in_range(hears_answer(&t, 3, STATUS_RATE_LIMITED).retry_ms, 100, 101);
    assert_in_range(hears_answer(&t, 5, STATUS_RATE_LIMITED).retry_ms, 100, 101);
    assert_int_equal(hear(&t).type, PACKET_PONG);
    hears_nothing(&t);
    assert_int_equal(t.r.request_count, 2);
    assert_int_equal(stats(&t).rate_limited, 3);
    pass(&t, 101000);
    say(&t, PACKET_REQUEST, 6, "a");
    say(&t, PACKET_REQUEST, 7, "a");
    send(&t);
    (void)hears_answer(&t, 7, STATUS_RATE_LIMITED);
    assert_int_equal(t.r.request_count, 3);
    stop(&t);
}

static void operators_get_in_while_players_are_turned_away(void **state)
{
    struct clients_config clients = clients_config_default();
    struct client *player[126];
    char address[32];
    struct client *tool[2];
    struct talk t;

    (void)state;
    clients.connections_max = 128; // of which two are for tools
    start(&t, &clients);           // one is here
    for (size_t i = 0; i < 125; i++) {
        assert_true(clients_ready(t.r.all, t.r.rig.now_us));
        (void)snprintf(address, sizeof address, "10.0.0.%zu:1", i + 1);
        assert_non_null(player[i] = let_in(&t, CLIENT_PACKETS, address));
    }
    assert_false(clients_ready(t.r.all, t.r.rig.now_us));
    assert_in_range(refused(&t, "10.0.0.1:1"), 1000, 1300);
    assert_non_null(tool[0] = let_in(&t, CLIENT_RESP, "10.0.0.1:1"));
    assert_non_null(tool[1] = let_in(&t, CLIENT_RESP, "10.0.0.1:1"));
    assert_null(let_in(&t, CLIENT_RESP, "10.0.0.1:1"));
    assert_int_equal(stats(&t).refused, 2);
    assert_int_equal(stats(&t).refused_full, 1);
    for (size_t i = 0; i < 125; i++) {
        client_rig_free(&t.r, player[i]);
    }
    assert_false(clients_ready(t.r.all, t.r.rig.now_us)); // somebody was told to come back
    assert_true(clients_ready(t.r.all, t.r.rig.now_us + 2 * second_us));
    client_rig_free(&t.r, tool[0]);
    client_rig_free(&t.r, tool[1]);
    stop(&t);
}

static void an_address_leaves_room_for_others(void **state)
{
    enum { MAX = 90, SHARE = 80 };
    struct clients_config clients = clients_config_default();
    struct client *c[MAX];
    struct talk t;
    size_t here = 0;

    (void)state;
    clients.connections_max = MAX;
    start(&t, &clients);
    // All of a network are one address.
    while ((c[here] = let_in(&t, CLIENT_PACKETS, here % 2 == 0 ? "[fe80::1]:1" : "[fe80::2]:2"))) {
        here++;
    }
    assert_in_range(here, SHARE - 2, SHARE);
    assert_int_equal(stats(&t).refused_address_share, 1);
    assert_int_equal(stats(&t).refused_full, 0);
    assert_non_null(c[here++] = let_in(&t, CLIENT_PACKETS, "[fe80:0:0:1::1]:1"));
    assert_non_null(c[here++] = let_in(&t, CLIENT_RESP, "[fe80::1]:1")); // tools are not asked
    while (here > 0) {
        client_rig_free(&t.r, c[--here]);
    }
    stop(&t);
}

/* Another client that asks `id` so often, in one write. */
static struct client *asks(struct talk *t, const char *address, const char *id, uint32_t count)
{
    t->c = client_new(t->r.all, CLIENT_PACKETS, address, t->r.rig.now_us);
    greet(t);
    for (uint32_t i = 1; i <= count; i++) {
        say(t, PACKET_REQUEST, i, id);
    }
    send(t);
    return t->c;
}

static void where_nobody_is_known_an_entity_and_an_address_leave_room_for_others(void **state)
{
    enum { ROOM = 180, LEAST = 32 };
    const struct clients_config clients = clients_config_default();
    struct router_config router = router_config_default();
    struct client *c[8];
    struct talk t = {0};

    (void)state;
    router.in_flight_max = ROOM;
    router.window = ROOM;
    client_rig_init(&t.r, &clients, &router);
    client_rig_ring(&t.r);
    c[0] = asks(&t, "10.0.0.1:1", "hot", ROOM); // half of it, and the one that was too much
    assert_int_equal(t.r.request_count, ROOM / 2 + 1);
    assert_true(client_rests(c[0]));
    c[1] = asks(&t, "10.0.0.2:1", "hot", 2);
    assert_int_equal(t.r.request_count, ROOM / 2 + 2);
    assert_true(client_rests(c[1]));
    assert_int_equal(stats(&t).rests_entity, 2);
    c[2] = asks(&t, "10.0.0.2:1", "cold", 10); // by another line of the same
    assert_int_equal(t.r.request_count, ROOM / 2 + 12);
    assert_false(client_rests(c[2]));
    // Of many entities one address has no more than eight of nine.
    c[3] = asks(&t, "10.0.0.3:1", "a", LEAST);
    c[4] = asks(&t, "10.0.0.1:1", "b", 20);
    c[5] = asks(&t, "10.0.0.1:1", "c", LEAST);
    assert_true(client_rests(c[5]));
    assert_int_equal(stats(&t).rests_origin, 1);
    assert_int_equal(stats(&t).rests_entity, 2);
    assert_false(router_full(t.r.rig.router));
    const size_t before = t.r.request_count;
    c[6] = asks(&t, "10.0.0.4:1", "d", 3);
    assert_int_equal(t.r.request_count, before + 3);
    for (size_t i = 1; i <= before; i++) {
        client_rig_answer(&t.r, i, ANSWER_OK, of("x"));
    }
    client_wake(c[5], t.r.rig.now_us);
    assert_false(client_rests(c[5]));
    for (size_t i = 0; i < 7; i++) {
        client_rig_free(&t.r, c[i]);
    }
    client_rig_fini(&t.r);
    buffer_fini(&t.said);
    buffer_fini(&t.heard);
}

static void each_limit_of_the_admission_is_counted_by_its_name(void **state)
{
    struct clients_config clients = clients_config_default();
    struct client *c[4];
    struct talk t;

    (void)state;
    clients.admission = (struct admission_config){
        .accept = {10, 4}, .address = {10, 3}, .address_count_max = 2, .seed = 3};
    start(&t, &clients);
    assert_non_null(c[0] = let_in(&t, CLIENT_PACKETS, "10.0.0.1:1"));
    assert_non_null(c[1] = let_in(&t, CLIENT_PACKETS, "10.0.0.1:2"));
    assert_in_range(refused(&t, "10.0.0.1:3"), 5000, 6500);
    assert_int_equal(stats(&t).refused_address_count, 1);
    client_rig_free(&t.r, c[1]);
    assert_non_null(c[1] = let_in(&t, CLIENT_PACKETS, "10.0.0.1:4"));
    client_rig_free(&t.r, c[1]);
    assert_true(refused(&t, "10.0.0.1:5") > 0);
    assert_int_equal(stats(&t).refused_address_rate, 1);
    assert_non_null(c[2] = let_in(&t, CLIENT_PACKETS, "10.0.0.2:1"));
    assert_true(clients_ready(t.r.all, t.r.rig.now_us));
    assert_in_range(refused(&t, "10.0.0.3:1"), 100, 300);
    assert_int_equal(stats(&t).refused_accept_rate, 1);
    assert_false(clients_ready(t.r.all, t.r.rig.now_us));
    assert_non_null(c[3] = let_in(&t, CLIENT_RESP, "10.0.0.1:5")); // is asked nothing of this
    assert_int_equal(stats(&t).refused, 3);
    client_rig_free(&t.r, c[0]);
    client_rig_free(&t.r, c[2]);
    client_rig_free(&t.r, c[3]);
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_so_many_a_second_and_the_others_are_told_when),
        cmocka_unit_test(operators_get_in_while_players_are_turned_away),
        cmocka_unit_test(an_address_leaves_room_for_others),
        cmocka_unit_test(where_nobody_is_known_an_entity_and_an_address_leave_room_for_others),
        cmocka_unit_test(each_limit_of_the_admission_is_counted_by_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
