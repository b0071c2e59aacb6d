/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client may hold in memory, and that it goes on after it had to wait.
 * What it is told is in tests/story/client-*.txt.
 */
#include "tests/gateway/client_rig.h"

#include "gateway/protocol/resp.h"
#include "tests/test.h"

#include <stdlib.h>

static uint64_t buffered(const struct client_rig *r)
{
    struct clients_stats f;

    clients_stats(r->all, &f);
    return f.buffered;
}

static void answer_all(struct client_rig *r, size_t from, struct bytes bulk)
{
    const struct value value = {.type = VALUE_BULK, .text = bulk};

    for (size_t i = from; i <= r->request_count; i++) {
        client_rig_value(r, i, &value);
    }
}

static void start(struct client_rig *r, const struct clients_config *clients)
{
    const struct router_config router = router_config_default();

    client_rig_init(r, clients, &router);
    client_rig_ring(r);
}

static void who_sends_and_never_reads_is_read_from_no_more(void **state)
{
    static uint8_t reply[4096];
    struct clients_config config = clients_config_default();
    struct client_rig r;
    struct buffer gets = {0};
    uint64_t taken = 0;

    (void)state;
    config.in_flight_max = 100;
    config.unsent_max = 65536;
    start(&r, &config);
    while (gets.size + 7 <= CLIENT_READ_MAX) {
        buffer_put(&gets, "GET a\r\n", 7);
    }
    struct client *c = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    for (int turn = 0; turn < 1000; turn++) {
        const size_t before = r.request_count;

        if (client_wants_input(c)) {
            client_rig_bytes(&r, c, buffer_bytes(&gets));
            taken += gets.size;
        }
        if (client_has_input(c)) {
            client_resume(c, r.rig.now_us, &r.effects);
            client_rig_do_effects(&r);
        }
        answer_all(&r, before + 1, bytes_of(reply, sizeof reply));
    }
    assert_false(client_wants_input(c));
    assert_true(taken < 10 * (uint64_t)CLIENT_READ_MAX);
    // Two reads of input, the replies that may wait, those of what was under way: each at most
    // doubled by growth.
    assert_true(buffered(&r) <= 2 * (2 * (size_t)CLIENT_READ_MAX + config.unsent_max +
                                     config.in_flight_max * (sizeof reply + 16)));

    // It reads at last: everything comes, and it is read from again.
    uint64_t replies = 0;
    while (client_output(c).size > 0) {
        const size_t before = r.request_count;

        replies += client_output(c).size;
        client_sent(c, client_output(c).size, r.rig.now_us);
        client_resume(c, r.rig.now_us, &r.effects);
        client_rig_do_effects(&r);
        answer_all(&r, before + 1, bytes_of(reply, sizeof reply));
    }
    assert_int_equal(replies, taken / 7 * (sizeof reply + 9));
    assert_true(client_wants_input(c));
    assert_true(buffered(&r) <= 65536 + 8192);
    client_tick(c, r.rig.now_us);
    client_tick(c, r.rig.now_us); // nothing was sent to it since the one before
    assert_true(buffered(&r) <= 8192);
    client_rig_free(&r, c);
    assert_int_equal(buffered(&r), 0);
    buffer_fini(&gets);
    client_rig_fini(&r);
}

static void half_a_command_is_kept_and_no_more(void **state)
{
    static uint8_t zeros[CLIENT_READ_MAX];
    const struct clients_config config = clients_config_default();
    struct client_rig r;

    (void)state;
    start(&r, &config);
    struct client *c = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    client_rig_text(&r, c, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1048500\r\n");
    for (int i = 0; i < 15; i++) {
        assert_true(client_wants_input(c));
        client_rig_bytes(&r, c, bytes_of(zeros, sizeof zeros));
        assert_false(client_has_input(c)); // nothing to go on with: no turn is spent on it
    }
    assert_true(buffered(&r) <= 2 * ((size_t)RESP_COMMAND_MAX + CLIENT_READ_MAX));
    assert_int_equal(r.request_count, 0);
    client_rig_bytes(&r, c, bytes_of(zeros, 1048500 - 15 * sizeof zeros));
    client_rig_text(&r, c, "\r\nGET a\r\n");
    assert_int_equal(r.request_count, 2);
    assert_true(buffered(&r) <= 8192);
    client_rig_free(&r, c);
    client_rig_fini(&r);
}

static void a_command_that_no_request_can_carry_is_refused(void **state)
{
    static uint8_t zeros[CLIENT_READ_MAX];
    const struct clients_config config = clients_config_default();
    struct client_rig r;

    (void)state;
    start(&r, &config);
    struct client *c = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    client_rig_text(&r, c, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1048576\r\n");
    for (int i = 0; i < 16; i++) {
        client_rig_bytes(&r, c, bytes_of(zeros, sizeof zeros));
    }
    client_rig_text(&r, c, "\r\n");
    assert_int_equal(r.request_count, 0);
    const char *want = "-ERR the command is over the limit of 1048576 bytes\r\n";
    assert_true(bytes_equal(client_output(c), bytes_of(want, strlen(want))));
    assert_true(client_wants_input(c));
    client_rig_free(&r, c);
    client_rig_fini(&r);
}

static void when_all_buffers_are_full_half_commands_may_not_grow(void **state)
{
    static uint8_t zeros[CLIENT_READ_MAX];
    struct clients_config config = clients_config_default();
    struct client_rig r;
    struct client *c[20];

    (void)state;
    config.buffers_max = (size_t)4 * 1024 * 1024;
    start(&r, &config);
    for (int i = 0; i < 20; i++) {
        c[i] = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
        client_rig_text(&r, c[i], "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\n");
    }
    for (int turn = 0; turn < 10; turn++) {
        for (int i = 0; i < 20; i++) {
            if (client_wants_input(c[i])) {
                client_rig_bytes(&r, c[i], bytes_of(zeros, sizeof zeros));
            }
        }
    }
    // Over the mark by what the last ones before it were read, and a small rest each.
    assert_true(buffered(&r) <= config.buffers_max + 80 * (size_t)CLIENT_READ_MAX);
    size_t refused = 0;
    for (int i = 0; i < 20; i++) {
        const char *text = "-OVERLOADED ";

        if (client_output(c[i]).size > 0) {
            assert_memory_equal(client_output(c[i]).data, text, strlen(text));
            client_sent(c[i], client_output(c[i]).size, r.rig.now_us);
            assert_true(client_is_done(c[i]));
            refused++;
        }
        client_rig_free(&r, c[i]);
    }
    assert_true(refused > 0 && refused < 20);
    client_rig_fini(&r);
}

static void when_all_buffers_are_full_those_who_read_go_on(void **state)
{
    static uint8_t reply[60000];
    struct clients_config config = clients_config_default();
    struct client_rig r;

    (void)state;
    config.buffers_max = 100000;
    start(&r, &config);
    struct client *lazy = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    struct client *good = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    client_rig_text(&r, lazy, "GET a\r\nGET a\r\n");
    answer_all(&r, 1, bytes_of(reply, sizeof reply));
    assert_true(buffered(&r) > config.buffers_max);
    assert_false(client_wants_input(lazy));
    assert_true(client_wants_input(good));
    client_rig_text(&r, good, "PING\r\n");
    assert_int_equal(client_output(good).size, 7);
    client_rig_free(&r, lazy);
    client_rig_free(&r, good);
    client_rig_fini(&r);
}

static void who_takes_nothing_for_long_is_stuck(void **state)
{
    const struct clients_config config = clients_config_default();
    struct client_rig r;
    struct clients_stats f;
    struct buffer taken = {0};

    (void)state;
    start(&r, &config);
    struct client *c = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    r.rig.now_us += UINT64_C(3600000000); // idle is not stuck
    assert_false(client_is_stuck(c, r.rig.now_us));
    client_rig_text(&r, c, "PING\r\nPING\r\n");
    r.rig.now_us += UINT64_C(59000000);
    assert_false(client_is_stuck(c, r.rig.now_us));
    client_sent(c, 7, r.rig.now_us); // it took some: the clock starts anew
    client_take_output(c, &taken);
    assert_int_equal(client_output(c).size, 0);
    r.rig.now_us += UINT64_C(59000000);
    assert_false(client_is_stuck(c, r.rig.now_us));
    r.rig.now_us += UINT64_C(2000000);
    assert_true(client_is_stuck(c, r.rig.now_us));
    clients_stats(r.all, &f);
    assert_int_equal(f.stalled, 1);
    client_wrote(c, r.rig.now_us);
    assert_false(client_is_stuck(c, r.rig.now_us));
    buffer_fini(&taken);
    client_rig_free(&r, c);
    client_rig_fini(&r);
}

static void replies_beyond_the_hard_bound_end_the_connection(void **state)
{
    static uint8_t reply[60000];
    struct clients_config config = clients_config_default();
    struct client_rig r;
    struct clients_stats f;

    (void)state;
    config.output_max = 100000;
    start(&r, &config);
    struct client *c = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    client_rig_text(&r, c, "GET a\r\nGET a\r\nGET a\r\n");
    // Out of order, so they wait in their slots: those count too.
    const struct value value = {.type = VALUE_BULK, .text = bytes_of(reply, sizeof reply)};
    client_rig_value(&r, 3, &value);
    assert_false(client_is_stuck(c, r.rig.now_us));
    client_rig_value(&r, 2, &value);
    assert_true(client_is_stuck(c, r.rig.now_us));
    clients_stats(r.all, &f);
    assert_int_equal(f.overrun, 1);
    client_rig_free(&r, c);
    client_rig_fini(&r);
}

static void large_replies_narrow_what_may_be_under_way(void **state)
{
    static uint8_t reply[65536];
    const struct clients_config config = clients_config_default();
    struct client_rig r;

    (void)state;
    start(&r, &config);
    struct client *c = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    client_rig_text(&r, c, "GET a\r\n");
    answer_all(&r, 1, bytes_of(reply, sizeof reply));
    client_sent(c, client_output(c).size, r.rig.now_us);
    for (int i = 0; i < 100; i++) {
        client_rig_text(&r, c, "GET a\r\n");
    }
    // A first one, and what fits beside it.
    assert_int_equal(r.request_count, 1 + config.unsent_max / sizeof reply);
    assert_false(client_wants_input(c));
    answer_all(&r, 2, bytes_of(reply, sizeof reply));
    assert_true(client_output(c).size < config.unsent_max + 1024);
    client_rig_free(&r, c);
    client_rig_fini(&r);
}

static void far_above_all_buffers_who_owes_much_reading_is_closed(void **state)
{
    static uint8_t reply[60000];
    struct clients_config config = clients_config_default();
    struct client_rig r;

    (void)state;
    config.buffers_max = 50000;
    config.unsent_max = 100000;
    start(&r, &config);
    struct client *small = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    struct client *large = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    client_rig_text(&r, small, "GET a\r\n");
    client_rig_text(&r, large, "GET a\r\nGET a\r\n");
    answer_all(&r, 1, bytes_of(reply, sizeof reply));
    assert_false(client_is_stuck(small, r.rig.now_us));
    assert_true(client_is_stuck(large, r.rig.now_us));
    client_rig_free(&r, small);
    client_rig_free(&r, large);
    client_rig_fini(&r);
}

static void a_full_router_makes_clients_wait_not_fail(void **state)
{
    const struct clients_config config = clients_config_default();
    struct router_config router = router_config_default();
    struct client_rig r;

    (void)state;
    router.in_flight_max = 2;
    client_rig_init(&r, &config, &router);
    client_rig_ring(&r);
    struct client *c = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    client_rig_text(&r, c, "GET a\r\nGET b\r\nGET c\r\nGET d\r\n");
    assert_int_equal(r.request_count, 2);
    assert_false(client_wants_input(c));
    assert_false(client_has_input(c));
    answer_all(&r, 1, bytes_of("x", 1));
    assert_true(client_has_input(c));
    assert_false(client_wants_input(c)); // first what it has sent already
    client_resume(c, r.rig.now_us, &r.effects);
    client_rig_do_effects(&r);
    assert_int_equal(r.request_count, 4);
    answer_all(&r, 3, bytes_of("x", 1));
    assert_int_equal(client_output(c).size, 4 * 7);
    client_rig_free(&r, c);
    client_rig_fini(&r);
}

static void input_cut_anywhere_gives_the_same_replies(void **state)
{
    const char *in =
        "PING\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\n1\r\n\r\nECHO \"x y\"\r\n*1\r\n$4\r\nPING\r\n"
        "MGET a b\r\n";
    const struct clients_config config = clients_config_default();

    (void)state;
    for (size_t cut = 0; cut <= strlen(in); cut++) {
        struct client_rig r;
        const char *want = "+PONG\r\n$1\r\nv\r\n$3\r\nx y\r\n+PONG\r\n*2\r\n$1\r\nv\r\n$1\r\nv\r\n";

        start(&r, &config);
        struct client *c = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
        client_rig_bytes(&r, c, bytes_of(in, cut));
        client_rig_bytes(&r, c, bytes_of(in + cut, strlen(in) - cut));
        assert_int_equal(r.request_count, 3);
        answer_all(&r, 1, bytes_of("v", 1));
        assert_true(bytes_equal(client_output(c), bytes_of(want, strlen(want))));
        client_rig_free(&r, c);
        client_rig_fini(&r);
    }
}

static bool comes_in(const struct client_rig *r)
{
    struct admission_result a;

    return clients_admit(r->all, CLIENT_RESP, "x", r->rig.now_us, &a);
}

static void connections_are_counted_and_capped(void **state)
{
    struct clients_config config = clients_config_default();
    struct client_rig r;
    struct clients_stats f;

    (void)state;
    config.connections_max = 2;
    start(&r, &config);
    struct client *a = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    assert_true(comes_in(&r));
    struct client *b = client_new(r.all, CLIENT_RESP, "x", r.rig.now_us);
    assert_false(comes_in(&r));
    client_rig_free(&r, a);
    assert_true(comes_in(&r));
    client_rig_free(&r, b);
    clients_stats(r.all, &f);
    assert_int_equal(f.accepted, 2);
    assert_int_equal(f.connected, 0);
    assert_int_equal(f.refused, 1);
    client_rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(who_sends_and_never_reads_is_read_from_no_more),
        cmocka_unit_test(half_a_command_is_kept_and_no_more),
        cmocka_unit_test(a_command_that_no_request_can_carry_is_refused),
        cmocka_unit_test(when_all_buffers_are_full_half_commands_may_not_grow),
        cmocka_unit_test(when_all_buffers_are_full_those_who_read_go_on),
        cmocka_unit_test(who_takes_nothing_for_long_is_stuck),
        cmocka_unit_test(replies_beyond_the_hard_bound_end_the_connection),
        cmocka_unit_test(large_replies_narrow_what_may_be_under_way),
        cmocka_unit_test(far_above_all_buffers_who_owes_much_reading_is_closed),
        cmocka_unit_test(a_full_router_makes_clients_wait_not_fail),
        cmocka_unit_test(input_cut_anywhere_gives_the_same_replies),
        cmocka_unit_test(connections_are_counted_and_capped),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
