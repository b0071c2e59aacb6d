/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the last commit in a write-ahead log of SQLite ends: what lies behind it was rolled back,
 * or is of before the last checkpoint, and nobody reads it.
 */
#ifndef TESTS_STORAGE_WAL_END_H
#define TESTS_STORAGE_WAL_END_H

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "tests/test.h"

/* In bytes; 0: there is none. The format: https://sqlite.org/fileformat.html, 4.1. */
static off_t wal_end(const char *path)
{
    enum { HEAD = 32, FRAME_HEAD = 24, PAGE = 4096, SALT_SIZE = 8 };
    static const uint8_t no_commit[4];
    uint8_t head[HEAD];
    uint8_t frame[FRAME_HEAD];
    off_t end = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, head, sizeof head, 0), sizeof head);
    for (off_t at = HEAD; pread(fd, frame, sizeof frame, at) == sizeof frame &&
                          memcmp(frame + 8, head + 16, SALT_SIZE) == 0;
         at += FRAME_HEAD + PAGE) {
        if (memcmp(frame + 4, no_commit, sizeof no_commit) != 0) {
            end = at + FRAME_HEAD + PAGE;
        }
    }
    (void)close(fd);
    return end;
}

#endif
