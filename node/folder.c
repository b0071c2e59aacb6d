/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks a node's data folder and checks whose it is: this cluster's, this
 * machine's, this place's.
 */
#include "node/folder.h"

#include "base/crc.h"
#include "base/directory.h"
#include "base/escape.h"
#include "base/random.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4200, TEXT_SIZE = 512, HEX_SIZE = 33 };

static const char format[] = "ringhold node folder 1";

static const char damaged[] =
    "its file identity is damaged: run `ringhold recover inspect`; without the file the node must "
    "start in a new folder under another name (docs/recovery.md#a-nodes-folder)";

static const char gone[] = "its file identity is missing, but its file number exists: run "
                           "`ringhold recover inspect`; without identity the node must start in a "
                           "new folder under another name (docs/recovery.md#a-nodes-folder)";

/* A coordinator's: it may be running, and knows nothing of `lock`. */
static const char *const of_coordinator[] = {"raft.lock", "raft.db", "raft.tail", NULL};

static const char *remedy(enum err error)
{
    switch ((int)error) { // a few of many
    case ERR_LOCKED:
        return ": stop that process first, or use another folder";
    case ERR_FOREIGN:
        return ": point --data at this node's own folder, or use an empty one";
    case ERR_IO:
        return ": give this user access to the folder, and free space on the disk";
    default:
        return "";
    }
}

static enum err complain(const char *path, const char *what, enum err error)
{
    (void)fprintf(stderr, "ringhold node: data folder %s: %s%s\n", path, what, remedy(error));
    return error;
}

/* 16 bytes from 32 digits, with any dashes between them. */
static bool parse_hex(const char *text, uint8_t out[16])
{
    size_t digits = 0;

    for (; *text != '\0' && *text != '\n' && digits < 32; text++) {
        const int digit = hex_of((uint8_t)*text);

        if (*text == '-') {
            continue;
        }
        if (digit < 0) {
            return false;
        }
        out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | digit);
        digits++;
    }
    return digits == 32 && (*text == '\0' || *text == '\n');
}

static void print_hex(const uint8_t in[16], char out[HEX_SIZE])
{
    for (size_t i = 0; i < 16; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", in[i]);
    }
}

static void read_boot_id(uint8_t out[16])
{
    char text[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool known =
        file != NULL && fgets(text, sizeof text, file) != NULL && parse_hex(text, out);

    if (file != NULL) {
        (void)fclose(file);
    }
    if (!known) {
        random_fill(out, 16); // As if the machine had been restarted: costs a wait, is safe.
    }
}

/* A copy of the folder is another place, though it tells the same of itself: its lock is another.
 */
static void mark_place(uint8_t boot_id[16], int lock)
{
    struct stat at;

    if (fstat(lock, &at) != 0) {
        random_fill(boot_id, 16); // as above
        return;
    }
    const uint64_t mark = table_mix(at.st_ino ^ table_mix(at.st_dev));

    for (size_t i = 0; i < sizeof mark; i++) {
        boot_id[i] ^= (uint8_t)(mark >> (8 * i));
    }
}

/* ---- lock ---- */

static enum err lock(struct folder *f, const char *path)
{
    char name[PATH_SIZE];

    (void)snprintf(name, sizeof name, "%s/lock", path);
    f->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (f->lock < 0) {
        return complain(path, strerror(errno), ERR_IO);
    }
    if (flock(f->lock, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK ? complain(path, "a running process has locked it", ERR_LOCKED)
                                    : complain(path, strerror(errno), ERR_IO);
    }
    return ERR_OK;
}

/* ---- identity ---- */

/* The value of `key` in the text's lines, up to its newline; NULL = not there. */
static const char *find_value(const char *text, const char *key)
{
    const size_t size = strlen(key);

    for (const char *line = strchr(text, '\n'); line != NULL; line = strchr(line, '\n')) {
        line++;
        if (strncmp(line, key, size) == 0 && line[size] == '=') {
            return line + size + 1;
        }
    }
    return NULL;
}

static bool is_line(const char *at, const char *text)
{
    const size_t size = strlen(text);

    return strncmp(at, text, size) == 0 && at[size] == '\n';
}

static enum err check_owner(const char *path, const char *text, const char *key, const char *want)
{
    const char *value = find_value(text, key);
    char what[256];

    if (value == NULL) {
        return complain(path, damaged, ERR_CORRUPT);
    }
    if (is_line(value, want)) {
        return ERR_OK;
    }
    (void)snprintf(what,
                   sizeof what,
                   "it belongs to %s '%.*s', but this is '%s'",
                   key,
                   (int)strcspn(value, "\n"),
                   value,
                   want);
    return complain(path, what, ERR_FOREIGN);
}

/* An older version wrote no checksum. */
static bool checksum_fits(const char *text)
{
    const char *value = find_value(text, "crc");
    char want[16];

    if (value == NULL) {
        return true;
    }
    const size_t before = (size_t)(value - strlen("crc=") - text);
    (void)snprintf(want, sizeof want, "%08" PRIx32, crc32c(text, before));
    return is_line(value, want);
}

static enum err check_identity(struct folder *f, const char *path, const char *text,
                               const char *cluster, const char *name)
{
    const size_t size = strlen(text);

    if (size == 0 || text[size - 1] != '\n') {
        return complain(path, damaged, ERR_CORRUPT);
    }
    if (!is_line(text, format)) {
        return strncmp(text, format, strlen("ringhold ")) == 0
                   ? complain(path, "another kind or version of ringhold made it", ERR_FOREIGN)
                   : complain(path, damaged, ERR_CORRUPT);
    }
    if (!checksum_fits(text)) {
        return complain(path, damaged, ERR_CORRUPT);
    }
    enum err error = check_owner(path, text, "cluster", cluster);
    if (error == ERR_OK) {
        error = check_owner(path, text, "node", name);
    }
    if (error != ERR_OK) {
        return error;
    }
    const char *uuid = find_value(text, "uuid");
    if (uuid == NULL || !parse_hex(uuid, f->data_uuid)) {
        return complain(path, damaged, ERR_CORRUPT);
    }
    const char *fleet = find_value(text, "fleet");
    return fleet == NULL || fleet_id_parse(fleet, &f->fleet) ? ERR_OK
                                                             : complain(path, damaged, ERR_CORRUPT);
}

/* Whole or not at all: under another name first. */
static enum err write_identity(const struct folder *f, const char *path, const char *cluster,
                               const char *name)
{
    char temporary[PATH_SIZE];
    char final[PATH_SIZE];
    char uuid[HEX_SIZE];
    char fleet[FLEET_ID_TEXT_SIZE];
    char text[TEXT_SIZE];

    (void)snprintf(temporary, sizeof temporary, "%s/identity.new", path);
    (void)snprintf(final, sizeof final, "%s/identity", path);
    print_hex(f->data_uuid, uuid);
    fleet_id_print(f->fleet, fleet);
    const int size = snprintf(text,
                              sizeof text,
                              "%s\ncluster=%s\nnode=%s\nuuid=%s\n%s%s%s",
                              format,
                              cluster,
                              name,
                              uuid,
                              fleet[0] == '\0' ? "" : "fleet=",
                              fleet,
                              fleet[0] == '\0' ? "" : "\n");
    const int fd = directory_new_file(temporary);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool written = file != NULL && size < (int)sizeof text &&
                   fprintf(file, "%scrc=%08" PRIx32 "\n", text, crc32c(text, (size_t)size)) > 0;
    written = written && fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (file != NULL) {
        written = fclose(file) == 0 && written;
    }
    if (!written || rename(temporary, final) != 0 || !directory_sync(path)) {
        return complain(path, strerror(errno), ERR_IO);
    }
    return ERR_OK;
}

static enum err make_identity(struct folder *f, const char *path, const char *cluster,
                              const char *name)
{
    random_fill(f->data_uuid, sizeof f->data_uuid);
    const enum err error = write_identity(f, path, cluster, name);
    f->fresh = error == ERR_OK;
    return error;
}

/* Made right after the identity. */
static bool has_number(const char *path)
{
    char name[PATH_SIZE];

    (void)snprintf(name, sizeof name, "%s/number", path);
    const int failure = errno;
    const bool there = access(name, F_OK) == 0;
    errno = failure;
    return there;
}

static enum err open_identity(struct folder *f, const char *path, const char *cluster,
                              const char *name)
{
    char file_name[PATH_SIZE];
    char text[TEXT_SIZE] = "";

    (void)snprintf(file_name, sizeof file_name, "%s/identity", path);
    FILE *file = fopen(file_name, "re");
    if (file == NULL && errno == ENOENT && has_number(path)) {
        return complain(path, gone, ERR_CORRUPT);
    }
    if (file == NULL) {
        return errno == ENOENT ? make_identity(f, path, cluster, name)
                               : complain(path, strerror(errno), ERR_IO);
    }
    const size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    return check_identity(f, path, text, cluster, name);
}

/* ---- */

enum err folder_open(struct folder *f, const char *path, const char *cluster, const char *name)
{
    *f = (struct folder){.lock = -1};
    if (path[0] == '\0' || strlen(path) > PATH_SIZE - 100) {
        return complain(path, "the name is not valid", ERR_IO);
    }
    const char *foreign = directory_find(path, of_coordinator);
    if (foreign != NULL) {
        char what[64];

        (void)snprintf(what, sizeof what, "it is a coordinator's folder: it contains %s", foreign);
        return complain(path, what, ERR_FOREIGN);
    }
    if (!directory_make(path)) {
        return complain(path, strerror(errno), ERR_IO);
    }
    read_boot_id(f->boot_id);
    enum err error = lock(f, path);
    if (error == ERR_OK) {
        mark_place(f->boot_id, f->lock);
        error = open_identity(f, path, cluster, name);
    }
    if (error != ERR_OK) {
        folder_close(f);
    }
    return error;
}

enum err folder_join(struct folder *f, const char *path, const char *cluster, const char *name,
                     struct fleet_id fleet)
{
    f->fleet = fleet;
    return write_identity(f, path, cluster, name);
}

void folder_unmake(const struct folder *f, const char *path)
{
    char name[PATH_SIZE];

    if (f->fresh) {
        (void)snprintf(name, sizeof name, "%s/identity", path);
        (void)unlink(name);
    }
}

void folder_close(struct folder *f)
{
    if (f->lock >= 0) {
        (void)close(f->lock);
        f->lock = -1;
    }
}
