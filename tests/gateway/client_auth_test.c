/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that have to say who they are.
 */
#include "gateway/access/token.h"
#include "tests/gateway/packet_talk.h"

static const uint64_t second_us = 1000000;
static const uint64_t now_s = 1700000000;

static struct keyring keys_named(const char *first, const char *second)
{
    struct keyring keys = {.count = second == NULL ? 1 : 2};

    (void)snprintf(keys.key[0].name, sizeof keys.key[0].name, "%s", first);
    (void)snprintf(keys.key[1].name, sizeof keys.key[1].name, "%s", second == NULL ? "" : second);
    for (size_t i = 0; i < 2; i++) {
        keys.key[i].size = KEYRING_SECRET_MIN;
        memset(keys.key[i].secret, keys.key[i].name[0], KEYRING_SECRET_MIN); // its name's letter
    }
    return keys;
}

static struct clients_config config(void)
{
    struct clients_config clients = clients_config_default();

    (void)snprintf(clients.cluster, sizeof clients.cluster, "here");
    return clients;
}

/* A gateway with key "a", and a client that was told so. */
static void start_asked(struct talk *t, const struct clients_config *clients)
{
    const struct keyring keys = keys_named("a", NULL);

    start(t, clients);
    client_rig_free(&t->r, t->c); // it came before there were keys
    clients_set_keys(t->r.all, &keys);
    clients_set_unix(t->r.all, now_s);
    come_asked(t);
}

static struct clients_stats stats(const struct talk *t)
{
    struct clients_stats f;

    clients_stats(t->r.all, &f);
    return f;
}

static uint64_t kicked(const struct talk *t, enum packet_kick code)
{
    return stats(t).kicks[code - PACKET_KICK_BAD_PACKET];
}

/* For id "me" of kind 0. */
static void show(struct talk *t, const char *key, const char *cluster, uint64_t expires_s)
{
    const struct keyring keys = keys_named(key, NULL);
    struct token token = {.expires_s = expires_s, .id_size = 2, .id = {'m', 'e'}};
    struct buffer text = {0};

    (void)snprintf(token.cluster, sizeof token.cluster, "%s", cluster);
    assert_int_equal(token_put(&text, &token, &keys.key[0]), ERR_OK);
    packet_put_auth(&t->said, buffer_bytes(&text));
    buffer_fini(&text);
}

static void be_known(struct talk *t)
{
    struct auth_ok_packet ok;

    show(t, "a", "here", now_s + 60);
    send(t);
    const struct packet p = hear(t);
    assert_int_equal(p.type, PACKET_AUTH_OK);
    assert_int_equal(packet_get_auth_ok(p.body, &ok), ERR_OK);
    assert_true(bytes_equal(ok.id, of("me")));
    assert_int_equal(ok.kind, 0);
    assert_int_equal(ok.expires_s, now_s + 60);
}

static void who_is_known_asks_its_own_entity_alone(void **state)
{
    const struct clients_config clients = config();
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    assert_int_equal(stats(&t).unauthenticated, 1);
    be_known(&t);
    assert_int_equal(stats(&t).unauthenticated, 0);
    assert_int_equal(stats(&t).authenticated, 1);
    say(&t, PACKET_REQUEST, 1, "me");
    say(&t, PACKET_REQUEST, 2, "you");
    say(&t, PACKET_BIND, 3, "you");
    say(&t, PACKET_NOTIFY, 4, "you");
    packet_put_request(
        &t.said, PACKET_REQUEST, &(struct request_packet){.request = 5, .kind = 1, .id = of("me")});
    send(&t);
    hears_answer(&t, 2, STATUS_UNAUTHORIZED);
    hears_answer(&t, 3, STATUS_UNAUTHORIZED);
    hears_answer(&t, 5, STATUS_UNAUTHORIZED);
    hears_nothing(&t);
    assert_int_equal(t.r.request_count, 1);
    assert_int_equal(stats(&t).unauthorized, 4);
    client_rig_answer(&t.r, 1, ANSWER_OK, of("x"));
    hears_answer(&t, 1, STATUS_OK);
    pass(&t, 10 * second_us); // the time to say it is over: it did
    say(&t, PACKET_BIND, 6, "me");
    send(&t);
    assert_int_equal(t.r.request_count, 2);
    stop(&t);
}

static void all_may_come_in_one_write(void **state)
{
    const struct clients_config clients = config();
    const struct keyring keys = keys_named("a", NULL);
    struct talk t;

    (void)state;
    start(&t, &clients);
    client_rig_free(&t.r, t.c);
    clients_set_keys(t.r.all, &keys);
    clients_set_unix(t.r.all, now_s);
    t.c = client_new(t.r.all, CLIENT_PACKETS, "10.0.0.1:999", t.r.rig.now_us);
    packet_put_hello(&t.said, &(struct hello_packet){.version_min = 1, .version_max = 1});
    show(&t, "a", "here", now_s + 1);
    say(&t, PACKET_REQUEST, 1, "me");
    send(&t);
    assert_int_equal(hear(&t).type, PACKET_HELLO_ACK);
    assert_int_equal(hear(&t).type, PACKET_AUTH_OK);
    assert_int_equal(t.r.request_count, 1);
    stop(&t);
}

static void each_bad_token_has_its_code(void **state)
{
    static const struct {
        const char *key;
        const char *cluster;
        uint64_t expires_s;
        enum packet_kick code;
    } bad[] = {
        {"b", "here", 1700000060, PACKET_KICK_TOKEN_UNKNOWN_KEY},
        {"a", "there", 1700000060, PACKET_KICK_TOKEN_FOREIGN},
        {"a", "here", 1700000000, PACKET_KICK_TOKEN_EXPIRED},
        {"a", "here", 0, PACKET_KICK_TOKEN_EXPIRED},
    };
    const struct clients_config clients = config();

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct talk t;

        start_asked(&t, &clients);
        show(&t, bad[i].key, bad[i].cluster, bad[i].expires_s);
        say(&t, PACKET_REQUEST, 1, "me"); // and what follows is not heard
        send(&t);
        hears_notice(&t, PACKET_KICK, bad[i].code);
        hears_nothing(&t);
        assert_true(client_is_done(t.c));
        assert_int_equal(kicked(&t, bad[i].code), 1);
        assert_int_equal(t.r.request_count, 0);
        stop(&t);
    }
}

static void a_forged_token_and_none_are_told_apart(void **state)
{
    const struct clients_config clients = config();
    struct keyring keys = keys_named("a", NULL);
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    keys.key[0].secret[0] ^= 1;
    clients_set_keys(t.r.all, &keys);
    show(&t, "a", "here", now_s + 60);
    send(&t);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_TOKEN_FORGED);
    stop(&t);
    start_asked(&t, &clients);
    packet_put_auth(&t.said, of("let me in"));
    send(&t);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_TOKEN_MALFORMED);
    stop(&t);
}

static void a_key_is_replaced_while_clients_stay(void **state)
{
    const struct clients_config clients = config();
    const struct keyring both = keys_named("a", "b");
    const struct keyring last = keys_named("b", NULL);
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    clients_set_keys(t.r.all, &both);
    be_known(&t); // by the old one
    clients_set_keys(t.r.all, &last);
    say(&t, PACKET_REQUEST, 1, "me");
    send(&t);
    assert_int_equal(t.r.request_count, 1);
    stop(&t);
    start_asked(&t, &clients);
    clients_set_keys(t.r.all, &both);
    show(&t, "b", "here", now_s + 60);
    send(&t);
    assert_int_equal(hear(&t).type, PACKET_AUTH_OK);
    stop(&t);
    start_asked(&t, &clients);
    clients_set_keys(t.r.all, &last);
    show(&t, "a", "here", now_s + 60);
    send(&t);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_TOKEN_UNKNOWN_KEY);
    stop(&t);
}

static void a_stranger_may_ping_and_nothing_else(void **state)
{
    static const enum packet_type types[] = {
        PACKET_REQUEST, PACKET_NOTIFY, PACKET_BIND, PACKET_UNBIND, PACKET_HELLO, PACKET_RESUME};
    const struct clients_config clients = config();
    struct talk t;

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        start_asked(&t, &clients);
        packet_put_ping(&t.said, PACKET_PING, of("hey"));
        packet_put_ping(&t.said, (enum packet_type)0x81, of("of a later version"));
        send(&t);
        assert_int_equal(hear(&t).type, PACKET_PONG);
        say(&t, types[i], 1, "me");
        send(&t);
        hears_notice(&t, PACKET_KICK, PACKET_KICK_NO_AUTH);
        assert_int_equal(t.r.request_count, 0);
        stop(&t);
    }
}

/* Who had to wait goes on, if it may. */
static void ticks(struct talk *t)
{
    t->r.rig.now_us += 100000;
    client_wake(t->c, t->r.rig.now_us);
    if (client_has_input(t->c)) {
        client_resume(t->c, t->r.rig.now_us, &t->r.effects);
        client_rig_do_effects(&t->r);
    }
}

static void what_is_refused_is_slow(void **state)
{
    enum { ASKED = 40, AT_ONCE = 16 };
    const struct clients_config clients = config();
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    be_known(&t);
    for (uint32_t i = 1; i <= ASKED; i++) {
        say(&t, i % 2 == 0 ? PACKET_REQUEST : PACKET_NOTIFY, i, "you");
    }
    send(&t);
    for (uint64_t told = AT_ONCE; told < ASKED; told += AT_ONCE) {
        assert_int_equal(stats(&t).unauthorized, told);
        assert_int_equal(stats(&t).rests_spent, told / AT_ONCE);
        assert_false(client_wants_input(t.c));
        ticks(&t);
    }
    assert_int_equal(stats(&t).unauthorized, ASKED);
    assert_true(client_wants_input(t.c));
    stop(&t);
}

static void a_stranger_may_hold_little(void **state)
{
    const struct clients_config clients = config();
    static const uint8_t zeros[1025];
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    packet_put_auth(&t.said, bytes_of(zeros, sizeof zeros));
    send(&t);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_TOO_LARGE);
    stop(&t);
    start_asked(&t, &clients);
    for (int i = 0; i < 200; i++) { // that it does not read
        packet_put_ping(&t.said, PACKET_PING, bytes_of(zeros, PACKET_PING_MAX));
        send(&t);
        ticks(&t);
    }
    assert_int_equal(kicked(&t, PACKET_KICK_NO_AUTH), 1);
    assert_true(client_output(t.c).size < 5000);
    stop(&t);
}

static void a_stranger_has_five_seconds(void **state)
{
    const struct clients_config clients = config();
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    for (int i = 0; i < 5; i++) { // talking does not help
        packet_put_ping(&t.said, PACKET_PING, of("x"));
        send(&t);
        assert_int_equal(hear(&t).type, PACKET_PONG);
        pass(&t, second_us);
        hears_nothing(&t);
    }
    pass(&t, second_us);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_NO_AUTH);
    assert_true(client_is_done(t.c));
    stop(&t);
}

static void nobody_says_who_it_is_twice(void **state)
{
    const struct clients_config clients = config();
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    be_known(&t);
    show(&t, "a", "here", now_s + 60);
    send(&t);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_BAD_PACKET);
    stop(&t);
    start_greeted(&t); // and nobody to a gateway without keys
    show(&t, "a", "here", now_s + 60);
    send(&t);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_BAD_PACKET);
    stop(&t);
}

static bool comes_in(struct talk *t, enum client_speech speech, const char *address,
                     struct client **out)
{
    struct admission_result a;
    const bool may = clients_admit(t->r.all, speech, address, t->r.rig.now_us, &a);

    assert_true(may == (a.refusal.size == 0));
    if (may) {
        *out = client_new(t->r.all, speech, address, t->r.rig.now_us);
        client_let_in(*out, a.client_address);
    }
    return may;
}

/* One more connection of "me". */
static struct client *comes_known(struct talk *t)
{
    come_asked(t);
    be_known(t);
    return t->c;
}

/* Many connections that are refused much at a time do not wake at a time. */
static void who_is_refused_wakes_at_a_time_of_its_own(void **state)
{
    enum { LINES = 20, AT_ONCE = 16 };
    const struct clients_config clients = config();
    const struct keyring keys = keys_named("a", NULL);
    struct client *c[LINES];
    struct talk t;

    (void)state;
    start(&t, &clients);
    struct client *other = t.c;
    clients_set_keys(t.r.all, &keys);
    clients_set_unix(t.r.all, now_s);
    for (size_t i = 0; i < LINES; i++) {
        c[i] = comes_known(&t);
        for (uint32_t k = 1; k <= 2 * AT_ONCE; k++) {
            say(&t, PACKET_REQUEST, k, "you");
        }
        send(&t);
    }
    assert_int_equal(stats(&t).unauthorized, LINES * AT_ONCE);
    assert_int_equal(stats(&t).rests_spent, LINES);
    const uint64_t begun_us = t.r.rig.now_us;
    size_t awake = 0;
    for (uint64_t ms = 0; ms < 200; ms++) {
        size_t woke = 0;

        for (size_t i = 0; i < LINES; i++) {
            const bool rested = client_rests(c[i]);

            client_wake(c[i], begun_us + ms * 1000);
            woke += rested && !client_rests(c[i]);
        }
        assert_true(woke <= 1 && (woke == 0 || ms >= 100));
        awake += woke;
    }
    assert_int_equal(awake, LINES);
    for (size_t i = 0; i < LINES; i++) {
        client_rig_free(&t.r, c[i]);
    }
    t.c = other;
    stop(&t);
}

static void who_is_known_has_one_share_by_all_its_connections(void **state)
{
    enum { LINES = 10, EACH = 64, SHARE = 128 };
    const struct clients_config clients = config();
    const struct keyring keys = keys_named("a", NULL);
    struct client *c[LINES];
    struct talk t;

    (void)state;
    start(&t, &clients);
    struct client *other = t.c; // nobody asked it who it is
    clients_set_keys(t.r.all, &keys);
    clients_set_unix(t.r.all, now_s);
    for (size_t i = 0; i < LINES; i++) {
        c[i] = comes_known(&t);
        for (uint32_t k = 1; k <= EACH; k++) {
            say(&t, k % 2 == 0 ? PACKET_REQUEST : PACKET_NOTIFY, k, "me");
        }
        send(&t);
    }
    // Each that is too much took one more. Those that are told without an answer count as well.
    const size_t taken = t.r.request_count;
    assert_true(taken <= SHARE + LINES);
    assert_true(stats(&t).rests_entity >= LINES - SHARE / EACH - 1);
    assert_true(!client_rests(c[0]) && client_rests(c[LINES - 1]));
    assert_false(client_wants_input(c[LINES - 1]) || client_has_input(c[LINES - 1]));
    client_wake(c[LINES - 1], t.r.rig.now_us);
    assert_true(client_rests(c[LINES - 1]));
    // Nobody else waits.
    t.c = other;
    greet(&t);
    say(&t, PACKET_REQUEST, 7, "you");
    send(&t);
    assert_int_equal(t.r.request_count, taken + 1);
    // When one has been answered the others go on, also when its connection has gone.
    client_rig_free(&t.r, c[0]);
    for (size_t i = 1; i <= EACH; i++) {
        client_rig_answer(&t.r, i, ANSWER_OK, of("x"));
    }
    client_wake(c[LINES - 1], t.r.rig.now_us);
    assert_false(client_rests(c[LINES - 1]));
    assert_true(client_has_input(c[LINES - 1]));
    client_resume(c[LINES - 1], t.r.rig.now_us, &t.r.effects);
    client_rig_do_effects(&t.r);
    assert_true(t.r.request_count > taken + 1);
    router_check(t.r.rig.router);
    for (size_t i = 1; i < LINES; i++) {
        client_rig_free(&t.r, c[i]);
    }
    stop(&t);
}

static void one_entity_has_its_share_of_connections(void **state)
{
    enum { COME = 30, MAX = 200 };
    struct clients_config clients = config();
    struct client *c[COME] = {NULL};
    size_t here = 0;
    struct talk t;

    (void)state;
    clients.connections_max = MAX;
    start_asked(&t, &clients);
    c[here++] = t.c;
    be_known(&t);
    while (here < COME && stats(&t).refused_entity_share == 0) {
        come_asked(&t);
        c[here++] = t.c;
        show(&t, "a", "here", now_s + 60);
        send(&t);
        assert_true(hear(&t).type == PACKET_AUTH_OK || stats(&t).refused_entity_share == 1);
    }
    assert_in_range(here, (MAX - COME) / 8, MAX / 8); // an eighth of what is free
    assert_true(client_is_done(c[here - 1]));
    assert_int_equal(stats(&t).refused, 1);
    client_rig_free(&t.r, c[0]); // makes room
    c[0] = comes_known(&t);
    for (size_t i = 0; i + 1 < here; i++) {
        client_rig_free(&t.r, c[i]);
    }
    t.c = c[here - 1];
    stop(&t);
}

static void unauthenticated_are_few_from_one_address_and_in_all(void **state)
{
    struct clients_config clients = config();
    struct client *c[5] = {NULL};
    struct talk t;

    (void)state;
    clients.unauthenticated_address_max = 2;
    clients.unauthenticated_max = 4;
    start_asked(&t, &clients); // from 10.0.0.1
    assert_true(comes_in(&t, CLIENT_PACKETS, "10.0.0.1:1", &c[0]));
    assert_false(comes_in(&t, CLIENT_PACKETS, "10.0.0.1:2", &c[1]));
    assert_true(comes_in(&t, CLIENT_PACKETS, "[fe80::1]:1", &c[1]));
    assert_true(comes_in(&t, CLIENT_PACKETS, "[fe80::2]:1", &c[2]));
    assert_false(comes_in(&t, CLIENT_PACKETS, "[fe80:0:0:0:1::3]:1", &c[3])); // one network
    assert_int_equal(stats(&t).refused_address, 2);
    assert_false(comes_in(&t, CLIENT_PACKETS, "10.0.0.2:1", &c[3]));
    assert_int_equal(stats(&t).refused_unauthenticated, 1);
    assert_int_equal(stats(&t).refused, 3);
    assert_true(comes_in(&t, CLIENT_RESP, "10.0.0.1:3", &c[3])); // tools are no strangers
    be_known(&t);                                                // makes room
    assert_true(comes_in(&t, CLIENT_PACKETS, "10.0.0.1:4", &c[4]));
    client_rig_free(&t.r, c[2]); // and so does going
    assert_true(comes_in(&t, CLIENT_PACKETS, "10.0.0.2:1", &c[2]));
    assert_int_equal(stats(&t).unauthenticated, 4);
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        client_rig_free(&t.r, c[i]);
    }
    assert_int_equal(stats(&t).unauthenticated, 0);
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_known_asks_its_own_entity_alone),
        cmocka_unit_test(all_may_come_in_one_write),
        cmocka_unit_test(each_bad_token_has_its_code),
        cmocka_unit_test(a_forged_token_and_none_are_told_apart),
        cmocka_unit_test(a_key_is_replaced_while_clients_stay),
        cmocka_unit_test(a_stranger_may_ping_and_nothing_else),
        cmocka_unit_test(what_is_refused_is_slow),
        cmocka_unit_test(who_is_refused_wakes_at_a_time_of_its_own),
        cmocka_unit_test(a_stranger_may_hold_little),
        cmocka_unit_test(a_stranger_has_five_seconds),
        cmocka_unit_test(nobody_says_who_it_is_twice),
        cmocka_unit_test(who_is_known_has_one_share_by_all_its_connections),
        cmocka_unit_test(one_entity_has_its_share_of_connections),
        cmocka_unit_test(unauthenticated_are_few_from_one_address_and_in_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
