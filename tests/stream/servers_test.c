/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node keeps of streams, and what becomes of those for which there is no room.
 */
#include "tests/test.h"

#include "base/mem.h"
#include "stream/asker.h"
#include "stream/servers.h"
#include "tests/hex.h"

#include <string.h>

enum { NODE = 9, ASKER = 100, CONNECTION = 500, VERSION = 3 };

/* The node answers at once, and its answers are not read. */
static struct stream_servers node;
static size_t body_size;
static bool leaves_open; /* it answers nothing any more */
static size_t taken;
static size_t full;
static uint64_t ack;  /* of the askers */
static uint64_t lost; /* the connection that a parked frame cost */
static enum err lost_why;

static void take_one(const struct stream_taken *t)
{
    static const uint8_t body[64 * 1024];

    taken++;
    if (leaves_open) {
        return;
    }
    if (servers_is_full(&node, t->by)) {
        full++;
        server_refuse(&t->by->stream, t->request->rid, t->position, ANSWER_OVERLOAD, 1);
        return;
    }
    const struct stream_answer a = {.rid = t->request->rid, .body = bytes_of(body, body_size)};
    server_answer(&t->by->stream, &a);
}

static void take(void *context, const struct stream_some *some)
{
    (void)context;
    for (size_t i = 0; i < some->count; i++) {
        const uint64_t position = some->request[i].rid;

        if (servers_take(some, i, position)) {
            const struct stream_taken t = servers_taken(some, i, position);

            take_one(&t);
        }
    }
}

static void on_lost(void *context, uint64_t connection, enum err why)
{
    (void)context;
    lost = connection;
    lost_why = why;
}

static struct stream_servers_config config_of_test(void)
{
    struct stream_servers_config config = servers_config_default();

    config.incarnation = NODE;
    config.take = take;
    config.lost = on_lost;
    return config;
}

static void open_node(const struct stream_servers_config *config)
{
    servers_init(&node, config);
    servers_ring(&node, VERSION);
    servers_clock(&node, 1);
    taken = full = 0;
    lost = ack = 0;
    body_size = 0;
    leaves_open = false;
}

static enum err feed(uint64_t connection, const struct buffer *whole, struct buffer *said)
{
    const struct frame frame = {
        .type = (enum frame_type)whole->data[4],
        .count = load_u16(whole->data + 6),
        .body = bytes_of(whole->data + FRAME_HEADER_SIZE, whole->size - FRAME_HEADER_SIZE)};

    return servers_frame(&node, connection, &frame, said);
}

/* What is said to BEGIN or JOIN; 0 = nothing, and `e` says why. */
static enum frame_type join(unsigned asker, enum stream_frame type, uint64_t epoch, enum err *e)
{
    struct buffer whole = {0};
    struct buffer said = {0};
    const struct stream_head head = {.from = ASKER + asker, .to = NODE, .first = epoch, .ack = ack};

    stream_head_store(buffer_reserve(&whole, STREAM_HEADER_SIZE), type, &head);
    whole.size += STREAM_HEADER_SIZE;
    *e = feed(CONNECTION + asker, &whole, &said);
    const enum frame_type answer = said.size == 0 ? 0 : (enum frame_type)said.data[4];
    buffer_fini(&whole);
    buffer_fini(&said);
    return answer;
}

static void begin(unsigned asker)
{
    enum err e = ERR_OK;

    assert_int_equal(join(asker, STREAM_BEGIN, 1, &e), FRAME_STREAM_JOINED);
    assert_int_equal(e, ERR_OK);
}

/* A frame with one request, which has that number. */
static enum err ask(unsigned asker, uint64_t number, size_t size, uint64_t version)
{
    static const uint8_t body[64 * 1024];
    const struct stream_request r = {
        .rid = number, .session = 1, .ttl_ms = 1000, .id = text("a"), .body = bytes_of(body, size)};
    const struct stream_head head = {
        .from = ASKER + asker, .to = NODE, .first = number, .ack = ack, .version = version};
    const size_t whole_size = STREAM_HEADER_SIZE + stream_request_size(&r);
    struct buffer whole = {0};
    struct buffer said = {0};

    uint8_t *at = buffer_reserve(&whole, whole_size);
    whole.size = whole_size;
    stream_head_store(at, STREAM_REQUEST, &head);
    stream_request_store(at + STREAM_HEADER_SIZE, &r);
    stream_frame_end(at, whole_size, 1);
    const enum err e = feed(CONNECTION + asker, &whole, &said);
    buffer_fini(&whole);
    return e;
}

/* ---- cases */

/* A gateway's whole window, each request in a frame of its own. */
static void what_a_gateway_may_have_under_way_may_wait(void **state)
{
    const struct stream_servers_config config = config_of_test();
    const struct stream_asker_config asker = asker_config_default();
    const size_t body = asker.size_max / asker.window - STREAM_REQUEST_SIZE - 1;

    (void)state;
    open_node(&config);
    begin(0);
    for (uint64_t i = 1; i <= asker.window; i++) {
        assert_int_equal(ask(0, i, body, VERSION + 1), ERR_OK);
    }
    assert_int_equal(ask(0, asker.window + 1, body, VERSION + 1), ERR_TOO_BIG);
    assert_int_equal(taken, 0);
    servers_ring(&node, VERSION + 1);
    servers_go_on(&node);
    assert_int_equal(taken, asker.window);
    assert_int_equal(node.parked_size, 0);
    servers_fini(&node);
}

/* One stream is not read. It is refused when there is too much of all, then loses its connection;
 * another goes on. */
static void beyond_the_sum_each_has_its_share(void **state)
{
    struct stream_servers_config config = config_of_test();
    uint64_t number = 1;

    (void)state;
    config.size_max = (size_t)16 * STREAM_CHUNK_SIZE;
    open_node(&config);
    begin(0);
    begin(1);
    body_size = (size_t)32 * 1024;
    while (full == 0) {
        assert_int_equal(ask(0, number++, 0, VERSION), ERR_OK);
        assert_true(number < 100);
    }
    const size_t size = servers_size(&node);
    assert_in_range(size, config.size_max, config.size_max + STREAM_CHUNK_SIZE);
    assert_int_equal(ask(1, 1, 0, VERSION), ERR_OK); // it has nothing yet
    assert_int_equal(full, 1);
    assert_int_equal(ask(0, number, 0, VERSION + 1), ERR_TOO_BIG); // nor may it wait …
    assert_int_equal(ask(1, 2, 0, VERSION + 1), ERR_OK);           // … as the other one may
    // Refusals take room, too: beyond twice the sum nothing more is taken of it.
    enum err e = ERR_OK;
    while (e == ERR_OK) {
        e = ask(0, number, 0, VERSION);
        number += e == ERR_OK ? 1 : 0;
    }
    assert_int_equal(e, ERR_TOO_BIG);
    assert_in_range(
        servers_size(&node), 2 * config.size_max, 2 * config.size_max + STREAM_CHUNK_SIZE);
    // What it has read gives the room back.
    struct sendlog *log = &servers_find(&node, ASKER)->stream.log;
    for (size_t out; (out = sendlog_unsent(log).size) > 0;) {
        sendlog_sent(log, out);
    }
    servers_lost(&node, ASKER, CONNECTION);
    ack = number - 1;
    assert_int_equal(join(0, STREAM_JOIN, 2, &e), FRAME_STREAM_JOINED);
    full = 0;
    assert_int_equal(ask(0, number, 0, VERSION), ERR_OK);
    assert_int_equal(full, 0);
    servers_fini(&node);
}

static void what_waited_is_refused_if_there_is_no_room_for_answers(void **state)
{
    struct stream_servers_config config = config_of_test();

    (void)state;
    config.size_max = (size_t)4 * STREAM_CHUNK_SIZE;
    open_node(&config);
    begin(0);
    body_size = (size_t)60 * 1024;
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(ask(0, i, 0, VERSION), ERR_OK);
    }
    for (uint64_t i = 4; i <= 12; i++) {
        assert_int_equal(ask(0, i, 0, VERSION + 1), ERR_OK);
    }
    servers_ring(&node, VERSION + 1);
    servers_go_on(&node);
    assert_int_equal(taken, 12);
    assert_int_equal(full, 8); // all but one that filled it
    assert_in_range(servers_size(&node), config.size_max, config.size_max + STREAM_CHUNK_SIZE);
    assert_int_equal(node.parked_size, 0);
    servers_fini(&node);
}

static void a_frame_that_waited_and_cannot_be_is_told(void **state)
{
    const struct stream_servers_config config = config_of_test();

    (void)state;
    open_node(&config);
    begin(0);
    assert_int_equal(ask(0, 1, 0, VERSION + 1), ERR_OK);
    assert_int_equal(ask(0, 3, 0, VERSION + 1), ERR_OK); // a gap, which may not be one yet
    servers_ring(&node, VERSION + 1);
    servers_go_on(&node);
    assert_int_equal(taken, 1);
    assert_int_equal(lost, CONNECTION);
    assert_int_equal(lost_why, ERR_CORRUPT);
    servers_fini(&node);
}

static void the_one_away_for_longest_goes_for_one_more(void **state)
{
    struct stream_servers_config config = config_of_test();
    enum err e = ERR_OK;

    (void)state;
    config.streams_max = 2;
    open_node(&config);
    begin(0);
    begin(1);
    assert_int_equal(join(2, STREAM_BEGIN, 1, &e), 0); // neither is away
    assert_int_equal(e, ERR_TOO_BIG);
    servers_lost(&node, ASKER + 1, CONNECTION + 1);
    assert_int_equal(servers_tick(&node, 1), 0);
    servers_lost(&node, ASKER, CONNECTION);
    assert_int_equal(servers_tick(&node, 2), 0);
    begin(2);
    assert_int_equal(servers_tick(&node, 3), 1);
    assert_int_equal(join(1, STREAM_JOIN, 2, &e), FRAME_STREAM_GONE);
    assert_int_equal(join(0, STREAM_JOIN, 2, &e), FRAME_STREAM_JOINED);
    assert_int_equal(ask(1, 1, 0, VERSION), ERR_NOT_FOUND);
    servers_fini(&node);
}

/* A BEGIN may be on its way for so long that its stream is forgotten before it comes. */
static void who_joins_by_what_came_behind_the_end_is_gone(void **state)
{
    const struct stream_servers_config config = config_of_test();
    enum err e = ERR_OK;

    (void)state;
    open_node(&config);
    begin(0);
    ack = 4; // answers that a stream gave that was here before
    assert_int_equal(join(0, STREAM_JOIN, 2, &e), FRAME_STREAM_GONE);
    assert_int_equal(e, ERR_OK);
    ack = 0;
    assert_int_equal(join(0, STREAM_BEGIN, 3, &e), FRAME_STREAM_JOINED);
    assert_int_equal(ask(0, 1, 0, VERSION), ERR_OK);
    ack = 4; // but of one that has taken something that can't be
    assert_int_equal(join(0, STREAM_JOIN, 4, &e), 0);
    assert_int_equal(e, ERR_CORRUPT);
    servers_fini(&node);
}

/* JOINED can't stand in the middle of a frame. */
static void a_connection_with_half_a_frame_is_not_joined_again(void **state)
{
    const struct stream_servers_config config = config_of_test();
    enum err e = ERR_OK;

    (void)state;
    open_node(&config);
    begin(0);
    body_size = 100;
    assert_int_equal(ask(0, 1, 0, VERSION), ERR_OK);
    struct sendlog *log = &servers_find(&node, ASKER)->stream.log;
    const size_t size = sendlog_unsent(log).size;
    sendlog_sent(log, size);
    assert_int_equal(join(0, STREAM_JOIN, 2, &e), FRAME_STREAM_JOINED); // all of it is out
    assert_int_equal(sendlog_unsent(log).size, size);
    sendlog_sent(log, 50);
    assert_int_equal(join(0, STREAM_JOIN, 3, &e), 0);
    assert_int_equal(e, ERR_STOPPED);
    servers_lost(&node, ASKER, CONNECTION);
    assert_int_equal(join(0, STREAM_JOIN, 3, &e), FRAME_STREAM_JOINED);
    assert_int_equal(sendlog_unsent(log).size, size);
    servers_fini(&node);
}

/* Nor in the middle of an ACK. */
static void a_connection_with_half_an_ack_is_not_joined_again(void **state)
{
    const struct stream_servers_config config = config_of_test();
    enum err e = ERR_OK;

    (void)state;
    open_node(&config);
    leaves_open = true;
    begin(0);
    assert_int_equal(ask(0, 1, 0, VERSION), ERR_OK);
    struct sendlog *log = &servers_find(&node, ASKER)->stream.log;
    (void)sendlog_look(log);
    assert_true(sendlog_look(log));
    assert_int_equal(sendlog_unsent(log).size, STREAM_HEADER_SIZE);
    sendlog_sent(log, 20);
    assert_int_equal(join(0, STREAM_JOIN, 2, &e), 0);
    assert_int_equal(e, ERR_STOPPED);
    servers_fini(&node);
}

/* Who begins again and again, with something under way each time, takes no stream from others. */
static void who_begins_without_end_costs_the_others_nothing(void **state)
{
    struct stream_servers_config config = config_of_test();
    enum err e = ERR_OK;
    uint64_t epoch = 1;

    (void)state;
    config.streams_max = 3;
    open_node(&config);
    begin(1);
    servers_lost(&node, ASKER + 1, CONNECTION + 1);
    assert_int_equal(servers_tick(&node, 1), 0);
    while (epoch < 10) { // nothing is left of what was answered
        assert_int_equal(join(0, STREAM_BEGIN, epoch++, &e), FRAME_STREAM_JOINED);
        assert_int_equal(ask(0, 1, 0, VERSION), ERR_OK);
        assert_int_equal(node.count, 2);
    }
    leaves_open = true;
    while (join(0, STREAM_BEGIN, epoch++, &e) == FRAME_STREAM_JOINED) {
        assert_int_equal(ask(0, 1, 0, VERSION), ERR_OK);
        assert_true(epoch < 20);
    }
    assert_int_equal(e, ERR_TOO_BIG);
    begin(2);
    assert_int_equal(join(1, STREAM_JOIN, 2, &e), FRAME_STREAM_JOINED);
    servers_fini(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_gateway_may_have_under_way_may_wait),
        cmocka_unit_test(beyond_the_sum_each_has_its_share),
        cmocka_unit_test(what_waited_is_refused_if_there_is_no_room_for_answers),
        cmocka_unit_test(a_frame_that_waited_and_cannot_be_is_told),
        cmocka_unit_test(the_one_away_for_longest_goes_for_one_more),
        cmocka_unit_test(who_joins_by_what_came_behind_the_end_is_gone),
        cmocka_unit_test(a_connection_with_half_a_frame_is_not_joined_again),
        cmocka_unit_test(a_connection_with_half_an_ack_is_not_joined_again),
        cmocka_unit_test(who_begins_without_end_costs_the_others_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
