/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that a link takes from where its owner keeps them: whole, in order, behind the link's own
 * frames, and not behind its gate.
 */
#include "stream/sendlog.h"
#include "tests/link/link_rig.h"

enum { FILLER = 1000, SPAN = 64 * 1024 };

/* Frames of streams in a row, handed out in spans of whole ones. */
static struct {
    struct buffer bytes;
    size_t count;
    size_t frame; /* bytes of each */
    size_t sent;
    size_t span_end;
    size_t own; /* the link's own frames that were sent beside */
} kept;

static struct bytes take(void *context)
{
    (void)context;
    if (kept.sent == kept.span_end) {
        const size_t left = kept.bytes.size - kept.sent;

        kept.span_end += left < SPAN ? left : SPAN / kept.frame * kept.frame;
    }
    return bytes_of(kept.bytes.data + kept.sent, kept.span_end - kept.sent);
}

static void sent(void *context, size_t size)
{
    (void)context;
    assert_true(size <= kept.span_end - kept.sent);
    kept.sent += size;
}

static const struct link_source source = {.take = take, .sent = sent, .gated = true};

static void keep(size_t count)
{
    const struct stream_head head = {.from = 1, .to = 2, .first = 1};
    static const uint8_t filler[FILLER];

    kept.frame = STREAM_HEADER_SIZE + sizeof filler;
    kept.count = count;
    for (size_t i = 0; i < count; i++) {
        uint8_t *at = buffer_reserve(&kept.bytes, kept.frame);

        stream_head_store(at, STREAM_ANSWER, &head);
        stream_frame_end(at, kept.frame, 1);
        memcpy(at + STREAM_HEADER_SIZE, filler, sizeof filler);
        kept.bytes.size += kept.frame;
    }
}

static void forget_kept(void)
{
    buffer_fini(&kept.bytes);
    memset(&kept, 0, sizeof kept);
}

/* Two nodes whose link speaks that protocol; the second one dialled. */
static struct link *start_pair_of(uint32_t protocol)
{
    struct side *listening = side_prepare(0, ROLE_NODE, "n2");
    struct side *dialling = side_prepare(1, ROLE_NODE, "n1");

    for (size_t i = 0; i < 2; i++) {
        sides[i].config.self.protocol.newest = protocol;
        side_open(&sides[i]);
    }
    assert_int_equal(links_listen(listening->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(dialling->links, bound);
    until(both_up);
    assert_int_equal(link_protocol(link), protocol);
    return link;
}

static struct link *start_stream_pair(void)
{
    return start_pair_of(LINK_PROTOCOL_STREAMS);
}

static bool is_in_place(void)
{
    return transport->uv[1] && !transport->tls;
}

/* While they go, the link says something of its own at every turn. */
static bool all_came(void)
{
    if (kept.sent < kept.bytes.size) {
        assert_int_equal(link_send(sides[1].up[0], FRAME_CONTROL, text("c")), ERR_OK);
        kept.own++;
    }
    return sides[0].frames == kept.count + kept.own;
}

static void what_is_kept_goes_out_whole_beside_the_links_own_frames(void **state)
{
    struct link *link = start_stream_pair();

    (void)state;
    keep(20000);
    link_set_source(link, &source);
    until(all_came);
    assert_true(kept.own > 0);
    assert_int_equal(kept.sent, kept.bytes.size);
    // What is added later goes when the link is told of it.
    keep(10);
    kept.count = 20010;
    link_feed(link);
    until(all_came);
    assert_int_equal(sides[0].downs + sides[1].downs, 0);
    forget_kept();
}

static bool cut_in_the_middle(void)
{
    return kept.sent > 0 && kept.sent < kept.bytes.size;
}

static void the_gate_holds_it(void **state)
{
    struct link *link = start_stream_pair();
    size_t before = 0;

    (void)state;
    links_set_gate(sides[1].links, 1);
    keep(30000);
    link_set_source(link, &source);
    run_on(200);
    assert_int_equal(sides[0].frames, 0);
    links_set_gate(sides[1].links, UINT64_MAX);
    until(cut_in_the_middle);
    links_set_gate(sides[1].links, 1);
    do { // what nng has of it, and what is sealed, it may still hand on
        before = kept.sent;
        run_on(200);
    } while (kept.sent != before);
    assert_true(kept.sent < kept.bytes.size);
    links_set_gate(sides[1].links, UINT64_MAX);
    until(all_came);
    forget_kept();
}

static void no_frame_is_left_half_said(void **state)
{
    struct link *link = start_stream_pair();

    (void)state;
    keep(30000);
    link_set_source(link, &source);
    until(cut_in_the_middle);
    while (is_in_place() && kept.sent % kept.frame == 0) { // it was cut between two
        until(cut_in_the_middle);
        run_on(100);
    }
    link_set_source(link, NULL);
    if (is_in_place()) {
        until(second_down);
        assert_string_equal(sides[1].down_reason, "a stream ended in the middle of a frame");
    } else {
        assert_int_equal(link_send(link, FRAME_CONTROL, text("c")), ERR_OK); // it was copied
    }
    forget_kept();
}

static struct bytes take_log(void *context)
{
    return sendlog_unsent(context);
}

static void sent_log(void *context, size_t size)
{
    sendlog_sent(context, size);
}

static void put_records(struct sendlog *log, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        memset(sendlog_room(log, FILLER), 0, FILLER);
        sendlog_put(log, FILLER);
    }
}

static bool first_heard_all(void)
{
    return sides[0].records == kept.count;
}

static bool first_heard_ack(void)
{
    return sides[0].frames > kept.own;
}

static void a_log_goes_out_and_its_ack(void **state)
{
    struct link *link = start_stream_pair();
    struct stream_chunks chunks = {.spare_max = 1};
    struct sendlog log;

    (void)state;
    sendlog_init(&log, &chunks, STREAM_ANSWER, 1, 2);
    link_set_source(link,
                    &(struct link_source){.context = &log, .take = take_log, .sent = sent_log});
    for (kept.count = 0; kept.count < 1000;) {
        put_records(&log, 500);
        kept.count += 500;
        link_feed(link);
        until(first_heard_all);
    }
    assert_true(sides[0].frame_bytes > kept.count * FILLER);
    kept.own = sides[0].frames;
    log.said.ack = 7;
    assert_true(sendlog_look(&log));
    link_feed(link);
    until(first_heard_ack);
    assert_int_equal(sides[0].frames, kept.own + 1);
    link_set_source(link, NULL);
    sendlog_drop(&log);
    stream_chunks_fini(&chunks);
    assert_int_equal(sides[0].downs + sides[1].downs, 0);
    forget_kept();
}

static void an_ack_without_room_is_said_later(void **state)
{
    struct link *link = start_stream_pair();
    struct stream_chunks chunks = {.spare_max = 1};
    const size_t filler_max = (size_t)1024 * 1024;
    struct sendlog log;

    (void)state;
    sendlog_init(&log, &chunks, STREAM_ANSWER, 1, 2);
    link_set_source(link,
                    &(struct link_source){.context = &log, .take = take_log, .sent = sent_log});
    void *filler = mem_new(1, filler_max);
    while (link_send(link, FRAME_CONTROL, bytes_of(filler, filler_max)) == ERR_OK) {
        kept.own++;
    }
    const size_t room = sides[1].config.queue_size_max - link_queued(link);
    if (room > FRAME_HEADER_SIZE) { // the last part of it
        const struct bytes rest = bytes_of(filler, room - FRAME_HEADER_SIZE);

        assert_int_equal(link_send(link, FRAME_CONTROL, rest), ERR_OK);
        kept.own++;
    }
    mem_free(filler);
    log.said.ack = 7;
    assert_true(sendlog_look(&log));
    link_feed(link);
    until(first_heard_ack);
    assert_int_equal(sides[0].frames, kept.own + 1); // behind all that had filled the link
    link_set_source(link, NULL);
    forget_kept();
}

static void a_link_without_streams_takes_none(void **state)
{
    struct link *link = start_pair_of(LINK_PROTOCOL_STREAMS - 1);

    (void)state;
    assert_int_equal(link_send(link, FRAME_STREAM_ACK, text("x")), ERR_OK);
    until(first_down);
    assert_int_equal(links_counts(sides[0].links).garbage, 1);
    assert_int_equal(sides[0].frames, 0);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        LINK_CASE(what_is_kept_goes_out_whole_beside_the_links_own_frames),
        LINK_CASE(the_gate_holds_it),
        LINK_CASE(no_frame_is_left_half_said),
        LINK_CASE(a_log_goes_out_and_its_ack),
        LINK_CASE(an_ack_without_room_is_said_later),
        LINK_CASE(a_link_without_streams_takes_none),
    };

    return run_on_transports(cases, sizeof cases / sizeof cases[0]);
}
