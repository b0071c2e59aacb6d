/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor says who a client is.
 */
#include "base/big.h"
#include "gateway/access/token.h"
#include "tests/gateway/packet_talk.h"

static const uint64_t second_us = 1000000;
static const uint64_t now_s = 1700000000;

static struct keyring one_key(void)
{
    struct keyring keys = {.count = 1};

    (void)snprintf(keys.key[0].name, sizeof keys.key[0].name, "a");
    keys.key[0].size = KEYRING_SECRET_MIN;
    memset(keys.key[0].secret, 'a', KEYRING_SECRET_MIN);
    return keys;
}

static struct clients_config config(void)
{
    struct clients_config clients = clients_config_default();

    (void)snprintf(clients.cluster, sizeof clients.cluster, "here");
    clients.login.asked = true;
    clients.login.kind = 3;
    return clients;
}

static void start_asked(struct talk *t, const struct clients_config *clients)
{
    start(t, clients);
    client_rig_free(&t->r, t->c);
    t->heard_at = t->heard.size;
    clients_set_unix(t->r.all, now_s);
    come_asked(t);
}

static struct clients_stats stats(const struct talk *t)
{
    struct clients_stats f;

    clients_stats(t->r.all, &f);
    return f;
}

static void show(struct talk *t, const char *credentials)
{
    packet_put_auth(&t->said, of(credentials));
    send(t);
}

/* What a login actor answers. */
static void name(struct talk *t, size_t number, uint64_t expires_s, const char *id)
{
    uint8_t body[64];
    uint8_t *at = big_put16(big_put64(body, expires_s), 7);

    at = big_put8(at, (uint8_t)strlen(id));
    memcpy(at, id, strlen(id));
    client_rig_answer(&t->r, number, ANSWER_OK, bytes_of(body, 11 + strlen(id)));
}

static struct auth_ok_packet hears_who(struct talk *t)
{
    const struct packet p = hear(t);
    struct auth_ok_packet ok = {0};

    assert_int_equal(p.type, PACKET_AUTH_OK);
    assert_int_equal(packet_get_auth_ok(p.body, &ok), ERR_OK);
    return ok;
}

static void ask(struct talk *t, uint32_t request, uint16_t kind, const char *id)
{
    packet_put_request(&t->said,
                       PACKET_REQUEST,
                       &(struct request_packet){.request = request, .kind = kind, .id = of(id)});
}

static void who_the_actor_names_is_that_entity(void **state)
{
    const struct clients_config clients = config();
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    packet_put_auth(&t.said, of("eve:secret"));
    ask(&t, 1, 7, "eve"); // in one write
    ask(&t, 2, 7, "bob");
    send(&t);
    hears_nothing(&t);
    const struct request_record q = client_rig_request(&t.r, 1);
    assert_int_equal(q.kind, 3);
    assert_int_equal(q.flags, REQUEST_IDEMPOTENT);
    assert_true(q.id.size >= 7 && memcmp(q.id.data, "login-", 6) == 0);
    assert_true(bytes_equal(q.body, of("eve:secret")));
    assert_int_equal(stats(&t).logins.under_way, 1);
    assert_int_equal(stats(&t).unauthenticated, 1);
    name(&t, 1, now_s + 60, "eve");
    const struct auth_ok_packet who = hears_who(&t);
    assert_int_equal(who.expires_s, now_s + 60);
    assert_int_equal(who.kind, 7);
    assert_true(bytes_equal(who.id, of("eve")));
    assert_int_equal(who.token.size, 0); // for there is no key
    assert_true(client_has_input(t.c));
    client_resume(t.c, t.r.rig.now_us, &t.r.effects);
    client_rig_do_effects(&t.r);
    hears_answer(&t, 2, STATUS_UNAUTHORIZED);
    assert_int_equal(t.r.request_count, 2);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("x"));
    hears_answer(&t, 1, STATUS_OK);
    assert_int_equal(stats(&t).logins.under_way, 0);
    assert_int_equal(stats(&t).logins.ok, 1);
    assert_int_equal(stats(&t).unauthenticated, 0);
    assert_int_equal(stats(&t).authenticated, 1);
    pass(&t, 10 * second_us); // the time to say it is over
    hears_nothing(&t);
    show(&t, "eve:secret"); // nobody logs in twice
    hears_notice(&t, PACKET_KICK, PACKET_KICK_BAD_PACKET);
    stop(&t);
}

static void with_keys_one_login_is_enough(void **state)
{
    const struct clients_config clients = config();
    const struct keyring keys = one_key();
    uint8_t text[TOKEN_TEXT_MAX];
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    clients_set_keys(t.r.all, &keys);
    show(&t, "eve:secret");
    name(&t, 1, now_s + 60, "eve");
    const struct bytes token = hears_who(&t).token;
    assert_true(token.size > 0 && token.size <= sizeof text);
    memcpy(text, token.data, token.size);
    client_rig_free(&t.r, t.c);
    come_asked(&t);
    packet_put_auth(&t.said, bytes_of(text, token.size));
    send(&t);
    const struct auth_ok_packet again = hears_who(&t);
    assert_int_equal(again.expires_s, now_s + 60);
    assert_int_equal(again.kind, 7);
    assert_true(bytes_equal(again.id, of("eve")));
    assert_int_equal(again.token.size, 0); // it has one
    assert_int_equal(t.r.request_count, 1);
    client_rig_free(&t.r, t.c);
    come_asked(&t);
    show(&t, "rh1.of.some.kind"); // is no credentials
    hears_notice(&t, PACKET_KICK, PACKET_KICK_TOKEN_MALFORMED);
    stop(&t);
}

static void one_that_is_rebound_is_that_entity_elsewhere_too(void **state)
{
    const struct clients_config clients = config();
    const struct keyring keys = one_key();
    struct bound bound = {.result = BOUND_NEW, .round = 1};
    struct buffer body = {0};
    struct auth_ok_packet who;
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    clients_set_keys(t.r.all, &keys);
    show(&t, "eve:secret");
    name(&t, 1, now_s + 60, "eve");
    (void)hears_who(&t);
    packet_put_request(
        &t.said, PACKET_BIND, &(struct request_packet){.request = 1, .kind = 7, .id = of("eve")});
    send(&t);
    bound_put(&body, &bound);
    client_rig_answer(&t.r, 2, ANSWER_OK, buffer_bytes(&body));
    hears_answer(&t, 1, STATUS_OK);
    const struct request_record q = client_rig_request(&t.r, 2);
    const struct push_record push = {.gateway = q.gateway,
                                     .connection = q.session,
                                     .round = 1,
                                     .number = 1,
                                     .type = PUSH_REBIND,
                                     .payload = bytes_of("\x08\x00mage", 6)};
    assert_non_null(clients_on_push(t.r.all, &push, t.r.rig.now_us));
    const struct packet p = hear(&t);
    assert_int_equal(p.type, PACKET_REBOUND);
    assert_int_equal(packet_get_auth_ok(p.body, &who), ERR_OK);
    assert_true(who.kind == 8 && bytes_equal(who.id, of("mage")) && who.expires_s == now_s + 60);
    assert_true(who.token.size > 0);
    buffer_clear(&body);
    buffer_put(&body, who.token.data, who.token.size);
    ask(&t, 2, 8, "mage");
    ask(&t, 3, 7, "eve");
    send(&t);
    hears_answer(&t, 3, STATUS_UNAUTHORIZED);
    client_rig_free(&t.r, t.c);
    come_asked(&t);
    packet_put_auth(&t.said, buffer_bytes(&body));
    send(&t);
    const struct auth_ok_packet again = hears_who(&t);
    assert_true(again.kind == 8 && bytes_equal(again.id, of("mage")));
    buffer_fini(&body);
    stop(&t);
}

static void what_the_actor_refuses_is_kicked(void **state)
{
    static const struct {
        enum answer_code code;
        const char *body;
        enum packet_kick kick;
    } bad[] = {
        {ANSWER_APP_ERROR, "ERR wrong password", PACKET_KICK_LOGIN_REFUSED},
        {ANSWER_OK, "", PACKET_KICK_LOGIN_BROKEN},
        {ANSWER_OK, "welcome, dear friend", PACKET_KICK_LOGIN_BROKEN},
    };
    const struct clients_config clients = config();

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct talk t;

        start_asked(&t, &clients);
        packet_put_auth(&t.said, of("x"));
        ask(&t, 1, 7, "eve"); // isn't heard
        send(&t);
        client_rig_answer(&t.r, 1, bad[i].code, of(bad[i].body));
        hears_notice(&t, PACKET_KICK, bad[i].kick);
        assert_true(client_is_done(t.c));
        assert_int_equal(stats(&t).kicks[bad[i].kick - PACKET_KICK_BAD_PACKET], 1);
        assert_int_equal(stats(&t).logins.refused + stats(&t).logins.broken, 1);
        assert_int_equal(stats(&t).logins.under_way, 0);
        assert_int_equal(t.r.request_count, 1);
        stop(&t);
    }
}

static void a_login_that_is_over_is_no_login(void **state)
{
    const struct clients_config clients = config();
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    show(&t, "x");
    name(&t, 1, now_s, "eve");
    hears_notice(&t, PACKET_KICK, PACKET_KICK_LOGIN_BROKEN);
    stop(&t);
}

static struct notice_packet hears_goaway(struct talk *t)
{
    const struct packet p = hear(t);
    struct notice_packet n = {0};

    assert_int_equal(p.type, PACKET_GOAWAY);
    assert_int_equal(packet_get_notice(p.body, &n), ERR_OK);
    assert_true(n.number > 0);
    return n;
}

static void without_an_answer_it_is_told_when_to_come_again(void **state)
{
    const struct clients_config clients = config();
    struct talk t;

    (void)state;
    start_asked(&t, &clients);
    show(&t, "x");
    client_rig_answer(&t.r, 1, ANSWER_NO_KIND, (struct bytes){NULL, 0});
    (void)hears_goaway(&t);
    assert_true(client_is_done(t.c));
    assert_int_equal(stats(&t).logins.unanswered, 1);
    client_rig_free(&t.r, t.c);
    come_asked(&t);
    show(&t, "x");
    client_rig_answer(&t.r, 2, ANSWER_APP_ERROR, of("TRYAGAIN the accounts are away"));
    (void)hears_goaway(&t);
    assert_int_equal(stats(&t).logins.unanswered, 2);
    assert_int_equal(stats(&t).logins.refused, 0);
    client_rig_free(&t.r, t.c);
    come_asked(&t);
    show(&t, "x");
    pass(&t, 6 * second_us); // 5 s from its coming
    (void)hears_goaway(&t);
    assert_true(client_is_done(t.c));
    assert_int_equal(stats(&t).logins.unanswered, 3);
    name(&t, 3, now_s + 60, "eve"); // too late
    hears_nothing(&t);
    assert_int_equal(stats(&t).logins.under_way, 0);
    assert_int_equal(stats(&t).unauthenticated, 1);
    stop(&t);
}

static void a_role_that_nobody_hosts_logs_nobody_in(void **state)
{
    struct clients_config clients = config();
    struct talk t;

    (void)state;
    (void)snprintf(clients.login.role, sizeof clients.login.role, "nowhere");
    start_asked(&t, &clients);
    show(&t, "x");
    (void)hears_goaway(&t);
    assert_int_equal(stats(&t).logins.unanswered, 1);
    assert_int_equal(t.r.request_count, 0);
    stop(&t);
}

static void logins_under_way_are_few(void **state)
{
    struct clients_config clients = config();
    struct client *first = NULL;
    struct talk t;

    (void)state;
    clients.login.at_once_max = 1;
    start_asked(&t, &clients);
    show(&t, "x");
    first = t.c;
    come_asked(&t);
    show(&t, "y");
    (void)hears_goaway(&t);
    assert_int_equal(stats(&t).logins.full, 1);
    assert_int_equal(t.r.request_count, 1);
    client_rig_free(&t.r, first);
    stop(&t);
}

/* Whoever goes as soon as it has asked keeps the actors as busy as who waits. */
static void who_leaves_makes_no_room_before_its_login_is_over(void **state)
{
    struct clients_config clients = config();
    struct admission_result in;
    struct talk t;

    (void)state;
    clients.unauthenticated_address_max = 1;
    start_asked(&t, &clients);
    show(&t, "x");
    client_rig_free(&t.r, t.c);
    assert_int_equal(stats(&t).logins.left, 1);
    assert_int_equal(stats(&t).logins.under_way, 1);
    assert_false(clients_admit(t.r.all, CLIENT_PACKETS, "10.0.0.1:5", t.r.rig.now_us, &in));
    name(&t, 1, now_s + 60, "eve"); // nobody is told
    t.r.rig.now_us += 5 * second_us;
    (void)clients_go_on(t.r.all, t.r.rig.now_us, &t.r.effects);
    assert_int_equal(stats(&t).logins.under_way, 0);
    assert_int_equal(stats(&t).unauthenticated, 0);
    assert_true(clients_admit(t.r.all, CLIENT_PACKETS, "10.0.0.1:5", t.r.rig.now_us, &in));
    t.c = client_new(t.r.all, CLIENT_PACKETS, "10.0.0.1:5", t.r.rig.now_us);
    client_let_in(t.c, in.client_address);
    stop(&t);
}

/* The same credentials always go to one actor; many go to all. */
static void logins_are_spread(void **state)
{
    struct clients_config clients = config();
    uint32_t seen = 0;
    struct talk t;

    (void)state;
    clients.login.spread = 4;
    start_asked(&t, &clients);
    for (int i = 0; i < 128; i++) {
        char credentials[32];

        (void)snprintf(credentials, sizeof credentials, "player-%d", i / 2);
        show(&t, credentials);
        const struct bytes id = client_rig_request(&t.r, t.r.request_count).id;
        const uint8_t last = id.size == 7 ? id.data[6] : 'x';
        assert_in_range(last, '0', '3');
        seen |= 1u << (last & 3); // 0 is a multiple of 4 there
        if (i % 2 == 1) {
            const struct bytes before = client_rig_request(&t.r, t.r.request_count - 1).id;
            assert_true(bytes_equal(id, before));
        }
        client_rig_answer(&t.r, t.r.request_count, ANSWER_APP_ERROR, of("ERR no"));
        (void)hear(&t);
        client_rig_free(&t.r, t.c);
        come_asked(&t);
    }
    assert_int_equal(seen, 15);
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_the_actor_names_is_that_entity),
        cmocka_unit_test(with_keys_one_login_is_enough),
        cmocka_unit_test(one_that_is_rebound_is_that_entity_elsewhere_too),
        cmocka_unit_test(what_the_actor_refuses_is_kicked),
        cmocka_unit_test(a_login_that_is_over_is_no_login),
        cmocka_unit_test(without_an_answer_it_is_told_when_to_come_again),
        cmocka_unit_test(a_role_that_nobody_hosts_logs_nobody_in),
        cmocka_unit_test(logins_under_way_are_few),
        cmocka_unit_test(who_leaves_makes_no_room_before_its_login_is_over),
        cmocka_unit_test(logins_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
