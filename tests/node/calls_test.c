/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node's actors ask: by which link it leaves, when a link is asked for,
 * what it carries, and that each call is answered once and in time. Node 1 is
 * this one; nodes 2 and 3 are others. The simulator (sim/) runs the same code
 * in fleets.
 */
#include "node/calls/calls.h"

#include "base/mem.h"
#include "tests/allocations.h"
#include "tests/steps.h"
#include "tests/test.h"
#include "wire/control.h"
#include "wire/values_ask.h"

#include <stdio.h>
#include <string.h>

enum { VNODES = 16, EFFECTS_MAX = 64, PAYLOAD_MAX = 64 };

/* An effect, with its bytes kept. */
struct did {
    struct calls_effect e;
    struct request_record r; /* of a request */
    uint8_t bytes[512];
    char text[PAYLOAD_MAX];
};

static struct calls *calls;
static struct view view;
static uint64_t now_us;
static struct did did[EFFECTS_MAX];
static size_t did_count;

static struct bytes text_of(const char *text)
{
    return bytes_of(text, strlen(text));
}

/* Take all effects; those of `type` are left in did[]. */
static size_t take(enum calls_effect_type type)
{
    struct calls_effect e;

    did_count = 0;
    while (calls_take(calls, &e)) {
        if (e.type != type) {
            continue;
        }
        assert_true(did_count < EFFECTS_MAX);
        struct did *d = &did[did_count++];

        d->e = e;
        assert_true(e.bytes.size <= sizeof d->bytes);
        if (e.bytes.size > 0) {
            memcpy(d->bytes, e.bytes.data, e.bytes.size);
        }
        d->e.bytes.data = d->bytes;
        if (type == CALLS_HERE || (type == CALLS_SEND && e.frame_type == FRAME_REQUEST)) {
            struct reader in = {.at = d->bytes, .left = e.bytes.size};

            assert_int_equal(request_get(&in, &d->r), ERR_OK);
        }
        if (type == CALLS_ANSWER) {
            (void)snprintf(d->text,
                           sizeof d->text,
                           "%.*s",
                           (int)e.answer.payload.size,
                           (const char *)e.answer.payload.data);
        }
    }
    calls_check(calls);
    return did_count;
}

/* Requests only: Adopted goes over the same links. */
static size_t take_sends(void)
{
    size_t kept = 0;

    (void)take(CALLS_SEND);
    for (size_t i = 0; i < did_count; i++) {
        if (did[i].e.frame_type == FRAME_REQUEST) {
            if (kept != i) {
                did[kept] = did[i];
            }
            kept++;
        }
    }
    did_count = kept;
    return kept;
}

static void add_member(uint16_t slot, uint64_t incarnation)
{
    view.member = mem_resize(view.member, (view.member_count + 1) * sizeof *view.member);
    struct view_member *m = &view.member[view.member_count++];

    *m = (struct view_member){.slot = slot, .incarnation = incarnation, .weight = 1};
    (void)snprintf(m->name, sizeof m->name, "n%u", slot);
    (void)snprintf(m->address, sizeof m->address, "host%u:1", slot);
}

/* Give the vnode of `id` to a node. */
static void give(const char *id, uint16_t to)
{
    const ring_hit hit = view_lookup(&view, 0, text_of(id));
    const struct ring_op op = {
        .kind = RING_MOVE, .vnode = ring_hit_vnode(hit), .from = ring_hit_node(hit), .to = to};

    if (op.from != op.to) {
        ring_apply(&view.ring, &op, 1, view.ring.version + 1, view.ring.version + 1);
    }
}

/* Registered as incarnation 11; everything is mine. */
static int set_up(void **state)
{
    struct router_config config = router_config_default();

    (void)state;
    now_us = 1000000;
    config.seed = 0x5eed;
    calls = calls_new(&config);
    view_init(&view, RING_GRID_MIN);
    view.key = (struct ring_key){1, 2};
    add_member(1, 11);
    add_member(2, 12);
    add_member(3, 13);
    ring_create(&view.ring, VNODES, 1, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    calls_check(calls);
    calls_free(calls);
    view_fini(&view);
    return 0;
}

static void look(void)
{
    calls_look(calls, &view, 11, now_us);
}

static const struct call plain = {
    .worker = 3,
    .number = 1,
    .session = 1,
    .from_kind = 0,
    .from = {(const uint8_t *)"ann", 3},
    .kind = 0,
    .id = {(const uint8_t *)"bob", 3},
    .payload = {(const uint8_t *)"hello", 5},
    .timeout_ms = 5000,
};

static void ask(uint64_t number)
{
    struct call call = plain;

    call.number = number;
    calls_ask(calls, &call, now_us);
}

static void after(uint64_t ms)
{
    now_us += ms * 1000;
    calls_tick(calls, now_us);
}

static struct answer_record answer_to(const struct request_record *r, enum answer_code code,
                                      const char *text)
{
    return (struct answer_record){
        .gateway = r->gateway,
        .session = r->session,
        .seq = r->seq,
        .copy = r->copy,
        .fence = UINT64_MAX,
        .version = UINT64_MAX,
        .code = (uint8_t)code,
        .body = text_of(text),
    };
}

static void answer(const struct did *to, uint64_t peer, enum answer_code code, const char *text)
{
    const struct answer_record a = answer_to(&to->r, code, text);

    assert_true(calls_answer(calls, peer, &a, now_us));
}

static void a_call_to_this_node_takes_no_link(void **state)
{
    struct caller from;

    (void)state;
    look();
    assert_int_equal(take(CALLS_UP), 1);
    assert_int_equal(did[0].e.incarnation, 11);
    const uint64_t asked_us = now_us;
    ask(7);
    after(200); // the process stood still before it was done
    assert_int_equal(take(CALLS_HERE), 1);
    assert_int_equal(did[0].e.made_us, asked_us);
    const struct request_record *r = &did[0].r;
    assert_int_equal(r->gateway, 11);
    assert_int_equal(r->flags, REQUEST_CALL);
    assert_int_equal(r->ttl_ms, 5000);
    assert_int_equal(r->chain_count, 1);
    assert_int_equal(r->chain[0],
                     ring_point(&view.ring, 0, ring_key_of_kind(view.key, 0), text_of("ann")));
    struct bytes body = r->body;
    assert_int_equal(caller_get(&body, &from), ERR_OK);
    assert_true(bytes_equal(from.id, text_of("ann")));
    assert_true(bytes_equal(body, text_of("hello")));
    const struct did asked = did[0];
    answer(&asked, CALLS_LINK, ANSWER_OK, "hi");
    answer(&asked, CALLS_LINK, ANSWER_OK, "hi"); // a second one changes nothing
    assert_int_equal(take(CALLS_ANSWER), 1);
    assert_int_equal(did[0].e.answer.worker, 3);
    assert_int_equal(did[0].e.answer.number, 7);
    assert_int_equal(did[0].e.answer.status, 0);
    assert_string_equal(did[0].text, "hi");
}

static void calls_to_this_node_come_together_while_they_are_of_one_time(void **state)
{
    enum { MOST = 3 };
    struct request_record r[MOST];
    struct calls_effect e;

    (void)state;
    look();
    (void)take(CALLS_UP);
    for (uint64_t number = 1; number <= 4; number++) {
        ask(number);
    }
    after(1);
    ask(5);
    assert_true(calls_take(calls, &e));
    assert_int_equal(e.type, CALLS_HERE);
    assert_int_equal(calls_take_here(calls, &e, r, MOST), MOST);
    for (uint64_t i = 0; i < MOST; i++) {
        assert_int_equal(r[i].seq, i + 1);
    }
    assert_true(calls_take(calls, &e));
    const uint64_t before_us = e.made_us;
    assert_int_equal(calls_take_here(calls, &e, r, MOST), 1); // the fifth came later
    assert_int_equal(r[0].seq, 4);
    assert_true(calls_take(calls, &e));
    assert_true(e.made_us > before_us);
    assert_int_equal(calls_take_here(calls, &e, r, MOST), 1);
    assert_int_equal(r[0].seq, 5);
    while (calls_take(calls, &e)) {
        assert_int_not_equal(e.type, CALLS_HERE);
    }
}

static void answers_of_others_are_told_apart_from_those_of_calls(void **state)
{
    struct answer_record a[3];

    (void)state;
    look();
    ask(1);
    ask(2);
    assert_int_equal(take(CALLS_HERE), 2);
    for (size_t i = 0; i < 2; i++) {
        a[i] = answer_to(&did[i].r, ANSWER_OK, i == 0 ? "one" : "two");
    }
    a[2] = a[1];
    a[1].gateway = 77; // the host passes it on
    assert_int_equal(calls_answers(calls, CALLS_LINK, a, 3, now_us), 1);
    assert_int_equal(calls_answers(calls, CALLS_LINK, &a[1], 2, now_us), 0);
    assert_int_equal(calls_answers(calls, 22, &a[2], 1, now_us), 0); // a link that nobody knows
    assert_int_equal(calls_answers(calls, CALLS_LINK, &a[2], 1, now_us), 1);
    assert_int_equal(take(CALLS_ANSWER), 2);
    assert_string_equal(did[0].text, "one");
    assert_string_equal(did[1].text, "two");
}

static void a_link_is_asked_for_when_something_is_to_be_sent(void **state)
{
    (void)state;
    give("bob", 2);
    look();
    assert_int_equal(take(CALLS_CONNECT), 0);
    ask(1);
    assert_int_equal(take(CALLS_CONNECT), 1);
    assert_int_equal(did[0].e.slot, 2);
    ask(2);
    assert_int_equal(take(CALLS_CONNECT), 0);
    calls_up(calls, 50, "n2", 12, true, now_us);
    assert_int_equal(take_sends(), 2);
    assert_int_equal(did[0].e.peer, 50);
    assert_int_equal(did[1].r.prev, did[0].r.seq);
    const struct did first = did[0];
    answer(&first, 50, ANSWER_APP_ERROR, "no");
    assert_int_equal(take(CALLS_ANSWER), 1);
    assert_int_equal(did[0].e.answer.status, 4);
    assert_string_equal(did[0].text, "no");
}

static void links_that_cross_are_one_way_until_it_is_lost(void **state)
{
    (void)state;
    give("bob", 2);
    look();
    calls_up(calls, 50, "n2", 12, true, now_us);
    calls_up(calls, 51, "n2", 12, true, now_us); // it dialled me as I dialled it
    (void)take(CALLS_UP);
    ask(1);
    assert_int_equal(take_sends(), 1);
    assert_int_equal(did[0].e.peer, 50);
    const struct did lost = did[0];
    calls_down(calls, 50, now_us);
    assert_int_equal(take_sends(), 1);
    assert_int_equal(did[0].e.peer, 51);
    assert_int_equal(did[0].r.copy, 2);
    assert_int_equal(did[0].r.seq, lost.r.seq);
    // Whatever node it was forwarded to; but not from who says to be one, or by a link of nobody's.
    const struct did again = did[0];
    const struct answer_record forged = {
        .gateway = again.r.gateway, .session = again.r.session, .seq = again.r.seq, .copy = 2};
    calls_up(calls, 53, "n2", 13, true, now_us);
    assert_false(calls_answer(calls, 52, &forged, now_us));
    assert_false(calls_answer(calls, 53, &forged, now_us));
    assert_int_equal(take(CALLS_ANSWER), 0);
    calls_up(calls, 52, "n3", 13, true, now_us);
    answer(&again, 52, ANSWER_OK, "");
    assert_int_equal(take(CALLS_ANSWER), 1);
    calls_down(calls, 51, now_us);
    calls_down(calls, 51, now_us);
}

static void a_slot_may_get_another_node(void **state)
{
    (void)state;
    give("bob", 2);
    look();
    calls_up(calls, 50, "n2", 12, true, now_us);
    calls_up(calls, 60, "n2", 22, true, now_us); // not in the view yet
    (void)take(CALLS_UP);
    ask(1);
    assert_int_equal(take_sends(), 1);
    view.member[1].incarnation = 22; // its process was started again
    ring_set_version(&view.ring, view.ring.version + 1);
    look();
    assert_int_equal(take_sends(), 1);
    assert_int_equal(did[0].e.peer, 60);
    assert_int_equal(did[0].r.copy, 2);
}

static void a_chain_goes_with_the_call_and_is_not_too_long(void **state)
{
    struct call call = plain;

    (void)state;
    look();
    call.chain_count = RECORD_CHAIN_MAX - 1;
    call.chain[0] = 0xaa;
    calls_ask(calls, &call, now_us);
    assert_int_equal(take(CALLS_HERE), 1);
    assert_int_equal(did[0].r.chain_count, RECORD_CHAIN_MAX);
    assert_int_equal(did[0].r.chain[0], 0xaa);
    call.chain_count = RECORD_CHAIN_MAX;
    call.number = 2;
    calls_ask(calls, &call, now_us);
    assert_int_equal(take(CALLS_ANSWER), 1);
    assert_int_equal(did[0].e.answer.number, 2);
    assert_int_equal(did[0].e.answer.status, 10);
}

/* More time-outs than the router has lists for, in an order of their own. */
static void every_call_ends_at_its_own_deadline(void **state)
{
    enum { COUNT = 40 };
    uint64_t ended = 0;

    (void)state;
    look();
    for (unsigned i = 0; i < COUNT; i++) {
        struct call call = plain;

        call.number = i + 1;
        call.timeout_ms = 100 + i * 7 % COUNT * 100;
        calls_ask(calls, &call, now_us);
    }
    (void)take(CALLS_HERE);
    for (unsigned ms = 100; ms <= COUNT * 100; ms += 100) {
        after(99);
        assert_int_equal(take(CALLS_ANSWER), 0);
        after(1);
        assert_int_equal(take(CALLS_ANSWER), 1);
        assert_int_equal(did[0].e.answer.status, 9); // it may have run
        assert_int_equal(100 + (did[0].e.answer.number - 1) * 7 % COUNT * 100, ms);
        ended++;
    }
    assert_int_equal(ended, COUNT);
}

static void what_cannot_leave_comes_again(void **state)
{
    (void)state;
    look();
    ask(1);
    assert_int_equal(take(CALLS_HERE), 1);
    calls_give_back(calls, &did[0].e, now_us);
    assert_int_equal(take(CALLS_HERE), 0);
    after(30);
    assert_int_equal(take(CALLS_HERE), 1);
    calls_give_back(calls, &did[0].e, now_us);
    after(5000);
    assert_int_equal(take(CALLS_ANSWER), 1);
    assert_int_equal(did[0].e.answer.status, 10); // it surely did not run
}

static void a_send_is_answered_to_nobody_and_keeps_its_place(void **state)
{
    struct call call = plain;

    (void)state;
    look();
    ask(1);
    call.number = 0;
    call.timeout_ms = 0;
    calls_ask(calls, &call, now_us);
    assert_int_equal(take(CALLS_HERE), 2);
    assert_int_equal(did[1].r.flags, REQUEST_CALL | REQUEST_NO_REPLY);
    assert_int_equal(did[1].r.prev, did[0].r.seq);
    const struct did sent = did[1];
    answer(&sent, CALLS_LINK, ANSWER_OK, "");
    assert_int_equal(take(CALLS_ANSWER), 0);
}

static void who_has_gone_hears_nothing(void **state)
{
    struct router_stats f;

    (void)state;
    give("bob", 2);
    look();
    ask(1);
    calls_close(calls, 1, now_us);
    calls_up(calls, 50, "n2", 12, true, now_us);
    assert_int_equal(take_sends(), 1); // it still runs
    const struct did sent = did[0];
    answer(&sent, 50, ANSWER_OK, "");
    assert_int_equal(take(CALLS_ANSWER), 0);
    calls_stats(calls, &f);
    assert_int_equal(f.in_flight, 0);
}

static void another_incarnation_knows_nothing_of_what_was_asked(void **state)
{
    (void)state;
    look();
    ask(1);
    assert_int_equal(take(CALLS_HERE), 1);
    const struct did asked = did[0];
    calls_look(calls, &view, 0, now_us);
    ask(2); // of an actor that is gone
    assert_int_equal(take(CALLS_HERE), 0);
    view.member[0].incarnation = 31;
    ring_set_version(&view.ring, view.ring.version + 1);
    calls_look(calls, &view, 31, now_us);
    assert_int_equal(take(CALLS_UP), 1);
    assert_int_equal(did[0].e.incarnation, 31);
    after(6000);
    assert_int_equal(take(CALLS_ANSWER), 0);
    const struct answer_record late = {.gateway = asked.r.gateway};
    assert_false(calls_answer(calls, CALLS_LINK, &late, now_us));
    ask(1);
    assert_int_equal(take(CALLS_HERE), 1);
    assert_int_equal(did[0].r.gateway, 31);
    assert_true(did[0].r.session != asked.r.session);
}

static void the_host_is_told_what_is_still_awaited(void **state)
{
    (void)state;
    look();
    assert_int_equal(take(CALLS_TELL), 1);
    assert_false(did[0].e.awaits);
    ask(1);
    ask(2);
    struct calls_effect e;
    bool awaits = false;
    struct did asked[2] = {{.text = ""}, {.text = ""}};
    size_t count = 0;
    while (calls_take(calls, &e)) {
        if (e.type == CALLS_TELL) {
            awaits = e.awaits;
        } else {
            struct reader in = {.at = e.bytes.data, .left = e.bytes.size};

            assert_int_equal(e.type, CALLS_HERE);
            assert_int_equal(request_get(&in, &asked[count++].r), ERR_OK);
        }
    }
    assert_true(awaits);
    answer(&asked[0], CALLS_LINK, ANSWER_OK, "");
    answer(&asked[1], CALLS_LINK, ANSWER_OK, "");
    after(10);
    assert_int_equal(take(CALLS_TELL), 1);
    assert_false(did[0].e.awaits);
}

static void long_waits(void)
{
    struct call call = plain;

    call.number = 7;
    call.run = 5;
    calls_ask(calls, &call, now_us);
}

/* Calls in the midst of a message, as many as are open at a time, to another node; and their
 * answers. */
static void some_calls(void (*part_ends)(void))
{
    enum { OPEN = 16 };
    static uint64_t number;
    struct request_record r[OPEN] = {0};
    struct answer_record a[OPEN];
    struct calls_effect e;
    struct call call = plain;
    size_t sent = 0;
    size_t heard = 0;

    for (size_t i = 0; i < OPEN; i++) {
        call.run = 5;
        call.number = ++number;
        calls_ask(calls, &call, now_us);
    }
    while (calls_take(calls, &e)) {
        if (e.type == CALLS_SEND && e.frame_type == FRAME_REQUEST) {
            ASSERT(calls_request(&e, &r[sent++]) == ERR_OK);
        }
    }
    part_ends();
    for (size_t i = 0; i < sent; i++) {
        a[i] = answer_to(&r[i], ANSWER_OK, "done");
    }
    ASSERT(calls_answers(calls, 22, a, sent, now_us) == sent);
    while (calls_take(calls, &e)) {
        heard += e.type == CALLS_ANSWER;
    }
    part_ends();
    ASSERT(heard == OPEN);
}

static void nothing_ends(void)
{
}

static void some_calls_counted(void *context)
{
    (void)context;
    look();
    give("bob", 2);
    look();
    calls_up(calls, 22, "n2", 12, true, now_us);
    for (int i = 0; i < 5; i++) {
        some_calls(nothing_ends);
    }
    steps_begin();
    some_calls(steps_next);
}

/* In the build for tests; compiled as one (make LTO=1) it is less. */
static void a_call_takes_few_instructions(void **state)
{
    enum { ASKED, HEARD, PARTS, OPEN = 16 };
    long part[PARTS] = {0};

    (void)state;
    steps_count(some_calls_counted, NULL, part, PARTS);
    (void)printf("instructions of a call: asking %ld, its answer %ld\n",
                 part[ASKED] / OPEN,
                 part[HEARD] / OPEN);
    assert_in_range(part[ASKED] / OPEN, 300, 2550);
    assert_in_range(part[HEARD] / OPEN, 300, 1280);
}

static void a_call_allocates_nothing(void **state)
{
    (void)state;
    look();
    give("bob", 2);
    look();
    calls_up(calls, 22, "n2", 12, true, now_us);
    for (int i = 0; i < 5; i++) {
        some_calls(nothing_ends);
    }
    allocations = 0;
    allocations_counted = true;
    for (int i = 0; i < 100; i++) {
        some_calls(nothing_ends);
    }
    allocations_counted = false;
    assert_int_equal(allocations, 0);
}

static void a_call_that_waits_long_sends_a_probe_after_itself(void **state)
{
    struct probe probe;

    (void)state;
    look();
    give("bob", 2);
    look();
    calls_up(calls, 22, "n2", 12, true, now_us);
    (void)take_sends();
    ask(6); // in the midst of no message: it keeps nobody waiting
    long_waits();
    assert_int_equal(take_sends(), 2);
    const struct request_record asked = did[1].r;
    after(90);
    assert_int_equal(take(CALLS_SEND), 0);
    after(20);
    assert_int_equal(take(CALLS_SEND), 1);
    assert_int_equal(did[0].e.frame_type, FRAME_CONTROL);
    assert_int_equal(did[0].e.peer, 22);
    Rh__Control *control = control_get(did[0].e.bytes);
    assert_int_equal(control->body_case, RH__CONTROL__BODY_PROBE);
    assert_int_equal(probe_get(control->probe, &probe), ERR_OK);
    assert_true(bytes_equal(probe.id, text_of("bob")));
    assert_true(call_name_same(&probe.origin, &probe.call));
    assert_int_equal(probe.call.node, 11);
    assert_int_equal(probe.call.session, asked.session);
    assert_int_equal(probe.call.seq, asked.seq);
    control->probe->id.len = 0;
    assert_int_equal(probe_get(control->probe, &probe), ERR_CORRUPT);
    control_free(control);
}

static void a_call_in_a_circle_ends_with_deadlock(void **state)
{
    (void)state;
    look();
    (void)take(CALLS_UP);
    long_waits();
    assert_int_equal(take(CALLS_HERE), 1);
    const struct request_record r = did[0].r;
    after(110);
    assert_int_equal(take(CALLS_PROBE), 1); // no link: this node hosts bob, too
    const struct probe back = {.origin = did[0].e.probe.origin,
                               .call = {.node = 12, .session = 1, .seq = 1},
                               .id = text_of("ann")};
    calls_chase(calls, &back, (struct blocked){.run = 5, .queued = true});
    assert_int_equal(take(CALLS_REFUSE), 1);
    assert_int_equal(did[0].e.run, 5);
    assert_int_equal(did[0].e.probe.call.node, 12);
    const struct answer_record refused = {.gateway = r.gateway,
                                          .session = r.session,
                                          .seq = r.seq,
                                          .copy = r.copy,
                                          .code = ANSWER_NO_KIND,
                                          .aux = NO_KIND_DEADLOCK};
    assert_true(calls_answer(calls, CALLS_LINK, &refused, now_us));
    assert_int_equal(take(CALLS_ANSWER), 1);
    assert_int_equal(did[0].e.answer.status, RH_DEADLOCK);
    calls_chase(calls, &back, (struct blocked){.run = 5, .queued = true});
    assert_int_equal(take(CALLS_REFUSE), 0); // it waits no more
}

static void an_operators_question_goes_to_the_owner_and_its_answer_to_the_coordinator(void **state)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__OperatorRequest request = RH__OPERATOR_REQUEST__INIT;
    Rh__AdminOperatorRequest what = RH__ADMIN_OPERATOR_REQUEST__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;
    struct buffer question = {0};

    (void)state;
    values_ask_put(&question, &(struct values_ask){.verb = VALUES_READ});
    actor.id = proto_bytes(text_of("bob"));
    what.actor = &actor;
    what.what = RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES;
    what.values = proto_bytes(buffer_bytes(&question));
    what.timeout_ms = 1000;
    request.what = &what;
    control.body_case = RH__CONTROL__BODY_OPERATOR_REQUEST;
    control.operator_request = &request;
    calls_operate(calls, 2, &control, now_us); // not registered yet: nobody is asked
    look();
    assert_int_equal(take(CALLS_HERE), 0);
    calls_operate(calls, 2, &control, now_us);
    assert_int_equal(take(CALLS_HERE), 1);
    assert_int_equal(did[0].r.flags, REQUEST_SESSION);
    const struct did asked = did[0];
    answer(&asked, CALLS_LINK, ANSWER_OK, "values");
    assert_int_equal(take(CALLS_REPORT), 1);
    assert_int_equal(did[0].e.coordinator, 2);
    Rh__Control *said = control_get(did[0].e.bytes);
    assert_non_null(said);
    assert_string_equal(said->operator_request_answer->outcome, "ok");
    assert_int_equal(said->operator_request_answer->body.len, 6);
    control_free(said);
    buffer_fini(&question);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup_teardown(a_call_to_this_node_takes_no_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_operators_question_goes_to_the_owner_and_its_answer_to_the_coordinator,
            set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_link_is_asked_for_when_something_is_to_be_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            links_that_cross_are_one_way_until_it_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_slot_may_get_another_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_chain_goes_with_the_call_and_is_not_too_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_call_ends_at_its_own_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_leave_comes_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_send_is_answered_to_nobody_and_keeps_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_has_gone_hears_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            another_incarnation_knows_nothing_of_what_was_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_host_is_told_what_is_still_awaited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_takes_few_instructions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_allocates_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            calls_to_this_node_come_together_while_they_are_of_one_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            answers_of_others_are_told_apart_from_those_of_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_call_that_waits_long_sends_a_probe_after_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_in_a_circle_ends_with_deadlock, set_up, tear_down),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
