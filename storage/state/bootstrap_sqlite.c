/* SPDX-License-Identifier: Apache-2.0
 *
 * Founds a group of coordinators in folders, from a backup or a damaged group's
 * remains.
 */
#include "storage/state/bootstrap.h"

#include "storage/log/entry.h"
#include "storage/log/number.h"
#include "storage/log/owner.h"
#include "storage/log/raftdb_rows_sqlite.h"
#include "storage/log/readonly_sqlite.h"

#include "base/assert.h"
#include "base/directory.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4400, ERA_MAX = (1 << 24) - 1 };

static const char staging[] = "recover-new";
static const uint64_t year_2025 = 1735689600;

/* All that a coordinator keeps, but the lock. */
static const char *const owned[] = {"raft.db",
                                    "raft.db-wal",
                                    "raft.db-shm",
                                    "raft.tail",
                                    "witness",
                                    "state.db",
                                    "state.db-wal",
                                    "state.db-shm",
                                    NULL};

static enum err fail(char why[BOOTSTRAP_WHY_MAX], enum err error, const char *what)
{
    (void)snprintf(why, BOOTSTRAP_WHY_MAX, "%s", what);
    return error;
}

/* ---- making one ---- */

/* The first of the Raft files that is damaged. state.db is a copy and the witness a guard: the log
 * is sound without them. */
static const struct recover_file *damaged_file(const struct recover_folder *f)
{
    for (size_t i = 0; i < f->file_count; i++) {
        if (f->file[i].health >= RECOVER_MISSING && strncmp(f->file[i].name, "raft", 4) == 0) {
            return &f->file[i];
        }
    }
    return NULL;
}

enum err bootstrap_remains(struct backup *out, struct recover_folder *f, uint64_t time_us,
                           char why[BOOTSTRAP_WHY_MAX])
{
    const struct recover_file *damaged = damaged_file(f);

    *out = (struct backup){.kind = BACKUP_COPY};
    if (f->kind != RECOVER_COORDINATOR) {
        return fail(why, ERR_CORRUPT, "it is not a coordinator's folder");
    }
    if (!f->has_state && damaged != NULL) {
        (void)snprintf(why, BOOTSTRAP_WHY_MAX, "%s: %s", damaged->name, damaged->what);
        return ERR_CORRUPT;
    }
    if (!f->has_state || !f->replay.state.begun) {
        return fail(why, ERR_CORRUPT, "the cluster never began: there is nothing to back up");
    }
    memcpy(out->cluster, f->cluster, sizeof out->cluster);
    memcpy(out->voters, f->voters, sizeof out->voters);
    out->era = f->replay.state.view.era;
    out->number = f->replay.state.number;
    out->index = recover_last_index(f);
    out->term = recover_last_term(f);
    out->raft_term = f->image.term;
    out->time_us = time_us;
    replay_state(&f->replay, &out->state);
    return ERR_OK;
}

enum err bootstrap_backup(struct backup *out, struct recover_folder *f, uint64_t time_us,
                          char why[BOOTSTRAP_WHY_MAX])
{
    const struct recover_file *damaged = damaged_file(f);

    if (damaged != NULL) {
        *out = (struct backup){.kind = BACKUP_COPY};
        (void)snprintf(why, BOOTSTRAP_WHY_MAX, "%s: %s", damaged->name, damaged->what);
        return ERR_CORRUPT;
    }
    return bootstrap_remains(out, f, time_us, why);
}

uint64_t bootstrap_era(uint64_t backup_era, uint64_t seen_era, uint64_t time_us)
{
    const uint64_t now = time_us / 1000000;
    const uint64_t minutes = now > year_2025 ? (now - year_2025) / 60 : 0;
    uint64_t era = backup_era > seen_era ? backup_era + 1 : seen_era + 1;

    // Not the clock alone: it may be wrong. Not the backup alone: restored twice, it must not give
    // one era to two groups.
    era = minutes > era && minutes <= ERA_MAX ? minutes : era;
    return era;
}

enum err bootstrap_seal(struct backup *b, const struct bootstrap_plan *plan,
                        char why[BOOTSTRAP_WHY_MAX])
{
    struct replay replay;
    size_t used = 0;

    if (plan->era <= b->era || plan->era > ERA_MAX) {
        return fail(why, ERR_INVALID, "the era must grow, and stay below 2^24");
    }
    enum err error = replay_open_state(&replay, buffer_bytes(&b->state), b->index);
    if (error != ERR_OK) {
        replay_fini(&replay);
        return fail(why, ERR_CORRUPT, "the state can't be loaded");
    }
    replay_raise(&replay, plan->era, plan->lease_us, plan->time_us);
    buffer_clear(&b->state);
    replay_state(&replay, &b->state);
    b->kind = BACKUP_FOUNDING;
    b->era = plan->era;
    b->number = replay.state.number;
    replay_fini(&replay);
    b->voters[0] = '\0';
    for (size_t i = 0; i < plan->voter_count; i++) {
        b->member[i] =
            (struct backup_member){.voter = plan->voter[i], .identity = random_u64() >> 1 | 1};
        used += (size_t)snprintf(b->voters + used,
                                 sizeof b->voters - used,
                                 "%s%" PRIu64,
                                 i == 0 ? "" : ",",
                                 plan->voter[i]);
    }
    return ERR_OK;
}

/* ---- installing it ---- */

static const struct backup_member *member_of(const struct backup *b, uint64_t voter)
{
    for (size_t i = 0; i < BACKUP_VOTERS_MAX; i++) {
        if (b->member[i].voter == voter && voter != 0) {
            return &b->member[i];
        }
    }
    return NULL;
}

static void no_wake(void *context)
{
    (void)context;
}

/* The new raft.db: no log, a snapshot, no vote in a term that nobody has seen, the others' new
 * identities. An old voter of the same id is refused by that, for ever. */
static void write_group(struct raftdb *db, const struct backup *b, const struct backup_member *me,
                        struct bytes configuration)
{
    struct list requests;
    struct buffer sealed = {0};

    raftdb_set_vote(db, b->raft_term + 1, 0);
    for (size_t i = 0; i < BACKUP_VOTERS_MAX; i++) {
        const struct backup_member *m = &b->member[i];
        const struct log_peer peer = {.voter = m->voter, .identity = m->identity, .founder = true};

        if (m->voter != 0 && m != me) {
            raftdb_set_peer(db, &peer);
        }
    }
    raftdb_set_admitted(db);
    entry_seal_snapshot(&sealed, b->index, buffer_bytes(&b->state));
    const struct log_snapshot snapshot = {.index = b->index,
                                          .term = b->term,
                                          .configuration_index = 1,
                                          .configuration = configuration,
                                          .data = buffer_bytes(&sealed)};
    struct log_request *request = log_snapshot_new(&snapshot, UINT64_MAX);
    list_init(&requests);
    list_push_back(&requests, &request->link);
    raftdb_write(db, &requests);
    log_request_free(request);
    buffer_fini(&sealed);
}

static enum err stage_log(const struct backup *b, const char *directory,
                          const struct backup_member *me, struct bytes configuration)
{
    uint64_t voters[BOOTSTRAP_VOTERS_MAX];
    size_t count = 0;
    struct raftdb *db = NULL;
    struct log_image image;

    for (; count < BOOTSTRAP_VOTERS_MAX && b->member[count].voter != 0; count++) {
        voters[count] = b->member[count].voter;
    }
    const struct log_sqlite_config config = {.directory = directory,
                                             .cluster = b->cluster,
                                             .voter = me->voter,
                                             .voters = voters,
                                             .voter_count = count,
                                             .configuration = configuration,
                                             .identity = me->identity,
                                             .wake = no_wake};
    log_image_init(&image);
    const enum err error = raftdb_open(&db, &image, &config);
    log_image_fini(&image);
    if (error == ERR_OK) {
        write_group(db, b, me, configuration);
        raftdb_close(db);
    }
    return error;
}

static enum err stage_watermark(const struct backup *b, const char *directory)
{
    char path[PATH_SIZE + 16];
    uint8_t payload[WATERMARK_RECORD_SIZE];
    struct number *file = NULL;
    struct buffer found = {0};
    const struct watermark_record note = {.number = b->number, .index = b->index};

    (void)snprintf(path, sizeof path, "%s/witness", directory);
    watermark_record_encode(payload, &note);
    enum err error = number_open(&file, path, &found);
    if (error == ERR_OK) {
        error = number_store(file, bytes_of(payload, sizeof payload));
    }
    number_close(file);
    buffer_fini(&found);
    return error;
}

static enum err stage(const struct backup *b, const char *folder, const struct backup_member *me,
                      struct bytes configuration, char why[BOOTSTRAP_WHY_MAX])
{
    char directory[PATH_SIZE];
    char detail[ATOMIC_REPLACE_WHY_MAX];

    (void)snprintf(directory, sizeof directory, "%s/%s", folder, staging);
    if (atomic_replace_discard(folder, staging, detail) != ERR_OK) {
        return fail(why, ERR_IO, detail);
    }
    if (mkdir(directory, 0700) != 0) {
        (void)snprintf(why, BOOTSTRAP_WHY_MAX, "can't make %.200s: %s", directory, strerror(errno));
        return ERR_IO;
    }
    enum err error = stage_log(b, directory, me, configuration);
    if (error == ERR_OK) {
        error = stage_watermark(b, directory);
    }
    if (error == ERR_OK && !directory_sync(directory)) {
        error = ERR_IO;
    }
    return error == ERR_OK ? ERR_OK : fail(why, error, "the new files can't be written");
}

/* The descriptor that holds the lock, or -1. */
static int lock(const char *folder, enum err *error, char why[BOOTSTRAP_WHY_MAX])
{
    char path[PATH_SIZE];

    if (!directory_make(folder)) {
        (void)snprintf(why, BOOTSTRAP_WHY_MAX, "can't make it: %s", strerror(errno));
        *error = ERR_IO;
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/raft.lock", folder);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void)snprintf(why, BOOTSTRAP_WHY_MAX, "can't open raft.lock: %s", strerror(errno));
        *error = ERR_IO;
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        *error =
            fail(why, ERR_LOCKED, "a running process uses the folder: stop that coordinator first");
        (void)close(fd);
        return -1;
    }
    *error = ERR_OK;
    return fd;
}

/* With the lock: finish what was interrupted. */
static enum err finish(const char *folder, char why[BOOTSTRAP_WHY_MAX])
{
    char detail[ATOMIC_REPLACE_WHY_MAX];
    bool forward = false;
    const enum err error = atomic_replace_finish(folder, &forward, detail);

    return error == ERR_OK ? ERR_OK : fail(why, error, detail);
}

/* This very founding is in the folder: a second time it would forget its votes. */
static bool is_there(const char *folder, uint64_t identity)
{
    char path[PATH_SIZE];
    struct readonly_db readonly;

    (void)snprintf(path, sizeof path, "%s/raft.db", folder);
    if (readonly_open(&readonly, path, false) != ERR_OK) {
        readonly_close(&readonly);
        return false;
    }
    struct raftdb *db = raftdb_over(readonly.sql, folder);
    const bool there = raftdb_check_format(db) == ERR_OK && db->identity == identity;
    readonly.sql = NULL;
    raftdb_close(db);
    readonly_close(&readonly);
    return there;
}

static enum err install(const struct backup *b, const char *folder, const struct backup_member *me,
                        struct bytes configuration, char replaced[ATOMIC_REPLACE_NAME_MAX],
                        char why[BOOTSTRAP_WHY_MAX])
{
    char detail[ATOMIC_REPLACE_WHY_MAX];
    enum err error = finish(folder, why);

    if (error != ERR_OK) {
        return error;
    }
    if (is_there(folder, me->identity)) {
        return fail(why,
                    ERR_CONFLICT,
                    "this group is already installed in the folder; a second time the voter would "
                    "forget its votes");
    }
    error = stage(b, folder, me, configuration, why);
    if (error != ERR_OK) {
        return error;
    }
    error = atomic_replace(folder, staging, owned, replaced, detail);
    return error == ERR_OK ? ERR_OK : fail(why, error, detail);
}

/* Also what failed half-way: the daemon finishes that, or says so. */
static enum err belongs(const char *folder, const char *replaced, enum err error,
                        char why[BOOTSTRAP_WHY_MAX])
{
    if (owner_keep(folder, replaced) != ERR_OK && error == ERR_OK) {
        return fail(
            why,
            ERR_IO,
            "the work is done, but the files belong to root: give them to the daemon's user");
    }
    return error;
}

enum err bootstrap_install(const struct backup *b, const char *folder, uint64_t voter,
                           struct bytes configuration, char replaced[ATOMIC_REPLACE_NAME_MAX],
                           char why[BOOTSTRAP_WHY_MAX])
{
    const struct backup_member *me = member_of(b, voter);
    enum err error = ERR_OK;

    ASSERT(b->kind == BACKUP_FOUNDING);
    if (me == NULL) {
        return fail(why, ERR_INVALID, "that voter is not in the new group");
    }
    replaced[0] = '\0';
    const int held = lock(folder, &error, why);
    if (held >= 0) {
        error = install(b, folder, me, configuration, replaced, why);
        error = belongs(folder, replaced, error, why);
        (void)close(held);
    }
    return error;
}

static enum err undo(const char *folder, const char *replaced,
                     char now_replaced[ATOMIC_REPLACE_NAME_MAX], char why[BOOTSTRAP_WHY_MAX])
{
    char path[PATH_SIZE];
    char detail[ATOMIC_REPLACE_WHY_MAX];
    struct stat status;
    enum err error = finish(folder, why);

    if (error != ERR_OK) {
        return error;
    }
    (void)snprintf(path, sizeof path, "%s/%s", folder, replaced);
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return fail(why, ERR_NOT_FOUND, "the folder does not exist");
    }
    error = atomic_replace(folder, replaced, owned, now_replaced, detail);
    return error == ERR_OK ? ERR_OK : fail(why, error, detail);
}

enum err bootstrap_undo(const char *folder, const char *replaced,
                        char now_replaced[ATOMIC_REPLACE_NAME_MAX], char why[BOOTSTRAP_WHY_MAX])
{
    enum err error = ERR_OK;
    const int held = lock(folder, &error, why);

    now_replaced[0] = '\0';
    if (held >= 0) {
        error = undo(folder, replaced, now_replaced, why);
        error = belongs(folder, now_replaced, error, why);
        (void)close(held);
    }
    return error;
}
