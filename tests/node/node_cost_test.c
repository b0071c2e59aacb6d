/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request costs inside a node, in counts that no machine changes: memory
 * allocated, hand-overs, wake-ups, instructions. The node is bench/node_mill.h's, driven in
 * batches as the shell does.
 */
#include "tests/test.h"

#include "bench/node_mill.h"
#include "stream/sendlog.h"
#include "tests/allocations.h"
#include "tests/steps.h"
#include "wire/stream.h"

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

/* In the build for tests; compiled as one (make LTO=1) it is less. */
static void check_instructions(uint16_t kind, long most)
{
    long frame = 0;

    steps_count(a_frame, &kind, &frame, 1);
    assert_in_range(frame / STEPPED, 300, most);
}

static void a_command_of_a_key_takes_few_instructions(void **state)
{
    (void)state;
    check_instructions(MILL_KV, 3300);
}

static void an_echo_takes_few_instructions(void **state)
{
    (void)state;
    check_instructions(MILL_ECHO, 2400);
}

/* ---- by a stream */

static uint64_t rids;
static uint64_t acked;

static void put_head(struct buffer *out, enum stream_frame type, const struct stream_head *head)
{
    stream_head_store(buffer_reserve(out, STREAM_HEADER_SIZE), type, head);
    out->size += STREAM_HEADER_SIZE;
}

/* As mill_make(), but one frame of a stream. */
static void make_stream_frame(struct mill *m, uint16_t kind, size_t count)
{
    struct buffer records = {0};

    mill_make(m, kind, count);
    buffer_put(&records, m->frame.data, m->frame.size);
    struct reader in = {.at = records.data, .left = records.size};
    buffer_clear(&m->frame);
    put_head(&m->frame,
             STREAM_REQUEST,
             &(struct stream_head){.from = MILL_GATEWAY,
                                   .to = 100,
                                   .first = rids + 1,
                                   .ack = acked,
                                   .version = MILL_VERSION});
    for (size_t i = 0; i < count; i++) {
        struct request_record r;

        assert_int_equal(request_get(&in, &r), ERR_OK);
        const struct stream_request next = {.rid = ++rids,
                                            .session = r.session,
                                            .ttl_ms = r.ttl_ms,
                                            .kind = r.kind,
                                            .flags = r.flags,
                                            .id = r.id,
                                            .body = r.body};
        stream_request_store(buffer_reserve(&m->frame, stream_request_size(&next)), &next);
        m->frame.size += stream_request_size(&next);
    }
    stream_frame_end(m->frame.data, m->frame.size, count);
    buffer_fini(&records);
}

__attribute__((noinline)) static void feed_frame(struct mill *m)
{
    const uint8_t *data = m->frame.data;
    const struct frame frame = {
        .type = (enum frame_type)data[4],
        .count = load_u16(data + 6),
        .body = bytes_of(data + FRAME_HEADER_SIZE, m->frame.size - FRAME_HEADER_SIZE)};

    local_node_frame(&m->node, MILL_GATEWAY, &frame);
}

/* The network takes what there is; returns how many answers. */
static size_t pour(struct mill *m)
{
    uint64_t peer = 0;
    struct sendlog *log = host_unsent(m->node.host, &peer);
    size_t count = 0;
    struct bytes out;

    while (log != NULL && (out = sendlog_unsent(log)).size > 0) {
        count += out.data[4] == STREAM_ANSWER ? load_u16(out.data + 6) : 0; // or it is an ACK
        sendlog_sent(log, load_u32(out.data));
    }
    acked += count;
    return count;
}

/* All actors live, and a stream has begun. */
static void open_stream(struct mill *m, uint16_t kind)
{
    rids = acked = 0;
    mill_open_inline(m, ACTORS, 1);
    mill_warm(m, kind, FRAME);
    buffer_clear(&m->frame);
    put_head(&m->frame,
             STREAM_BEGIN,
             &(struct stream_head){.from = MILL_GATEWAY, .to = 100, .first = 1});
    feed_frame(m);
    for (size_t i = 0; i < ROUNDS; i++) {
        make_stream_frame(m, kind, FRAME);
        feed_frame(m);
        assert_int_equal(pour(m), FRAME);
    }
}

static void a_request_of_a_stream_allocates_nothing(void **state)
{
    (void)state;
    for (int k = MILL_KV; k <= MILL_ECHO; k++) {
        struct mill m;

        open_stream(&m, (uint16_t)k);
        allocations = 0;
        for (int i = 0; i < ROUNDS; i++) {
            make_stream_frame(&m, (uint16_t)k, FRAME);
            allocations_counted = true;
            feed_frame(&m);
            const size_t count = pour(&m);
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
    make_stream_frame(&m, kind, STEPPED);
    steps_begin();
    feed_frame(&m);
    (void)pour(&m);
    steps_next();
}

static void a_request_of_a_stream_takes_few_instructions(void **state)
{
    uint16_t kind = MILL_ECHO;
    long frame = 0;

    (void)state;
    steps_count(a_stream_frame, &kind, &frame, 1);
    assert_in_range(frame / STEPPED, 300, 2100);
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
        cmocka_unit_test(a_request_of_a_stream_allocates_nothing),
        cmocka_unit_test(a_request_of_a_stream_takes_few_instructions),
        cmocka_unit_test(a_frame_is_one_hand_over_there_and_one_wake_up_back),
        cmocka_unit_test(who_has_not_taken_all_is_not_woken_again),
        cmocka_unit_test(completions_come_in_order_however_many_they_are),
        cmocka_unit_test(a_call_comes_with_what_it_borrows),
        cmocka_unit_test(one_thread_completes_while_another_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
