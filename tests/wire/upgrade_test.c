/* SPDX-License-Identifier: Apache-2.0
 *
 * When the fleet's format may rise, and what its rise does: a leader whose build
 * reads formats 1 and 2, and processes around it.
 */
#include "link/link.h"
#include "txn/leader/coordinator.h"
#include "txn/state/digest.h"

#include "tests/command.h"
#include "tests/test.h"

enum { CLI_LINK = 1, SECOND_LINK, THIRD_LINK, NODE_LINK, GATEWAY_LINK };

static const struct versions old = {1, 1};
static const struct versions new = {1, 2};

static struct state s;
static struct coordinator *c;
static struct coordinator_effects effects;
static uint64_t incarnation;

static void step(struct coordinator_event event)
{
    event.now_us = 1000000;
    event.wall_us = 1000000;
    coordinator_effects_clear(&effects);
    coordinator_step(c, &event, &effects);
}

static void link_up(uint64_t link, enum link_role role, const char *name, struct versions format)
{
    step((struct coordinator_event){
        .type = COORDINATOR_PEER_UP,
        .peer = link,
        .role = (int)role,
        .name = name,
        .incarnation = role == ROLE_NODE ? incarnation : 7,
        .product = "ringhold 9",
        .format = format,
        .protocol = 4,
    });
}

static void link_down(uint64_t link)
{
    step((struct coordinator_event){.type = COORDINATOR_PEER_DOWN, .peer = link});
}

static int setup(void **state)
{
    struct coordinator_config config = coordinator_config_default();

    (void)state;
    init(&s);
    incarnation = stamp_of(enroll(&s, "n1", 5, 0));
    config.id = 1;
    config.voter_count = 3;
    for (size_t i = 0; i < 3; i++) {
        config.voter[i].id = i + 1;
    }
    config.formats = new;
    c = coordinator_new(&config, &s);
    link_up(CLI_LINK, ROLE_CLI, "cli", old);
    step((struct coordinator_event){.type = COORDINATOR_LEAD, .term = 3});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    coordinator_free(c);
    coordinator_effects_fini(&effects);
    state_fini(&s);
    return 0;
}

/* The first effect of that type in the last step. */
static const struct coordinator_effect *effect(enum coordinator_effect_type type, uint64_t peer)
{
    for (size_t i = 0; i < effects.count; i++) {
        if (effects.item[i].type == type && effects.item[i].peer == peer) {
            return &effects.item[i];
        }
    }
    return NULL;
}

static struct bytes bytes_in(const struct coordinator_effect *e)
{
    return bytes_of(effects.bytes.data + e->at, e->size);
}

/* Ask, and let the barrier pass. */
static void ask(bool finish)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminUpgrade what = RH__ADMIN_UPGRADE__INIT;

    what.finish = finish;
    what.by = proto_text("ann@desk");
    admin.tag = 9;
    admin.what_case = RH__ADMIN__WHAT_UPGRADE;
    admin.upgrade = &what;
    control.body_case = RH__CONTROL__BODY_ADMIN;
    control.admin = &admin;
    step((struct coordinator_event){
        .type = COORDINATOR_MESSAGE, .peer = CLI_LINK, .message = &control});
    const struct coordinator_effect *barrier = effect(COORDINATOR_BARRIER, 0);
    assert_non_null(barrier);
    step((struct coordinator_event){.type = COORDINATOR_DONE, .tag = barrier->tag});
}

/* What the operator was told: owned. */
static Rh__Control *told(void)
{
    const struct coordinator_effect *e = effect(COORDINATOR_SEND, CLI_LINK);

    assert_non_null(e);
    Rh__Control *said = control_get(bytes_in(e));
    assert_non_null(said);
    assert_int_equal(said->body_case, RH__CONTROL__BODY_ADMIN_REPLY);
    return said;
}

static void cannot_rise(const char *why)
{
    ask(false);
    Rh__Control *said = told();
    assert_string_equal(said->admin_reply->error, "");
    assert_string_equal(said->admin_reply->format_why, why);
    assert_int_equal(said->admin_reply->format, 1);
    assert_int_equal(said->admin_reply->format_next, 0);
    control_free(said);
    ask(true);
    said = told();
    assert_string_equal(said->admin_reply->error, why);
    control_free(said);
    assert_int_equal(s.format, 1);
}

static void all_new(void)
{
    link_up(SECOND_LINK, ROLE_COORDINATOR, "2", new);
    link_up(THIRD_LINK, ROLE_COORDINATOR, "3", new);
    link_up(NODE_LINK, ROLE_NODE, "n1", new);
    link_up(GATEWAY_LINK, ROLE_GATEWAY, "g1", new);
}

static void who_is_old_or_away_holds_the_format_back(void **state)
{
    (void)state;
    all_new();
    link_down(THIRD_LINK);
    cannot_rise("coordinator 3 is not linked to the leader");
    link_up(THIRD_LINK, ROLE_COORDINATOR, "3", old);
    cannot_rise("coordinator 3 reads formats 1..1: upgrade it");
    link_down(THIRD_LINK);
    link_up(THIRD_LINK, ROLE_COORDINATOR, "3", new);
    link_down(NODE_LINK);
    cannot_rise("node n1 is not linked to the leader");
    link_up(NODE_LINK, ROLE_NODE, "n1", (struct versions){0, 0}); // one that does not tell
    cannot_rise("node n1 reads formats 1..1: upgrade it");
    link_down(NODE_LINK);
    link_up(NODE_LINK, ROLE_NODE, "n1", new);
    link_down(GATEWAY_LINK);
    link_up(GATEWAY_LINK, ROLE_GATEWAY, "g1", old);
    cannot_rise("gateway g1 reads formats 1..1: upgrade it");
}

static void those_who_vote_now_are_asked(void **state)
{
    const struct state_voter now[] = {{.id = 1}, {.id = 4}, {.id = 5}};

    (void)state;
    all_new(); // 2 and 3 are linked yet, as former voters are
    step((struct coordinator_event){.type = COORDINATOR_VOTERS, .voter = now, .voter_count = 3});
    cannot_rise("coordinator 5 is not linked to the leader");
    link_up(THIRD_LINK + 10, ROLE_COORDINATOR, "4", new);
    link_up(THIRD_LINK + 11, ROLE_COORDINATOR, "5", old);
    cannot_rise("coordinator 5 reads formats 1..1: upgrade it");
}

static void it_rises_when_all_read_it_and_an_operator_says_so(void **state)
{
    struct state_result result;
    const uint64_t before = state_digest(&s);

    (void)state;
    all_new();
    ask(false);
    Rh__Control *said = told();
    assert_string_equal(said->admin_reply->format_why, "");
    assert_int_equal(said->admin_reply->format_next, 2);
    assert_int_equal(said->admin_reply->n_builds, 5);
    assert_string_equal(said->admin_reply->builds[1]->product, "ringhold 9");
    control_free(said);
    assert_null(effect(COORDINATOR_PROPOSE, 0)); // a question changes nothing

    ask(true);
    const struct coordinator_effect *e = effect(COORDINATOR_PROPOSE, 0);
    assert_non_null(e);
    const uint64_t tag = e->tag;
    Rh__Command command = RH__COMMAND__INIT; // command_get() of this build does not read format 2
    Rh__CommandFormat body = RH__COMMAND_FORMAT__INIT;
    assert_null(FLEET_FORMAT < 2 ? command_get(bytes_in(e)) : NULL);
    body.format = 2;
    command.body_case = RH__COMMAND__BODY_FORMAT;
    command.format = &body;
    state_apply(&s, &command, &result);
    assert_true(result.accepted);
    assert_int_equal(s.format, 2);
    assert_int_not_equal(state_digest(&s), before);
    step((struct coordinator_event){.type = COORDINATOR_APPLIED,
                                    .tag = tag,
                                    .index = 5,
                                    .command = &command,
                                    .result = &result});
    said = told();
    assert_string_equal(said->admin_reply->text, "the fleet's format is now 2");
    assert_int_equal(said->admin_reply->format, 2);
    control_free(said);
    state_result_fini(&result);
}

static bool accepts(Rh__CommandFormat *format)
{
    struct state_result r = apply(&s, RH__COMMAND__BODY_FORMAT, format);
    const bool accepted = r.accepted;

    state_result_fini(&r);
    return accepted;
}

static void it_never_goes_down_and_newer_commands_wait_for_it(void **state)
{
    Rh__CommandFormat format = RH__COMMAND_FORMAT__INIT;
    Rh__CommandAhead ahead = RH__COMMAND_AHEAD__INIT;

    (void)state;
    assert_int_equal(stamp_of(apply(&s, RH__COMMAND__BODY_AHEAD, &ahead)), 0);
    format.format = FLEET_FORMAT_AHEAD;
    assert_true(accepts(&format));
    assert_false(accepts(&format));
    format.format = 1;
    assert_false(accepts(&format));
    format.format = 0;
    assert_false(accepts(&format));
    assert_int_equal(s.format, FLEET_FORMAT_AHEAD);
    const uint64_t before = s.number;
    assert_int_equal(stamp_of(apply(&s, RH__COMMAND__BODY_AHEAD, &ahead)), before + 1);
}

static void a_command_of_a_format_that_is_not_read_is_none(void **state)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandFormat body = RH__COMMAND_FORMAT__INIT;
    struct buffer out = {0};

    (void)state;
    command_put(&out, &command); // no body: of a version whose commands are not known here
    assert_null(command_get(buffer_bytes(&out)));
    command.body_case = RH__COMMAND__BODY_FORMAT;
    command.format = &body;
    for (uint32_t format = FLEET_FORMAT; format <= FLEET_FORMAT + 1; format++) {
        body.format = format;
        buffer_clear(&out);
        command_put(&out, &command);
        Rh__Command *got = command_get(buffer_bytes(&out));
        assert_int_equal(got != NULL, format == FLEET_FORMAT);
        command_free(got);
    }
    body.format = UINT32_MAX;
    buffer_clear(&out);
    command_put(&out, &command);
    assert_null(command_get(buffer_bytes(&out)));
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup_teardown(who_is_old_or_away_holds_the_format_back, setup, teardown),
        cmocka_unit_test_setup_teardown(those_who_vote_now_are_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(
            it_rises_when_all_read_it_and_an_operator_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(
            it_never_goes_down_and_newer_commands_wait_for_it, setup, teardown),
        cmocka_unit_test(a_command_of_a_format_that_is_not_read_is_none),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
