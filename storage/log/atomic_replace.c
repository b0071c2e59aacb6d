/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges a folder's files by a journal, so that a crash leaves the old or the
 * new ones.
 */
#include "storage/log/atomic_replace.h"

#include "base/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 4400, TEXT_SIZE = 512, TRIES_MAX = 100 };

static const char format[] = "ringhold recovery 1\n";

struct replace_journal {
    bool in; /* phase "in": the old files are away */
    char replaced[ATOMIC_REPLACE_NAME_MAX];
    char staging[ATOMIC_REPLACE_NAME_MAX];
};

static enum err fail(char why[ATOMIC_REPLACE_WHY_MAX], const char *what, const char *name)
{
    (void)snprintf(why, ATOMIC_REPLACE_WHY_MAX, "%s %.150s: %.60s", what, name, strerror(errno));
    return ERR_IO;
}

static void join(char out[PATH_SIZE], const char *folder, const char *name)
{
    (void)snprintf(out, PATH_SIZE, "%s/%s", folder, name);
}

/* ---- journal ---- */

static enum err journal_write(const char *folder, const struct replace_journal *j,
                              char why[ATOMIC_REPLACE_WHY_MAX])
{
    char temporary[PATH_SIZE];
    char final[PATH_SIZE];

    join(temporary, folder, ATOMIC_REPLACE_JOURNAL ".new");
    join(final, folder, ATOMIC_REPLACE_JOURNAL);
    const int fd = directory_new_file(temporary);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool written = file != NULL && fprintf(file,
                                           "%sphase=%s\nreplaced=%s\nstaging=%s\n",
                                           format,
                                           j->in ? "in" : "out",
                                           j->replaced,
                                           j->staging) > 0;
    written = written && fflush(file) == 0 && fsync(fileno(file)) == 0;
    written = file != NULL && fclose(file) == 0 && written;
    if (!written || rename(temporary, final) != 0 || !directory_sync(folder)) {
        return fail(why, "can't write", final);
    }
    return ERR_OK;
}

static bool name_is_plain(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

static enum err journal_read(const char *folder, struct replace_journal *j,
                             char why[ATOMIC_REPLACE_WHY_MAX])
{
    char path[PATH_SIZE];
    char text[TEXT_SIZE] = "";
    char phase[8] = "";

    join(path, folder, ATOMIC_REPLACE_JOURNAL);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT ? ERR_NOT_FOUND : fail(why, "can't read", path);
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    if (strncmp(text, format, sizeof format - 1) != 0 ||
        sscanf(text + sizeof format - 1,
               "phase=%7s\nreplaced=%63s\nstaging=%63s\n",
               phase,
               j->replaced,
               j->staging) != 3 ||
        !name_is_plain(j->replaced) || !name_is_plain(j->staging) ||
        (strcmp(phase, "in") != 0 && strcmp(phase, "out") != 0)) {
        (void)snprintf(why, ATOMIC_REPLACE_WHY_MAX, "%.200s is damaged", path);
        return ERR_CORRUPT;
    }
    j->in = strcmp(phase, "in") == 0;
    return ERR_OK;
}

static enum err journal_remove(const char *folder, char why[ATOMIC_REPLACE_WHY_MAX])
{
    char path[PATH_SIZE];

    join(path, folder, ATOMIC_REPLACE_JOURNAL);
    if (!directory_sync(folder) || unlink(path) != 0 || !directory_sync(folder)) {
        return fail(why, "can't remove", path);
    }
    return ERR_OK;
}

/* ---- moving ---- */

/* Move one file, replacing what has its name in `to`. It may be gone already. */
static enum err move(const char *from, const char *to, const char *name,
                     char why[ATOMIC_REPLACE_WHY_MAX])
{
    char source[PATH_SIZE];
    char target[PATH_SIZE];

    join(source, from, name);
    join(target, to, name);
    if (rename(source, target) != 0 && errno != ENOENT) {
        return fail(why, "can't move", source);
    }
    return ERR_OK;
}

/* Move all files of the folder `from` to `to`, then remove `from`. */
static enum err move_all(const char *from, const char *to, char why[ATOMIC_REPLACE_WHY_MAX])
{
    DIR *dir = opendir(from);
    enum err error = ERR_OK;

    if (dir == NULL) {
        return errno == ENOENT ? ERR_OK : fail(why, "can't read", from);
    }
    for (const struct dirent *at = readdir(dir); at != NULL && error == ERR_OK; at = readdir(dir)) {
        if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0) {
            error = move(from, to, at->d_name, why);
        }
    }
    (void)closedir(dir);
    if (error == ERR_OK && !directory_sync(to)) {
        error = fail(why, "can't sync", to);
    }
    if (error == ERR_OK && rmdir(from) != 0 && errno != ENOENT) {
        error = fail(why, "can't remove", from);
    }
    return error;
}

static enum err make_replaced(const char *folder, char name[ATOMIC_REPLACE_NAME_MAX],
                              char why[ATOMIC_REPLACE_WHY_MAX])
{
    const time_t now = time(NULL);
    struct tm utc = {0};
    char stamp[32];
    char path[PATH_SIZE];

    (void)gmtime_r(&now, &utc);
    (void)strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &utc);
    (void)snprintf(name, ATOMIC_REPLACE_NAME_MAX, "replaced-%s", stamp);
    for (unsigned i = 2; i < TRIES_MAX; i++) {
        join(path, folder, name);
        if (mkdir(path, 0700) == 0) {
            return ERR_OK;
        }
        if (errno != EEXIST) {
            break;
        }
        (void)snprintf(name, ATOMIC_REPLACE_NAME_MAX, "replaced-%s-%u", stamp, i);
    }
    return fail(why, "can't make", path);
}

static enum err move_in(const char *folder, const struct replace_journal *j,
                        char why[ATOMIC_REPLACE_WHY_MAX])
{
    char staging[PATH_SIZE];

    join(staging, folder, j->staging);
    const enum err error = move_all(staging, folder, why);
    return error == ERR_OK ? journal_remove(folder, why) : error;
}

enum err atomic_replace(const char *folder, const char *staging, const char *const *names,
                        char replaced[ATOMIC_REPLACE_NAME_MAX], char why[ATOMIC_REPLACE_WHY_MAX])
{
    struct replace_journal j = {0};
    char away[PATH_SIZE];
    enum err error = make_replaced(folder, replaced, why);

    if (error != ERR_OK) {
        return error;
    }
    (void)snprintf(j.replaced, sizeof j.replaced, "%s", replaced);
    (void)snprintf(j.staging, sizeof j.staging, "%s", staging);
    join(away, folder, replaced);
    error = journal_write(folder, &j, why);
    for (; error == ERR_OK && *names != NULL; names++) {
        error = move(folder, away, *names, why);
    }
    if (error == ERR_OK && (!directory_sync(away) || !directory_sync(folder))) {
        error = fail(why, "can't sync", away);
    }
    if (error == ERR_OK) {
        j.in = true;
        error = journal_write(folder, &j, why);
    }
    return error == ERR_OK ? move_in(folder, &j, why) : error;
}

bool atomic_replace_interrupted(const char *folder)
{
    char path[PATH_SIZE];
    struct stat status;

    join(path, folder, ATOMIC_REPLACE_JOURNAL);
    return lstat(path, &status) == 0;
}

enum err atomic_replace_finish(const char *folder, bool *forward, char why[ATOMIC_REPLACE_WHY_MAX])
{
    struct replace_journal j = {0};
    char away[PATH_SIZE];
    enum err error = journal_read(folder, &j, why);

    *forward = j.in;
    if (error != ERR_OK) {
        return error == ERR_NOT_FOUND ? ERR_OK : error;
    }
    if (j.in) {
        return move_in(folder, &j, why);
    }
    join(away, folder, j.replaced);
    error = move_all(away, folder, why);
    return error == ERR_OK ? journal_remove(folder, why) : error;
}

enum err atomic_replace_discard(const char *folder, const char *name,
                                char why[ATOMIC_REPLACE_WHY_MAX])
{
    char path[PATH_SIZE];
    DIR *dir;

    join(path, folder, name);
    dir = opendir(path);
    if (dir == NULL) {
        return errno == ENOENT ? ERR_OK : fail(why, "can't read", path);
    }
    for (const struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        char file[PATH_SIZE + 256];

        (void)snprintf(file, sizeof file, "%s/%s", path, at->d_name);
        (void)unlink(file); // What can't be removed shows below.
    }
    (void)closedir(dir);
    return rmdir(path) == 0 ? ERR_OK : fail(why, "can't remove", path);
}
