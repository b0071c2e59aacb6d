/* SPDX-License-Identifier: Apache-2.0 */
#include "base/directory.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

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
