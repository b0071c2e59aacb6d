/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers of proxies, and the ranges of addresses that may send them.
 */
#include "gateway/access/proxy.h"
#include "gateway/access/ranges.h"

#include "tests/test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define FOUR "\xc0\x00\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb" /* 192.0.2.1:56324 to … */
#define SIX                                                                                \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x08" \
    "\xdc\x04\x01\xbb"

/* What a good one names, as text; NULL: nobody. */
static void expect_named(struct bytes in, const char *address, unsigned port, size_t size)
{
    struct proxy_header got;
    char text[64];

    assert_int_equal(proxy_parse(in, &got), address == NULL ? PROXY_UNNAMED : PROXY_NAMED);
    assert_int_equal(got.size, size);
    if (address != NULL) {
        assert_non_null(inet_ntop(AF_INET6, got.address, text, sizeof text));
        assert_string_equal(text, address);
        assert_int_equal(got.port, port);
    }
}

static struct bytes text(const char *s)
{
    return bytes_of(s, strlen(s));
}

static void expect_line(const char *line, const char *address, unsigned port)
{
    char more[300];
    struct proxy_header got;

    (void)snprintf(more, sizeof more, "%s and the client", line);
    expect_named(text(more), address, port, strlen(line));
    for (size_t i = 0; i < strlen(line); i++) {
        assert_int_equal(proxy_parse(bytes_of(line, i), &got), PROXY_MORE);
    }
}

static void a_line_names_a_client(void **state)
{
    (void)state;
    expect_line("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n", "::ffff:192.0.2.1", 56324);
    expect_line("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
                "::ffff:255.255.255.255",
                65535);
    expect_line("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "::ffff:0.0.0.0", 0);
    expect_line("PROXY TCP6 2001:db8::7 2001:db8::8 1 2\r\n", "2001:db8::7", 1);
    expect_line("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                65535);
    expect_line("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n", "::ffff:192.0.2.1", 1);
    expect_line("PROXY UNKNOWN\r\n", NULL, 0);
    expect_line("PROXY UNKNOWN ffff:f...f:ffff anything 65535\r\n", NULL, 0);
}

static void a_line_that_is_not_right_is_bad(void **state)
{
    static const char *const bad[] = {
        "PROXY\r\n",
        "PROXY \r\n",
        "PROXY  TCP4 192.0.2.1 198.51.100.1 56324 443\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 \r\n",
        "PROXY TCP4 192.0.2.1\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 56324 \r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 \r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 1\r\n",
        "PROXY TCP4 192.0.2.1  198.51.100.1 56324 443\r\n",
        "PROXY TCP4 192.0.2.1\t198.51.100.1 56324 443\r\n",
        "PROXY TCP4 192.0.2.256 198.51.100.1 56324 443\r\n",
        "PROXY TCP4 192.0.2 198.51.100.1 56324 443\r\n",
        "PROXY TCP4 192.0.2.1 here 56324 443\r\n",
        "PROXY TCP4 2001:db8::7 2001:db8::8 1 2\r\n",
        "PROXY TCP6 192.0.2.1 198.51.100.1 56324 443\r\n",
        "PROXY TCP6 2001:db8::7%eth0 2001:db8::8 1 2\r\n",
        "PROXY TCP6 [2001:db8::7] [2001:db8::8] 1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 65536 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 056 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 -1 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 +1 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 1x 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 1 100000\r\n",
        "PROXY TCP5 192.0.2.1 198.51.100.1 1 2\r\n",
        "PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n",
        "PROXY tcp4 192.0.2.1 198.51.100.1 1 2\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\n",
        "PROXY \n",
        "proxy TCP4 192.0.2.1 198.51.100.1 56324 443\r\n",
        "PROXI",
        "GET / HTTP/1.1\r\n",
        "\r\n\r\n\n",
        "\1",
    };
    struct proxy_header got;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (proxy_parse(text(bad[i]), &got) != PROXY_BAD) {
            fail_msg("good: %s", bad[i]);
        }
    }
    assert_int_equal(proxy_parse(bytes_of("PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n", 33), &got),
                     PROXY_BAD);
    // The line's end is within 107 bytes, or nowhere.
    for (size_t size = PROXY_LINE_MAX - 2; size <= PROXY_LINE_MAX; size++) {
        struct buffer line = {0};

        buffer_put(&line, "PROXY UNKNOWN ", 14);
        while (line.size < size - 2) {
            buffer_put(&line, "x", 1);
        }
        buffer_put(&line, "\r\n", 2);
        expect_named(buffer_bytes(&line), NULL, 0, size);
        line.data[size - 2] = 'x';
        line.data[size - 1] = 'x';
        assert_int_equal(proxy_parse(buffer_bytes(&line), &got),
                         size < PROXY_LINE_MAX ? PROXY_MORE : PROXY_BAD);
        buffer_put(&line, "xx\r\n", 4);
        assert_int_equal(proxy_parse(buffer_bytes(&line), &got), PROXY_BAD);
        buffer_fini(&line);
    }
}

/* One of version 2, with as many bytes behind the addresses; its size. */
static size_t binary(uint8_t *out, uint8_t command, uint8_t family, struct bytes addresses,
                     size_t tlvs)
{
    const size_t size = addresses.size + tlvs;
    static const uint8_t signature[12] = {13, 10, 13, 10, 0, 13, 10, 'Q', 'U', 'I', 'T', 10};

    memcpy(out, signature, sizeof signature);
    out[12] = command;
    out[13] = family;
    out[14] = (uint8_t)(size >> 8);
    out[15] = (uint8_t)size;
    if (addresses.size > 0) {
        memcpy(out + 16, addresses.data, addresses.size);
    }
    memset(out + 16 + addresses.size, 0xee, tlvs);
    return 16 + size;
}

static void bytes_name_a_client(void **state)
{
    static const struct {
        uint8_t command;
        uint8_t family;
        struct bytes addresses;
        const char *address;
    } good[] = {
        {0x21, 0x11, {(const uint8_t *)FOUR, 12}, "::ffff:192.0.2.1"},
        {0x21, 0x21, {(const uint8_t *)SIX, 36}, "2001:db8::7"},
        {0x20, 0x11, {(const uint8_t *)FOUR, 12}, NULL},
        {0x20, 0x00, {NULL, 0}, NULL},
        {0x20, 0xff, {NULL, 0}, NULL}, // LOCAL: the rest is to be passed over
        {0x21, 0x00, {NULL, 0}, NULL},
        {0x21, 0x31, {(const uint8_t *)SIX, 36}, NULL},
    };
    static uint8_t in[PROXY_SIZE_MAX + 100];
    struct proxy_header got;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const size_t tlvs[] = {0, 1, 300, PROXY_SIZE_MAX - 16 - good[i].addresses.size};

        for (size_t k = 0; k < 4; k++) {
            const size_t size =
                binary(in, good[i].command, good[i].family, good[i].addresses, tlvs[k]);

            expect_named(bytes_of(in, size), good[i].address, 56324, size);
            expect_named(bytes_of(in, size + 50), good[i].address, 56324, size);
            for (size_t cut = 0; cut < size; cut++) {
                assert_int_equal(proxy_parse(bytes_of(in, cut), &got), PROXY_MORE);
            }
        }
    }
}

static void bytes_that_are_not_right_are_bad(void **state)
{
    static uint8_t in[PROXY_SIZE_MAX + 100];
    const struct bytes four = bytes_of(FOUR, 12);
    struct proxy_header got;

    (void)state;
    for (unsigned command = 0; command < 256; command++) {
        const size_t size = binary(in, (uint8_t)command, 0x11, four, 0);
        const enum proxy_result right = command == 0x21   ? PROXY_NAMED
                                        : command == 0x20 ? PROXY_UNNAMED
                                                          : PROXY_BAD;

        assert_int_equal(proxy_parse(bytes_of(in, size), &got), right);
    }
    for (unsigned family = 0; family < 256; family++) {
        const size_t size = binary(in, 0x21, (uint8_t)family, bytes_of(SIX, 36), 0);
        const bool known = family == 0x11 || family == 0x21;
        const bool passed = family == 0x00 || family == 0x31;
        const enum proxy_result right = known ? PROXY_NAMED : passed ? PROXY_UNNAMED : PROXY_BAD;

        assert_int_equal(proxy_parse(bytes_of(in, size), &got), right);
    }
    for (size_t size = 0; size < 12; size++) { // addresses that are cut
        assert_int_equal(
            proxy_parse(bytes_of(in, binary(in, 0x21, 0x11, bytes_of(FOUR, size), 0)), &got),
            PROXY_BAD);
    }
    for (size_t size = 0; size < 36; size++) {
        assert_int_equal(
            proxy_parse(bytes_of(in, binary(in, 0x21, 0x21, bytes_of(SIX, size), 0)), &got),
            PROXY_BAD);
    }
    // Too long is known from the size alone.
    (void)binary(in, 0x21, 0x11, four, PROXY_SIZE_MAX - 16 - 12 + 1);
    assert_int_equal(proxy_parse(bytes_of(in, 16), &got), PROXY_BAD);
    for (size_t i = 0; i < 12; i++) {
        (void)binary(in, 0x21, 0x11, four, 0);
        in[i] ^= 1;
        assert_int_equal(proxy_parse(bytes_of(in, 28), &got), PROXY_BAD);
    }
}

/* ---- ranges ---- */

static bool in_ranges(const char *ranges, const char *address)
{
    uint8_t raw[16] = {[10] = 0xff, [11] = 0xff};
    struct ranges r;

    assert_true(ranges_parse(ranges, &r));
    assert_true(inet_pton(AF_INET, address, raw + 12) == 1 ||
                inet_pton(AF_INET6, address, raw) == 1);
    return ranges_have(&r, raw);
}

static void ranges_have_addresses(void **state)
{
    (void)state;
    assert_true(in_ranges("10.0.0.0/8", "10.255.0.1"));
    assert_false(in_ranges("10.0.0.0/8", "11.0.0.0"));
    assert_true(in_ranges("192.0.2.7", "192.0.2.7"));
    assert_false(in_ranges("192.0.2.7", "192.0.2.6"));
    assert_true(in_ranges("192.0.2.4/31", "192.0.2.5"));
    assert_false(in_ranges("192.0.2.4/31", "192.0.2.6"));
    assert_true(in_ranges("0.0.0.0/0", "203.0.113.9"));
    assert_false(in_ranges("0.0.0.0/0", "2001:db8::1"));
    assert_true(in_ranges("::/0", "2001:db8::1"));
    assert_true(in_ranges("2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(in_ranges("2001:db8::/33", "2001:db8:8000::1"));
    assert_true(in_ranges("127.0.0.1,::1", "::1"));
    assert_true(in_ranges("127.0.0.1,::1", "127.0.0.1"));
    assert_false(in_ranges("", "127.0.0.1"));
}

static void what_is_no_range_is_refused(void **state)
{
    static const char *const bad[] = {"10.0.0.1/8",
                                      "10.0.0.0/33",
                                      "10.0.0.0/",
                                      "10.0.0.0/08x",
                                      "10.0.0.0/-1",
                                      "10.0.0.0/8/8",
                                      "10.0.0",
                                      "localhost",
                                      "::/129",
                                      "2001:db8::1/64",
                                      ",",
                                      "10.0.0.0/8,",
                                      ",10.0.0.0/8",
                                      "10.0.0.0/8,,::1",
                                      "10.0.0.0/8, ::1",
                                      "10.0.0.0/8 "};
    char many[RANGES_MAX * 8 + 16];
    size_t size = 0;
    struct ranges r;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (ranges_parse(bad[i], &r)) {
            fail_msg("good: '%s'", bad[i]);
        }
    }
    for (int i = 0; i <= RANGES_MAX; i++) {
        size += (size_t)snprintf(many + size, sizeof many - size, "%s1.2.3.4", i == 0 ? "" : ",");
        assert_int_equal(ranges_parse(many, &r), i < RANGES_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_line_names_a_client),
        cmocka_unit_test(a_line_that_is_not_right_is_bad),
        cmocka_unit_test(bytes_name_a_client),
        cmocka_unit_test(bytes_that_are_not_right_are_bad),
        cmocka_unit_test(ranges_have_addresses),
        cmocka_unit_test(what_is_no_range_is_refused),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
