/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes raft.tail.
 */
#include "storage/log/tail.h"

#include "base/crc.h"
#include "base/files.h"
#include "wire/cursor.h"

#include <errno.h>
#include <fcntl.h>

/* "rhtail01", identity, writes, CRC of these. One sector: it is never torn. */
enum { TAIL_SIZE = 28 };

static const uint64_t tail_magic = 0x31306c6961746872u;

static void encode(uint8_t record[TAIL_SIZE], uint64_t identity, uint64_t writes)
{
    struct writer w = {.at = record, .left = TAIL_SIZE};

    put_u64(&w, tail_magic);
    put_u64(&w, identity);
    put_u64(&w, writes);
    put_u32(&w, crc32c(record, TAIL_SIZE - 4));
}

enum err tail_read(const char *path, uint64_t *identity, uint64_t *writes)
{
    uint8_t record[TAIL_SIZE + 1];
    const int file = files->open(path, O_RDONLY);

    if (file < 0) {
        return errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    }
    const ssize_t size = files->read(file, record, sizeof record, 0);
    (void)files->close(file);
    if (size < 0) {
        return ERR_IO;
    }
    if (size != TAIL_SIZE) {
        return ERR_CORRUPT;
    }
    struct reader r = {.at = record, .left = TAIL_SIZE};
    const uint64_t magic = get_u64(&r);
    *identity = get_u64(&r);
    *writes = get_u64(&r);
    const uint32_t crc = get_u32(&r);
    return magic == tail_magic && crc == crc32c(record, TAIL_SIZE - 4) ? ERR_OK : ERR_CORRUPT;
}

enum err tail_open(struct tail *tail, const char *path, uint64_t identity, uint64_t writes)
{
    *tail = (struct tail){.identity = identity};
    tail->file = files->open(path, O_WRONLY | O_CREAT);
    if (tail->file < 0) {
        return ERR_IO;
    }
    return tail_put(tail, writes) == ERR_OK && files->sync(tail->file) == 0 ? ERR_OK : ERR_IO;
}

enum err tail_put(struct tail *tail, uint64_t writes)
{
    uint8_t record[TAIL_SIZE];

    encode(record, tail->identity, writes);
    return files->write(tail->file, record, TAIL_SIZE, 0) == TAIL_SIZE ? ERR_OK : ERR_IO;
}

void tail_close(struct tail *tail)
{
    if (tail->file >= 0) {
        (void)files->close(tail->file);
        tail->file = -1;
    }
}
