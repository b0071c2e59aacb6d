/* SPDX-License-Identifier: Apache-2.0
 *
 * The client of include/ringhold_client.h against a gateway's bytes, written out
 * by hand from docs/protocol-client.md: what it says, what it makes of what comes,
 * and what becomes of requests when lines drop.
 */
#include "base/prng.h"
#include "tests/hex.h"

#include <ringhold_client.h>
#include <stdlib.h>

static const char hello[] = "01 000006 5248 01 01 0000";
static const char hello_ack[] = "02 000018 01 00 0000 00007530 00010000 00000400 1122334455667788";
static const char hello_ack_auth[] =
    "02 000018 01 00 0001 00007530 00010000 00000400 1122334455667788";
#define SESSION "a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8"
static const char bind_kept[] = "0b 00000c 7fffffff 04 04 0007 626f7373";
static const char bound_kept[] =
    "07 00002d 7fffffff 00 00000000 " SESSION " 0000000000000001 00007530";

struct rig {
    struct rhc *c;
    void *memory;
    uint64_t now_ms;
};

static void make(struct rig *r, const struct rhc_options *more)
{
    struct rhc_options o = {0};

    if (more != NULL) {
        o = *more;
    }
    o.abi = RHC_ABI;
    o.size = sizeof o;
    o.seed = o.seed == 0 ? 7 : o.seed;
    r->memory = malloc(rhc_size(&o));
    r->now_ms = 1000;
    r->c = rhc_init(r->memory, &o);
    assert_non_null(r->c);
}

static void end(struct rig *r)
{
    free(r->memory);
}

static struct rhc_bytes word(const char *s)
{
    return (struct rhc_bytes){s, strlen(s)};
}

static uint8_t digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void hear_bytes(struct rig *r, const uint8_t *data, size_t size)
{
    size_t room = 0;
    void *to = rhc_room(r->c, &room);

    assert_true(room >= size);
    memcpy(to, data, size);
    rhc_received(r->c, size, r->now_ms);
}

static void hears(struct rig *r, const char *hex)
{
    uint8_t bytes[512];
    size_t size = 0;

    for (; *hex != '\0'; hex++) {
        if (*hex != ' ') {
            bytes[size++] = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));
            hex++;
        }
    }
    hear_bytes(r, bytes, size);
}

/* All that it sends now is this. */
static void says(struct rig *r, const char *hex)
{
    struct buffer all = {0};

    for (;;) {
        const struct rhc_bytes out = rhc_output(r->c);

        if (out.size == 0) {
            break;
        }
        buffer_put(&all, out.data, out.size);
        rhc_sent(r->c, out.size, r->now_ms);
    }
    assert_hex(buffer_bytes(&all), hex);
    buffer_fini(&all);
}

static struct rhc_event next(struct rig *r, enum rhc_event_type type)
{
    struct rhc_event e = {0};

    assert_int_equal(rhc_next(r->c, &e), 1);
    assert_int_equal(e.type, type);
    return e;
}

static void nothing_more(struct rig *r)
{
    struct rhc_event e;

    assert_int_equal(rhc_next(r->c, &e), 0);
}

static void ended(struct rig *r, uint32_t request, unsigned status)
{
    const struct rhc_event e = next(r, RHC_EVENT_RESPONSE);

    assert_int_equal(e.request, request);
    assert_int_equal(e.status, status);
}

/* Time goes on until it has something to do. */
static void wait_for_dial(struct rig *r)
{
    while (rhc_wishes(r->c) != RHC_DIAL) {
        const uint64_t wake_ms = rhc_wake_ms(r->c);

        assert_true(wake_ms != UINT64_MAX);
        r->now_ms = wake_ms > r->now_ms ? wake_ms : r->now_ms + 1;
        rhc_tick(r->c, r->now_ms);
    }
}

static void dial(struct rig *r)
{
    wait_for_dial(r);
    rhc_connected(r->c, r->now_ms);
    says(r, hello);
}

static void drop(struct rig *r)
{
    rhc_disconnected(r->c, "it rains", r->now_ms);
    (void)next(r, RHC_EVENT_LOST);
}

static void start(struct rig *r, const struct rhc_options *o)
{
    make(r, o);
    assert_int_equal(rhc_start(r->c, r->now_ms), RHC_DONE);
    dial(r);
    hears(r, hello_ack);
    (void)next(r, RHC_EVENT_READY);
    assert_int_equal(rhc_state(r->c), RHC_READY);
}

static void start_bound(struct rig *r)
{
    make(r, NULL);
    assert_int_equal(rhc_bind(r->c, 7, word("boss")), RHC_DONE);
    assert_int_equal(rhc_start(r->c, r->now_ms), RHC_DONE);
    dial(r);
    hears(r, hello_ack);
    nothing_more(r);
    says(r, bind_kept);
    hears(r, bound_kept);
    assert_int_equal(next(r, RHC_EVENT_BOUND).fresh, 1);
    (void)next(r, RHC_EVENT_READY);
}

static uint32_t ask_flags(struct rig *r, const char *payload, uint16_t flags)
{
    uint32_t name = 0;
    const struct rhc_request q = {
        .kind = 7, .flags = flags, .id = word("boss"), .payload = word(payload)};

    assert_int_equal(rhc_ask(r->c, &q, r->now_ms, &name), RHC_DONE);
    return name;
}

static uint32_t ask(struct rig *r, const char *payload)
{
    return ask_flags(r, payload, 0);
}

static void tell(struct rig *r, const char *payload)
{
    const struct rhc_request q = {.kind = 7, .id = word("boss"), .payload = word(payload)};

    assert_int_equal(rhc_tell(r->c, &q, r->now_ms), RHC_DONE);
}

/* ---- what it says ---- */

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

/* ---- answers ---- */

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

/* ---- lines that drop ---- */

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
    says(&r, "0e 000030 7fffffff 00 04 0007 626f7373" SESSION "0000000000000002 00000001");
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
    dial(&r);
    hears(&r, hello_ack);
    nothing_more(&r);
    says(&r, "0e 000030 7fffffff 00 04 0007 626f7373" SESSION "0000000000000000 00000001");
    hears(&r, "07 00000d 7fffffff 04 00000064 6e6f6e65"); // MOVING: ask again
    nothing_more(&r);
    r.now_ms += 250;
    rhc_tick(r.c, r.now_ms);
    says(&r, "0e 000030 7fffffff 00 04 0007 626f7373" SESSION "0000000000000000 00000001");
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
    dial(&r);
    hears(&r, hello_ack);
    nothing_more(&r);
    says(&r, "0e 000030 7fffffff 00 04 0007 626f7373" SESSION "0000000000000000 00000001");
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
    says(&r, "0e 000030 7fffffff 00 04 0007 626f7373" SESSION "0000000000000001 00000002");
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
    dial(&r);
    hears(&r, hello_ack);
    nothing_more(&r);
    says(&r, "0e 000030 7fffffff 00 04 0007 626f7373" SESSION "0000000000000000 00000001");
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

/* ---- gateways that stop ---- */

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
        says(&r, "0e 000030 7fffffff 00 04 0007 626f7373" SESSION "0000000000000000 00000001");
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

/* ---- bad input ---- */

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
        cmocka_unit_test(what_was_sent_may_have_run_and_the_rest_goes_out_later),
        cmocka_unit_test(a_session_is_resumed_and_runs_each_request_once),
        cmocka_unit_test(a_session_that_is_gone_is_begun_afresh),
        cmocka_unit_test(another_client_in_its_place_is_the_end),
        cmocka_unit_test(an_actor_begun_afresh_runs_nothing_again),
        cmocka_unit_test(what_an_actor_begun_afresh_could_not_keep_is_told),
        cmocka_unit_test(nor_when_it_hears_of_that_as_it_is_back),
        cmocka_unit_test(a_stopping_gateway_knows_nothing_of_what_is_sent_again),
        cmocka_unit_test(a_gateway_that_keeps_no_sessions_will_do),
        cmocka_unit_test(a_bind_that_is_refused_is_not_tried_again),
        cmocka_unit_test(what_a_stopping_gateway_did_not_run_goes_to_the_next),
        cmocka_unit_test(a_gateway_without_room_is_left_for_as_long_as_it_says),
        cmocka_unit_test(some_kicks_are_for_good_and_some_are_not),
        cmocka_unit_test(a_gateway_that_falls_silent_is_left),
        cmocka_unit_test(it_dials_again_later_and_later_and_never_all_at_once),
        cmocka_unit_test(who_stops_is_told_what_became_of_it_all),
        cmocka_unit_test(any_bytes_do_no_harm),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
