/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/crc.h: known sums, and both ways to compute them.
 */
#include "base/crc.h"

#include "tests/test.h"

#include <string.h>

static void the_checksums_are_those_of_the_standard(void **state)
{
    uint8_t run[32];

    (void)state;
    assert_int_equal(crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(crc32c("", 0), 0);
    // RFC 3720, B.4.
    memset(run, 0, sizeof run);
    assert_int_equal(crc32c(run, sizeof run), 0x8a9136aau);
    memset(run, 0xff, sizeof run);
    assert_int_equal(crc32c(run, sizeof run), 0x62a8ab43u);
    for (unsigned i = 0; i < sizeof run; i++) {
        run[i] = (uint8_t)i;
    }
    assert_int_equal(crc32c(run, sizeof run), 0x46dd794eu);
}

static void a_checksum_goes_on_where_another_ended(void **state)
{
    uint8_t run[100];

    (void)state;
    for (unsigned i = 0; i < sizeof run; i++) {
        run[i] = (uint8_t)(i * 7);
    }
    for (size_t cut = 0; cut <= sizeof run; cut++) {
        const uint32_t front = crc32c(run, cut);

        assert_int_equal(crc32c_more(front, run + cut, sizeof run - cut), crc32c(run, sizeof run));
    }
}

static void machine_and_table_agree(void **state)
{
    uint8_t run[67];

    (void)state;
    for (unsigned i = 0; i < sizeof run; i++) {
        run[i] = (uint8_t)(i * 31 + 5);
    }
    for (size_t from = 0; from < 9; from++) {
        for (size_t size = 0; from + size <= sizeof run; size++) {
            assert_int_equal(crc32c_more(7, run + from, size),
                             crc32c_more_by_table(7, run + from, size));
        }
    }
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(the_checksums_are_those_of_the_standard),
        cmocka_unit_test(a_checksum_goes_on_where_another_ended),
        cmocka_unit_test(machine_and_table_agree),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
