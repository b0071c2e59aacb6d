/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/folder.h: copies, foreign folders, locks.
 */
#include "tests/test.h"

#include "node/disk.h"
#include "node/folder.h"
#include "tests/folder.h"

#include <string.h>
#include <sys/stat.h>

static char outer[256];
static char path[300];

static int set_up(void **state)
{
    (void)state;
    folder_make(outer, sizeof outer);
    (void)snprintf(path, sizeof path, "%s/n1", outer);
    return 0;
}

static int tear_down(void **state)
{
    struct stat status;

    (void)state;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        (void)chmod(path, 0700);
        folder_remove(path);
    }
    folder_remove(outer);
    return 0;
}

static void write_identity(const char *text)
{
    char name[400];

    (void)snprintf(name, sizeof name, "%s/identity", path);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void it_keeps_its_identity(void **state)
{
    struct folder first;
    struct folder second;

    (void)state;
    assert_int_equal(folder_open(&first, path, "prod", "n1"), ERR_OK);
    folder_close(&first);
    assert_int_equal(folder_open(&second, path, "prod", "n1"), ERR_OK);
    assert_memory_equal(first.data_uuid, second.data_uuid, 16);
    assert_memory_equal(first.boot_id, second.boot_id, 16);
    folder_close(&second);
}

/* Started from a copy beside the first it is no proof that the first is dead. */
static void a_copy_of_it_is_another_place(void **state)
{
    struct folder first;
    struct folder second;
    char copy[sizeof path + 8];
    char command[1024];

    (void)state;
    assert_int_equal(folder_open(&first, path, "prod", "n1"), ERR_OK);
    (void)snprintf(copy, sizeof copy, "%s-copy", path);
    (void)snprintf(command, sizeof command, "cp -a '%s' '%s'", path, copy);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    assert_int_equal(folder_open(&second, copy, "prod", "n1"), ERR_OK);
    assert_memory_equal(first.data_uuid, second.data_uuid, 16);
    assert_memory_not_equal(first.boot_id, second.boot_id, 16);
    folder_close(&first);
    folder_close(&second);
    (void)snprintf(command, sizeof command, "rm -r '%s'", copy);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
}

static void it_is_of_the_fleet_that_the_node_joined(void **state)
{
    const struct fleet_id fleet = {3, 4};
    struct folder f;

    (void)state;
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_OK);
    const struct folder first = f;
    assert_false(fleet_id_known(f.fleet));
    assert_int_equal(folder_join(&f, path, "prod", "n1", fleet), ERR_OK);
    assert_true(fleet_id_same(f.fleet, fleet));
    folder_close(&f);
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_OK);
    assert_true(fleet_id_same(f.fleet, fleet));
    assert_memory_equal(f.data_uuid, first.data_uuid, 16);
    assert_false(f.fresh);
    folder_close(&f);
}

static void a_fleet_that_cannot_be_noted_is_told_of(void **state)
{
    struct folder f;

    (void)state;
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_OK);
    folder_remove(path);
    assert_int_equal(folder_join(&f, path, "prod", "n1", (struct fleet_id){3, 4}), ERR_IO);
    folder_close(&f);
}

static void folders_differ_by_their_id(void **state)
{
    static const uint8_t none[16];
    struct folder first;
    struct folder second;

    (void)state;
    assert_int_equal(folder_open(&first, path, "prod", "n1"), ERR_OK);
    folder_close(&first);
    folder_remove(path);
    assert_int_equal(folder_open(&second, path, "prod", "n1"), ERR_OK);
    folder_close(&second);
    assert_true(memcmp(first.data_uuid, second.data_uuid, 16) != 0);
    assert_true(memcmp(first.data_uuid, none, 16) != 0);
}

static void a_running_process_keeps_others_out(void **state)
{
    struct folder first;
    struct folder second;

    (void)state;
    assert_int_equal(folder_open(&first, path, "prod", "n1"), ERR_OK);
    assert_int_equal(folder_open(&second, path, "prod", "n1"), ERR_LOCKED);
    folder_close(&first);
    assert_int_equal(folder_open(&second, path, "prod", "n1"), ERR_OK);
    folder_close(&second);
}

static void a_foreign_folder_is_refused(void **state)
{
    struct folder f;

    (void)state;
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_OK);
    folder_close(&f);
    assert_int_equal(folder_open(&f, path, "test", "n1"), ERR_FOREIGN);
    assert_int_equal(folder_open(&f, path, "pro", "n1"), ERR_FOREIGN);
    assert_int_equal(folder_open(&f, path, "prod", "n11"), ERR_FOREIGN);
    write_identity("ringhold node folder 2\ncluster=prod\nnode=n1\n");
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_FOREIGN);
    // What was refused is not locked.
    write_identity("ringhold node folder 1\ncluster=prod\nnode=n1\n"
                   "uuid=00112233445566778899aabbccddeeff\n");
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_OK);
    assert_int_equal(f.data_uuid[15], 0xff);
    folder_close(&f);
}

/* Also a flip that leaves a valid name or id. */
static void a_flipped_bit_anywhere_in_the_identity_is_refused(void **state)
{
    struct folder f;
    char name[400];
    char text[512];

    (void)state;
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_OK);
    assert_int_equal(folder_join(&f, path, "prod", "n1", (struct fleet_id){3, 4}), ERR_OK);
    folder_close(&f);
    (void)snprintf(name, sizeof name, "%s/identity", path);
    FILE *file = fopen(name, "re");
    assert_non_null(file);
    const size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    const size_t end = (size_t)(strstr(text, "crc=") - text);
    for (size_t at = 0; at < end; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            char damaged[512];

            memcpy(damaged, text, size + 1);
            damaged[at] = (char)(damaged[at] ^ (1 << bit));
            if (damaged[at] == '\0') {
                continue; // a C string would end here: the next case of the table below
            }
            write_identity(damaged);
            assert_int_not_equal(folder_open(&f, path, "prod", "n1"), ERR_OK);
        }
    }
    write_identity(text);
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_OK);
    folder_close(&f);
}

static void a_damaged_identity_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "garbage",
        "ringhold node folder 1\n",
        "ringhold node folder 1\ncluster=prod\nnode=n1\n",
        "ringhold node folder 1\ncluster=prod\nnode=n1\nuuid=00112233\n",
        "ringhold node folder 1\ncluster=prod\nnode=n1\nuuid=00112233445566778899aabbccddeefx\n",
        "ringhold node folder 1\ncluster=prod\nnode=n1\nuuid=00112233445566778899aabbccddeeff0\n",
        "ringhold node folder 1\ncluster=prod",
    };
    struct folder f;

    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_identity(bad[i]);
        const enum err error = folder_open(&f, path, "prod", "n1");
        assert_true(error == ERR_CORRUPT || error == ERR_FOREIGN);
        assert_int_equal(f.lock, -1);
    }
    static const char good[] =
        "ringhold node folder 1\ncluster=prod\nnode=n1\nuuid=00112233445566778899aabbccddeeff\n";
    char text[sizeof good + 16];
    (void)snprintf(text, sizeof text, "%sfleet=1\n", good); // of too few digits
    write_identity(text);
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_CORRUPT);
}

static void what_is_no_folder_is_refused(void **state)
{
    char deep[400];
    struct folder f;

    (void)state;
    (void)snprintf(deep, sizeof deep, "%s/no/such", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_IO);
    assert_int_equal(folder_open(&f, deep, "prod", "n1"), ERR_IO);
    assert_int_equal(folder_open(&f, "", "prod", "n1"), ERR_IO);
}

static void folders_on_the_way_are_made(void **state)
{
    char deep[400];
    struct folder f;

    (void)state;
    (void)snprintf(deep, sizeof deep, "%s/deep/er", path);
    assert_int_equal(folder_open(&f, deep, "prod", "n1"), ERR_OK);
    folder_close(&f);
    folder_remove(deep);
    (void)snprintf(deep, sizeof deep, "%s/deep", path);
    folder_remove(deep);
}

static void an_unwritable_folder_is_refused(void **state)
{
    struct folder f;

    (void)state;
    if (geteuid() == 0) {
        skip(); // Root writes anywhere.
    }
    assert_int_equal(mkdir(path, 0500), 0);
    assert_int_equal(folder_open(&f, path, "prod", "n1"), ERR_IO);
}

static void the_record_comes_back(void **state)
{
    struct host_disk in = {.era = 1, .floor = 2, .seen = 300, .active_count = HOST_ACTIVE_MAX};
    struct host_disk out;
    struct buffer b = {0};

    (void)state;
    assert_int_equal(disk_get(buffer_bytes(&b), &out), ERR_OK);
    assert_int_equal(out.seen, 0);
    for (size_t i = 0; i < HOST_ACTIVE_MAX; i++) {
        in.active[i] = UINT64_MAX - i;
    }
    disk_put(&b, &in);
    assert_int_equal(disk_get(buffer_bytes(&b), &out), ERR_OK);
    assert_memory_equal(&in, &out, sizeof in);
    for (size_t size = 1; size < b.size; size++) {
        assert_int_equal(disk_get(bytes_of(b.data, size), &out), ERR_CORRUPT);
    }
    buffer_put(&b, "", 1);
    assert_int_equal(disk_get(buffer_bytes(&b), &out), ERR_CORRUPT);
    b.data[0] = 2;
    assert_int_equal(disk_get(buffer_bytes(&b), &out), ERR_FOREIGN);
    buffer_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_keeps_its_identity, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_copy_of_it_is_another_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_of_the_fleet_that_the_node_joined, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_fleet_that_cannot_be_noted_is_told_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(folders_differ_by_their_id, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_running_process_keeps_others_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_foreign_folder_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_flipped_bit_anywhere_in_the_identity_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_identity_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_folder_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(folders_on_the_way_are_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unwritable_folder_is_refused, set_up, tear_down),
        cmocka_unit_test(the_record_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
