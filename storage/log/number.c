/* SPDX-License-Identifier: Apache-2.0
 *
 * A number record in two slots, so that a torn write leaves the one before.
 */
#include "storage/log/number.h"

#include "base/crc.h"
#include "base/directory.h"
#include "base/files.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    RECORD_SIZE = 2048,
    RECORD_HEADER = 8 + 8 + 4,
    SECTOR_SIZE = 512, /* what a disk writes whole or not at all */
    SLOT_SIZE = 2 * RECORD_SIZE,
    SLOT_COUNT = 2,
    FIRST_COUNT = 1, /* of what stands in slot 0 of a new file */
    FILE_SIZE = SLOT_COUNT * SLOT_SIZE
};

static const uint64_t MAGIC = 0x31304d554e444852u; // "RHDNUM01"

struct number {
    int fd;
    uint64_t count; /* of the newest slot */
    char *path;     /* owned, for the log */
};

/* What one of a slot's two records says. */
struct record {
    uint64_t count; /* 0 = not whole */
    struct bytes payload;
    bool large; /* of more than a sector: a crash can tear it */
    bool blank; /* never written */
};

/* What a file says. */
struct found {
    uint64_t count; /* of the newest record; 0 = none is whole */
    struct bytes payload;
    const char *why; /* NULL: nothing is wrong */
    bool blank;      /* a slot is nothing but zeros */
    bool usable;
};

static struct record record_decode(const uint8_t *bytes)
{
    static const uint8_t zeros[RECORD_SIZE];
    struct reader r = {.at = bytes, .left = RECORD_SIZE};
    const uint64_t magic = get_u64(&r);
    const uint64_t count = get_u64(&r);
    const uint32_t size = get_u32(&r);
    const uint8_t *data = get_bytes(&r, size > NUMBER_PAYLOAD_MAX ? RECORD_SIZE : size);
    const uint32_t crc = get_u32(&r);

    if (r.bad || magic != MAGIC || crc != crc32c(bytes, RECORD_HEADER + (size_t)size)) {
        return (struct record){.large = magic == MAGIC && size + RECORD_HEADER + 4 > SECTOR_SIZE,
                               .blank = memcmp(bytes, zeros, sizeof zeros) == 0};
    }
    return (struct record){.count = count, .payload = bytes_of(data, size)};
}

static void slot_encode(uint8_t *slot, uint64_t count, struct bytes payload)
{
    struct writer w = {.at = slot, .left = RECORD_SIZE};

    memset(slot, 0, SLOT_SIZE);
    put_u64(&w, MAGIC);
    put_u64(&w, count);
    put_u32(&w, (uint32_t)payload.size);
    put_bytes(&w, payload.data, payload.size);
    put_u32(&w, crc32c(slot, RECORD_HEADER + payload.size));
    memcpy(slot + RECORD_SIZE, slot, RECORD_SIZE);
}

/* Look at one slot. False: neither record is whole, though it was written, and no crash did that.
 */
static bool take_slot(const uint8_t *slot, struct found *f)
{
    const struct record first = record_decode(slot);
    const struct record again = record_decode(slot + RECORD_SIZE);
    const struct record *newer = again.count > first.count ? &again : &first;

    if (newer->count == 0) {
        // A record within a sector is never torn: half a write leaves one of the two whole.
        f->blank = f->blank || (first.blank && again.blank);
        return (first.blank && again.blank) || first.large || again.large;
    }
    // An older version wrote one record a slot.
    if (first.count == 0 || (again.count == 0 && !again.blank)) {
        f->why = "one of two records is damaged; the other one is complete";
    }
    if (newer->count > f->count) {
        f->count = newer->count;
        f->payload = newer->payload;
    }
    return true;
}

static void judge(const uint8_t *file, off_t size, struct found *f)
{
    *f = (struct found){0};
    const bool whole = take_slot(file, f) && take_slot(file + SLOT_SIZE, f);
    // An older version made the file by its first store, to slot 0.
    const bool old = f->count == FIRST_COUNT && f->payload.size > 0 && size >= SLOT_SIZE;

    if (size == 0) {
        f->why = "the file is empty";
    } else if (f->count == 0) {
        f->why = "no record in the file is complete";
    } else if (size < FILE_SIZE && !old) {
        f->why = "the file was cut short";
    } else if (!whole || (f->blank && f->count > FIRST_COUNT)) {
        // Slots are written by turns, so a file of two stores has no blank one.
        f->why = "a record is damaged, and it may have been the newer one";
    } else {
        f->usable = true;
    }
}

/* ERR_IO: errno says why. */
static enum err read_whole(int fd, uint8_t file[FILE_SIZE], off_t *size)
{
    memset(file, 0, FILE_SIZE);
    *size = files->size(fd);
    return *size >= 0 && files->read(fd, file, FILE_SIZE, 0) >= 0 ? ERR_OK : ERR_IO;
}

enum err number_read(const char *path, struct buffer *payload, const char **why)
{
    uint8_t file[FILE_SIZE];
    off_t size = 0;
    struct found found;
    const int fd = files->open(path, O_RDONLY);

    *why = NULL;
    buffer_clear(payload);
    if (fd < 0) {
        return errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    }
    const enum err error = read_whole(fd, file, &size);
    const int failure = errno;
    (void)files->close(fd);
    errno = failure;
    if (error != ERR_OK) {
        return error;
    }
    judge(file, size, &found);
    *why = found.why;
    if (found.usable) {
        buffer_put(payload, found.payload.data, found.payload.size);
    }
    return found.usable ? ERR_OK : ERR_CORRUPT;
}

/* A file that says "nothing yet", whole or not at all. */
static bool make(const char *path)
{
    uint8_t file[FILE_SIZE] = {0};
    const size_t size = strlen(path) + sizeof ".new";
    char *temporary = mem_new(1, size);

    // Both slots, so that a blank one is damage from the first store on.
    slot_encode(file, FIRST_COUNT, bytes_of(NULL, 0));
    slot_encode(file + SLOT_SIZE, FIRST_COUNT + 1, bytes_of(NULL, 0));
    (void)snprintf(temporary, size, "%s.new", path);
    const int fd = directory_new_file(temporary);
    const ssize_t written = fd < 0 ? -1 : files->write(fd, file, sizeof file, 0);
    bool made = written == (ssize_t)sizeof file && files->sync(fd) == 0;
    const int failure = written >= 0 && written < (ssize_t)sizeof file ? ENOSPC : errno;
    made = fd >= 0 && files->close(fd) == 0 && made;
    errno = failure;
    made = made && files->rename(temporary, path) == 0 &&
           (mutant(M_NAMESYNC) || directory_sync_of(path));
    mem_free(temporary);
    return made;
}

static enum err load(struct number *n, struct buffer *payload)
{
    uint8_t file[FILE_SIZE];
    off_t size = 0;
    struct found found;

    if (read_whole(n->fd, file, &size) != ERR_OK) {
        log_error("number", "unreadable", "file=%s why=\"%s\"", n->path, strerror(errno));
        return ERR_IO;
    }
    judge(file, size, &found);
    if (!found.usable) {
        log_error("number",
                  "corrupt",
                  "file=%s reason=\"%s: the numbers this process has seen are lost\" "
                  "remedy=\"ringhold recover inspect on its folder; docs/recovery.md\"",
                  n->path,
                  found.why);
        return ERR_CORRUPT;
    }
    if (found.why != NULL) {
        log_warn("number", "damaged", "file=%s reason=\"%s\"", n->path, found.why);
    }
    n->count = found.count;
    buffer_put(payload, found.payload.data, found.payload.size);
    return ERR_OK;
}

enum err number_open(struct number **out, const char *path, struct buffer *payload)
{
    struct number *n = mem_new(1, sizeof *n);

    *out = NULL;
    buffer_clear(payload);
    n->path = mem_string(path);
    n->fd = files->open(path, O_RDWR);
    if (n->fd < 0 && errno == ENOENT && make(path)) {
        n->fd = files->open(path, O_RDWR);
    }
    if (n->fd < 0) {
        log_error("number",
                  "cannot_open",
                  "file=%s reason=\"%s\" remedy=\"give this user access to the folder, and free "
                  "space on the disk\"",
                  path,
                  strerror(errno));
        number_close(n);
        return ERR_IO;
    }
    const enum err error = load(n, payload);
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
    const ssize_t written = files->write(n->fd, slot, sizeof slot, at);
    if (written != (ssize_t)sizeof slot || (!mutant(M_NUMBERSYNC) && files->sync(n->fd) != 0)) {
        const int failure = written >= 0 && written < (ssize_t)sizeof slot ? ENOSPC : errno;

        log_error(
            "number",
            "write_failed",
            "file=%s reason=\"%s\" remedy=\"free space or repair the disk, then start again\"",
            n->path,
            strerror(failure));
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
        (void)files->close(n->fd);
    }
    mem_free(n->path);
    mem_free(n);
}
