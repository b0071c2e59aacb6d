/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasts of a node's actors: their payload is kept once, and goes once into
 * each frame; they leave a slice at a time, before what their actor asks for
 * behind them. Node 1 is this one; node 2 is another.
 */
#include "node/calls/calls.h"

#include "base/mem.h"
#include "tests/allocations.h"
#include "tests/test.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

enum { VNODES = 64, MEMBERS = 1000, PAYLOAD = 500, PEER = 5 };

static const uint16_t vnodes = VNODES;

/* What became of one request. */
struct sent {
    bool here;
    uint64_t common;
    struct request_record r; /* without its id and body */
    char id[16];
};

static struct calls *calls;
static struct view view;
static uint64_t now_us;
static _Atomic size_t waiting;
static struct sent *sent;
static size_t sent_count;
static size_t sent_cap;
static struct call_answer answered[8];
static size_t answered_count;
static uint8_t payload[PAYLOAD];
static uint64_t settle; /* sessions that were last said */
static uint64_t settled;
static uint16_t dialled; /* slot, last */

static void note_sent(const struct calls_effect *e)
{
    if (sent_count == sent_cap) {
        sent_cap = sent_cap == 0 ? 1024 : sent_cap * 2;
        sent = mem_resize(sent, sent_cap * sizeof *sent);
    }
    struct sent *s = &sent[sent_count++];

    s->here = e->type == CALLS_HERE;
    s->common = e->common.data == NULL ? 0 : e->common_number;
    assert_int_equal(calls_request(e, &s->r), ERR_OK);
    (void)snprintf(s->id, sizeof s->id, "%.*s", (int)s->r.id.size, (const char *)s->r.id.data);
}

/* What is said between nodes of an actor that moved. */
static void note_said(const struct calls_effect *e)
{
    Rh__Control *message = control_get(e->bytes);

    assert_non_null(message);
    assert_int_equal(e->peer, PEER);
    if (message->body_case == RH__CONTROL__BODY_SETTLE) {
        settle = message->settle->session;
    } else if (message->body_case == RH__CONTROL__BODY_SETTLED) {
        settled = message->settled->session;
    }
    control_free(message);
}

/* Take up to `most` requests, and all answers between them. */
static size_t take(size_t most)
{
    const size_t before = sent_count;
    struct calls_effect e;

    while (sent_count - before < most && calls_take(calls, &e)) {
        if (e.type == CALLS_HERE || (e.type == CALLS_SEND && e.frame_type == FRAME_REQUEST)) {
            note_sent(&e);
        } else if (e.type == CALLS_ANSWER) {
            answered[answered_count++] = e.answer;
        } else if (e.type == CALLS_SEND && e.frame_type == FRAME_CONTROL) {
            note_said(&e);
        } else if (e.type == CALLS_CONNECT) {
            dialled = e.slot;
        }
    }
    calls_check(calls);
    return sent_count - before;
}

static void answer(const struct sent *s)
{
    const struct answer_record a = {
        .gateway = s->r.gateway,
        .session = s->r.session,
        .seq = s->r.seq,
        .copy = s->r.copy,
        .fence = UINT64_MAX,
        .version = UINT64_MAX,
        .code = ANSWER_OK,
    };

    assert_true(calls_answer(calls, s->here ? CALLS_LINK : PEER, &a, now_us));
}

static void add_member(uint16_t slot, uint64_t incarnation)
{
    view.member = mem_resize(view.member, (view.member_count + 1) * sizeof *view.member);
    struct view_member *m = &view.member[view.member_count++];

    *m = (struct view_member){.slot = slot, .incarnation = incarnation, .weight = 1};
    (void)snprintf(m->name, sizeof m->name, "n%u", slot);
    (void)snprintf(m->address, sizeof m->address, "host%u:1", slot);
}

static void open_calls(uint32_t in_flight_max)
{
    struct router_config config = router_config_default();

    config.seed = 0x5eed;
    config.in_flight_max = in_flight_max;
    calls = calls_new(&config);
    calls_count_down(calls, &waiting);
    calls_look(calls, &view, 11, now_us);
    calls_up(calls, PEER, "n2", 12, true, now_us);
    (void)take(0);
}

/* Half of the ring is the other node's. */
static int set_up(void **state)
{
    (void)state;
    now_us = 1000000;
    waiting = 0;
    sent_count = answered_count = 0;
    settle = settled = 0;
    dialled = 0;
    view_init(&view, RING_GRID_MIN);
    view.key = (struct ring_key){1, 2};
    add_member(1, 11);
    add_member(2, 12);
    ring_create(&view.ring, VNODES, 1, 1);
    for (uint16_t v = 0; v < vnodes; v = (uint16_t)(v + 2)) {
        const struct ring_op op = {.kind = RING_MOVE, .vnode = v, .from = 1, .to = 2};

        ring_apply(&view.ring, &op, 1, view.ring.version + 1, view.ring.version + 1);
    }
    open_calls(router_config_default().in_flight_max);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    calls_check(calls);
    calls_free(calls);
    assert_int_equal(waiting, 0); // whatever was left
    view_fini(&view);
    mem_free(sent);
    sent = NULL;
    sent_cap = 0;
    return 0;
}

static const struct call plain = {
    .worker = 3,
    .session = 1,
    .from = {(const uint8_t *)"room", 4},
    .id = {(const uint8_t *)"m7", 2},
    .payload = {(const uint8_t *)"hello", 5},
};

/* To m0, m1, … */
static void broadcast(uint64_t session, size_t count)
{
    struct call call = plain;
    struct buffer ids = {0};
    char name[16];

    for (size_t i = 0; i < count; i++) {
        const uint8_t size = (uint8_t)snprintf(name, sizeof name, "m%zu", i);

        buffer_put(&ids, &size, 1);
        buffer_put(&ids, name, size);
    }
    call.session = session;
    call.from = session == 1 ? call.from : bytes_of("hall", 4);
    call.id = buffer_bytes(&ids);
    call.count = count;
    call.payload = bytes_of(payload, sizeof payload);
    call.push = true;
    call.flags = RH_NO_REPLY;
    waiting += broadcast_size(&call); // as the runtime does
    calls_ask(calls, &call, now_us);
    buffer_fini(&ids);
}

static void send_to_m7(uint64_t session)
{
    struct call call = plain;

    call.session = session;
    call.flags = RH_NO_REPLY;
    calls_ask(calls, &call, now_us);
}

static void each_member_is_asked_once_with_the_one_payload(void **state)
{
    static bool seen[MEMBERS];
    size_t there = 0;

    (void)state;
    memset(seen, 0, sizeof seen);
    broadcast(1, MEMBERS);
    assert_int_equal(take(SIZE_MAX), MEMBERS);
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct sent *s = &sent[i];
        const size_t number = strtoul(s->id + 1, NULL, 10);

        assert_false(seen[number]);
        seen[number] = true;
        there += s->here ? 0 : 1;
        assert_int_equal(s->common, sent[0].common);
        assert_int_equal(s->r.flags,
                         REQUEST_CALL | REQUEST_NO_REPLY | REQUEST_SESSION | REQUEST_AWAKE);
        assert_int_equal(s->r.body.size, 3 + 4 + PAYLOAD); // who asks, then that
    }
    assert_true(there > MEMBERS / 4 && there < MEMBERS * 3 / 4);
    assert_int_equal(take(SIZE_MAX), 0);
    assert_int_equal(waiting, 0);
    broadcast(1, 1);
    assert_int_equal(take(SIZE_MAX), 1);
    assert_int_not_equal(sent[MEMBERS].common, sent[0].common);
}

/* As they were before: one request with the payload for each of them. */
static size_t memory_of(bool common)
{
    const size_t count = MEMBERS;

    allocations = 0;
    allocations_counted = true;
    if (common) {
        broadcast(1, count);
    } else {
        for (size_t i = 0; i < count; i++) {
            struct call call = plain;
            char name[16];

            call.id = bytes_of(name, (size_t)snprintf(name, sizeof name, "m%zu", i));
            call.payload = bytes_of(payload, sizeof payload);
            call.push = true;
            call.flags = RH_NO_REPLY;
            calls_ask(calls, &call, now_us);
        }
    }
    (void)take(SIZE_MAX);
    allocations_counted = false;
    return allocations;
}

/* Both pay for their requests; what they carry is paid once, or a thousand times. */
static void the_payload_is_kept_and_written_once(void **state)
{
    size_t bytes[2] = {0, 0};
    size_t written[2] = {0, 0};
    size_t allocated[2];

    (void)state;
    for (int common = 0; common < 2; common++) {
        tear_down(NULL);
        set_up(NULL);
        allocated[common] = memory_of(common == 1);
        uint64_t last = 0;
        for (size_t i = 0; i < sent_count; i++) {
            const struct sent *s = &sent[i];

            if (s->here) {
                continue;
            }
            // As a link does it (tests/link/link_test.c): behind the same number without it.
            const bool again = s->common != 0 && s->common == last;
            bytes[common] += request_size(&s->r) - (again ? s->r.body.size : 0);
            written[common] += again ? 0 : 1;
            last = s->common;
        }
    }
    (void)printf("# %d members on 2 nodes, %d bytes: one by one %zu payloads of %zu bytes to the "
                 "other node, %zu allocations; as a broadcast %zu, %zu, %zu\n",
                 MEMBERS,
                 PAYLOAD,
                 written[0],
                 bytes[0],
                 allocated[0],
                 written[1],
                 bytes[1],
                 allocated[1]);
    assert_true(written[0] > MEMBERS / 4);
    assert_int_equal(written[1], 1);
    assert_true(bytes[1] * 4 < bytes[0]);
}

static void what_is_asked_behind_a_broadcast_stays_behind_it(void **state)
{
    (void)state;
    broadcast(1, MEMBERS);
    send_to_m7(1);
    broadcast(1, 10);
    send_to_m7(1);
    send_to_m7(2); // Another actor's: it waits for nobody.
    assert_int_equal(take(1), 1);
    assert_int_equal(sent[0].common, 0);
    assert_string_equal(sent[0].id, "m7");
    assert_int_equal(take(SIZE_MAX), MEMBERS + 1 + 10 + 1);
    size_t to_m7 = 0;
    uint64_t seq = 0;
    for (size_t i = 1; i < sent_count; i++) {
        if (strcmp(sent[i].id, "m7") == 0) {
            assert_int_equal(sent[i].common != 0, to_m7 % 2 == 0);
            assert_true(sent[i].r.seq > seq);
            seq = sent[i].r.seq;
            to_m7++;
        }
    }
    assert_int_equal(to_m7, 4);
}

static void broadcasts_take_turns(void **state)
{
    size_t first = 0;

    (void)state;
    broadcast(1, MEMBERS);
    broadcast(2, MEMBERS);
    assert_int_equal(take((size_t)2 * BROADCASTS_SLICE), 2 * BROADCASTS_SLICE);
    for (size_t i = 0; i < sent_count; i++) {
        first += sent[i].common == sent[0].common ? 1 : 0;
    }
    assert_int_equal(first, BROADCASTS_SLICE);
    assert_int_equal(take(SIZE_MAX), 2 * (MEMBERS - BROADCASTS_SLICE));
}

static void half_of_the_room_is_left_to_others(void **state)
{
    (void)state;
    calls_free(calls);
    open_calls(400);
    broadcast(1, MEMBERS);
    assert_int_equal(take(SIZE_MAX), 200);
    assert_true(waiting > 0);
    send_to_m7(2);
    assert_int_equal(take(SIZE_MAX), 1);
    // As they are answered, it goes on.
    size_t done = 0;
    while (done < sent_count) {
        answer(&sent[done++]);
        (void)take(SIZE_MAX);
    }
    assert_int_equal(sent_count, MEMBERS + 1);
    assert_int_equal(waiting, 0);
}

static void a_call_behind_a_broadcast_ends_in_time(void **state)
{
    struct call call = plain;
    struct broadcast_stats f;

    (void)state;
    calls_free(calls);
    open_calls(400);
    broadcast(1, MEMBERS);
    (void)take(SIZE_MAX);
    call.number = 9;
    call.timeout_ms = 100;
    calls_ask(calls, &call, now_us);
    assert_int_equal(take(SIZE_MAX), 0);
    now_us += 200000;
    calls_tick(calls, now_us);
    (void)take(SIZE_MAX);
    assert_int_equal(answered_count, 1);
    assert_int_equal(answered[0].number, 9);
    assert_int_equal(answered[0].status, RH_REJECTED);
    // Its nodes answer nothing for so long: who was not asked by then is given up.
    now_us += 31000000;
    calls_tick(calls, now_us);
    (void)take(SIZE_MAX);
    calls_broadcasts(calls, &f);
    assert_int_equal(f.made, 1);
    assert_int_equal(f.handed + f.late, MEMBERS);
    assert_true(f.late > 0);
    assert_int_equal(waiting, 0);
}

/* What it waited there is gone: who runs it at the end must not run it after its caller gave up. */
static void a_call_behind_a_broadcast_leaves_with_the_rest_of_its_time(void **state)
{
    struct call call = plain;
    const struct sent *asked = NULL;

    (void)state;
    calls_free(calls);
    open_calls(400);
    broadcast(1, MEMBERS);
    (void)take(SIZE_MAX);
    call.number = 9;
    call.timeout_ms = 1000;
    calls_ask(calls, &call, now_us);
    now_us += 300000;
    calls_tick(calls, now_us);
    for (size_t done = 0; done < sent_count; done++) {
        answer(&sent[done]);
        (void)take(SIZE_MAX);
    }
    for (size_t i = 0; i < sent_count; i++) {
        asked = sent[i].common == 0 ? &sent[i] : asked;
    }
    assert_non_null(asked);
    assert_in_range(asked->r.ttl_ms, 1, 700);
}

static void who_has_gone_still_sends_what_he_had_sent(void **state)
{
    (void)state;
    broadcast(1, MEMBERS);
    send_to_m7(1);
    calls_close(calls, 1, now_us);
    assert_int_equal(take(SIZE_MAX), MEMBERS + 1);
    calls_close(calls, 1, now_us);
}

static void another_incarnation_forgets_them(void **state)
{
    (void)state;
    broadcast(1, MEMBERS);
    assert_int_equal(take(1), 1);
    calls_look(calls, &view, 31, now_us);
    assert_int_equal(take(SIZE_MAX), 0);
    assert_int_equal(waiting, 0);
    calls_look(calls, &view, 0, now_us);
    broadcast(1, MEMBERS); // Nobody is there to send it.
    assert_int_equal(waiting, 0);
}

/* "room" was session 77 at the other node. */
static void room_comes(void)
{
    calls_former(calls,
                 &(struct call_former){.id = bytes_of("room", 4), .incarnation = 12, .session = 77},
                 now_us);
}

static void hears(Rh__Control__BodyCase what, uint64_t session)
{
    Rh__Settle asks = RH__SETTLE__INIT;
    Rh__Settled says = RH__SETTLED__INIT;
    Rh__Control control = RH__CONTROL__INIT;

    asks.session = says.session = session;
    control.body_case = what;
    if (what == RH__CONTROL__BODY_SETTLE) {
        control.settle = &asks;
    } else {
        control.settled = &says;
    }
    calls_control(calls, PEER, &control, now_us);
}

static void what_it_tells_behind_its_move_waits_for_what_it_told_before(void **state)
{
    (void)state;
    room_comes();
    broadcast(1, 4);
    send_to_m7(1);
    broadcast(2, 1); // another actor's
    assert_int_equal(settle, 0);
    assert_int_equal(take(SIZE_MAX), 1);
    assert_int_equal(settle, 77);
    hears(RH__CONTROL__BODY_SETTLED, 76);
    assert_int_equal(take(SIZE_MAX), 0);
    settle = 0;
    calls_down(calls, PEER, now_us); // It is asked again.
    calls_up(calls, PEER, "n2", 12, true, now_us);
    (void)take(SIZE_MAX);
    assert_int_equal(settle, 77);
    hears(RH__CONTROL__BODY_SETTLED, 77);
    assert_int_equal(take(SIZE_MAX), 5);
    assert_string_equal(sent[sent_count - 1].id, "m7");
}

static void who_has_to_be_asked_is_dialled(void **state)
{
    (void)state;
    calls_down(calls, PEER, now_us);
    assert_int_equal(take(SIZE_MAX), 0);
    assert_int_equal(dialled, 0);
    room_comes();
    assert_int_equal(take(SIZE_MAX), 0);
    assert_int_equal(dialled, 2);
    calls_up(calls, PEER, "n2", 12, true, now_us);
    (void)take(SIZE_MAX);
    assert_int_equal(settle, 77);
}

static void it_waits_no_longer_than_that_can_be_under_way(void **state)
{
    (void)state;
    room_comes();
    now_us += 20000000;
    broadcast(1, 4);
    assert_int_equal(take(SIZE_MAX), 0);
    now_us += 10000000;
    calls_tick(calls, now_us);
    assert_int_equal(take(SIZE_MAX), 4);

    // Nor for a node that is no member any more.
    tear_down(NULL);
    set_up(NULL);
    room_comes();
    broadcast(1, 4);
    assert_int_equal(take(SIZE_MAX), 0);
    view.member[1].incarnation = 13;
    assert_true(take(SIZE_MAX) > 0);
}

/* The one that is asked may be what the other node waits for. */
static void a_call_waits_for_no_other_node(void **state)
{
    struct call call = plain;

    (void)state;
    room_comes();
    broadcast(1, 4);
    call.number = 9;
    call.timeout_ms = 100;
    calls_ask(calls, &call, now_us); // to m7, who is pushed nothing
    assert_int_equal(take(SIZE_MAX), 1);
    assert_string_equal(sent[0].id, "m7");
    call.number = 10;
    call.id = bytes_of("m2", 2);
    calls_ask(calls, &call, now_us);
    assert_int_equal(take(SIZE_MAX), 5);
    assert_string_equal(sent[sent_count - 1].id, "m2");
}

static void who_asks_is_told_when_all_was_answered(void **state)
{
    (void)state;
    calls_free(calls);
    open_calls(400);
    assert_int_equal(calls_under_way(calls, 1), 0);
    broadcast(1, MEMBERS);
    assert_int_equal(calls_under_way(calls, 1), 1);
    (void)take(SIZE_MAX);
    calls_close(calls, 1, now_us);
    hears(RH__CONTROL__BODY_SETTLE, 1);
    for (size_t done = 0; done < MEMBERS; done++) {
        assert_int_equal(settled, 0);
        answer(&sent[done]);
        (void)take(SIZE_MAX);
    }
    assert_int_equal(settled, 1);
    assert_int_equal(calls_under_way(calls, 1), 0);
}

/* It has moved on, and what it told here waits for the node before this one. */
static void what_waits_in_front_of_the_router_is_under_way(void **state)
{
    (void)state;
    room_comes();
    broadcast(1, 4);
    calls_close(calls, 1, now_us);
    hears(RH__CONTROL__BODY_SETTLE, 1);
    assert_int_equal(take(SIZE_MAX), 0);
    assert_int_equal(settled, 0);
    hears(RH__CONTROL__BODY_SETTLED, 77);
    assert_int_equal(take(SIZE_MAX), 4);
    for (size_t done = 0; done < 4; done++) {
        assert_int_equal(settled, 0);
        answer(&sent[done]);
        (void)take(SIZE_MAX);
    }
    assert_int_equal(settled, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest cases[] = {
        CASE(each_member_is_asked_once_with_the_one_payload),
        CASE(the_payload_is_kept_and_written_once),
        CASE(what_is_asked_behind_a_broadcast_stays_behind_it),
        CASE(broadcasts_take_turns),
        CASE(half_of_the_room_is_left_to_others),
        CASE(a_call_behind_a_broadcast_ends_in_time),
        CASE(a_call_behind_a_broadcast_leaves_with_the_rest_of_its_time),
        CASE(who_has_gone_still_sends_what_he_had_sent),
        CASE(another_incarnation_forgets_them),
        CASE(what_it_tells_behind_its_move_waits_for_what_it_told_before),
        CASE(who_has_to_be_asked_is_dialled),
        CASE(it_waits_no_longer_than_that_can_be_under_way),
        CASE(a_call_waits_for_no_other_node),
        CASE(who_asks_is_told_when_all_was_answered),
        CASE(what_waits_in_front_of_the_router_is_under_way),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
