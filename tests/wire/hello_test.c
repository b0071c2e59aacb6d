/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of wire/hello.h: these bytes, and who is refused for which reason.
 */
#include "wire/hello.h"

#include "wire/control.h"

#include "tests/hex.h"
#include "tests/test.h"

#include <string.h>

static const struct hello node = {
    .product = "ringhold 0.1.0",
    .protocol = {1, 1},
    .cluster = "test",
    .role = ROLE_NODE,
    .name = "n1",
    .incarnation = 0x0102030405060708u,
    .identity = 9,
    .pristine = true,
    .address = "127.0.0.1:7001",
    .voters = 11,
    .format = {2, 3},
    .fleet = {0x1112131415161718u, 0x2122232425262728u},
};

static enum err back(const struct hello *hello, struct hello *out)
{
    struct buffer b = {0};
    enum err e;

    hello_put(&b, hello);
    e = hello_get(buffer_bytes(&b), out);
    buffer_fini(&b);
    return e;
}

static void a_hello_has_these_bytes_and_comes_back(void **state)
{
    struct buffer out = {0};
    struct hello got;

    (void)state;
    hello_put(&out, &node);
    assert_hex(buffer_bytes(&out),
               "0a0e 72696e67686f6c6420302e312e30 1001 1801 2204 74657374 2802 3202 6e31"
               "39 0807060504030201 41 0900000000000000 4801 520e 3132372e302e302e313a37303031"
               "59 0b00000000000000 9108 1817161514131211 9908 2827262524232221 c00c03 c80c02");
    assert_int_equal(hello_get(buffer_bytes(&out), &got), ERR_OK);
    assert_string_equal(got.product, node.product);
    assert_int_equal(got.protocol.oldest, node.protocol.oldest);
    assert_int_equal(got.protocol.newest, node.protocol.newest);
    assert_string_equal(got.cluster, node.cluster);
    assert_int_equal(got.role, node.role);
    assert_string_equal(got.name, node.name);
    assert_int_equal(got.incarnation, node.incarnation);
    assert_int_equal(got.identity, node.identity);
    assert_int_equal(got.pristine, node.pristine);
    assert_string_equal(got.address, node.address);
    assert_int_equal(got.voters, node.voters);
    assert_true(fleet_id_same(got.fleet, node.fleet));
    for (size_t cut = 0; cut < out.size; cut++) {
        // A prefix may be a message of fewer fields; no prefix is this hello.
        if (hello_get(bytes_of(out.data, cut), &got) == ERR_OK) {
            assert_true(got.voters == 0 || got.format.oldest != 2);
        }
    }
    buffer_fini(&out);
}

static void names_are_short_and_of_safe_letters(void **state)
{
    char long_name[LINK_NAME_MAX + 2];

    (void)state;
    memset(long_name, 'a', sizeof long_name);
    long_name[LINK_NAME_MAX + 1] = '\0';
    assert_false(hello_name_is_valid(long_name));
    long_name[LINK_NAME_MAX] = '\0';
    assert_true(hello_name_is_valid(long_name));
    assert_true(hello_name_is_valid("eu-west_1.node-7"));
    assert_false(hello_name_is_valid(""));
    assert_false(hello_name_is_valid("a b"));
    assert_false(hello_name_is_valid("a\nb"));
    assert_false(hello_name_is_valid("na\xc3\xafve"));
    assert_false(hello_name_is_valid("a/b"));
}

static void a_hello_that_could_not_be_ours_is_corrupt(void **state)
{
    struct hello bad;
    struct hello got;

    (void)state;
    assert_int_equal(hello_get(text("GET / HTTP/1.1"), &got), ERR_CORRUPT);
    assert_int_equal(hello_get(text(""), &got), ERR_CORRUPT);
    bad = node;
    strcpy(bad.name, "n 1");
    assert_int_equal(back(&bad, &got), ERR_CORRUPT);
    bad = node;
    bad.cluster[0] = '\0';
    assert_int_equal(back(&bad, &got), ERR_CORRUPT);
    bad = node;
    strcpy(bad.product, "a\"b");
    assert_int_equal(back(&bad, &got), ERR_CORRUPT);
    bad = node;
    strcpy(bad.address, "1.2.3.4:1\n");
    assert_int_equal(back(&bad, &got), ERR_CORRUPT);
    bad = node;
    bad.role = (enum link_role)5;
    assert_int_equal(back(&bad, &got), ERR_CORRUPT);
}

static void is_judged(const struct hello *here, const struct hello *there, enum refusal refusal,
                      const char *reason)
{
    const struct hello_verdict verdict = hello_judge(here, there);

    assert_int_equal(verdict.refusal, refusal);
    assert_string_equal(verdict.reason, reason);
    assert_true((refusal == REFUSAL_NONE) == (verdict.protocol != 0));
}

static void another_cluster_is_refused_in_the_words_of_either_side(void **state)
{
    struct hello prod = node;

    (void)state;
    strcpy(prod.cluster, "prod");
    is_judged(&node, &node, REFUSAL_NONE, "");
    is_judged(&node, &prod, REFUSAL_CLUSTER, "cluster is 'prod' there, 'test' here");
    is_judged(&prod, &node, REFUSAL_CLUSTER, "cluster is 'test' there, 'prod' here");
}

static void another_fleet_is_refused_and_both_say_how_to_join(void **state)
{
    struct hello leader = node;
    struct hello gateway = node;
    struct hello other = node;
    struct hello cli = node;

    (void)state;
    leader.role = ROLE_COORDINATOR;
    strcpy(leader.name, "1");
    leader.fleet = (struct fleet_id){0, 0};
    is_judged(&leader, &node, REFUSAL_NONE, ""); // as long as it knows of none
    is_judged(&node, &leader, REFUSAL_NONE, "");
    leader.fleet = (struct fleet_id){1, 2};
    is_judged(&leader,
              &node,
              REFUSAL_FLEET,
              "fleet is 11121314151617182122232425262728 there, 00000000000000010000000000000002 "
              "here: to join, start node n1 in an empty folder");
    is_judged(&node,
              &leader,
              REFUSAL_FLEET,
              "fleet is 00000000000000010000000000000002 there, 11121314151617182122232425262728 "
              "here: to join, start node n1 in an empty folder");
    gateway.role = ROLE_GATEWAY;
    strcpy(gateway.name, "g1");
    is_judged(&gateway,
              &leader,
              REFUSAL_FLEET,
              "fleet is 00000000000000010000000000000002 there, 11121314151617182122232425262728 "
              "here: to join, restart gateway g1");
    other.fleet = leader.fleet;
    is_judged(&gateway,
              &other,
              REFUSAL_FLEET,
              "fleet is 00000000000000010000000000000002 there, 11121314151617182122232425262728 "
              "here");
    cli.role = ROLE_CLI; // asks whoever is there
    is_judged(&leader, &cli, REFUSAL_NONE, "");
    is_judged(&cli, &leader, REFUSAL_NONE, "");
    other.fleet = node.fleet;
    memset(other.name, 'n', LINK_NAME_MAX); // nothing of it is cut off
    const struct hello_verdict verdict = hello_judge(&leader, &other);
    assert_non_null(strstr(verdict.reason, "n in an empty folder"));
}

static void a_cli_may_look_at_any_cluster_but_not_at_the_wrong_one(void **state)
{
    struct hello cli = node;
    struct hello got;

    (void)state;
    cli.role = ROLE_CLI;
    cli.cluster[0] = '\0';
    assert_int_equal(back(&cli, &got), ERR_OK);
    is_judged(&node, &cli, REFUSAL_NONE, "");
    is_judged(&cli, &node, REFUSAL_NONE, "");
    strcpy(cli.cluster, "prod");
    assert_int_equal(hello_judge(&node, &cli).refusal, REFUSAL_CLUSTER);
}

static void the_greatest_protocol_that_both_speak_is_chosen(void **state)
{
    static const struct {
        struct versions here;
        struct versions there;
        uint32_t chosen;
    } cases[] = {
        {{1, 1}, {1, 1}, 1},
        {{1, 1}, {1, 3}, 1},
        {{2, 5}, {4, 9}, 5},
        {{4, 4}, {4, 5}, 4},
        {{4, 5}, {5, 6}, 5},
        {{1, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}, UINT32_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hello here = node;
        struct hello there = node;

        here.protocol = cases[i].here;
        there.protocol = cases[i].there;
        assert_int_equal(hello_judge(&here, &there).protocol, cases[i].chosen);
        assert_int_equal(hello_judge(&there, &here).protocol, cases[i].chosen);
    }
}

static void without_a_common_protocol_both_name_who_must_be_upgraded(void **state)
{
    struct hello newer = node;

    (void)state;
    newer.role = ROLE_GATEWAY;
    strcpy(newer.name, "g1");
    newer.protocol = (struct versions){2, 3};
    is_judged(
        &node, &newer, REFUSAL_PEER_NEWER, "protocol is 2..3 there, 1..1 here: upgrade node n1");
    is_judged(
        &newer, &node, REFUSAL_PEER_OLDER, "protocol is 1..1 there, 2..3 here: upgrade node n1");
    newer.protocol = (struct versions){UINT32_MAX, UINT32_MAX};
    is_judged(&node,
              &newer,
              REFUSAL_PEER_NEWER,
              "protocol is 4294967295..4294967295 there, 1..1 here: upgrade node n1");
}

static void what_is_no_range_of_protocols_is_refused(void **state)
{
    static const struct versions hostile[] = {
        {0, 0}, {0, 4}, {0, UINT32_MAX}, {4, 0}, {5, 4}, {UINT32_MAX, 1}, {1, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        struct hello bad = node;
        struct hello got;

        bad.protocol = hostile[i];
        assert_int_equal(back(&bad, &got), ERR_OK); // it decodes: its sender is told why
        assert_int_equal(hello_judge(&node, &got).refusal, REFUSAL_NO_RANGE);
        assert_int_equal(hello_judge(&node, &got).protocol, 0);
        assert_int_equal(hello_judge(&got, &node).protocol, 0);
    }
    struct hello inverted = node;
    inverted.protocol = (struct versions){7, 3};
    is_judged(&node, &inverted, REFUSAL_NO_RANGE, "protocol is 7..3 there, which is not a range");
}

static void who_does_not_tell_reads_the_first_format(void **state)
{
    struct hello silent = node;
    struct hello got;

    (void)state;
    silent.format = (struct versions){0, 0};
    assert_int_equal(back(&silent, &got), ERR_OK);
    assert_int_equal(got.format.oldest, 1);
    assert_int_equal(got.format.newest, 1);
}

static void who_does_not_read_the_fleets_format_is_refused_by_either_side(void **state)
{
    struct hello leader = node;
    struct hello cli = node;

    (void)state;
    leader.role = ROLE_COORDINATOR;
    strcpy(leader.name, "1");
    leader.format = (struct versions){3, 5};
    is_judged(&leader, &node, REFUSAL_NONE, ""); // as long as none is in force
    leader.in_force = 3;
    is_judged(&leader, &node, REFUSAL_NONE, "");
    leader.in_force = 4;
    is_judged(&leader,
              &node,
              REFUSAL_PEER_OLDER,
              "the fleet's format is 4, node n1 reads 2..3: give it a newer version");
    is_judged(&node,
              &leader,
              REFUSAL_PEER_NEWER,
              "the fleet's format is 4, node n1 reads 2..3: give it a newer version");
    leader.in_force = 1;
    is_judged(&leader,
              &node,
              REFUSAL_PEER_NEWER,
              "the fleet's format is 1, node n1 reads 2..3: give it an older version");
    leader.in_force = UINT32_MAX;
    assert_int_equal(hello_judge(&leader, &node).refusal, REFUSAL_PEER_OLDER);
    cli.role = ROLE_CLI; // reads nothing of it
    is_judged(&leader, &cli, REFUSAL_NONE, "");
    is_judged(&cli, &leader, REFUSAL_NONE, "");
}

static void what_is_no_range_of_formats_is_refused(void **state)
{
    static const struct versions hostile[] = {{0, 4}, {5, 4}, {4, 0}, {UINT32_MAX, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        struct hello bad = node;

        bad.format = hostile[i];
        assert_int_equal(hello_judge(&node, &bad).refusal, REFUSAL_NO_RANGE);
        assert_int_equal(hello_judge(&node, &bad).protocol, 0);
    }
}

static void a_refusal_comes_back_as_printable_text(void **state)
{
    struct buffer out = {0};
    char why[16];

    (void)state;
    refusal_put(&out, "no\n\"room\" at all here");
    refusal_get(buffer_bytes(&out), why, sizeof why);
    assert_string_equal(why, "no??room? at al");
    refusal_get(text("\xff"), why, sizeof why);
    assert_string_equal(why, "no reason given");
    buffer_fini(&out);
}

static void a_control_message_comes_back(void **state)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Cancel cancel = RH__CANCEL__INIT;
    struct buffer out = {0};
    Rh__Control *got;

    (void)state;
    control.era = 3;
    control.body_case = RH__CONTROL__BODY_CANCEL;
    control.cancel = &cancel;
    cancel.txn = 57;
    cancel.why = proto_text("timer");
    control_put(&out, &control);
    got = control_get(buffer_bytes(&out));
    assert_non_null(got);
    assert_int_equal(got->era, 3);
    assert_int_equal(got->body_case, RH__CONTROL__BODY_CANCEL);
    assert_int_equal(got->cancel->txn, 57);
    assert_string_equal(got->cancel->why, "timer");
    control_free(got);
    assert_null(control_get(bytes_of(out.data, out.size - 1)));
    assert_null(control_get(text("\xff\xff\xff")));
    buffer_fini(&out);
}

static void a_command_comes_back(void **state)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandAbort abort = RH__COMMAND_ABORT__INIT;
    struct buffer out = {0};
    Rh__Command *got;

    (void)state;
    command.time_us = 5;
    command.body_case = RH__COMMAND__BODY_ABORT;
    command.abort = &abort;
    abort.txn = 58;
    command_put(&out, &command);
    got = command_get(buffer_bytes(&out));
    assert_non_null(got);
    assert_int_equal(got->abort->txn, 58);
    command_free(got);
    assert_null(command_get(bytes_of(out.data, out.size - 1)));
    buffer_fini(&out);
}

static void a_small_message_cannot_unfold_into_much_memory(void **state)
{
    // A poll answer is field 25; each two bytes 0a00 within it are one more
    // state of 40 bytes, so that 4 MB would become over 100 MB.
    enum { STATES = 2 * 1024 * 1024 };
    const uint8_t head[] = {0xca, 0x01, 0x80, 0x80, 0x80, 0x02};
    struct buffer out = {0};

    (void)state;
    buffer_put(&out, head, sizeof head);
    for (size_t i = 0; i < STATES; i++) {
        buffer_put(&out, "\x0a\x00", 2);
    }
    assert_null(control_get(buffer_bytes(&out)));
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_hello_has_these_bytes_and_comes_back),
        cmocka_unit_test(names_are_short_and_of_safe_letters),
        cmocka_unit_test(a_hello_that_could_not_be_ours_is_corrupt),
        cmocka_unit_test(another_cluster_is_refused_in_the_words_of_either_side),
        cmocka_unit_test(another_fleet_is_refused_and_both_say_how_to_join),
        cmocka_unit_test(a_cli_may_look_at_any_cluster_but_not_at_the_wrong_one),
        cmocka_unit_test(the_greatest_protocol_that_both_speak_is_chosen),
        cmocka_unit_test(without_a_common_protocol_both_name_who_must_be_upgraded),
        cmocka_unit_test(what_is_no_range_of_protocols_is_refused),
        cmocka_unit_test(who_does_not_tell_reads_the_first_format),
        cmocka_unit_test(who_does_not_read_the_fleets_format_is_refused_by_either_side),
        cmocka_unit_test(what_is_no_range_of_formats_is_refused),
        cmocka_unit_test(a_refusal_comes_back_as_printable_text),
        cmocka_unit_test(a_control_message_comes_back),
        cmocka_unit_test(a_command_comes_back),
        cmocka_unit_test(a_small_message_cannot_unfold_into_much_memory),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
