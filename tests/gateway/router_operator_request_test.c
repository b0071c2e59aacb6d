/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator has sent to one actor, as the router sends it and tells of it.
 */
#include "tests/gateway/router_rig.h"

#include "tests/test.h"
#include "wire/session.h"
#include "wire/trace.h"
#include "wire/values_ask.h"

enum { COORDINATOR = 0, TAG = 7, ROUTE = 8 };

struct fixture {
    struct rig rig;
    Rh__OperatorRequest operator_request;
    Rh__AdminOperatorRequest what;
    Rh__Actor actor;
};

static void start_as(struct fixture *f, Rh__OperatorRequestWhat what, bool of_node)
{
    struct router_config config = router_config_default();

    config.gateway = 900;
    config.of_node = of_node;
    (void)snprintf(config.name, sizeof config.name, "g1");
    *f = (struct fixture){.operator_request = RH__OPERATOR_REQUEST__INIT,
                          .what = RH__ADMIN_OPERATOR_REQUEST__INIT,
                          .actor = RH__ACTOR__INIT};
    rig_init(&f->rig, &config);
    ring_create(&f->rig.leader.ring, RIG_VNODES, 1, 10);
    rig_add_member(&f->rig, 1, 101);
    rig_config(&f->rig);
    rig_step(&f->rig, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 101});
    f->actor.id = proto_bytes(bytes_of("boss", 4));
    f->what.what = what;
    f->what.actor = &f->actor;
    f->what.text = proto_text("bye");
    f->what.code = 1000;
    f->operator_request.tag = TAG;
    f->operator_request.route = ROUTE;
    f->operator_request.what = &f->what;
}

static void start(struct fixture *f, Rh__OperatorRequestWhat what)
{
    start_as(f, what, false);
}

static void ask(struct fixture *f)
{
    Rh__Control control = RH__CONTROL__INIT;

    control.body_case = RH__CONTROL__BODY_OPERATOR_REQUEST;
    control.operator_request = &f->operator_request;
    rig_step(&f->rig,
             (struct router_event){
                 .type = ROUTER_CONTROL, .coordinator = COORDINATOR, .message = &control});
}

static struct bytes bytes_at(const struct rig *rig, const struct router_effect *e)
{
    return bytes_of(rig->effects.bytes.data + e->at, e->size);
}

/* The request that was sent to the node, the step's only effect; borrowed. */
static struct request_record sent(const struct fixture *f)
{
    struct request_record r;

    assert_int_equal(f->rig.effects.count, 1);
    assert_int_equal(f->rig.effects.item[0].type, ROUTER_SEND_NODE);
    const struct bytes b = bytes_at(&f->rig, &f->rig.effects.item[0]);
    struct reader in = {.at = b.data, .left = b.size};
    assert_int_equal(request_get(&in, &r), ERR_OK);
    return r;
}

/* What the coordinator is told, the step's only effect; control_free() it. */
static Rh__Control *told(const struct fixture *f)
{
    assert_int_equal(f->rig.effects.count, 1);
    assert_int_equal(f->rig.effects.item[0].type, ROUTER_SEND_COORDINATOR);
    assert_int_equal(f->rig.effects.item[0].coordinator, COORDINATOR);
    Rh__Control *c = control_get(bytes_at(&f->rig, &f->rig.effects.item[0]));
    assert_non_null(c);
    assert_int_equal(c->body_case, RH__CONTROL__BODY_OPERATOR_REQUEST_ANSWER);
    assert_true(c->operator_request_answer->tag == TAG &&
                c->operator_request_answer->route == ROUTE);
    assert_string_equal(c->operator_request_answer->gateway, "g1");
    return c;
}

static void answer(struct fixture *f, const struct request_record *r, enum answer_code code,
                   struct bytes body)
{
    const struct answer_record a = {.gateway = r->gateway,
                                    .session = r->session,
                                    .seq = r->seq,
                                    .fence = 10,
                                    .version = 10,
                                    .code = (uint8_t)code,
                                    .copy = r->copy,
                                    .body = body};

    rig_step(&f->rig, (struct router_event){.type = ROUTER_ANSWER, .slot = 1, .answer = &a});
}

static void a_trace_goes_out_and_its_way_comes_back(void **state)
{
    struct fixture f;
    struct note note;

    (void)state;
    start(&f, RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_TRACE);
    ask(&f);
    const struct request_record r = sent(&f);
    assert_int_equal(r.flags, REQUEST_SESSION | REQUEST_AWAKE);
    assert_int_equal(note_get(r.body, &note), ERR_OK);
    assert_true(note.type == NOTE_TRACE && note.payload.size == 0);
    ask(&f); // the coordinator asks again while it waits
    assert_int_equal(f.rig.effects.count, 0);
    f.rig.now_us += 1500;
    answer(&f, &r, ANSWER_OK, bytes_of("hops", 4));
    Rh__Control *c = told(&f);
    assert_string_equal(c->operator_request_answer->outcome, "ok");
    assert_string_equal(c->operator_request_answer->node, "n1");
    assert_int_equal(c->operator_request_answer->total_us, 1500);
    assert_int_equal(c->operator_request_answer->sent_us, 0);
    assert_int_equal(c->operator_request_answer->copies, 1);
    assert_int_equal(c->operator_request_answer->body.len, 4);
    control_free(c);
    rig_fini(&f.rig);
}

static void a_kick_says_whether_anybody_was_there(void **state)
{
    struct fixture f;
    struct note note;

    (void)state;
    start(&f, RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK);
    ask(&f);
    struct request_record r = sent(&f);
    assert_int_equal(note_get(r.body, &note), ERR_OK);
    assert_true(note.type == NOTE_KICK && note.code == 1000 && note.payload.size == 3);
    answer(&f, &r, ANSWER_NO_KIND, (struct bytes){0});
    Rh__Control *c = told(&f);
    assert_string_equal(c->operator_request_answer->outcome, "nobody");
    control_free(c);
    ask(&f); // it is over: the next one is another
    r = sent(&f);
    answer(&f, &r, ANSWER_OK, bytes_of("\1", 1));
    c = told(&f);
    assert_string_equal(c->operator_request_answer->outcome, "ok");
    control_free(c);
    rig_fini(&f.rig);
}

static void one_that_is_never_answered_ends(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_TRACE);
    f.what.timeout_ms = 300;
    f.what.wake = true;
    ask(&f);
    assert_int_equal(sent(&f).flags, REQUEST_SESSION);
    f.rig.now_us += 301000;
    rig_step(&f.rig, (struct router_event){.type = ROUTER_TICK});
    Rh__Control *c = told(&f);
    assert_string_equal(c->operator_request_answer->outcome, "timeout");
    control_free(c);
    rig_fini(&f.rig);
}

static void nonsense_and_too_many_are_refused(void **state)
{
    struct fixture f;
    Rh__Control *c;

    (void)state;
    start(&f, RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_TRACE);
    f.actor.id = proto_bytes(bytes_of("", 0));
    ask(&f);
    c = told(&f);
    assert_string_equal(c->operator_request_answer->outcome, "malformed");
    control_free(c);
    f.operator_request.what = NULL;
    ask(&f);
    c = told(&f);
    assert_string_equal(c->operator_request_answer->outcome, "malformed");
    control_free(c);
    f.operator_request.what = &f.what;
    f.actor.id = proto_bytes(bytes_of("boss", 4));
    for (uint64_t tag = 100; tag < 116; tag++) {
        f.operator_request.tag = tag;
        ask(&f);
        assert_int_equal(sent(&f).seq, tag - 99);
    }
    f.operator_request.tag = TAG;
    ask(&f);
    c = told(&f);
    assert_string_equal(c->operator_request_answer->outcome, "busy");
    control_free(c);
    rig_fini(&f.rig);
}

static void is_refused(struct fixture *f)
{
    ask(f);
    Rh__Control *c = told(f);
    assert_string_equal(c->operator_request_answer->outcome, "malformed");
    control_free(c);
}

static void values_are_asked_by_nodes_alone(void **state)
{
    struct buffer question = {0};
    struct fixture f;
    struct note note;

    (void)state;
    values_ask_put(&question, &(struct values_ask){.verb = VALUES_READ});
    start(&f, RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES);
    f.what.values = proto_bytes(buffer_bytes(&question));
    is_refused(&f); // who has a gateway's key has no values by it
    rig_fini(&f.rig);

    start_as(&f, RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES, true);
    f.what.values = proto_bytes(bytes_of("nonsense", 8));
    is_refused(&f);
    f.what.values = proto_bytes(buffer_bytes(&question));
    ask(&f);
    const struct request_record r = sent(&f);
    assert_int_equal(r.flags, REQUEST_SESSION); // one that sleeps is started
    assert_int_equal(note_get(r.body, &note), ERR_OK);
    assert_true(note.type == NOTE_VALUES && bytes_equal(note.payload, buffer_bytes(&question)));
    answer(&f, &r, ANSWER_OK, bytes_of("values", 6));
    Rh__Control *c = told(&f);
    assert_string_equal(c->operator_request_answer->outcome, "ok");
    assert_int_equal(c->operator_request_answer->body.len, 6);
    control_free(c);
    f.what.what = RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK; // a gateway's
    is_refused(&f);
    buffer_fini(&question);
    rig_fini(&f.rig);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_trace_goes_out_and_its_way_comes_back),
        cmocka_unit_test(a_kick_says_whether_anybody_was_there),
        cmocka_unit_test(one_that_is_never_answered_ends),
        cmocka_unit_test(nonsense_and_too_many_are_refused),
        cmocka_unit_test(values_are_asked_by_nodes_alone),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
