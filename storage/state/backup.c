/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads a backup file.
 */
#include "storage/state/backup.h"

#include "base/crc.h"
#include "base/directory.h"
#include "base/mem.h"
#include "wire/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FORMAT = 1,
    MEMBER_SIZE = 3 * 8,
    HEAD_SIZE = 8 + 4 + 4 + 64 + 128 + 6 * 8 + BACKUP_VOTERS_MAX * MEMBER_SIZE + 8 + 4 + 4,
    STATE_SIZE_MAX = 1 << 30,
    PATH_SIZE = 4300
};

static const char magic[8] = {'R', 'H', 'B', 'A', 'C', 'K', 'U', 'P'};

static enum err fail(char why[BACKUP_WHY_MAX], enum err error, const char *text)
{
    (void)snprintf(why, BACKUP_WHY_MAX, "%s", text);
    return error;
}

static void head_encode(uint8_t head[HEAD_SIZE], const struct backup *b)
{
    struct writer w = {.at = head, .left = HEAD_SIZE};

    put_bytes(&w, magic, sizeof magic);
    put_u32(&w, FORMAT);
    put_u32(&w, b->kind);
    put_bytes(&w, b->cluster, sizeof b->cluster);
    put_bytes(&w, b->voters, sizeof b->voters);
    put_u64(&w, b->era);
    put_u64(&w, b->number);
    put_u64(&w, b->index);
    put_u64(&w, b->term);
    put_u64(&w, b->raft_term);
    put_u64(&w, b->time_us);
    for (size_t i = 0; i < BACKUP_VOTERS_MAX; i++) {
        put_u64(&w, b->member[i].voter);
        put_u64(&w, b->member[i].identity);
        put_u64(&w, b->member[i].used);
    }
    put_u64(&w, b->state.size);
    put_u32(&w, crc32c(b->state.data, b->state.size));
    put_u32(&w, crc32c(head, HEAD_SIZE - 4));
}

static bool get_text(struct reader *r, char *out, size_t size)
{
    const uint8_t *bytes = get_bytes(r, size);

    if (bytes == NULL || bytes[size - 1] != 0) {
        return false;
    }
    memcpy(out, bytes, size);
    return true;
}

static enum err head_decode(const uint8_t head[HEAD_SIZE], struct backup *b, uint64_t *size,
                            uint32_t *crc, char why[BACKUP_WHY_MAX])
{
    struct reader r = {.at = head, .left = HEAD_SIZE};
    struct reader end = {.at = head + HEAD_SIZE - 4, .left = 4};

    if (memcmp(get_bytes(&r, sizeof magic), magic, sizeof magic) != 0) {
        return fail(why, ERR_FOREIGN, "the file is not a backup of Ringhold");
    }
    if (get_u32(&r) != FORMAT) {
        return fail(why, ERR_FOREIGN, "another version of Ringhold wrote the file");
    }
    if (get_u32(&end) != crc32c(head, HEAD_SIZE - 4)) {
        return fail(why, ERR_CORRUPT, "the file's header is damaged");
    }
    b->kind = (enum backup_kind)get_u32(&r);
    bool good = get_text(&r, b->cluster, sizeof b->cluster);
    good = get_text(&r, b->voters, sizeof b->voters) && good;
    b->era = get_u64(&r);
    b->number = get_u64(&r);
    b->index = get_u64(&r);
    b->term = get_u64(&r);
    b->raft_term = get_u64(&r);
    b->time_us = get_u64(&r);
    for (size_t i = 0; i < BACKUP_VOTERS_MAX; i++) {
        b->member[i].voter = get_u64(&r);
        b->member[i].identity = get_u64(&r);
        b->member[i].used = get_u64(&r) != 0;
    }
    *size = get_u64(&r);
    *crc = get_u32(&r);
    return good && *size <= STATE_SIZE_MAX ? ERR_OK
                                           : fail(why, ERR_CORRUPT, "the file's header is invalid");
}

static bool write_all(int fd, const void *data, size_t size)
{
    const uint8_t *at = data;

    while (size > 0) {
        const ssize_t written = write(fd, at, size);

        if (written <= 0) {
            return false;
        }
        at += written;
        size -= (size_t)written;
    }
    return true;
}

enum err backup_write(const struct backup *b, const char *path, bool replace,
                      char why[BACKUP_WHY_MAX])
{
    uint8_t head[HEAD_SIZE];
    char temporary[PATH_SIZE];
    struct stat status;

    if (!replace && lstat(path, &status) == 0) {
        return fail(why, ERR_CONFLICT, "the file exists already");
    }
    head_encode(head, b);
    (void)snprintf(temporary, sizeof temporary, "%s.new", path);
    const int fd = directory_new_file(temporary);
    bool written = fd >= 0 && write_all(fd, head, sizeof head) &&
                   write_all(fd, b->state.data, b->state.size) && fsync(fd) == 0;
    int failure = errno;
    written = fd >= 0 && close(fd) == 0 && written;
    if (written) {
        written = rename(temporary, path) == 0 && directory_sync_of(path);
        failure = errno;
    }
    if (!written) {
        (void)unlink(temporary);
        return fail(why, ERR_IO, strerror(failure));
    }
    return ERR_OK;
}

static enum err read_state(FILE *file, struct backup *b, uint64_t size)
{
    uint8_t *at = buffer_reserve(&b->state, size == 0 ? 1 : (size_t)size);

    b->state.size = fread(at, 1, (size_t)size, file);
    return b->state.size == size && fgetc(file) == EOF ? ERR_OK : ERR_CORRUPT;
}

enum err backup_read(struct backup *b, const char *path, char why[BACKUP_WHY_MAX])
{
    uint8_t head[HEAD_SIZE];
    uint64_t size = 0;
    uint32_t crc = 0;
    struct stat status = {0};

    *b = (struct backup){0};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return fail(why, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, strerror(errno));
    }
    enum err error = ERR_OK;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) {
        error = fail(why, ERR_CORRUPT, "it is not a regular file");
    } else if (fread(head, 1, sizeof head, file) != sizeof head) {
        error = fail(why, ERR_CORRUPT, "the file was cut short, or is not a backup");
    } else {
        error = head_decode(head, b, &size, &crc, why);
    }
    // Before memory is taken for what the head claims.
    if (error == ERR_OK && (uint64_t)status.st_size != HEAD_SIZE + size) {
        error = fail(why, ERR_CORRUPT, "the file was cut short, or is too long");
    }
    if (error == ERR_OK &&
        (read_state(file, b, size) != ERR_OK || crc32c(b->state.data, b->state.size) != crc)) {
        error = fail(why, ERR_CORRUPT, "the state in the file is damaged");
    }
    (void)fclose(file);
    return error;
}

void backup_fini(struct backup *b)
{
    buffer_fini(&b->state);
}
