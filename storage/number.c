/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/number.h"

#include "base/crc.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOT_SIZE = 4096, SLOT_COUNT = 2, FILE_SIZE = 8192, SLOT_HEADER = 8 + 8 + 4 };

static const uint64_t MAGIC = 0x31304d554e444852u; // "RHDNUM01"

struct number {
    int fd;
    uint64_t count; /* of the newest slot */
    char *path;     /* owned, for the log */
};

/* The payload of a whole slot and its count; count 0 = not whole (or never written). */
static uint64_t slot_decode(const uint8_t *slot, struct bytes *payload)
{
    struct reader r = {.at = slot, .left = SLOT_SIZE};
    const uint64_t magic = get_u64(&r);
    const uint64_t count = get_u64(&r);
    const uint32_t size = get_u32(&r);
    const uint8_t *data = get_bytes(&r, size > NUMBER_PAYLOAD_MAX ? SLOT_SIZE : size);
    const uint32_t crc = get_u32(&r);

    if (r.bad || magic != MAGIC || crc != crc32c(slot, SLOT_HEADER + (size_t)size)) {
        return 0;
    }
    *payload = bytes_of(data, size);
    return count;
}

static void slot_encode(uint8_t *slot, uint64_t count, struct bytes payload)
{
    struct writer w = {.at = slot, .left = SLOT_SIZE};

    memset(slot, 0, SLOT_SIZE);
    put_u64(&w, MAGIC);
    put_u64(&w, count);
    put_u32(&w, (uint32_t)payload.size);
    put_bytes(&w, payload.data, payload.size);
    put_u32(&w, crc32c(slot, SLOT_HEADER + payload.size));
}

static bool sync_folder(const char *path)
{
    char *copy = mem_string(path);
    const int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    mem_free(copy);
    return synced;
}

static enum err load(struct number *n, struct buffer *payload)
{
    uint8_t file[FILE_SIZE];
    struct stat status = {0};

    memset(file, 0, sizeof file);
    if (fstat(n->fd, &status) != 0 || pread(n->fd, file, sizeof file, 0) < 0) {
        log_error("number", "unreadable", "file=%s errno=%d", n->path, errno);
        return ERR_IO;
    }
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        struct bytes found = {0};
        const uint64_t count = slot_decode(file + i * SLOT_SIZE, &found);

        if (count > n->count) {
            n->count = count;
            buffer_clear(payload);
            buffer_put(payload, found.data, found.size);
        }
    }
    // The first store goes to slot 0: if only that was torn, nothing was ever promised. A later one
    // left both slots; a file without the second was cut, and may have lost the newer.
    const bool torn = n->count == 0 && status.st_size > SLOT_SIZE;
    const bool cut = n->count > 1 && status.st_size < FILE_SIZE;
    if (torn || cut) {
        log_error("number",
                  "corrupt",
                  "file=%s %s; the numbers this process has seen are lost: restore the file, or "
                  "wipe the whole folder and join under another name",
                  n->path,
                  torn ? "neither slot is whole" : "it was cut short");
        return ERR_CORRUPT;
    }
    return ERR_OK;
}

enum err number_open(struct number **out, const char *path, struct buffer *payload)
{
    struct number *n = mem_new(1, sizeof *n);

    *out = NULL;
    buffer_clear(payload);
    n->path = mem_string(path);
    n->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (n->fd < 0) {
        log_error("number", "cannot_open", "file=%s why=%s", path, strerror(errno));
        number_close(n);
        return ERR_IO;
    }
    const enum err error = sync_folder(path) ? load(n, payload) : ERR_IO;
    if (error != ERR_OK) {
        number_close(n);
        return error;
    }
    *out = n;
    return ERR_OK;
}

enum err number_store(struct number *n, struct bytes payload)
{
    uint8_t slot[SLOT_SIZE];

    if (payload.size > NUMBER_PAYLOAD_MAX) {
        return ERR_TOO_BIG;
    }
    slot_encode(slot, n->count + 1, payload);
    const off_t at = (off_t)(n->count % SLOT_COUNT * SLOT_SIZE);
    if (pwrite(n->fd, slot, sizeof slot, at) != (ssize_t)sizeof slot || fdatasync(n->fd) != 0) {
        log_error("number", "write_failed", "file=%s why=%s", n->path, strerror(errno));
        return ERR_IO;
    }
    n->count++;
    return ERR_OK;
}

void number_close(struct number *n)
{
    if (n == NULL) {
        return;
    }
    if (n->fd >= 0) {
        (void)close(n->fd);
    }
    mem_free(n->path);
    mem_free(n);
}
