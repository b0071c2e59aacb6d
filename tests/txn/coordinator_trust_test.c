/* SPDX-License-Identifier: Apache-2.0
 *
 * What a coordinator believes of whom: routes and tags of operators' questions
 * are small numbers, which anybody may guess who has a link.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "link/link.h"
#include "txn/admin/metrics.h"
#include "txn/leader/coordinator.h"
#include "txn/participant.h"
#include "wire/control.h"

#include "tests/test.h"

#include <string.h>

enum { OPERATOR = 1, GATEWAY, NODE };

struct rig {
    struct state state;
    struct coordinator *c;
    struct coordinator_effects out;
    uint64_t now_us;
};

static void step(struct rig *r, struct coordinator_event event)
{
    event.now_us = r->now_us;
    coordinator_effects_clear(&r->out);
    coordinator_step(r->c, &event, &r->out);
}

/* Messages that it makes the coordinator send to the operator. */
static unsigned relayed(struct rig *r, uint64_t peer, Rh__Control *message)
{
    unsigned count = 0;

    step(r,
         (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = peer, .message = message});
    for (size_t i = 0; i < r->out.count; i++) {
        count += r->out.item[i].type == COORDINATOR_SEND && r->out.item[i].peer == OPERATOR;
    }
    return count;
}

static void start(struct rig *r)
{
    const struct coordinator_config config = coordinator_config_default();

    *r = (struct rig){.now_us = 1000000};
    state_init(&r->state);
    r->c = coordinator_new(&config, &r->state);
    step(r,
         (struct coordinator_event){
             .type = COORDINATOR_PEER_UP, .peer = OPERATOR, .role = ROLE_CLI, .name = "cli"});
    step(r,
         (struct coordinator_event){
             .type = COORDINATOR_PEER_UP, .peer = GATEWAY, .role = ROLE_GATEWAY, .name = "g1"});
    step(r,
         (struct coordinator_event){
             .type = COORDINATOR_PEER_UP, .peer = NODE, .role = ROLE_NODE, .name = "n1"});
}

static void stop(struct rig *r)
{
    coordinator_free(r->c);
    coordinator_effects_fini(&r->out);
    state_fini(&r->state);
}

static void an_operator_requests_answer_is_its_gateways(void **state)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__OperatorRequestAnswer answer = RH__OPERATOR_REQUEST_ANSWER__INIT;
    char mine[] = "g1";
    char other[] = "g2";
    struct rig r;

    (void)state;
    start(&r);
    answer.route = OPERATOR;
    answer.gateway = mine;
    control.body_case = RH__CONTROL__BODY_OPERATOR_REQUEST_ANSWER;
    control.operator_request_answer = &answer;
    assert_int_equal(relayed(&r, GATEWAY, &control), 1);
    answer.gateway = other;
    assert_int_equal(relayed(&r, GATEWAY, &control), 0);
    // A node that was asked for nothing.
    answer.gateway = other;
    other[0] = 'n';
    other[1] = '1';
    assert_int_equal(relayed(&r, NODE, &control), 0);
    stop(&r);
}

static void who_lives_at_a_node_it_says_itself(void **state)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__ActorsAnswer answer = RH__ACTORS_ANSWER__INIT;
    char name[] = "n1";
    struct rig r;

    (void)state;
    start(&r);
    answer.route = OPERATOR;
    answer.name = name;
    control.body_case = RH__CONTROL__BODY_ACTORS_ANSWER;
    control.actors_answer = &answer;
    assert_int_equal(relayed(&r, NODE, &control), 1);
    name[1] = '2';
    assert_int_equal(relayed(&r, NODE, &control), 0);
    name[1] = '1';
    answer.route = GATEWAY; // no operator
    assert_int_equal(relayed(&r, NODE, &control), 0);
    stop(&r);
}

static void what_a_process_is_like_it_says_itself(void **state)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__InspectAnswer answer = RH__INSPECT_ANSWER__INIT;
    char name[] = "n1";
    struct rig r;

    (void)state;
    start(&r);
    answer.route = OPERATOR;
    answer.role = ROLE_NODE;
    answer.name = name;
    control.body_case = RH__CONTROL__BODY_INSPECT_ANSWER;
    control.inspect_answer = &answer;
    assert_int_equal(relayed(&r, GATEWAY, &control), 0);
    assert_int_equal(relayed(&r, NODE, &control), 1);
    name[1] = '2';
    assert_int_equal(relayed(&r, NODE, &control), 0);
    stop(&r);
}

/* Its answer has a row for each. */
static void a_node_asks_for_no_more_than_it_can_have(void **state)
{
    static uint64_t txns[PARTICIPANT_PARTS_MAX + 2];
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Poll poll = RH__POLL__INIT;
    struct buffer text = {0};
    struct metrics m;
    struct rig r;

    (void)state;
    start(&r);
    control.body_case = RH__CONTROL__BODY_POLL;
    control.poll = &poll;
    poll.txns = txns;
    for (size_t i = 0; i < 2; i++) {
        poll.n_txns = PARTICIPANT_PARTS_MAX + 2 - i;
        step(&r,
             (struct coordinator_event){
                 .type = COORDINATOR_MESSAGE, .peer = NODE, .message = &control});
        assert_int_equal(r.out.count, i); // the second is told that it does not lead
    }
    metrics_begin(&m, METRICS_TEXT, &text);
    coordinator_metrics(r.c, 0, 0, &m);
    metrics_end(&m);
    buffer_put(&text, "", 1);
    assert_non_null(
        strstr((const char *)text.data, "\nringhold_coordinator_refused_messages_total 1\n"));
    buffer_fini(&text);
    stop(&r);
}

/* The operator's answer to `what` for that reason; "" = none came, it waits for a barrier. Owned.
 */
static char *answer_to_reason(struct rig *r, Rh__Admin__WhatCase what, char *reason)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminDrain drain = RH__ADMIN_DRAIN__INIT;
    Rh__AdminMove move = RH__ADMIN_MOVE__INIT;
    Rh__AdminPin pin = RH__ADMIN_PIN__INIT;
    Rh__AdminOperatorRequest request = RH__ADMIN_OPERATOR_REQUEST__INIT;
    char *error = mem_string("");

    drain.reason = move.reason = pin.reason = request.reason = reason;
    admin.what_case = what;
    if (what == RH__ADMIN__WHAT_DRAIN) {
        admin.drain = &drain;
    } else if (what == RH__ADMIN__WHAT_MOVE) {
        admin.move = &move;
    } else if (what == RH__ADMIN__WHAT_PIN) {
        admin.pin = &pin;
    } else {
        admin.operator_request = &request;
    }
    control.body_case = RH__CONTROL__BODY_ADMIN;
    control.admin = &admin;
    step(r,
         (struct coordinator_event){
             .type = COORDINATOR_MESSAGE, .peer = OPERATOR, .message = &control});
    for (size_t i = 0; i < r->out.count; i++) {
        const struct coordinator_effect *e = &r->out.item[i];

        if (e->type == COORDINATOR_SEND && e->peer == OPERATOR) {
            Rh__Control *said = control_get(bytes_of(r->out.bytes.data + e->at, e->size));

            ASSERT(said != NULL && said->body_case == RH__CONTROL__BODY_ADMIN_REPLY);
            mem_free(error);
            error = mem_string(said->admin_reply->error);
            control_free(said);
        }
    }
    return error;
}

static void a_reason_is_no_longer_than_the_history_keeps(void **state)
{
    static const Rh__Admin__WhatCase whats[] = {
        RH__ADMIN__WHAT_DRAIN,
        RH__ADMIN__WHAT_MOVE,
        RH__ADMIN__WHAT_PIN,
        RH__ADMIN__WHAT_OPERATOR_REQUEST,
    };
    char reason[ADMIN_REASON_MAX + 2] = "";
    struct buffer text = {0};
    struct metrics m;
    struct rig r;

    (void)state;
    start(&r);
    step(&r, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    memset(reason, 'r', ADMIN_REASON_MAX);
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++) {
        reason[ADMIN_REASON_MAX] = '\0';
        char *fits = answer_to_reason(&r, whats[i], reason);
        reason[ADMIN_REASON_MAX] = 'r';
        char *longer = answer_to_reason(&r, whats[i], reason);
        assert_string_equal(fits, "");
        assert_string_equal(longer, "the reason is longer than 200 bytes");
        mem_free(fits);
        mem_free(longer);
    }
    metrics_begin(&m, METRICS_TEXT, &text);
    coordinator_metrics(r.c, 0, 0, &m);
    metrics_end(&m);
    buffer_put(&text, "", 1);
    assert_non_null(
        strstr((const char *)text.data, "\nringhold_coordinator_refused_messages_total 4\n"));
    buffer_fini(&text);
    stop(&r);
}

static void count_line(void *context, enum log_level level, const char *line)
{
    (void)level;
    *(unsigned *)context += strstr(line, "database_went_back gateway=g1 knows=") != NULL;
}

/* A gateway says that it has a ring that nobody ever made; the barrier that this starts, or 0. */
static uint64_t claim(struct rig *r, uint64_t version)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__GetConfig get = RH__GET_CONFIG__INIT;
    uint64_t tag = 0;

    control.body_case = RH__CONTROL__BODY_GET_CONFIG;
    control.get_config = &get;
    get.have_version = version;
    step(r,
         (struct coordinator_event){
             .type = COORDINATOR_MESSAGE, .peer = GATEWAY, .message = &control});
    for (size_t i = 0; i < r->out.count; i++) {
        tag = r->out.item[i].type == COORDINATOR_BARRIER ? r->out.item[i].tag : tag;
    }
    return tag;
}

/* It may say a greater number each time, as fast as it likes. */
static void numbers_of_a_gateway_are_counted_and_fill_no_log(void **state)
{
    enum { CLAIMS = 1000 };
    struct buffer text = {0};
    unsigned lines = 0;
    struct metrics m;
    struct rig r;

    (void)state;
    log_set_sink(count_line, &lines);
    start(&r);
    step(&r, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    for (uint64_t i = 1; i <= CLAIMS; i++) {
        r.now_us += 1000;
        const uint64_t tag = claim(&r, UINT64_MAX - CLAIMS + i);

        assert_int_not_equal(tag, 0);
        for (int more = 0; more < 3; more++) {
            assert_int_equal(claim(&r, UINT64_MAX), 0);
        }
        step(&r, (struct coordinator_event){.type = COORDINATOR_DONE, .tag = tag});
    }
    assert_int_equal(lines, 1);
    metrics_begin(&m, METRICS_TEXT, &text);
    coordinator_metrics(r.c, 0, 0, &m);
    metrics_end(&m);
    buffer_put(&text, "", 1);
    assert_non_null(strstr((const char *)text.data,
                           "\nringhold_coordinator_newer_numbers_total{role=\"gateway\"} 1000\n"));
    buffer_fini(&text);
    stop(&r);
    log_set_sink(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operator_requests_answer_is_its_gateways),
        cmocka_unit_test(who_lives_at_a_node_it_says_itself),
        cmocka_unit_test(what_a_process_is_like_it_says_itself),
        cmocka_unit_test(a_node_asks_for_no_more_than_it_can_have),
        cmocka_unit_test(a_reason_is_no_longer_than_the_history_keeps),
        cmocka_unit_test(numbers_of_a_gateway_are_counted_and_fill_no_log),
    };

    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
