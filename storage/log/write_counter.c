/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes raft.tail.
 */
#include "storage/log/write_counter.h"

#include "base/crc.h"
#include "base/files.h"
#include "wire/cursor.h"

#include <errno.h>
#include <fcntl.h>

/* "rhtail01", identity, writes, CRC of these. One sector: it is never torn. */
enum { WRITE_COUNTER_SIZE = 28 };

static const uint64_t write_counter_magic = 0x31306c6961746872u;

static void encode(uint8_t record[WRITE_COUNTER_SIZE], uint64_t identity, uint64_t writes)
{
    struct writer w = {.at = record, .left = WRITE_COUNTER_SIZE};

    put_u64(&w, write_counter_magic);
    put_u64(&w, identity);
    put_u64(&w, writes);
    put_u32(&w, crc32c(record, WRITE_COUNTER_SIZE - 4));
}

enum err write_counter_read(const char *path, uint64_t *identity, uint64_t *writes)
{
    uint8_t record[WRITE_COUNTER_SIZE + 1];
    const int file = files->open(path, O_RDONLY);

    if (file < 0) {
        return errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    }
    const ssize_t size = files->read(file, record, sizeof record, 0);
    (void)files->close(file);
    if (size < 0) {
        return ERR_IO;
    }
    if (size != WRITE_COUNTER_SIZE) {
        return ERR_CORRUPT;
    }
    struct reader r = {.at = record, .left = WRITE_COUNTER_SIZE};
    const uint64_t magic = get_u64(&r);
    *identity = get_u64(&r);
    *writes = get_u64(&r);
    const uint32_t crc = get_u32(&r);
    return magic == write_counter_magic && crc == crc32c(record, WRITE_COUNTER_SIZE - 4)
               ? ERR_OK
               : ERR_CORRUPT;
}

enum err write_counter_open(struct write_counter *write_counter, const char *path,
                            uint64_t identity, uint64_t writes)
{
    *write_counter = (struct write_counter){.identity = identity};
    write_counter->file = files->open(path, O_WRONLY | O_CREAT);
    if (write_counter->file < 0) {
        return ERR_IO;
    }
    return write_counter_put(write_counter, writes) == ERR_OK &&
                   files->sync(write_counter->file) == 0
               ? ERR_OK
               : ERR_IO;
}

enum err write_counter_put(struct write_counter *write_counter, uint64_t writes)
{
    uint8_t record[WRITE_COUNTER_SIZE];

    encode(record, write_counter->identity, writes);
    return files->write(write_counter->file, record, WRITE_COUNTER_SIZE, 0) == WRITE_COUNTER_SIZE
               ? ERR_OK
               : ERR_IO;
}

void write_counter_close(struct write_counter *write_counter)
{
    if (write_counter->file >= 0) {
        (void)files->close(write_counter->file);
        write_counter->file = -1;
    }
}
