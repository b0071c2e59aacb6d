/* SPDX-License-Identifier: Apache-2.0
 *
 * The durable log over a real folder: what was written comes back, and what was
 * damaged is refused.
 */
#include "storage/log/log_sqlite.h"

#include "base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/versions.h"

#include "tests/storage/wal_end.h"
#include "tests/test.h"

static char folder[64];
static const uint64_t voters[] = {1, 2, 3};
static char last_line[1024];

static void keep_line(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)snprintf(last_line, sizeof last_line, "%s", line);
}

static void ignore_wake(void *context)
{
    (void)context;
}

static struct log_sqlite_config config(void)
{
    return (struct log_sqlite_config){.directory = folder,
                                      .cluster = "test",
                                      .voter = 1,
                                      .voters = voters,
                                      .voter_count = 3,
                                      .configuration = bytes_of("voters: 1, 2, 3.", 16),
                                      .identity = 4711,
                                      .wake = ignore_wake};
}

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/log_test.XXXXXX");
    assert_non_null(mkdtemp(folder));
    log_set_sink(keep_line, NULL);
    return 0;
}

static void path_of(const char *file, char *out, size_t size)
{
    (void)snprintf(out, size, "%s/%s", folder, file);
}

static int drop_folder(void **state)
{
    static const char *const files[] = {
        "raft.db", "raft.db-wal", "raft.db-shm", "raft.tail", "raft.lock", "copy"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        path_of(files[i], path, sizeof path);
        (void)unlink(path);
    }
    (void)rmdir(folder);
    log_set_sink(NULL, NULL);
    return 0;
}

static struct log_store *open_log(struct log_image *image)
{
    struct log_store *store = NULL;
    const struct log_sqlite_config c = config();

    log_image_init(image);
    assert_int_equal(log_sqlite_open(&store, image, &c), ERR_OK);
    return store;
}

/* What opening with `c` says; whatever it is, nothing stays open. */
static enum err outcome_with(const struct log_sqlite_config *c)
{
    struct log_store *store = NULL;
    struct log_image image;

    last_line[0] = '\0';
    log_image_init(&image);
    const enum err e = log_sqlite_open(&store, &image, c);
    if (e == ERR_OK) {
        log_store_close(store);
    }
    log_image_fini(&image);
    return e;
}

static enum err outcome(void)
{
    const struct log_sqlite_config c = config();

    return outcome_with(&c);
}

static void append(struct log_store *store, uint64_t index, uint64_t term, const char *eight)
{
    struct log_request *r = log_append_new(1, 8);
    const struct log_entry entry = {.term = term, .type = 1, .data = bytes_of(eight, 8)};

    r->index = index;
    log_append_add(r, &entry);
    log_store_submit(store, r);
}

static size_t drain(struct log_store *store)
{
    struct log_request *r;
    size_t count = 0;

    log_sqlite_wait(store);
    while ((r = log_store_completed(store)) != NULL) {
        log_request_free(r);
        count++;
    }
    return count;
}

/* A folder with term 5, a vote, entries 1..9, a peer, and a snapshot of 4 behind which 3 stay. */
static void fill(void)
{
    struct log_image image;
    struct log_store *store = open_log(&image);
    const struct log_peer peer = {.voter = 2, .identity = 22, .founder = true};
    const struct log_snapshot snapshot = {.index = 4,
                                          .term = 2,
                                          .configuration_index = 1,
                                          .configuration = bytes_of("voters: 1, 2, 3.", 16),
                                          .data = bytes_of("the state", 9)};

    (void)log_store_set_vote(store, 5, 3);
    log_store_set_peer(store, &peer);
    log_store_set_admitted(store);
    for (uint64_t i = 2; i <= 9; i++) {
        append(store, i, 2, "8 bytes.");
    }
    log_store_submit(store, log_snapshot_new(&snapshot, 3));
    assert_int_equal(drain(store), 9);
    log_store_close(store);
    log_image_fini(&image);
}

static void a_new_folder_holds_the_first_entry_alone(void **state)
{
    struct log_image image;
    struct log_store *store = open_log(&image);

    (void)state;
    assert_int_equal(image.term, 1);
    assert_int_equal(image.vote, 0);
    assert_int_equal(image.identity, 4711);
    assert_false(image.admitted);
    assert_int_equal(image.first, 1);
    assert_int_equal(image.entry_count, 1);
    assert_int_equal(image.entry[0].type, 3);
    assert_int_equal(image.snapshot.index, 0);
    log_store_close(store);
    log_image_fini(&image);
}

/* What fill() wrote is there, all of it. */
static void assert_filled(void)
{
    struct log_image image;
    struct log_store *store = open_log(&image);
    assert_int_equal(image.term, 5);
    assert_int_equal(image.vote, 3);
    assert_true(image.admitted);
    assert_int_equal(image.peer_count, 1);
    assert_int_equal(image.peer[0].voter, 2);
    assert_int_equal(image.peer[0].identity, 22);
    assert_true(image.peer[0].founder);
    assert_int_equal(image.first, 3);
    assert_int_equal(image.entry_count, 7);
    assert_memory_equal(image.entry[6].data.data, "8 bytes.", 8);
    assert_int_equal(image.snapshot.index, 4);
    assert_int_equal(image.snapshot.term, 2);
    assert_memory_equal(image.snapshot.data.data, "the state", 9);
    log_store_close(store);
    log_image_fini(&image);
}

static void everything_comes_back_after_a_restart(void **state)
{
    (void)state;
    fill();
    assert_filled();
}

static void a_new_term_clears_the_vote(void **state)
{
    struct log_image image;

    (void)state;
    fill();
    struct log_store *store = open_log(&image);
    (void)log_store_set_vote(store, 6, 0);
    log_store_close(store);
    log_image_fini(&image);
    store = open_log(&image);
    assert_int_equal(image.term, 6);
    assert_int_equal(image.vote, 0);
    log_store_close(store);
    log_image_fini(&image);
}

static void a_tail_is_truncated_and_written_anew(void **state)
{
    struct log_image image;

    (void)state;
    fill();
    struct log_store *store = open_log(&image);
    log_store_submit(store, log_truncate_new(7));
    append(store, 7, 5, "another.");
    assert_int_equal(drain(store), 2);
    log_store_close(store);
    log_image_fini(&image);
    store = open_log(&image);
    assert_int_equal(image.entry_count, 5);
    assert_int_equal(image.entry[4].term, 5);
    assert_memory_equal(image.entry[4].data.data, "another.", 8);
    log_store_close(store);
    log_image_fini(&image);
}

static void an_installed_snapshot_replaces_the_log(void **state)
{
    struct log_image image;
    const struct log_snapshot snapshot = {.index = 50,
                                          .term = 5,
                                          .configuration_index = 1,
                                          .configuration = bytes_of("voters: 1, 2, 3.", 16),
                                          .data = bytes_of("later", 5)};

    (void)state;
    fill();
    struct log_store *store = open_log(&image);
    log_store_submit(store, log_snapshot_new(&snapshot, UINT64_MAX));
    append(store, 51, 5, "and on..");
    log_store_submit(store, log_read_new());
    log_sqlite_wait(store);
    log_request_free(log_store_completed(store));
    log_request_free(log_store_completed(store));
    struct log_request *read = log_store_completed(store);
    assert_int_equal(read->kind, LOG_READ_SNAPSHOT);
    assert_int_equal(read->snapshot.index, 50);
    assert_memory_equal(read->snapshot.data.data, "later", 5);
    log_request_free(read);
    log_store_close(store);
    log_image_fini(&image);
    store = open_log(&image);
    assert_int_equal(image.snapshot.index, 50);
    assert_int_equal(image.first, 51);
    assert_int_equal(image.entry_count, 1);
    log_store_close(store);
    log_image_fini(&image);
}

static void requests_come_back_in_their_order(void **state)
{
    struct log_image image;
    struct log_store *store = open_log(&image);

    (void)state;
    for (uint64_t i = 2; i < 200; i++) {
        append(store, i, 1, "8 bytes.");
    }
    log_sqlite_wait(store);
    for (uint64_t i = 2; i < 200; i++) {
        struct log_request *r = log_store_completed(store);
        assert_int_equal(r->index, i);
        log_request_free(r);
    }
    assert_null(log_store_completed(store));
    log_store_close(store);
    log_image_fini(&image);
}

/* ---- damage ---- */

static void sql(const char *text)
{
    char path[128];
    sqlite3 *db = NULL;

    path_of("raft.db", path, sizeof path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_changed_or_missing_row_of_any_kind_is_refused(void **state)
{
    static const char *const damage[] = {
        "UPDATE vote SET term = 4",
        "UPDATE vote SET vote = 2",
        "UPDATE vote SET last = 8",
        "UPDATE vote SET writes = writes + 1",
        "DELETE FROM vote",
        "UPDATE self SET identity = 1",
        "UPDATE self SET admitted = 0",
        "UPDATE self SET cluster = 'tesu'",
        "UPDATE self SET voters = '1,2,4'",
        "DELETE FROM self",
        "UPDATE peer SET identity = 23",
        "UPDATE peer SET founder = 0",
        "UPDATE peer SET voter = 3",
        "UPDATE log SET data = x'0000000000000000' WHERE idx = 5",
        "UPDATE log SET term = 3 WHERE idx = 9",
        "UPDATE log SET type = 2 WHERE idx = 9",
        "UPDATE log SET crc = crc + 1 WHERE idx = 3",
        "DELETE FROM log WHERE idx = 6",
        "DELETE FROM log WHERE idx = 9",
        "DELETE FROM log WHERE idx <= 5",
        "UPDATE log SET idx = 10 WHERE idx = 9",
        "UPDATE snapshot SET data = x'00'",
        "UPDATE snapshot SET idx = 5",
        "UPDATE snapshot SET conf = x'00'",
        "DELETE FROM snapshot",
        "DROP TABLE log",
        "DROP TABLE snapshot",
        "DROP TABLE peer",
    };

    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        fill();
        sql(damage[i]);
        if (outcome() != ERR_CORRUPT) {
            fail_msg("taken: %s", damage[i]);
        }
        assert_non_null(strstr(last_line, "raft.db"));
        assert_non_null(strstr(last_line, "remedy="));
        drop_folder(state);
        make_folder(state);
    }
}

static void flip(const char *file, long at)
{
    char path[128];
    uint8_t byte = 0;

    path_of(file, path, sizeof path);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

static void a_flipped_bit_in_the_witness_is_refused(void **state)
{
    (void)state;
    fill();
    flip("raft.tail", 17);
    assert_int_equal(outcome(), ERR_CORRUPT);
}

static void a_flipped_bit_anywhere_in_a_page_is_never_believed(void **state)
{
    char path[128];
    struct stat st;

    fill();
    path_of("raft.db", path, sizeof path);
    assert_int_equal(stat(path, &st), 0);
    const long size = (long)st.st_size;
    for (long at = 100; at < size; at += 97) {
        drop_folder(state);
        make_folder(state);
        fill();
        flip("raft.db", at);
        // Free space and SQLite's own hints may differ; what it says must be what was written.
        if (outcome() == ERR_OK) {
            assert_filled();
        }
    }
}

/* Kill a process in the middle of its work, as kill -9 would: the write-ahead log stays. */
static void fill_and_die(void)
{
    const pid_t child = fork();

    if (child == 0) {
        struct log_image image;
        struct log_store *store = open_log(&image);
        for (uint64_t i = 2; i <= 9; i++) {
            append(store, i, 1, "8 bytes.");
            log_sqlite_wait(store);
        }
        (void)log_store_set_vote(store, 7, 0);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void what_was_confirmed_survives_a_kill(void **state)
{
    struct log_image image;

    (void)state;
    fill_and_die();
    struct log_store *store = open_log(&image);
    assert_int_equal(image.term, 7);
    assert_int_equal(image.entry_count, 9);
    log_store_close(store);
    log_image_fini(&image);
}

/* In a process whose files may not grow any more: the disk is full. */
static int write_without_space(void)
{
    const pid_t child = fork();
    int status = 0;

    if (child == 0) {
        struct log_image image;
        struct log_store *store = open_log(&image);
        const struct rlimit none = {.rlim_cur = 4096, .rlim_max = 4096};
        (void)signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &none) != 0) {
            _exit(1);
        }
        append(store, 10, 5, "no room.");
        log_sqlite_wait(store);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_full_disk_ends_the_process_and_loses_nothing(void **state)
{
    (void)state;
    fill();
    assert_int_equal(write_without_space(), 74);
    assert_filled();
}

static off_t size_of(const char *file)
{
    char path[128];
    struct stat st;

    path_of(file, path, sizeof path);
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* So no sync has the size of a file to write beside its content. */
static void the_write_ahead_log_has_room_from_the_start(void **state)
{
    struct log_image image;

    (void)state;
    for (uint64_t first = 2; first < 300; first += 100) {
        struct log_store *store = open_log(&image);
        const off_t size = size_of("raft.db-wal");
        assert_true(size > (off_t)1000 * 4096);
        for (uint64_t i = first; i < first + 100; i++) {
            append(store, i, 1, "8 bytes.");
            log_sqlite_wait(store);
        }
        assert_int_equal(size_of("raft.db-wal"), size);
        log_store_close(store);
        log_image_fini(&image);
    }
}

/* SQLite itself drops what follows a damaged frame without a word. */
static void a_damaged_end_of_the_write_ahead_log_is_found_out(void **state)
{
    char path[128];

    (void)state;
    fill_and_die();
    path_of("raft.db-wal", path, sizeof path);
    flip("raft.db-wal", wal_end(path) - 100);
    assert_int_equal(outcome(), ERR_CORRUPT);
    assert_non_null(strstr(last_line, "confirmed writes are missing"));
}

static void a_missing_database_or_witness_is_refused(void **state)
{
    char path[128];

    fill();
    path_of("raft.tail", path, sizeof path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(outcome(), ERR_CORRUPT);
    drop_folder(state);
    make_folder(state);
    fill();
    path_of("raft.db", path, sizeof path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(outcome(), ERR_CORRUPT);
}

static void an_older_copy_is_refused(void **state)
{
    struct log_image image;
    char from[128];
    char to[128];
    char command[512];

    (void)state;
    fill();
    path_of("raft.db", from, sizeof from);
    path_of("copy", to, sizeof to);
    (void)snprintf(command, sizeof command, "cp %s %s", from, to);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): paths are our own
    struct log_store *store = open_log(&image);
    (void)log_store_set_vote(store, 6, 0);
    log_store_close(store);
    log_image_fini(&image);
    assert_int_equal(rename(to, from), 0);
    assert_int_equal(outcome(), ERR_CORRUPT);
}

/* ---- not mine ---- */

static void a_folder_in_use_is_refused(void **state)
{
    struct log_image image;
    struct log_store *store = open_log(&image);

    (void)state;
    assert_int_equal(outcome(), ERR_LOCKED);
    assert_non_null(strstr(last_line, "a running process uses the folder"));
    log_store_close(store);
    log_image_fini(&image);
    assert_int_equal(outcome(), ERR_OK);
}

static void a_folder_of_another_is_refused(void **state)
{
    const uint64_t others[] = {1, 2, 4};
    struct log_sqlite_config c = config();

    (void)state;
    fill();
    c.cluster = "production";
    assert_int_equal(outcome_with(&c), ERR_FOREIGN);
    assert_non_null(strstr(last_line, "belongs to cluster test, not production"));
    c = config();
    c.voter = 2;
    assert_int_equal(outcome_with(&c), ERR_FOREIGN);
    c = config();
    c.voters = others;
    assert_int_equal(outcome_with(&c), ERR_FOREIGN);
    c = config();
    c.configuration = bytes_of("voters: 1, 2, 4.", 16);
    assert_int_equal(outcome_with(&c), ERR_FOREIGN);
    assert_int_equal(outcome(), ERR_OK);
}

static void another_version_or_program_is_refused(void **state)
{
    char path[128];

    fill();
    sql("PRAGMA user_version = 9");
    assert_int_equal(outcome(), ERR_FOREIGN);
    assert_non_null(strstr(last_line, "another version"));
    drop_folder(state);
    make_folder(state);
    sql("CREATE TABLE mine (a)");
    assert_int_equal(outcome(), ERR_FOREIGN);
    drop_folder(state);
    make_folder(state);
    path_of("raft.db", path, sizeof path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 1000; i++) {
        (void)fputs("this is no database ", f);
    }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(outcome(), ERR_CORRUPT);
}

static void a_folder_of_a_newer_format_of_the_fleet_is_refused(void **state)
{
    struct log_image image;
    struct log_store *store;

    (void)state;
    fill();
    store = open_log(&image);
    log_store_set_format(store, FLEET_FORMAT);
    log_store_close(store);
    log_image_fini(&image);
    assert_int_equal(outcome(), ERR_OK);
    store = open_log(&image);
    log_store_set_format(store, FLEET_FORMAT + 1);
    log_store_set_format(store, FLEET_FORMAT); // what is applied anew does not take it back
    log_store_close(store);
    log_image_fini(&image);
    assert_int_equal(outcome(), ERR_FOREIGN);
    assert_non_null(strstr(last_line, "a newer version wrote it"));
    assert_int_equal(outcome(), ERR_FOREIGN); // and nothing was changed
}

static void a_folder_that_cannot_be_is_an_error(void **state)
{
    struct log_sqlite_config c = config();

    (void)state;
    c.directory = "/proc/no/such/place";
    assert_int_equal(outcome_with(&c), ERR_IO);
    assert_non_null(strstr(last_line, "remedy="));
}

static void a_readmitted_peer_is_forgotten_once(void **state)
{
    struct log_sqlite_config c = config();
    struct log_image image;

    (void)state;
    fill();
    c.readmit = 2;
    assert_int_equal(outcome_with(&c), ERR_OK);
    struct log_store *store = open_log(&image);
    assert_int_equal(image.peer_count, 0);
    log_store_close(store);
    log_image_fini(&image);
}

static void an_adopted_folder_keeps_the_log_and_forgets_the_vote(void **state)
{
    struct log_sqlite_config c = config();
    struct log_store *store = NULL;
    struct log_image image;

    (void)state;
    fill();
    c.voter = 2;
    c.identity = 815;
    assert_int_equal(log_sqlite_adopt(&c), ERR_OK);
    assert_int_equal(log_sqlite_adopt(&c), ERR_CONFLICT);
    assert_int_equal(outcome(), ERR_FOREIGN);
    log_image_init(&image);
    assert_int_equal(log_sqlite_open(&store, &image, &c), ERR_OK);
    assert_int_equal(image.identity, 815);
    assert_int_equal(image.term, 5);
    assert_int_equal(image.vote, 0);
    assert_int_equal(image.entry_count, 7);
    assert_int_equal(image.peer_count, 1);
    assert_int_equal(image.peer[0].voter, 1);
    assert_int_equal(image.peer[0].identity, 4711);
    log_store_close(store);
    log_image_fini(&image);
}

static void a_stopped_folder_tells_how_far_it_got(void **state)
{
    struct log_folder seen;
    struct log_image image;

    (void)state;
    assert_int_equal(log_sqlite_inspect(folder, &seen), ERR_NOT_FOUND);
    fill();
    assert_int_equal(log_sqlite_inspect(folder, &seen), ERR_OK);
    assert_string_equal(seen.cluster, "test");
    assert_string_equal(seen.voters, "1,2,3");
    assert_int_equal(seen.voter, 1);
    assert_int_equal(seen.identity, 4711);
    assert_int_equal(seen.term, 5);
    assert_int_equal(seen.last_index, 9);
    assert_int_equal(seen.last_term, 2);
    struct log_store *store = open_log(&image);
    assert_int_equal(log_sqlite_inspect(folder, &seen), ERR_LOCKED);
    log_store_close(store);
    log_image_fini(&image);
}

static void nothing_is_adopted_from_an_empty_folder(void **state)
{
    struct log_sqlite_config c = config();

    (void)state;
    c.voter = 2;
    assert_int_equal(log_sqlite_adopt(&c), ERR_NOT_FOUND);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)
    const struct CMUnitTest cases[] = {
        CASE(a_new_folder_holds_the_first_entry_alone),
        CASE(everything_comes_back_after_a_restart),
        CASE(a_new_term_clears_the_vote),
        CASE(a_tail_is_truncated_and_written_anew),
        CASE(an_installed_snapshot_replaces_the_log),
        CASE(requests_come_back_in_their_order),
        CASE(a_changed_or_missing_row_of_any_kind_is_refused),
        CASE(a_flipped_bit_in_the_witness_is_refused),
        CASE(a_flipped_bit_anywhere_in_a_page_is_never_believed),
        CASE(what_was_confirmed_survives_a_kill),
        CASE(a_full_disk_ends_the_process_and_loses_nothing),
        CASE(the_write_ahead_log_has_room_from_the_start),
        CASE(a_damaged_end_of_the_write_ahead_log_is_found_out),
        CASE(a_missing_database_or_witness_is_refused),
        CASE(an_older_copy_is_refused),
        CASE(a_folder_in_use_is_refused),
        CASE(a_folder_of_another_is_refused),
        CASE(another_version_or_program_is_refused),
        CASE(a_folder_of_a_newer_format_of_the_fleet_is_refused),
        CASE(a_folder_that_cannot_be_is_an_error),
        CASE(a_readmitted_peer_is_forgotten_once),
        CASE(an_adopted_folder_keeps_the_log_and_forgets_the_vote),
        CASE(a_stopped_folder_tells_how_far_it_got),
        CASE(nothing_is_adopted_from_an_empty_folder),
    };
#undef CASE
    return cmocka_run_group_tests(cases, NULL, NULL);
}
