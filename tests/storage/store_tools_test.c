/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators do with the file of a store, beside its nodes and without them.
 */
#include "base/log.h"
#include "storage/actors/changes.h"
#include "storage/actors/migrate.h"
#include "storage/actors/store_sqlite.h"
#include "storage/actors/tools.h"
#include "tests/folder.h"
#include "tests/planted.h"
#include "tests/test.h"

#include <sqlite3.h>
#include <string.h>

struct fixture {
    char folder[256];
    char path[300];
    char copy[300];
    char why[STORE_TOOLS_WHY_SIZE];
    struct actor_store *store; /* a node's */
    char findings[2048];
};

static enum store_result does(struct actor_store *store, struct store_task *t)
{
    store->perform(store, &t, 1);
    const enum store_result result = (enum store_result)t->result;
    store_task_free(t);
    return result;
}

static struct store_task *task_of(enum store_verb verb, uint64_t fence)
{
    struct store_task *t = store_task_new(verb);

    t->kind = 3;
    t->id_size = 3;
    memcpy(t->id, "ann", 3);
    t->fence = fence;
    return t;
}

static void puts_value(struct actor_store *store, uint64_t number, const char *key,
                       const char *value)
{
    struct store_task *t = task_of(STORE_COMMIT, 7);

    t->number = number;
    changes_put(&t->bytes,
                &(struct store_change){.key = bytes_of(key, strlen(key)),
                                       .bytes = bytes_of(value, strlen(value))});
    assert_int_equal(does(store, t), STORE_DONE);
}

/* A node has it open, and an actor in it. */
static void open_store(struct fixture *f)
{
    log_set_level(LOG_ERROR);
    *f = (struct fixture){0};
    folder_make(f->folder, sizeof f->folder);
    (void)snprintf(f->path, sizeof f->path, "%s/actors.db", f->folder);
    (void)snprintf(f->copy, sizeof f->copy, "%s/copy.db", f->folder);
    f->store = store_sqlite_open(f->path);
    assert_non_null(f->store);
    assert_int_equal(does(f->store, task_of(STORE_CLAIM, 7)), STORE_DONE);
    puts_value(f->store, 1, "gold", "5");
}

static void stop_node(struct fixture *f)
{
    f->store->close(f->store);
    f->store = NULL;
}

static void close_store(struct fixture *f)
{
    if (f->store != NULL) {
        stop_node(f);
    }
    folder_remove(f->folder);
}

/* SQL of somebody else. */
static void writes(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void on_finding(void *context, const char *line)
{
    struct fixture *f = context;
    const size_t used = strlen(f->findings);

    (void)snprintf(f->findings + used, sizeof f->findings - used, "%s\n", line);
}

static const char *found(struct fixture *f, const char *path)
{
    f->findings[0] = '\0';
    assert_int_equal(store_tools_check(path, on_finding, f, f->why), ERR_OK);
    return f->findings;
}

static void a_check_names_each_row_that_breaks_a_rule(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    assert_string_equal(found(&f, f.path), "");
    writes(f.path,
           "INSERT INTO value VALUES (3, X'626f62', X'6b', X'00');"
           "INSERT INTO value VALUES (3, X'616e6e', X'', X'00');"
           "INSERT INTO value VALUES (3, X'616e6e', X'01', zeroblob(1048577));"
           "INSERT INTO alarm VALUES (3, X'616e6e', X'77', 'text', 'soon', 0);"
           "INSERT INTO actor VALUES (70000, X'78', 1, 1);"
           "INSERT INTO send VALUES (3, X'616e6e', X'0000000000010001', X'0000');"
           "INSERT INTO send VALUES (3, X'616e6e', X'0000000000020001', X'0000');");
    assert_string_equal(found(&f, f.path),
                        "actor 70000/x: its kind is not 0 to 65535, or its id not 1 to 255 bytes\n"
                        "actor 3/bob, key k: a row of value has no actor\n"
                        "actor 3/ann, key : the key of a row of value is not 1 to 255 bytes (0)\n"
                        "actor 3/ann, key %01: a row of value is not at most 1048576 bytes"
                        " (1048577)\n"
                        "actor 3/ann, key w: a row of alarm is not at most 1048576 bytes (4)\n"
                        "actor 3/ann, key w: its alarm has no time\n"
                        "actor 3/ann, key %00%00%00%00%00%02%00%01: its send is newer than its last"
                        " commit\n");
    close_store(&f);
}

static void a_check_finds_what_the_database_does(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    stop_node(&f);
    // An index that lacks a row of its table.
    writes(f.path,
           "INSERT INTO alarm VALUES (3, X'616e6e', X'77', X'78', 5, 0);"
           "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX alarm_due ON"
           " entry (every)' WHERE name = 'alarm_due';");
    assert_non_null(strstr(found(&f, f.path), "alarm_due"));
    close_store(&f);
}

static void figures_count_what_is_there(void **state)
{
    struct store_figures figures;
    struct fixture f;

    (void)state;
    open_store(&f);
    writes(f.path,
           "INSERT INTO alarm VALUES (3, X'616e6e', X'77', X'78', 5, 0);"
           "INSERT INTO send VALUES (3, X'616e6e', X'01', X'0203');");
    assert_int_equal(store_tools_stats(f.path, &figures, f.why), ERR_OK);
    assert_true(figures.actors == 1 && figures.values == 1 && figures.value_bytes == 5);
    assert_true(figures.alarms == 1 && figures.alarm_bytes == 2 && figures.next_due_ms == 5 &&
                figures.alarms_due == 1);
    assert_true(figures.answers == 0 && figures.answer_bytes == 0 && figures.read_back == 0);
    assert_true(figures.sends == 1 && figures.send_bytes == 3 && figures.taken == 0);
    assert_true(figures.file_bytes > 0);
    close_store(&f);
}

static void a_copy_is_of_one_moment_and_replaces_nothing_unasked(void **state)
{
    struct store_figures figures;
    struct fixture f;

    (void)state;
    open_store(&f);
    assert_int_equal(store_tools_backup(f.path, f.copy, false, f.why), ERR_OK);
    puts_value(f.store, 2, "silver", "9"); // the node goes on
    assert_string_equal(found(&f, f.copy), "");
    assert_int_equal(store_tools_stats(f.copy, &figures, f.why), ERR_OK);
    assert_int_equal(figures.values, 1);
    assert_int_equal(store_tools_backup(f.path, f.copy, false, f.why), ERR_CONFLICT);
    // Not a file that is in use, nor one that is no store; but one that was looked at.
    assert_int_equal(store_tools_backup(f.path, f.path, true, f.why), ERR_CONFLICT);
    assert_non_null(strstr(f.why, "stop the nodes"));
    assert_int_equal(store_tools_backup(f.path, f.copy, true, f.why), ERR_OK);
    assert_int_equal(store_tools_stats(f.copy, &figures, f.why), ERR_OK);
    assert_int_equal(figures.values, 2);
    (void)snprintf(f.copy, sizeof f.copy, "%s/other.db", f.folder);
    writes(f.copy, "CREATE TABLE t (a)");
    assert_int_equal(store_tools_backup(f.path, f.copy, true, f.why), ERR_CONFLICT);
    (void)snprintf(f.copy, sizeof f.copy, "%s/third.db-wal", f.folder);
    writes(f.copy, "CREATE TABLE t (a)");
    f.copy[strlen(f.copy) - 4] = '\0';
    assert_int_equal(store_tools_backup(f.path, f.copy, true, f.why), ERR_CONFLICT);
    (void)snprintf(f.copy, sizeof f.copy, "%s/nowhere/copy.db", f.folder);
    assert_int_equal(store_tools_backup(f.path, f.copy, true, f.why), ERR_IO);
    close_store(&f);
}

static void nobody_is_alone_while_a_node_has_the_file(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    // It does nothing now, and its actor's values are in its memory.
    assert_null(store_sqlite_open_alone(f.path, f.why));
    assert_non_null(strstr(f.why, "stop the nodes"));
    assert_int_equal(store_tools_vacuum(f.path, f.why), ERR_LOCKED);
    puts_value(f.store, 2, "silver", "9");
    stop_node(&f);
    struct actor_store *alone = store_sqlite_open_alone(f.path, f.why);
    assert_non_null(alone);
    assert_null(store_sqlite_open_alone(f.path, f.why)); // the next one waits, too
    struct store_task name = {.kind = 3, .id_size = 3, .id = "ann"};
    assert_true(store_sqlite_fence(alone, &name));
    assert_int_equal(name.fence, 7);
    name.id[0] = 'x';
    assert_false(store_sqlite_fence(alone, &name));
    puts_value(alone, 3, "gold", "6");
    alone->close(alone);
    assert_int_equal(store_tools_vacuum(f.path, f.why), ERR_OK);
    assert_string_equal(found(&f, f.path), "");
    close_store(&f);
}

static void what_is_no_store_is_left_alone(void **state)
{
    struct store_figures figures;
    struct fixture f;

    (void)state;
    open_store(&f);
    writes(f.copy, "CREATE TABLE t (a)");
    assert_int_equal(store_tools_stats(f.copy, &figures, f.why), ERR_CORRUPT);
    assert_int_equal(store_tools_check(f.copy, on_finding, &f, f.why), ERR_CORRUPT);
    assert_null(store_sqlite_open_alone(f.copy, f.why));
    (void)snprintf(f.copy, sizeof f.copy, "%s/none.db", f.folder);
    assert_int_equal(store_tools_stats(f.copy, &figures, f.why), ERR_NOT_FOUND);
    assert_null(store_sqlite_open_alone(f.copy, f.why));
    assert_int_not_equal(access(f.copy, F_OK), 0); // nor made
    close_store(&f);
}

/* ---- a copy into another store */

static enum err migrates(struct fixture *f, bool again, struct store_figures *figures)
{
    char from[320];
    const struct store_migration m = {.from = from, .to = f->copy, .again = again};

    (void)snprintf(from, sizeof from, "sqlite:%s", f->path);
    return store_migrate(&m, figures, f->why);
}

static bool opens(const char *path)
{
    struct actor_store *store = store_sqlite_open(path);

    if (store != NULL) {
        store->close(store);
    }
    return store != NULL;
}

/* So many actors, by SQL. */
static void has_actors(const char *path, int count)
{
    char sql[400];

    (void)snprintf(
        sql,
        sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO actor SELECT 4, CAST(i AS BLOB), i, 2 * i FROM n;"
        " INSERT INTO value SELECT 4, id, X'6b', CAST(number AS BLOB) FROM actor WHERE kind = 4;"
        " INSERT INTO alarm SELECT 4, id, X'61', X'', 5, 6 FROM actor WHERE kind = 4;",
        count);
    writes(path, sql);
}

static void a_copy_has_all_and_goes_on_by_the_same_numbers(void **state)
{
    struct store_figures figures;
    struct store_figures before;
    struct fixture f;

    (void)state;
    open_store(&f);
    has_actors(f.path, 300);
    // One of several commits: each has a part of what it has.
    writes(f.path,
           "INSERT INTO actor VALUES (5, X'6269', 9, 2);"
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)"
           " INSERT INTO value SELECT 5, X'6269', CAST(i AS BLOB), X'31' FROM n;"
           "INSERT INTO send VALUES (3, X'616e6e', X'0000000000010001', X'000001');"
           "INSERT INTO taken VALUES (3, X'616e6e', X'0078', X'00');"
           "INSERT INTO answer VALUES (3, X'616e6e', X'78', X'00');");
    assert_int_equal(migrates(&f, false, &figures), ERR_LOCKED); // the node runs
    assert_non_null(strstr(f.why, "stop the nodes"));
    stop_node(&f);
    assert_int_equal(store_tools_stats(f.path, &before, f.why), ERR_OK);
    assert_int_equal(migrates(&f, false, &figures), ERR_OK);
    assert_int_equal(figures.actors, before.actors);
    assert_int_equal(figures.value_bytes, before.value_bytes);
    assert_int_equal(figures.sends, 1);
    assert_string_equal(found(&f, f.copy), "");
    // An owner by the fence of before goes on behind its last commit.
    f.store = store_sqlite_open(f.copy);
    puts_value(f.store, 2, "gold", "6");
    stop_node(&f);
    assert_int_equal(migrates(&f, true, &figures), ERR_CONFLICT); // it is whole, and not empty
    assert_non_null(strstr(f.why, "not empty"));
    close_store(&f);
}

static void a_part_of_a_copy_is_no_store(void **state)
{
    struct store_figures figures;
    struct fixture f;

    (void)state;
    open_store(&f);
    has_actors(f.path, 300);
    stop_node(&f);
    writes(f.path, "UPDATE alarm SET due = -1 WHERE kind = 4 AND id = X'39'");
    assert_int_equal(migrates(&f, false, &figures), ERR_CORRUPT);
    assert_non_null(strstr(f.why, "actor 4/9: it can't be read"));
    assert_false(opens(f.copy));
    assert_int_equal(store_tools_stats(f.copy, &figures, f.why), ERR_CORRUPT);
    assert_int_equal(migrates(&f, false, &figures), ERR_CONFLICT);
    assert_non_null(strstr(f.why, "--again"));
    writes(f.path, "DELETE FROM alarm WHERE kind = 4 AND id = X'39'");
    assert_int_equal(migrates(&f, true, &figures), ERR_OK);
    assert_int_equal(figures.actors, 301);
    assert_true(opens(f.copy));
    // Rows of no actor are in no copy.
    writes(f.path, "INSERT INTO value VALUES (3, X'626f62', X'6b', X'00')");
    assert_int_equal(unlink(f.copy), 0);
    assert_int_equal(migrates(&f, false, &figures), ERR_CORRUPT);
    assert_non_null(strstr(f.why, "of no actor"));
    assert_false(opens(f.copy));
    close_store(&f);
}

static void names_of_stores_are_those_of_nodes(void **state)
{
    struct store_figures figures;
    uint64_t version = 0;
    struct fixture f;
    char name[320];

    (void)state;
    open_store(&f);
    (void)snprintf(name, sizeof name, "sqlite:%s", f.path);
    assert_int_equal(store_schema_version(name, &version, f.why), ERR_OK);
    assert_int_equal(version, STORE_VERSION);
    assert_int_equal(store_tools_stats("mysql://db/game", &figures, f.why), ERR_INVALID);
    assert_int_equal(store_tools_stats("sqlite:", &figures, f.why), ERR_INVALID);
    assert_int_equal(store_tools_backup("postgres:dbname=game", f.copy, false, f.why), ERR_REFUSED);
    assert_non_null(strstr(f.why, "pg_dump"));
    assert_int_equal(store_tools_backup("redis:127.0.0.1:1", f.copy, false, f.why), ERR_REFUSED);
    assert_non_null(strstr(f.why, "BGSAVE"));
    assert_string_equal(store_tools_shown("postgresql://game:secret@db/game"), "PostgreSQL");
    assert_string_equal(store_tools_shown(name), name);
    close_store(&f);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_check_names_each_row_that_breaks_a_rule),
        cmocka_unit_test(a_check_finds_what_the_database_does),
        cmocka_unit_test(figures_count_what_is_there),
        cmocka_unit_test(a_copy_is_of_one_moment_and_replaces_nothing_unasked),
        cmocka_unit_test(nobody_is_alone_while_a_node_has_the_file),
        cmocka_unit_test(what_is_no_store_is_left_alone),
        cmocka_unit_test(a_copy_has_all_and_goes_on_by_the_same_numbers),
        cmocka_unit_test(a_part_of_a_copy_is_no_store),
        cmocka_unit_test(names_of_stores_are_those_of_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_NOTALONE, M_HALFCOPY};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
