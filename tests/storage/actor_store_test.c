/* SPDX-License-Identifier: Apache-2.0
 *
 * A store of durable actors: claims, commits, fences; in a SQLite file, and what it is in the file.
 *
 *     actor_store_test STORE SPOIL    the same of another store, as --store names it, that is
 * empty; SPOIL, a program, has it refuse values of actors that are called "spoilt"
 * (smoke_stores.py)
 */
#include "base/log.h"
#include "base/mem.h"
#include "storage/actors/changes.h"
#include "storage/actors/due.h"
#include "storage/actors/store.h"
#include "tests/folder.h"
#include "tests/planted.h"
#include "tests/test.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *elsewhere; /* the store that is not SQLite; NULL = it is */
static const char *spoiler;
static uint16_t kind = 3; /* another for each case elsewhere, which begins with no rows so */

/* ---- a disk that fails: SQLite's own files, but for what they are told to return */

static struct {
    bool full;
    int syncs_fail; /* so many of the next */
    sqlite3_vfs real;
    sqlite3_vfs vfs;
    const sqlite3_io_methods *methods; /* SQLite's, of its log; the database itself does not fail */
    sqlite3_io_methods failing;
} disk;

static int write_file(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    return disk.full ? SQLITE_FULL : disk.methods->xWrite(file, data, size, at);
}

static int sync_file(sqlite3_file *file, int flags)
{
    if (disk.syncs_fail > 0) {
        disk.syncs_fail--;
        return SQLITE_IOERR_FSYNC;
    }
    return disk.methods->xSync(file, flags);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    const int code = disk.real.xOpen(vfs, name, file, flags, out);

    if (code == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0) {
        disk.methods = file->pMethods;
        disk.failing = *disk.methods;
        disk.failing.xWrite = write_file;
        disk.failing.xSync = sync_file;
        file->pMethods = &disk.failing;
    }
    return code;
}

static int make_disk(void **state)
{
    (void)state;
    disk.real = *sqlite3_vfs_find(NULL);
    disk.vfs = disk.real;
    disk.vfs.zName = "failing";
    disk.vfs.xOpen = open_file;
    return sqlite3_vfs_register(&disk.vfs, 1);
}

/* ---- the store */

struct fixture {
    char folder[256];
    char name[300];
    const char *path; /* in it */
    struct actor_store *store;
};

static void open_store(struct fixture *f)
{
    log_set_level(LOG_ERROR);
    folder_make(f->folder, sizeof f->folder);
    (void)snprintf(f->name, sizeof f->name, "sqlite:%s/actors.db", f->folder);
    f->path = f->name + strlen("sqlite:");
    if (elsewhere != NULL) {
        (void)snprintf(f->name, sizeof f->name, "%s", elsewhere);
        kind++;
    }
    f->store = actor_store_open(f->name);
    assert_non_null(f->store);
}

static void close_store(struct fixture *f)
{
    f->store->close(f->store);
    folder_remove(f->folder);
}

static struct store_task *task_of(enum store_verb verb, const char *id, uint64_t fence)
{
    struct store_task *t = store_task_new(verb);

    t->kind = kind;
    t->id_size = (uint8_t)strlen(id);
    memcpy(t->id, id, t->id_size);
    t->fence = fence;
    return t;
}

/* NULL = it goes. */
static void puts_value(struct store_task *t, const char *key, const char *value)
{
    const struct store_change c = {
        .key = bytes_of(key, strlen(key)),
        .gone = value == NULL,
        .bytes = bytes_of(value, value == NULL ? 0 : strlen(value)),
    };

    changes_put(&t->bytes, &c);
}

static enum store_result does(struct fixture *f, struct store_task *t)
{
    f->store->perform(f->store, &t, 1);
    return (enum store_result)t->result;
}

/* "number key=value …", or how it was refused. */
static const char *claims(struct fixture *f, const char *id, uint64_t fence)
{
    static char text[256];
    struct store_task *t = task_of(STORE_CLAIM, id, fence);
    struct store_change c;

    if (does(f, t) != STORE_DONE) {
        (void)snprintf(text, sizeof text, "refused %d", t->result);
    } else {
        struct bytes all = buffer_bytes(&t->bytes);
        int used = snprintf(text, sizeof text, "%u", (unsigned)t->number);

        while (changes_next(&all, &c)) {
            used += snprintf(text + used,
                             sizeof text - (size_t)used,
                             " %.*s=%.*s",
                             (int)c.key.size,
                             (const char *)c.key.data,
                             (int)c.bytes.size,
                             (const char *)c.bytes.data);
        }
    }
    store_task_free(t);
    return text;
}

static enum store_result commits(struct fixture *f, uint64_t fence, uint64_t number,
                                 const char *value)
{
    struct store_task *t = task_of(STORE_COMMIT, "ann", fence);

    t->number = number;
    puts_value(t, "gold", value);
    const enum store_result result = does(f, t);
    store_task_free(t);
    return result;
}

static void reopen(struct fixture *f)
{
    f->store->close(f->store);
    f->store = actor_store_open(f->name);
    assert_non_null(f->store);
}

static void what_is_committed_is_loaded_in_order(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    assert_string_equal(claims(&f, "ann", 5), "0");
    struct store_task *t = task_of(STORE_COMMIT, "ann", 5);
    t->number = 1;
    puts_value(t, "b", "2");
    puts_value(t, "a", "1");
    puts_value(t, "a", "one");
    puts_value(t, "c", "");
    puts_value(t, "d", "4");
    puts_value(t, "d", NULL);
    assert_int_equal(does(&f, t), STORE_DONE);
    store_task_free(t);
    reopen(&f);
    assert_string_equal(claims(&f, "ann", 6), "1 a=one b=2 c=");
    assert_string_equal(claims(&f, "bob", 6), "0");
    close_store(&f);
}

/* Answers, alarms and sends are rows of tables of their own, in the same commit. */
static void each_thing_has_a_table_of_its_own(void **state)
{
    static const struct store_change all[] = {
        {.of = CHANGE_TAKEN, .key = {(const uint8_t *)"n", 1}, .bytes = {(const uint8_t *)"t", 1}},
        {.of = CHANGE_SEND, .key = {(const uint8_t *)"n", 1}, .bytes = {(const uint8_t *)"m", 1}},
        {.of = CHANGE_ALARM, .key = {(const uint8_t *)"n", 1}, .due_ms = 1234, .every_ms = 50},
        {.of = CHANGE_ANSWER,
         .key = {(const uint8_t *)"n", 1},
         .bytes = {(const uint8_t *)"42", 2}},
        {.of = CHANGE_VALUE, .key = {(const uint8_t *)"n", 1}, .bytes = {(const uint8_t *)"v", 1}},
    };
    struct fixture f;
    struct store_change c;

    (void)state;
    open_store(&f);
    (void)claims(&f, "ann", 5);
    struct store_task *t = task_of(STORE_COMMIT, "ann", 5);
    t->number = 1;
    for (size_t i = 0; i < CHANGE_COUNT; i++) {
        changes_put(&t->bytes, &all[i]);
    }
    assert_int_equal(does(&f, t), STORE_DONE);
    store_task_free(t);
    reopen(&f);
    t = task_of(STORE_CLAIM, "ann", 5);
    assert_int_equal(does(&f, t), STORE_DONE);
    struct bytes loaded = buffer_bytes(&t->bytes);
    for (size_t of = 0; of < CHANGE_COUNT; of++) {
        const struct store_change *want = &all[CHANGE_COUNT - 1 - of];

        assert_true(changes_next(&loaded, &c));
        assert_int_equal(c.of, want->of);
        assert_true(bytes_equal(c.key, want->key) && bytes_equal(c.bytes, want->bytes));
        assert_int_equal(c.due_ms, want->due_ms);
        assert_int_equal(c.every_ms, want->every_ms);
    }
    assert_false(changes_next(&loaded, &c));
    store_task_free(t);
    t = task_of(STORE_COMMIT, "ann", 5);
    t->number = 2;
    for (size_t i = 0; i < CHANGE_COUNT; i++) {
        c = (struct store_change){.of = all[i].of, .key = all[i].key, .gone = true};
        changes_put(&t->bytes, &c);
    }
    assert_int_equal(does(&f, t), STORE_DONE);
    store_task_free(t);
    assert_string_equal(claims(&f, "ann", 5), "2");
    close_store(&f);
}

/* ---- alarms that are due */

static void sets_alarm(struct store_task *t, const char *name, uint64_t due_ms)
{
    const struct store_change c = {
        .of = CHANGE_ALARM, .key = bytes_of(name, strlen(name)), .due_ms = due_ms};

    changes_put(&t->bytes, &c);
}

/* The next page, as "due id name, …"; of a full one its last alone. False: it is the last page. */
static bool is_due(struct fixture *f, uint64_t now_ms, struct buffer *after, char *text)
{
    struct store_task *t = store_task_new(STORE_DUE);
    struct due_alarm d = {0};
    size_t count = 0;

    t->kind = kind;
    t->number = now_ms;
    buffer_put(&t->bytes, after->data, after->size);
    assert_int_equal(does(f, t), STORE_DONE);
    struct bytes all = buffer_bytes(&t->bytes);
    text[0] = '\0';
    while (due_next(&all, &d)) {
        char *to = ++count == STORE_DUE_MAX ? text : text + strlen(text);

        if (count < 8 || count == STORE_DUE_MAX) {
            (void)sprintf(to,
                          "%u %.*s %.*s, ",
                          (unsigned)d.due_ms,
                          (int)d.id.size,
                          (const char *)d.id.data,
                          (int)d.name.size,
                          (const char *)d.name.data);
        }
    }
    if (count > 0) {
        struct buffer last = {0};

        due_put(&last, &d); // before the page goes
        buffer_clear(after);
        buffer_put(after, last.data, last.size);
        buffer_fini(&last);
    }
    store_task_free(t);
    return count == STORE_DUE_MAX;
}

static void alarms_that_are_due_come_in_order(void **state)
{
    static const char *const ids[] = {"bob", "ann"};
    struct buffer after = {0};
    char text[256];
    struct fixture f;

    (void)state;
    open_store(&f);
    for (size_t i = 0; i < 2; i++) {
        struct store_task *t = task_of(STORE_COMMIT, ids[i], 5);

        (void)claims(&f, ids[i], 5);
        t->number = 1;
        sets_alarm(t, "z", 100);
        sets_alarm(t, "a", 100);
        sets_alarm(t, "soon", 99 + i);
        sets_alarm(t, "later", 101);
        assert_int_equal(does(&f, t), STORE_DONE);
        store_task_free(t);
    }
    kind += 100; // another kind's are not among them
    (void)claims(&f, "ann", 5);
    struct store_task *t = task_of(STORE_COMMIT, "ann", 5);
    t->number = 1;
    sets_alarm(t, "x", 1);
    assert_int_equal(does(&f, t), STORE_DONE);
    store_task_free(t);
    kind -= 100;
    assert_false(is_due(&f, 98, &after, text));
    assert_string_equal(text, "");
    assert_false(is_due(&f, 100, &after, text));
    assert_string_equal(text,
                        "99 bob soon, 100 ann a, 100 ann soon, 100 ann z, 100 bob a, 100 bob z, ");
    assert_false(is_due(&f, 100, &after, text));
    assert_string_equal(text, "");
    assert_false(is_due(&f, 101, &after, text)); // after the last that was seen
    assert_string_equal(text, "101 ann later, 101 bob later, ");
    buffer_fini(&after);
    close_store(&f);
}

static void many_that_are_due_come_page_by_page(void **state)
{
    enum { MANY = STORE_DUE_MAX + 2 };
    struct buffer after = {0};
    char text[256];
    char name[16];
    struct fixture f;

    (void)state;
    open_store(&f);
    (void)claims(&f, "ann", 5);
    struct store_task *t = task_of(STORE_COMMIT, "ann", 5);
    t->number = 1;
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "%04u", i);
        sets_alarm(t, name, 7);
    }
    assert_int_equal(does(&f, t), STORE_DONE);
    store_task_free(t);
    assert_true(is_due(&f, 7, &after, text));
    assert_string_equal(text, "7 ann 1023, ");
    assert_false(is_due(&f, 7, &after, text));
    assert_string_equal(text, "7 ann 1024, 7 ann 1025, ");
    buffer_fini(&after);
    close_store(&f);
}

static void runs_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
}

/* Nobody is woken for them, and who has such a one is not loaded; others are. */
static void alarms_that_make_no_sense_are_left_out(void **state)
{
    struct buffer after = {0};
    char text[256];
    struct fixture f;

    (void)state;
    open_store(&f);
    runs_sql(f.path,
             "INSERT INTO entry (part, kind, id, key, bytes, due, every) VALUES"
             " (3, 3, x'', x'61', x'', 5, 0),"
             " (3, 3, x'616e6e', x'', x'', 5, 0), (3, 3, zeroblob(256), x'61', x'', 5, 0),"
             " (3, 3, x'616e6e', zeroblob(256), x'', 5, 0), (3, 3, 'ann', 'text', x'', 5, 0),"
             " (3, 3, x'616e6e', x'62', x'', -5, 0), (3, 3, x'616e6e', x'63', x'', 'now', 0),"
             " (3, 3, x'616e6e', x'64', x'', 5.5, 0),"
             " (3, 3, x'626f62', x'61', x'', 5, -1), (3, 3, x'6a6f65', x'6f6b', x'', 5, 0)");
    assert_false(is_due(&f, 100, &after, text));
    assert_string_equal(text, "5 bob a, 5 joe ok, ");
    assert_string_equal(claims(&f, "ann", 5), "refused 2");
    assert_string_equal(claims(&f, "bob", 5), "refused 2");
    assert_string_equal(claims(&f, "joe", 5), "0 ok=");
    buffer_fini(&after);
    close_store(&f);
}

static void who_is_deposed_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    (void)claims(&f, "ann", 5);
    assert_int_equal(commits(&f, 5, 1, "10"), STORE_DONE);
    assert_string_equal(claims(&f, "ann", 9), "1 gold=10"); // the new owner
    assert_int_equal(commits(&f, 5, 2, "99"), STORE_FENCED);
    assert_string_equal(claims(&f, "ann", 5), "refused 1");
    assert_string_equal(claims(&f, "ann", 9), "1 gold=10");
    assert_int_equal(commits(&f, 9, 2, "11"), STORE_DONE);
    close_store(&f);
}

/* Of a life before at the same node, or again after its answer was lost. */
static void a_number_that_is_not_the_next_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    (void)claims(&f, "ann", 5);
    assert_int_equal(commits(&f, 5, 1, "10"), STORE_DONE);
    assert_int_equal(commits(&f, 5, 1, "20"), STORE_FENCED);
    assert_string_equal(claims(&f, "ann", 5), "1 gold=10");
    close_store(&f);
}

/* An owner has seen what is not there any more: its commits, or its claim. */
static void an_old_copy_is_noticed(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    (void)claims(&f, "ann", 5);
    assert_int_equal(commits(&f, 5, 1, "10"), STORE_DONE);
    assert_int_equal(commits(&f, 5, 3, "30"), STORE_UNAVAILABLE);
    assert_int_equal(f.store->counts.went_back, 1);
    assert_int_equal(commits(&f, 5, 2, "20"), STORE_UNAVAILABLE); // nothing is trusted any more
    assert_string_equal(claims(&f, "ann", 6), "refused 2");
    reopen(&f);
    assert_int_equal(commits(&f, 6, 2, "20"), STORE_UNAVAILABLE);
    reopen(&f);
    assert_string_equal(claims(&f, "ann", 5), "1 gold=10");
    close_store(&f);
}

static void spoil(const struct fixture *f)
{
    sqlite3 *db = NULL;

    if (elsewhere != NULL) {
        int status = 0;
        const pid_t child = fork();

        if (child == 0) {
            (void)execl(spoiler, spoiler, (char *)NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        return;
    }
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "CREATE TRIGGER no BEFORE INSERT ON entry WHEN NEW.part = 1 AND"
                                  " NEW.id = x'73706f696c74' BEGIN SELECT RAISE(ABORT, 'no'); END",
                                  NULL,
                                  NULL,
                                  NULL),
                     SQLITE_OK);
    (void)sqlite3_close(db);
}

/* What one actor's rows do is no matter of the others in its transaction. */
static void who_is_spoilt_is_refused_alone(void **state)
{
    static const char *const ids[] = {"ann", "spoilt", "bob"};
    struct store_task *all[4];
    struct fixture f;

    (void)state;
    open_store(&f);
    spoil(&f);
    for (size_t i = 0; i < 3; i++) {
        (void)claims(&f, ids[i], 5);
        all[i] = task_of(STORE_COMMIT, ids[i], 5);
        all[i]->number = 1;
        puts_value(all[i], "gold", "10");
    }
    all[3] = task_of(STORE_CLAIM, "ann", 6);
    f.store->perform(f.store, all, 4);
    assert_int_equal(all[0]->result, STORE_DONE);
    assert_int_equal(all[1]->result, STORE_UNAVAILABLE);
    assert_int_equal(all[2]->result, STORE_DONE);
    assert_int_equal(all[3]->result, STORE_DONE);
    assert_int_equal(all[3]->number, 1);
    for (size_t i = 0; i < 4; i++) {
        store_task_free(all[i]);
    }
    assert_string_equal(claims(&f, "bob", 6), "1 gold=10");
    close_store(&f);
}

/* One that is refused takes nothing from the others, and a claim sees what stands before it. */
static void many_go_in_one_transaction(void **state)
{
    struct fixture f;
    struct store_task *all[3];

    (void)state;
    open_store(&f);
    (void)claims(&f, "ann", 5);
    all[0] = task_of(STORE_COMMIT, "ann", 5);
    all[0]->number = 1;
    puts_value(all[0], "gold", "1");
    (void)claims(&f, "bob", 7);
    all[1] = task_of(STORE_COMMIT, "bob", 5); // it is another owner's
    all[1]->number = 1;
    puts_value(all[1], "gold", "2");
    all[2] = task_of(STORE_CLAIM, "ann", 6);
    f.store->perform(f.store, all, 3);
    assert_int_equal(all[0]->result, STORE_DONE);
    assert_int_equal(all[1]->result, STORE_FENCED);
    assert_int_equal(all[2]->result, STORE_DONE);
    assert_int_equal(all[2]->number, 1);
    assert_true(all[2]->bytes.size > 0);
    for (size_t i = 0; i < 3; i++) {
        store_task_free(all[i]);
    }
    assert_string_equal(claims(&f, "bob", 8), "0");
    close_store(&f);
}

static void a_foreign_reader_finds_its_tables(void **state)
{
    struct fixture f;
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;

    (void)state;
    open_store(&f);
    (void)claims(&f, "ann", 5);
    assert_int_equal(commits(&f, 5, 1, "10"), STORE_DONE);
    assert_int_equal(sqlite3_open_v2(f.path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT CAST(value AS TEXT), number, fence FROM value JOIN "
                                        "actor USING (kind, id) WHERE kind = 3 AND id = x'616e6e' "
                                        "AND key = CAST('gold' AS BLOB)",
                                        -1,
                                        &q,
                                        NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(q, 0), "10");
    assert_int_equal(sqlite3_column_int(q, 1), 1);
    assert_int_equal(sqlite3_column_int(q, 2), 5);
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(db);
    close_store(&f);
}

static void a_full_disk_changes_nothing(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    (void)claims(&f, "ann", 5);
    assert_int_equal(commits(&f, 5, 1, "10"), STORE_DONE);
    disk.full = true;
    assert_int_equal(commits(&f, 5, 2, "20"), STORE_UNAVAILABLE);
    assert_string_equal(claims(&f, "ann", 6), "refused 2");
    disk.full = false;
    assert_string_equal(claims(&f, "ann", 5), "1 gold=10"); // nor was the fence raised
    assert_int_equal(commits(&f, 5, 2, "20"), STORE_DONE);
    close_store(&f);
}

/* The disk fails in COMMIT: the pages may be on it, or not. */
static void what_is_in_doubt_is_read_back(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    (void)claims(&f, "ann", 5);
    assert_int_equal(commits(&f, 5, 1, "10"), STORE_DONE);
    disk.syncs_fail = 1;
    assert_int_equal(commits(&f, 5, 2, "20"), STORE_UNAVAILABLE);
    assert_int_equal(disk.syncs_fail, 0);
    reopen(&f); // as after a crash: nothing of it is found in the log
    assert_string_equal(claims(&f, "ann", 5), "1 gold=10");
    disk.syncs_fail = 3; // nor can it be read back, nor anything be done before it is
    assert_int_equal(commits(&f, 5, 2, "20"), STORE_UNKNOWN);
    assert_string_equal(claims(&f, "ann", 5), "refused 2");
    assert_string_equal(claims(&f, "ann", 5), "1 gold=10");
    assert_int_equal(commits(&f, 5, 2, "20"), STORE_DONE);
    close_store(&f);
}

static void what_is_no_store_is_refused(void **state)
{
    struct fixture f;

    (void)state;
    open_store(&f);
    f.store->close(f.store);
    FILE *file = fopen(f.path, "we");
    assert_non_null(file);
    (void)fputs("this is no database, but a text that is long enough to be taken for one\n", file);
    (void)fclose(file);
    assert_null(actor_store_open(f.name));
    assert_int_equal(truncate(f.path, 0), 0);
    // What a build with a tree for each table has made: not half of it is changed.
    runs_sql(f.path,
             "CREATE TABLE store (one INTEGER PRIMARY KEY, version INTEGER, read_back INTEGER);"
             "INSERT INTO store VALUES (1, 1, 0); CREATE TABLE actor (kind, id, fence, number)");
    assert_null(actor_store_open(f.name));
    runs_sql(f.path, "CREATE TABLE entry (is_not_there)");
    assert_null(actor_store_open("redis:somewhere"));
    assert_null(actor_store_open("redis:127.0.0.1:1"));
    assert_null(actor_store_open("redis:unix:/nowhere/at/all"));
    assert_null(actor_store_open("postgres:host=127.0.0.1 port=1"));
    assert_null(actor_store_open("postgresql://127.0.0.1:1/game"));
    assert_null(actor_store_open("oracle:somewhere"));
    assert_null(actor_store_open("sqlite:"));
    assert_null(actor_store_open("sqlite:/nowhere/at/all.db"));
    folder_remove(f.folder);
}

/* What every store does. */
#define CASES                                                                                   \
    cmocka_unit_test(what_is_committed_is_loaded_in_order),                                     \
        cmocka_unit_test(each_thing_has_a_table_of_its_own),                                    \
        cmocka_unit_test(alarms_that_are_due_come_in_order),                                    \
        cmocka_unit_test(many_that_are_due_come_page_by_page),                                  \
        cmocka_unit_test(who_is_deposed_is_refused),                                            \
        cmocka_unit_test(a_number_that_is_not_the_next_is_refused),                             \
        cmocka_unit_test(an_old_copy_is_noticed), cmocka_unit_test(many_go_in_one_transaction), \
        cmocka_unit_test(who_is_spoilt_is_refused_alone)

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        CASES,
        cmocka_unit_test(alarms_that_make_no_sense_are_left_out),
        cmocka_unit_test(a_foreign_reader_finds_its_tables),
        cmocka_unit_test(a_full_disk_changes_nothing),
        cmocka_unit_test(what_is_in_doubt_is_read_back),
        cmocka_unit_test(what_is_no_store_is_refused),
    };

    return cmocka_run_group_tests(tests, make_disk, NULL);
}

static int cases_elsewhere(const char *store, const char *program)
{
    const struct CMUnitTest tests[] = {CASES};

    elsewhere = store;
    spoiler = program;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_NOFENCESTORE, M_OLDSTORE};

    if (argc == 3) {
        return cases_elsewhere(argv[1], argv[2]);
    }
    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
