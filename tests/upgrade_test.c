/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/upgrade.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

static const struct upgrade_rules any = {.path = "/", .origins = ""};
static const struct upgrade_rules strict = {.path = "/game",
                                            .origins = "https://a.example, https://b.example"};

#define HOST    "Host: a.example\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define END     "\r\n"

static enum upgrade_result parse(const char *text, const struct upgrade_rules *rules,
                                 struct upgrade *out)
{
    size_t scanned = 0;

    return upgrade_parse(bytes_of(text, strlen(text)), &scanned, rules, out);
}

static void the_answer_is_that_of_the_rfc(void **state)
{
    static const char text[] = "GET /chat HTTP/1.1\r\n"
                               "Host: server.example.com\r\nUpgrade: websocket\r\n"
                               "Connection: Upgrade\r\n" KEY "Origin: http://example.com\r\n"
                               "Sec-WebSocket-Protocol: chat, ringhold.v1\r\n" VERSION END "behind";
    const struct upgrade_rules rules = {.path = "/chat", .origins = ""};
    struct buffer out = {0};
    struct upgrade upgrade;

    (void)state;
    assert_int_equal(parse(text, &rules, &upgrade), UPGRADE_GOOD);
    assert_string_equal(text + upgrade.size, "behind");
    assert_true(upgrade.named);
    upgrade_put_answer(&out, &upgrade);
    buffer_put(&out, "", 1);
    assert_string_equal((const char *)out.data,
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                        "Connection: Upgrade\r\n"
                        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                        "Sec-WebSocket-Protocol: ringhold.v1\r\n\r\n");
    buffer_fini(&out);
}

static const struct {
    const struct upgrade_rules *rules;
    const char *text;
    enum upgrade_result result;
} requests[] = {
    {&any, "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY END, UPGRADE_GOOD},
    {&any, "GET /?a=b HTTP/1.1\r\n" HOST UPGRADE VERSION KEY END, UPGRADE_GOOD},
    {&any, "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "Origin: null\r\n" END, UPGRADE_GOOD},
    {&any,
     "GET / HTTP/1.1\r\nhost:\ta\r\nUPGRADE: h2c,\tWebSocket \r\n"
     "connection:keep-alive ,UPGRADE\r\nsec-websocket-version:13\r\n" KEY END,
     UPGRADE_GOOD},
    {&strict, "GET /game HTTP/1.1\r\n" HOST UPGRADE VERSION KEY END, UPGRADE_GOOD},
    {&strict,
     "GET /game HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "Origin: https://b.example\r\n" END,
     UPGRADE_GOOD},
    {&strict,
     "GET /game HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "Origin: https://c.example\r\n" END,
     UPGRADE_FORBIDDEN},
    {&strict,
     "GET /game HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "Origin: https://a.example.c\r\n" END,
     UPGRADE_FORBIDDEN},
    {&strict,
     "GET /game HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "Origin: \r\n" END,
     UPGRADE_FORBIDDEN},
    {&strict, "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY END, UPGRADE_NOT_FOUND},
    {&any, "POST / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY END, UPGRADE_METHOD},
    {&any, "GET / HTTP/1.1\r\n" HOST END, UPGRADE_REQUIRED},
    {&any,
     "GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nConnection: Upgrade\r\n" END,
     UPGRADE_REQUIRED},
    {&any, "GET / HTTP/1.1\r\n" HOST UPGRADE KEY END, UPGRADE_REQUIRED},
    {&any,
     "GET / HTTP/1.1\r\n" HOST UPGRADE "Sec-WebSocket-Version: 8\r\n" KEY END,
     UPGRADE_REQUIRED},
    {&any, "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY KEY END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any,
     "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSA=\r\n" END,
     UPGRADE_BAD_REQUEST},
    {&any,
     "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION
     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ!==\r\n" END,
     UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" UPGRADE VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\nHost: \r\n" UPGRADE VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST HOST UPGRADE VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n" VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any,
     "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "Content-Length: 1\r\n" END,
     UPGRADE_BAD_REQUEST},
    {&any,
     "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "Transfer-Encoding: chunked\r\n" END,
     UPGRADE_BAD_REQUEST},
    {&any,
     "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "Origin: a\r\nOrigin: b\r\n" END,
     UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.0\r\n" HOST UPGRADE VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1 \r\n" HOST UPGRADE VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any, "GET  HTTP/1.1\r\n" HOST UPGRADE VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any, "GET /\x7f HTTP/1.1\r\n" HOST UPGRADE VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\n" HOST UPGRADE VERSION KEY END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST "No colon\r\n" END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST ": none\r\n" END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST "A b: c\r\n" END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n" END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n" END, UPGRADE_BAD_REQUEST},
    {&any, "GET / HTTP/1.1\r\n" HOST "A: b\x01\r\n" END, UPGRADE_BAD_REQUEST},
    {&any, "\x16\x03\x01", UPGRADE_BAD_REQUEST},
    {&any, " GET / HTTP/1.1\r\n", UPGRADE_BAD_REQUEST},
    {&any, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", UPGRADE_BAD_REQUEST},
    {&any, "", UPGRADE_MORE},
    {&any, "GE", UPGRADE_MORE},
};

static void each_request_is_judged(void **state)
{

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        struct upgrade upgrade;

        if (parse(requests[i].text, requests[i].rules, &upgrade) != requests[i].result) {
            fail_msg("row %zu: %s", i, requests[i].text);
        }
    }
}

static void it_may_come_byte_by_byte(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY END;
    struct upgrade upgrade;
    size_t scanned = 0;

    (void)state;
    for (size_t size = 0; size < sizeof text - 1; size++) {
        assert_int_equal(upgrade_parse(bytes_of(text, size), &scanned, &any, &upgrade),
                         UPGRADE_MORE);
    }
    assert_int_equal(upgrade_parse(bytes_of(text, sizeof text - 1), &scanned, &any, &upgrade),
                     UPGRADE_GOOD);
}

static void it_may_have_8_kib(void **state)
{
    static const char head[] = "GET / HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "A: ";
    const struct bytes end = bytes_of("\r\n\r\n", 4);
    char text[UPGRADE_SIZE_MAX + 1];
    struct upgrade upgrade;
    size_t scanned = 0;

    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text, head, sizeof head - 1);
    assert_int_equal(upgrade_parse(bytes_of(text, UPGRADE_SIZE_MAX - 1), &scanned, &any, &upgrade),
                     UPGRADE_MORE);
    assert_int_equal(upgrade_parse(bytes_of(text, UPGRADE_SIZE_MAX), &scanned, &any, &upgrade),
                     UPGRADE_TOO_LARGE);
    memcpy(text + UPGRADE_SIZE_MAX - end.size, end.data, end.size);
    scanned = 0;
    assert_int_equal(upgrade_parse(bytes_of(text, UPGRADE_SIZE_MAX), &scanned, &any, &upgrade),
                     UPGRADE_GOOD);
    memset(text, 'x', sizeof text);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + UPGRADE_SIZE_MAX - end.size + 1, end.data, end.size);
    scanned = 0;
    assert_int_equal(upgrade_parse(bytes_of(text, sizeof text), &scanned, &any, &upgrade),
                     UPGRADE_TOO_LARGE);
}

static void refusals_are_http(void **state)
{
    (void)state;
    for (int i = UPGRADE_BAD_REQUEST; i <= UPGRADE_FULL; i++) {
        struct buffer out = {0};

        upgrade_put_refusal(&out, (enum upgrade_result)i, 7);
        buffer_put(&out, "", 1);
        const char *text = (const char *)out.data;
        assert_memory_equal(text, "HTTP/1.1 ", 9);
        assert_in_range(strtoul(text + 9, NULL, 10), 400, 503);
        const char *size = strstr(text, "Content-Length: ");
        assert_non_null(size);
        assert_int_equal(strtoul(size + 16, NULL, 10), strlen(strstr(text, "\r\n\r\n") + 4));
        buffer_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_is_that_of_the_rfc),
        cmocka_unit_test(each_request_is_judged),
        cmocka_unit_test(it_may_come_byte_by_byte),
        cmocka_unit_test(it_may_have_8_kib),
        cmocka_unit_test(refusals_are_http),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
