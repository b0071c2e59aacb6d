/* SPDX-License-Identifier: Apache-2.0 */
#include "node/order.h"

#include "node/actor.h"
#include "node/image.h"
#include "tests/test.h"

static struct room room;
static struct orders orders;
static struct actor actor;
static size_t total;

static int start(void **state)
{
    (void)state;
    room_init(&room, 0);
    orders_init(&orders);
    list_init(&actor.orders);
    total = 0;
    return 0;
}

static int end(void **state)
{
    struct list_link *l = NULL;

    (void)state;
    room_fini(&room);
    assert_int_equal(total, 0);
    while ((l = list_front(&actor.orders)) != NULL) {
        order_free(&orders, CONTAINER_OF(l, struct order, of_actor));
    }
    orders_fini(&orders);
    return 0;
}

static struct order *made(uint64_t session, uint64_t last, uint64_t base)
{
    struct order *order = order_new(&orders, &actor, &actor.orders, session);

    order->last = last;
    order->base = base;
    return order;
}

static struct waiting *request(uint64_t seq, uint64_t prev, uint64_t base)
{
    const struct request_record r = {
        .seq = seq, .prev = prev, .base = base, .id = bytes_of("x", 1), .body = bytes_of("", 0)};

    return waiting_new(&room, &r, 1, 5000000);
}

static void the_verdicts(void **state)
{
    static const struct {
        uint64_t last, known_base, seq, prev, base;
        uint32_t epoch;
        enum order_verdict want;
    } cases[] = {
        {0, 0, 1, 0, 1, 5, ORDER_RUN},       // the first ever
        {4, 1, 5, 4, 1, 5, ORDER_RUN},       // its predecessor ran
        {4, 1, 6, 5, 1, 5, ORDER_EARLY},     // it did not
        {4, 1, 6, 5, 6, 5, ORDER_RUN},       // it was given up
        {4, 6, 6, 5, 1, 5, ORDER_RUN},       // as another request has told
        {4, 1, 9, 0, 9, 5, ORDER_RUN},       // nothing was unfinished
        {4, 1, 4, 3, 1, 5, ORDER_DUPLICATE}, //
        {4, 1, 2, 1, 1, 5, ORDER_DUPLICATE}, //
        {4, 8, 7, 4, 5, 5, ORDER_ABANDONED}, // below what is unfinished
        {4, 1, 5, 4, 1, 4, ORDER_FENCED},    // epoch of before the reconnect
        {4, 1, 5, 4, 1, 6, ORDER_RUN},       //
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct order *order = made(i, cases[i].last, cases[i].known_base);
        const struct request_record r = {.seq = cases[i].seq,
                                         .prev = cases[i].prev,
                                         .base = cases[i].base,
                                         .session_epoch = cases[i].epoch};

        order->epoch = 5;
        assert_int_equal(order_judge(order, &r), cases[i].want);
    }
}

static void early_ones_come_out_in_order(void **state)
{
    struct order *order = made(1, 1, 1);
    struct waiting *four = request(4, 3, 1);
    struct waiting *three = request(3, 2, 1);
    struct waiting *five = request(5, 4, 1);

    (void)state;
    assert_true(order_keep_early(order, four, &total));
    assert_true(order_keep_early(order, five, &total));
    assert_true(order_keep_early(order, three, &total));
    assert_int_equal(total, 3);
    assert_null(order_take_early(order));
    order->last = 2;
    assert_ptr_equal(order_take_early(order), three);
    assert_null(order_take_early(order));
    order->last = 3;
    assert_ptr_equal(order_take_early(order), four);
    assert_int_equal(total, 1);
}

/* 1 is still to come, 2 was given up: the copy of 3 sent then names 1. */
static void a_merged_copy_waits_for_the_lower_predecessor(void **state)
{
    struct order *order = made(1, 0, 1);
    struct waiting *copy = request(3, 1, 1);

    (void)state;
    assert_true(order_keep_early(order, request(3, 2, 1), &total));
    assert_false(order_keep_early(order, copy, &total));
    waiting_free(&room, copy);
    assert_null(order_take_early(order));
    order->last = 1;
    copy = order_take_early(order);
    assert_non_null(copy);
    assert_int_equal(copy->record.prev, 1);
    waiting_free(&room, copy);
}

static void a_copy_of_an_early_one_is_merged(void **state)
{
    struct order *order = made(1, 1, 1);
    struct waiting *first = request(4, 3, 1);
    struct waiting *copy = request(4, 3, 4);

    (void)state;
    copy->record.version = 9;
    assert_true(order_keep_early(order, first, &total));
    assert_false(order_keep_early(order, copy, &total));
    waiting_free(&room, copy);
    assert_int_equal(first->record.base, 4);
    assert_int_equal(first->record.version, 9);
    assert_ptr_equal(order_take_early(order), first);
}

static void idle_records_are_forgotten_used_ones_stay(void **state)
{
    (void)state;
    order_touch(&orders, made(1, 1, 1), 100);
    order_touch(&orders, made(2, 1, 1), 200);
    struct order *waits = made(3, 1, 1);
    order_touch(&orders, waits, 100);
    assert_true(order_keep_early(waits, request(4, 3, 1), &total));
    orders_evict(&orders, 250, 100);
    assert_null(order_find(&orders, &actor, 1));
    assert_non_null(order_find(&orders, &actor, 2));
    assert_non_null(order_find(&orders, &actor, 3));
    orders_evict(&orders, 1000, 100);
    assert_null(order_find(&orders, &actor, 2));
    assert_non_null(order_find(&orders, &actor, 3));
}

static void expired_requests_leave_their_queue(void **state)
{
    struct order *order = made(1, 1, 1);
    struct waiting *w = request(4, 3, 1);

    (void)state;
    assert_true(order_keep_early(order, w, &total));
    assert_null(room_expired(&room, 4900000));
    assert_ptr_equal(room_expired(&room, 5600000), w);
    waiting_free(&room, w);
    assert_int_equal(total, 0);
    assert_null(room_expired(&room, 5600000));
    // After a long sleep: what is due later is not swept with the rest.
    const struct request_record r = {.id = bytes_of("x", 1), .body = bytes_of("", 0)};
    struct waiting *late = waiting_new(&room, &r, 1, 2000000000);
    struct waiting *soon = waiting_new(&room, &r, 1, 1000);
    assert_ptr_equal(room_expired(&room, 1900000000), soon);
    waiting_free(&room, soon);
    assert_null(room_expired(&room, 1900000000));
    assert_ptr_equal(room_expired(&room, 2001000000), late);
}

static void an_image_carries_orders_and_state(void **state)
{
    const struct image_name name = {.position = 7, .kind = 3, .id = bytes_of("abc", 3)};
    const struct bytes content = bytes_of("state", 5);

    (void)state;
    made(11, 5, 4)->epoch = 2;
    (void)made(12, 9, 8);
    struct image *image = image_make(name, &actor.orders, &content);
    struct image *back = image_parse(name, image->data);
    assert_non_null(back);
    assert_int_equal(back->order_count, 2);
    const struct image_order order = image_order_at(back, 0);
    assert_int_equal(order.session, 11);
    assert_int_equal(order.epoch, 2);
    assert_int_equal(order.last, 5);
    assert_int_equal(order.base, 4);
    assert_true(back->has_state && bytes_equal(back->state, content));
    image_free(back);
    for (size_t cut = 0; cut < image->data.size - content.size; cut++) {
        assert_null(image_parse(name, bytes_of(image->data.data, cut)));
    }
    image_free(image);
    image = image_make(name, &actor.orders, NULL);
    assert_false(image->has_state);
    image_free(image);
    assert_null(image_parse(name, bytes_of("\x02\0\0\0\0\0\0\0", 8)));
    assert_null(image_parse(name, bytes_of("\x01\0\0\0\xff\xff\xff\xff", 8)));
    assert_null(image_parse(name, bytes_of("\x01\0\0\0\0\0\0\0extra", 13)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_verdicts, start, end),
        cmocka_unit_test_setup_teardown(early_ones_come_out_in_order, start, end),
        cmocka_unit_test_setup_teardown(a_copy_of_an_early_one_is_merged, start, end),
        cmocka_unit_test_setup_teardown(a_merged_copy_waits_for_the_lower_predecessor, start, end),
        cmocka_unit_test_setup_teardown(idle_records_are_forgotten_used_ones_stay, start, end),
        cmocka_unit_test_setup_teardown(expired_requests_leave_their_queue, start, end),
        cmocka_unit_test_setup_teardown(an_image_carries_orders_and_state, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
