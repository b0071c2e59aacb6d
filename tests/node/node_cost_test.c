/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request costs inside a node, in counts that no machine changes: memory
 * allocated, hand-overs, wake-ups, instructions. The node is bench/node_mill.h's, driven in
 * batches as the shell does.
 */
#include "tests/test.h"

#include "bench/node_mill.h"
#include "tests/allocations.h"
#include "tests/steps.h"

#include <pthread.h>

enum { ACTORS = 601, FRAME = 64, ROUNDS = 100, STEPPED = 16 };

/* ---- cases */

static void no_request_allocates(uint16_t kind)
{
    struct mill m;

    mill_open(&m, ACTORS, 1);
    mill_warm(&m, kind, FRAME);
    allocations = 0;
    for (int i = 0; i < ROUNDS; i++) {
        mill_make(&m, kind, FRAME);
        buffer_clear(&m.answers);
        m.answer_count = 0;
        allocations_counted = true;
        mill_admit(&m);
        mill_run(&m);
        mill_answer(&m);
        allocations_counted = false;
        assert_int_equal(m.answer_count, FRAME);
    }
    assert_int_equal(allocations, 0);
    mill_close(&m);
}

/* Nor does one that is served at once, which all of these are, of however many sessions. */
static void a_served_request_allocates_nothing(void **state)
{
    (void)state;
    for (int k = MILL_KV; k <= MILL_ECHO; k++) {
        const uint16_t kind = (uint16_t)k;
        struct mill m;

        mill_open_inline(&m, ACTORS, 3);
        for (int i = 0; i < 10; i++) { // until each session has asked each of them
            mill_warm(&m, kind, FRAME);
        }
        allocations = 0;
        m.served = 0;
        const size_t completed = m.node.completed;
        for (int i = 0; i < ROUNDS; i++) {
            mill_make(&m, kind, FRAME);
            buffer_clear(&m.answers);
            m.answer_count = 0;
            allocations_counted = true;
            mill_serve(&m);
            allocations_counted = false;
            assert_int_equal(m.answer_count, FRAME);
        }
        assert_int_equal(allocations, 0);
        assert_int_equal(m.served, ROUNDS * FRAME);
        assert_int_equal(m.node.completed, completed); // nobody was woken
        mill_close(&m);
    }
}

static void a_request_of_a_key_allocates_nothing(void **state)
{
    (void)state;
    no_request_allocates(MILL_KV);
}

static void an_echo_allocates_nothing(void **state)
{
    (void)state;
    no_request_allocates(MILL_ECHO);
}

/* A frame that is served at once. */
static void a_frame(void *context)
{
    const uint16_t kind = *(const uint16_t *)context;
    static struct mill m;

    mill_open_inline(&m, ACTORS, 3);
    for (int i = 0; i < 10; i++) {
        mill_warm(&m, kind, FRAME);
    }
    mill_make(&m, kind, STEPPED);
    buffer_clear(&m.answers);
    steps_begin();
    mill_serve(&m);
    steps_next();
}

/* Where there is one the requests of a frame are on their way to their actors; then their answers
 * come. */
static void a_slow_frame(void *context)
{
    static struct mill m;
    struct request_record r[HOST_PREFETCH_MAX];
    uint64_t position[HOST_PREFETCH_MAX];
    const struct host_server server = {.effects = &m.node.effects};
    struct host_event event = {.type = HOST_REQUEST, .peer = MILL_GATEWAY};

    (void)context;
    mill_open(&m, ACTORS, 3);
    for (int i = 0; i < 10; i++) {
        mill_warm(&m, MILL_SLOW, FRAME);
    }
    mill_make(&m, MILL_SLOW, STEPPED);
    struct reader in = {.at = m.frame.data, .left = m.frame.size};
    m.answer_count = 0;
    steps_begin();
    const size_t count = mill_decode(&m, &in, r, position);
    event.now_us = m.node.now_us;
    ASSERT(host_serve(m.node.host, &event, r, position, count, &server) == count);
    for (size_t i = 0; i < count; i++) {
        local_node_perform(&m.node, &m.node.effects.item[i]);
    }
    host_effects_clear(&m.node.effects);
    steps_next();
    worker_send(m.node.worker);
    mill_run(&m);
    steps_next();
    mill_answer(&m);
    ASSERT(m.answer_count == STEPPED);
    steps_next();
}

/* In the build for tests; compiled as one (make LTO=1) it is less. */
static void check_instructions(uint16_t kind, long most)
{
    long frame = 0;

    steps_count(a_frame, &kind, &frame, 1);
    (void)printf("instructions of a request by record: %ld\n", frame / STEPPED);
    assert_in_range(frame / STEPPED, 300, most);
}

static void a_command_of_a_key_takes_few_instructions(void **state)
{
    (void)state;
    check_instructions(MILL_KV, 2360);
}

static void an_echo_takes_few_instructions(void **state)
{
    (void)state;
    check_instructions(MILL_ECHO, 1760);
}

static void what_takes_its_time_takes_few_instructions_beside_it(void **state)
{
    enum { TAKEN, RUN, ANSWERED, PARTS };
    long part[PARTS] = {0};

    (void)state;
    steps_count(a_slow_frame, NULL, part, PARTS);
    (void)printf("instructions of a request: taking %ld, running %ld, answering %ld\n",
                 part[TAKEN] / STEPPED,
                 part[RUN] / STEPPED,
                 part[ANSWERED] / STEPPED);
    assert_in_range(part[TAKEN] / STEPPED, 300, 1740);
    assert_in_range(part[ANSWERED] / STEPPED, 300, 1660);
}

/* ---- by a stream */

/* All actors live, and a stream has begun. */
static void open_stream(struct mill *m, uint16_t kind)
{
    mill_open_inline(m, ACTORS, 1);
    mill_warm(m, kind, FRAME);
    mill_begin_stream(m, kind, FRAME);
}

static void a_request_of_a_stream_allocates_nothing(void **state)
{
    (void)state;
    for (int k = MILL_KV; k <= MILL_ECHO; k++) {
        struct mill m;

        open_stream(&m, (uint16_t)k);
        allocations = 0;
        for (int i = 0; i < ROUNDS; i++) {
            mill_make_frame(&m, (uint16_t)k, FRAME);
            allocations_counted = true;
            mill_feed(&m);
            const size_t count = mill_pour(&m);
            allocations_counted = false;
            assert_int_equal(count, FRAME);
        }
        assert_int_equal(allocations, 0);
        mill_close(&m);
    }
}

static void a_stream_frame(void *context)
{
    const uint16_t kind = *(const uint16_t *)context;
    static struct mill m;

    open_stream(&m, kind);
    mill_make_frame(&m, kind, STEPPED);
    steps_begin();
    mill_feed(&m);
    (void)mill_pour(&m);
    steps_next();
}

/* In the build for tests, as above. */
static void check_stream(uint16_t kind, long most)
{
    long frame = 0;

    steps_count(a_stream_frame, &kind, &frame, 1);
    (void)printf("instructions of a request by stream: %ld\n", frame / STEPPED);
    assert_in_range(frame / STEPPED, 300, most);
}

static void a_command_of_a_stream_takes_few_instructions(void **state)
{
    (void)state;
    check_stream(MILL_KV, 1110);
}

static void an_echo_of_a_stream_takes_few_instructions(void **state)
{
    (void)state;
    check_stream(MILL_ECHO, 940);
}

static void a_frame_is_one_hand_over_there_and_one_wake_up_back(void **state)
{
    struct mill m;

    (void)state;
    mill_open(&m, ACTORS, 1);
    mill_warm(&m, MILL_KV, FRAME);
    for (int i = 0; i < ROUNDS; i++) {
        const size_t completed = m.node.completed;

        mill_make(&m, MILL_KV, FRAME);
        mill_admit(&m);
        mill_run(&m);
        assert_int_equal(m.node.completed, completed + 1);
        mill_answer(&m);
        mill_run(&m); // Nothing is left to do, and nobody is woken for it.
        assert_int_equal(m.node.completed, completed + 1);
    }
    mill_close(&m);
}

static void who_has_not_taken_all_is_not_woken_again(void **state)
{
    struct mill m;

    (void)state;
    mill_open(&m, ACTORS, 1);
    mill_warm(&m, MILL_KV, FRAME);
    const size_t completed = m.node.completed;
    for (int i = 0; i < 5; i++) {
        mill_make(&m, MILL_KV, FRAME);
        mill_admit(&m);
        mill_run(&m);
    }
    assert_int_equal(m.node.completed, completed + 1);
    m.answer_count = 0;
    mill_answer(&m);
    assert_int_equal(m.answer_count, 5 * FRAME);
    mill_make(&m, MILL_KV, 1);
    mill_admit(&m);
    mill_run(&m);
    assert_int_equal(m.node.completed, completed + 2);
    mill_close(&m);
}

/* More than a chunk of completions, large ones between: all come, in order. */
static void completions_come_in_order_however_many_they_are(void **state)
{
    enum { COUNT = 4 * CHUNK_COMPLETIONS, EVERY = 100, LARGE = 100000 };
    struct completion_queue q;
    struct buffer large = {0};
    uint64_t next = 0;

    (void)state;
    completion_queue_init(&q);
    memset(buffer_reserve(&large, LARGE), 'x', LARGE);
    for (int round = 0; round < 3; round++) {
        assert_null(completion_queue_take(&q));
        for (uint64_t i = 0; i < COUNT; i++) {
            const struct completion c = {.verb = VERB_RUN,
                                         .ticket = next + i,
                                         .head = bytes_of(&i, sizeof i),
                                         .bytes =
                                             bytes_of(large.data, i % EVERY == 0 ? LARGE : i % 50)};

            completion_queue_put(&q, &c);
        }
        for (uint64_t i = 0; i < COUNT; i++) {
            const struct completion *c = completion_queue_take(&q);

            assert_non_null(c);
            assert_int_equal(c->ticket, next++);
            assert_memory_equal(c->head.data, &i, sizeof i);
            assert_int_equal(c->bytes.size, i % EVERY == 0 ? LARGE : i % 50);
            assert_ptr_not_equal(c->bytes.data, large.data);
        }
    }
    assert_null(completion_queue_take(&q));
    completion_queue_fini(&q);
    buffer_fini(&large);
}

/* Behind one whose size is odd: a call comes with all that it borrows. */
static void a_call_comes_with_what_it_borrows(void **state)
{
    char from[] = "ada";
    char id[] = "chess/1";
    char payload[] = "move e4";
    const struct call call = {.number = 7,
                              .from = bytes_of(from, strlen(from)),
                              .id = bytes_of(id, strlen(id)),
                              .payload = bytes_of(payload, strlen(payload))};
    const struct completion odd = {.verb = VERB_RUN, .bytes = bytes_of("x", 1)};
    const struct completion asks = {.verb = VERB_CALL, .call = &call};
    struct completion_queue q;

    (void)state;
    completion_queue_init(&q);
    completion_queue_put(&q, &odd);
    completion_queue_put(&q, &asks);
    memset(from, '-', sizeof from);
    memset(id, '-', sizeof id);
    memset(payload, '-', sizeof payload);
    (void)completion_queue_take(&q);
    const struct completion *c = completion_queue_take(&q);
    assert_int_equal(c->verb, VERB_CALL);
    assert_int_equal(c->call->number, 7);
    assert_true(bytes_equal(c->call->from, bytes_of("ada", 3)));
    assert_true(bytes_equal(c->call->id, bytes_of("chess/1", 7)));
    assert_true(bytes_equal(c->call->payload, bytes_of("move e4", 7)));
    completion_queue_fini(&q);
}

enum { MANY = 200000 };

static void *put_many(void *argument)
{
    for (uint64_t i = 0; i < MANY; i++) {
        const struct completion c = {
            .verb = VERB_RUN, .ticket = i, .bytes = bytes_of(&i, sizeof i)};

        completion_queue_put(argument, &c);
    }
    return NULL;
}

static void one_thread_completes_while_another_takes(void **state)
{
    struct completion_queue q;
    pthread_t thread;
    uint64_t next = 0;

    (void)state;
    completion_queue_init(&q);
    assert_int_equal(pthread_create(&thread, NULL, put_many, &q), 0);
    while (next < MANY) {
        const struct completion *c = completion_queue_take(&q);

        if (c != NULL) {
            assert_int_equal(c->ticket, next);
            assert_memory_equal(c->bytes.data, &next, sizeof next);
            next++;
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_null(completion_queue_take(&q));
    completion_queue_fini(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_of_a_key_allocates_nothing),
        cmocka_unit_test(an_echo_allocates_nothing),
        cmocka_unit_test(a_served_request_allocates_nothing),
        cmocka_unit_test(a_command_of_a_key_takes_few_instructions),
        cmocka_unit_test(an_echo_takes_few_instructions),
        cmocka_unit_test(what_takes_its_time_takes_few_instructions_beside_it),
        cmocka_unit_test(a_request_of_a_stream_allocates_nothing),
        cmocka_unit_test(a_command_of_a_stream_takes_few_instructions),
        cmocka_unit_test(an_echo_of_a_stream_takes_few_instructions),
        cmocka_unit_test(a_frame_is_one_hand_over_there_and_one_wake_up_back),
        cmocka_unit_test(who_has_not_taken_all_is_not_woken_again),
        cmocka_unit_test(completions_come_in_order_however_many_they_are),
        cmocka_unit_test(a_call_comes_with_what_it_borrows),
        cmocka_unit_test(one_thread_completes_while_another_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
