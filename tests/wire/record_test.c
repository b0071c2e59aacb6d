/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of wire/record.h: these bytes, and every damaged record refused.
 */
#include "wire/record.h"

#include "base/crc.h"
#include "base/mem.h"

#include "tests/hex.h"
#include "tests/test.h"

#include <string.h>

static const struct request_record request = {
    .gateway = 0x1112131415161718u,
    .session = 2,
    .session_epoch = 3,
    .seq = 4,
    .prev = 3,
    .base = 6,
    .first = 7,
    .version = 0xf1f2f3f4f5f6f7f8u,
    .ttl_ms = 1500,
    .kind = 0x0102,
    .hops = 1,
    .copy = 2,
    .flags = REQUEST_COMMAND | REQUEST_HELD,
    .chain_count = 2,
    .chain = {0xaa, 0xbb},
    .id = {(const uint8_t *)"alice", 5},
    .body = {(const uint8_t *)"\0hi", 3},
};

static const struct answer_record answer = {
    .gateway = 1,
    .session = 2,
    .seq = 3,
    .fence = 4,
    .version = 5,
    .aux = 6,
    .code = ANSWER_BUSY,
    .copy = 1,
    .body = {(const uint8_t *)"ok", 2},
};

static const struct state_record chunk = {
    .txn = 57,
    .source = 0x900000001u,
    .index = 7,
    .kind = 1,
    .total = 100,
    .offset = 10,
    .crc = 0xe3069283u,
    .id = {(const uint8_t *)"bob", 3},
    .chunk = {(const uint8_t *)"123456789", 9},
};

static const struct state_ack_record ack = {.txn = 57, .source = 9, .next = 8, .refused = 1};

/* One decoder of each kind, so that the hostile cases run over all of them. */
typedef enum err (*decoder)(struct bytes in, size_t *left);

static enum err decode_request(struct bytes in, size_t *left)
{
    struct reader r = {.at = in.data, .left = in.size};
    struct request_record out;
    const enum err e = request_get(&r, &out);

    *left = r.left;
    return e;
}

static enum err decode_answer(struct bytes in, size_t *left)
{
    struct reader r = {.at = in.data, .left = in.size};
    struct answer_record out;
    const enum err e = answer_get(&r, &out);

    *left = r.left;
    return e;
}

static enum err decode_state(struct bytes in, size_t *left)
{
    struct reader r = {.at = in.data, .left = in.size};
    struct state_record out;
    const enum err e = state_get(&r, &out);

    *left = r.left;
    return e;
}

static enum err decode_state_ack(struct bytes in, size_t *left)
{
    struct reader r = {.at = in.data, .left = in.size};
    struct state_ack_record out;
    const enum err e = state_ack_get(&r, &out);

    *left = r.left;
    return e;
}

/* Every prefix of one encoded record must be refused, the whole taken to its last byte. */
static void refuses_every_prefix(const struct buffer *whole, decoder decode)
{
    size_t left;

    for (size_t cut = 0; cut < whole->size; cut++) {
        uint8_t *exact = mem_copy(whole->data, cut);

        assert_int_equal(decode(bytes_of(exact, cut), &left), ERR_CORRUPT);
        mem_free(exact);
    }
    assert_int_equal(decode(buffer_bytes(whole), &left), ERR_OK);
    assert_int_equal(left, 0);
}

/* The record must be refused once the byte at `at` reads `value`. */
static void refuses_with(const struct buffer *whole, decoder decode, size_t at, uint8_t value)
{
    uint8_t *copy = mem_copy(whole->data, whole->size);
    size_t left;

    copy[at] = value;
    assert_int_equal(decode(bytes_of(copy, whole->size), &left), ERR_CORRUPT);
    mem_free(copy);
}

static void a_request_has_these_bytes(void **state)
{
    struct buffer out = {0};

    (void)state;
    request_put(&out, &request);
    assert_int_equal(out.size, request_size(&request));
    assert_hex(buffer_bytes(&out),
               "1817161514131211 0200000000000000 03000000"
               "0400000000000000 0300000000000000 0600000000000000"
               "0700000000000000 f8f7f6f5f4f3f2f1 dc050000 0201"
               "01 02 09 02 05 03000000"
               "aa00000000000000 bb00000000000000 616c696365 006869");
    buffer_fini(&out);
}

static void an_answer_has_these_bytes(void **state)
{
    struct buffer out = {0};

    (void)state;
    answer_put(&out, &answer);
    assert_int_equal(out.size, answer_size(&answer));
    assert_hex(buffer_bytes(&out),
               "0100000000000000 0200000000000000 0300000000000000"
               "0400000000000000 0500000000000000 0600000000000000"
               "03 01 02000000 6f6b");
    buffer_fini(&out);
}

static void state_and_its_end_and_its_ack_have_these_bytes(void **state)
{
    const struct state_record end = {.txn = 57, .source = 9, .index = 8, .flags = STATE_END};
    struct buffer out = {0};

    (void)state;
    assert_int_equal(crc32c(chunk.chunk.data, chunk.chunk.size), chunk.crc);
    state_put(&out, &chunk);
    assert_hex(buffer_bytes(&out),
               "3900000000000000 0100000009000000 07000000 00 0100"
               "64000000 0a000000 839206e3 03 09000000"
               "626f62 313233343536373839");
    buffer_clear(&out);
    state_put(&out, &end);
    assert_hex(buffer_bytes(&out),
               "3900000000000000 0900000000000000 08000000 01 0000"
               "00000000 00000000 00000000 00 00000000");
    buffer_clear(&out);
    state_ack_put(&out, &ack);
    assert_hex(buffer_bytes(&out), "3900000000000000 0900000000000000 08000000 01");
    buffer_fini(&out);
}

static void records_come_back_as_they_were_put(void **state)
{
    struct buffer out = {0};
    struct request_record q;
    struct answer_record a;
    struct state_record s;
    struct state_ack_record k;

    (void)state;
    request_put(&out, &request);
    answer_put(&out, &answer);
    state_put(&out, &chunk);
    state_ack_put(&out, &ack);
    struct reader r = {.at = out.data, .left = out.size};

    assert_int_equal(request_get(&r, &q), ERR_OK);
    assert_int_equal(q.gateway, request.gateway);
    assert_int_equal(q.session, request.session);
    assert_int_equal(q.session_epoch, request.session_epoch);
    assert_int_equal(q.seq, request.seq);
    assert_int_equal(q.prev, request.prev);
    assert_int_equal(q.base, request.base);
    assert_int_equal(q.first, request.first);
    assert_int_equal(q.version, request.version);
    assert_int_equal(q.ttl_ms, request.ttl_ms);
    assert_int_equal(q.kind, request.kind);
    assert_int_equal(q.hops, request.hops);
    assert_false(q.again);
    assert_int_equal(q.copy, request.copy);
    assert_int_equal(q.flags, request.flags);
    assert_int_equal(q.chain_count, request.chain_count);
    assert_memory_equal(q.chain, request.chain, sizeof q.chain);
    assert_true(bytes_equal(q.id, request.id));
    assert_true(bytes_equal(q.body, request.body));

    assert_int_equal(answer_get(&r, &a), ERR_OK);
    assert_int_equal(a.gateway, answer.gateway);
    assert_int_equal(a.session, answer.session);
    assert_int_equal(a.seq, answer.seq);
    assert_int_equal(a.fence, answer.fence);
    assert_int_equal(a.version, answer.version);
    assert_int_equal(a.aux, answer.aux);
    assert_int_equal(a.code, answer.code);
    assert_int_equal(a.copy, answer.copy);
    assert_true(bytes_equal(a.body, answer.body));

    assert_int_equal(state_get(&r, &s), ERR_OK);
    assert_int_equal(s.txn, chunk.txn);
    assert_int_equal(s.source, chunk.source);
    assert_int_equal(s.index, chunk.index);
    assert_int_equal(s.flags, chunk.flags);
    assert_int_equal(s.kind, chunk.kind);
    assert_int_equal(s.total, chunk.total);
    assert_int_equal(s.offset, chunk.offset);
    assert_int_equal(s.crc, chunk.crc);
    assert_true(bytes_equal(s.id, chunk.id));
    assert_true(bytes_equal(s.chunk, chunk.chunk));

    assert_int_equal(state_ack_get(&r, &k), ERR_OK);
    assert_int_equal(k.txn, ack.txn);
    assert_int_equal(k.source, ack.source);
    assert_int_equal(k.next, ack.next);
    assert_int_equal(k.refused, ack.refused);
    assert_int_equal(r.left, 0);
    buffer_fini(&out);
}

/* As after a record with this body, exactly so large. */
static enum err decode_behind(struct bytes in, struct bytes before, struct request_record *out)
{
    struct reader r = {.at = in.data, .left = in.size};
    const enum err e = request_get_behind(&r, before, out);

    return e == ERR_OK && r.left != 0 ? ERR_CORRUPT : e;
}

/* It takes no more room: a bit beside the hops. */
static void one_that_is_asked_again_says_so(void **state)
{
    enum { HOPS_AT = 66 };
    struct request_record r = request;
    struct buffer plain = {0};
    struct buffer out = {0};
    struct request_record back;

    (void)state;
    request_put(&plain, &r);
    r.again = true;
    request_put(&out, &r);
    assert_int_equal(out.size, plain.size);
    assert_int_equal(out.data[HOPS_AT], 0x81);
    struct reader in = {.at = out.data, .left = out.size};
    assert_int_equal(request_get(&in, &back), ERR_OK);
    assert_true(back.again && back.hops == 1);
    out.data[HOPS_AT] = plain.data[HOPS_AT];
    assert_memory_equal(out.data, plain.data, out.size);
    buffer_fini(&plain);
    buffer_fini(&out);
}

static void a_record_may_have_the_body_of_the_one_before(void **state)
{
    struct buffer same = {0};
    struct buffer whole = {0};
    struct buffer plain = {0};
    struct request_record q = request;
    size_t left = 0;

    (void)state;
    request_put_same(&same, &request);
    request_put(&plain, &request);
    assert_int_equal(same.size, plain.size - request.body.size);
    assert_int_equal(same.data[68], REQUEST_COMMAND | REQUEST_HELD | REQUEST_SAME);
    assert_int_equal(decode_request(buffer_bytes(&same), &left), ERR_CORRUPT); // behind none
    assert_int_equal(decode_behind(buffer_bytes(&same), request.body, &q), ERR_OK);
    assert_true(bytes_equal(q.body, request.body));
    assert_int_equal(q.flags, request.flags);
    request_put_whole(&whole, buffer_bytes(&same), request.body);
    assert_true(bytes_equal(buffer_bytes(&whole), buffer_bytes(&plain)));
    for (size_t cut = 0; cut < same.size; cut++) {
        uint8_t *exact = mem_copy(same.data, cut);

        assert_int_equal(decode_behind(bytes_of(exact, cut), request.body, &q), ERR_CORRUPT);
        mem_free(exact);
    }
    same.data[71] = 1; // a body of its own
    buffer_put(&same, "x", 1);
    assert_int_equal(decode_behind(buffer_bytes(&same), request.body, &q), ERR_CORRUPT);
    buffer_fini(&same);
    buffer_fini(&whole);
    buffer_fini(&plain);
}

/* A context of 0x11, 0x22 … */
static void put_context(struct buffer *out, uint8_t flags)
{
    struct trace_context c = {.flags = flags};
    uint8_t bytes[TRACE_CONTEXT_SIZE];

    memset(c.trace, 0x11, sizeof c.trace);
    memset(c.span, 0x22, sizeof c.span);
    trace_context_store(bytes, &c);
    buffer_put(out, bytes, sizeof bytes);
}

static void a_traced_request_ends_with_its_context(void **state)
{
    struct request_record r = request;
    struct buffer body = {0};
    struct buffer plain = {0};
    struct buffer out = {0};
    size_t left = 0;

    (void)state;
    request_put(&plain, &request);
    buffer_put(&body, request.body.data, request.body.size);
    put_context(&body, TRACE_SAMPLED);
    r.body = buffer_bytes(&body);
    r.flags |= REQUEST_TRACED;
    request_put(&out, &r);
    assert_int_equal(out.size, plain.size + TRACE_CONTEXT_SIZE);
    assert_int_equal(out.data[66], plain.data[66] | RECORD_TRACED);
    assert_int_equal(out.data[68], request.flags);
    struct reader in = {.at = out.data, .left = out.size};
    struct request_record back;
    assert_int_equal(request_get(&in, &back), ERR_OK);
    assert_int_equal(back.flags, r.flags);
    assert_int_equal(back.hops, request.hops);
    assert_true(bytes_equal(back.body, r.body));
    for (size_t cut = 0; cut < out.size; cut++) {
        assert_int_equal(decode_request(bytes_of(out.data, cut), &left), ERR_CORRUPT);
    }
    out.data[68] |= REQUEST_SESSION; // a note has none
    assert_int_equal(decode_request(buffer_bytes(&out), &left), ERR_CORRUPT);
    out.data[68] = request.flags;
    out.data[out.size - 1] = 0; // it is not sampled
    assert_int_equal(decode_request(buffer_bytes(&out), &left), ERR_CORRUPT);
    out.data[out.size - 1] = TRACE_SAMPLED;
    memset(out.data + out.size - 9, 0, TRACE_SPAN_SIZE); // nobody's span
    assert_int_equal(decode_request(buffer_bytes(&out), &left), ERR_CORRUPT);
    buffer_clear(&out);
    r.body = bytes_of("0123456789", 10); // shorter than a context
    request_put_any(&out, &r);
    assert_int_equal(decode_request(buffer_bytes(&out), &left), ERR_CORRUPT);
    buffer_fini(&body);
    buffer_fini(&plain);
    buffer_fini(&out);
}

static void the_body_before_must_fit_the_record(void **state)
{
    struct buffer same = {0};
    struct request_record q = request;

    (void)state;
    q.flags = REQUEST_CALL;
    request_put_same(&same, &q);
    // A call's body begins with who asks: this one has 9 bytes, and then ends.
    assert_int_equal(decode_behind(buffer_bytes(&same), bytes_of("\0\0\x09x", 4), &q), ERR_CORRUPT);
    assert_int_equal(decode_behind(buffer_bytes(&same), bytes_of("\0\0\x01x", 4), &q), ERR_OK);
    buffer_fini(&same);
}

static void the_largest_records_come_back(void **state)
{
    uint8_t *big = mem_new(1, RECORD_BODY_MAX);
    struct request_record q = request;
    struct buffer out = {0};

    (void)state;
    memset(big, 'x', RECORD_BODY_MAX);
    q.id = bytes_of(big, RECORD_ID_MAX);
    q.body = bytes_of(big, RECORD_BODY_MAX);
    q.chain_count = RECORD_CHAIN_MAX;
    request_put(&out, &q);
    struct reader r = {.at = out.data, .left = out.size};
    assert_int_equal(request_get(&r, &q), ERR_OK);
    assert_int_equal(q.id.size, RECORD_ID_MAX);
    assert_int_equal(q.body.size, RECORD_BODY_MAX);
    assert_int_equal(q.chain_count, RECORD_CHAIN_MAX);
    assert_int_equal(r.left, 0);
    buffer_fini(&out);
    mem_free(big);
}

static void a_call_tells_who_asks(void **state)
{
    const struct caller from = {.kind = 0x0203, .id = bytes_of("bob", 3)};
    struct request_record q = request;
    struct buffer body = {0};
    struct buffer out = {0};
    struct caller c;

    (void)state;
    uint8_t *at = buffer_reserve(&body, caller_size(&from));
    struct writer w = {.at = at, .left = caller_size(&from)};
    caller_put(&w, &from);
    assert_int_equal(w.left, 0);
    body.size = caller_size(&from);
    assert_hex(buffer_bytes(&body), "0302 03 626f62");
    buffer_put(&body, "hello", 5);
    q.flags = REQUEST_CALL;
    q.body = buffer_bytes(&body);
    request_put(&out, &q);
    struct reader r = {.at = out.data, .left = out.size};
    assert_int_equal(request_get(&r, &q), ERR_OK);
    assert_int_equal(q.flags, REQUEST_CALL);
    assert_int_equal(caller_get(&q.body, &c), ERR_OK);
    assert_int_equal(c.kind, 0x0203);
    assert_true(bytes_equal(c.id, from.id));
    assert_true(bytes_equal(q.body, bytes_of("hello", 5)));
    refuses_every_prefix(&out, decode_request);
    refuses_with(&out, decode_request, out.size - 5 - 4, 0);  // no id of a caller
    refuses_with(&out, decode_request, out.size - 5 - 4, 99); // one that ends after the body
    q.body = (struct bytes){body.data, 2};
    assert_int_equal(caller_get(&q.body, &c), ERR_CORRUPT);
    buffer_fini(&out);
    buffer_fini(&body);
}

static void every_prefix_of_a_record_is_refused(void **state)
{
    struct buffer out = {0};

    (void)state;
    request_put(&out, &request);
    refuses_every_prefix(&out, decode_request);
    buffer_clear(&out);
    answer_put(&out, &answer);
    refuses_every_prefix(&out, decode_answer);
    buffer_clear(&out);
    state_put(&out, &chunk);
    refuses_every_prefix(&out, decode_state);
    buffer_clear(&out);
    state_ack_put(&out, &ack);
    refuses_every_prefix(&out, decode_state_ack);
    buffer_fini(&out);
}

static void hostile_fields_are_refused(void **state)
{
    struct buffer out = {0};

    (void)state;
    request_put(&out, &request);
    refuses_with(&out, decode_request, 20, 0);    // number 0
    refuses_with(&out, decode_request, 20, 3);    // it comes behind itself
    refuses_with(&out, decode_request, 67, 0);    // no copy of anything
    refuses_with(&out, decode_request, 68, 0x89); // an unknown flag
    refuses_with(&out, decode_request, 68, 0x19); // a call, but the body names no caller
    refuses_with(&out, decode_request, 69, 9);    // a chain longer than eight
    refuses_with(&out, decode_request, 69, 255);  //
    refuses_with(&out, decode_request, 70, 0);    // no id
    refuses_with(&out, decode_request, 73, 0x11); // a body over 1 MiB
    refuses_with(&out, decode_request, 74, 0xff); // a body of 4 GiB
    buffer_clear(&out);
    answer_put(&out, &answer);
    refuses_with(&out, decode_answer, 48, ANSWER_CODE_LAST + 1);
    refuses_with(&out, decode_answer, 53, 0xff);
    buffer_clear(&out);
    state_put(&out, &chunk);
    refuses_with(&out, decode_state, 20, 2);    // an unknown flag
    refuses_with(&out, decode_state, 20, 1);    // the end, with a chunk
    refuses_with(&out, decode_state, 23, 18);   // a chunk past the image's end
    refuses_with(&out, decode_state, 30, 0xff); // an offset past it: no wrap-around
    refuses_with(&out, decode_state, 35, 0);    // no id
    refuses_with(&out, decode_state, 39, 0xff); // a chunk of 4 GiB
    buffer_clear(&out);
    state_ack_put(&out, &ack);
    refuses_with(&out, decode_state_ack, 20, STATE_UNREAD + 1);
    buffer_fini(&out);
}

static void a_reader_stays_bad_after_a_bad_record(void **state)
{
    struct buffer out = {0};
    struct answer_record a;

    (void)state;
    answer_put(&out, &answer);
    out.data[48] = 0xff;
    answer_put(&out, &answer);
    struct reader r = {.at = out.data, .left = out.size};
    assert_int_equal(answer_get(&r, &a), ERR_CORRUPT);
    assert_int_equal(answer_get(&r, &a), ERR_CORRUPT);
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(one_that_is_asked_again_says_so),
        cmocka_unit_test(a_request_has_these_bytes),
        cmocka_unit_test(an_answer_has_these_bytes),
        cmocka_unit_test(state_and_its_end_and_its_ack_have_these_bytes),
        cmocka_unit_test(records_come_back_as_they_were_put),
        cmocka_unit_test(a_call_tells_who_asks),
        cmocka_unit_test(a_record_may_have_the_body_of_the_one_before),
        cmocka_unit_test(the_body_before_must_fit_the_record),
        cmocka_unit_test(a_traced_request_ends_with_its_context),
        cmocka_unit_test(the_largest_records_come_back),
        cmocka_unit_test(every_prefix_of_a_record_is_refused),
        cmocka_unit_test(hostile_fields_are_refused),
        cmocka_unit_test(a_reader_stays_bad_after_a_bad_record),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
