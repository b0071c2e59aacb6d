/* SPDX-License-Identifier: Apache-2.0
 *
 * A fleet is founded while processes of another are linked already: it knows
 * its id only when its first command is applied, and they have said theirs.
 */
#include "link/link.h"
#include "txn/leader/coordinator.h"

#include "tests/command.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

enum { NODE_LINK = 1, FOREIGN_LINK, STRANGER_LINK, EFFECTS_MAX = 64 };

static const struct fleet_id mine = {7, 8};
static const struct fleet_id another = {7, 9};

static struct state s;
static struct coordinator *c;
static struct coordinator_effects effects;

static void step(struct coordinator_event event)
{
    event.now_us = 1000000;
    event.wall_us = 1000000;
    coordinator_effects_clear(&effects);
    coordinator_step(c, &event, &effects);
}

static int setup(void **state)
{
    struct coordinator_config config = coordinator_config_default();

    (void)state;
    config.id = 1;
    config.fleet = mine;
    config.key = (struct ring_key){1, 2};
    (void)snprintf(config.cluster, sizeof config.cluster, "test");
    state_init(&s);
    c = coordinator_new(&config, &s);
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

static void comes(uint64_t link, enum link_role role, const char *name, struct fleet_id fleet)
{
    step((struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                    .peer = link,
                                    .role = (int)role,
                                    .name = name,
                                    .protocol = 4,
                                    .fleet = fleet});
}

static void registers(uint64_t link, const char *name)
{
    uint8_t id[STATE_UUID_SIZE] = {(uint8_t)link};
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Register in = RH__REGISTER__INIT;

    in.name = proto_text(name);
    in.address = proto_text("h:1");
    in.boot_id = in.data_uuid = (ProtobufCBinaryData){.len = sizeof id, .data = id};
    in.nonce = link;
    in.lock_held = true;
    in.weight = 1;
    control.body_case = RH__CONTROL__BODY_REGISTER_;
    control.register_ = &in;
    step(
        (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = link, .message = &control});
}

/* Of the last step: commands of that body, applied; barriers pass. Returns how many. */
static size_t log_takes(Rh__Command__BodyCase body)
{
    struct coordinator_effect item[EFFECTS_MAX];
    const size_t count = effects.count;
    struct buffer bytes = effects.bytes;
    size_t found = 0;

    assert_true(count <= EFFECTS_MAX);
    memcpy(item, effects.item, count * sizeof *item);
    effects.bytes = (struct buffer){0};
    for (size_t i = 0; i < count; i++) {
        struct state_result result = {0};

        if (item[i].type == COORDINATOR_PROPOSE) {
            Rh__Command *command = command_get(bytes_of(bytes.data + item[i].at, item[i].size));
            assert_non_null(command);
            found += command->body_case == body;
            state_apply(&s, command, &result);
            step((struct coordinator_event){.type = COORDINATOR_APPLIED,
                                            .tag = item[i].tag,
                                            .index = 1,
                                            .command = command,
                                            .result = &result});
            state_result_fini(&result);
            command_free(command);
        }
    }
    buffer_fini(&bytes);
    return found;
}

/* The first effect of that type in the last step. */
static const struct coordinator_effect *effect(enum coordinator_effect_type type)
{
    for (size_t i = 0; i < effects.count; i++) {
        if (effects.item[i].type == type) {
            return &effects.item[i];
        }
    }
    fail_msg("there is none");
    return NULL;
}

static void the_first_command_names_the_fleet(void **state)
{
    (void)state;
    step((struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    assert_false(fleet_id_known(s.view.fleet));
    assert_int_equal(log_takes(RH__COMMAND__BODY_INIT), 1);
    assert_true(fleet_id_same(s.view.fleet, mine));
}

static void who_waited_and_is_of_another_fleet_is_not_registered(void **state)
{
    (void)state;
    comes(NODE_LINK, ROLE_NODE, "n1", (struct fleet_id){0});
    comes(FOREIGN_LINK, ROLE_NODE, "n2", another);
    comes(STRANGER_LINK, ROLE_GATEWAY, "g1", another);
    step((struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    assert_int_equal(log_takes(RH__COMMAND__BODY_INIT), 1);
    registers(FOREIGN_LINK, "n2"); // its link is about to go
    for (size_t i = 0; i < effects.count; i++) {
        assert_int_not_equal(effects.item[i].peer, FOREIGN_LINK);
    }
    registers(NODE_LINK, "n1");
    step((struct coordinator_event){.type = COORDINATOR_DONE,
                                    .tag = effect(COORDINATOR_BARRIER)->tag});
    assert_int_equal(log_takes(RH__COMMAND__BODY_REGISTER_), 1);
    assert_int_equal(s.node_count, 1);
    assert_string_equal(s.node[0].name, "n1");
    step((struct coordinator_event){.type = COORDINATOR_PEER_DOWN, .peer = FOREIGN_LINK});
}

static void a_registration_that_waited_for_the_founding_is_void(void **state)
{
    struct state_result result = {0};

    (void)state;
    comes(FOREIGN_LINK, ROLE_NODE, "n2", another);
    step((struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    const struct coordinator_effect init = *effect(COORDINATOR_PROPOSE);
    Rh__Command *command = command_get(bytes_of(effects.bytes.data + init.at, init.size));
    assert_non_null(command);
    registers(FOREIGN_LINK, "n2"); // while the first command is on its way
    const uint64_t barrier = effect(COORDINATOR_BARRIER)->tag;
    state_apply(&s, command, &result);
    step((struct coordinator_event){.type = COORDINATOR_APPLIED,
                                    .tag = init.tag,
                                    .index = 1,
                                    .command = command,
                                    .result = &result});
    step((struct coordinator_event){.type = COORDINATOR_DONE, .tag = barrier});
    assert_int_equal(log_takes(RH__COMMAND__BODY_REGISTER_), 0);
    assert_int_equal(s.node_count, 0);
    state_result_fini(&result);
    command_free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_command_names_the_fleet, setup, teardown),
        cmocka_unit_test_setup_teardown(
            who_waited_and_is_of_another_fleet_is_not_registered, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_registration_that_waited_for_the_founding_is_void, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
