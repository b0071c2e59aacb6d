/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders on disk: make one, make its names durable, and find what is in it.
 */
#include "base/directory.h"

#include "base/files.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool directory_make(const char *path)
{
    char part[PATH_MAX];
    const size_t size = strlen(path);

    if (size >= sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(part, path, size + 1);
    for (size_t i = 1; i < size; i++) {
        if (part[i] == '/') {
            part[i] = '\0';
            (void)mkdir(part, 0700); // What stands in the way, the last one says.
            part[i] = '/';
        }
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

const char *directory_find(const char *path, const char *const *names)
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    while (*names != NULL && (fd < 0 || fstatat(fd, *names, &status, AT_SYMLINK_NOFOLLOW) != 0)) {
        names++;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return *names;
}

int directory_new_file(const char *path)
{
    if (files->remove(path) != 0 && errno != ENOENT) {
        return -1;
    }
    return files->open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
}

bool directory_sync(const char *path)
{
    return files->sync_directory(path) == 0;
}

bool directory_sync_of(const char *file)
{
    char *copy = mem_string(file);
    const bool synced = directory_sync(dirname(copy));
    const int failure = errno;

    mem_free(copy);
    errno = failure;
    return synced;
}
