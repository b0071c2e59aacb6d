/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of demo/journal.h, also across a kill.
 */
#include "tests/test.h"

#include "demo/journal.h"
#include "tests/folder.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256];

static int set_up(void **state)
{
    (void)state;
    folder_make(folder, sizeof folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void path_to(char path[512], const char *name)
{
    (void)snprintf(path, 512, "%s/%s", folder, name);
}

static void it_reads_what_it_wrote(void **state)
{
    struct journal *j = NULL;
    struct journal_view v;
    char path[512];

    (void)state;
    path_to(path, "n1-1.journal");
    assert_int_equal(journal_open(&j, path, "n1"), ERR_OK);
    assert_int_equal(journal_view_open(&v, path), ERR_OK);
    assert_int_equal(v.count, 0);
    journal_view_close(&v);
    for (uint32_t i = 0; i < 3; i++) {
        journal_put(
            j,
            &(struct journal_record){
                .id_hash = 5, .seq = i, .fence = 9, .client = i, .event = JOURNAL_RUN_BEGIN + i});
    }
    // While the writer has it open still.
    assert_int_equal(journal_view_open(&v, path), ERR_OK);
    assert_string_equal(v.node, "n1");
    assert_int_equal(v.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(v.record[i].event, JOURNAL_RUN_BEGIN + i);
        assert_int_equal(v.record[i].seq, i);
        assert_int_equal(v.record[i].client, i);
        assert_int_equal(v.record[i].id_hash, 5);
        assert_int_equal(v.record[i].fence, 9);
        assert_true(i == 0 || v.record[i].time_ns >= v.record[i - 1].time_ns);
    }
    journal_view_close(&v);
    journal_close(j);
}

static void it_grows_without_a_seam(void **state)
{
    enum { COUNT = 200000 }; // Several windows.
    struct journal *j = NULL;
    struct journal_view v;
    char path[512];

    (void)state;
    path_to(path, "n1-2.journal");
    assert_int_equal(journal_open(&j, path, "n1"), ERR_OK);
    for (uint64_t i = 0; i < COUNT; i++) {
        journal_put(j, &(struct journal_record){.seq = i, .event = JOURNAL_RUN_END});
    }
    journal_close(j);
    assert_int_equal(journal_view_open(&v, path), ERR_OK);
    assert_int_equal(v.count, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_int_equal(v.record[i].seq, i);
    }
    journal_view_close(&v);
}

static void a_kill_loses_nothing(void **state)
{
    struct journal_view v;
    char path[512];
    int status = 0;

    (void)state;
    path_to(path, "n1-3.journal");
    const pid_t child = fork();
    if (child == 0) {
        struct journal *j = NULL;

        if (journal_open(&j, path, "n1") != ERR_OK) {
            _exit(1);
        }
        for (uint64_t i = 0; i < 70000; i++) {
            journal_put(j, &(struct journal_record){.seq = i, .event = JOURNAL_RUN_END});
        }
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(journal_view_open(&v, path), ERR_OK);
    assert_int_equal(v.count, 70000);
    assert_int_equal(v.record[69999].seq, 69999);
    journal_view_close(&v);
}

static void it_refuses_what_is_no_journal(void **state)
{
    struct journal *j = NULL;
    struct journal_view v;
    char path[512];

    (void)state;
    path_to(path, "none");
    assert_int_equal(journal_view_open(&v, path), ERR_NOT_FOUND);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("short", file);
    (void)fclose(file);
    assert_int_equal(journal_view_open(&v, path), ERR_CORRUPT);
    file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 200; i++) {
        (void)fputc('x', file);
    }
    (void)fclose(file);
    assert_int_equal(journal_view_open(&v, path), ERR_CORRUPT);
    assert_int_equal(journal_view_open(&v, folder), ERR_CORRUPT);
    assert_int_equal(journal_open(&j, path, "n1"), ERR_CONFLICT);
    path_to(path, "no/such/folder");
    assert_int_equal(journal_open(&j, path, "n1"), ERR_IO);
}

static void ids_differ_by_their_hash(void **state)
{
    (void)state;
    // FNV-1a's published values.
    assert_true(journal_id_hash(bytes_of("", 0)) == 0xcbf29ce484222325u);
    assert_true(journal_id_hash(bytes_of("a", 1)) == 0xaf63dc4c8601ec8cu);
    assert_true(journal_id_hash(bytes_of("foobar", 6)) == 0x85944171f73967e8u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_reads_what_it_wrote),
        cmocka_unit_test(it_grows_without_a_seam),
        cmocka_unit_test(a_kill_loses_nothing),
        cmocka_unit_test(it_refuses_what_is_no_journal),
        cmocka_unit_test(ids_differ_by_their_hash),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
