/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's body of base/files.h. The simulator has the other one,
 * sim/memory_disk.c.
 */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int file_open(const char *path, int flags)
{
    return open(path, flags | O_CLOEXEC, 0600);
}

static off_t file_size(int file)
{
    struct stat status = {0};

    return fstat(file, &status) == 0 ? status.st_size : -1;
}

static bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static int directory_fsync(const char *path)
{
    const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (directory < 0) {
        return -1;
    }
    const int result = fsync(directory);
    const int failure = errno;
    (void)close(directory);
    errno = failure;
    return result;
}

const struct files files_kernel = {
    .open = file_open,
    .close = close,
    .size = file_size,
    .read = pread,
    .write = pwrite,
    .sync = fdatasync,
    .exists = file_exists,
    .rename = rename,
    .remove = unlink,
    .sync_directory = directory_fsync,
};

const struct files *files = &files_kernel;
