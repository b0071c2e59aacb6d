/* SPDX-License-Identifier: Apache-2.0
 *
 * A bot, by what a gateway says to it, and what it enters in the ledger.
 */
#include "cli/bot.h"

#include "gateway/packet.h"
#include "tests/test.h"

#include <string.h>

static const uint64_t ms_us = 1000;
static const uint64_t start_us = 1000000;

struct play {
    struct bots *all;
    struct bot *bot;
    uint64_t now_us;
    struct buffer said; /* by the gateway */
};

static struct bytes of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static const struct bot_ledger *ledger(const struct play *p)
{
    return bots_ledger(p->all);
}

static void start(struct play *p, const struct bots_config *config)
{
    *p = (struct play){.now_us = start_us};
    p->all = bots_new(config, p->now_us);
    p->bot = bots_at(p->all, 0);
}

static void stop(struct play *p)
{
    bots_free(p->all);
    buffer_fini(&p->said);
}

static struct bots_config config_of(enum bot_check check)
{
    return (struct bots_config){.count = 1,
                                .addresses = 2,
                                .ask_ms = 100,
                                .answer_ms = 1000,
                                .away_ms = 50,
                                .bind = true,
                                .check = check,
                                .prefix = "p",
                                .seed = 5};
}

/* The next packet that it sends. */
static struct packet takes(struct play *p, struct buffer *kept)
{
    struct packet packet = {0};
    struct buffer *out = bot_output(p->bot);

    buffer_clear(kept);
    buffer_put(kept, out->data, out->size);
    assert_int_equal(packet_next(buffer_bytes(kept), PACKET_BODY_MAX, &packet), PACKET_WHOLE);
    buffer_consume(out, PACKET_HEADER + packet.body.size);
    return packet;
}

static uint32_t asks(struct play *p, enum packet_type type)
{
    struct buffer kept = {0};
    struct request_packet r;
    const struct packet packet = takes(p, &kept);

    assert_int_equal(packet.type, type);
    assert_int_equal(packet_get_request(packet.body, &r), ERR_OK);
    assert_true(bytes_equal(r.id, of("p0")));
    buffer_fini(&kept);
    return r.request;
}

static void hears(struct play *p)
{
    bot_on_bytes(p->bot, buffer_bytes(&p->said), p->now_us);
    buffer_clear(&p->said);
}

static void answered(struct play *p, uint32_t request, enum packet_status status, const char *text)
{
    packet_put_response(&p->said,
                        &(struct response_packet){
                            .request = request, .status = (uint8_t)status, .payload = of(text)});
    hears(p);
}

static void pushed(struct play *p, uint64_t sequence)
{
    packet_put_push(&p->said, &(struct push_packet){.sequence = sequence, .payload = of("x")});
    hears(p);
}

static void noticed(struct play *p, enum packet_type type, uint32_t number)
{
    packet_put_notice(&p->said, type, &(struct notice_packet){.number = number, .text = of("so")});
    hears(p);
}

/* Time passes until it is told of it. */
static void pass(struct play *p)
{
    const uint64_t due_us = bot_due_us(p->bot);

    assert_true(due_us != UINT64_MAX);
    p->now_us = due_us > p->now_us ? due_us : p->now_us;
    bot_tick(p->bot, p->now_us);
}

static void connects(struct play *p)
{
    struct buffer kept = {0};

    pass(p);
    assert_int_equal(bot_wish(p->bot), BOT_CONNECT);
    bot_on_connecting(p->bot, p->now_us);
    bot_on_connected(p->bot, p->now_us);
    assert_int_equal(takes(p, &kept).type, PACKET_HELLO);
    buffer_fini(&kept);
}

static void logs_in(struct play *p)
{
    connects(p);
    packet_put_hello_ack(&p->said, &(struct hello_ack_packet){.version = PACKET_VERSION});
    hears(p);
    answered(p, asks(p, PACKET_BIND), STATUS_OK, "");
}

static uint32_t next_request(struct play *p)
{
    while (bot_output(p->bot)->size == 0) {
        pass(p);
    }
    return asks(p, PACKET_REQUEST);
}

static void it_logs_in_asks_and_is_pushed_to(void **state)
{
    const struct bots_config config = config_of(BOT_CHECK_ECHO);
    struct play p;

    (void)state;
    start(&p, &config);
    logs_in(&p);
    assert_int_equal(ledger(&p)->live, 1);
    answered(&p, next_request(&p), STATUS_OK, "2"); // the name of the request, after the bind's
    assert_int_equal(ledger(&p)->status[STATUS_OK], 1);
    pushed(&p, 1);
    pushed(&p, 2);
    assert_int_equal(ledger(&p)->pushes, 2);
    assert_true(bot_ledger_is_clean(ledger(&p)));
    answered(&p, next_request(&p), STATUS_OK, "2"); // of another one
    assert_int_equal(ledger(&p)->wrong, 1);
    assert_false(bot_ledger_is_clean(ledger(&p)));
    stop(&p);
}

static void pushes_that_are_missing_or_come_twice_are_seen(void **state)
{
    const struct bots_config config = config_of(BOT_CHECK_NONE);
    struct play p;

    (void)state;
    start(&p, &config);
    logs_in(&p);
    pushed(&p, 1);
    pushed(&p, 4);
    assert_int_equal(ledger(&p)->pushes_lost, 2);
    pushed(&p, 4);
    pushed(&p, 3);
    assert_int_equal(ledger(&p)->pushes_duplicated, 2);
    pushed(&p, 1); // its actor was lost, and counts anew
    assert_int_equal(ledger(&p)->begun_afresh, 1);
    pushed(&p, 2);
    assert_int_equal(ledger(&p)->pushes_lost, 2);
    stop(&p);
}

static void answers_that_are_missing_or_come_twice_are_seen(void **state)
{
    const struct bots_config config = config_of(BOT_CHECK_NONE);
    struct play p;

    (void)state;
    start(&p, &config);
    logs_in(&p);
    const uint32_t first = next_request(&p);
    const uint32_t second = next_request(&p);
    answered(&p, second, STATUS_OK, "");
    answered(&p, second, STATUS_OK, "");
    assert_int_equal(ledger(&p)->duplicated, 1);
    answered(&p, first, STATUS_OK, "");
    assert_int_equal(ledger(&p)->disordered, 1);
    (void)next_request(&p);
    for (int i = 0; i < 20; i++) { // a second and more
        pass(&p);
    }
    assert_true(ledger(&p)->lost >= 1);
    stop(&p);
}

static void a_count_shows_what_ran_twice_and_what_was_forgotten(void **state)
{
    const struct bots_config config = config_of(BOT_CHECK_COUNT);
    struct play p;

    (void)state;
    start(&p, &config);
    logs_in(&p);
    answered(&p, next_request(&p), STATUS_OK, "70"); // it was there before
    answered(&p, next_request(&p), STATUS_OK, "71");
    answered(&p, next_request(&p), STATUS_OVERLOADED, "");
    answered(&p, next_request(&p), STATUS_OK, "72");
    answered(&p, next_request(&p), STATUS_UNKNOWN, "");
    answered(&p, next_request(&p), STATUS_OK, "73"); // it did not run, or not yet
    answered(&p, next_request(&p), STATUS_OK, "75"); // it did
    assert_true(bot_ledger_is_clean(ledger(&p)));
    answered(&p, next_request(&p), STATUS_OK, "77");
    assert_int_equal(ledger(&p)->duplicated, 1);
    answered(&p, next_request(&p), STATUS_OK, "71");
    assert_int_equal(ledger(&p)->lost, 7);
    answered(&p, next_request(&p), STATUS_OK, "many and many and many more");
    assert_int_equal(ledger(&p)->wrong, 1);
    stop(&p);
}

static void who_is_turned_away_comes_back_by_the_hint_elsewhere(void **state)
{
    const struct bots_config config = config_of(BOT_CHECK_NONE);
    struct play p;

    (void)state;
    start(&p, &config);
    connects(&p);
    assert_int_equal(bot_address(p.bot), 0);
    noticed(&p, PACKET_GOAWAY, 7000);
    assert_int_equal(bot_wish(p.bot), BOT_CLOSE);
    bot_on_closed(p.bot, p.now_us);
    assert_int_equal(ledger(&p)->turned_away, 1);
    assert_int_equal(bot_due_us(p.bot), p.now_us + 7000 * ms_us);
    assert_int_equal(bot_address(p.bot), 1);
    logs_in(&p);
    // Told to go when it is in, it waits for its answer first.
    const uint32_t request = next_request(&p);
    noticed(&p, PACKET_GOAWAY, 100);
    assert_int_equal(bot_wish(p.bot), BOT_NOTHING);
    answered(&p, request, STATUS_OK, "");
    assert_int_equal(bot_wish(p.bot), BOT_CLOSE);
    assert_int_equal(ledger(&p)->told_to_go, 1);
    assert_int_equal(bot_address(p.bot), 0);
    assert_int_equal(ledger(&p)->unknown, 0);
    stop(&p);
}

static void a_line_that_goes_makes_requests_unknown(void **state)
{
    struct bots_config config = config_of(BOT_CHECK_COUNT);
    struct play p;

    (void)state;
    start(&p, &config);
    logs_in(&p);
    answered(&p, next_request(&p), STATUS_OK, "1");
    (void)next_request(&p);
    bot_on_closed(p.bot, p.now_us); // by the other side
    assert_int_equal(ledger(&p)->cut, 1);
    assert_int_equal(ledger(&p)->unknown, 1);
    assert_int_equal(bots_waiting(p.all), 0);
    logs_in(&p);
    answered(&p, next_request(&p), STATUS_OK, "3"); // it had run
    pushed(&p, 1);                                  // a new bond counts from 1
    noticed(&p, PACKET_KICK, 1);
    assert_int_equal(ledger(&p)->kicked, 1);
    assert_int_equal(ledger(&p)->begun_afresh, 0);
    assert_true(bot_ledger_is_clean(ledger(&p)));
    stop(&p);
}

static void one_that_has_stayed_is_through_when_it_has_its_answers(void **state)
{
    struct bots_config config = config_of(BOT_CHECK_NONE);
    struct play p;

    (void)state;
    config.stay_ms = 150;
    start(&p, &config);
    logs_in(&p);
    const uint32_t request = next_request(&p);
    while (p.now_us < start_us + 200 * ms_us) {
        pass(&p);
    }
    assert_int_equal(ledger(&p)->over, 0);
    answered(&p, request, STATUS_OK, "");
    while (bot_output(p.bot)->size > 0) {
        answered(&p, asks(&p, PACKET_REQUEST), STATUS_OK, "");
    }
    assert_int_equal(ledger(&p)->over, 1);
    assert_int_equal(bot_wish(p.bot), BOT_CLOSE);
    stop(&p);
}

static void nonsense_of_a_gateway_is_entered_too(void **state)
{
    const struct bots_config config = config_of(BOT_CHECK_NONE);
    struct play p;

    (void)state;
    start(&p, &config);
    logs_in(&p);
    buffer_put(&p.said, "\x07\x00\x00\x01x", 5); // a response that is too short
    hears(&p);
    assert_int_equal(ledger(&p)->wrong, 1);
    assert_int_equal(bot_wish(p.bot), BOT_CLOSE);
    stop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_logs_in_asks_and_is_pushed_to),
        cmocka_unit_test(pushes_that_are_missing_or_come_twice_are_seen),
        cmocka_unit_test(answers_that_are_missing_or_come_twice_are_seen),
        cmocka_unit_test(a_count_shows_what_ran_twice_and_what_was_forgotten),
        cmocka_unit_test(who_is_turned_away_comes_back_by_the_hint_elsewhere),
        cmocka_unit_test(a_line_that_goes_makes_requests_unknown),
        cmocka_unit_test(one_that_has_stayed_is_through_when_it_has_its_answers),
        cmocka_unit_test(nonsense_of_a_gateway_is_entered_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
