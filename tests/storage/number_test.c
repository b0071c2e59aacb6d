/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of storage/log/number.h, torn anywhere.
 */
#include "storage/log/number.h"

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

/* A disk writes sectors whole: of the 4096 bytes of a slot any set of sectors may be new. */
static void a_store_torn_between_any_sectors_leaves_it_or_the_one_before(void **state)
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
    // A new file has both slots, so the third store went to slot 0 again: the first half.
    for (unsigned sectors = 0; sectors < 256; sectors++) {
        uint8_t file[FILE_SIZE];

        memcpy(file, before, sizeof file);
        for (size_t i = 0; i < 8; i++) {
            if ((sectors >> i & 1) != 0) {
                memcpy(file + i * 512, after + i * 512, 512);
            }
        }
        assert_int_equal(pwrite(fd, file, sizeof file, 0), FILE_SIZE);
        // Either record of the slot is enough.
        assert_int_equal(check((sectors & 0x11) != 0 ? "after" : "before"), ERR_OK);
    }
    (void)close(fd);
}

/* One of more than a sector may be torn inside. */
static void a_large_store_torn_at_any_byte_leaves_it_or_the_one_before(void **state)
{
    char small[] = "before";
    char large[1001];
    uint8_t before[FILE_SIZE];
    uint8_t after[FILE_SIZE];

    (void)state;
    memset(large, 'x', sizeof large);
    large[1000] = '\0';
    store(large);
    store(small);
    const int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, before, sizeof before, 0), FILE_SIZE);
    large[500] = 'y';
    store(large);
    assert_int_equal(pread(fd, after, sizeof after, 0), FILE_SIZE);
    for (size_t torn = 0; torn <= 4096; torn += 256) {
        uint8_t file[FILE_SIZE];

        memcpy(file, before, sizeof file);
        memcpy(file, after, torn);
        assert_int_equal(pwrite(fd, file, sizeof file, 0), FILE_SIZE);
        const enum err error = check(torn >= 1024 ? large : small);
        assert_int_equal(error, ERR_OK);
    }
    (void)close(fd);
}

/* Rot, after all was confirmed: the last store is found, or nothing is. */
static void a_flipped_bit_anywhere_never_brings_back_an_older_store(void **state)
{
    uint8_t file[FILE_SIZE];

    (void)state;
    store("one");
    store("two");
    store("three");
    const int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, file, sizeof file, 0), FILE_SIZE);
    for (size_t at = 0; at < sizeof file; at++) {
        const uint8_t flipped = file[at] ^ 0x10;

        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        assert_int_equal(check("three"), ERR_OK); // one flip spoils one of two records
        assert_int_equal(pwrite(fd, &file[at], 1, (off_t)at), 1);
    }
    (void)close(fd);
}

static void a_slot_whose_two_records_are_bad_is_refused(void **state)
{
    (void)state;
    for (off_t slot = 0; slot < FILE_SIZE; slot += 4096) {
        (void)unlink(path);
        store("one");
        store("two");
        const int fd = open(path, O_RDWR);
        assert_int_equal(pwrite(fd, "\xff", 1, slot + 21), 1);
        assert_int_equal(pwrite(fd, "\xff", 1, slot + 2048 + 21), 1);
        (void)close(fd);
        assert_int_equal(check(""), ERR_CORRUPT);
    }
}

static void a_page_of_zeros_never_brings_back_an_older_store(void **state)
{
    static const char *const words[] = {"one", "two", "three"};
    static const uint8_t zeros[FILE_SIZE / 2];

    (void)state;
    assert_int_equal(check(""), ERR_OK);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint8_t file[FILE_SIZE];

        store(words[i]);
        const int fd = open(path, O_RDWR);
        assert_int_equal(pread(fd, file, sizeof file, 0), FILE_SIZE);
        for (off_t at = 0; at < FILE_SIZE; at += FILE_SIZE / 2) {
            assert_int_equal(pwrite(fd, zeros, sizeof zeros, at), sizeof zeros);
            assert_int_equal(check(words[i]), ERR_CORRUPT);
            assert_int_equal(pwrite(fd, file, sizeof file, 0), FILE_SIZE);
        }
        (void)close(fd);
        assert_int_equal(check(words[i]), ERR_OK);
    }
}

static void a_file_cut_short_at_any_length_is_refused(void **state)
{
    static const off_t sizes[] = {0, 1, 24, 512, 2048, 4095, 4096, 4120, 6144, 8191};

    (void)state;
    for (size_t stores = 0; stores < 4; stores++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            (void)unlink(path);
            assert_int_equal(check(""), ERR_OK);
            for (size_t k = 0; k < stores; k++) {
                store("text");
            }
            assert_int_equal(truncate(path, sizes[i]), 0);
            assert_int_equal(check(""), ERR_CORRUPT);
        }
    }
}

/* As the version before wrote it: one record a slot, the file made by the first store. */
static void a_file_of_the_version_before_is_read(void **state)
{
    static const uint8_t zeros[2048];

    (void)state;
    store("one");
    store("two");
    const int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, zeros, sizeof zeros, 2048), sizeof zeros);
    assert_int_equal(pwrite(fd, zeros, sizeof zeros, 6144), sizeof zeros);
    (void)close(fd);
    assert_int_equal(check("two"), ERR_OK);
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
        cmocka_unit_test_setup(a_store_torn_between_any_sectors_leaves_it_or_the_one_before, start),
        cmocka_unit_test_setup(a_large_store_torn_at_any_byte_leaves_it_or_the_one_before, start),
        cmocka_unit_test_setup(a_flipped_bit_anywhere_never_brings_back_an_older_store, start),
        cmocka_unit_test_setup(a_slot_whose_two_records_are_bad_is_refused, start),
        cmocka_unit_test_setup(a_page_of_zeros_never_brings_back_an_older_store, start),
        cmocka_unit_test_setup(a_file_cut_short_at_any_length_is_refused, start),
        cmocka_unit_test_setup(a_file_of_the_version_before_is_read, start),
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
