/* SPDX-License-Identifier: Apache-2.0
 *
 * Peers without a link layer: bad bytes, silence, floods of connections.
 */
#include "tests/link/link_rig.h"

static void what_is_not_ours_is_cut_off_with_one_line(void **state)
{
    const struct {
        struct bytes bytes;
        const char *line;
    } strangers[] = {
        {text("GET / HTTP/1.1\r\n\r\n"), "not a ringhold link: no frame\" bytes=\"GET / HTTP/1.1"},
        {text("*1\r\n$4\r\nPING\r\n"), "bytes=\"*1\\x0d\\x0a$4"},
        {bytes_of("\x16\x03\x01\x02\0\1\0", 7), "bytes=\"\\x16\\x03\\x01\\x02"},
        {bytes_of("\x08\0\0\0\x04\0\1\0", 8),
         "not a ringhold link: the first message is not a hello"},
        {bytes_of("\x08\0\0\0\x01\0\1\0", 8), "not a ringhold link: no valid hello"},
        {bytes_of("\x08\0\0\0\x02\0\1\0", 8), "not a ringhold link: welcome before hello"},
        {bytes_of("\1\0\1\0\1", 5), "not a ringhold link: no frame"}, // over 64 KiB
    };

    (void)state;
    plain_only();
    struct link *link = start_pair();
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        line_count = 0;
        plain_fd = plain_connect();
        plain_send(plain_fd, strangers[i].bytes);
        until(plain_closed);
        assert_int_equal(line_count, 1);
        assert_int_equal(lines_with(strangers[i].line), 1);
        assert_int_equal(links_counts(sides[0].links).garbage, i + 1);
        plain_end();
    }
    assert_true(link_is_up(link));
    assert_int_equal(sides[0].downs, 0);
}

static void a_broken_frame_on_a_good_link_ends_it(void **state)
{
    const struct bytes broken[] = {
        bytes_of("\1\0\x40\0", 4),           // one byte over 4 MiB
        bytes_of("\x08\0\0\0\x08\1\1\0", 8), // flags
        bytes_of("\x08\0\0\0\x02\0\1\0", 8), // a second welcome
        bytes_of("\x08\0\0\0\x10\0\0\0", 8), // no records
        bytes_of("\x08\0\0\0\x10\1\1\0", 8), // records of the next protocol
        bytes_of("\xff\xff\xff\xff\x08", 5), //
    };

    (void)state;
    plain_only();
    struct link *link = start_pair();
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct buffer hello = {0};

        sides[0].downs = 0;
        line_count = 0;
        plain_hello(&hello, ROLE_NODE);
        plain_fd = plain_connect();
        plain_send(plain_fd, buffer_bytes(&hello));
        plain_send(plain_fd, broken[i]);
        until(plain_closed);
        until(first_down);
        assert_int_equal(lines_with("broken frame"), 1);
        plain_end();
        buffer_fini(&hello);
    }
    assert_true(link_is_up(link));
}

static void a_hello_may_come_byte_by_byte(void **state)
{
    struct buffer bytes = {0};

    (void)state;
    plain_only();
    start_pair();
    plain_hello(&bytes, ROLE_GATEWAY);
    plain_fd = plain_connect();
    for (size_t i = 0; i < bytes.size; i++) {
        plain_send(plain_fd, bytes_of(bytes.data + i, 1));
        poll_side(&sides[0]);
    }
    until(second_of_first_up);
    until(plain_got_something);
    plain_end();
    until(first_down);
    buffer_fini(&bytes);
}

static void a_frame_cut_short_is_just_a_lost_link(void **state)
{
    struct buffer bytes = {0};

    (void)state;
    plain_only();
    struct link *link = start_pair();
    plain_hello(&bytes, ROLE_NODE);
    buffer_put(&bytes, "\x20\0\0\0\x08\0\1\0half", 12);
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&bytes));
    until(second_of_first_up);
    plain_end();
    until(first_down);
    assert_int_equal(sides[0].frames, 0);
    assert_int_equal(links_counts(sides[0].links).garbage, 0);
    assert_true(link_is_up(link));
    buffer_fini(&bytes);
}

static void who_says_nothing_is_cut_off(void **state)
{
    (void)state;
    struct link *link = start_pair();
    plain_fd = plain_connect();
    run_on(2000); // And what the machine takes for it.
    assert_false(plain_closed());
    run_on(1200);
    until(plain_closed);
    assert_int_equal(links_counts(sides[0].links).silent, 1);
    assert_true(link_is_up(link));
    plain_end();
}

static bool plain_was_pinged(void)
{
    (void)plain_closed();
    for (size_t at = 0; at < plain_in.size;) {
        struct frame frame;
        size_t size;

        if (frame_decode(
                bytes_of(plain_in.data + at, plain_in.size - at), FRAME_SIZE_MAX, &frame, &size) !=
            ERR_OK) {
            return false; // the rest of it is still to come
        }
        if (frame.type == FRAME_PING) {
            return true;
        }
        at += size;
    }
    return false;
}

static void who_falls_silent_is_pinged_and_then_dropped(void **state)
{
    struct buffer hello = {0};

    (void)state;
    plain_only();
    struct link *link = start_pair();
    plain_hello(&hello, ROLE_NODE);
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&hello));
    until(second_of_first_up);
    run_on(1500);
    until(plain_was_pinged);
    run_on(4000);
    until(plain_closed);
    until(first_down);
    assert_string_equal(sides[0].down_reason, "the peer sends nothing");
    // The other link was as idle, but pings were answered.
    assert_true(link_is_up(link));
    assert_int_equal(sides[1].downs, 0);
    plain_end();
    buffer_fini(&hello);
}

static bool one_frame_is_here(void)
{
    return sides[0].frames == 1;
}

/* A frame that never ends, and no pong: whatever the peer is, it is no process of ours at work. */
static void who_sends_a_byte_a_second_is_pinged_and_then_dropped(void **state)
{
    struct buffer hello = {0};

    (void)state;
    plain_only();
    struct link *link = start_pair();
    plain_hello(&hello, ROLE_NODE);
    buffer_put(&hello, "\0\0\1\0\x08\0\1\0", 8);
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&hello));
    until(second_of_first_up);
    for (int i = 0; i < 3; i++) {
        plain_send(plain_fd, bytes_of("x", 1));
        run_on(1000);
    }
    until(plain_was_pinged);
    assert_int_equal(sides[0].downs, 0);
    for (int i = 0; i < 5 && sides[0].downs == 0; i++) {
        plain_send(plain_fd, bytes_of("x", 1));
        run_on(1000);
    }
    assert_int_equal(sides[0].downs, 1);
    assert_string_equal(sides[0].down_reason, "the peer sends nothing");
    assert_true(link_is_up(link));
    plain_end();
    buffer_fini(&hello);
}

/* Nor can a pong come before the end of a large one. */
static void a_large_frame_may_take_its_time(void **state)
{
    enum { PIECE = 16 * 1024, PIECES = 4 };
    static const uint8_t piece[PIECE];
    struct buffer hello = {0};

    (void)state;
    plain_only();
    start_pair();
    plain_hello(&hello, ROLE_NODE);
    buffer_put(&hello, "\x08\0\1\0\x08\0\1\0", 8);
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&hello));
    until(second_of_first_up);
    for (int i = 0; i < PIECES; i++) {
        run_on(2500);
        plain_send(plain_fd, bytes_of(piece, PIECE));
    }
    until(one_frame_is_here);
    assert_int_equal(sides[0].downs, 0);
    plain_end();
    until(first_down);
    buffer_fini(&hello);
}

static void who_never_reads_is_dropped_with_all_that_waits_for_it(void **state)
{
    enum { PIECE = 1024 * 1024 };
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    struct buffer hello = {0};

    (void)state;
    plain_only();
    uint8_t *body = mem_new(1, PIECE);
    a->config.queue_size_max = (size_t)4 * PIECE;
    side_open(a);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    files_wanted = open_files();
    plain_hello(&hello, ROLE_NODE);
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&hello));
    until(first_of_first_up);
    while (link_send(a->up[0], FRAME_RAFT, bytes_of(body, PIECE)) == ERR_OK) {
        poll_side(a);
    }
    // Pings that are never read earn no pongs beyond the same bound.
    for (int i = 0; i < 1000; i++) {
        plain_send(plain_fd, bytes_of("\x08\0\0\0\x04\0\1\0", 8));
    }
    run_on(200);
    assert_true(link_queued(a->up[0]) <= (size_t)4 * PIECE + FRAME_HEADER_SIZE);
    run_on(6000);
    until(first_down);
    assert_string_equal(a->down_reason, "the peer sends nothing");
    plain_end();
    until(files_are_closed);
    mem_free(body);
    buffer_fini(&hello);
}

static void our_own_short_sleep_is_no_silence_of_the_peer(void **state)
{
    (void)state;
    struct link *link = start_pair();
    skipped_us += 4000000;
    poll_side(&sides[0]);
    poll_side(&sides[1]);
    run_on(200);
    assert_true(link_is_up(link));
    assert_int_equal(sides[0].downs + sides[1].downs, 0);
}

static bool dialled_again(void)
{
    return sides[0].downs == 1 && sides[1].downs == 1 && sides[0].up_count == 1 &&
           sides[1].up_count == 1;
}

static void what_came_while_we_stood_still_goes_with_its_link(void **state)
{
    (void)state;
    struct link *link = start_pair();
    assert_int_equal(link_send(link, FRAME_CONTROL, bytes_of("old", 3)), ERR_OK);
    poll_side(&sides[1]); // It is in the kernel, or with nng, now.
    skipped_us += 60000000;
    until(dialled_again);
    assert_int_equal(links_counts(sides[0].links).stale, 1);
    assert_int_equal(lines_with("stood_still"), 2); // by each side
    assert_int_equal(link_send(sides[1].up[0], FRAME_CONTROL, bytes_of("new", 3)), ERR_OK);
    until(one_frame_is_here);
    assert_memory_equal(sides[0].last, "new", 3);
}

static uint64_t accepted_wanted;

static bool all_accepted(void)
{
    return links_counts(sides[0].links).accepted >= accepted_wanted;
}

static void a_flood_of_connections_does_not_stop_the_listener(void **state)
{
    (void)state;
    side_start(0, ROLE_COORDINATOR, "1");
    side_start(1, ROLE_NODE, "n1");
    assert_int_equal(links_listen(sides[0].links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    files_wanted = open_files();
    for (accepted_wanted = 50; accepted_wanted <= 200; accepted_wanted += 50) {
        // Gone before they are accepted, half of them with a reset; and no more
        // at a time than nng's backlog of 128 takes.
        for (int i = 0; i < 50; i++) {
            const struct linger reset = {.l_onoff = i % 2};
            const int fd = plain_connect();

            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
            (void)close(fd);
        }
        until(all_accepted);
    }
    until(files_are_closed);
    assert_non_null(links_dial(sides[1].links, bound));
    until(both_up);
}

static void strangers_cannot_use_up_all_connections(void **state)
{
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    int silent[4];

    (void)state;
    a->config.connections_max = 2;
    side_open(a);
    side_start(1, ROLE_NODE, "n1");
    side_start(2, ROLE_NODE, "n2");
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    for (int i = 0; i < 4; i++) {
        silent[i] = plain_connect();
    }
    assert_non_null(links_dial(sides[1].links, bound));
    assert_non_null(links_dial(sides[2].links, bound));
    until(second_of_first_up);
    assert_true(links_counts(a->links).turned_away >= 4);
    // Both places are taken by links that are up: now the newcomer must go.
    line_count = 0;
    plain_fd = plain_connect();
    until(plain_closed);
    assert_int_equal(lines_with("connections_max=2"), 1);
    assert_int_equal(a->downs, 0);
    plain_end();
    for (int i = 0; i < 4; i++) {
        (void)close(silent[i]);
    }
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        LINK_CASE(what_is_not_ours_is_cut_off_with_one_line),
        LINK_CASE(a_broken_frame_on_a_good_link_ends_it),
        LINK_CASE(a_hello_may_come_byte_by_byte),
        LINK_CASE(a_frame_cut_short_is_just_a_lost_link),
        LINK_CASE(who_says_nothing_is_cut_off),
        LINK_CASE(who_falls_silent_is_pinged_and_then_dropped),
        LINK_CASE(who_sends_a_byte_a_second_is_pinged_and_then_dropped),
        LINK_CASE(a_large_frame_may_take_its_time),
        LINK_CASE(who_never_reads_is_dropped_with_all_that_waits_for_it),
        LINK_CASE(our_own_short_sleep_is_no_silence_of_the_peer),
        LINK_CASE(what_came_while_we_stood_still_goes_with_its_link),
        LINK_CASE(a_flood_of_connections_does_not_stop_the_listener),
        LINK_CASE(strangers_cannot_use_up_all_connections),
    };

    return run_on_transports(cases, sizeof cases / sizeof cases[0]);
}
