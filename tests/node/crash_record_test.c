/* SPDX-License-Identifier: Apache-2.0
 *
 * The file that tells whose code ran: read by the next process after a death at
 * any time, a clean stop, a death of the machine, and damage.
 */
#include "node/worker/crash_record.h"

#include "base/log.h"
#include "tests/test.h"

#include "tests/folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/ringhold-running-XXXXXX";
static const uint8_t boot[16] = {1};
static struct crash_record_left left;

static struct bytes id_of(const char *text)
{
    return bytes_of(text, strlen(text));
}

/* Run `life` as a process of incarnation `incarnation` that dies at its end. */
static void die_after(uint64_t incarnation, void (*life)(const struct crash_record *r))
{
    const pid_t child = fork();
    int status = 0;

    if (child == 0) {
        struct crash_record r;
        struct crash_record_left ignored;

        crash_record_open(&r, folder, boot, &ignored);
        if (incarnation != 0) {
            crash_record_begin(&r, incarnation);
        }
        life(&r);
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void look(const uint8_t boot_id[16])
{
    struct crash_record r;

    crash_record_open(&r, folder, boot_id, &left);
    crash_record_close(&r);
}

static void runs_two(const struct crash_record *r)
{
    crash_record_enter(crash_record_slot(r, 0), 0, id_of("ann"));
    crash_record_leave(crash_record_slot(r, 0));
    crash_record_enter(crash_record_slot(r, 1), 3, id_of("boss-7"));
    crash_record_enter(crash_record_slot(r, 2), 0, id_of("bob"));
    crash_record_leave(crash_record_slot(r, 2));
    crash_record_enter(crash_record_slot(r, 2), 0, id_of("bob"));
    crash_record_enter(crash_record_slot(r, 63), 0, id_of("long"));
    crash_record_enter(crash_record_slot(r, 63), 0, id_of("x"));
}

static void runs_nothing(const struct crash_record *r)
{
    crash_record_enter(crash_record_slot(r, 0), 0, id_of("ann"));
    crash_record_leave(crash_record_slot(r, 0));
}

static void expect(size_t at, uint16_t kind, const char *id)
{
    struct quarantined e;

    assert_true(quarantined_of(&e, kind, id_of(id)));
    assert_true(at < left.count);
    assert_memory_equal(&left.actor[at], &e, sizeof e);
}

static void the_next_process_learns_what_ran(void **state)
{
    (void)state;
    die_after(7, runs_two);
    for (int i = 0; i < 2; i++) { // also when that one dies before it is registered
        look(boot);
        assert_int_equal(left.incarnation, 7);
        assert_int_equal(left.count, 3);
        expect(0, 3, "boss-7");
        expect(1, 0, "bob");
        expect(2, 0, "x");
    }
    die_after(8, runs_nothing);
    look(boot);
    assert_int_equal(left.incarnation, 8);
    assert_int_equal(left.count, 0);
}

static void a_clean_stop_blames_nobody(void **state)
{
    struct crash_record r;

    (void)state;
    die_after(7, runs_two);
    crash_record_open(&r, folder, boot, &left);
    crash_record_begin(&r, 8);
    runs_two(&r);
    crash_record_close(&r);
    look(boot);
    assert_int_equal(left.incarnation, 8); // others may have told that something ran in it
    assert_int_equal(left.count, 0);
}

static void a_machine_that_stopped_blames_nobody(void **state)
{
    static const uint8_t other[16] = {2};

    (void)state;
    die_after(7, runs_two);
    look(other);
    assert_int_equal(left.incarnation, 7);
    assert_int_equal(left.count, 0);
}

/* Any byte of a name, its mark or the header: what it belongs to is not believed. */
static void damage_is_ignored(void **state)
{
    char path[128];
    uint8_t byte = 0;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/running", folder);
    die_after(7, runs_two);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (off_t at = 0; at < 64 + 3 * 320; at++) {
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x41;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        look(boot);
        for (size_t i = 0; i < left.count; i++) {
            const struct bytes id = quarantined_id(&left.actor[i]);

            assert_true((left.actor[i].kind == 3 && bytes_equal(id, id_of("boss-7"))) ||
                        (left.actor[i].kind == 0 && bytes_equal(id, id_of("bob"))) ||
                        (left.actor[i].kind == 0 && bytes_equal(id, id_of("x"))));
        }
        assert_true(left.count == 0 || left.incarnation == 7);
        byte ^= 0x41;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    assert_int_equal(ftruncate(fd, 100), 0);
    look(boot); // grown again, by zeros
    assert_int_equal(left.count, 0);
    (void)close(fd);
}

static void without_a_file_it_runs_all_the_same(void **state)
{
    struct crash_record r;

    (void)state;
    crash_record_open(&r, "/dev/null/folder", boot, &left);
    assert_int_equal(left.count, 0);
    crash_record_begin(&r, 7);
    runs_two(&r);
    crash_record_close(&r);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(the_next_process_learns_what_ran),
        cmocka_unit_test(a_clean_stop_blames_nobody),
        cmocka_unit_test(a_machine_that_stopped_blames_nobody),
        cmocka_unit_test(damage_is_ignored),
        cmocka_unit_test(without_a_file_it_runs_all_the_same),
    };

    log_set_level(LOG_ERROR);
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    const int failed = cmocka_run_group_tests(cases, NULL, NULL);
    folder_remove(folder);
    return failed;
}
