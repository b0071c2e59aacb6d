/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a copy of a SQLite database, so that looking leaves no trace.
 */
#include "storage/log/readonly_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4300, COPY_BLOCK = 1 << 16 };

static enum err fail(struct readonly_db *p, enum err error, const char *why)
{
    (void)snprintf(p->why, sizeof p->why, "%s", why);
    return error;
}

static bool copy_all(int in, int out)
{
    static char block[COPY_BLOCK];
    ssize_t size;

    while ((size = read(in, block, sizeof block)) > 0) {
        if (write(out, block, (size_t)size) != size) {
            return false;
        }
    }
    return size == 0;
}

static bool copy_file(const char *from, const char *to)
{
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool copied = out >= 0 && copy_all(in, out);

    if (out >= 0) {
        copied = close(out) == 0 && copied;
    }
    if (in >= 0) {
        (void)close(in);
    }
    return copied;
}

/* SQLite's URI of a path that may hold any character. */
static void uri_of(const char *path, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "file:");

    for (const char *at = path; *at != '\0' && used + 32 < size; at++) {
        const bool special = strchr("%?#", *at) != NULL;

        used += (size_t)snprintf(
            out + used, size - used, special ? "%%%02x" : "%c", (unsigned)(unsigned char)*at);
    }
    (void)snprintf(out + used, size - used, "?mode=ro&immutable=1");
}

static enum err open_sql(struct readonly_db *p, const char *name, int flags)
{
    if (sqlite3_open_v2(name, &p->sql, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        return fail(p, ERR_IO, sqlite3_errmsg(p->sql));
    }
    (void)sqlite3_busy_timeout(p->sql, 2000);
    return ERR_OK;
}

static enum err open_copy(struct readonly_db *p, const char *path)
{
    const char *tmp = getenv("TMPDIR");
    char wal[PATH_SIZE];
    char copy[PATH_SIZE];

    (void)snprintf(p->copy,
                   sizeof p->copy,
                   "%s/ringhold-recover-XXXXXX",
                   tmp == NULL || tmp[0] == '\0' ? "/tmp" : tmp);
    if (mkdtemp(p->copy) == NULL) {
        p->copy[0] = '\0';
        return fail(p, ERR_IO, "can't create a temporary folder (TMPDIR)");
    }
    (void)snprintf(copy, sizeof copy, "%s/db", p->copy);
    if (!copy_file(path, copy)) {
        return fail(p, ERR_IO, strerror(errno));
    }
    (void)snprintf(wal, sizeof wal, "%s-wal", path);
    (void)snprintf(copy, sizeof copy, "%s/db-wal", p->copy);
    if (!copy_file(wal, copy)) {
        return fail(p, ERR_IO, strerror(errno));
    }
    (void)snprintf(copy, sizeof copy, "%s/db", p->copy);
    return open_sql(p, copy, SQLITE_OPEN_READWRITE);
}

enum err readonly_open(struct readonly_db *p, const char *path, bool in_use)
{
    struct stat status = {0};
    char name[2 * PATH_SIZE];

    *p = (struct readonly_db){0};
    if (stat(path, &status) != 0) {
        return fail(p, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(p, ERR_CORRUPT, "it is not a regular file");
    }
    if (status.st_size == 0) {
        return fail(p, ERR_CORRUPT, "the file is empty");
    }
    if (in_use) {
        return open_sql(p, path, SQLITE_OPEN_READONLY);
    }
    (void)snprintf(name, sizeof name, "%s-wal", path);
    if (stat(name, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        return open_copy(p, path);
    }
    uri_of(path, name, sizeof name);
    return open_sql(p, name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

void readonly_close(struct readonly_db *p)
{
    static const char *const files[] = {"db", "db-wal", "db-shm", "db-journal"};

    (void)sqlite3_close(p->sql);
    p->sql = NULL;
    for (size_t i = 0; p->copy[0] != '\0' && i < sizeof files / sizeof files[0]; i++) {
        char name[PATH_SIZE];

        (void)snprintf(name, sizeof name, "%s/%s", p->copy, files[i]);
        (void)unlink(name);
    }
    if (p->copy[0] != '\0') {
        (void)rmdir(p->copy);
        p->copy[0] = '\0';
    }
}
