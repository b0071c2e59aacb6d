/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames and records on a link: their order, their gathering, a queue that is full.
 */
#include "base/clock.h"
#include "tests/link/link_rig.h"

static bool thousand_back(void)
{
    return sides[1].frames == 1000;
}

/* The other side may have read it before this side is told that it is sent. */
static bool all_is_sent(void)
{
    return link_queued(sides[1].up[0]) == 0;
}

static void frames_arrive_in_order_both_ways(void **state)
{
    struct link *link = start_pair();

    (void)state;
    sides[0].echo = true;
    for (uint64_t i = 0; i < 1000; i++) {
        uint8_t body[200] = {0};
        struct writer w = {.at = body, .left = sizeof body};

        put_u64(&w, i);
        assert_int_equal(link_send(link, FRAME_STATE, bytes_of(body, 8 + i % 192)), ERR_OK);
    }
    assert_true(link_queued(link) > 0);
    until(thousand_back);
    assert_int_equal(sides[0].frames, 1000);
    assert_false(sides[0].disorder);
    assert_false(sides[1].disorder);
    assert_int_equal(sides[0].frame_bytes, sides[1].frame_bytes);
    until(all_is_sent);
}

static bool seven_records(void)
{
    return sides[0].records == 7;
}

static void records_of_one_turn_travel_in_one_frame(void **state)
{
    struct link *link = start_pair();

    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(link_send_record(link, FRAME_REQUEST, text("abc")), ERR_OK);
    }
    assert_int_equal(link_send_record(link, FRAME_ANSWER, text("d")), ERR_OK);
    assert_int_equal(link_send_record(link, FRAME_ANSWER, text("e")), ERR_OK);
    until(seven_records);
    assert_int_equal(sides[0].frames, 2);
    assert_int_equal(sides[0].last_type, FRAME_ANSWER);
    assert_int_equal(sides[0].last_count, 2);
    assert_int_equal(sides[0].last_size, 2);
    assert_memory_equal(sides[0].last, "de", 2);
    assert_int_equal(sides[0].frame_bytes, 17);
}

static bool one_frame_came(void)
{
    return sides[0].frames == 1;
}

static bool two_frames_came(void)
{
    return sides[0].frames == 2;
}

static bool three_frames_came(void)
{
    return sides[0].frames == 3;
}

static void records_wait_at_a_closed_gate_and_nothing_else_does(void **state)
{
    struct link *link = start_pair();

    (void)state;
    links_set_gate(sides[1].links, 1); // That is over.
    assert_int_equal(link_send(link, FRAME_CONTROL, text("c")), ERR_OK);
    until(one_frame_came);
    assert_int_equal(link_send_record(link, FRAME_ANSWER, text("late")), ERR_OK);
    assert_int_equal(link_send(link, FRAME_CONTROL, text("d")), ERR_OK); // It keeps its place.
    run_on(100);
    assert_int_equal(sides[0].frames, 1);
    assert_true(link_queued(link) > 0);
    links_set_gate(sides[1].links, UINT64_MAX);
    until(three_frames_came);
    assert_int_equal(sides[0].records, 3);
    assert_memory_equal(sides[0].last, "d", 1);
    until(all_is_sent);
}

static bool cut_in_the_middle(void)
{
    const size_t left = link_queued(sides[1].up[0]);

    return left > 0 && left < 30000000;
}

static bool big_ones_came(void)
{
    return sides[0].records == 30;
}

static void the_gate_closes_on_what_is_half_out(void **state)
{
    enum { PIECE = 1000000, COUNT = 30 };
    struct link *link = start_pair();
    uint8_t *piece = mem_new(1, PIECE);
    size_t left = 0;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(link_send_record(link, FRAME_STATE, bytes_of(piece, PIECE)), ERR_OK);
    }
    until(cut_in_the_middle);
    links_set_gate(sides[1].links, 1);
    do { // What nng has of it, it may still hand on, at its pace: all that is queued it has not.
        left = link_queued(link);
        run_on(200);
    } while (left != link_queued(link));
    assert_true(left > 0);
    links_set_gate(sides[1].links, UINT64_MAX);
    until(big_ones_came);
    mem_free(piece);
}

/* To seal takes longer than there is time until the gate. */
static void what_is_built_too_late_waits_at_the_gate(void **state)
{
    enum { PIECE = 1000000, COUNT = 30, LEFT_US = 1000 };
    struct link *link = start_pair();
    uint8_t *piece = mem_new(1, PIECE);

    (void)state;
    until(all_is_sent);
    const uint64_t before = links_counts(sides[1].links).bytes_out;
    links_set_gate(sides[1].links, 1);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(link_send_record(link, FRAME_STATE, bytes_of(piece, PIECE)), ERR_OK);
    }
    if (transport->tls) {
        links_set_gate(sides[1].links, clock_boottime_us() + LEFT_US);
        links_flush(sides[1].links);
    }
    assert_int_equal(links_counts(sides[1].links).bytes_out, before);
    run_on(200);
    assert_int_equal(links_counts(sides[1].links).bytes_out, before);
    links_set_gate(sides[1].links, UINT64_MAX);
    until(big_ones_came);
    mem_free(piece);
}

static bool both_big_ones_came(void)
{
    return sides[1].records == 2;
}

static void what_gathers_behind_a_write_that_was_cut_short_follows_by_itself(void **state)
{
    enum { PIECE = 6000000 }; // More than a socket takes at once.
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");
    uint8_t *piece = mem_new(1, PIECE);

    (void)state;
    a->config.ping_ms = b->config.ping_ms = 60000; // No ping must be needed to push it out.
    side_open(a);
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(both_up);
    for (int i = 0; i < 5; i++) {
        b->records = 0;
        assert_int_equal(link_send(a->up[0], FRAME_CONTROL, bytes_of(piece, PIECE)), ERR_OK);
        links_flush(a->links);
        assert_int_equal(link_send(a->up[0], FRAME_CONTROL, bytes_of(piece, PIECE)), ERR_OK);
        links_flush(a->links);
        until(both_big_ones_came);
    }
    mem_free(piece);
}

static bool many_records(void)
{
    return sides[0].records == 70000;
}

static void more_records_than_a_frame_takes_go_in_several(void **state)
{
    struct link *link = start_pair();

    (void)state;
    for (int i = 0; i < 70000; i++) {
        assert_int_equal(link_send_record(link, FRAME_STATE_ACK, text("a")), ERR_OK);
    }
    until(many_records);
    assert_int_equal(sides[0].frames, 2);
    assert_int_equal(sides[0].last_count, 70000 - FRAME_RECORDS_MAX);
}

static const struct request_record pushed = {
    .gateway = 1, .seq = 1, .copy = 1, .id = {(const uint8_t *)"bob", 3}};

static bool thousand_records(void)
{
    return sides[0].records == 1001;
}

static void a_body_that_many_records_have_is_in_a_frame_once(void **state)
{
    static uint8_t body[1000];
    struct link *link = start_pair();
    struct buffer same = {0};

    (void)state;
    request_put_same(&same, &pushed);
    const struct bytes brief = buffer_bytes(&same);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(link_send_common(link, brief, bytes_of(body, sizeof body), 1), ERR_OK);
    }
    // Something else comes between them, then another body.
    assert_int_equal(link_send_record(link, FRAME_REQUEST, text("abc")), ERR_OK);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(link_send_common(link, brief, bytes_of(body, 10), 1 + (uint64_t)i / 250),
                         ERR_OK);
    }
    until(thousand_records);
    assert_int_equal(links_counts(sides[1].links).same, 1000 - 3);
    assert_int_equal(sides[0].frames, 1);
    assert_int_equal(sides[0].frame_bytes, 1000 * brief.size + sizeof body + 20 + 3);
    buffer_fini(&same);
}

static void each_frame_has_the_body_again(void **state)
{
    static uint8_t body[1000];
    struct link *link = start_pair();
    struct buffer same = {0};
    const size_t in_one = (256 * 1024 - FRAME_HEADER_SIZE - sizeof body) / 78;

    (void)state;
    request_put_same(&same, &pushed);
    const struct bytes brief = buffer_bytes(&same);
    assert_int_equal(brief.size, 78);
    for (size_t i = 0; i < in_one + 1; i++) {
        assert_int_equal(link_send_common(link, brief, bytes_of(body, sizeof body), 1), ERR_OK);
    }
    until(two_frames_came);
    assert_int_equal(sides[0].last_count, 1);
    assert_int_equal(sides[0].last_size, brief.size + sizeof body);
    assert_int_equal(links_counts(sides[1].links).same, in_one - 1);
    buffer_fini(&same);
}

static bool all_numbered_came(void)
{
    return sides[0].frames == sides[1].records;
}

static void a_full_queue_is_busy_and_drains_without_loss(void **state)
{
    enum { PIECE = 1024 * 1024, QUEUE = 8 };
    struct side *a = side_start(0, ROLE_NODE, "n2");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");
    uint8_t *body = mem_new(1, PIECE);
    enum err e = ERR_OK;

    (void)state;
    b->config.queue_size_max = (size_t)QUEUE * PIECE;
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    until(both_up);
    // Side 0 is not polled, so it does not read: what the kernel takes is bounded.
    for (b->records = 0; b->records < 64; b->records++) {
        struct writer w = {.at = body, .left = PIECE};

        put_u64(&w, b->records);
        e = link_send(link, FRAME_STATE, bytes_of(body, PIECE));
        if (e != ERR_OK) {
            break;
        }
        poll_side(b);
    }
    assert_int_equal(e, ERR_BUSY);
    assert_int_equal(links_counts(b->links).busy, 1);
    assert_true(link_queued(link) <= (size_t)QUEUE * PIECE);
    assert_true(link_is_up(link));
    until(all_numbered_came);
    assert_false(a->disorder);
    assert_int_equal(link_send(link, FRAME_CONTROL, bytes_of(body, 4)), ERR_OK);
    mem_free(body);
}

static void only_a_coordinator_may_send_what_is_huge(void **state)
{
    enum { HUGE_SIZE = 20 * 1024 * 1024 };
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");
    uint8_t *body = mem_new(1, HUGE_SIZE);

    (void)state;
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    until(both_up);
    assert_int_equal(link_send(link, FRAME_CONTROL, bytes_of(body, (size_t)4 * 1024 * 1024)),
                     ERR_TOO_BIG);
    assert_int_equal(link_send(sides[0].up[0], FRAME_CONTROL, bytes_of(body, FRAME_SIZE_MAX)),
                     ERR_TOO_BIG);
    assert_int_equal(link_send(sides[0].up[0], FRAME_CONTROL, bytes_of(body, HUGE_SIZE)), ERR_OK);
    until(one_frame);
    assert_int_equal(sides[1].frame_bytes, HUGE_SIZE);
    mem_free(body);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        LINK_CASE(frames_arrive_in_order_both_ways),
        LINK_CASE(records_of_one_turn_travel_in_one_frame),
        LINK_CASE(records_wait_at_a_closed_gate_and_nothing_else_does),
        LINK_CASE(the_gate_closes_on_what_is_half_out),
        LINK_CASE(what_is_built_too_late_waits_at_the_gate),
        LINK_CASE(what_gathers_behind_a_write_that_was_cut_short_follows_by_itself),
        LINK_CASE(more_records_than_a_frame_takes_go_in_several),
        LINK_CASE(a_body_that_many_records_have_is_in_a_frame_once),
        LINK_CASE(each_frame_has_the_body_again),
        LINK_CASE(a_full_queue_is_busy_and_drains_without_loss),
        LINK_CASE(only_a_coordinator_may_send_what_is_huge),
    };

    return run_on_transports(cases, sizeof cases / sizeof cases[0]);
}
