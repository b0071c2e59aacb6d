/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads key files. It refuses those that other users may read or write.
 */
#include "base/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* NULL, or why it must not be trusted. `secret`: by who else may read or write it, too. */
static const char *distrust(int fd, bool secret, size_t max)
{
    struct stat file;

    if (fstat(fd, &file) != 0) {
        return strerror(errno);
    }
    if (!S_ISREG(file.st_mode)) {
        return "the file is not a regular file";
    }
    if (secret && file.st_uid != geteuid() && file.st_uid != 0) {
        return "the file belongs to another user";
    }
    if (secret && (file.st_mode & (S_IWGRP | S_IRWXO)) != 0) {
        return "others may read or write the file: chmod 600";
    }
    return (size_t)file.st_size > max ? "the file is too large" : NULL;
}

static const char *read_all(int fd, uint8_t *out, size_t max, size_t *size)
{
    *size = 0;
    while (*size < max) {
        const ssize_t count = read(fd, out + *size, max - *size);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return strerror(errno);
        }
        if (count == 0) {
            break;
        }
        *size += (size_t)count;
    }
    return NULL;
}

static const char *read_file(const char *path, bool secret, uint8_t *out, size_t max, size_t *size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not hold us up

    if (fd < 0) {
        return strerror(errno);
    }
    const char *wrong = distrust(fd, secret, max);
    if (wrong == NULL) {
        wrong = read_all(fd, out, max, size);
    }
    (void)close(fd);
    return wrong;
}

const char *secret_file_read(const char *path, uint8_t *out, size_t max, size_t *size)
{
    return read_file(path, true, out, max, size);
}

const char *public_file_read(const char *path, uint8_t *out, size_t max, size_t *size)
{
    return read_file(path, false, out, max, size);
}
