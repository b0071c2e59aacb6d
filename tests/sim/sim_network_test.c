/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/network.h: what stays in order, and what may be lost; how a stream's log is poured.
 */
#include "sim/network.h"
#include "tests/test.h"
#include "wire/frame.h"

#include <string.h>

enum { SENT = 500 };

struct bench {
    struct world world;
    struct network network;
    struct process a;
    struct process b;
    struct net_end *end_a; /* newest */
    struct net_end *end_b;
    unsigned ups;
    unsigned downs;
    unsigned got[SENT];
    size_t got_count;
    bool takes;
    struct sendlog log; /* of a stream from a to b */
    uint64_t taken;     /* records of it */
    unsigned rooms;
};

static bool on_hello(void *context, struct process *who, struct process *other,
                     uint64_t *incarnation)
{
    const struct bench *b = context;

    (void)other;
    *incarnation = 7;
    return who->role != ROLE_NODE || b->takes;
}

static void on_up(void *context, struct net_end *end)
{
    struct bench *b = context;

    b->ups++;
    assert_int_equal(end->other_incarnation, 7);
    if (end->me == &b->a) {
        b->end_a = end;
    } else {
        b->end_b = end;
    }
}

static void on_down(void *context, struct net_end *end)
{
    struct bench *b = context;

    (void)end;
    b->downs++;
}

static void on_message(void *context, struct net_end *end, int type, struct bytes bytes)
{
    struct bench *b = context;
    unsigned n;

    assert_ptr_equal(end->me, &b->b);
    assert_int_equal(type, FRAME_REQUEST);
    assert_int_equal(bytes.size, sizeof n);
    memcpy(&n, bytes.data, sizeof n);
    assert_true(b->got_count < SENT);
    b->got[b->got_count++] = n;
}

static void on_frame(void *context, struct net_end *end, const struct frame *frame)
{
    struct bench *b = context;
    struct stream_head head;
    struct reader records;

    assert_ptr_equal(end->me, &b->b);
    assert_int_equal(stream_head_get(frame, &head, &records), ERR_OK);
    if (frame->type == (enum frame_type)STREAM_ANSWER) {
        assert_int_equal(head.first, b->taken + 1); // none is lost but with its link
        b->taken += frame->count;
    }
}

static void on_room(void *context, struct net_end *end)
{
    struct bench *b = context;

    assert_ptr_equal(end, b->end_a);
    b->rooms++;
    network_pour(&b->network, end, &b->log);
}

/* Every hundredth is rare. */
static int on_kind(int type, struct bytes bytes)
{
    unsigned n = 0;

    memcpy(&n, bytes.data, sizeof n);
    return n % 100 == 99 ? 1000 : type;
}

/* Two processes and a link between them. */
static void start(struct bench *b, enum link_role first, struct net_faults faults)
{
    const struct net_events events = {.context = b,
                                      .hello = on_hello,
                                      .up = on_up,
                                      .down = on_down,
                                      .message = on_message,
                                      .frame = on_frame,
                                      .room = on_room,
                                      .kind = on_kind};

    memset(b, 0, sizeof *b);
    world_init(&b->world, 5);
    network_init(&b->network, &b->world, &events);
    b->network.faults = faults;
    b->a = (struct process){.role = first, .number = 0, .name = "a", .up = true, .life = 1};
    b->b = (struct process){.role = ROLE_NODE, .number = 1, .name = "b", .up = true, .life = 1};
    b->takes = true;
    network_dial(&b->network, &b->a, &b->b, 3);
    world_run_until(&b->world, 1000000);
    assert_int_equal(b->ups, 2);
}

static void stop(struct bench *b)
{
    network_fini(&b->network);
    world_fini(&b->world);
}

static void send_some(struct bench *b, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        network_send(&b->network, b->end_a, FRAME_REQUEST, bytes_of(&i, sizeof i));
    }
}

static void a_data_link_keeps_order_through_a_cut(void **state)
{
    struct bench b;

    (void)state;
    start(&b,
          ROLE_GATEWAY,
          (struct net_faults){
              .delay_max_us = 20000, .slow_pm = 200, .slow_max_us = 300000, .loss_pm = 300});
    send_some(&b, 0, 100);
    network_cut(&b.network, &b.a, &b.b, true);
    world_run_until(&b.world, 2000000);
    assert_int_equal(b.got_count, 0);
    send_some(&b, 100, 300);
    network_cut(&b.network, &b.a, &b.b, false);
    send_some(&b, 300, SENT);
    world_run_until(&b.world, 5000000);
    assert_int_equal(b.got_count, SENT);
    for (unsigned i = 0; i < SENT; i++) {
        assert_int_equal(b.got[i], i);
    }
    assert_int_equal(b.downs, 0);
    stop(&b);
}

static void a_reset_loses_a_tail_and_the_link_comes_again(void **state)
{
    struct bench b;

    (void)state;
    start(&b, ROLE_GATEWAY, (struct net_faults){.delay_max_us = 20000});
    send_some(&b, 0, 100);
    network_reset_any(&b.network, true);
    send_some(&b, 100, 200);
    world_run_until(&b.world, 5000000);
    assert_int_equal(b.downs, 2);
    assert_int_equal(b.ups, 4);
    assert_true(b.got_count <= 100);
    for (unsigned i = 0; i < b.got_count; i++) {
        assert_int_equal(b.got[i], i);
    }
    stop(&b);
}

static void a_long_silence_breaks_a_link(void **state)
{
    struct bench b;

    (void)state;
    start(&b, ROLE_GATEWAY, (struct net_faults){.delay_max_us = 1000});
    network_cut(&b.network, &b.a, &b.b, true);
    world_run_until(&b.world, 20000000);
    assert_int_equal(b.downs, 2);
    assert_int_equal(b.ups, 2);
    network_cut(&b.network, &b.a, &b.b, false);
    world_run_until(&b.world, 25000000);
    assert_int_equal(b.ups, 4);
    stop(&b);
}

static void a_dead_process_is_noticed_and_gets_no_link(void **state)
{
    struct bench b;

    (void)state;
    start(&b, ROLE_GATEWAY, (struct net_faults){.delay_max_us = 1000});
    b.b.up = false;
    network_crash(&b.network, &b.b, false);
    world_run_until(&b.world, 20000000);
    assert_int_equal(b.downs, 1);
    b.b.up = true;
    b.b.life++;
    b.takes = false;
    world_run_until(&b.world, 30000000);
    assert_int_equal(b.ups, 2);
    b.takes = true;
    world_run_until(&b.world, 40000000);
    assert_int_equal(b.ups, 4);
    stop(&b);
}

static void a_control_link_loses_and_repeats(void **state)
{
    struct bench b;
    unsigned times[SENT] = {0};
    unsigned lost = 0;
    unsigned twice = 0;
    unsigned moved = 0;

    (void)state;
    start(&b,
          ROLE_COORDINATOR,
          (struct net_faults){.delay_max_us = 20000, .loss_pm = 300, .duplicate_pm = 300});
    send_some(&b, 0, 300);
    world_run_until(&b.world, 5000000);
    for (size_t i = 0; i < b.got_count; i++) {
        times[b.got[i]]++;
        moved += i > 0 && b.got[i] < b.got[i - 1];
    }
    for (unsigned i = 0; i < 300; i++) {
        lost += times[i] == 0;
        twice += times[i] == 2;
    }
    assert_true(lost > 0 && twice > 0 && moved > 0);
    stop(&b);
}

static void aim(struct bench *b, enum net_aim_what what)
{
    b->network.aim =
        (struct net_aim){.what = what, .kind = 1000, .until_us = b->world.now_us + 2000000};
    send_some(b, 0, 300);
    world_run_until(&b->world, b->world.now_us + 1000000);
}

static void a_rare_frame_is_lost_with_its_link_or_held_or_repeated(void **state)
{
    struct bench b;

    (void)state;
    start(&b, ROLE_GATEWAY, (struct net_faults){.delay_max_us = 1000});
    aim(&b, NET_AIM_BREAK);
    assert_int_equal(b.downs, 2);
    assert_true(b.got_count <= 99);
    stop(&b);

    start(&b, ROLE_GATEWAY, (struct net_faults){.delay_max_us = 1000});
    aim(&b, NET_AIM_HOLD);
    assert_int_equal(b.got_count, 99);
    world_run_until(&b.world, b.world.now_us + 2000000);
    assert_int_equal(b.got_count, 300); // with all that is behind it
    assert_int_equal(b.downs, 0);
    stop(&b);

    start(&b, ROLE_COORDINATOR, (struct net_faults){.delay_max_us = 1000});
    aim(&b, NET_AIM_LOSE);
    assert_int_equal(b.got_count, 297);
    stop(&b);

    start(&b, ROLE_COORDINATOR, (struct net_faults){.delay_max_us = 1000});
    aim(&b, NET_AIM_TWICE);
    world_run_until(&b.world, b.world.now_us + 2000000);
    assert_int_equal(b.got_count, 303);
    stop(&b);
}

static void answer_some(struct sendlog *log, unsigned count)
{
    static const uint8_t body[200];
    const struct stream_answer a = {.rid = 1, .body = bytes_of(body, sizeof body)};

    for (unsigned i = 0; i < count; i++) {
        const size_t size = stream_answer_size(&a);

        stream_answer_store(sendlog_room(log, size), &a);
        sendlog_put(log, size);
        if (i % 5 == 4) {
            sendlog_close(log);
        }
    }
}

static void a_log_is_poured_as_there_is_room_and_again_behind_a_break(void **state)
{
    struct stream_chunks chunks = {0};
    struct bench b;

    (void)state;
    start(&b, ROLE_GATEWAY, (struct net_faults){.delay_max_us = 20000});
    b.a.streams = b.b.streams = true;
    sendlog_init(&b.log, &chunks, STREAM_ANSWER, 1, 2);
    answer_some(&b.log, SENT);
    network_pour(&b.network, b.end_a, &b.log);
    assert_true(sendlog_unsent(&b.log).size > 0); // there was no room for all
    world_run_until(&b.world, b.world.now_us + 30000);
    network_reset_any(&b.network, true);
    world_run_until(&b.world, 5000000);
    assert_int_equal(b.downs, 2);
    assert_true(b.taken < SENT);
    sendlog_again(&b.log, b.taken + 1);
    const struct stream_head joined = sendlog_say(&b.log, 1);
    uint8_t head[STREAM_HEADER_SIZE];
    stream_head_store(head, STREAM_JOINED, &joined);
    network_say(&b.network,
                b.end_a,
                STREAM_JOINED,
                bytes_of(head + FRAME_HEADER_SIZE, sizeof head - FRAME_HEADER_SIZE));
    network_pour(&b.network, b.end_a, &b.log);
    world_run_until(&b.world, 10000000);
    assert_int_equal(b.taken, SENT);
    assert_true(b.rooms > 1);
    sendlog_drop(&b.log);
    stream_chunks_fini(&chunks);
    stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_data_link_keeps_order_through_a_cut),
        cmocka_unit_test(a_reset_loses_a_tail_and_the_link_comes_again),
        cmocka_unit_test(a_long_silence_breaks_a_link),
        cmocka_unit_test(a_dead_process_is_noticed_and_gets_no_link),
        cmocka_unit_test(a_control_link_loses_and_repeats),
        cmocka_unit_test(a_rare_frame_is_lost_with_its_link_or_held_or_repeated),
        cmocka_unit_test(a_log_is_poured_as_there_is_room_and_again_behind_a_break),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
