/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of wire/stream.h: these bytes, and every damaged frame refused.
 */
#include "wire/stream.h"

#include "base/mem.h"

#include "tests/hex.h"
#include "tests/test.h"

static const struct stream_head head = {
    .from = 0x1112131415161718u, .to = 2, .first = 3, .ack = 4, .version = 5};

static const uint8_t chain[16] = {6, [8] = 7};

static struct stream_request whole_request(void)
{
    return (struct stream_request){.rid = 0x0102030405060708u,
                                   .session = 9,
                                   .hash = 0x8877665544332211u,
                                   .ttl_ms = 1500,
                                   .kind = 515,
                                   .flags = REQUEST_COMMAND | REQUEST_IDEMPOTENT,
                                   .hops = 1,
                                   .chain = bytes_of(chain, sizeof chain),
                                   .owned = {.seq = 10, .base = 8, .first = 60, .epoch = 2},
                                   .id = text("ada"),
                                   .body = text("hello")};
}

/* A frame whose header is complete; borrows from `out`. */
static struct frame frame_of(struct bytes out)
{
    return (struct frame){.type = (enum frame_type)out.data[4],
                          .flags = out.data[5],
                          .count = load_u16(out.data + 6),
                          .body =
                              bytes_of(out.data + FRAME_HEADER_SIZE, out.size - FRAME_HEADER_SIZE)};
}

static void a_header_has_these_bytes(void **state)
{
    uint8_t bytes[STREAM_HEADER_SIZE];
    struct stream_head back;
    struct reader rest;

    (void)state;
    stream_head_store(bytes, STREAM_JOIN, &head);
    assert_hex(bytes_of(bytes, sizeof bytes),
               "30000000 1b 00 0100 1817161514131211 0200000000000000 0300000000000000"
               "0400000000000000 0500000000000000");
    const struct frame f = frame_of(bytes_of(bytes, sizeof bytes));
    assert_int_equal(stream_head_get(&f, &back, &rest), ERR_OK);
    assert_memory_equal(&back, &head, sizeof head);
    assert_int_equal(rest.left, 0);
    stream_frame_end(bytes, 1000, 7);
    assert_hex(bytes_of(bytes, FRAME_HEADER_SIZE), "e8030000 1b 00 0700");
}

static enum err head_back(struct frame f, size_t size)
{
    struct stream_head back;
    struct reader rest;

    f.body.size = size;
    return stream_head_get(&f, &back, &rest);
}

static void a_damaged_header_is_refused(void **state)
{
    static const struct {
        enum stream_frame type;
        struct stream_head head;
        uint16_t count;
        enum err want;
    } cases[] = {
        {STREAM_JOIN, {1, 2, 3, 4, 5}, 1, ERR_OK},
        {STREAM_JOIN, {0, 2, 3, 4, 5}, 1, ERR_CORRUPT}, // nobody's
        {STREAM_JOIN, {1, 0, 3, 4, 5}, 1, ERR_CORRUPT}, // to nobody
        {STREAM_JOIN, {1, 2, 0, 4, 5}, 1, ERR_CORRUPT}, // without an epoch
        {STREAM_JOIN, {1, 2, 3, 4, 5}, 2, ERR_CORRUPT}, // two of them
        {STREAM_BEGIN, {1, 2, 3, 0, 5}, 1, ERR_OK},
        {STREAM_BEGIN, {1, 2, 3, 4, 5}, 1, ERR_CORRUPT}, // it cannot have anything yet
        {STREAM_GONE, {1, 2, 3, 4, 5}, 1, ERR_CORRUPT},
        {STREAM_ACK, {1, 2, 0, 4, 5}, 1, ERR_OK},
        {STREAM_ACK, {1, 2, 3, 4, 5}, 1, ERR_CORRUPT}, // it has no record
        {STREAM_REQUEST, {1, 2, 3, 4, 5}, 7, ERR_OK},
        {STREAM_REQUEST, {1, 2, 0, 4, 5}, 7, ERR_CORRUPT},          // numbers begin with 1, …
        {STREAM_REQUEST, {1, 2, UINT64_MAX, 4, 5}, 7, ERR_CORRUPT}, // … and do not overflow
        {(enum stream_frame)FRAME_PUSH, {1, 2, 3, 4, 5}, 1, ERR_CORRUPT}, // another type
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[STREAM_HEADER_SIZE];

        stream_head_store(bytes, cases[i].type, &cases[i].head);
        (void)store_u16(bytes + 6, cases[i].count);
        const struct frame f = frame_of(bytes_of(bytes, sizeof bytes));
        assert_int_equal(head_back(f, f.body.size), cases[i].want);
        for (size_t size = 0; size < f.body.size; size++) {
            assert_int_equal(head_back(f, size), ERR_CORRUPT);
        }
    }
    // Bytes behind one that has no records.
    uint8_t bytes[STREAM_HEADER_SIZE + 1] = {0};
    stream_head_store(bytes, STREAM_JOINED, &head);
    const struct frame f = frame_of(bytes_of(bytes, sizeof bytes));
    assert_int_equal(head_back(f, f.body.size), ERR_CORRUPT);
}

static void a_request_has_these_bytes(void **state)
{
    const struct stream_request r = whole_request();
    const size_t size = stream_request_size(&r);
    uint8_t *bytes = mem_new(1, size);
    struct stream_request back = {0};

    (void)state;
    stream_request_store(bytes, &r);
    assert_hex(bytes_of(bytes, size),
               "0807060504030201 0900000000000000 dc050000 05000000 0302 05 01 01 02 03"
               "1122334455667788"
               "0a00000000000000 0800000000000000 3c00000000000000 02000000"
               "0600000000000000 0700000000000000 616461 68656c6c6f");
    struct reader in = {.at = bytes, .left = size};
    assert_int_equal(stream_request_get(&in, &back), ERR_OK);
    assert_int_equal(in.left, 0);
    assert_true(back.rid == r.rid && back.session == r.session && back.ttl_ms == r.ttl_ms &&
                back.kind == r.kind && back.flags == r.flags && back.hops == r.hops &&
                back.hash == r.hash);
    assert_true(back.owned.seq == r.owned.seq && back.owned.base == r.owned.base &&
                back.owned.first == r.owned.first && back.owned.epoch == r.owned.epoch);
    assert_true(bytes_equal(back.chain, r.chain) && bytes_equal(back.id, r.id) &&
                bytes_equal(back.body, r.body));
    for (size_t cut = 0; cut < size; cut++) {
        in = (struct reader){.at = bytes, .left = cut};
        assert_int_equal(stream_request_get(&in, &back), ERR_CORRUPT);
    }
    stream_request_rename(bytes, 1, 2);
    assert_hex(bytes_of(bytes, 20), "0100000000000000 0900000000000000 02000000");
    mem_free(bytes);
}

static void one_that_is_asked_again_may_have_another_s_name(void **state)
{
    struct stream_request r = {.rid = 1, .again = true, .id = text("k")};
    uint8_t bytes[64];
    struct reader in = {.at = bytes, .left = 40};
    struct stream_request back = {0};

    (void)state;
    assert_int_equal(stream_request_size(&r), 40);
    stream_request_store(bytes, &r);
    assert_hex(bytes_of(bytes + 24, 16), "0000 00 04 00 00 01 0000000000000000 6b");
    assert_int_equal(stream_request_get(&in, &back), ERR_OK);
    assert_true(back.again && !back.plain && back.name.asker == 0 && back.owned.seq == 0);
    r.again = false;
    stream_request_store(bytes, &r);
    stream_request_again(bytes);
    assert_hex(bytes_of(bytes + 24, 16), "0000 00 04 00 00 01 0000000000000000 6b");
    r.name = (struct request_name){2, 3};
    assert_int_equal(stream_request_size(&r), 56);
    stream_request_store(bytes, &r);
    assert_hex(bytes_of(bytes + 24, 32),
               "0000 00 02 00 00 01 0000000000000000 0200000000000000 0300000000000000 6b");
    in = (struct reader){.at = bytes, .left = 56};
    assert_int_equal(stream_request_get(&in, &back), ERR_OK);
    assert_true(!back.again && back.name.asker == 2 && back.name.number == 3);
    (void)store_u64(bytes + STREAM_REQUEST_SIZE, 0); // nobody's
    in = (struct reader){.at = bytes, .left = 56};
    assert_int_equal(stream_request_get(&in, &back), ERR_CORRUPT);
}

static void a_plain_request_takes_39_bytes_more_than_it_says(void **state)
{
    const struct stream_request r = {.rid = 1, .id = text("k")};
    uint8_t bytes[40];
    struct reader in = {.at = bytes, .left = sizeof bytes};
    struct stream_request back = {0};

    (void)state;
    assert_int_equal(stream_request_size(&r), sizeof bytes);
    stream_request_store(bytes, &r);
    assert_int_equal(stream_request_get(&in, &back), ERR_OK);
    assert_true(back.owned.seq == 0 && back.chain.size == 0 && back.body.size == 0);
}

/* The byte at `at` becomes `value`: then it is refused. */
static void refused_request(size_t at, uint8_t value)
{
    const struct stream_request r = whole_request();
    uint8_t bytes[128] = {0};
    struct reader in = {.at = bytes, .left = stream_request_size(&r)};
    struct stream_request back = {0};

    stream_request_store(bytes, &r);
    bytes[at] = value;
    assert_int_equal(stream_request_get(&in, &back), ERR_CORRUPT);
}

static void a_damaged_request_is_refused(void **state)
{
    const struct stream_request r = {.rid = 1, .id = text("k")};
    uint8_t bytes[40];
    struct reader in = {.at = bytes, .left = sizeof bytes};
    struct stream_request back = {0};

    (void)state;
    stream_request_store(bytes, &r);
    bytes[0] = 0; // no name
    assert_int_equal(stream_request_get(&in, &back), ERR_CORRUPT);
    refused_request(23, 0x80);           // a body of 2 GiB
    refused_request(22, 0xff);           // one of 16 MiB
    refused_request(26, REQUEST_HELD);   // flags of records alone
    refused_request(26, REQUEST_TRACED); // "hello" does not end with a context
    refused_request(26, REQUEST_CALL);   // nor begin with who calls
    refused_request(27, 9);              // a flag of a later version
    refused_request(27, 3);              // its name would be in its chain, and is too much
    refused_request(28, STREAM_HOPS_MAX + 1);
    refused_request(29, RECORD_CHAIN_MAX + 1);
    refused_request(30, 0); // no id
    refused_request(39, 0); // seq 0, though it is there
}

static void a_traced_request_is_not_plain(void **state)
{
    uint8_t body[2 + TRACE_CONTEXT_SIZE] = "hi";
    struct stream_request r = {.rid = 1, .id = text("k"), .body = text("hi")};
    uint8_t bytes[128];
    struct stream_request back = {0};
    struct trace_context c = {.flags = TRACE_SAMPLED};

    (void)state;
    memset(c.trace, 1, sizeof c.trace);
    memset(c.span, 2, sizeof c.span);
    trace_context_store(body + 2, &c);
    r.body = bytes_of(body, sizeof body);
    r.flags = REQUEST_TRACED;
    assert_int_equal(stream_request_size(&r), STREAM_REQUEST_SIZE + 1 + sizeof body);
    stream_request_store(bytes, &r);
    struct reader in = {.at = bytes, .left = stream_request_size(&r)};
    assert_int_equal(stream_request_get(&in, &back), ERR_OK);
    assert_false(back.plain);
    assert_int_equal(back.flags, REQUEST_TRACED);
    assert_true(bytes_equal(back.body, r.body));
    bytes[STREAM_REQUEST_SIZE + 3 + TRACE_CONTEXT_SIZE - 1] = 0; // it is not sampled
    in = (struct reader){.at = bytes, .left = stream_request_size(&r)};
    assert_int_equal(stream_request_get(&in, &back), ERR_CORRUPT);
}

static void an_answer_has_these_bytes(void **state)
{
    const struct stream_answer a = {
        .rid = 1, .token = 2, .aux = 3, .code = ANSWER_APP_ERROR, .body = text("no")};
    const struct stream_answer left = {.aux = 7, .code = STREAM_CODE_LEFT};
    uint8_t bytes[STREAM_ANSWER_SIZE + 2];
    struct stream_answer back;

    (void)state;
    assert_int_equal(stream_answer_size(&a), sizeof bytes);
    stream_answer_store(bytes, &a);
    assert_hex(bytes_of(bytes, sizeof bytes),
               "0100000000000000 0200000000000000 0300000000000000 01 02000000 6e6f");
    struct reader in = {.at = bytes, .left = sizeof bytes};
    assert_int_equal(stream_answer_get(&in, &back), ERR_OK);
    assert_true(back.rid == 1 && back.token == 2 && back.aux == 3 && back.code == a.code &&
                bytes_equal(back.body, a.body));
    for (size_t cut = 0; cut < sizeof bytes; cut++) {
        in = (struct reader){.at = bytes, .left = cut};
        assert_int_equal(stream_answer_get(&in, &back), ERR_CORRUPT);
    }
    bytes[24] = STREAM_CODE_LAST + 1;
    in = (struct reader){.at = bytes, .left = sizeof bytes};
    assert_int_equal(stream_answer_get(&in, &back), ERR_CORRUPT);
    // LEFT is nobody's, and all else is somebody's.
    stream_answer_store(bytes, &left);
    in = (struct reader){.at = bytes, .left = STREAM_ANSWER_SIZE};
    assert_int_equal(stream_answer_get(&in, &back), ERR_OK);
    bytes[0] = 1;
    in = (struct reader){.at = bytes, .left = STREAM_ANSWER_SIZE};
    assert_int_equal(stream_answer_get(&in, &back), ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_has_these_bytes),
        cmocka_unit_test(a_damaged_header_is_refused),
        cmocka_unit_test(a_request_has_these_bytes),
        cmocka_unit_test(one_that_is_asked_again_may_have_another_s_name),
        cmocka_unit_test(a_plain_request_takes_39_bytes_more_than_it_says),
        cmocka_unit_test(a_damaged_request_is_refused),
        cmocka_unit_test(a_traced_request_is_not_plain),
        cmocka_unit_test(an_answer_has_these_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
