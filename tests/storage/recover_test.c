/* SPDX-License-Identifier: Apache-2.0
 *
 * The offline tool over real folders: what it sees, what a backup brings back,
 * and that a kill at any step of a restore leaves old files or new ones.
 */
#include "storage/state/bootstrap.h"
#include "storage/state/recover.h"

#include "tests/test.h"

#include "base/log.h"
#include "tests/storage/coordinator_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[200];
static char folder[256];
static char file[256];
static uint64_t number;

static int make(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    folder_make(root, sizeof root);
    (void)snprintf(folder, sizeof folder, "%s/c1", root);
    (void)snprintf(file, sizeof file, "%s/backup", root);
    number = folder_fill(folder, 1);
    return 0;
}

static int drop(void **state)
{
    char command[320];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    // NOLINTNEXTLINE(cert-env33-c): a folder of ours
    return system(command);
}

static bool look(struct recover_folder *f, const char *path, bool deep)
{
    char why[RECOVER_TEXT_MAX] = "";
    const struct replay_watch nobody = {0};

    return recover_look(f, path, deep, nobody, why);
}

static const struct recover_file *row(const struct recover_folder *f, const char *name)
{
    for (size_t i = 0; i < f->file_count; i++) {
        if (strcmp(f->file[i].name, name) == 0) {
            return &f->file[i];
        }
    }
    return NULL;
}

/* Names, sizes and first bytes of all files: nothing was changed when this is the same. */
static uint64_t fingerprint(const char *path)
{
    uint64_t sum = 0;
    DIR *dir = opendir(path);

    assert_non_null(dir);
    for (const struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        char name[600];
        uint64_t hash = 1469598103934665603u;

        for (const char *c = at->d_name; *c != '\0'; c++) {
            hash = (hash ^ (uint8_t)*c) * 1099511628211u;
        }
        (void)snprintf(name, sizeof name, "%s/%s", path, at->d_name);
        FILE *in = fopen(name, "re");
        for (int c = in == NULL ? EOF : fgetc(in); c != EOF; c = fgetc(in)) {
            hash = (hash ^ (uint8_t)c) * 1099511628211u;
        }
        if (in != NULL) {
            (void)fclose(in);
        }
        sum += hash; // in whatever order they come
    }
    (void)closedir(dir);
    return sum;
}

static void a_sound_folder_is_told_in_full_and_left_as_it_was(void **state)
{
    struct recover_folder f;
    const uint64_t before = fingerprint(folder);

    (void)state;
    assert_true(look(&f, folder, true));
    assert_int_equal(recover_damage(&f), 0);
    assert_int_equal(f.kind, RECOVER_COORDINATOR);
    assert_string_equal(f.cluster, "test");
    assert_string_equal(f.voters, "1,2,3");
    assert_int_equal(f.voter, 1);
    assert_int_equal(f.image.identity, 101);
    assert_int_equal(f.image.term, 3);
    assert_int_equal(f.image.vote, 2);
    assert_true(f.has_state);
    assert_int_equal(f.replay.state.number, number);
    assert_int_equal(f.replay.state.view.era, 1);
    assert_int_equal(f.replay.state.node_count, 2);
    assert_int_equal(state_pending_count(&f.replay.state), 1);
    assert_int_equal(f.watermark.number, number);
    assert_int_equal(f.cache.number, number);
    assert_non_null(strstr(row(&f, "state.db")->what, "the same"));
    recover_fini(&f);
    assert_int_equal(fingerprint(folder), before);
}

static void change_state_db(const char *sql)
{
    char path[300];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/state.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_database_beside_what_the_log_says_is_found_out(void **state)
{
    struct recover_folder f;

    (void)state;
    change_state_db("UPDATE vnode SET owner=1 WHERE id=2");
    assert_true(look(&f, folder, false));
    assert_int_equal(recover_damage(&f), 0); // inspect does not compare
    recover_fini(&f);
    assert_true(look(&f, folder, true));
    assert_int_equal(row(&f, "state.db")->health, RECOVER_DAMAGED);
    assert_non_null(strstr(row(&f, "state.db")->what, "vnode"));
    recover_fini(&f);
}

static void every_table_of_the_database_is_compared(void **state)
{
    static const struct {
        const char *table;
        const char *change;
    } changes[] = {
        {"kind", "INSERT INTO kind VALUES(9, 'none', '', 0)"},
        {"segment", "INSERT INTO segment VALUES(99, 'none', 0, 0, 1, 1)"},
        {"suspect", "INSERT INTO suspect VALUES(0, X'6B', 1, 3, 1, 1, 'n1')"},
    };
    struct recover_folder f;

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char drop_table[64];

        change_state_db(changes[i].change);
        assert_true(look(&f, folder, true));
        assert_int_equal(row(&f, "state.db")->health, RECOVER_DAMAGED);
        assert_non_null(strstr(row(&f, "state.db")->what, changes[i].table));
        recover_fini(&f);
        // As an older version left it.
        (void)snprintf(drop_table, sizeof drop_table, "DROP TABLE %s", changes[i].table);
        change_state_db(drop_table);
        assert_true(look(&f, folder, true));
        assert_int_equal(recover_damage(&f), 0);
        recover_fini(&f);
    }
}

static void every_damaged_row_of_the_log_is_counted(void **state)
{
    char path[300];
    sqlite3 *db = NULL;
    struct recover_folder f;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/raft.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(
            db, "UPDATE log SET term=2 WHERE idx>(SELECT max(idx)-2 FROM log)", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_true(look(&f, folder, true));
    assert_int_equal(f.log_bad, 2);
    assert_int_equal(row(&f, "raft.db")->health, RECOVER_DAMAGED);
    assert_int_not_equal(row(&f, "raft.db")->remedy[0], '\0');
    recover_fini(&f);
}

static void a_folder_in_use_says_so(void **state)
{
    char path[300];
    struct recover_folder f;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/raft.lock", folder);
    const int held = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_true(look(&f, folder, false));
    assert_true(f.in_use);
    recover_fini(&f);
    (void)close(held);
}

static void what_is_no_folder_of_ours_is_refused(void **state)
{
    struct recover_folder f;

    (void)state;
    assert_false(look(&f, "/proc/no/such", false));
    recover_fini(&f);
    assert_false(look(&f, root, false));
    recover_fini(&f);
}

/* ---- backup and restore ---- */

static void back_up(const char *from, struct backup *b)
{
    struct recover_folder f;
    char why[BOOTSTRAP_WHY_MAX] = "";

    assert_true(look(&f, from, false));
    assert_int_equal(bootstrap_backup(b, &f, 5, why), ERR_OK);
    recover_fini(&f);
}

static void seal(struct backup *b, uint64_t era)
{
    const struct bootstrap_plan plan = {.voter = {1, 2, 3}, .voter_count = 3, .era = era};
    char why[BOOTSTRAP_WHY_MAX] = "";

    assert_int_equal(bootstrap_seal(b, &plan, why), ERR_OK);
}

static enum err install(const struct backup *b, const char *where, uint64_t voter,
                        char replaced[ATOMIC_REPLACE_NAME_MAX])
{
    static const uint64_t ids[] = {1, 2, 3};
    char why[BOOTSTRAP_WHY_MAX] = "";
    struct voters voters;

    assert_int_equal(voters_init(&voters, ids, 3), ERR_OK);
    return bootstrap_install(b, where, voter, voters_configuration(&voters), replaced, why);
}

static void a_backup_reads_back_and_any_damage_to_it_is_refused(void **state)
{
    struct backup b;
    struct backup again;
    char why[BOOTSTRAP_WHY_MAX] = "";

    (void)state;
    back_up(folder, &b);
    assert_int_equal(backup_write(&b, file, false, why), ERR_OK);
    assert_int_equal(backup_write(&b, file, false, why), ERR_CONFLICT);
    assert_int_equal(backup_write(&b, file, true, why), ERR_OK);
    assert_int_equal(backup_read(&again, file, why), ERR_OK);
    assert_int_equal(again.number, number);
    assert_int_equal(again.era, 1);
    assert_string_equal(again.cluster, "test");
    assert_true(bytes_equal(buffer_bytes(&again.state), buffer_bytes(&b.state)));
    backup_fini(&again);
    backup_fini(&b);
    FILE *f = fopen(file, "r+e");
    (void)fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    for (long at = 0; at < size; at += 1 + at / 16) {
        (void)fseek(f, at, SEEK_SET);
        const int byte = fgetc(f);
        (void)fseek(f, at, SEEK_SET);
        (void)fputc(byte ^ 0x20, f);
        (void)fflush(f);
        assert_int_not_equal(backup_read(&again, file, why), ERR_OK);
        backup_fini(&again);
        (void)fseek(f, at, SEEK_SET);
        (void)fputc(byte, f);
        (void)fflush(f);
    }
    for (long cut = size - 1; cut >= 0; cut -= 1 + cut / 8) {
        assert_int_equal(ftruncate(fileno(f), cut), 0);
        assert_int_not_equal(backup_read(&again, file, why), ERR_OK);
        backup_fini(&again);
    }
    (void)fclose(f);
}

static void a_restored_group_goes_on_in_a_greater_era(void **state)
{
    struct backup b;
    struct recover_folder f;
    char replaced[ATOMIC_REPLACE_NAME_MAX];
    char other[300];

    (void)state;
    back_up(folder, &b);
    seal(&b, 7);
    assert_int_equal(b.number >> 40, 7);
    assert_int_equal(b.number & 0xffffffffffu, (number & 0xffffffffffu) + 1);
    assert_int_equal(install(&b, folder, 1, replaced), ERR_OK);
    (void)snprintf(other, sizeof other, "%s/fresh/c2", root);
    assert_int_equal(install(&b, other, 2, replaced), ERR_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(look(&f, i == 0 ? folder : other, true));
        assert_int_equal(recover_damage(&f), 0);
        assert_int_equal(f.voter, i + 1);
        assert_int_equal(f.image.identity, b.member[i].identity);
        assert_int_equal(f.image.vote, 0);
        assert_true(f.image.term > 3);
        assert_true(f.image.admitted);
        assert_int_equal(f.image.peer_count, 2);
        assert_true(f.replay.state.settling);
        assert_int_equal(f.replay.state.view.era, 7);
        assert_int_equal(f.replay.state.number, b.number);
        assert_int_equal(f.replay.state.view.ring.version, b.number);
        assert_int_equal(f.replay.state.node_count, 2);
        assert_int_equal(state_pending_count(&f.replay.state), 1);
        assert_int_equal(f.watermark.number, b.number);
        recover_fini(&f);
    }
    // The same founding once more: the voter would forget its votes.
    assert_int_equal(install(&b, other, 2, replaced), ERR_CONFLICT);
    backup_fini(&b);
}

static void an_old_copy_is_no_backup_but_founds_a_group(void **state)
{
    char path[300];
    struct recover_folder f;
    struct backup b;
    char why[BOOTSTRAP_WHY_MAX] = "";
    char replaced[ATOMIC_REPLACE_NAME_MAX];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/raft.tail", folder);
    assert_int_equal(unlink(path), 0);
    assert_true(look(&f, folder, false));
    assert_int_equal(row(&f, "raft.tail")->health, RECOVER_MISSING);
    assert_int_equal(bootstrap_backup(&b, &f, 5, why), ERR_CORRUPT);
    assert_non_null(strstr(why, "raft.tail"));
    backup_fini(&b);
    assert_int_equal(bootstrap_remains(&b, &f, 5, why), ERR_OK);
    recover_fini(&f);
    assert_int_equal(b.number, number);
    seal(&b, 7);
    assert_int_equal(install(&b, folder, 1, replaced), ERR_OK);
    assert_true(look(&f, folder, true));
    assert_int_equal(recover_damage(&f), 0);
    recover_fini(&f);
    backup_fini(&b);
}

static void undo_brings_the_very_same_files_back(void **state)
{
    struct backup b;
    char replaced[ATOMIC_REPLACE_NAME_MAX];
    char again[ATOMIC_REPLACE_NAME_MAX];
    char why[BOOTSTRAP_WHY_MAX] = "";
    char path[400];

    (void)state;
    const uint64_t before = fingerprint(folder);
    back_up(folder, &b);
    seal(&b, 7);
    assert_int_equal(install(&b, folder, 1, replaced), ERR_OK);
    assert_int_not_equal(fingerprint(folder), before);
    assert_int_equal(bootstrap_undo(folder, replaced, again, why), ERR_OK);
    (void)snprintf(path, sizeof path, "rm -rf '%s/%s'", folder, again);
    // NOLINTNEXTLINE(cert-env33-c): a folder of ours
    assert_int_equal(system(path), 0);
    assert_int_equal(fingerprint(folder), before);
    backup_fini(&b);
}

static void the_era_grows_above_all_that_was_met(void **state)
{
    const uint64_t minute = 60ull * 1000000;
    const uint64_t start = 1735689600ull * 1000000;

    (void)state;
    assert_int_equal(bootstrap_era(5, 0, 0), 6); // a clock that says 1970
    assert_int_equal(bootstrap_era(5, 9, start + 3 * minute), 10);
    assert_int_equal(bootstrap_era(5, 9, start + 100 * minute), 100);
    assert_int_equal(bootstrap_era(100, 100, start + 100 * minute), 101);
}

/* ---- a process that is killed at a system call: the program's own calls stand before libc's ----
 */

static unsigned crash_step; /* 0 = never */

static void step(void)
{
    if (crash_step != 0 && --crash_step == 0) {
        _exit(137);
    }
}

int rename(const char *old, const char *new)
{
    step();
    const int result = renameat(AT_FDCWD, old, AT_FDCWD, new);
    step();
    return result;
}

int unlink(const char *name)
{
    if (strstr(name, ATOMIC_REPLACE_JOURNAL) != NULL) { // SQLite unlinks files of its own
        step();
    }
    return unlinkat(AT_FDCWD, name, 0);
}

int rmdir(const char *path)
{
    step();
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/* In a process of its own; true if it was killed at that step, false if it came to the end. */
static bool killed_at(unsigned at, const struct backup *b)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        char replaced[ATOMIC_REPLACE_NAME_MAX];

        crash_step = at;
        _exit(install(b, folder, 1, replaced) == ERR_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 137);
    return WEXITSTATUS(status) == 137;
}

/* What a starting coordinator makes of the folder. */
static enum err start_outcome(uint64_t *identity)
{
    static const uint64_t ids[] = {1, 2, 3};
    struct voters voters;
    struct log_store *store = NULL;
    struct log_image image;

    assert_int_equal(voters_init(&voters, ids, 3), ERR_OK);
    const struct log_sqlite_config config = {.directory = folder,
                                             .cluster = "test",
                                             .voter = 1,
                                             .voters = voters.id,
                                             .voter_count = 3,
                                             .configuration = voters_configuration(&voters),
                                             .identity = 4711,
                                             .wake = never_wake};
    log_image_init(&image);
    const enum err error = log_sqlite_open(&store, &image, &config);
    *identity = image.identity;
    if (error == ERR_OK) {
        log_store_close(store);
    }
    log_image_fini(&image);
    return error;
}

static void a_kill_at_any_step_leaves_old_or_new_or_a_refusal(void **state)
{
    struct backup b;
    unsigned old = 0;
    unsigned new = 0;
    unsigned refused = 0;
    bool more = true;

    back_up(folder, &b);
    seal(&b, 7);
    log_set_level(LOG_ERROR);
    for (unsigned at = 1; more; at++) {
        char replaced[ATOMIC_REPLACE_NAME_MAX];
        uint64_t identity = 0;

        drop(state);
        make(state);
        more = killed_at(at, &b);
        const enum err error = start_outcome(&identity);
        if (error == ERR_OK) {
            old += identity == 101;
            new += identity == b.member[0].identity;
            assert_true(identity == 101 || identity == b.member[0].identity);
        } else {
            assert_int_equal(error, ERR_CORRUPT);
            assert_true(atomic_replace_interrupted(folder));
            refused++;
        }
        // The same command again finishes it, wherever it was.
        const enum err again = install(&b, folder, 1, replaced);
        assert_true(again == ERR_OK || again == ERR_CONFLICT); // it was installed already
        assert_int_equal(start_outcome(&identity), ERR_OK);
        assert_int_equal(identity, b.member[0].identity);
    }
    assert_true(old > 0 && new > 0 && refused > 0);
    backup_fini(&b);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup_teardown(
            a_sound_folder_is_told_in_full_and_left_as_it_was, make, drop),
        cmocka_unit_test_setup_teardown(
            a_database_beside_what_the_log_says_is_found_out, make, drop),
        cmocka_unit_test_setup_teardown(every_table_of_the_database_is_compared, make, drop),
        cmocka_unit_test_setup_teardown(every_damaged_row_of_the_log_is_counted, make, drop),
        cmocka_unit_test_setup_teardown(a_folder_in_use_says_so, make, drop),
        cmocka_unit_test_setup_teardown(what_is_no_folder_of_ours_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(
            a_backup_reads_back_and_any_damage_to_it_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(a_restored_group_goes_on_in_a_greater_era, make, drop),
        cmocka_unit_test_setup_teardown(an_old_copy_is_no_backup_but_founds_a_group, make, drop),
        cmocka_unit_test_setup_teardown(undo_brings_the_very_same_files_back, make, drop),
        cmocka_unit_test(the_era_grows_above_all_that_was_met),
        cmocka_unit_test_setup_teardown(
            a_kill_at_any_step_leaves_old_or_new_or_a_refusal, make, drop),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
