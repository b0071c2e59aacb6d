/* SPDX-License-Identifier: Apache-2.0
 *
 * A traced request in the router: its context goes with each copy, its span ends when it does.
 */
#include "tests/gateway/router_rig.h"

#include "tests/test.h"

enum { SESSION = 5, TICKET = 77 };

struct noted {
    struct trace_span last;
    size_t count;
};

static void put(void *context, const struct trace_span *span)
{
    struct noted *n = context;

    n->last = *span;
    n->count++;
}

static void drop(void *context, enum span_drop why)
{
    (void)context;
    (void)why;
}

struct fixture {
    struct rig rig;
    struct noted noted;
    struct tracing tracing;
    struct trace_context client;
};

static void start(struct fixture *f, bool noting, bool knows)
{
    struct router_config config = router_config_default();

    memset(f, 0, sizeof *f);
    f->tracing = (struct tracing){.put = put, .drop = drop, .context = &f->noted};
    memset(f->client.trace, 0x4b, sizeof f->client.trace);
    memset(f->client.span, 0xa1, sizeof f->client.span);
    f->client.flags = TRACE_SAMPLED;
    config.gateway = 900;
    config.in_flight_max = 1;
    config.tracing = noting ? &f->tracing : NULL;
    rig_init(&f->rig, &config);
    ring_create(&f->rig.leader.ring, RIG_VNODES, 1, 10);
    rig_add_member(&f->rig, 1, 101);
    rig_config(&f->rig);
    rig_step(&f->rig,
             (struct router_event){
                 .type = ROUTER_NODE_UP, .slot = 1, .incarnation = 101, .speaks_streams = knows});
}

static void ask(struct fixture *f)
{
    rig_step(&f->rig,
             (struct router_event){.type = ROUTER_REQUEST,
                                   .session = SESSION,
                                   .ticket = TICKET,
                                   .id = bytes_of("boss", 4),
                                   .body = bytes_of("hit", 3),
                                   .trace = &f->client});
}

/* The record that the step has sent; borrowed. */
static struct request_record sent(const struct fixture *f)
{
    struct request_record r;
    size_t i = 0;

    while (i < f->rig.effects.count && f->rig.effects.item[i].type != ROUTER_SEND_NODE) {
        i++;
    }
    assert_true(i < f->rig.effects.count);
    const struct bytes b = rig_effect_bytes(&f->rig, &f->rig.effects.item[i]);
    struct reader in = {.at = b.data, .left = b.size};
    assert_int_equal(request_get(&in, &r), ERR_OK);
    return r;
}

static void answer(struct fixture *f, const struct request_record *r, enum answer_code code)
{
    const struct answer_record a = {.gateway = r->gateway,
                                    .session = r->session,
                                    .seq = r->seq,
                                    .copy = r->copy,
                                    .fence = 1,
                                    .version = 10,
                                    .code = (uint8_t)code,
                                    .aux = 1,
                                    .body = bytes_of("ok", 2)};

    rig_step(&f->rig, (struct router_event){.type = ROUTER_ANSWER, .slot = 1, .answer = &a});
}

static void assert_replied(const struct fixture *f, enum reply_code code)
{
    assert_int_equal(f->rig.effects.count, 1);
    assert_int_equal(f->rig.effects.item[0].type, ROUTER_REPLY);
    assert_int_equal(f->rig.effects.item[0].ticket, TICKET);
    assert_int_equal(f->rig.effects.item[0].code, code);
}

static void its_span_is_from_its_client_to_its_answer(void **state)
{
    struct fixture f;
    struct trace_context context;

    (void)state;
    start(&f, true, true);
    ask(&f);
    struct request_record r = sent(&f);
    assert_true((r.flags & REQUEST_TRACED) != 0);
    trace_context_take(&r.body, &context);
    assert_true(bytes_equal(r.body, bytes_of("hit", 3)));
    assert_memory_equal(context.trace, f.client.trace, TRACE_ID_SIZE);
    assert_memory_not_equal(context.span, f.client.span, TRACE_SPAN_SIZE);
    answer(&f, &r, ANSWER_BUSY);
    assert_int_equal(f.noted.count, 0);
    f.rig.now_us += 2000000;
    rig_step(&f.rig, (struct router_event){.type = ROUTER_TICK});
    const struct request_record again = sent(&f); // the same context
    assert_int_equal(again.copy, 2);
    assert_memory_equal(again.body.data + 3 + TRACE_ID_SIZE, context.span, TRACE_SPAN_SIZE);
    answer(&f, &again, ANSWER_OK);
    assert_replied(&f, REPLY_OK);
    assert_int_equal(f.noted.count, 1);
    assert_int_equal(f.noted.last.what, SPAN_REQUEST);
    assert_memory_equal(f.noted.last.parent, f.client.span, TRACE_SPAN_SIZE);
    assert_memory_equal(f.noted.last.context.span, context.span, TRACE_SPAN_SIZE);
    assert_int_equal(f.noted.last.to_us - f.noted.last.from_us, 2000000);
    assert_true(f.noted.last.is_counted);
    assert_int_equal(f.noted.last.came_us, f.noted.last.from_us);
    assert_int_equal(f.noted.last.attempts, 2);
    assert_null(f.noted.last.outcome);
    rig_fini(&f.rig);
}

static void what_ends_otherwise_says_how(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, true, true);
    ask(&f);
    ask(&f); // one too many: it is refused at once
    assert_replied(&f, REPLY_OVERLOADED);
    assert_string_equal(f.noted.last.outcome, "overloaded");
    assert_int_equal(f.noted.last.attempts, 0);
    f.rig.now_us += 10001000;
    rig_step(&f.rig, (struct router_event){.type = ROUTER_TICK});
    assert_replied(&f, REPLY_TIMEOUT);
    assert_int_equal(f.noted.count, 2);
    assert_string_equal(f.noted.last.outcome, "timeout");
    rig_fini(&f.rig);
}

static void a_node_of_an_older_version_gets_no_context(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, true, false);
    ask(&f);
    const struct request_record r = sent(&f);
    assert_int_equal(r.flags, 0);
    assert_true(bytes_equal(r.body, bytes_of("hit", 3)));
    answer(&f, &r, ANSWER_OK);
    assert_replied(&f, REPLY_OK);
    assert_int_equal(f.noted.count, 1);
    rig_fini(&f.rig);
}

static void without_tracing_the_context_goes_on_as_it_came(void **state)
{
    struct fixture f;
    struct trace_context context;

    (void)state;
    start(&f, false, true);
    ask(&f);
    struct request_record r = sent(&f);
    trace_context_take(&r.body, &context);
    assert_memory_equal(&context, &f.client, sizeof context);
    answer(&f, &r, ANSWER_OK);
    assert_replied(&f, REPLY_OK);
    rig_fini(&f.rig);
}

static void a_request_that_is_never_answered_is_freed(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, true, true);
    ask(&f);
    rig_fini(&f.rig);
    assert_int_equal(f.noted.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_span_is_from_its_client_to_its_answer),
        cmocka_unit_test(what_ends_otherwise_says_how),
        cmocka_unit_test(a_node_of_an_older_version_gets_no_context),
        cmocka_unit_test(without_tracing_the_context_goes_on_as_it_came),
        cmocka_unit_test(a_request_that_is_never_answered_is_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
