/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a client's requests and its session when lines drop and gateways stop.
 */
#include "tests/client/game_client_rig.h"

static void what_was_sent_may_have_run_and_the_rest_goes_out_later(void **state)
{
    struct rig r;

    (void)state;
    start(&r, NULL);
    const uint32_t sent = ask(&r, "1");
    const uint32_t safe = ask_flags(&r, "2", RHC_IDEMPOTENT);

    tell(&r, "3");
    says(&r,
         "06 00000d 00000001 00 04 0007 626f7373 31"
         "06 00000d 00000002 01 04 0007 626f7373 32"
         "08 00000d 00000003 00 04 0007 626f7373 33");
    const uint32_t half = ask(&r, "4");

    assert_true(rhc_output(r.c).size > 5);
    rhc_sent(r.c, 5, r.now_ms); // half a packet never ran
    drop(&r);
    ended(&r, sent, RHC_UNKNOWN);
    nothing_more(&r);
    (void)ask(&r, "5");
    dial(&r);
    hears(&r, hello_ack);
    assert_int_equal(next(&r, RHC_EVENT_READY).payload.size, 0);
    says(&r,
         "06 00000d 00000002 01 04 0007 626f7373 32"
         "06 00000d 00000004 00 04 0007 626f7373 34"
         "06 00000d 00000005 00 04 0007 626f7373 35");
    hears(&r, "07 000009 00000002 00 00000000 07 000009 00000004 00 00000000");
    ended(&r, safe, RHC_OK);
    ended(&r, half, RHC_OK);
    end(&r);
}

static void a_session_is_resumed_and_runs_each_request_once(void **state)
{
    struct rig r;

    (void)state;
    start_bound(&r);
    const uint32_t lost = ask(&r, "1");
    const uint32_t answered = ask(&r, "2");

    tell(&r, "3");
    says(&r,
         "06 00000d 00000001 00 04 0007 626f7373 31"
         "06 00000d 00000002 00 04 0007 626f7373 32"
         "08 00000d 00000003 00 04 0007 626f7373 33");
    hears(&r,
          "07 000009 00000002 00 00000000"
          "09 000009 0000000000000001 61 09 000009 0000000000000002 62");
    ended(&r, answered, RHC_OK);
    assert_int_equal(next(&r, RHC_EVENT_PUSH).sequence, 1);
    assert_int_equal(next(&r, RHC_EVENT_PUSH).sequence, 2);
    r.now_ms += 1000;
    rhc_tick(r.c, r.now_ms);
    says(&r, "11 00000c 0000000000000002 00000001");
    drop(&r);
    nothing_more(&r);
    const uint32_t fresh = ask(&r, "4");

    dial(&r);
    hears(&r, hello_ack);
    nothing_more(&r);
    says(&r, "0e 000032 7fffffff 00 04 0007 626f7373" SESSION "0000000000000002 00000001 0001");
    hears(&r, bound_kept);
    assert_int_equal(next(&r, RHC_EVENT_BOUND).fresh, 0);
    (void)next(&r, RHC_EVENT_READY);
    says(&r,
         "06 00000d 00000001 08 04 0007 626f7373 31"
         "06 00000d 00000004 00 04 0007 626f7373 34");
    hears(&r,
          "09 000009 0000000000000002 62 09 000009 0000000000000005 63"
          "07 000009 00000001 00 00000000 07 000009 00000004 00 00000000");
    const struct rhc_event e = next(&r, RHC_EVENT_PUSH);

    assert_int_equal(e.sequence, 5);
    assert_int_equal(e.lost, 2);
    ended(&r, lost, RHC_OK);
    ended(&r, fresh, RHC_OK);
    r.now_ms += 1000;
    rhc_tick(r.c, r.now_ms);
    says(&r, "11 00000c 0000000000000005 00000005");
    end(&r);
}

static void a_session_that_is_gone_is_begun_afresh(void **state)
{
    struct rig r;

    (void)state;
    start_bound(&r);
    const uint32_t lost = ask(&r, "1");

    says(&r, "06 00000d 00000001 00 04 0007 626f7373 31");
    drop(&r);
    resumes(&r);
    hears(&r, "07 00000d 7fffffff 04 00000064 6e6f6e65"); // MOVING: ask again
    nothing_more(&r);
    r.now_ms += 250;
    rhc_tick(r.c, r.now_ms);
    says(&r, "0e 000032 7fffffff 00 04 0007 626f7373" SESSION "0000000000000000 00000001 0002");
    hears(&r, "07 000013 7fffffff 08 00000000 474f4e4520746f6f206c"); // "GONE too l"
    ended(&r, lost, RHC_UNKNOWN);
    says(&r, bind_kept);
    hears(&r, bound_kept);
    assert_int_equal(next(&r, RHC_EVENT_BOUND).fresh, 1);
    (void)next(&r, RHC_EVENT_READY);
    hears(&r, "09 000009 0000000000000001 61");
    assert_int_equal(next(&r, RHC_EVENT_PUSH).lost, 0);
    end(&r);
}

static void another_client_in_its_place_is_the_end(void **state)
{
    struct rig r;

    (void)state;
    start_bound(&r);
    drop(&r);
    resumes(&r);
    hears(&r, "07 000011 7fffffff 08 00000000 5245504c41434544"); // "REPLACED"
    nothing_more(&r);
    assert_int_equal(rhc_wishes(r.c), RHC_HANG_UP);
    rhc_disconnected(r.c, NULL, r.now_ms);
    assert_int_equal(next(&r, RHC_EVENT_KICKED).code, 1);
    assert_int_equal(rhc_state(r.c), RHC_ENDED);
    end(&r);
}

static void an_actor_begun_afresh_runs_nothing_again(void **state)
{
    struct rig r;

    (void)state;
    start_bound(&r);
    const uint32_t before = ask(&r, "1");

    says(&r, "06 00000d 00000001 00 04 0007 626f7373 31");
    hears(&r, "10 000024 " SESSION " 0000000000000001 00007530 09 000009 0000000000000001 61");
    (void)next(&r, RHC_EVENT_BEGUN);
    (void)next(&r, RHC_EVENT_PUSH);
    const uint32_t after = ask(&r, "2");

    says(&r, "06 00000d 00000002 00 04 0007 626f7373 32");
    drop(&r);
    ended(&r, before, RHC_UNKNOWN);
    dial(&r);
    hears(&r, hello_ack);
    nothing_more(&r);
    says(&r, "0e 000032 7fffffff 00 04 0007 626f7373" SESSION "0000000000000001 00000002 0001");
    hears(&r, bound_kept);
    (void)next(&r, RHC_EVENT_BOUND);
    (void)next(&r, RHC_EVENT_READY);
    says(&r, "06 00000d 00000002 08 04 0007 626f7373 32");
    hears(&r, "07 000009 00000002 00 00000000");
    ended(&r, after, RHC_OK);
    end(&r);
}

/* Its first pushes were let go before the gateway heard that it was begun (fleet_sim --profile
 * sessions --seed 2234). */
static void what_an_actor_begun_afresh_could_not_keep_is_told(void **state)
{
    struct rig r;

    (void)state;
    start_bound(&r);
    hears(&r, "10 000024 " SESSION " 000000000000000b 00007530 09 000009 000000000000000b 61");
    (void)next(&r, RHC_EVENT_BEGUN);
    const struct rhc_event push = next(&r, RHC_EVENT_PUSH);
    assert_int_equal(push.sequence, 11);
    assert_int_equal(push.lost, 10);
    end(&r);
}

/* It came with the answer to the resume: what was sent in the connection before is not sent again
 * as if it were new. */
static void nor_when_it_hears_of_that_as_it_is_back(void **state)
{
    struct rig r;

    (void)state;
    start_bound(&r);
    const uint32_t before = ask(&r, "1");

    says(&r, "06 00000d 00000001 00 04 0007 626f7373 31");
    drop(&r);
    nothing_more(&r);
    resumes(&r);
    hears(&r, bound_kept);
    hears(&r, "10 000024 " SESSION " 0000000000000001 00007530");
    (void)next(&r, RHC_EVENT_BOUND);
    (void)next(&r, RHC_EVENT_READY);
    (void)next(&r, RHC_EVENT_BEGUN);
    ended(&r, before, RHC_UNKNOWN);
    says(&r, "");
    end(&r);
}

static void a_gateway_that_keeps_no_sessions_will_do(void **state)
{
    struct rig r;

    (void)state;
    make(&r, NULL);
    assert_int_equal(rhc_bind(r.c, 7, word("boss")), RHC_DONE);
    assert_int_equal(rhc_bind(r.c, 7, word("boss")), RHC_INVALID);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, hello_ack);
    nothing_more(&r);
    says(&r, bind_kept);
    hears(&r, "07 000009 7fffffff 09 00000000"); // BAD_REQUEST
    nothing_more(&r);
    says(&r, "0b 00000c 7fffffff 00 04 0007 626f7373");
    hears(&r, "07 000009 7fffffff 00 00000000  09 000009 0000000000000001 61");
    (void)next(&r, RHC_EVENT_BOUND);
    (void)next(&r, RHC_EVENT_READY);
    (void)next(&r, RHC_EVENT_PUSH);
    r.now_ms += 2000;
    rhc_tick(r.c, r.now_ms);
    says(&r, ""); // no ack: nothing is kept
    assert_int_equal(rhc_unbind(r.c), RHC_DONE);
    says(&r, "0c 000004 7ffffffe");
    hears(&r, "07 000009 7ffffffe 00 00000000");
    (void)next(&r, RHC_EVENT_UNBOUND);
    hears(&r, "09 000009 0000000000000002 61");
    nothing_more(&r);
    end(&r);
}

/* fleet_sim --profile sessions --seed 77002479: it took the gateway for one that keeps none. */
static void a_bind_waits_for_what_was_asked_before(void **state)
{
    struct rig r;

    (void)state;
    make(&r, NULL);
    assert_int_equal(rhc_bind(r.c, 7, word("boss")), RHC_DONE);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, hello_ack);
    nothing_more(&r);
    says(&r, bind_kept);
    // BAD_REQUEST: requests are in progress
    hears(&r, "07 000021 7fffffff 09 00000000 72657175657374732061726520696e2070726f6772657373");
    nothing_more(&r);
    says(&r, "");
    r.now_ms += 1000;
    rhc_tick(r.c, r.now_ms);
    says(&r, bind_kept);
    end(&r);
}

static void a_bind_that_is_refused_is_not_tried_again(void **state)
{
    struct rig r;

    (void)state;
    make(&r, NULL);
    assert_int_equal(rhc_bind(r.c, 7, word("boss")), RHC_DONE);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, hello_ack);
    nothing_more(&r);
    says(&r, bind_kept);
    hears(&r, "07 00000b 7fffffff 08 00000000 6e6f");
    const struct rhc_event e = next(&r, RHC_EVENT_REFUSED);

    assert_int_equal(e.status, RHC_REJECTED);
    (void)next(&r, RHC_EVENT_READY);
    assert_int_equal(rhc_unbind(r.c), RHC_INVALID);
    end(&r);
}

static void what_a_stopping_gateway_did_not_run_goes_to_the_next(void **state)
{
    struct rig r;

    (void)state;
    start(&r, NULL);
    const uint32_t gateway = rhc_gateway(r.c);
    const uint32_t slow = ask(&r, "1");
    const uint32_t late = ask(&r, "2");

    says(&r,
         "06 00000d 00000001 00 04 0007 626f7373 31"
         "06 00000d 00000002 00 04 0007 626f7373 32");
    hears(&r, "0a 000008 000001f4 73746f70  07 000009 00000002 04 00000064");
    assert_int_equal(next(&r, RHC_EVENT_GOAWAY).retry_ms, 500);
    nothing_more(&r);
    (void)ask(&r, "3");
    says(&r, "");
    rhc_tick(r.c, r.now_ms);
    assert_int_equal(rhc_wishes(r.c), RHC_NOTHING); // an answer is owed
    hears(&r, "07 000009 00000001 00 00000000");
    ended(&r, slow, RHC_OK);
    rhc_tick(r.c, r.now_ms);
    assert_int_equal(rhc_wishes(r.c), RHC_HANG_UP);
    const uint64_t left_ms = r.now_ms;

    drop(&r);
    nothing_more(&r);
    dial(&r);
    assert_true(r.now_ms - left_ms >= 500 && r.now_ms - left_ms <= 1001);
    assert_int_equal(rhc_gateway(r.c), gateway + 1);
    hears(&r, hello_ack);
    (void)next(&r, RHC_EVENT_READY);
    says(&r,
         "06 00000d 00000002 00 04 0007 626f7373 32"
         "06 00000d 00000003 00 04 0007 626f7373 33");
    hears(&r, "07 000009 00000002 00 00000000");
    ended(&r, late, RHC_OK);
    end(&r);
}

static void a_stopping_gateway_knows_nothing_of_what_is_sent_again(void **state)
{
    struct rig r;

    (void)state;
    start_bound(&r);
    (void)ask(&r, "1");
    says(&r, "06 00000d 00000001 00 04 0007 626f7373 31");
    for (size_t i = 0; i < 2; i++) {
        drop(&r);
        nothing_more(&r);
        dial(&r);
        hears(&r, hello_ack);
        nothing_more(&r);
        says(&r,
             i == 0 ? "0e 000032 7fffffff 00 04 0007 626f7373" SESSION
                      "0000000000000000 00000001 0001"
                    : "0e 000032 7fffffff 00 04 0007 626f7373" SESSION
                      "0000000000000000 00000001 0002");
        hears(&r, bound_kept);
        (void)next(&r, RHC_EVENT_BOUND);
        (void)next(&r, RHC_EVENT_READY);
        says(&r, "06 00000d 00000001 08 04 0007 626f7373 31"); // it may have run, still
        if (i == 0) {
            hears(&r, "0a 000008 000001f4 73746f70  07 000009 00000001 04 00000064");
            (void)next(&r, RHC_EVENT_GOAWAY);
            nothing_more(&r);
        }
    }
    end(&r);
}

static void a_gateway_without_room_is_left_for_as_long_as_it_says(void **state)
{
    struct rig r;

    (void)state;
    make(&r, NULL);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, "0a 000008 00001388 66756c6c");
    assert_int_equal(next(&r, RHC_EVENT_GOAWAY).retry_ms, 5000);
    assert_int_equal(rhc_wishes(r.c), RHC_HANG_UP);
    const uint64_t left_ms = r.now_ms;

    drop(&r);
    dial(&r);
    assert_true(r.now_ms - left_ms >= 5000 && r.now_ms - left_ms <= 10001);
    end(&r);
}

static void some_kicks_are_for_good_and_some_are_not(void **state)
{
    struct rig r;

    (void)state;
    start(&r, NULL);
    const uint32_t asked = ask(&r, "1");

    says(&r, "06 00000d 00000001 00 04 0007 626f7373 31");
    hears(&r, "05 000007 000003e8 627965  07 000009 00000001 00 00000000");
    nothing_more(&r);
    assert_int_equal(rhc_wishes(r.c), RHC_HANG_UP);
    rhc_disconnected(r.c, NULL, r.now_ms);
    ended(&r, asked, RHC_UNKNOWN);
    const struct rhc_event e = next(&r, RHC_EVENT_KICKED);

    assert_int_equal(e.code, 1000);
    assert_memory_equal(e.payload.data, "bye", 3);
    rhc_stop(r.c); // it is over: nothing is told twice
    nothing_more(&r);
    assert_int_equal(rhc_wake_ms(r.c) == UINT64_MAX, 1);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, hello_ack);
    (void)next(&r, RHC_EVENT_READY);
    hears(&r, "05 000004 00000068"); // 104: silent
    nothing_more(&r);
    drop(&r);
    dial(&r);
    end(&r);
}

static const char hello_ack_1k[] =
    "02 000018 01 00 0000 00007530 00000400 00000400 1122334455667788";

static void what_a_gateway_does_not_take_never_goes_out(void **state)
{
    char big[1100];
    const struct rhc_request q = {.kind = 7, .id = word("boss"), .payload = {big, sizeof big}};
    struct rig r;
    uint32_t name = 0;

    (void)state;
    memset(big, 'x', sizeof big);
    make(&r, NULL);
    assert_int_equal(rhc_ask(r.c, &q, r.now_ms, &name), RHC_DONE); // nobody has said anything yet
    assert_int_equal(rhc_tell(r.c, &q, r.now_ms), RHC_DONE);
    (void)ask(&r, "1");
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, hello_ack_1k);
    ended(&r, name, RHC_BAD_REQUEST);
    (void)next(&r, RHC_EVENT_READY);
    says(&r, "06 00000d 00000003 00 04 0007 626f7373 31");
    assert_int_equal(rhc_ask(r.c, &q, r.now_ms, NULL), RHC_TOO_LARGE);
    assert_int_equal(rhc_tell(r.c, &q, r.now_ms), RHC_TOO_LARGE);
    drop(&r);
    assert_int_equal(rhc_ask(r.c, &q, r.now_ms, NULL), RHC_TOO_LARGE); // as it was said last
    ended(&r, 3, RHC_UNKNOWN);
    dial(&r);
    hears(&r, hello_ack); // this one takes more
    (void)next(&r, RHC_EVENT_READY);
    assert_int_equal(rhc_ask(r.c, &q, r.now_ms, NULL), RHC_DONE);
    end(&r);

    make(&r, NULL); // less than 512 bytes is no gateway's
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, "02 000018 01 00 0000 00007530 000001ff 00000400 1122334455667788");
    nothing_more(&r);
    assert_int_equal(rhc_wishes(r.c), RHC_HANG_UP);
    end(&r);
}

static const char too_large[] = "05 000004 00000065"; // 101

/* Kicked, and what went out last ends so; 0 = nothing does. */
static void kicked(struct rig *r, uint32_t name, unsigned status)
{
    hears(r, too_large);
    if (name != 0) {
        ended(r, name, status);
    }
    nothing_more(r);
    assert_int_equal(rhc_wishes(r->c), RHC_HANG_UP);
    rhc_disconnected(r->c, NULL, r->now_ms);
    (void)next(r, RHC_EVENT_LOST);
}

static void sends_all(struct rig *r)
{
    for (struct rhc_bytes out = rhc_output(r->c); out.size > 0; out = rhc_output(r->c)) {
        rhc_sent(r->c, out.size, r->now_ms);
    }
}

static void back_again(struct rig *r)
{
    dial(r);
    hears(r, hello_ack);
    (void)next(r, RHC_EVENT_READY);
}

static void what_a_gateway_called_too_large_is_never_sent_again(void **state)
{
    struct rig r;

    (void)state;
    start(&r, NULL);
    const uint32_t small = ask_flags(&r, "1", RHC_IDEMPOTENT);
    const uint32_t large = ask_flags(&r, "1111", RHC_IDEMPOTENT);
    const uint32_t behind = ask(&r, "11");

    sends_all(&r);
    kicked(&r, large, RHC_BAD_REQUEST); // it stopped there, so it did not run
    ended(&r, behind, RHC_UNKNOWN);
    back_again(&r);
    says(&r, "06 00000d 00000001 01 04 0007 626f7373 31");

    // What an earlier connection sent may have run by that one.
    kicked(&r, small, RHC_UNKNOWN);
    back_again(&r);
    says(&r, "");

    // A notify as large may have been it.
    const uint32_t maybe = ask(&r, "1111");

    tell(&r, "22222");
    sends_all(&r);
    kicked(&r, maybe, RHC_UNKNOWN);
    back_again(&r);
    tell(&r, "22222");
    sends_all(&r);
    kicked(&r, 0, 0);
    back_again(&r);
    says(&r, "");

    // Half of it is out.
    const uint32_t half = ask(&r, "1111");

    (void)rhc_output(r.c);
    rhc_sent(r.c, 5, r.now_ms);
    kicked(&r, half, RHC_BAD_REQUEST);
    back_again(&r);

    // Nothing went out: what it says of itself is too large, and always will be.
    hears(&r, too_large);
    nothing_more(&r);
    rhc_disconnected(r.c, NULL, r.now_ms);
    assert_int_equal(next(&r, RHC_EVENT_KICKED).code, 101);
    end(&r);
}

static void one_that_greets_and_hangs_up_is_as_good_as_none(void **state)
{
    struct rig r;
    uint64_t waited_ms = 0;

    (void)state;
    start(&r, NULL);
    for (int turn = 0; turn < 40; turn++) {
        drop(&r);
        const uint64_t from_ms = r.now_ms;

        dial(&r);
        waited_ms = r.now_ms - from_ms > waited_ms ? r.now_ms - from_ms : waited_ms;
        hears(&r, hello_ack);
        (void)next(&r, RHC_EVENT_READY);
    }
    assert_true(waited_ms > 5000);
    r.now_ms += 10000; // it lasted
    drop(&r);
    const uint64_t from_ms = r.now_ms;

    dial(&r);
    assert_true(r.now_ms - from_ms <= 201);
    hears(&r, hello_ack);
    (void)next(&r, RHC_EVENT_READY);
    hears(&r, "0a 000004 ffffffff"); // come again in 49 days
    (void)next(&r, RHC_EVENT_GOAWAY);
    rhc_tick(r.c, r.now_ms);
    drop(&r);
    assert_true(rhc_wake_ms(r.c) - r.now_ms <= 2 * 3600 * 1000 + 1);
    end(&r);
}

static void a_gateway_that_falls_silent_is_left(void **state)
{
    struct rig r;

    (void)state;
    start(&r, NULL);
    r.now_ms += 30000;
    rhc_tick(r.c, r.now_ms);
    says(&r, "03 000000");
    hears(&r, "04 000000");
    nothing_more(&r);
    r.now_ms += 30000;
    rhc_tick(r.c, r.now_ms);
    says(&r, "03 000000");
    r.now_ms += 30000;
    rhc_tick(r.c, r.now_ms);
    assert_int_equal(rhc_wishes(r.c), RHC_HANG_UP);
    end(&r);
}

static void a_heartbeat_of_no_gateway_is_a_second(void **state)
{
    struct rig r;

    (void)state;
    make(&r, NULL);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, "02 000018 01 00 0000 00000001 00010000 00000400 1122334455667788");
    (void)next(&r, RHC_EVENT_READY);
    r.now_ms += 999;
    rhc_tick(r.c, r.now_ms);
    says(&r, "");
    r.now_ms += 1;
    rhc_tick(r.c, r.now_ms);
    says(&r, "03 000000");
    assert_int_equal(rhc_state(r.c), RHC_READY);
    end(&r);
}

static void it_dials_again_later_and_later_and_never_all_at_once(void **state)
{
    struct rig r;
    uint64_t waits[2][12];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const struct rhc_options o = {.seed = 100 + i};

        make(&r, &o);
        assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
        for (unsigned turn = 0; turn < 12; turn++) {
            const uint64_t from_ms = r.now_ms;

            wait_for_dial(&r);
            rhc_disconnected(r.c, "refused", r.now_ms);
            (void)next(&r, RHC_EVENT_LOST);
            waits[i][turn] = r.now_ms - from_ms;
            assert_true(waits[i][turn] <= 10001);
        }
        end(&r);
    }
    assert_memory_not_equal(waits[0], waits[1], sizeof waits[0]);
    assert_true(waits[0][8] + waits[0][9] + waits[0][10] + waits[0][11] > 2000);
}

static void who_stops_is_told_what_became_of_it_all(void **state)
{
    struct rig r;

    (void)state;
    start(&r, NULL);
    const uint32_t sent = ask(&r, "1");

    says(&r, "06 00000d 00000001 00 04 0007 626f7373 31");
    const uint32_t unsent = ask(&r, "2");

    rhc_stop(r.c);
    assert_int_equal(rhc_wishes(r.c), RHC_HANG_UP);
    rhc_disconnected(r.c, NULL, r.now_ms);
    ended(&r, sent, RHC_UNKNOWN);
    ended(&r, unsent, RHC_MOVING);
    nothing_more(&r);
    assert_int_equal(rhc_state(r.c), RHC_ENDED);
    end(&r);
}

static void who_stops_while_it_leaves_is_bound_to_nobody(void **state)
{
    struct rig r;

    (void)state;
    start_bound(&r);
    assert_int_equal(rhc_unbind(r.c), RHC_DONE);
    rhc_stop(r.c);
    rhc_disconnected(r.c, NULL, r.now_ms);
    (void)next(&r, RHC_EVENT_UNBOUND);
    nothing_more(&r);
    assert_int_equal(rhc_bind(r.c, 7, word("mage")), RHC_DONE);
    assert_int_equal(rhc_start(r.c, r.now_ms), RHC_DONE);
    dial(&r);
    hears(&r, hello_ack);
    nothing_more(&r);
    says(&r, "0b 00000c 7fffffff 04 04 0007 6d616765");
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_may_have_run_and_the_rest_goes_out_later),
        cmocka_unit_test(a_session_is_resumed_and_runs_each_request_once),
        cmocka_unit_test(a_session_that_is_gone_is_begun_afresh),
        cmocka_unit_test(another_client_in_its_place_is_the_end),
        cmocka_unit_test(an_actor_begun_afresh_runs_nothing_again),
        cmocka_unit_test(what_an_actor_begun_afresh_could_not_keep_is_told),
        cmocka_unit_test(nor_when_it_hears_of_that_as_it_is_back),
        cmocka_unit_test(a_stopping_gateway_knows_nothing_of_what_is_sent_again),
        cmocka_unit_test(a_gateway_that_keeps_no_sessions_will_do),
        cmocka_unit_test(a_bind_waits_for_what_was_asked_before),
        cmocka_unit_test(a_bind_that_is_refused_is_not_tried_again),
        cmocka_unit_test(what_a_stopping_gateway_did_not_run_goes_to_the_next),
        cmocka_unit_test(a_gateway_without_room_is_left_for_as_long_as_it_says),
        cmocka_unit_test(some_kicks_are_for_good_and_some_are_not),
        cmocka_unit_test(what_a_gateway_does_not_take_never_goes_out),
        cmocka_unit_test(what_a_gateway_called_too_large_is_never_sent_again),
        cmocka_unit_test(one_that_greets_and_hangs_up_is_as_good_as_none),
        cmocka_unit_test(a_gateway_that_falls_silent_is_left),
        cmocka_unit_test(a_heartbeat_of_no_gateway_is_a_second),
        cmocka_unit_test(it_dials_again_later_and_later_and_never_all_at_once),
        cmocka_unit_test(who_stops_is_told_what_became_of_it_all),
        cmocka_unit_test(who_stops_while_it_leaves_is_bound_to_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
