/* SPDX-License-Identifier: Apache-2.0
 *
 * SQLite's files on such a disk: a VFS. One process has them, so nothing is locked, and the index
 * of a write-ahead log is memory that no power loss leaves.
 */
#include "sim/memory_disk.h"

#include "base/assert.h"
#include "base/mem.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { REGIONS_MAX = 64 };

struct handle {
    sqlite3_file base; /* must be first */
    struct memory_disk *memory_disk;
    struct memory_disk_file *file;
    bool names_due; /* a log is new: its first sync is of its name, too, as of the unix VFS */
    void *region[REGIONS_MAX]; /* owned */
};

static struct handle *self(sqlite3_file *file)
{
    return (struct handle *)(void *)file;
}

static int on_close(sqlite3_file *file)
{
    memory_disk_release(self(file)->file);
    return SQLITE_OK;
}

static int on_read(sqlite3_file *file, void *data, int size, sqlite3_int64 at)
{
    const size_t count = memory_disk_read(self(file)->file, data, (size_t)size, (size_t)at);

    memset((uint8_t *)data + count, 0, (size_t)size - count);
    return count == (size_t)size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int on_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    memory_disk_write(self(file)->memory_disk, self(file)->file, data, (size_t)size, (size_t)at);
    return SQLITE_OK;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    memory_disk_truncate(self(file)->memory_disk, self(file)->file, (size_t)size);
    return SQLITE_OK;
}

static int on_sync(sqlite3_file *file, int flags)
{
    struct handle *h = self(file);

    (void)flags;
    memory_disk_sync(h->memory_disk, h->file);
    if (h->names_due) {
        h->names_due = false;
        memory_disk_sync_names(h->memory_disk);
    }
    return SQLITE_OK;
}

static int on_size(sqlite3_file *file, sqlite3_int64 *size)
{
    *size = (sqlite3_int64)self(file)->file->size;
    return SQLITE_OK;
}

static int on_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int on_reserved(sqlite3_file *file, int *out)
{
    (void)file;
    *out = 0;
    return SQLITE_OK;
}

static int on_control(sqlite3_file *file, int op, void *argument)
{
    (void)file;
    (void)op;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int on_sector_size(sqlite3_file *file)
{
    (void)file;
    return MEMORY_DISK_SECTOR;
}

/* As the unix VFS says of Linux: a sector that is half written leaves its neighbours alone. */
static int on_characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int on_map(sqlite3_file *file, int at, int size, int extend, void volatile **out)
{
    struct handle *h = self(file);

    ASSERT(at < REGIONS_MAX);
    if (h->region[at] == NULL && extend != 0) {
        h->region[at] = mem_new(1, (size_t)size);
    }
    *out = h->region[at];
    return SQLITE_OK;
}

// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): SQLite's
static int on_map_lock(sqlite3_file *file, int offset, int count, int flags)
{
    (void)file;
    (void)offset;
    (void)count;
    (void)flags;
    return SQLITE_OK;
}

static void on_barrier(sqlite3_file *file)
{
    (void)file;
}

static int on_unmap(sqlite3_file *file, int remove)
{
    struct handle *h = self(file);

    (void)remove;
    for (size_t i = 0; i < REGIONS_MAX; i++) {
        mem_free(h->region[i]);
        h->region[i] = NULL;
    }
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_size,
    .xLock = on_lock,
    .xUnlock = on_lock,
    .xCheckReservedLock = on_reserved,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_characteristics,
    .xShmMap = on_map,
    .xShmLock = on_map_lock,
    .xShmBarrier = on_barrier,
    .xShmUnmap = on_unmap,
};

static int on_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                   int *out_flags)
{
    struct handle *h = self(file);
    const bool is_log = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;

    (void)vfs;
    *h = (struct handle){0};
    ASSERT(path != NULL); // nothing here needs a temporary file
    h->file = memory_disk_find(path, (flags & SQLITE_OPEN_CREATE) != 0);
    if (h->file == NULL) {
        return SQLITE_CANTOPEN;
    }
    h->memory_disk = memory_disk_of(path);
    h->names_due = is_log;
    h->base.pMethods = &methods;
    if (out_flags != NULL) {
        *out_flags = flags;
    }
    return SQLITE_OK;
}

static int on_delete(sqlite3_vfs *vfs, const char *path, int sync_names)
{
    (void)vfs;
    if (!memory_disk_remove(path)) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    if (sync_names != 0) {
        memory_disk_sync_names(memory_disk_of(path));
    }
    return SQLITE_OK;
}

static int on_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    struct memory_disk_file *file = memory_disk_find(path, false);

    (void)vfs;
    *out = file != NULL && (flags != SQLITE_ACCESS_EXISTS || file->size > 0);
    if (file != NULL) {
        memory_disk_release(file);
    }
    return SQLITE_OK;
}

static int on_full_path(sqlite3_vfs *vfs, const char *path, int size, char *out)
{
    (void)vfs;
    (void)snprintf(out, (size_t)size, "%s", path);
    return SQLITE_OK;
}

/* The same in each run. */
static int on_random(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    memset(out, 0x5a, (size_t)size);
    return size;
}

static int on_sleep(sqlite3_vfs *vfs, int time_us)
{
    (void)vfs;
    return time_us;
}

static int on_time(sqlite3_vfs *vfs, double *days)
{
    (void)vfs;
    *days = 2460000.5;
    return SQLITE_OK;
}

// NOLINTNEXTLINE(readability-non-const-parameter): SQLite's
static int on_last_error(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    (void)size;
    (void)out;
    return 0;
}

void memory_disk_install_sqlite(void)
{
    static sqlite3_vfs vfs = {
        .iVersion = 1,
        .szOsFile = sizeof(struct handle),
        .mxPathname = 64,
        .zName = "memory",
        .xOpen = on_open,
        .xDelete = on_delete,
        .xAccess = on_access,
        .xFullPathname = on_full_path,
        .xRandomness = on_random,
        .xSleep = on_sleep,
        .xCurrentTime = on_time,
        .xGetLastError = on_last_error,
    };
    const int registered = sqlite3_vfs_register(&vfs, 1);

    ASSERT(registered == SQLITE_OK);
}
