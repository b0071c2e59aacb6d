/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that speak HTTP: what they may ask, and what they are answered. With --mutants (make
 * MUTANTS=1): each planted bug must be caught here.
 */
#include "gateway/access/token.h"
#include "gateway/protocol/http.h"
#include "tests/gateway/client_rig.h"
#include "tests/planted.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t second_us = 1000000;
static const uint64_t now_s = 1700000000;

#define HOST "Host: a\r\n"
#define CALL "POST /v1/actors/3/boss HTTP/1.1\r\n" HOST "Content-Length: 2\r\n"

struct web {
    struct client_rig r;
    struct client *c;
    struct buffer heard; /* of the connection, so far */
    size_t at;           /* what was looked at of it */
};

static struct bytes of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static struct client *comes(struct web *w)
{
    return client_new(w->r.all, CLIENT_HTTP, "10.0.0.1:1", w->r.rig.now_us);
}

static void start_as(struct web *w, const struct clients_config *clients, bool ring)
{
    const struct router_config router = router_config_default();

    *w = (struct web){0};
    client_rig_init(&w->r, clients, &router);
    if (ring) {
        client_rig_ring(&w->r);
    }
    w->c = comes(w);
}

static void start(struct web *w)
{
    const struct clients_config clients = clients_config_default();

    start_as(w, &clients, true);
}

static void goes(struct web *w)
{
    client_rig_free(&w->r, w->c);
    w->c = NULL;
    buffer_clear(&w->heard);
    w->at = 0;
}

static void stop(struct web *w)
{
    if (w->c != NULL) {
        goes(w);
    }
    client_rig_fini(&w->r);
    buffer_fini(&w->heard);
}

static void says(struct web *w, const char *text)
{
    client_rig_text(&w->r, w->c, text);
}

/* All that was said and is not looked at yet, as a text. */
static const char *hears(struct web *w)
{
    const struct bytes out = client_output(w->c);

    buffer_put(&w->heard, out.data, out.size);
    client_sent(w->c, out.size, w->r.rig.now_us);
    buffer_put(&w->heard, "", 1);
    w->heard.size--;
    return (const char *)w->heard.data + w->at;
}

static void looked_at(struct web *w, size_t size)
{
    w->at += size;
}

static void hears_nothing(struct web *w)
{
    assert_string_equal(hears(w), "");
}

/* The next answer has that status; its body, which a Content-Length has, as a text in `body`. */
static void hears_status(struct web *w, unsigned status, char body[2048])
{
    const char *text = hears(w);
    const char *length = strstr(text, "Content-Length: ");
    const char *end = strstr(text, "\r\n\r\n");
    size_t size = 0;

    if (strncmp(text, "HTTP/1.1 ", 9) != 0 || strtoul(text + 9, NULL, 10) != status ||
        end == NULL) {
        fail_msg("%u was to come, not: %s", status, text);
    }
    if (length != NULL && length < end) {
        size = strtoul(length + strlen("Content-Length: "), NULL, 10);
    }
    assert_true(size < 2048 && strlen(end + 4) >= size);
    memcpy(body, end + 4, size);
    body[size] = '\0';
    looked_at(w, (size_t)(end + 4 - text) + size);
}

static void hears_only(struct web *w, unsigned status)
{
    char body[2048];

    hears_status(w, status, body);
    hears_nothing(w);
}

static struct clients_stats stats(const struct web *w)
{
    struct clients_stats f;

    clients_stats(w->r.all, &f);
    return f;
}

static uint64_t refused(const struct web *w, enum http_refusal why)
{
    return stats(w).http_refused[why];
}

static void pass(struct web *w, uint64_t us)
{
    w->r.rig.now_us += us;
    client_tick(w->c, w->r.rig.now_us);
}

/* What is due when a turn is over. */
static void turn(struct web *w)
{
    while (clients_go_on(w->r.all, w->r.rig.now_us, &w->r.effects) != NULL) {
    }
    client_rig_do_effects(&w->r);
}

/* ---- requests ---- */

static void a_call_is_answered_with_the_actors_bytes(void **state)
{
    char body[2048];
    struct web w;

    (void)state;
    start(&w);
    says(&w, CALL "\r\nhi");
    const struct request_record q = client_rig_request(&w.r, 1);
    assert_int_equal(q.kind, 3);
    assert_true(bytes_equal(q.id, of("boss")) && bytes_equal(q.body, of("hi")));
    assert_int_equal(q.flags, 0);
    assert_int_equal(q.ttl_ms, 10000);
    hears_nothing(&w);
    client_rig_answer(&w.r, 1, ANSWER_OK, of("ho\n"));
    hears_status(&w, 200, body);
    assert_string_equal(body, "ho\n");
    assert_int_equal(stats(&w).http_requests, 1);
    assert_false(client_is_done(w.c));
    stop(&w);
}

static void the_query_says_how_it_is_asked(void **state)
{
    struct web w;

    (void)state;
    start(&w);
    says(&w, "POST /v1/actors/0/a%2Fb%20c?mode=tell HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(client_rig_request(&w.r, 1).flags, REQUEST_NO_REPLY);
    assert_true(bytes_equal(client_rig_request(&w.r, 1).id, of("a/b c")));
    hears_only(&w, 202);
    client_rig_answer(&w.r, 1, ANSWER_OK, of("nobody hears it"));
    hears_nothing(&w);
    says(&w, "POST /v1/actors/0/a?deadline=100ms&mode=read HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(client_rig_request(&w.r, 2).flags, REQUEST_IDEMPOTENT);
    assert_int_equal(client_rig_request(&w.r, 2).ttl_ms, 128);
    says(&w, "POST /v1/actors/0/a?deadline=2s HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(client_rig_request(&w.r, 3).ttl_ms, 2048);
    stop(&w);
}

/* Whatever an actor, a node or the router says, there is a status, and whether it may have run. */
static void each_outcome_has_its_status(void **state)
{
    static const struct {
        enum answer_code code;
        unsigned status;
        const char *name;
        bool may_have_run;
        const char *detail;
    } cases[] = {
        {ANSWER_APP_ERROR, 422, "ACTOR_FAILED", true, "no \\\"gold\\\""},
        {ANSWER_LOST, 502, "UNKNOWN", true, "may have run"},
        {ANSWER_EXPIRED, 503, "MOVING", false, "did not run"},
        {ANSWER_NO_KIND, 404, "NOKIND", false, "did not run"},
    };
    char body[2048];
    struct web w;

    (void)state;
    start(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        says(&w, CALL "\r\nhi");
        client_rig_answer(&w.r,
                          i + 1,
                          cases[i].code,
                          cases[i].code == ANSWER_APP_ERROR ? of("no \"gold\"") : of(""));
        hears_status(&w, cases[i].status, body);
        assert_non_null(strstr(body, cases[i].name));
        assert_non_null(strstr(body, cases[i].detail));
        assert_non_null(
            strstr(body, cases[i].may_have_run ? "run\":true" : "\"may_have_run\":false"));
    }
    // 504: nothing came in time.
    says(&w, "POST /v1/actors/0/a?deadline=16ms HTTP/1.1\r\n" HOST "\r\n");
    w.r.rig.now_us += second_us;
    client_rig_event(&w.r, (struct router_event){.type = ROUTER_TICK});
    hears_status(&w, 504, body);
    assert_non_null(strstr(body, "\"TIMEOUT\""));
    stop(&w);
}

static void answers_come_in_the_order_of_the_requests(void **state)
{
    char body[2048];
    struct web w;

    (void)state;
    start(&w);
    says(&w,
         "POST /v1/actors/0/slow HTTP/1.1\r\n" HOST "\r\n"
         "POST /v1/actors/0/fast HTTP/1.1\r\n" HOST "\r\n"
         "GET /nothing HTTP/1.1\r\n" HOST "\r\n"
         "HEAD /v1/actors/0/a/where HTTP/1.1\r\n" HOST "\r\n"
         "POST /v1/actors/0/last HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    assert_int_equal(w.r.request_count, 3);
    client_rig_answer(&w.r, 3, ANSWER_OK, of("3"));
    client_rig_answer(&w.r, 2, ANSWER_OK, of("2"));
    hears_nothing(&w);
    client_rig_answer(&w.r, 1, ANSWER_OK, of("1"));
    hears_status(&w, 200, body);
    assert_string_equal(body, "1");
    hears_status(&w, 200, body);
    assert_string_equal(body, "2");
    hears_status(&w, 404, body);
    // An answer to HEAD has a length, and no body.
    const char *head = hears(&w);
    assert_memory_equal(head, "HTTP/1.1 200 OK\r\n", 17);
    looked_at(&w, (size_t)(strstr(head, "\r\n\r\n") + 4 - head));
    assert_non_null(strstr(hears(&w), "Connection: close\r\n"));
    hears_status(&w, 200, body);
    assert_string_equal(body, "3");
    assert_true(client_is_done(w.c) && client_lingers(w.c));
    stop(&w);
}

/* Byte by byte, a whole conversation comes to the same. */
static void requests_come_in_any_pieces(void **state)
{
    static const char text[] =
        CALL "\r\nhi\r\nPOST /v1/actors/1/x HTTP/1.1\r\n" HOST
             "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
             "GET /v1/actors/0/a/where HTTP/1.1\r\n" HOST "\r\n";

    (void)state;
    for (size_t cut = 1; cut < sizeof text - 1; cut++) {
        char body[2048];
        struct web w;

        start(&w);
        client_rig_bytes(&w.r, w.c, bytes_of(text, cut));
        client_rig_bytes(&w.r, w.c, bytes_of(text + cut, sizeof text - 1 - cut));
        assert_int_equal(w.r.request_count, 2);
        assert_true(bytes_equal(client_rig_request(&w.r, 2).body, of("abc")));
        client_rig_answer(&w.r, 1, ANSWER_OK, of("1"));
        client_rig_answer(&w.r, 2, ANSWER_OK, of("2"));
        hears_status(&w, 200, body);
        hears_status(&w, 200, body);
        hears_status(&w, 200, body);
        assert_non_null(strstr(body, "\"actor\":\"0/a\""));
        hears_nothing(&w);
        stop(&w);
    }
}

/* ---- refusals ---- */

static void what_is_asked_wrongly_is_told_and_the_connection_goes_on(void **state)
{
    static const struct {
        const char *text;
        enum http_refusal why;
        const char *has; /* the head */
    } cases[] = {
        {"GET / HTTP/1.1\r\n" HOST "\r\n", HTTP_NOT_FOUND, ""},
        {"GET /v1/actors/ HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_ACTOR, ""},
        {"POST /v1/actors/3 HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_ACTOR, ""},
        {"POST /v1/actors/3/ HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_ACTOR, ""},
        {"POST /v1/actors/65536/a HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_ACTOR, ""},
        {"POST /v1/actors/03/a HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_ACTOR, ""},
        {"POST /v1/actors/boss/a HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_ACTOR, ""},
        {"POST /v1/actors/3/%2 HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_ACTOR, ""},
        {"POST /v1/actors/3/a/b HTTP/1.1\r\n" HOST "\r\n", HTTP_NOT_FOUND, ""},
        {"GET /v1/actors/3/a HTTP/1.1\r\n" HOST "\r\n", HTTP_METHOD, "Allow: POST, OPTIONS\r\n"},
        {"POST /v1/actors/3/a/where HTTP/1.1\r\n" HOST "\r\n",
         HTTP_METHOD,
         "Allow: GET, HEAD, OPTIONS\r\n"},
        {"DELETE /v1/actors/3/a/events HTTP/1.1\r\n" HOST "\r\n",
         HTTP_METHOD,
         "Allow: GET, OPTIONS\r\n"},
        {"POST /v1/actors/3/a?mode=x HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_QUERY, ""},
        {"POST /v1/actors/3/a?mode=call&mode=call HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_QUERY, ""},
        {"POST /v1/actors/3/a?deadline=2 HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_QUERY, ""},
        {"POST /v1/actors/3/a?deadline=0s HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_QUERY, ""},
        {"POST /v1/actors/3/a?deadline=9999999s HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_QUERY, ""},
        {"POST /v1/actors/3/a?dead=2s HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_QUERY, ""},
        {"GET /v1/actors/3/a/where?x HTTP/1.1\r\n" HOST "\r\n", HTTP_BAD_QUERY, ""},
        {"POST /v1/actors/3/a HTTP/1.1\r\n" HOST "Idempotency-Key:\r\n\r\n", HTTP_BAD_KEY, ""},
        {"POST /v1/actors/3/a HTTP/1.1\r\n" HOST "Idempotency-Key: a b\r\n\r\n", HTTP_BAD_KEY, ""},
        {"POST /v1/actors/3/a HTTP/1.1\r\n" HOST "Ringhold-Again: 1.1\r\n\r\n", HTTP_BAD_KEY, ""},
        {"POST /v1/actors/3/a HTTP/1.1\r\n" HOST "Idempotency-Key: a\r\nRinghold-Again: x\r\n\r\n",
         HTTP_BAD_KEY,
         ""},
        {"POST /v1/actors/3/a HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\n\r\n",
         HTTP_CONTENT_CODING,
         ""},
        {"POST /v1/actors/3/a HTTP/1.1\r\n" HOST "Origin: https://evil.example\r\n\r\n",
         HTTP_BROWSER,
         ""},
        {"OPTIONS /v1/actors/3/a HTTP/1.1\r\n" HOST "Origin: https://evil.example\r\n\r\n",
         HTTP_BROWSER,
         ""},
        {"GET /v1/actors/3/a/where HTTP/1.1\r\n" HOST "Sec-Fetch-Site: cross-site\r\n\r\n",
         HTTP_BROWSER,
         ""},
        {"GET /v1/actors/3/a/events HTTP/1.1\r\n" HOST "Last-Event-ID: 17\r\n\r\n",
         HTTP_BAD_EVENT_ID,
         ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[2048];
        struct web w;

        start(&w);
        says(&w, cases[i].text);
        assert_non_null(strstr(hears(&w), cases[i].has));
        hears_status(&w, http_why(cases[i].why)->status, body);
        assert_non_null(strstr(body, http_why(cases[i].why)->word));
        assert_non_null(strstr(body, "\"may_have_run\":false"));
        assert_int_equal(refused(&w, cases[i].why), 1);
        assert_int_equal(w.r.request_count, 0);
        says(&w, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
        hears_only(&w, 204);
        stop(&w);
    }
}

static void who_asks_much_that_is_refused_rests(void **state)
{
    struct web w;

    (void)state;
    start(&w);
    for (int i = 0; i < 40; i++) {
        says(&w, "GET / HTTP/1.1\r\n" HOST "\r\n");
    }
    assert_true(client_rests(w.c));
    assert_int_equal(refused(&w, HTTP_NOT_FOUND), 16);
    assert_int_equal(stats(&w).rests_spent, 1);
    stop(&w);
}

static void what_cannot_be_read_ends_the_connection(void **state)
{
    static const char *const cases[] = {
        "POST /v1/actors/0/a HTTP/1.1\r\n" HOST
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" CALL "\r\nhi",
        "POST /v1/actors/0/a HTTP/1.1\r\n" HOST
        "Content-Length: 1\r\nContent-Length: 40\r\n\r\nx" CALL "\r\nhi",
        "POST /v1/actors/0/a HTTP/1.1\r\n" HOST "X: y\n" CALL "\r\nhi",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[2048];
        struct web w;

        start(&w);
        says(&w, cases[i]);
        assert_int_equal(w.r.request_count, 0); // nor what stands behind it
        hears_status(&w, 400, body);
        hears_nothing(&w);
        assert_int_equal(stats(&w).bad_input, 1);
        assert_true(client_is_done(w.c) && client_lingers(w.c));
        stop(&w);
    }
}

/* However its bytes come, and though what it says of a body makes no sense. */
static void an_answer_to_head_has_no_body(void **state)
{
    static const char *const heads[] = {
        "HEAD /v1/actors/0/a/where HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
        "HEAD /nothing HTTP/1.1\r\n" HOST "Content-Length: x\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        for (int pieces = 1; pieces <= 2; pieces++) {
            char text[256];
            struct web w;

            start(&w);
            (void)snprintf(text, sizeof text, "%s%s", heads[i], pieces == 1 ? "zz\r\n" : "");
            says(&w, text);
            if (pieces == 2) {
                says(&w, "zz\r\n");
            }
            const char *head = hears(&w);
            assert_memory_equal(head, "HTTP/1.1 400 ", 13);
            assert_null(strstr(head, "Content-Length: 0"));
            looked_at(&w, (size_t)(strstr(head, "\r\n\r\n") + 4 - head));
            hears_nothing(&w);
            assert_true(client_is_done(w.c));
            stop(&w);
        }
    }
}

static void who_asks_otherwise_behind_a_head_has_a_body(void **state)
{
    char body[2048];
    struct web w;

    (void)state;
    start(&w);
    says(&w, "HEAD /v1/actors/0/a/where HTTP/1.1\r\n" HOST "\r\n");
    const char *head = hears(&w);
    looked_at(&w, (size_t)(strstr(head, "\r\n\r\n") + 4 - head));
    says(&w, "no request\n");
    hears_status(&w, 400, body);
    assert_non_null(strstr(body, "bad_"));
    stop(&w);
}

static void a_body_that_is_too_large_is_dropped(void **state)
{
    struct web w;
    char part[64 * 1024];

    (void)state;
    memset(part, 'x', sizeof part);
    start(&w);
    says(&w, "POST /v1/actors/0/a HTTP/1.1\r\n" HOST "Content-Length: 2097152\r\n\r\n");
    hears_only(&w, 413);
    for (size_t i = 0; i < 32; i++) {
        client_rig_bytes(&w.r, w.c, bytes_of(part, sizeof part));
        assert_true(stats(&w).buffered < sizeof part);
    }
    says(&w, CALL "\r\nhi"); // the connection goes on
    assert_int_equal(w.r.request_count, 1);
    goes(&w);
    w.c = comes(&w);
    says(&w, "POST /v1/actors/0/a HTTP/1.1\r\n" HOST "Content-Length: 99999999999\r\n\r\n");
    hears_only(&w, 413);
    assert_true(client_is_done(w.c));
    goes(&w);
    // Who waits for a word before it sends gets this one instead.
    w.c = comes(&w);
    says(&w,
         "POST /v1/actors/0/a HTTP/1.1\r\n" HOST
         "Content-Length: 2097152\r\nExpect: 100-continue\r\n\r\n");
    hears_only(&w, 413);
    assert_true(client_is_done(w.c));
    assert_int_equal(refused(&w, HTTP_BODY_TOO_LARGE), 3);
    stop(&w);
}

/* However late it turns out, and whatever comes then. */
static void a_request_has_one_answer(void **state)
{
    struct web w;

    (void)state;
    start(&w);
    says(&w, "POST /v1/actors/0/a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    says(&w, "1\r\nx\r\n100000\r\n");
    hears_only(&w, 413);
    assert_true(client_is_done(w.c));
    assert_int_equal(refused(&w, HTTP_BODY_TOO_LARGE), 1);
    goes(&w);
    // The rest of one that was refused is late, or does not come before the gateway stops.
    for (int i = 0; i < 2; i++) {
        w.c = comes(&w);
        says(&w, "POST /v1/actors/0/a HTTP/1.1\r\n" HOST "Content-Length: 2097152\r\n\r\n");
        hears_only(&w, 413);
        if (i == 0) {
            pass(&w, 31 * second_us);
        } else {
            client_drain(w.c, w.r.rig.now_us);
        }
        hears_nothing(&w);
        assert_true(client_is_done(w.c));
        goes(&w);
    }
    stop(&w);
}

static void who_expects_it_is_told_to_go_on(void **state)
{
    struct web w;

    (void)state;
    start(&w);
    says(&w, CALL "Expect: 100-continue\r\n\r\n");
    assert_string_equal(hears(&w), "HTTP/1.1 100 Continue\r\n\r\n");
    looked_at(&w, 25);
    says(&w, "hi");
    client_rig_answer(&w.r, 1, ANSWER_OK, of(""));
    hears_only(&w, 200);
    // Not if it is refused all the same.
    says(&w, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n");
    hears_only(&w, 404);
    assert_true(client_is_done(w.c));
    stop(&w);
}

/* ---- time ---- */

static void a_slow_request_is_not_waited_for(void **state)
{
    struct web w;

    (void)state;
    start(&w);
    says(&w, "POST /v1/actors/0/a HTTP/1.1\r\n");
    for (int i = 0; i < 5; i++) { // a byte a second of a header buys no time
        pass(&w, second_us);
        says(&w, "x");
        hears_nothing(&w);
    }
    pass(&w, second_us);
    hears_only(&w, 408);
    assert_true(client_is_done(w.c));
    goes(&w);
    // Its body has more.
    w.c = comes(&w);
    says(&w, "POST /v1/actors/0/a HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n");
    pass(&w, 29 * second_us);
    hears_nothing(&w);
    pass(&w, 2 * second_us);
    hears_only(&w, 408);
    goes(&w);
    // Who says nothing at all is let go.
    w.c = comes(&w);
    pass(&w, 6 * second_us);
    hears_nothing(&w);
    assert_true(client_is_done(w.c));
    goes(&w);
    w.c = comes(&w);
    says(&w, CALL "\r\nhi");
    pass(&w, 100 * second_us); // who waits for an answer is not idle
    assert_false(client_is_done(w.c));
    client_rig_event(&w.r, (struct router_event){.type = ROUTER_TICK});
    hears_only(&w, 504);
    pass(&w, 59 * second_us);
    assert_false(client_is_done(w.c));
    pass(&w, 2 * second_us);
    assert_true(client_is_done(w.c));
    assert_int_equal(refused(&w, HTTP_TIMEOUT), 2);
    assert_int_equal(refused(&w, HTTP_IDLE), 2);
    stop(&w);
}

static void a_gateway_that_stops_answers_what_it_took(void **state)
{
    char body[2048];
    struct web w;

    (void)state;
    start(&w);
    says(&w, CALL "\r\nhi" CALL "\r\nhi");
    client_drain(w.c, w.r.rig.now_us);
    says(&w, CALL "\r\nhi");
    assert_int_equal(w.r.request_count, 2);
    client_rig_answer(&w.r, 1, ANSWER_OK, of("1"));
    client_rig_answer(&w.r, 2, ANSWER_OK, of("2"));
    const char *first = hears(&w);
    const char *said = strstr(first, "Connection: close");
    assert_true(said != NULL && said > strstr(first, "\r\n\r\n")); // only behind the last
    hears_status(&w, 200, body);
    hears_status(&w, 200, body);
    assert_true(client_is_done(w.c));
    goes(&w);
    w.c = comes(&w);
    says(&w, CALL); // half of one surely does not run
    client_drain(w.c, w.r.rig.now_us);
    hears_only(&w, 503);
    assert_true(client_is_done(w.c));
    stop(&w);
}

/* ---- keys ---- */

static void a_key_names_one_request_of_one_entity(void **state)
{
    static const char *const asked[] = {
        CALL "Idempotency-Key: k\r\n\r\nhi",
        CALL "Idempotency-Key: k2\r\n\r\nhi",
        "POST /v1/actors/3/other HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\n\r\n",
        "POST /v1/actors/4/boss HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\n\r\n",
    };
    struct web w;

    (void)state;
    start(&w);
    for (size_t i = 0; i < 4; i++) {
        says(&w, asked[i]);
        assert_int_equal(w.r.request_count, i + 1);
        client_rig_answer(&w.r, i + 1, ANSWER_OK, of(""));
        assert_non_null(strstr(hears(&w), "Ringhold-Ring: "));
        hears_only(&w, 200);
        const struct request_record q = client_rig_request(&w.r, i + 1);
        assert_true(q.seq == 1 && q.base == 1 && q.prev == 0 && !q.again);
        for (size_t j = 0; j < i; j++) {
            assert_true(client_rig_request(&w.r, j + 1).session != q.session);
        }
    }
    // Asked again it has the same name, on another connection, too: its node knows it by that.
    goes(&w);
    turn(&w);
    w.c = comes(&w);
    says(&w, asked[0]);
    assert_int_equal(w.r.request_count, 5);
    assert_true(client_rig_request(&w.r, 5).session == client_rig_request(&w.r, 1).session);
    assert_int_equal(client_rig_request(&w.r, 5).seq, 1);
    client_rig_answer(&w.r, 5, ANSWER_OK, of(""));
    hears_only(&w, 200);
    stop(&w);
}

static void a_key_under_way_is_refused_until_its_connection_goes(void **state)
{
    char body[2048];
    struct web w;

    (void)state;
    start(&w);
    says(&w, CALL "Idempotency-Key: k\r\n\r\nhi");
    struct client *first = w.c;
    w.c = comes(&w);
    says(&w, CALL "Idempotency-Key: k\r\n\r\nhi");
    hears_status(&w, 409, body);
    says(&w, "POST /v1/actors/3/boss?mode=tell HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\n\r\n");
    hears_only(&w, 409);
    assert_int_equal(w.r.request_count, 1);
    client_rig_free(&w.r, first);
    // Its copy takes the answer of the one that is under way still.
    says(&w, CALL "Idempotency-Key: k\r\n\r\nhi");
    hears_nothing(&w);
    assert_int_equal(w.r.request_count, 1);
    client_rig_answer(&w.r, 1, ANSWER_OK, of("once"));
    hears_status(&w, 200, body);
    assert_string_equal(body, "once");
    // And again at once, before anybody has cleared up.
    says(&w, CALL "Idempotency-Key: k\r\n\r\nhi");
    turn(&w);
    client_rig_answer(&w.r, 2, ANSWER_OK, of("once"));
    hears_only(&w, 200);
    assert_int_equal(refused(&w, HTTP_KEY_IN_USE), 2);
    turn(&w);
    assert_true(clients_rest(w.r.all));
    stop(&w);
}

static void a_request_that_is_asked_again_says_since_when(void **state)
{
    struct web w;

    (void)state;
    start(&w);
    says(&w, CALL "Idempotency-Key: k\r\nRinghold-Again: 0\r\n\r\nhi");
    assert_int_equal(client_rig_request(&w.r, 1).first, 1); // older than any ring
    client_rig_answer(&w.r, 1, ANSWER_EXPIRED, of(""));
    hears_nothing(&w);
    w.r.rig.now_us += 11 * second_us;
    client_rig_event(&w.r, (struct router_event){.type = ROUTER_TICK});
    hears_only(&w, 504); // not 503: whether it ran before nobody knows here
    says(&w, CALL "Idempotency-Key: k2\r\nRinghold-Again: 9.9\r\n\r\nhi");
    const struct request_record q = client_rig_request(&w.r, 2);
    assert_int_equal(q.first, q.version); // nobody has seen a later one
    stop(&w);
}

static void a_keyed_tell_waits_for_nothing(void **state)
{
    static const char tell[] =
        "POST /v1/actors/3/boss?mode=tell HTTP/1.1\r\n" HOST "Idempotency-Key: k\r\n\r\n";
    struct web w;

    (void)state;
    start(&w);
    says(&w, tell);
    hears_only(&w, 202);
    client_rig_answer(&w.r, 1, ANSWER_OK, of(""));
    says(&w, tell);
    hears_only(&w, 202);
    assert_true(client_rig_request(&w.r, 2).session == client_rig_request(&w.r, 1).session);
    client_rig_answer(&w.r, 2, ANSWER_OK, of(""));
    hears_nothing(&w);
    stop(&w);
}

static void without_a_ring_there_are_no_keys(void **state)
{
    const struct clients_config clients = clients_config_default();
    struct web w;

    (void)state;
    start_as(&w, &clients, false);
    says(&w, CALL "Idempotency-Key: k\r\n\r\nhi");
    hears_only(&w, 503);
    says(&w, "GET /v1/actors/0/a/where HTTP/1.1\r\n" HOST "\r\n");
    hears_only(&w, 503);
    stop(&w);
}

/* ---- tokens ---- */

static struct keyring keys(void)
{
    struct keyring keys = {.count = 1};

    (void)snprintf(keys.key[0].name, sizeof keys.key[0].name, "a");
    keys.key[0].size = KEYRING_SECRET_MIN;
    return keys;
}

/* A request with a token of kind 0, this id, and the rest of its head. */
static void says_with(struct web *w, const char *first, const char *id, uint64_t expires_s)
{
    const struct keyring ring = keys();
    struct token token = {.expires_s = expires_s, .id_size = (uint8_t)strlen(id)};
    struct buffer text = {0};

    memcpy(token.id, id, strlen(id));
    (void)snprintf(token.cluster, sizeof token.cluster, "here");
    buffer_put(&text, first, strlen(first));
    buffer_put(&text, HOST "Authorization: bearer ", strlen(HOST "Authorization: bearer "));
    assert_int_equal(token_put(&text, &token, &ring.key[0]), ERR_OK);
    buffer_put(&text, "\r\n\r\n", 4);
    client_rig_bytes(&w->r, w->c, buffer_bytes(&text));
    buffer_fini(&text);
}

static void start_asked(struct web *w)
{
    const struct keyring ring = keys();
    struct clients_config clients = clients_config_default();

    (void)snprintf(clients.cluster, sizeof clients.cluster, "here");
    start_as(w, &clients, true);
    goes(w);
    clients_set_keys(w->r.all, &ring);
    clients_set_unix(w->r.all, now_s);
    w->c = comes(w);
}

static void each_request_shows_its_token(void **state)
{
    static const char line[] = "POST /v1/actors/0/me HTTP/1.1\r\n";
    struct web w;

    (void)state;
    start_asked(&w);
    assert_int_equal(stats(&w).unauthenticated, 1);
    says_with(&w, line, "me", now_s + 1);
    assert_int_equal(w.r.request_count, 1);
    client_rig_answer(&w.r, 1, ANSWER_OK, of(""));
    hears_only(&w, 200);
    assert_int_equal(stats(&w).unauthenticated, 0);
    // A proxy's connection is of one back end, then of another.
    says_with(&w, line, "you", now_s + 1);
    hears_only(&w, 403);
    says_with(&w, "POST /v1/actors/0/you HTTP/1.1\r\n", "you", now_s + 1);
    client_rig_answer(&w.r, 2, ANSWER_OK, of(""));
    hears_only(&w, 200);
    assert_int_equal(w.r.request_count, 2);
    assert_non_null(client_output(w.c).size == 0 ? "" : NULL);
    says(&w, "POST /v1/actors/0/you HTTP/1.1\r\n" HOST "\r\n");
    assert_non_null(strstr(hears(&w), "WWW-Authenticate: Bearer\r\n"));
    hears_only(&w, 401);
    assert_true(client_is_done(w.c));
    assert_int_equal(w.r.request_count, 2);
    stop(&w);
}

static void bad_tokens_are_counted_by_reason(void **state)
{
    char body[2048];
    struct web w;

    (void)state;
    start_asked(&w);
    says_with(&w, "POST /v1/actors/0/me HTTP/1.1\r\n", "me", now_s);
    hears_status(&w, 401, body);
    assert_non_null(strstr(body, "token_expired"));
    goes(&w);
    w.c = comes(&w);
    // Not before its body was sent.
    says(&w, CALL "Authorization: Bearer x\r\n\r\n");
    hears_status(&w, 401, body);
    assert_non_null(strstr(body, "token_malformed"));
    goes(&w);
    w.c = comes(&w);
    pass(&w, 6 * second_us);
    assert_true(client_is_done(w.c));
    assert_int_equal(refused(&w, HTTP_TOKEN_EXPIRED), 1);
    assert_int_equal(refused(&w, HTTP_TOKEN_MALFORMED), 1);
    assert_int_equal(w.r.request_count, 0);
    stop(&w);
}

static void who_is_turned_away_is_told_by_http(void **state)
{
    struct clients_config clients = clients_config_default();
    struct admission_result a;
    struct web w;

    (void)state;
    clients.connections_max = 1;
    start_as(&w, &clients, true);
    assert_false(clients_admit(w.r.all, CLIENT_HTTP, "10.0.0.1:1", w.r.rig.now_us, &a));
    assert_memory_equal(a.refusal.data, "HTTP/1.1 503 ", 13);
    buffer_put(&w.heard, a.refusal.data, a.refusal.size);
    buffer_put(&w.heard, "", 1);
    assert_non_null(strstr((const char *)w.heard.data, "Retry-After: "));
    assert_int_equal(refused(&w, HTTP_TURNED_AWAY), 1);
    stop(&w);
}

/* ---- events ---- */

static struct note note_at(const struct web *w, size_t number, enum note_type type)
{
    const struct request_record q = client_rig_request(&w->r, number);
    struct note note = {0};

    assert_int_equal(w->r.request_count, number);
    assert_int_equal(note_get(q.body, &note), ERR_OK);
    assert_int_equal(note.type, type);
    return note;
}

static void actor_binds(struct web *w, size_t number, const struct note *note, struct bound bound)
{
    struct buffer body = {0};

    const bool good = bound.result == BOUND_NEW || bound.result == BOUND_KEPT;

    bound.round = note->round;
    bound.key = good ? note->key : 0;
    bound.keep_ms = good ? 30000 : 0;
    bound_put(&body, &bound);
    client_rig_answer(&w->r, number, ANSWER_OK, buffer_bytes(&body));
    buffer_fini(&body);
}

static void pushes(struct web *w, const struct note *note, uint64_t number, enum push_type type,
                   struct bytes payload)
{
    const struct push_record push = {.gateway = router_id(w->r.rig.router),
                                     .connection = note->connection,
                                     .number = number,
                                     .round = note->round,
                                     .code = 7,
                                     .type = (uint8_t)type,
                                     .payload = payload};

    (void)clients_on_push(w->r.all, &push, w->r.rig.now_us);
}

/* It listens; its last event's id. */
static struct note listens(struct web *w, char id[64])
{
    says(w, "GET /v1/actors/3/boss/events HTTP/1.1\r\n" HOST "\r\n");
    const struct note note = note_at(w, 1, NOTE_KEEP);
    actor_binds(w, 1, &note, (struct bound){.result = BOUND_NEW, .next = 1, .epoch = 1});
    const char *text = hears(w);

    assert_memory_equal(text, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n", 50);
    assert_null(strstr(text, "Content-Length"));
    text = strstr(text, "\r\n\r\n") + 4;
    assert_int_equal(sscanf(text, "event: session\nid: %63s\ndata: ", id), 1);
    assert_non_null(strstr(text, "data: {\"next\":1,\"keep_ms\":30000}\n\n"));
    looked_at(w, strlen(hears(w)));
    return note;
}

static void pushes_are_events(void **state)
{
    char id[64];
    char want[256];
    struct web w;

    (void)state;
    start(&w);
    const struct note note = listens(&w, id);
    id[strlen(id) - 1] = '1'; // .0 before
    pushes(&w, &note, 1, PUSH_DATA, of("one\ntwo"));
    (void)snprintf(want, sizeof want, "id: %s\ndata: one\ndata: two\n\n", id);
    assert_string_equal(hears(&w), want);
    looked_at(&w, strlen(want));
    id[strlen(id) - 1] = '2';
    pushes(&w, &note, 2, PUSH_DATA, bytes_of("\xff\0", 2));
    (void)snprintf(want, sizeof want, "event: base64\nid: %s\ndata: _wA\n\n", id);
    assert_string_equal(hears(&w), want);
    looked_at(&w, strlen(want));
    // A return of the carriage would be another line to who reads it.
    id[strlen(id) - 1] = '3';
    pushes(&w, &note, 3, PUSH_DATA, of("a\rid: 9"));
    assert_memory_equal(hears(&w), "event: base64\n", 14);
    looked_at(&w, strlen(hears(&w)));
    pass(&w, 16 * second_us);
    assert_string_equal(hears(&w), ":\n\n");
    looked_at(&w, 3);
    assert_true(client_wants_input(w.c)); // its end is to be seen
    pushes(&w, &note, 4, PUSH_KICK, of("bye"));
    assert_string_equal(hears(&w), "event: kick\ndata: {\"code\":7,\"text\":\"bye\"}\n\n");
    assert_true(client_is_done(w.c));
    stop(&w);
}

static void events_come_behind_the_answers_before_them(void **state)
{
    static const char *const said[] = {"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream",
                                       "event: session",
                                       "event: begun",
                                       "event: kick"};
    const struct clients_config clients = clients_config_default();
    struct router_config router = router_config_default();
    struct web w = {0};

    (void)state;
    router.deadline_ms = router.retry_ms = REQUEST_TTL_MAX_MS;
    client_rig_init(&w.r, &clients, &router);
    client_rig_ring(&w.r);
    w.c = comes(&w);
    says(&w, "POST /v1/actors/3/other HTTP/1.1\r\n" HOST "\r\n");
    says(&w, "GET /v1/actors/3/boss/events HTTP/1.1\r\n" HOST "\r\n");
    struct note note = note_at(&w, 2, NOTE_KEEP);
    actor_binds(&w, 2, &note, (struct bound){.result = BOUND_NEW, .next = 1, .epoch = 1});
    pass(&w, 16 * second_us); // nor what says that the connection stands
    for (size_t i = 3; i < 5; i++) {
        pushes(&w, &note, 1, PUSH_AGAIN, of(""));
        turn(&w);
        note = note_at(&w, i, NOTE_RENEW);
        actor_binds(&w,
                    i,
                    &note,
                    i == 3 ? (struct bound){.result = BOUND_NEW, .next = 1, .epoch = 1}
                           : (struct bound){.result = BOUND_REFUSED});
        hears_nothing(&w);
    }
    client_rig_answer(&w.r, 1, ANSWER_OK, of("other"));
    const char *text = hears(&w);
    assert_memory_equal(text, said[0], strlen(said[0]));
    for (size_t i = 1; i < 4; i++) {
        text = strstr(text, said[i]);
        assert_non_null(text);
    }
    assert_true(client_is_done(w.c));
    stop(&w);
}

static void who_comes_back_names_its_last_event(void **state)
{
    char id[64];
    char text[256];
    char body[2048];
    struct web w;

    (void)state;
    start(&w);
    struct note note = listens(&w, id);
    const uint64_t key = note.key;
    pushes(&w, &note, 1, PUSH_DATA, of("one"));
    goes(&w);
    note_at(&w, 2, NOTE_LOST);
    w.c = comes(&w);
    id[strlen(id) - 1] = '1';
    (void)snprintf(text,
                   sizeof text,
                   "GET /v1/actors/3/boss/events HTTP/1.1\r\n" HOST "Last-Event-ID: %s\r\n\r\n",
                   id);
    says(&w, text);
    note = note_at(&w, 3, NOTE_RETURN);
    assert_int_equal(note.key, key);
    actor_binds(&w, 3, &note, (struct bound){.result = BOUND_KEPT, .next = 2, .epoch = 2});
    assert_non_null(strstr(hears(&w), "data: {\"next\":2,"));
    looked_at(&w, strlen(hears(&w)));
    pushes(&w, &note, 2, PUSH_DATA, of("two"));
    assert_non_null(strstr(hears(&w), ".2\ndata: two\n\n"));
    goes(&w);
    // Too late: there is nothing any more, and who listens by the rules does not ask again.
    w.c = comes(&w);
    says(&w, text);
    note = note_at(&w, 5, NOTE_RETURN);
    actor_binds(&w, 5, &note, (struct bound){.result = BOUND_GONE});
    hears_status(&w, 410, body);
    assert_true(client_is_done(w.c));
    stop(&w);
}

static void who_may_not_listen_is_told(void **state)
{
    char body[2048];
    struct web w;

    (void)state;
    start(&w);
    says(&w, "GET /v1/actors/3/boss/events HTTP/1.1\r\n" HOST "\r\n");
    const struct note note = note_at(&w, 1, NOTE_KEEP);
    actor_binds(&w, 1, &note, (struct bound){.result = BOUND_NEVER});
    hears_status(&w, 409, body);
    assert_non_null(strstr(body, "NOSESSION"));
    assert_true(client_is_done(w.c));
    goes(&w);
    w.c = comes(&w);
    says(&w, "GET /v1/actors/3/boss/events HTTP/1.1\r\n" HOST "\r\n");
    client_rig_answer(&w.r, 2, ANSWER_NO_KIND, of(""));
    hears_status(&w, 404, body);
    assert_true(client_is_done(w.c));
    stop(&w);
}

static void who_listens_says_nothing_more(void **state)
{
    char id[64];
    struct web w;

    (void)state;
    start(&w);
    (void)listens(&w, id);
    says(&w, CALL "\r\nhi");
    assert_true(client_is_done(w.c));
    assert_int_equal(refused(&w, HTTP_BEHIND_EVENTS), 1);
    goes(&w);
    stop(&w);
}

static int cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered_with_the_actors_bytes),
        cmocka_unit_test(the_query_says_how_it_is_asked),
        cmocka_unit_test(each_outcome_has_its_status),
        cmocka_unit_test(answers_come_in_the_order_of_the_requests),
        cmocka_unit_test(requests_come_in_any_pieces),
        cmocka_unit_test(what_is_asked_wrongly_is_told_and_the_connection_goes_on),
        cmocka_unit_test(who_asks_much_that_is_refused_rests),
        cmocka_unit_test(what_cannot_be_read_ends_the_connection),
        cmocka_unit_test(an_answer_to_head_has_no_body),
        cmocka_unit_test(who_asks_otherwise_behind_a_head_has_a_body),
        cmocka_unit_test(a_body_that_is_too_large_is_dropped),
        cmocka_unit_test(a_request_has_one_answer),
        cmocka_unit_test(who_expects_it_is_told_to_go_on),
        cmocka_unit_test(a_slow_request_is_not_waited_for),
        cmocka_unit_test(a_gateway_that_stops_answers_what_it_took),
        cmocka_unit_test(a_key_names_one_request_of_one_entity),
        cmocka_unit_test(a_key_under_way_is_refused_until_its_connection_goes),
        cmocka_unit_test(a_request_that_is_asked_again_says_since_when),
        cmocka_unit_test(a_keyed_tell_waits_for_nothing),
        cmocka_unit_test(without_a_ring_there_are_no_keys),
        cmocka_unit_test(each_request_shows_its_token),
        cmocka_unit_test(bad_tokens_are_counted_by_reason),
        cmocka_unit_test(who_is_turned_away_is_told_by_http),
        cmocka_unit_test(pushes_are_events),
        cmocka_unit_test(events_come_behind_the_answers_before_them),
        cmocka_unit_test(who_comes_back_names_its_last_event),
        cmocka_unit_test(who_may_not_listen_is_told),
        cmocka_unit_test(who_listens_says_nothing_more),
    };

    return cmocka_run_group_tests_name("client_http", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_KEYIGNORED, M_TWOLENGTHS, M_ANYTOKEN};

    return planted_main(argc, argv, cases, all, sizeof all / sizeof all[0]);
}
