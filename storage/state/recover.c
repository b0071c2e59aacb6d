/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at a data folder whose daemon is stopped, and judges each file.
 */
#include "storage/state/recover.h"

#include "base/crc.h"
#include "base/stamp.h"
#include "storage/log/atomic_replace.h"
#include "storage/log/number.h"
#include "storage/state/recover_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4300, IDENTITY_SIZE = 512, READ_AGAIN = 5 };

static const char watermark_remedy[] = "this file only guards against old copies: if raft.db and "
                                       "raft.tail are sound, move it away and start";
static const char node_remedy[] =
    "without it the node could break its word: stop it, remove the whole folder, start it under "
    "another name, and ringhold node remove the old one (docs/recovery.md#a-nodes-folder)";

void recover_path(const struct recover_folder *f, const char *name, char *out, size_t size)
{
    (void)snprintf(out, size, "%s/%s", f->path, name);
}

struct recover_file *recover_add(struct recover_folder *f, const char *name)
{
    struct recover_file *file = &f->file[f->file_count++];
    struct stat status = {0};
    char path[PATH_SIZE];

    *file = (struct recover_file){0};
    (void)snprintf(file->name, sizeof file->name, "%s", name);
    recover_path(f, name, path, sizeof path);
    if (stat(path, &status) != 0) {
        file->health = errno == ENOENT ? RECOVER_ABSENT : RECOVER_DAMAGED;
        (void)snprintf(file->what, sizeof file->what, "%s", errno == ENOENT ? "" : strerror(errno));
        return file;
    }
    file->size = (uint64_t)status.st_size;
    if (!S_ISREG(status.st_mode)) {
        recover_blame(
            file, RECOVER_DAMAGED, "it is not a regular file", "move it away, put the file back");
    }
    return file;
}

void recover_blame(struct recover_file *file, enum recover_health health, const char *what,
                   const char *remedy)
{
    file->health = health;
    (void)snprintf(file->what, sizeof file->what, "%s", what);
    (void)snprintf(file->remedy, sizeof file->remedy, "%s", remedy);
}

/* ---- number files: a coordinator's witness, a node's number ---- */

static bool look_number(struct recover_folder *f, const char *name, struct buffer *payload,
                        const char *remedy)
{
    char path[PATH_SIZE];
    const char *why = NULL;
    struct recover_file *file = recover_add(f, name);

    if (file->health != RECOVER_SOUND) {
        return false;
    }
    recover_path(f, name, path, sizeof path);
    enum err error = number_read(path, payload, &why);
    for (int i = 0; f->in_use && why != NULL && i < READ_AGAIN; i++) {
        error = number_read(path, payload, &why); // It may just be being written.
    }
    if (error == ERR_OK && why != NULL) {
        recover_blame(file, RECOVER_DAMAGED, why, "nothing was lost: the next writes replace it");
    } else if (error != ERR_OK) {
        recover_blame(file, RECOVER_DAMAGED, why == NULL ? strerror(errno) : why, remedy);
    }
    return error == ERR_OK;
}

static void look_watermark(struct recover_folder *f)
{
    struct buffer payload = {0};
    const bool read = look_number(f, "witness", &payload, watermark_remedy);
    struct recover_file *file = &f->file[f->file_count - 1];

    if (read && !watermark_record_decode(buffer_bytes(&payload), &f->watermark)) {
        recover_blame(file, RECOVER_DAMAGED, "its record is not valid", watermark_remedy);
    } else {
        f->has_note = read;
    }
    if (file->health == RECOVER_ABSENT) {
        (void)snprintf(file->what, sizeof file->what, "the next start creates it");
    }
    buffer_fini(&payload);
}

/* The folder must not have applied more than its log holds: then the log is an old copy. */
static void compare_watermark(struct recover_folder *f)
{
    char what[RECOVER_TEXT_MAX];
    struct recover_file *raft = &f->file[0];

    if (!f->has_note || !f->has_log || raft->health != RECOVER_SOUND || f->in_use) {
        return; // In use they are of two moments.
    }
    if (f->watermark.index > recover_last_index(f)) {
        (void)snprintf(what,
                       sizeof what,
                       "it is an old copy: its log ends at %" PRIu64
                       ", the witness has seen index %" PRIu64,
                       recover_last_index(f),
                       f->watermark.index);
        recover_blame(raft, RECOVER_DAMAGED, what, "put the newer raft.db and raft.tail back");
    } else if (f->has_state && f->watermark.number > f->replay.state.number) {
        (void)snprintf(what,
                       sizeof what,
                       "its log draws numbers up to %s, the witness has seen %s",
                       STAMP(f->replay.state.number),
                       STAMP(f->watermark.number));
        recover_blame(raft, RECOVER_DAMAGED, what, "put the newer raft.db and raft.tail back");
    }
}

/* ---- coordinator ---- */

static void look_coordinator(struct recover_folder *f, bool deep, struct replay_watch watch)
{
    f->kind = RECOVER_COORDINATOR;
    recover_look_databases(f, deep, watch);
    look_watermark(f);
    compare_watermark(f);
    (void)recover_add(f, "raft.lock");
    struct recover_file *file = recover_add(f, ATOMIC_REPLACE_JOURNAL);
    if (file->health == RECOVER_ABSENT) {
        f->file_count--;
    } else {
        recover_blame(
            file,
            RECOVER_DAMAGED,
            "a restore of this folder was interrupted",
            "give the same ringhold recover command again: it completes the restore first");
    }
}

/* ---- node ---- */

/* The value of `key` in the text's lines. False: it is not there. */
static bool get_line(const char *text, const char *key, char *out, size_t size)
{
    const char *at = strstr(text, key);

    if (at == NULL || (at != text && at[-1] != '\n')) {
        return false;
    }
    at += strlen(key);
    const size_t length = strcspn(at, "\n");
    if (length == 0 || length >= size || at[length] != '\n') {
        return false;
    }
    memcpy(out, at, length);
    out[length] = '\0';
    return true;
}

static bool hex_only(const char *text)
{
    return strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

/* An older version wrote no checksum. */
static bool checksum_fits(const char *text)
{
    char value[16];
    char want[16];
    const char *at = strstr(text, "\ncrc=");

    if (at == NULL || !get_line(text, "crc=", value, sizeof value)) {
        return true;
    }
    (void)snprintf(want, sizeof want, "%08" PRIx32, crc32c(text, (size_t)(at + 1 - text)));
    return strcmp(value, want) == 0;
}

static void look_identity(struct recover_folder *f)
{
    char path[PATH_SIZE];
    char text[IDENTITY_SIZE] = "";
    struct recover_file *file = recover_add(f, "identity");

    if (file->health != RECOVER_SOUND) {
        return;
    }
    recover_path(f, "identity", path, sizeof path);
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        recover_blame(file, RECOVER_DAMAGED, strerror(errno), "give this user access to the file");
        return;
    }
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    (void)fclose(in);
    if (strncmp(text, "ringhold node folder 1\n", 23) != 0 ||
        !get_line(text, "cluster=", f->cluster, sizeof f->cluster) ||
        !get_line(text, "node=", f->node, sizeof f->node) ||
        !get_line(text, "uuid=", f->uuid, sizeof f->uuid) || !hex_only(f->uuid) ||
        !checksum_fits(text)) {
        recover_blame(file, RECOVER_DAMAGED, "the file can't be read", node_remedy);
    }
}

static void look_node(struct recover_folder *f)
{
    f->kind = RECOVER_NODE;
    look_identity(f);
    f->has_record = look_number(f, "number", &f->record, node_remedy);
    for (size_t i = 0; i < f->file_count; i++) {
        if (f->file[i].health == RECOVER_ABSENT) {
            recover_blame(&f->file[i], RECOVER_MISSING, "the file is missing", node_remedy);
        }
    }
    (void)recover_add(f, "lock");
}

/* ---- all ---- */

static bool has(const struct recover_folder *f, const char *name)
{
    char path[PATH_SIZE];

    recover_path(f, name, path, sizeof path);
    return access(path, F_OK) == 0;
}

static bool has_any(const struct recover_folder *f, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (has(f, *names)) {
            return true;
        }
    }
    return false;
}

/* Hold the lock while we look, if nobody else does: a daemon that starts meanwhile waits its turn.
 */
static void take_lock(struct recover_folder *f, const char *name)
{
    char path[PATH_SIZE];

    recover_path(f, name, path, sizeof path);
    f->lock = open(path, O_RDONLY | O_CLOEXEC);
    if (f->lock >= 0 && flock(f->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        f->in_use = true;
    }
}

bool recover_look(struct recover_folder *f, const char *path, bool deep, struct replay_watch watch,
                  char why[RECOVER_TEXT_MAX])
{
    static const char *const of_coordinator[] = {
        "raft.db", "raft.tail", "raft.lock", "witness", ATOMIC_REPLACE_JOURNAL, NULL};
    static const char *const of_node[] = {"identity", "number", "lock", NULL};
    struct stat status = {0};

    *f = (struct recover_folder){.lock = -1};
    log_image_init(&f->image);
    if (strlen(path) >= sizeof f->path) {
        (void)snprintf(why, RECOVER_TEXT_MAX, "its name is too long");
        return false;
    }
    (void)snprintf(f->path, sizeof f->path, "%s", path);
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        (void)snprintf(why,
                       RECOVER_TEXT_MAX,
                       "%s",
                       S_ISREG(status.st_mode) ? "it is not a folder" : strerror(errno));
        return false;
    }
    if (has_any(f, of_coordinator)) {
        take_lock(f, "raft.lock");
        look_coordinator(f, deep, watch);
        return true;
    }
    if (has_any(f, of_node)) {
        take_lock(f, "lock");
        look_node(f);
        return true;
    }
    (void)snprintf(why, RECOVER_TEXT_MAX, "it contains no data of a coordinator or a node");
    return false;
}

void recover_fini(struct recover_folder *f)
{
    if (f->has_state) {
        replay_fini(&f->replay);
        f->has_state = false;
    }
    log_image_fini(&f->image);
    buffer_fini(&f->record);
    if (f->lock >= 0) {
        (void)close(f->lock);
        f->lock = -1;
    }
}

size_t recover_damage(const struct recover_folder *f)
{
    size_t count = 0;

    for (size_t i = 0; i < f->file_count; i++) {
        count += f->file[i].health == RECOVER_DAMAGED || f->file[i].health == RECOVER_MISSING;
    }
    return count;
}

uint64_t recover_last_index(const struct recover_folder *f)
{
    return f->image.first + f->image.entry_count - 1;
}

uint64_t recover_last_term(const struct recover_folder *f)
{
    return f->image.entry_count > 0 ? f->image.entry[f->image.entry_count - 1].term
                                    : f->image.snapshot.term;
}

const char *recover_health_name(enum recover_health health)
{
    switch (health) {
    case RECOVER_SOUND:
        return "ok";
    case RECOVER_ABSENT:
        return "absent";
    case RECOVER_MISSING:
        return "missing";
    case RECOVER_DAMAGED:
        return "damaged";
    }
    return "?";
}
