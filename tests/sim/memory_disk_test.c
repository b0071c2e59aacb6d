/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of sim/memory_disk.h: what a power failure leaves.
 */
#include "sim/memory_disk.h"

#include "base/files.h"
#include "storage/log/number.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char *path_on(const struct memory_disk *p, const char *name)
{
    static char path[64];

    (void)snprintf(path, sizeof path, "%s/%s", memory_disk_path(p), name);
    return path;
}

static void put(const struct memory_disk *p, const char *name, const char *text, bool synced)
{
    const int file = files->open(path_on(p, name), O_RDWR | O_CREAT);

    assert_true(file >= 0);
    assert_int_equal(files->write(file, text, strlen(text), 0), (int)strlen(text));
    if (synced) {
        assert_int_equal(files->sync(file), 0);
        assert_int_equal(files->sync_directory(memory_disk_path(p)), 0);
    }
    assert_int_equal(files->close(file), 0);
}

static const char *get(const struct memory_disk *p, const char *name)
{
    static char text[64];
    const int file = files->open(path_on(p, name), O_RDONLY);

    memset(text, 0, sizeof text);
    if (file < 0) {
        return NULL;
    }
    assert_true(files->read(file, text, sizeof text - 1, 0) >= 0);
    assert_int_equal(files->close(file), 0);
    return text;
}

static void what_was_synced_stays_and_the_rest_may_go(void **state)
{
    size_t lost = 0;
    size_t kept = 0;
    size_t empty = 0;
    size_t nameless = 0;

    (void)state;
    memory_disk_install();
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct memory_disk *p = memory_disk_new(seed);

        put(p, "a", "one", true);
        put(p, "a", "two", false);
        put(p, "b", "new", false);
        assert_string_equal(get(p, "a"), "two"); // processes see it
        memory_disk_lose(p);
        lost += strcmp(get(p, "a"), "one") == 0;
        kept += strcmp(get(p, "a"), "two") == 0;
        nameless += get(p, "b") == NULL;
        empty += get(p, "b") != NULL && strlen(get(p, "b")) == 0;
        memory_disk_free(p);
    }
    assert_int_equal(lost + kept, 100);
    assert_true(lost > 20);
    assert_true(kept > 20);
    assert_true(nameless > 20);
    assert_true(empty > 5);
}

/* In the middle of a store at any point: the new number, or the one before. */
static void a_number_is_never_lost(void **state)
{
    size_t before = 0;

    (void)state;
    memory_disk_install();
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct memory_disk *p = memory_disk_new(seed);
        struct buffer payload = {0};
        struct number *n = NULL;

        assert_int_equal(number_open(&n, path_on(p, "number"), &payload), ERR_OK);
        assert_int_equal(number_store(n, bytes_of("1", 1)), ERR_OK);
        assert_int_equal(number_store(n, bytes_of("2", 1)), ERR_OK);
        memory_disk_fail_at(p, 1 + (unsigned)(seed % 3));
        assert_int_equal(number_store(n, bytes_of("3", 1)), ERR_OK);
        const bool confirmed = memory_disk_has_power(p);
        number_close(n);
        memory_disk_lose(p);
        assert_int_equal(number_open(&n, path_on(p, "number"), &payload), ERR_OK);
        assert_int_equal(payload.size, 1);
        assert_true(payload.data[0] == '3' || (payload.data[0] == '2' && !confirmed));
        before += payload.data[0] == '2';
        number_close(n);
        buffer_fini(&payload);
        memory_disk_free(p);
    }
    assert_true(before > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_synced_stays_and_the_rest_may_go),
        cmocka_unit_test(a_number_is_never_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
