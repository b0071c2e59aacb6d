/* SPDX-License-Identifier: Apache-2.0
 *
 * A keyring's file. It opens every account, so one that others could have read
 * or written is refused.
 */
#include "gateway/hmac.h"
#include "gateway/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* NULL, or why it must not be trusted. */
static const char *distrust(int fd)
{
    struct stat file;

    if (fstat(fd, &file) != 0) {
        return strerror(errno);
    }
    if (!S_ISREG(file.st_mode)) {
        return "it is no regular file";
    }
    if (file.st_uid != geteuid() && file.st_uid != 0) {
        return "it belongs to another user";
    }
    if ((file.st_mode & (S_IWGRP | S_IRWXO)) != 0) {
        return "others may read or write it: chmod 600";
    }
    return file.st_size > KEYRING_FILE_MAX ? "it is over 16 KiB" : NULL;
}

/* NULL, or why not. */
static const char *read_all(int fd, uint8_t *out, size_t *size)
{
    *size = 0;
    while (*size < KEYRING_FILE_MAX) {
        const ssize_t count = read(fd, out + *size, KEYRING_FILE_MAX - *size);

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

static const char *load(int fd, struct keyring *out, unsigned *line)
{
    uint8_t text[KEYRING_FILE_MAX];
    struct keyring keys;
    size_t size = 0;
    const char *wrong = distrust(fd);

    if (wrong == NULL) {
        wrong = read_all(fd, text, &size);
    }
    if (wrong == NULL) {
        wrong = keyring_parse(bytes_of(text, size), &keys, line);
    }
    if (wrong == NULL) {
        *out = keys;
    }
    hmac_wipe(text, sizeof text);
    hmac_wipe(&keys, sizeof keys);
    return wrong;
}

bool keyring_load(const char *path, struct keyring *out, char why[KEYRING_WHY_SIZE])
{
    unsigned line = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not hold us up
    const char *wrong = fd < 0 ? strerror(errno) : load(fd, out, &line);

    if (fd >= 0) {
        (void)close(fd);
    }
    if (wrong != NULL && line > 0) {
        (void)snprintf(why, KEYRING_WHY_SIZE, "%s:%u: %s", path, line, wrong);
    } else if (wrong != NULL) {
        (void)snprintf(why, KEYRING_WHY_SIZE, "%s: %s", path, wrong);
    }
    return wrong == NULL;
}
