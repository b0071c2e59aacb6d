/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of wire/address.h.
 */
#include "wire/address.h"

#include "tests/test.h"

#include <string.h>

static void addresses_come_apart_and_together(void **state)
{
    const struct {
        const char *text;
        const char *host;
        uint16_t port;
    } cases[] = {
        {"127.0.0.1:7001", "127.0.0.1", 7001},
        {"db-1.example_x:65535", "db-1.example_x", 65535},
        {"[::1]:0", "::1", 0},
        {"[2001:db8::7]:80", "2001:db8::7", 80},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address address;
        char text[ADDRESS_SIZE_MAX + 8];

        assert_int_equal(address_parse(cases[i].text, &address), ERR_OK);
        assert_string_equal(address.host, cases[i].host);
        assert_int_equal(address.port, cases[i].port);
        address_format(&address, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static void what_is_no_address_is_refused(void **state)
{
    const char *const wrong[] = {
        "",
        ":",
        ":7001",
        "host",
        "host:",
        "host:65536",
        "host:123456",
        "host:-1",
        "host:7x",
        "host: 7",
        "host:7 ",
        "host:7001/path",
        "tcp://host:7001",
        "ho st:1",
        "::1:7001",
        "[::1]",
        "[::1]7001",
        "[]:1",
        "[::1:7001",
        "[host]:7001",
    };
    char long_text[ADDRESS_SIZE_MAX + 1];
    struct address address;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(address_parse(wrong[i], &address), ERR_INVALID);
    }
    memset(long_text, 'a', sizeof long_text);
    memcpy(long_text + ADDRESS_SIZE_MAX - 2, ":1", sizeof ":1");
    assert_int_equal(address_parse(long_text, &address), ERR_INVALID);
    memcpy(long_text + ADDRESS_SIZE_MAX - 3, ":1", sizeof ":1");
    assert_int_equal(address_parse(long_text, &address), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(addresses_come_apart_and_together),
        cmocka_unit_test(what_is_no_address_is_refused),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
