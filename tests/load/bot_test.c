/* SPDX-License-Identifier: Apache-2.0
 *
 * A bot, by what a gateway says to it, and what it enters in the ledger.
 */
#include "load/bot.h"

#include "gateway/protocol/packet.h"
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

/* What it does, until the next case. */
static const struct script *script_of(const char *text)
{
    static struct script script;
    char why[SCRIPT_WHY_SIZE];
    uint32_t number = 0;

    script_fini(&script);
    assert_true(script_parse(&script, text, &number, why));
    return &script;
}

static struct bots_config config_of(enum bot_check check)
{
    return (struct bots_config){.count = 1,
                                .addresses = 2,
                                .answer_ms = 1000,
                                .bind = true,
                                .script = script_of("request {n} every 100ms"),
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

static void pushed_text(struct play *p, uint64_t sequence, const char *text)
{
    packet_put_push(&p->said, &(struct push_packet){.sequence = sequence, .payload = of(text)});
    hears(p);
}

static void pushed(struct play *p, uint64_t sequence)
{
    pushed_text(p, sequence, "1");
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
    assert_int_equal(ledger(&p)->pushes_duplicated, 1);
    pushed(&p, 3); // late, and not lost
    assert_int_equal(ledger(&p)->pushes_disordered, 1);
    assert_int_equal(ledger(&p)->pushes_lost, 1);
    pushed(&p, 3);
    assert_int_equal(ledger(&p)->pushes_duplicated, 2);
    pushed(&p, 1); // its actor was lost, and counts anew
    assert_int_equal(ledger(&p)->begun_afresh, 1);
    pushed(&p, 2);
    assert_int_equal(ledger(&p)->pushes_lost, 1);
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

static uint32_t unbinds(struct play *p)
{
    struct buffer kept = {0};
    uint32_t request = 0;
    const struct packet packet = takes(p, &kept);

    assert_int_equal(packet.type, PACKET_UNBIND);
    assert_int_equal(packet_get_unbind(packet.body, &request), ERR_OK);
    buffer_fini(&kept);
    return request;
}

static void one_that_leaves_is_through_when_it_has_its_answers(void **state)
{
    struct bots_config config = config_of(BOT_CHECK_NONE);
    struct play p;

    (void)state;
    config.script = script_of("request {n}; leave; request never");
    start(&p, &config);
    logs_in(&p);
    const uint32_t request = next_request(&p);
    assert_int_equal(bot_output(p.bot)->size, 0);
    answered(&p, request, STATUS_OK, "");
    assert_int_equal(ledger(&p)->over, 0);
    answered(&p, unbinds(&p), STATUS_OK, "");
    assert_int_equal(ledger(&p)->over, 1);
    assert_int_equal(bot_wish(p.bot), BOT_CLOSE);
    stop(&p);
}

/* ---- sessions ---- */

static const struct session_name session = {.key = 7, .session = 8, .version = 9};

static void said_session(struct play *p, uint32_t request, uint64_t key, uint64_t next)
{
    uint8_t payload[PACKET_SESSION_SIZE];
    const struct session_packet s = {
        .name = {.key = key, .session = 8, .version = 9}, .next = next, .keep_ms = 30000};

    packet_put_session(payload, &s);
    packet_put_response(&p->said,
                        &(struct response_packet){.request = request,
                                                  .payload = bytes_of(payload, sizeof payload)});
    hears(p);
}

static void greeted(struct play *p)
{
    connects(p);
    packet_put_hello_ack(&p->said, &(struct hello_ack_packet){.version = PACKET_VERSION});
    hears(p);
}

/* Back, it shows its session; what it says that it has. */
static struct ack_packet resumes(struct play *p, uint32_t *request)
{
    struct buffer kept = {0};
    struct request_packet r;
    struct return_packet shown;

    greeted(p);
    const struct packet packet = takes(p, &kept);
    assert_int_equal(packet.type, PACKET_RESUME);
    assert_int_equal(packet_get_request(packet.body, &r), ERR_OK);
    assert_int_equal(packet_get_return(r.payload, &shown), ERR_OK);
    assert_int_equal(shown.name.key, session.key);
    assert_int_equal(shown.name.session, session.session);
    *request = r.request;
    buffer_fini(&kept);
    return shown.has;
}

static void loses_its_line(struct play *p)
{
    bot_on_closed(p->bot, p->now_us);
}

static void starts_a_session(struct play *p, const char *script)
{
    struct bots_config config = config_of(BOT_CHECK_COUNT);

    config.keep = true;
    config.script = script_of(script);
    start(p, &config);
    greeted(p);
    said_session(p, asks(p, PACKET_BIND), session.key, 1);
    assert_int_equal(ledger(p)->live, 1);
}

static void a_session_is_resumed_and_asks_again_what_has_no_answer(void **state)
{
    struct request_packet r;
    struct buffer kept = {0};
    uint32_t resume = 0;
    struct play p;

    (void)state;
    starts_a_session(&p, "request a; request b");
    const uint32_t first = next_request(&p);
    const uint32_t second = asks(&p, PACKET_REQUEST);
    answered(&p, first, STATUS_OK, "1");
    pushed_text(&p, 1, "41");
    loses_its_line(&p);
    assert_int_equal(bots_waiting(p.all), 1);
    const struct ack_packet has = resumes(&p, &resume);
    assert_int_equal(has.pushes, 1);
    assert_int_equal(has.answers, second);
    said_session(&p, resume, session.key, 2);
    const struct packet packet = takes(&p, &kept);
    assert_int_equal(packet.type, PACKET_REQUEST);
    assert_int_equal(packet_get_request(packet.body, &r), ERR_OK);
    assert_int_equal(r.request, second);
    assert_int_equal(r.flags, PACKET_AGAIN);
    assert_true(bytes_equal(r.payload, of("b")));
    buffer_fini(&kept);
    answered(&p, second, STATUS_OK, "2");
    pushed_text(&p, 2, "42");
    assert_int_equal(ledger(&p)->resumed, 1);
    assert_int_equal(ledger(&p)->again, 1);
    assert_int_equal(ledger(&p)->unknown, 0);
    assert_true(bot_ledger_is_clean(ledger(&p)));
    pushed_text(&p, 3, "42"); // the actor's word is judged too
    assert_int_equal(ledger(&p)->pushes_duplicated, 1);
    stop(&p);
}

static void an_answer_from_before_may_come_late_but_not_run_late(void **state)
{
    uint32_t resume = 0;
    struct play p;

    (void)state;
    starts_a_session(&p, "request a; request b; request c; request d; request e; wait 1h");
    uint32_t name[5] = {next_request(&p)};
    for (int i = 1; i < 5; i++) {
        name[i] = asks(&p, PACKET_REQUEST);
    }
    answered(&p, name[0], STATUS_OK, "1");
    loses_its_line(&p);
    (void)resumes(&p, &resume);
    said_session(&p, resume, session.key, 1);
    for (int i = 1; i < 5; i++) {
        assert_int_equal(asks(&p, PACKET_REQUEST), name[i]);
    }
    answered(&p, name[2], STATUS_OK, "3");
    answered(&p, name[1], STATUS_OK, "2"); // saved
    assert_true(bot_ledger_is_clean(ledger(&p)));
    answered(&p, name[4], STATUS_OK, "4");
    answered(&p, name[3], STATUS_OK, "5");
    assert_int_equal(ledger(&p)->disordered, 1);
    assert_int_equal(ledger(&p)->lost + ledger(&p)->duplicated, 0);
    stop(&p);
}

static void what_a_resume_brings_is_judged_too(void **state)
{
    uint32_t resume = 0;
    struct play p;

    (void)state;
    starts_a_session(&p, "wait 1h");
    pushed_text(&p, 1, "1");
    loses_its_line(&p);
    (void)resumes(&p, &resume);
    said_session(&p, resume, session.key, 4); // 2 and 3 were too many to be kept
    assert_int_equal(ledger(&p)->pushes_lost, 2);
    pushed_text(&p, 4, "4");
    assert_int_equal(ledger(&p)->pushes_lost, 2);
    pushed_text(&p, 4, "4");
    assert_int_equal(ledger(&p)->pushes_duplicated, 1);
    stop(&p);
}

static void a_session_that_is_gone_is_begun_anew(void **state)
{
    uint32_t resume = 0;
    struct play p;

    (void)state;
    starts_a_session(&p, "request a; wait 1h");
    (void)next_request(&p);
    pushed_text(&p, 1, "1");
    loses_its_line(&p);
    (void)resumes(&p, &resume);
    answered(&p, resume, STATUS_REJECTED, "GONE");
    assert_int_equal(ledger(&p)->gone, 1);
    assert_int_equal(ledger(&p)->unknown, 1);
    said_session(&p, asks(&p, PACKET_BIND), session.key, 1);
    assert_int_equal(ledger(&p)->live, 1);
    assert_int_equal(bot_output(p.bot)->size, 0); // what is unknown isn't sent again
    pushed_text(&p, 1, "1");
    assert_true(bot_ledger_is_clean(ledger(&p)));
    stop(&p);
}

static void an_actor_begun_afresh_makes_requests_unknown_only_with_the_line(void **state)
{
    const struct session_packet begun = {.name = session, .next = 1, .keep_ms = 30000};
    uint32_t resume = 0;
    struct play p;

    (void)state;
    starts_a_session(&p, "request a; request b; wait 1h");
    const uint32_t first = next_request(&p);
    (void)asks(&p, PACKET_REQUEST);
    pushed_text(&p, 1, "9");
    packet_put_begun(&p.said, &begun);
    hears(&p);
    assert_int_equal(ledger(&p)->begun_afresh, 1);
    pushed_text(&p, 1, "1");
    answered(&p, first, STATUS_OK, "1");
    loses_its_line(&p);
    assert_int_equal(ledger(&p)->unknown, 1);
    assert_int_equal(bots_waiting(p.all), 0);
    (void)resumes(&p, &resume);
    said_session(&p, resume, session.key, 2);
    assert_true(bot_ledger_is_clean(ledger(&p)));
    stop(&p);
}

static void what_came_is_acknowledged(void **state)
{
    struct buffer kept = {0};
    struct ack_packet ack;
    struct play p;

    (void)state;
    starts_a_session(&p, "wait 1h");
    pushed_text(&p, 1, "1");
    pushed_text(&p, 2, "2");
    while (bot_output(p.bot)->size == 0) {
        pass(&p);
    }
    const struct packet packet = takes(&p, &kept);
    assert_int_equal(packet.type, PACKET_ACK);
    assert_int_equal(packet_get_ack(packet.body, &ack), ERR_OK);
    assert_int_equal(ack.pushes, 2);
    buffer_fini(&kept);
    stop(&p);
}

static void at_the_end_it_comes_back_for_its_answers(void **state)
{
    uint32_t resume = 0;
    struct play p;

    (void)state;
    starts_a_session(&p, "request a; drop resume after 50ms; request never");
    pass(&p);
    assert_int_equal(bot_wish(p.bot), BOT_CLOSE);
    bot_on_closed(p.bot, p.now_us);
    assert_int_equal(ledger(&p)->dropped, 1);
    bots_stop(p.all);
    assert_int_equal(bots_waiting(p.all), 1);
    (void)resumes(&p, &resume);
    said_session(&p, resume, session.key, 1);
    answered(&p, asks(&p, PACKET_REQUEST), STATUS_OK, "1");
    assert_int_equal(bots_waiting(p.all), 0);
    assert_int_equal(bot_output(p.bot)->size, 0);
    loses_its_line(&p);
    assert_int_equal(bot_due_us(p.bot), UINT64_MAX);
    stop(&p);
}

/* ---- scripts ---- */

static void is_refused(const char *text, uint32_t number, const char *why)
{
    char said[SCRIPT_WHY_SIZE];
    struct script s;
    uint32_t at = 0;

    assert_false(script_parse(&s, text, &at, said));
    assert_int_equal(at, number);
    assert_string_equal(said, why);
}

static void a_script_is_refused_with_its_line(void **state)
{
    (void)state;
    is_refused("", 1, "the script has no action");
    is_refused("# nothing\n\n;\n", 4, "the script has no action");
    is_refused("wait 1s\nlogin", 2, "only the first line can be 'login'");
    is_refused("login\n\ndance", 3, "unknown action: 'dance'");
    is_refused("request", 1, "a payload is missing after 'request'");
    is_refused("request x every", 1, "a time is missing after 'every'");
    is_refused("request x every 1", 1, "must be a time such as 300ms, 2s or 1min, not '1'");
    is_refused("request x y", 1, "nothing is expected at 'y'");
    is_refused("request \"x", 1, "a quote is not closed");
    is_refused("wait 0s", 1, "must be a time such as 300ms, 2s or 1min, not '0s'");
    is_refused("drop 20%", 1, "must be a rate up to 20%/min, not '20%'");
    is_refused("drop 0%/min", 1, "must be a rate up to 20%/min, not '0%/min'");
    is_refused("drop resume", 1, "'after TIME' or 'within TIME' is missing after 'resume'");
    is_refused("drop resume after", 1, "a time is missing after 'after'");
    is_refused("request x every 1s; repeat", 1, "no 'wait' before 'repeat'");
    is_refused("a b c d e f g h i", 1, "too many words, from 'h'");
}

static void a_script_says_what_a_bot_does(void **state)
{
    const struct script *s = script_of("login # first\n"
                                       "request \"hit; #{n}\" every 2s\n"
                                       "  notify here; wait 1min\r\n"
                                       "drop 20%/min resume after 2s\n"
                                       "drop resume within 300ms; drop\n"
                                       "repeat");

    (void)state;
    assert_int_equal(s->count, 7);
    assert_int_equal(s->tasks, 1);
    assert_string_equal(s->line[0].payload, "hit; #{n}");
    assert_int_equal(s->line[0].every_ms, 2000);
    assert_string_equal(s->line[1].payload, "here");
    assert_int_equal(s->line[1].every_ms, 0);
    assert_int_equal(s->line[2].min_ms, 60000);
    assert_int_equal(s->line[3].percent, 20);
    assert_int_equal(s->line[3].min_ms, 2000);
    assert_int_equal(s->line[4].percent, 0);
    assert_int_equal(s->line[4].min_ms, 0);
    assert_int_equal(s->line[4].max_ms, 300);
    assert_int_equal(s->line[5].max_ms, 1000);
    assert_int_equal(s->line[6].act, SCRIPT_REPEAT);
    assert_int_equal(script_of("login")->count, 0); // being there is something
}

static void a_script_that_repeats_begins_again(void **state)
{
    struct bots_config config = config_of(BOT_CHECK_NONE);
    struct buffer kept = {0};
    struct request_packet r;
    struct play p;

    (void)state;
    config.script = script_of("notify \"{bot} {n}\"; wait 10ms; repeat");
    start(&p, &config);
    logs_in(&p);
    for (int i = 0; i < 600; i++) { // more often than a byte counts
        while (bot_output(p.bot)->size == 0) {
            pass(&p);
        }
        const struct packet packet = takes(&p, &kept);
        assert_int_equal(packet.type, PACKET_NOTIFY);
        assert_int_equal(packet_get_request(packet.body, &r), ERR_OK);
        assert_true(i > 0 || bytes_equal(r.payload, of("0 2")));
    }
    assert_int_equal(ledger(&p)->notified, 600);
    buffer_fini(&kept);
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
        cmocka_unit_test(one_that_leaves_is_through_when_it_has_its_answers),
        cmocka_unit_test(a_session_is_resumed_and_asks_again_what_has_no_answer),
        cmocka_unit_test(an_answer_from_before_may_come_late_but_not_run_late),
        cmocka_unit_test(what_a_resume_brings_is_judged_too),
        cmocka_unit_test(a_session_that_is_gone_is_begun_anew),
        cmocka_unit_test(an_actor_begun_afresh_makes_requests_unknown_only_with_the_line),
        cmocka_unit_test(what_came_is_acknowledged),
        cmocka_unit_test(at_the_end_it_comes_back_for_its_answers),
        cmocka_unit_test(a_script_is_refused_with_its_line),
        cmocka_unit_test(a_script_says_what_a_bot_does),
        cmocka_unit_test(a_script_that_repeats_begins_again),
        cmocka_unit_test(nonsense_of_a_gateway_is_entered_too),
    };

    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    (void)script_of("leave"); // lets go of the last one
    return failed;
}
