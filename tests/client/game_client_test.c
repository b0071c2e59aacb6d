/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client says, what it makes of answers, and of bytes that make no sense.
 */
#include "tests/client/game_client_rig.h"

#include "base/prng.h"

static void its_bytes_are_those_of_the_page(void **state)
{
    struct rig r;
    const struct rhc_request hit = {
        .kind = 0x0506, .flags = RHC_IDEMPOTENT, .id = word("boss"), .payload = word("hit 7")};
    const struct rhc_request late = {.deadline_ms = 2000, .id = word("a")};

    (void)state;
    start(&r, NULL);
    assert_int_equal(rhc_ask(r.c, &hit, r.now_ms, NULL), RHC_DONE);
    assert_int_equal(rhc_tell(r.c, &late, r.now_ms), RHC_DONE);
    says(&r,
         "06 000011 00000001 01 04 0506 626f7373 6869742037"
         "08 00000d 00000002 02 01 0000 000007d0 61");
    hears(&r, "03 000001 78");
    nothing_more(&r);
    says(&r, "04 000001 78");
    end(&r);
}

static void a_token_is_shown_where_it_is_asked_for(void **state)
{
    const struct rhc_options o = {.token = "rh1.k1.AA.BB"};
    struct rig r;

    (void)state;
    make(&r, &o);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    (void)ask(&r, "x");
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, "0d 00000c 7268312e6b312e41412e4242");
    hears(&r, "0f 00000f 000000006b49d200 0007 04 626f7373");
    const struct rhc_event known = next(&r, RHC_EVENT_KNOWN);

    assert_int_equal(known.code, 7);
    assert_int_equal(known.payload.size, 4);
    assert_memory_equal(known.payload.data, "boss", 4);
    (void)next(&r, RHC_EVENT_READY);
    says(&r, "06 00000d 00000001 00 04 0007 626f7373 78");
    end(&r);

    make(&r, NULL);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    assert_int_equal(rhc_wishes(r.c), RHC_HANG_UP);
    rhc_disconnected(r.c, NULL, r.now_ms);
    assert_int_equal(next(&r, RHC_EVENT_KICKED).code, 106);
    assert_int_equal(rhc_state(r.c), RHC_ENDED);
    end(&r);
}

static void known(struct rig *r, const char *auth_ok)
{
    hears(r, auth_ok);
    (void)next(r, RHC_EVENT_KNOWN);
    (void)next(r, RHC_EVENT_READY);
}

static void a_token_that_a_gateway_gives_is_shown_from_then_on(void **state)
{
    static const char given[] =
        "0f 00001d 000000006b49d200 0007 04 626f7373 000c 7268312e6b312e41412e4242";
    static const char shows_given[] = "0d 00000c 7268312e6b312e41412e4242";
    static const char logs_in[] = "0d 000008 6576653a31323334";
    const struct rhc_options o = {.token = "eve:1234"};
    struct rig r;

    (void)state;
    make(&r, &o);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, logs_in);
    known(&r, given);
    drop(&r);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, shows_given);
    known(&r, "0f 00000f 000000006b49d200 0007 04 626f7373");
    drop(&r);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, shows_given);
    hears(&r, "05 000004 0000006f"); // 111: it is over, so it logs in again
    nothing_more(&r);
    drop(&r);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, logs_in);
    known(&r, given);
    assert_int_equal(rhc_set_token(r.c, "bob:1"), RHC_DONE); // is somebody else now
    drop(&r);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, "0d 000005 626f623a31");
    hears(&r, "05 000004 00000070"); // 112: refused, for good
    nothing_more(&r);
    rhc_disconnected(r.c, NULL, r.now_ms);
    assert_int_equal(next(&r, RHC_EVENT_KICKED).code, 112);
    end(&r);
}

static const char bind_mage[] = "0b 00000c 7fffffff 04 04 0008 6d616765";

/* By the actor that it is bound to, as "mage" of kind 8; with this token. */
static void rebound(struct rig *r)
{
    hears(r, "12 00001d 000000006b49d200 0008 04 6d616765 000c 7268312e6b312e41412e4343");
    const struct rhc_event e = next(r, RHC_EVENT_REBOUND);

    assert_int_equal(e.code, 8);
    assert_int_equal(e.payload.size, 4);
    assert_memory_equal(e.payload.data, "mage", 4);
}

static void who_is_rebound_binds_itself_when_it_has_its_answers(void **state)
{
    struct rig r;

    (void)state;
    start_bound(&r);
    const uint32_t before = ask(&r, "1");

    says(&r, "06 00000d 00000001 00 04 0007 626f7373 31");
    rebound(&r);
    (void)ask(&r, "2");
    says(&r, "");
    hears(&r, "07 000009 00000001 00 00000000");
    ended(&r, before, RHC_OK);
    says(&r, bind_mage);
    hears(&r, bound_kept);
    assert_int_equal(next(&r, RHC_EVENT_BOUND).fresh, 1);
    says(&r, "06 00000d 00000002 00 04 0007 626f7373 32");
    end(&r);
}

static void who_is_rebound_comes_back_as_that_or_goes_home(void **state)
{
    const struct rhc_options o = {.token = "eve:1234"};
    struct rig r;

    (void)state;
    make(&r, &o);
    assert_int_equal(rhc_bind(r.c, 7, word("boss")), RHC_DONE);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, "0d 000008 6576653a31323334");
    hears(&r, "0f 00000f 000000006b49d200 0007 04 626f7373");
    (void)next(&r, RHC_EVENT_KNOWN);
    says(&r, bind_kept);
    hears(&r, bound_kept);
    (void)next(&r, RHC_EVENT_BOUND);
    (void)next(&r, RHC_EVENT_READY);
    rebound(&r);
    says(&r, bind_mage);
    drop(&r);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, "0d 00000c 7268312e6b312e41412e4343");
    hears(&r, "0f 00000f 000000006b49d200 0008 04 6d616765");
    (void)next(&r, RHC_EVENT_KNOWN);
    says(&r, bind_mage);
    drop(&r);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, "0d 00000c 7268312e6b312e41412e4343");
    hears(&r, "05 000004 0000006f"); // 111: the token is over
    nothing_more(&r);
    drop(&r);
    dial(&r);
    hears(&r, hello_ack_auth);
    nothing_more(&r);
    says(&r, "0d 000008 6576653a31323334");
    hears(&r, "0f 00000f 000000006b49d200 0007 04 626f7373");
    (void)next(&r, RHC_EVENT_KNOWN);
    says(&r, bind_kept);
    end(&r);
}

static void an_auth_ok_that_makes_no_sense_ends_the_connection(void **state)
{
    static const char *const bad[] = {
        "0f 00000e 000000006b49d200 0007 04 626f73",
        "0f 00000b 000000006b49d200 0007 00",
        "0f 000012 000000006b49d200 0007 04 626f7373 000c 72",
        "0f 000011 000000006b49d200 0007 04 626f7373 0209",
    };
    const struct rhc_options o = {.token = "x"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rig r;

        make(&r, &o);
        assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
        dial(&r);
        hears(&r, hello_ack_auth);
        hears(&r, bad[i]);
        nothing_more(&r);
        assert_int_equal(rhc_wishes(r.c), RHC_HANG_UP);
        end(&r);
    }
}

static void note_done(void *context, unsigned status, struct rhc_bytes payload, uint32_t retry_ms)
{
    char *line = context;

    (void)snprintf(line,
                   64,
                   "%s %.*s %u",
                   rhc_status_name(status),
                   (int)payload.size,
                   (const char *)payload.data,
                   retry_ms);
}

static void answers_find_their_requests_in_any_order(void **state)
{
    struct rig r;
    char line[64] = "";
    const struct rhc_request q = {.id = word("a"), .done = note_done, .context = line};

    (void)state;
    start(&r, NULL);
    const uint32_t first = ask(&r, "1");
    uint32_t second = 0;

    assert_int_equal(rhc_ask(r.c, &q, r.now_ms, &second), RHC_DONE);
    says(&r,
         "06 00000d 00000001 00 04 0007 626f7373 31"
         "06 000009 00000002 00 01 0000 61");
    hears(&r, "07 00000b 00000002 05 00000064 6e6f  07 000009 00000001 00 00000000");
    struct rhc_event e = next(&r, RHC_EVENT_RESPONSE);

    assert_int_equal(e.request, second);
    e.done(e.context, e.status, e.payload, e.retry_ms);
    assert_string_equal(line, "OVERLOADED no 100");
    ended(&r, first, RHC_OK);
    hears(&r, "07 000009 00000001 00 00000000"); // again: nobody asked
    nothing_more(&r);
    end(&r);
}

static void nobody_answers_for_ever(void **state)
{
    const struct rhc_options o = {.answer_ms = 3000};
    struct rig r;

    (void)state;
    start(&r, &o);
    const uint32_t sent = ask(&r, "1");

    says(&r, "06 00000d 00000001 00 04 0007 626f7373 31");
    const uint32_t unsent = ask(&r, "2");

    r.now_ms += 4000;
    rhc_tick(r.c, r.now_ms);
    ended(&r, sent, RHC_TIMEOUT);
    ended(&r, unsent, RHC_MOVING);
    hears(&r, "07 000009 00000001 00 00000000");
    nothing_more(&r);
    says(&r, ""); // what has ended is not sent
    end(&r);
}

static void what_does_not_fit_is_refused_and_fits_later(void **state)
{
    const struct rhc_options o = {.requests_max = 4, .out_max = 1024};
    struct rig r;
    char big[600];
    const struct rhc_request q = {.id = word("a"), .payload = {big, sizeof big}};

    (void)state;
    memset(big, 'x', sizeof big);
    start(&r, &o);
    assert_int_equal(rhc_ask(r.c, &q, r.now_ms, NULL), RHC_DONE);
    assert_int_equal(rhc_ask(r.c, &q, r.now_ms, NULL), RHC_FULL);
    while (rhc_output(r.c).size > 0) {
        rhc_sent(r.c, 1, r.now_ms);
    }
    assert_int_equal(rhc_ask(r.c, &q, r.now_ms, NULL), RHC_FULL);
    hears(&r, "07 000009 00000001 00 00000000");
    ended(&r, 1, RHC_OK);
    assert_int_equal(rhc_ask(r.c, &q, r.now_ms, NULL), RHC_DONE);
    for (int i = 0; i < 3; i++) {
        (void)ask(&r, "");
    }
    const struct rhc_request one_more = {.id = word("a")};

    assert_int_equal(rhc_ask(r.c, &one_more, r.now_ms, NULL), RHC_FULL);
    assert_int_equal(rhc_ask(r.c, &(struct rhc_request){0}, r.now_ms, NULL), RHC_INVALID);
    end(&r);
}

/* Whatever comes, in pieces of any size: no byte outside its memory, and it goes on. */
static void any_bytes_do_no_harm(void **state)
{
    struct prng prng = {4711};
    struct rig r;

    (void)state;
    make(&r, &(struct rhc_options){.in_max = 1024, .out_max = 1024, .requests_max = 8});
    assert_int_equal(rhc_bind(r.c, 7, word("boss")), RHC_DONE);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    for (int turn = 0; turn < 20000; turn++) {
        uint8_t bytes[64];
        size_t size = 0;
        struct rhc_event e;
        (void)rhc_room(r.c, &size);
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (uint8_t)prng_u64(&prng);
        }
        bytes[0] %= 18; // types that mean something to it
        bytes[1] = 0;
        bytes[2] = 0;
        bytes[3] %= 60;
        if (size >= sizeof bytes && prng_chance(&prng, 12)) {
            hears(&r, rhc_state(r.c) == RHC_GREETING ? hello_ack : "03 000000");
        } else if (size >= sizeof bytes) {
            hear_bytes(&r, bytes, 4u + bytes[3]);
        }
        (void)rhc_ask(r.c, &(struct rhc_request){.id = word("x")}, r.now_ms, NULL);
        while (rhc_next(r.c, &e) != 0) {
        }
        const struct rhc_bytes out = rhc_output(r.c);

        if (out.size > 0) {
            rhc_sent(r.c, 1 + (size_t)(prng_u64(&prng) % out.size), r.now_ms);
        }
        r.now_ms += prng_u64(&prng) % 500;
        rhc_tick(r.c, r.now_ms);
        if (rhc_wishes(r.c) == RHC_HANG_UP) {
            rhc_disconnected(r.c, NULL, r.now_ms);
        } else if (rhc_wishes(r.c) == RHC_DIAL) {
            rhc_connected(r.c, r.now_ms);
        }
        if (rhc_state(r.c) == RHC_ENDED) {
            assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
        }
    }
    end(&r);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    char long_token[1026];
    const struct rhc_options good = {.abi = RHC_ABI, .size = sizeof good};
    struct rhc_options o = good;

    (void)state;
    assert_true(rhc_size(&good) > 0);
    o.abi = 99;
    assert_int_equal(rhc_size(&o), 0);
    o = good;
    o.in_max = 10;
    assert_int_equal(rhc_size(&o), 0);
    o = good;
    memset(long_token, 'x', sizeof long_token);
    long_token[sizeof long_token - 1] = '\0';
    o.token = long_token;
    assert_int_equal(rhc_size(&o), 0);
    assert_null(rhc_init(NULL, &good));
    assert_null(rhc_tcp_new("nowhere", &good, NULL, NULL));
    assert_null(rhc_tcp_new("", &good, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_bytes_are_those_of_the_page),
        cmocka_unit_test(a_token_is_shown_where_it_is_asked_for),
        cmocka_unit_test(a_token_that_a_gateway_gives_is_shown_from_then_on),
        cmocka_unit_test(who_is_rebound_binds_itself_when_it_has_its_answers),
        cmocka_unit_test(who_is_rebound_comes_back_as_that_or_goes_home),
        cmocka_unit_test(an_auth_ok_that_makes_no_sense_ends_the_connection),
        cmocka_unit_test(answers_find_their_requests_in_any_order),
        cmocka_unit_test(nobody_answers_for_ever),
        cmocka_unit_test(what_does_not_fit_is_refused_and_fits_later),
        cmocka_unit_test(any_bytes_do_no_harm),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
