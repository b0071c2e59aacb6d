/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/number.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_SIZE = 8192 };

static char folder[] = "/tmp/ringhold-number-XXXXXX";
static char path[64];

static int start(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof path, "%s/numbers", folder);
    (void)unlink(path);
    return 0;
}

/* Open, compare with `want`, leave closed. */
static enum err check(const char *want)
{
    struct number *n = NULL;
    struct buffer got = {0};
    const enum err error = number_open(&n, path, &got);

    if (error == ERR_OK) {
        assert_int_equal(got.size, strlen(want));
        assert_memory_equal(got.size == 0 ? (const void *)"" : got.data, want, got.size);
    }
    number_close(n);
    buffer_fini(&got);
    return error;
}

static void store(const char *text)
{
    struct number *n = NULL;
    struct buffer got = {0};

    assert_int_equal(number_open(&n, path, &got), ERR_OK);
    assert_int_equal(number_store(n, bytes_of(text, strlen(text))), ERR_OK);
    number_close(n);
    buffer_fini(&got);
}

static void the_last_store_is_what_open_finds(void **state)
{
    (void)state;
    assert_int_equal(check(""), ERR_OK);
    store("one");
    assert_int_equal(check("one"), ERR_OK);
    store("two");
    store("three");
    assert_int_equal(check("three"), ERR_OK);
}

static void a_store_torn_at_any_byte_leaves_the_one_before(void **state)
{
    uint8_t before[FILE_SIZE];
    uint8_t after[FILE_SIZE];

    (void)state;
    store("first");
    store("before");
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, before, sizeof before, 0), FILE_SIZE);
    store("after");
    assert_int_equal(pread(fd, after, sizeof after, 0), FILE_SIZE);
    // The third store went to slot 0: write only its first `torn` bytes over what was there.
    for (size_t torn = 0; torn < 64; torn++) {
        uint8_t file[FILE_SIZE];

        memcpy(file, before, sizeof file);
        memcpy(file, after, torn);
        assert_int_equal(pwrite(fd, file, sizeof file, 0), FILE_SIZE);
        const bool whole = memcmp(file, after, sizeof file) == 0;
        assert_int_equal(check(whole ? "after" : "before"), ERR_OK);
    }
    (void)close(fd);
}

static void two_bad_slots_are_refused(void **state)
{
    (void)state;
    store("one");
    store("two");
    const int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, "\xff", 1, 20), 1);
    assert_int_equal(pwrite(fd, "\xff", 1, 4096 + 20), 1);
    (void)close(fd);
    assert_int_equal(check(""), ERR_CORRUPT);
}

static void a_file_that_was_cut_short_is_refused(void **state)
{
    (void)state;
    store("one");
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(check("one"), ERR_OK); // the second slot was never written
    store("two");
    store("three");
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(check(""), ERR_CORRUPT);
}

static void what_cannot_be_stored_is_said(void **state)
{
    static const uint8_t large[NUMBER_PAYLOAD_MAX + 1];
    struct number *n = NULL;
    struct buffer got = {0};

    (void)state;
    assert_int_equal(number_open(&n, "/proc/no/such/place", &got), ERR_IO);
    assert_int_equal(number_open(&n, path, &got), ERR_OK);
    assert_int_equal(number_store(n, bytes_of(large, sizeof large)), ERR_TOO_BIG);
    assert_int_equal(number_store(n, bytes_of(large, NUMBER_PAYLOAD_MAX)), ERR_OK);
    number_close(n);
    buffer_fini(&got);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(the_last_store_is_what_open_finds, start),
        cmocka_unit_test_setup(a_store_torn_at_any_byte_leaves_the_one_before, start),
        cmocka_unit_test_setup(two_bad_slots_are_refused, start),
        cmocka_unit_test_setup(a_file_that_was_cut_short_is_refused, start),
        cmocka_unit_test_setup(what_cannot_be_stored_is_said, start),
    };
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    const int failed = cmocka_run_group_tests(cases, NULL, NULL);
    (void)unlink(path);
    (void)rmdir(folder);
    return failed;
}
