/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives files that root repaired back to the daemon's user.
 */
#include "storage/log/owner.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Takes `at`, a descriptor. */
static bool give(int at, uid_t uid, gid_t gid)
{
    struct stat s;
    bool good = fstat(at, &s) == 0;

    if (good && s.st_uid == 0 && (S_ISDIR(s.st_mode) || (S_ISREG(s.st_mode) && s.st_nlink == 1))) {
        good = fchown(at, uid, gid) == 0;
    }
    (void)close(at);
    return good;
}

/* What is in the folder. Takes `folder`, a descriptor. */
static bool give_all(int folder, uid_t uid, gid_t gid)
{
    DIR *rows = fdopendir(folder);
    bool good = rows != NULL;

    if (rows == NULL) {
        (void)close(folder);
        return false;
    }
    for (const struct dirent *row = readdir(rows); row != NULL; row = readdir(rows)) {
        if (strcmp(row->d_name, ".") == 0 || strcmp(row->d_name, "..") == 0) {
            continue;
        }
        // Not a link: where it leads is none of ours. Not blocking: it may be a pipe.
        const int at =
            openat(dirfd(rows), row->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        good = (at < 0 || give(at, uid, gid)) && good;
    }
    (void)closedir(rows);
    return good;
}

enum err owner_keep(const char *folder, const char *within)
{
    struct stat s;

    if (geteuid() != 0) {
        return ERR_OK;
    }
    const int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        return ERR_IO;
    }
    const int inner = openat(at, within, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool good = fstat(at, &s) == 0;
    if (!good) {
        s.st_uid = 0;
        s.st_gid = 0;
    }
    good = (inner < 0 || give_all(inner, s.st_uid, s.st_gid)) && good;
    return give_all(at, s.st_uid, s.st_gid) && good ? ERR_OK : ERR_IO;
}
