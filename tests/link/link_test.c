/* SPDX-License-Identifier: Apache-2.0
 *
 * Links come up, go down, are dialled again, dropped and forgotten.
 */
#include "tests/link/link_rig.h"

#include <spawn.h>
#include <sys/wait.h>

static void a_hello_brings_a_link_up_on_both_sides(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    strcpy(b->config.self.address, "127.0.0.1:9");
    b->config.self.identity = 42;
    side_open(b);
    links_set_incarnation(b->links, 77);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    assert_false(link_is_up(link));
    assert_int_equal(link_send(link, FRAME_CONTROL, text("x")), ERR_STOPPED);
    until(both_up);

    assert_ptr_equal(b->up[0], link);
    assert_true(link_dialled(link));
    assert_false(link_dialled(a->up[0]));
    assert_string_equal(link_address(link), bound);
    assert_string_equal(link_peer(link)->name, "1");
    assert_int_equal(link_peer(link)->role, ROLE_COORDINATOR);
    assert_string_equal(link_peer(link)->product, "ringhold " RINGHOLD_VERSION);
    assert_string_equal(link_peer(a->up[0])->name, "n1");
    assert_string_equal(link_peer(a->up[0])->address, "127.0.0.1:9");
    assert_int_equal(link_peer(a->up[0])->incarnation, 77);
    assert_int_equal(link_peer(a->up[0])->identity, 42);
    assert_null(link_user(link));
    link_set_user(link, a);
    assert_ptr_equal(link_user(link), a);
    assert_int_equal(a->ups, 1);
    assert_int_equal(b->ups, 1);
}

static bool who_dialled_knows_the_incarnation(void)
{
    const struct side *dialler = &sides[1];

    return both_up() && link_is_up(dialler->up[0]) &&
           link_peer(dialler->up[0])->incarnation == sides[0].reborn_on_hello;
}

/* A node registers while a gateway's hello and its own cross: after the restore of a backup which
 * did not know it, gateways dial it in that very moment. */
static void a_hello_of_the_incarnation_before_is_said_again(void **state)
{
    struct side *node = side_start(0, ROLE_NODE, "n1");
    struct side *gateway = side_start(1, ROLE_GATEWAY, "g1");

    (void)state;
    node->reborn_on_hello = 78;
    assert_int_equal(links_listen(node->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    (void)links_dial(gateway->links, bound);
    until(who_dialled_knows_the_incarnation);
}

static bool unreachable_is_told(void)
{
    return lines_with("unreachable") > 0;
}

static void a_link_comes_back_when_the_listener_does(void **state)
{
    struct link *link = start_pair();
    struct side *a = &sides[0];

    (void)state;
    links_close(a->links);
    a->links = NULL;
    until(second_down);
    assert_false(link_is_up(link));
    assert_int_equal(sides[1].downs, 1);
    until(unreachable_is_told);
    // This is less than a dial may take. A dial that is given up is told with another reason.
    run_on(1500);
    assert_int_equal(lines_with("unreachable"), 1);
    side_start(0, ROLE_COORDINATOR, "1");
    assert_int_equal(links_listen(a->links, bound, NULL, 0), ERR_OK);
    until(second_up);
    assert_ptr_equal(sides[1].up[0], link);
    assert_int_equal(sides[1].ups, 2);
    until(both_up);
}

static void a_dropped_link_goes_down_once_and_is_dialled_again(void **state)
{
    struct link *link = start_pair();

    (void)state;
    link_drop(link, "dropped by the test");
    assert_false(link_is_up(link));
    assert_int_equal(link_send(link, FRAME_CONTROL, text("x")), ERR_STOPPED);
    assert_int_equal(sides[1].downs, 0);
    until(second_down);
    assert_string_equal(sides[1].down_reason, "dropped by the test");
    until(first_down);
    until(both_up);
    assert_int_equal(sides[1].downs, 1);
    assert_int_equal(sides[0].downs, 1);
}

static void a_link_may_be_dropped_while_its_frames_are_delivered(void **state)
{
    struct link *link = start_pair();

    (void)state;
    sides[0].drop_on_frame = true;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(link_send(link, FRAME_STATE, text("x")), ERR_OK);
    }
    until(first_down);
    assert_int_equal(sides[0].frames, 1);
    sides[0].drop_on_frame = false;
    until(both_up);
}

static void a_link_may_be_forgotten_at_any_moment(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");

    (void)state;
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    links_forget(b->links, links_dial(b->links, bound)); // while it dials
    struct link *link = links_dial(b->links, bound);
    until(both_up);
    links_forget(b->links, link);
    until(first_down);
    b->up_count = 0;
    a->forget_on_up = true; // on the accepting side, within the callback
    link = links_dial(b->links, bound);
    until(second_down);
    links_forget(b->links, link);
    assert_int_equal(b->downs, 1);
}

static pid_t child;

static bool flooded(void)
{
    return sides[0].frames > 100;
}

static void a_killed_peer_is_down_and_nothing_else_is_hurt(void **state)
{
    char self[] = "/proc/self/exe";
    char word[] = "peer";
    char which[] = {(char)('0' + (transport - transports)), '\0'};
    char *argv[] = {self, word, bound, which, NULL};
    char *envp[] = {NULL};

    (void)state;
    plain_only();
    struct link *link = start_pair();
    sides[0].echo = true;
    for (int round = 0; round < 3; round++) {
        sides[0].frames = 0;
        sides[0].downs = 0;
        assert_int_equal(posix_spawn(&child, self, NULL, NULL, argv, envp), 0);
        until(flooded);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        until(first_down);
    }
    sides[0].frames = sides[1].frames = 0;
    assert_int_equal(link_send(link, FRAME_STATE, text("still here")), ERR_OK);
    until(one_frame);
    assert_int_equal(sides[1].downs, 0);
}

static void addresses_in_use_or_wrong_are_errors(void **state)
{
    char other[160];

    (void)state;
    start_pair();
    assert_int_equal(links_listen(sides[1].links, bound, other, sizeof other), ERR_CONFLICT);
    assert_int_equal(links_listen(sides[1].links, "127.0.0.1", other, sizeof other), ERR_INVALID);
    assert_int_equal(links_listen(sides[1].links, "x:99999", other, sizeof other), ERR_INVALID);
    assert_int_equal(links_listen(sides[1].links, "1.2.3.4:0", other, sizeof other), ERR_INVALID);
    assert_null(links_dial(sides[1].links, "127.0.0.1"));
    assert_null(links_dial(sides[1].links, "127.0.0.1:0"));
    assert_null(links_dial(sides[1].links, "http://127.0.0.1:1"));
}

static void a_process_may_dial_itself(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");

    (void)state;
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(a->links, bound));
    until(second_of_first_up);
}

static void ipv6_addresses_are_in_brackets(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");
    const int probe = socket(AF_INET6, SOCK_STREAM, 0);
    const struct sockaddr_in6 loopback = {.sin6_family = AF_INET6,
                                          .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    (void)state;
    const bool have =
        probe >= 0 && bind(probe, (const struct sockaddr *)&loopback, sizeof loopback) == 0;
    (void)close(probe);
    if (!have) {
        skip(); // A machine without IPv6.
    }
    assert_int_equal(links_listen(a->links, "[::1]:0", bound, sizeof bound), ERR_OK);
    assert_int_equal(strncmp(bound, "[::1]:", 6), 0);
    assert_non_null(links_dial(b->links, bound));
    until(both_up);
}

static bool two_peers_up(void)
{
    return sides[0].up_count == 2;
}

static bool first_hears_a_frame(void)
{
    return sides[0].frames == 1;
}

/* A side whose peers are to be pinged so seldom that no real time matters. */
static struct side *patient(size_t index, const char *name)
{
    struct side *side = side_prepare(index, ROLE_NODE, name);

    side->config.ping_ms = 100 * 1000;
    side->config.silence_ms = 500 * 1000;
    side_open(side);
    return side;
}

/* Who has nothing to do but to ping wakes once for peers that were heard at different moments. */
static void peers_that_are_to_be_pinged_soon_are_pinged_at_one_moment(void **state)
{
    struct side *a = patient(0, "n1");
    const uint64_t begin_us = now_us();
    const uint64_t ping_us = UINT64_C(100000000);

    (void)state;
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_int_equal(links_rest_until_us(a->links), UINT64_MAX);
    assert_non_null(links_dial(patient(1, "n2")->links, bound));
    struct link *second = links_dial(patient(2, "n3")->links, bound);
    assert_int_equal(links_rest_until_us(sides[2].links), 0); // it is being made
    until(two_peers_up);
    run_on(200); // all that was said until now is heard
    const uint64_t heard_us = now_us();
    skipped_us += ping_us / 8;
    assert_int_equal(link_send(second, FRAME_STATE, text("x")), ERR_OK);
    until(first_hears_a_frame);
    run_on(100); // a frame counts as heard when timers run: at the next step of theirs
    const uint64_t due_us = links_rest_until_us(a->links);
    assert_in_range(due_us, begin_us + ping_us, heard_us + ping_us);
    skipped_us += due_us - now_us();
    poll_side(a);
    assert_in_range(links_rest_until_us(a->links), due_us + ping_us, now_us() + ping_us);
}

/* The child of a_killed_peer…: floods whoever listens at `address` until it is killed. */
static _Noreturn void flood(const char *address)
{
    uint8_t body[5000] = {0};

    side_start(2, ROLE_NODE, "child");
    struct link *link = links_dial(sides[2].links, address);
    for (;;) {
        poll_side(&sides[2]);
        while (link_queued(link) < 1000000 &&
               link_send(link, FRAME_STATE, bytes_of(body, sizeof body)) == ERR_OK) {
        }
        links_flush(sides[2].links);
        await_wake();
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        LINK_CASE(a_hello_brings_a_link_up_on_both_sides),
        LINK_CASE(a_hello_of_the_incarnation_before_is_said_again),
        LINK_CASE(a_link_comes_back_when_the_listener_does),
        LINK_CASE(a_dropped_link_goes_down_once_and_is_dialled_again),
        LINK_CASE(a_link_may_be_dropped_while_its_frames_are_delivered),
        LINK_CASE(a_link_may_be_forgotten_at_any_moment),
        LINK_CASE(a_killed_peer_is_down_and_nothing_else_is_hurt),
        LINK_CASE(addresses_in_use_or_wrong_are_errors),
        LINK_CASE(a_process_may_dial_itself),
        LINK_CASE(ipv6_addresses_are_in_brackets),
        LINK_CASE(peers_that_are_to_be_pinged_soon_are_pinged_at_one_moment),
    };

    if (argc == 4 && strcmp(argv[1], "peer") == 0) {
        transport = &transports[argv[3][0] - '0'];
        open_wake_pipe();
        flood(argv[2]);
    }
    return run_on_transports(cases, sizeof cases / sizeof cases[0]);
}
