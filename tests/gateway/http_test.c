/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 as it is read: requests in any pieces, and what two readers could take for two different
 * requests, which is refused.
 */
#include "gateway/protocol/http.h"

#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static struct bytes of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static bool is(struct bytes text, const char *word)
{
    return bytes_equal(text, of(word));
}

/* What came of some bytes; its request is read from a copy that is the reader's own. */
struct outcome {
    struct api_request request;
    enum http_refusal why;
    enum http_step step;
    size_t headed_at; /* bytes that were there when its head was told; 0 = it was not */
};

static struct buffer chunks;

/* Feed `in` in pieces that end at `cut`, and at its end; or byte by byte, if it is 0. */
static struct outcome read_cut(struct bytes in, size_t cut)
{
    struct http_reader r = {0};
    struct outcome o = {.step = HTTP_MORE, .why = HTTP_REFUSAL_COUNT};

    for (size_t size = cut == 0 ? 1 : cut; o.step != HTTP_WHOLE && o.step != HTTP_REFUSED;
         size = cut == 0 ? size + 1 : in.size) {
        if (size > in.size) {
            break;
        }
        o.step = http_read(&r, bytes_of(in.data, size), &chunks, &o.request, &o.why);
        if (o.step == HTTP_HEADED) {
            assert_int_equal(o.headed_at, 0);
            o.headed_at = size;
        }
        if (cut != 0 && size == in.size) {
            break;
        }
    }
    return o;
}

static struct outcome read_whole(const char *text)
{
    return read_cut(of(text), strlen(text));
}

#define HOST "Host: a\r\n"

static void a_request_has_its_parts(void **state)
{
    const struct outcome o =
        read_whole("POST /v1/actors/3/boss?mode=tell&deadline=2s HTTP/1.1\r\n" HOST
                   "Content-Length: 3\r\nAUTHORIZATION:Bearer x \r\n"
                   "Idempotency-Key: k\r\nRinghold-Again: 1.7\r\n"
                   "traceparent: 00-ab-cd-01\r\n\r\nabcGET");

    (void)state;
    assert_int_equal(o.step, HTTP_WHOLE);
    assert_int_equal(o.request.method, HTTP_POST);
    assert_true(is(o.request.path, "/v1/actors/3/boss"));
    assert_true(is(o.request.query, "mode=tell&deadline=2s"));
    assert_true(is(o.request.body, "abc"));
    assert_true(is(o.request.authorization, "Bearer x"));
    assert_true(is(o.request.idempotency_key, "k"));
    assert_true(is(o.request.again, "1.7"));
    assert_true(is(o.request.traceparent, "00-ab-cd-01"));
    assert_null(o.request.last_event_id.data);
    assert_false(o.request.last || o.request.expects || o.request.browser || o.request.coded);
    assert_true(is(bytes_of(o.request.body.data + 3, 3), "GET"));
}

static void a_trace_is_no_reason_to_refuse(void **state)
{
    const struct outcome o = read_whole("GET /x HTTP/1.1\r\n" HOST "traceparent: a\r\n"
                                        "traceparent: b\r\ntracestate: v=1\r\n"
                                        "tracestate: w=2\r\n\r\n");

    (void)state;
    assert_int_equal(o.step, HTTP_WHOLE);
    assert_int_equal(o.request.traceparent.size, 0);
}

static void a_target_may_name_the_server(void **state)
{
    (void)state;
    assert_true(is(read_whole("GET http://a:1/x?y HTTP/1.1\r\n" HOST "\r\n").request.path, "/x"));
    assert_true(is(read_whole("GET https://a HTTP/1.1\r\n" HOST "\r\n").request.path, ""));
    assert_true(is(read_whole("OPTIONS * HTTP/1.1\r\n" HOST "\r\n").request.path, "*"));
}

static void a_connection_lasts_as_is_said(void **state)
{
    (void)state;
    assert_false(read_whole("GET / HTTP/1.1\r\n" HOST "\r\n").request.last);
    assert_true(read_whole("GET / HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n").request.last);
    assert_true(read_whole("GET / HTTP/1.0\r\n\r\n").request.last);
    assert_false(read_whole("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").request.last);
}

static void chunks_are_one_body(void **state)
{
    static const char text[] =
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n00A ; x=\"y\"\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\nnext";

    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        const struct outcome o = read_cut(bytes_of(text, sizeof text - 1), cut);

        assert_int_equal(o.step, HTTP_WHOLE);
        assert_true(is(o.request.body, "abc0123456789"));
        assert_int_equal(o.request.size, sizeof text - 1 - 4);
    }
}

/* Any cut of it comes to the same. */
static void requests_are_read_in_any_pieces(void **state)
{
    static const char text[] = "\r\nPOST /a HTTP/1.1\r\n" HOST "Content-Length: 5\r\n"
                               "Expect: 100-continue\r\n\r\nhello";

    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        const struct outcome o = read_cut(bytes_of(text, sizeof text - 1), cut);

        assert_int_equal(o.step, HTTP_WHOLE);
        assert_true(o.request.expects && is(o.request.body, "hello"));
        assert_int_equal(o.request.size, sizeof text - 1);
        assert_true(cut != 0 || o.headed_at == sizeof text - 1 - 5);
    }
}

static const struct {
    const char *text;
    enum http_refusal why;
} refused[] = {
    // Which length is it?
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
     HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\na", HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\na", HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\na", HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\na", HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\na", HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551617\r\n\r\na", HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
     HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
     HTTP_BAD_LENGTH},
    {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", HTTP_BAD_LENGTH},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", HTTP_TRANSFER_CODING},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n", HTTP_TRANSFER_CODING},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n", HTTP_BAD_HEADER},
    // Where does a line end?
    {"GET / HTTP/1.1\nHost: a\n\n", HTTP_BAD_HEADER},
    {"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", HTTP_BAD_HEADER},
    {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", HTTP_BAD_HEADER},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\rContent-Length: 1\r\n\r\n", HTTP_BAD_HEADER},
    {"GET / HTTP/1.1\r\n" HOST "X: \x01\r\n\r\n", HTTP_BAD_HEADER},
    {"GET / HTTP/1.1\r\n" HOST ": x\r\n\r\n", HTTP_BAD_HEADER},
    {"GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n", HTTP_BAD_HEADER},
    {"GET / HTTP/1.1\r\n" HOST "Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n", HTTP_BAD_HEADER},
    {"GET / HTTP/1.1\r\n" HOST "Authorization: a\r\nAuthorization: b\r\n\r\n", HTTP_BAD_HEADER},
    // For whom is it?
    {"GET / HTTP/1.1\r\n\r\n", HTTP_BAD_HOST},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", HTTP_BAD_HOST},
    {"GET / HTTP/1.1\r\nHost:\r\n\r\n", HTTP_BAD_HOST},
    // The first line.
    {"GET /\r\n\r\n", HTTP_BAD_LINE},
    {"GET  / HTTP/1.1\r\n\r\n", HTTP_BAD_LINE},
    {"GET / x HTTP/1.1\r\n\r\n", HTTP_BAD_LINE},
    {"GET /#f HTTP/1.1\r\n\r\n", HTTP_BAD_LINE},
    {"GET /\x80 HTTP/1.1\r\n\r\n", HTTP_BAD_LINE},
    {"G\"T / HTTP/1.1\r\n\r\n", HTTP_BAD_LINE},
    {"GET / http/1.1\r\n\r\n", HTTP_BAD_LINE},
    {"\x16\x03\x01\x02", HTTP_BAD_LINE},
    {"*1\r\n$4\r\nPING\r\n", HTTP_BAD_LINE},
    {"AMETHODTHATISTOOLONG / HTTP/1.1\r\n\r\n", HTTP_BAD_LINE},
    {"GET / HTTP/1.2\r\n" HOST "\r\n", HTTP_VERSION},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP_VERSION},
    // What nobody here does.
    {"POST / HTTP/1.1\r\n" HOST "Expect: 200-ok\r\n\r\n", HTTP_EXPECTATION},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n", HTTP_BODY_TOO_LARGE},
    // Chunks.
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nx\r\n", HTTP_BAD_CHUNK},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n\r\n", HTTP_BAD_CHUNK},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n+1\r\na\r\n", HTTP_BAD_CHUNK},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\na\r\n", HTTP_BAD_CHUNK},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", HTTP_BAD_CHUNK},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;\x01\r\na\r\n",
     HTTP_BAD_CHUNK},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n000000001\r\na\r\n",
     HTTP_BAD_CHUNK},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n",
     HTTP_BODY_TOO_LARGE},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n100001\r\n",
     HTTP_BODY_TOO_LARGE},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n folded\r\n\r\n",
     HTTP_BAD_CHUNK},
};

static void what_is_unclear_or_over_a_limit_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const struct bytes in = of(refused[i].text);

        for (size_t cut = 0; cut <= in.size; cut++) {
            const struct outcome o = read_cut(in, cut);

            if (o.step != HTTP_REFUSED ||
                http_why(o.why)->status != http_why(refused[i].why)->status ||
                (cut == in.size && o.why != refused[i].why)) {
                fail_msg("case %zu cut at %zu: step %d, %s",
                         i,
                         cut,
                         o.step,
                         o.step == HTTP_REFUSED ? http_why(o.why)->word : "-");
            }
        }
    }
}

/* So large, in all. */
static struct outcome read_head_of(size_t size, size_t lines)
{
    static char text[2 * HTTP_HEAD_MAX];
    size_t used = (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST);

    for (size_t i = 1; i < lines; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "x:\r\n");
    }
    const size_t more = size > used + 7 ? size - used - 7 : 0;
    used += (size_t)snprintf(text + used, sizeof text - used, "y: ");
    memset(text + used, 'y', more);
    used += more;
    (void)snprintf(text + used, sizeof text - used, "\r\n\r\n");
    return read_whole(text);
}

static void heads_have_limits(void **state)
{
    (void)state;
    assert_int_equal(read_head_of(HTTP_HEAD_MAX, 1).step, HTTP_WHOLE);
    assert_int_equal(read_head_of(HTTP_HEAD_MAX + 1, 1).why, HTTP_HEAD_TOO_LARGE);
    assert_int_equal(read_head_of(0, HTTP_HEADERS_MAX - 1).step, HTTP_WHOLE);
    assert_int_equal(read_head_of(0, HTTP_HEADERS_MAX).why, HTTP_HEAD_TOO_LARGE);
}

static void the_largest_bodies_are_taken(void **state)
{
    struct buffer in = {0};
    char head[128];
    const int size = snprintf(head,
                              sizeof head,
                              "POST / HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n",
                              HTTP_CONTENT_MAX);

    (void)state;
    buffer_put(&in, head, (size_t)size);
    memset(buffer_reserve(&in, HTTP_CONTENT_MAX), 'x', HTTP_CONTENT_MAX);
    in.size += HTTP_CONTENT_MAX;
    assert_int_equal(read_cut(buffer_bytes(&in), in.size).request.body.size, HTTP_CONTENT_MAX);
    // In chunks of a byte the sizes take more room than a body has.
    buffer_clear(&in);
    buffer_put(&in,
               head,
               (size_t)snprintf(head,
                                sizeof head,
                                "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"));
    for (size_t i = 0; i < HTTP_CONTENT_MAX / 2; i++) {
        buffer_put(&in, "1\r\nx\r\n", 6);
    }
    assert_int_equal(read_cut(buffer_bytes(&in), in.size).why, HTTP_BODY_TOO_LARGE);
    buffer_fini(&in);
}

static bool put_is(struct buffer *out, const char *text)
{
    const bool same = is(buffer_bytes(out), text);

    buffer_fini(out);
    return same;
}

static void answers_and_problems_are_written(void **state)
{
    struct buffer out = {0};

    (void)state;
    http_put_head(&out, 202, &(struct http_head){.ring = (UINT64_C(1) << 40) + 7});
    assert_true(
        put_is(&out, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nRinghold-Ring: 1.7\r\n\r\n"));
    http_put_head(&out, 204, &(struct http_head){.allow = "POST", .last = true});
    assert_true(
        put_is(&out, "HTTP/1.1 204 No Content\r\nAllow: POST\r\nConnection: close\r\n\r\n"));
    http_put_problem(&out,
                     &(struct http_problem){.status = 502,
                                            .word = "unknown",
                                            .code = "UNKNOWN",
                                            .detail = of("a \"b\"\\\n\xff"
                                                         "c\xc3\xa9"),
                                            .may_have_run = true});
    assert_true(put_is(&out,
                       "{\"type\":\"urn:ringhold:problem:unknown\",\"title\":\"Bad Gateway\","
                       "\"status\":502,\"code\":\"UNKNOWN\",\"may_have_run\":true,"
                       "\"detail\":\"a \\\"b\\\"\\\\??c\xc3\xa9\"}\n"));
    // Each refusal that is answered has a phrase, and its text fits.
    for (int i = 0; i < HTTP_REFUSAL_COUNT; i++) {
        if (http_why((enum http_refusal)i)->status != 0) {
            http_put_head(&out, http_why((enum http_refusal)i)->status, &(struct http_head){0});
        }
    }
    buffer_fini(&out);
}

static int end(void **state)
{
    (void)state;
    buffer_fini(&chunks);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_its_parts),
        cmocka_unit_test(a_trace_is_no_reason_to_refuse),
        cmocka_unit_test(a_target_may_name_the_server),
        cmocka_unit_test(a_connection_lasts_as_is_said),
        cmocka_unit_test(chunks_are_one_body),
        cmocka_unit_test(requests_are_read_in_any_pieces),
        cmocka_unit_test(what_is_unclear_or_over_a_limit_is_refused),
        cmocka_unit_test(heads_have_limits),
        cmocka_unit_test(the_largest_bodies_are_taken),
        cmocka_unit_test(answers_and_problems_are_written),
    };

    return cmocka_run_group_tests_name("http", tests, NULL, end);
}
