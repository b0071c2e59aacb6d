/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/books/order.h.
 */
#include "node/books/order.h"

#include "node/books/actor.h"
#include "node/books/image.h"
#include "ring/ring.h"
#include "tests/test.h"

static struct room room;
static struct orders orders;
static struct actors actors;
static struct actor *actor;
static size_t total;

static int start(void **state)
{
    (void)state;
    room_init(&room, 0);
    actors_init(&actors);
    actors_set_grid(&actors, RING_GRID_MIN, 1u << RING_GRID_MIN);
    actor = actor_new(&actors, (struct image_name){.kind = 3, .id = bytes_of("abc", 3)});
    orders_init(&orders, &actors.pool);
    total = 0;
    return 0;
}

static int end(void **state)
{
    struct order *order = NULL;

    (void)state;
    room_fini(&room);
    assert_int_equal(total, 0);
    while ((order = order_first(&orders, actor)) != NULL) {
        order_free(&orders, order);
    }
    orders_fini(&orders);
    assert_int_equal(actors.pool.count, 1); // nothing is left but the actor
    actor_discard(&actors, actor);
    actors_fini(&actors);
    return 0;
}

static struct order *made(uint64_t session, uint64_t last, uint64_t base)
{
    struct order *order = order_new(&orders, actor, session);

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

static void on_forgotten(void *context, struct actor *a)
{
    (void)context;
    (void)a;
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
    assert_null(order_keep_early(&orders, order, four, &total));
    assert_null(order_keep_early(&orders, order, five, &total));
    assert_null(order_keep_early(&orders, order, three, &total));
    assert_int_equal(total, 3);
    assert_null(order_take_early(&orders, order));
    order->last = 2;
    assert_ptr_equal(order_take_early(&orders, order), three);
    assert_null(order_take_early(&orders, order));
    order->last = 3;
    assert_ptr_equal(order_take_early(&orders, order), four);
    assert_int_equal(total, 1);
}

/* 1 is still to come, 2 was given up: the copy of 3 sent then names 1. */
static void a_merged_copy_waits_for_the_lower_predecessor(void **state)
{
    struct order *order = made(1, 0, 1);
    struct waiting *first = request(3, 2, 1);
    struct waiting *copy = request(3, 1, 1);

    (void)state;
    assert_null(order_keep_early(&orders, order, first, &total));
    assert_ptr_equal(order_keep_early(&orders, order, copy, &total), first);
    waiting_free(&room, first);
    assert_null(order_take_early(&orders, order));
    order->last = 1;
    assert_ptr_equal(order_take_early(&orders, order), copy);
    assert_int_equal(copy->record.prev, 1);
    waiting_free(&room, copy);
}

static void a_copy_of_an_early_one_is_merged(void **state)
{
    struct order *order = made(1, 1, 1);
    struct waiting *first = request(4, 3, 1);
    struct waiting *copy = request(4, 3, 3);
    struct waiting *late = request(4, 3, 1);

    (void)state;
    first->record.copy = 1;
    first->record.gateway = 5;
    first->record.first = 7;
    copy->record.copy = 2;
    copy->record.version = 9;
    copy->record.gateway = 6;
    copy->record.first = 8;
    late->record.copy = 1;
    late->record.first = 8;
    assert_null(order_keep_early(&orders, order, first, &total));
    assert_ptr_equal(order_keep_early(&orders, order, copy, &total), first);
    waiting_free(&room, first);
    // A forwarded one that was overtaken by its own copy does not take the answer away from it.
    assert_ptr_equal(order_keep_early(&orders, order, late, &total), copy);
    waiting_free(&room, copy);
    assert_int_equal(total, 1);
    assert_int_equal(late->record.base, 3);
    assert_int_equal(late->record.version, 9);
    assert_int_equal(late->record.copy, 2);
    assert_int_equal(late->record.gateway, 6);
    assert_int_equal(late->record.first, 7);
    order->last = 3;
    assert_ptr_equal(order_take_early(&orders, order), late);
}

static void idle_records_are_forgotten_used_ones_stay(void **state)
{
    (void)state;
    order_touch(&orders, made(1, 1, 1), 100000);
    order_touch(&orders, made(2, 1, 1), 200000);
    struct order *waits = made(3, 1, 1);
    order_touch(&orders, waits, 100000);
    assert_null(order_keep_early(&orders, waits, request(4, 3, 1), &total));
    orders_evict(&orders, 250000, 100000, (struct orders_watch){on_forgotten, NULL});
    assert_null(order_find(&orders, actor, 1));
    assert_non_null(order_find(&orders, actor, 2));
    assert_non_null(order_find(&orders, actor, 3));
    orders_evict(&orders, 1000000, 100000, (struct orders_watch){on_forgotten, NULL});
    assert_null(order_find(&orders, actor, 2));
    assert_non_null(order_find(&orders, actor, 3));
}

/* 120 s, as is shipped: of a lane that is in use all that time. */
static void a_record_is_kept_from_its_last_use(void **state)
{
    enum { S = 1000000, KEEP_US = 120 * S };
    struct order *order = made(1, 1, 1);

    (void)state;
    for (uint64_t at_us = S; at_us <= 200 * (uint64_t)S; at_us += S / 2) {
        order_touch(&orders, order, at_us);
        orders_evict(&orders, at_us, KEEP_US, (struct orders_watch){on_forgotten, NULL});
        assert_ptr_equal(order_find(&orders, actor, 1), order);
    }
    orders_evict(&orders, 319 * (uint64_t)S, KEEP_US, (struct orders_watch){on_forgotten, NULL});
    assert_non_null(order_find(&orders, actor, 1));
    orders_evict(&orders, 321 * (uint64_t)S, KEEP_US, (struct orders_watch){on_forgotten, NULL});
    assert_null(order_find(&orders, actor, 1));
}

static void expired_requests_leave_their_queue(void **state)
{
    struct order *order = made(1, 1, 1);
    struct waiting *w = request(4, 3, 1);

    (void)state;
    assert_null(order_keep_early(&orders, order, w, &total));
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

static void save(struct order *order, uint64_t seq, struct bytes body, bool read)
{
    const struct order_answer a = {
        .seq = seq, .fence = seq + 100, .code = ANSWER_OK, .read = read, .body = body};

    order->last = seq > order->last ? seq : order->last;
    order_save(&orders, order, &a, 1000000);
}

/* What is kept of it; false = nothing. */
static bool kept(const struct order *order, uint64_t seq)
{
    struct order_answer a;

    return order_saved(&orders, order, seq, &a);
}

static void assert_kept(const struct order *order, uint64_t seq, struct bytes body)
{
    struct order_answer a;

    assert_true(order_saved(&orders, order, seq, &a));
    assert_int_equal(a.fence, seq + 100);
    assert_true(bytes_equal(a.body, body));
}

static void answers_are_kept_until_their_gateway_is_finished_with_them(void **state)
{
    static const uint8_t large[1000] = "large";
    struct order *order = made(1, 1, 1);

    (void)state;
    save(order, 2, bytes_of("two", 3), false);
    save(order, 4, bytes_of(large, sizeof large), false);
    save(order, 7, bytes_of(NULL, 0), true);
    assert_false(kept(order, 3));
    assert_kept(order, 2, bytes_of("two", 3));
    assert_kept(order, 4, bytes_of(large, sizeof large));
    assert_kept(order, 7, bytes_of(NULL, 0));
    assert_int_equal(orders.saved_count, 3);
    assert_int_equal(orders.large_size, 1000);
    order_set_base(&orders, order, 4);
    assert_false(kept(order, 2));
    assert_true(kept(order, 4));
    order_set_base(&orders, order, 2); // an old copy tells less than is known
    assert_int_equal(order->base, 4);
    order_set_base(&orders, order, 8);
    assert_int_equal(orders.saved_count, 0);
    assert_int_equal(orders.large_size, 0);
    save(order, 6, bytes_of("x", 1), false); // given up while it ran: nobody asks again
    assert_int_equal(orders.saved_count, 0);
}

/* One request after the other takes no memory, however many there are; of another length it does.
 */
static void an_answer_takes_the_memory_of_the_one_before(void **state)
{
    static const uint8_t body[1000] = "body";
    struct order *order = made(1, 0, 1);

    (void)state;
    save(order, 1, bytes_of(body, 64), false);
    const size_t count = actors.pool.count;
    for (uint64_t seq = 2; seq < 10; seq++) {
        order_set_base(&orders, order, seq);
        assert_int_equal(actors.pool.count, count); // it stays for the next
        save(order, seq, bytes_of(body, seq % 2 == 0 ? 64 : seq * 100), false);
        assert_kept(order, seq, bytes_of(body, seq % 2 == 0 ? 64 : seq * 100));
        assert_int_equal(actors.pool.count, count);
    }
    order_set_base(&orders, order, 10);
    save(order, 10, bytes_of("x", 1), false); // it stands in the record
    assert_int_equal(actors.pool.count, count - 2);
    assert_int_equal(orders.saved_count, 1);
    assert_int_equal(orders.large_size, 0);
}

static void saved_answers_are_bounded(void **state)
{
    static uint8_t large[ORDER_ANSWER_MAX + 1];
    struct order *one = made(1, 0, 1);
    struct order *two = made(2, 0, 1);

    (void)state;
    for (uint64_t seq = 1; seq <= ORDER_ANSWERS_MAX + 10; seq++) {
        save(one, seq, bytes_of("x", 1), false);
    }
    assert_int_equal(orders.saved_count, ORDER_ANSWERS_MAX);
    assert_false(kept(one, 10));
    assert_true(kept(one, 11));
    save(two, 1, bytes_of(large, ORDER_ANSWER_MAX + 1), false);
    save(two, 2, bytes_of(large, ORDER_READ_ANSWER_MAX + 1), true);
    assert_int_equal(order_saved_count(&orders, two), 0);
    for (uint64_t seq = 3; seq < 10; seq++) {
        save(two, seq, bytes_of(large, ORDER_ANSWER_MAX), false);
    }
    assert_int_equal(orders.large_size, ORDER_ANSWERS_SIZE_MAX);
    assert_true(kept(two, 6));
    assert_false(kept(two, 5));
    // The node's budget: whose last large one is oldest gives first.
    const struct order_answer a = {.seq = 100, .body = bytes_of(large, 100)};
    order_save(&orders, one, &a, ORDER_ANSWER_MAX);
    assert_int_equal(orders.large_size, 100);
    assert_true(kept(one, 100));
    assert_int_equal(order_saved_count(&orders, two), 0);
}

static void an_image_carries_orders_and_state(void **state)
{
    static const uint8_t large[100] = "large";
    const struct image_name name = {.position = 7, .kind = 3, .id = bytes_of("abc", 3)};
    const struct bytes content = bytes_of("state", 5);
    struct image_order order;
    struct order_answer a;

    (void)state;
    made(11, 5, 4)->epoch = 2;
    struct order *other = made(12, 9, 8);
    save(other, 9, bytes_of("nine", 4), false);
    save(other, 12, bytes_of(large, sizeof large), false);
    (void)made(13, 1, 1);
    struct image *image = image_make(name, &orders, actor, &content);
    struct image *back = image_parse(name, image->data, NULL);
    assert_non_null(back);
    assert_int_equal(back->order_count, 3);
    struct image_walk walk = image_walk(back);
    assert_true(image_next_order(&walk, &order));
    assert_int_equal(order.session, 11);
    assert_int_equal(order.epoch, 2);
    assert_int_equal(order.last, 5);
    assert_int_equal(order.base, 4);
    assert_false(image_next_answer(&walk, &a));
    assert_true(image_next_order(&walk, &order));
    assert_int_equal(order.session, 12);
    assert_int_equal(order.last, 12);
    assert_true(image_next_answer(&walk, &a));
    assert_int_equal(a.seq, 9);
    assert_int_equal(a.fence, 109);
    assert_true(bytes_equal(a.body, bytes_of("nine", 4)));
    assert_true(image_next_order(&walk, &order)); // skips the answer that was not read
    assert_int_equal(order.session, 13);
    assert_false(image_next_order(&walk, &order));
    assert_true(back->has_state && bytes_equal(back->state, content));
    image_free(back);
    for (size_t cut = 0; cut < image->data.size - content.size; cut++) {
        assert_null(image_parse(name, bytes_of(image->data.data, cut), NULL));
    }
    image_free(image);
    image = image_make(name, &orders, actor, NULL);
    assert_false(image->has_state);
    image_free(image);
}

static void what_is_no_image_is_refused(void **state)
{
    const struct image_name name = {.position = 7, .kind = 3, .id = bytes_of("abc", 3)};

    (void)state;
    assert_null(image_parse(name, bytes_of("\x01\0\0\0\0\0\0\0", 8), NULL));
    assert_null(image_parse(name, bytes_of("\x02\0\0\0\xff\xff\xff\xff", 8), NULL));
    assert_null(image_parse(name, bytes_of("\x02\0\0\0\0\0\0\0extra", 13), NULL));
    // An answer of a request that has not run; the same answer twice.
    struct order *order = made(11, 5, 4);
    save(order, 6, bytes_of("x", 1), false);
    save(order, 7, bytes_of("y", 1), false);
    struct image *image = image_make(name, &orders, actor, NULL);
    uint8_t bad[8 + 29 + 2 * 22];
    assert_int_equal(image->data.size, sizeof bad);
    memcpy(bad, image->data.data, sizeof bad);
    bad[8 + 29 + 22] = 8;
    assert_null(image_parse(name, bytes_of(bad, sizeof bad), NULL));
    bad[8 + 29 + 22] = 6;
    assert_null(image_parse(name, bytes_of(bad, sizeof bad), NULL));
    image_free(image);
}

static void an_image_takes_the_newest_answers_as_far_as_there_is_room(void **state)
{
    static uint8_t large[ORDER_ANSWER_MAX];
    const struct image_name name = {.position = 7, .kind = 3, .id = bytes_of("abc", 3)};
    struct image_order order;
    struct order_answer a;

    (void)state;
    for (uint64_t session = 1; session <= 2; session++) {
        struct order *o = made(session, 0, 1);

        for (uint64_t seq = 1; seq <= 3; seq++) {
            save(o, seq, bytes_of(large, sizeof large), false);
        }
    }
    struct image *image = image_make(name, &orders, actor, NULL);
    struct image_walk walk = image_walk(image);
    assert_true(image_next_order(&walk, &order));
    assert_int_equal(order.answer_count, 3);
    assert_true(image_next_order(&walk, &order));
    assert_int_equal(order.last, 3); // what it does not carry still never runs again
    assert_int_equal(order.answer_count, 0);
    assert_false(image_next_answer(&walk, &a));
    image_free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_verdicts, start, end),
        cmocka_unit_test_setup_teardown(early_ones_come_out_in_order, start, end),
        cmocka_unit_test_setup_teardown(a_copy_of_an_early_one_is_merged, start, end),
        cmocka_unit_test_setup_teardown(a_merged_copy_waits_for_the_lower_predecessor, start, end),
        cmocka_unit_test_setup_teardown(a_record_is_kept_from_its_last_use, start, end),
        cmocka_unit_test_setup_teardown(idle_records_are_forgotten_used_ones_stay, start, end),
        cmocka_unit_test_setup_teardown(expired_requests_leave_their_queue, start, end),
        cmocka_unit_test_setup_teardown(an_image_carries_orders_and_state, start, end),
        cmocka_unit_test_setup_teardown(
            answers_are_kept_until_their_gateway_is_finished_with_them, start, end),
        cmocka_unit_test_setup_teardown(an_answer_takes_the_memory_of_the_one_before, start, end),
        cmocka_unit_test_setup_teardown(saved_answers_are_bounded, start, end),
        cmocka_unit_test_setup_teardown(what_is_no_image_is_refused, start, end),
        cmocka_unit_test_setup_teardown(
            an_image_takes_the_newest_answers_as_far_as_there_is_room, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
