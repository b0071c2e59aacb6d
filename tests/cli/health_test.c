/* SPDX-License-Identifier: Apache-2.0
 *
 * What `ringhold status` opens with, and events in words.
 */
#include "cli/event_text.h"
#include "cli/health.h"
#include "wire/control.h"

#include "tests/test.h"

#include <stdbool.h>
#include <stdio.h>

static const uint64_t ERA = UINT64_C(1) << 40;

/* A fleet of one coordinator and two nodes that is well. */
struct fleet {
    Rh__AdminReply reply;
    Rh__VoterRow voter;
    Rh__Member member[2];
    Rh__NodeRow node[2];
    Rh__VoterRow *voters[1];
    Rh__NodeRow *nodes[2];
};

static void begin(struct fleet *f)
{
    static const char *const names[] = {"n1", "n2"};

    *f = (struct fleet){.reply = RH__ADMIN_REPLY__INIT, .voter = RH__VOTER_ROW__INIT};
    f->voter.id = 1;
    f->voter.leader = true;
    f->voters[0] = &f->voter;
    f->reply.voters = f->voters;
    f->reply.n_voters = 1;
    f->reply.version = ERA | 76;
    f->reply.digest0 = 1;
    for (size_t i = 0; i < 2; i++) {
        f->member[i] = (Rh__Member)RH__MEMBER__INIT;
        f->member[i].name = proto_text(names[i]);
        f->node[i] = (Rh__NodeRow)RH__NODE_ROW__INIT;
        f->node[i].member = &f->member[i];
        f->node[i].state = proto_text("live");
        f->node[i].version = ERA | 76;
        f->node[i].digest0 = 1;
        f->nodes[i] = &f->node[i];
    }
    f->reply.nodes = f->nodes;
    f->reply.n_nodes = 2;
}

/* The only problem that it has. */
static void expect_problem(const struct fleet *f, const char *what, const char *todo)
{
    static struct health health;

    health_of(&f->reply, &health);
    assert_int_equal(health.count, 1);
    assert_string_equal(health.problem[0].what, what);
    assert_string_equal(health.problem[0].todo, todo);
}

static void a_fleet_that_is_well_has_no_problem(void **state)
{
    static struct health health;
    struct fleet f;

    (void)state;
    begin(&f);
    f.node[1].state = proto_text("leaving");
    f.reply.pending = 3;
    health_of(&f.reply, &health);
    assert_int_equal(health.count, 0);
}

static void each_problem_names_the_command_that_helps(void **state)
{
    struct fleet f;

    (void)state;
    begin(&f);
    f.node[1].state = proto_text("dead");
    expect_problem(&f, "node n2 is dead", "start it again, or: ringhold node remove n2");
    begin(&f);
    f.node[0].state = proto_text("suspect");
    f.node[0].heard_us_ago = 1600000;
    expect_problem(&f, "node n1 is suspect, last heard 1.6 s ago", "ringhold check");
    begin(&f);
    f.node[0].clock_parts = -205;
    expect_problem(&f, "the clock of n1 runs away (-20.5 %)", "ringhold check");
    begin(&f);
    f.reply.n_nodes = 0;
    expect_problem(&f, "no node is there", "start one: ringhold node --join COORDINATOR");
    Rh__ObstacleRow restored = RH__OBSTACLE_ROW__INIT;
    Rh__ObstacleRow *obstacles[] = {&restored};
    begin(&f);
    restored.reason = proto_text("restored");
    restored.left_us = 2899001;
    f.reply.obstacles = obstacles;
    f.reply.n_obstacles = 1;
    expect_problem(&f,
                   "restored from a backup, and no node serves until the leases of before have "
                   "ended",
                   "wait for 2.9 s, and look again");
    restored.reason = proto_text("planning");
    static struct health none;
    health_of(&f.reply, &none);
    assert_int_equal(none.count, 0);
    begin(&f);
    f.reply.pins_count = 5;
    f.reply.pins_away = 2;
    expect_problem(&f, "of 2 of 5 pins the node is not there or drains", "ringhold pin list");
    begin(&f);
    f.voter.leader = false;
    f.voter.address = proto_text("127.0.0.1:7400");
    expect_problem(&f,
                   "coordinator 1 (127.0.0.1:7400) is unreachable",
                   "start it again, or see: ringhold coordinators list");
}

static void digests_are_told_where_they_differ(void **state)
{
    struct fleet f;

    (void)state;
    begin(&f);
    f.node[1].digest0 = 2;
    expect_problem(&f,
                   "node n2 has another ring of version 1.76 than the leader: digest "
                   "00000000000000000000000000000002, the leader's "
                   "00000000000000000000000000000001",
                   "ringhold check, then ringhold fix");
}

static void more_problems_than_are_kept_are_counted(void **state)
{
    static struct health health;
    static Rh__GatewayRow gateway[4 * HEALTH_PROBLEMS_MAX];
    static Rh__GatewayRow *gateways[4 * HEALTH_PROBLEMS_MAX];
    static char name[4 * HEALTH_PROBLEMS_MAX][16];
    struct fleet f;

    (void)state;
    begin(&f);
    for (size_t i = 0; i < 4 * (size_t)HEALTH_PROBLEMS_MAX; i++) { // two of each name
        gateway[i] = (Rh__GatewayRow)RH__GATEWAY_ROW__INIT;
        (void)snprintf(name[i], sizeof name[i], "g%zu", i / 2);
        gateway[i].name = name[i];
        gateways[i] = &gateway[i];
    }
    f.reply.gateways = gateways;
    f.reply.n_gateways = 4 * (size_t)HEALTH_PROBLEMS_MAX;
    health_of(&f.reply, &health);
    assert_int_equal(health.count, 2 * HEALTH_PROBLEMS_MAX);
    assert_string_equal(health.problem[0].what, "2 gateways have the name g0");
}

static void an_event_is_a_sentence(void **state)
{
    Rh__EventRow joined = RH__EVENT_ROW__INIT;
    Rh__EventRow e = RH__EVENT_ROW__INIT;
    Rh__EventRow *events[] = {&joined};
    Rh__AdminReply history = RH__ADMIN_REPLY__INIT;
    char text[EVENT_TEXT_SIZE];

    (void)state;
    joined.command = proto_text("register");
    joined.subject = proto_text("node n2");
    joined.accepted = true;
    joined.stamp = ERA | 2;
    history.events = events;
    history.n_events = 1;
    assert_string_equal(event_text(&joined, &history, text), "node n2 joined the fleet");
    e.accepted = true;
    e.command = proto_text("begin");
    e.subject = proto_text("txn 1.28");
    e.why = proto_text("drain n1");
    assert_string_equal(event_text(&e, &history, text), "transaction 1.28 began: drain n1");
    e.subject = proto_text("txn 1099511627804"); // as it was written before
    assert_string_equal(event_text(&e, &history, text), "transaction 1.28 began: drain n1");
    e.command = proto_text("fence");
    e.subject = proto_text("incarnation 1.2");
    e.why = proto_text("");
    assert_string_equal(
        event_text(&e, &history, text),
        "node n2 (incarnation 1.2) was fenced: its lease has ended, and it never serves again");
    e.subject = proto_text("incarnation 1.9");
    assert_string_equal(
        event_text(&e, &history, text),
        "a node (incarnation 1.9) was fenced: its lease has ended, and it never serves again");
    e.command = proto_text("drain");
    e.subject = proto_text("node n1");
    e.by = proto_text("ann@ops");
    e.reason = proto_text("100 % full");
    assert_string_equal(event_text(&e, &history, text),
                        "node n1 is to be drained; by ann@ops, because: 100 % full");
    e.accepted = false;
    e.why = proto_text("the node is the last one");
    assert_string_equal(event_text(&e, &history, text),
                        "refused: drain node n1: the node is the last one; by ann@ops, because: "
                        "100 % full");
    e.accepted = true;
    e.command = proto_text("shuffle"); // of a later version
    assert_string_equal(
        event_text(&e, &history, text),
        "shuffle node n1: the node is the last one; by ann@ops, because: 100 % full");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fleet_that_is_well_has_no_problem),
        cmocka_unit_test(each_problem_names_the_command_that_helps),
        cmocka_unit_test(digests_are_told_where_they_differ),
        cmocka_unit_test(more_problems_than_are_kept_are_counted),
        cmocka_unit_test(an_event_is_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
