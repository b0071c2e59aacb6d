/* SPDX-License-Identifier: Apache-2.0
 *
 * Who links with whom: clusters, versions, owners' reasons, certificates.
 */
#include "tests/link/link_rig.h"

static void another_cluster_is_refused_and_both_sides_log_why_once(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    plain_only();
    strcpy(b->config.self.cluster, "prod");
    b->config.retry_max_ms = 20;
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(two_refusals);
    assert_string_equal(b->refused, "cluster is 'test' there, 'prod' here");
    assert_int_equal(lines_with("reason=\"cluster is 'test' there, 'prod' here\""), 1);
    assert_int_equal(lines_with("reason=\"cluster is 'prod' there, 'test' here\""), 1);
    assert_int_equal(lines_with("peer=n1 role=node"), 1);
    assert_int_equal(a->ups + b->ups + a->downs + b->downs, 0);
}

static bool one_fleet_refusal(void)
{
    return sides[1].refusals > 0;
}

static void who_is_of_another_fleet_is_parted_when_it_is_known(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");
    const uint64_t before = refusals_of(REFUSAL_FLEET);

    (void)state;
    b->config.self.fleet = (struct fleet_id){1, 2};
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(both_up);
    links_set_fleet(a->links, (struct fleet_id){1, 2});
    assert_true(link_is_up(a->up[0])); // its own
    links_set_fleet(a->links, (struct fleet_id){1, 3});
    assert_false(link_is_up(a->up[0]));
    until(one_fleet_refusal);
    assert_non_null(strstr(b->refused, ": to join, start node n1 in an empty folder"));
    assert_true(refusals_of(REFUSAL_FLEET) > before + 1); // at once, and when it came again
    assert_int_equal(a->ups, 1);
}

static bool greeted_again(void)
{
    return sides[0].ups == 2 && sides[1].ups == 2 && both_up();
}

static void a_coordinator_greets_again_who_knows_no_fleet_yet(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_GATEWAY, "g1");

    (void)state;
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(both_up);
    assert_false(fleet_id_known(link_peer(b->up[0])->fleet));
    links_set_fleet(a->links, (struct fleet_id){1, 2});
    until(greeted_again);
    assert_int_equal(link_peer(b->up[0])->fleet.low, 2);
    links_set_fleet(b->links, (struct fleet_id){1, 2}); // nothing to be said again
    assert_true(link_is_up(b->up[0]));
    links_set_fleet(b->links, (struct fleet_id){1, 2});
    assert_int_equal(a->downs + b->downs, 2);
}

static void no_protocol_in_common_is_refused_and_counted(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");
    const uint64_t newer = refusals_of(REFUSAL_PEER_NEWER);
    const uint64_t older = refusals_of(REFUSAL_PEER_OLDER);

    (void)state;
    b->config.self.protocol = (struct versions){9, 9};
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(one_side_refused_and_the_other_knows);
    assert_int_equal(lines_with("protocol is 9..9 there, 4.."), 1);
    assert_int_equal(lines_with("there, 9..9 here: upgrade coordinator 1"), 1);
    assert_true(refusals_of(REFUSAL_PEER_NEWER) > newer);
    assert_true(refusals_of(REFUSAL_PEER_OLDER) > older);
}

static void a_link_of_two_versions_speaks_the_older_and_the_log_says_so(void **state)
{
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    a->config.self.protocol = (struct versions){4, 6};
    b->config.self.protocol = (struct versions){3, 4};
    side_open(a);
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    assert_non_null(link);
    until(both_up);
    assert_int_equal(link_protocol(link), 4);
    assert_int_equal(link_protocol(a->up[0]), 4);
    assert_int_equal(lines_with("link mixed peer=n1 role=node"), 1);
    assert_int_equal(lines_with("link mixed peer=1 role=coordinator"), 1);
}

static bool one_record_came(void)
{
    return sides[0].records == 1;
}

static void two_of_the_next_protocol_speak_that(void **state)
{
    struct side *a = side_prepare(0, ROLE_NODE, "n2");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    a->config.self.protocol.newest = b->config.self.protocol.newest = LINK_PROTOCOL_TODAY + 1;
    side_open(a);
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    assert_non_null(link);
    until(both_up);
    assert_int_equal(link_protocol(link), LINK_PROTOCOL_TODAY + 1);
    assert_int_equal(link_send_record(link, FRAME_ANSWER, text("marked")), ERR_OK);
    until(one_record_came);
}

static void one_that_welcomes_another_protocol_than_was_chosen_is_cut(void **state)
{
    const uint8_t next[4] = {LINK_PROTOCOL_TODAY + 1};
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    struct buffer hello = {0};

    (void)state;
    plain_only();
    a->config.self.protocol.newest = LINK_PROTOCOL_TODAY + 1;
    side_open(a);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    plain_hello(&hello, ROLE_NODE);
    hello.size -= FRAME_HEADER_SIZE; // its welcome
    frame_put(&hello, FRAME_WELCOME, 1, bytes_of(next, sizeof next));
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&hello));
    until(plain_closed);
    assert_int_equal(lines_with("a welcome to another protocol than the chosen one"), 1);
    assert_int_equal(a->ups, 0);
    plain_end();
    buffer_fini(&hello);
}

static void the_owner_may_refuse_with_a_reason_of_its_own(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");

    (void)state;
    a->refuse = "name n1 is taken";
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(refused_once);
    assert_string_equal(b->refused, "name n1 is taken");
    assert_int_equal(lines_with("by=us reason=\"name n1 is taken\""), 1);
    assert_int_equal(lines_with("by=peer reason=\"name n1 is taken\""), 1);
    // It may be accepted later: the dialling side goes on trying.
    a->refuse = NULL;
    run_on(1500);
    until(both_up);
}

static void the_dialling_side_may_refuse_too(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");

    (void)state;
    b->refuse = "not that coordinator";
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(one_side_refused_and_the_other_knows);
    assert_int_equal(lines_with("by=us reason=\"not that coordinator\""), 1);
    assert_int_equal(lines_with("by=peer reason=\"not that coordinator\""), 1);
    assert_int_equal(a->ups, 0);
}

static void a_self_that_no_peer_would_take_is_refused_at_open(void **state)
{
    struct side *a = side_prepare(0, ROLE_NODE, "not a name");

    (void)state;
    assert_int_equal(links_open(&a->links, &a->config, &a->events), ERR_INVALID);
    a->links = NULL;
}

static uint64_t refused_before;

static bool first_saw_plaintext(void)
{
    return refusals_of(REFUSAL_PLAINTEXT) > refused_before && plain_closed();
}

static void who_speaks_no_tls_is_refused_counted_and_logged_once(void **state)
{
    struct buffer bytes = {0};

    (void)state;
    if (!transport->tls) {
        skip();
    }
    start_pair();
    for (int i = 0; i < 2; i++) {
        refused_before = refusals_of(REFUSAL_PLAINTEXT);
        buffer_clear(&bytes);
        plain_hello(&bytes, ROLE_NODE);
        plain_fd = plain_connect();
        plain_send(plain_fd, buffer_bytes(&bytes));
        until(first_saw_plaintext);
        assert_int_equal(refusals_of(REFUSAL_PLAINTEXT), refused_before + 1);
        plain_end();
    }
    assert_int_equal(lines_with("refusal=plaintext reason=\"the peer does not use TLS\""), 1);
    assert_int_equal(sides[0].up_count, 1); // the good one
    buffer_fini(&bytes);
}

static bool second_saw_a_cluster(void)
{
    return refusals_of(REFUSAL_CLUSTER) > refused_before + 2;
}

static void a_certificate_of_another_cluster_is_refused(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    if (!transport->tls) {
        skip();
    }
    refused_before = refusals_of(REFUSAL_CLUSTER);
    strcpy(b->config.self.cluster, "prod");
    b->config.retry_max_ms = 20;
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(second_saw_a_cluster);
    assert_int_equal(lines_with("refusal=cluster"), 2); // each side once
    assert_int_equal(a->ups + b->ups, 0);
}

static void new_certificates_are_for_new_connections(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");

    (void)state;
    if (!transport->tls) {
        skip();
    }
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    until(both_up);
    side_certify(a); // other keys in the same files
    links_reload(a->links);
    assert_int_equal(chmod(b->key, 0644), 0);
    links_reload(b->links);
    assert_int_equal(lines_with("certificate_read"), 1);
    assert_int_equal(lines_with("others may read or write the file"), 1);
    assert_true(link_is_up(link));
    link_drop(link, "again");
    until(first_down);
    until(both_up);
    assert_int_equal(a->ups, 2);
}

static void a_certificate_of_somebody_else_is_refused_at_open(void **state)
{
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");

    (void)state;
    if (!transport->tls) {
        skip();
    }
    side_certify(a);
    strcpy(a->config.self.name, "2");
    assert_int_equal(links_open(&a->links, &a->config, &a->events), ERR_INVALID);
    assert_int_equal(
        lines_with(
            "the certificate is for ringhold://test/coordinator/1, but this is coordinator 2"),
        1);
}

static bool third_refused(void)
{
    return sides[1].refusals >= 1 && sides[0].up_count == 3;
}

/* One name has no more links than a process may have; another one has room. */
static void links_of_one_name_are_bounded(void **state)
{
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    const uint64_t before = refusals_of(REFUSAL_TOO_MANY);

    (void)state;
    a->config.same_max = 2;
    side_open(a);
    struct side *b = side_start(1, ROLE_NODE, "n1");
    struct side *c = side_start(2, ROLE_NODE, "n2");
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    for (int i = 0; i < 3; i++) {
        assert_non_null(links_dial(b->links, bound));
    }
    assert_non_null(links_dial(c->links, bound));
    until(third_refused);
    assert_int_equal(b->ups, 2);
    assert_int_equal(c->ups, 1);
    assert_true(refusals_of(REFUSAL_TOO_MANY) > before);
    assert_string_equal(b->refused, "the peer has as many links here as one process may have");
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        LINK_CASE(another_cluster_is_refused_and_both_sides_log_why_once),
        LINK_CASE(who_is_of_another_fleet_is_parted_when_it_is_known),
        LINK_CASE(a_coordinator_greets_again_who_knows_no_fleet_yet),
        LINK_CASE(no_protocol_in_common_is_refused_and_counted),
        LINK_CASE(a_link_of_two_versions_speaks_the_older_and_the_log_says_so),
        LINK_CASE(two_of_the_next_protocol_speak_that),
        LINK_CASE(one_that_welcomes_another_protocol_than_was_chosen_is_cut),
        LINK_CASE(the_owner_may_refuse_with_a_reason_of_its_own),
        LINK_CASE(the_dialling_side_may_refuse_too),
        LINK_CASE(a_self_that_no_peer_would_take_is_refused_at_open),
        LINK_CASE(who_speaks_no_tls_is_refused_counted_and_logged_once),
        LINK_CASE(a_certificate_of_another_cluster_is_refused),
        LINK_CASE(new_certificates_are_for_new_connections),
        LINK_CASE(a_certificate_of_somebody_else_is_refused_at_open),
        LINK_CASE(links_of_one_name_are_bounded),
    };

    return run_on_transports(cases, sizeof cases / sizeof cases[0]);
}
