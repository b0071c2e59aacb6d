/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/network.h: what stays in order, and what may be lost.
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
    const struct net_events events = {b, on_hello, on_up, on_down, on_message, on_kind};

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_data_link_keeps_order_through_a_cut),
        cmocka_unit_test(a_reset_loses_a_tail_and_the_link_comes_again),
        cmocka_unit_test(a_long_silence_breaks_a_link),
        cmocka_unit_test(a_dead_process_is_noticed_and_gets_no_link),
        cmocka_unit_test(a_control_link_loses_and_repeats),
        cmocka_unit_test(a_rare_frame_is_lost_with_its_link_or_held_or_repeated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
