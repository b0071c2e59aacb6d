/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged folders under the shipped replica: whatever happened to a file, a
 * voter either starts with the very state that was confirmed, or it ends with
 * an exit code and a line that names the file and what to do. Never a signal,
 * never another state. TRIALS=300 for more random damage to each file.
 */
#include "raft/inside.h"

#include "tests/test.h"

#include "base/log.h"
#include "tests/storage/coordinator_folder.h"
#include "tests/storage/wal_end.h"

#include "base/prng.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { FILES_MAX = 12, OUTPUT_MAX = 8192, KILLED = 0, STOPPED = 1 };

static char root[200];
static char folder[256];

/* The sound folder, in memory. */
static struct kept {
    char name[32];
    uint8_t *data;
    size_t size;
} kept[2][FILES_MAX];
static size_t kept_count[2];

/* What a start must find. */
static struct sums {
    uint64_t number;
    uint64_t version;
    uint64_t digest[2];
} want;

static struct sums sums_of(const struct state *s)
{
    return (struct sums){.number = s->number,
                         .version = s->view.ring.version,
                         .digest = {s->view.ring.digest[0], s->view.ring.digest[1]}};
}

static void path_of(const char *name, char out[320])
{
    (void)snprintf(out, 320, "%s/%.50s", folder, name);
}

/* ---- the folder ---- */

static void keep_folder(size_t which)
{
    DIR *dir = opendir(folder);

    assert_non_null(dir);
    for (const struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        char path[320];
        struct stat status;
        struct kept *k = &kept[which][kept_count[which]];

        path_of(at->d_name, path);
        // The shared-memory index of a write-ahead log is made anew by whoever opens it first.
        if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
            strstr(at->d_name, "-shm") != NULL) {
            continue;
        }
        assert_true(strlen(at->d_name) < sizeof k->name);
        memcpy(k->name, at->d_name, strlen(at->d_name) + 1);
        k->size = (size_t)status.st_size;
        k->data = mem_new(1, k->size + 1);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(read(fd, k->data, k->size), k->size);
        (void)close(fd);
        kept_count[which]++;
    }
    (void)closedir(dir);
}

static void clear_folder(void)
{
    DIR *dir = opendir(folder);

    for (const struct dirent *at = dir == NULL ? NULL : readdir(dir); at != NULL;
         at = readdir(dir)) {
        char path[320];

        path_of(at->d_name, path);
        if (unlink(path) != 0) {
            (void)rmdir(path);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    (void)mkdir(folder, 0700);
    assert_int_equal(chmod(folder, 0700), 0);
}

static void put_folder(size_t which)
{
    clear_folder();
    for (size_t i = 0; i < kept_count[which]; i++) {
        char path[320];

        path_of(kept[which][i].name, path);
        const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, kept[which][i].data, kept[which][i].size), kept[which][i].size);
        (void)close(fd);
    }
}

static const struct kept *find_kept(size_t which, const char *name)
{
    for (size_t i = 0; i < kept_count[which]; i++) {
        if (strcmp(kept[which][i].name, name) == 0) {
            return &kept[which][i];
        }
    }
    return NULL;
}

/* Once: a folder as a clean stop leaves it, and one as kill -9 does. */
static int make(void **unused)
{
    int status = 0;

    (void)unused;
    if (access("/dev/shm", W_OK) == 0) {
        (void)setenv("TMPDIR", "/dev/shm", 0); // a thousand starts, each with its fsyncs
    }
    folder_make(root, sizeof root);
    (void)snprintf(folder, sizeof folder, "%s/c1", root);
    const pid_t child = fork();
    if (child == 0) {
        struct writer_of_folder w = {0};

        (void)folder_write(&w, folder, 1, 1);
        _exit(0); // the write-ahead logs stay
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    keep_folder(KILLED);
    clear_folder();
    struct writer_of_folder w = {0};
    (void)folder_write(&w, folder, 1, 1);
    want = sums_of(&w.state);
    folder_close_writer(&w);
    keep_folder(STOPPED);
    return 0;
}

static int drop(void **unused)
{
    (void)unused;
    clear_folder();
    (void)rmdir(folder);
    (void)rmdir(root);
    for (size_t which = 0; which < 2; which++) {
        for (size_t i = 0; i < kept_count[which]; i++) {
            mem_free(kept[which][i].data);
        }
    }
    return 0;
}

/* ---- one start, in a process of its own ---- */

struct start {
    struct state state;
    struct state_db *db;
    bool leading;
};

static void on_apply(void *context, uint64_t index, uint64_t tag, struct bytes bytes)
{
    struct start *s = context;
    struct state_result result = {0};
    Rh__Command *command = command_get(bytes);

    (void)index;
    (void)tag;
    assert_non_null(command);
    state_apply(&s->state, command, &result);
    state_db_apply(s->db, &s->state, command, &result);
    state_result_fini(&result);
    command_free(command);
}

static void on_applied(void *context, uint64_t index)
{
    struct start *s = context;

    state_db_commit(s->db, index);
}

static void on_snapshot(void *context, struct buffer *out)
{
    struct start *s = context;

    state_db_snapshot(s->db, &s->state, out);
}

static bool on_restore(void *context, uint64_t index, struct bytes snapshot)
{
    struct start *s = context;

    (void)index;
    return state_db_restore(s->db, snapshot, &s->state);
}

static void on_role(void *context, bool leading, uint64_t term)
{
    struct start *s = context;

    (void)term;
    s->leading = leading;
}

static void on_done(void *context, uint64_t tag, enum err result)
{
    (void)context;
    (void)tag;
    (void)result;
}

static void on_send(void *context, uint64_t voter, struct bytes message)
{
    (void)context;
    (void)voter;
    (void)message;
}

/* As the daemon does, up to its leadership. Never returns. */
static void start_voter(void)
{
    struct start s = {0};
    struct replica *r = NULL;
    struct watermark_file {
        struct number *file;
        struct buffer found;
    } w = {0};
    char path[320];
    const struct replica_config config = {.id = 1,
                                          .voter = {1},
                                          .voter_count = 1,
                                          .directory = folder,
                                          .cluster = "test",
                                          .seed = 1,
                                          .election_ms = 500,
                                          .heartbeat_ms = 50,
                                          .snapshot_entries = 1024,
                                          .trailing_entries = 256};
    const struct replica_events events = {.context = &s,
                                          .apply = on_apply,
                                          .applied = on_applied,
                                          .snapshot = on_snapshot,
                                          .restore = on_restore,
                                          .role = on_role,
                                          .done = on_done,
                                          .send = on_send,
                                          .wake = never_wake};
    state_init(&s.state);
    if (replica_open(&r, &config, &events, 0) != ERR_OK) {
        exit(1);
    }
    path_of("state.db", path);
    if (state_db_open(&s.db, path) != ERR_OK) {
        exit(1);
    }
    path_of("witness", path);
    if (number_open(&w.file, path, &w.found) != ERR_OK) {
        exit(1);
    }
    for (uint64_t now = 0; !s.leading; now += 25000) {
        replica_tick(r, now);
        log_sqlite_wait(replica_store(r));
        replica_poll(r, now);
    }
    const struct sums got = sums_of(&s.state);
    exit(memcmp(&got, &want, sizeof got) == 0 ? 0 : 99);
}

struct outcome {
    int code; /* negative: the signal that ended it */
    char text[OUTPUT_MAX];
};

static void run_start(struct outcome *o)
{
    int ends[2];
    int status = 0;
    size_t used = 0;
    ssize_t more;

    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        log_set_sink(NULL, NULL);
        (void)alarm(20); // an endless loop is a signal too
        start_voter();
    }
    (void)close(ends[1]);
    while ((more = read(ends[0], o->text + used, sizeof o->text - 1 - used)) > 0) {
        used += (size_t)more;
    }
    o->text[used] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    o->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Sound, or refused with a line that names a file of the folder and a remedy. */
static void assert_sound_or_said(const struct outcome *o, const char *damage)
{
    if (o->code == 0) {
        return;
    }
    if (o->code < 0 || o->code == 99) {
        fail_msg("%s: ended by %d: %s", damage, o->code, o->text);
    }
    if (strstr(o->text, folder) == NULL || strstr(o->text, "remedy=") == NULL) {
        fail_msg("%s: code %d, but neither file nor remedy: %s", damage, o->code, o->text);
    }
}

static bool refused(const char *damage)
{
    struct outcome o;

    run_start(&o);
    assert_sound_or_said(&o, damage);
    return o.code != 0;
}

/* ---- damage ---- */

static void flip(const char *name, size_t at, uint8_t bits)
{
    char path[320];
    uint8_t byte = 0;

    path_of(name, path);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= bits;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    (void)close(fd);
}

static size_t trials(void)
{
    const char *text = getenv("TRIALS");

    return text == NULL ? 40 : (size_t)strtoul(text, NULL, 10);
}

static void random_damage(size_t which, const char *name)
{
    struct prng random = {.state = 7};
    const struct kept *k = find_kept(which, name);
    size_t said = 0;
    char end[320];

    assert_non_null(k);
    put_folder(which);
    path_of(name, end);
    const size_t used = strcmp(name, "raft.db-wal") == 0 ? (size_t)wal_end(end) : k->size;
    for (size_t i = 0; i < trials() && used > 0; i++) {
        char damage[128];
        char path[320];
        const size_t at = (size_t)prng_between(&random, 0, used - 1);
        const unsigned bit = (unsigned)prng_between(&random, 0, 7);

        put_folder(which);
        path_of(name, path);
        if (i % 4 == 3) {
            (void)snprintf(damage, sizeof damage, "%s cut to %zu", name, at);
            assert_int_equal(truncate(path, (off_t)at), 0);
        } else {
            (void)snprintf(damage, sizeof damage, "%s bit %u of byte %zu", name, bit, at);
            flip(name, at, (uint8_t)(1u << bit));
        }
        said += refused(damage);
    }
    print_message("%s (%s): %zu of %zu refused, the others sound\n",
                  name,
                  which == KILLED ? "killed" : "stopped",
                  said,
                  trials());
}

static void any_random_damage_to_any_file_is_found_or_harmless(void **unused)
{
    (void)unused;
    random_damage(STOPPED, "raft.db");
    random_damage(STOPPED, "raft.tail");
    random_damage(STOPPED, "witness");
    random_damage(STOPPED, "state.db");
    random_damage(KILLED, "raft.db");
    random_damage(KILLED, "raft.db-wal");
    random_damage(KILLED, "raft.tail");
    random_damage(KILLED, "state.db-wal");
}

static void sound_folders_start(void **unused)
{
    (void)unused;
    put_folder(STOPPED);
    assert_false(refused("nothing"));
    put_folder(KILLED);
    assert_false(refused("nothing"));
}

/* What is certain to be refused, and what is certain not to matter. */
static void empty_missing_and_replaced_files(void **unused)
{
    static const struct {
        const char *name;
        char how; /* e empty, m missing, d a directory, h half */
        bool refuses;
    } table[] = {
        {"raft.db", 'e', true},    {"raft.db", 'm', true},   {"raft.db", 'd', true},
        {"raft.db", 'h', true},    {"raft.tail", 'e', true}, {"raft.tail", 'm', true},
        {"raft.tail", 'd', true},  {"raft.tail", 'h', true}, {"raft.lock", 'd', true},
        {"raft.lock", 'm', false}, {"witness", 'e', true},   {"witness", 'd', true},
        {"witness", 'h', true},    {"witness", 'm', false},  {"state.db", 'e', false},
        {"state.db", 'm', false},  {"state.db", 'h', false}, {"state.db", 'd', true},
        {"recovery", 'e', true},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char path[320];
        char damage[64];
        const struct kept *k = find_kept(STOPPED, table[i].name);

        (void)snprintf(damage, sizeof damage, "%s %c", table[i].name, table[i].how);
        put_folder(STOPPED);
        path_of(table[i].name, path);
        if (table[i].how == 'm' || table[i].how == 'd') {
            (void)unlink(path);
        }
        if (table[i].how == 'd') {
            assert_int_equal(mkdir(path, 0700), 0);
        }
        if (table[i].how == 'e') {
            const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
            assert_int_equal(close(fd), 0);
        }
        if (table[i].how == 'h') {
            assert_non_null(k);
            assert_int_equal(truncate(path, (off_t)k->size / 2), 0);
        }
        if (refused(damage) != table[i].refuses) {
            fail_msg("%s: %s", damage, table[i].refuses ? "taken" : "refused");
        }
    }
}

/* The write-ahead log of one moment with the database of another, both ways. */
static void files_of_two_moments_are_refused(void **unused)
{
    char path[320];

    (void)unused;
    put_folder(KILLED);
    path_of("raft.db-wal", path);
    assert_int_equal(unlink(path), 0);
    assert_true(refused("raft.db-wal missing"));
}

/* Files may not grow: the disk is full. */
static void a_full_disk_is_said_and_loses_nothing(void **unused)
{
    struct outcome o;
    struct rlimit before;

    (void)unused;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    for (rlim_t size = 0; size < 300000; size += 30000) {
        const struct rlimit full = {.rlim_cur = size, .rlim_max = before.rlim_max};

        put_folder(STOPPED);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
        run_start(&o);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_sound_or_said(&o, "disk full");
        assert_false(refused("space again"));
    }
}

/* As another user, to whom the folder is closed, or read-only. */
static void a_folder_that_may_not_be_written_is_said(void **unused)
{
    static const mode_t modes[] = {0000, 0500, 0555};

    (void)unused;
    if (geteuid() != 0) {
        skip(); // only root can be somebody else
    }
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct outcome o;

        put_folder(STOPPED);
        assert_int_equal(chmod(root, 0755), 0);
        assert_int_equal(chmod(folder, modes[i]), 0);
        assert_int_equal(seteuid(65534), 0);
        run_start(&o);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(chmod(folder, 0700), 0);
        assert_sound_or_said(&o, "closed folder");
        assert_int_not_equal(o.code, 0);
    }
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(sound_folders_start),
        cmocka_unit_test(empty_missing_and_replaced_files),
        cmocka_unit_test(files_of_two_moments_are_refused),
        cmocka_unit_test(a_full_disk_is_said_and_loses_nothing),
        cmocka_unit_test(a_folder_that_may_not_be_written_is_said),
        cmocka_unit_test(any_random_damage_to_any_file_is_found_or_harmless),
    };

    return cmocka_run_group_tests(cases, make, drop);
}
