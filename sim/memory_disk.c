/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated disk: what was not synced may be lost, torn or reordered when the
 * power fails.
 */
#include "sim/memory_disk.h"

#include "base/assert.h"
#include "base/files.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_DISKS_MAX = 64, HANDLES_MAX = 256, PATH_SIZE = 8 };

struct memory_disk {
    char path[PATH_SIZE];
    struct prng luck;
    struct memory_disk_name now[MEMORY_DISK_NAMES_MAX];
    struct memory_disk_name kept[MEMORY_DISK_NAMES_MAX];
    bool held;    /* nothing changes */
    bool off;     /* the power has failed, and nobody knows yet */
    bool failing; /* at the change that makes `left` 0 */
    unsigned left;
};

/* By number: what a path or a descriptor of base/files.h means. One process, one thread. */
static struct {
    struct memory_disk *disk[MEMORY_DISKS_MAX];
    struct memory_disk_file *open[HANDLES_MAX];
    struct memory_disk *of[HANDLES_MAX];
} table;

/* ---- content ---- */

void memory_disk_release(struct memory_disk_file *file)
{
    if (--file->users == 0) {
        mem_free(file->now);
        mem_free(file->kept);
        mem_free(file->dirty);
        mem_free(file);
    }
}

static void reserve(struct memory_disk_file *file, size_t size)
{
    size_t room = file->room == 0 ? (size_t)16 * MEMORY_DISK_SECTOR : file->room;

    while (room < size) {
        room *= 2;
    }
    if (room == file->room) {
        return;
    }
    file->now = mem_resize(file->now, room);
    file->kept = mem_resize(file->kept, room);
    file->dirty = mem_resize(file->dirty, room / MEMORY_DISK_SECTOR);
    memset(file->now + file->room, 0, room - file->room);
    memset(file->kept + file->room, 0, room - file->room);
    memset(
        file->dirty + file->room / MEMORY_DISK_SECTOR, 0, (room - file->room) / MEMORY_DISK_SECTOR);
    file->room = room;
}

static void mark(struct memory_disk_file *file, size_t from, size_t to)
{
    const size_t first = from / MEMORY_DISK_SECTOR;
    const size_t end = (to + MEMORY_DISK_SECTOR - 1) / MEMORY_DISK_SECTOR;

    if (first >= end) {
        return;
    }
    memset(file->dirty + first, 1, end - first);
    if (file->dirty_from >= file->dirty_to) {
        file->dirty_from = first;
        file->dirty_to = end;
    }
    file->dirty_from = first < file->dirty_from ? first : file->dirty_from;
    file->dirty_to = end > file->dirty_to ? end : file->dirty_to;
}

static void keep_sector(struct memory_disk_file *file, size_t sector)
{
    const size_t at = sector * MEMORY_DISK_SECTOR;

    memcpy(file->kept + at, file->now + at, MEMORY_DISK_SECTOR);
}

/* All that is not synced is written, or with `luck` what that decides. */
static void settle(struct memory_disk_file *file, struct prng *luck)
{
    const uint64_t percent = luck == NULL ? 100 : prng_between(luck, 0, 2) * 50;

    for (size_t i = file->dirty_from; i < file->dirty_to; i++) {
        if (file->dirty[i] != 0 && (luck == NULL || prng_chance(luck, percent))) {
            keep_sector(file, i);
        }
        file->dirty[i] = 0;
    }
    file->dirty_from = file->dirty_to = 0;
    if (luck == NULL || prng_chance(luck, 50)) {
        file->kept_size = file->size;
    }
}

/* ---- power ---- */

static void drop_names(struct memory_disk_name names[MEMORY_DISK_NAMES_MAX])
{
    for (size_t i = 0; i < MEMORY_DISK_NAMES_MAX; i++) {
        if (names[i].file != NULL) {
            memory_disk_release(names[i].file);
            names[i].file = NULL;
        }
    }
}

static void copy_names(struct memory_disk_name to[MEMORY_DISK_NAMES_MAX],
                       const struct memory_disk_name from[MEMORY_DISK_NAMES_MAX])
{
    for (size_t i = 0; i < MEMORY_DISK_NAMES_MAX; i++) {
        if (from[i].file != NULL) {
            from[i].file->users++;
        }
    }
    drop_names(to);
    memcpy(to, from, MEMORY_DISK_NAMES_MAX * sizeof *to);
}

/* What is on the disk is decided. */
static void power_off(struct memory_disk *p)
{
    for (size_t i = 0; i < MEMORY_DISK_NAMES_MAX; i++) {
        if (p->now[i].file != NULL) {
            settle(p->now[i].file, &p->luck);
        }
    }
    if (prng_chance(&p->luck, 50)) {
        copy_names(p->kept, p->now);
    }
    p->off = true;
    p->failing = false;
}

/* Before each change, if it is one at all. False: it only seems to happen. */
static bool has_effect(struct memory_disk *p)
{
    if (p->failing && --p->left == 0) {
        power_off(p);
    }
    return !p->off;
}

void memory_disk_fail_at(struct memory_disk *p, unsigned operations)
{
    ASSERT(operations > 0);
    p->failing = true;
    p->left = operations;
}

void memory_disk_hold(struct memory_disk *p, bool held)
{
    p->held = held;
}

bool memory_disk_has_power(const struct memory_disk *p)
{
    return !p->off;
}

void memory_disk_lose(struct memory_disk *p)
{
    if (!p->off) {
        power_off(p);
    }
    copy_names(p->now, p->kept);
    for (size_t i = 0; i < MEMORY_DISK_NAMES_MAX; i++) {
        struct memory_disk_file *file = p->now[i].file;

        if (file == NULL) {
            continue;
        }
        if (file->room > 0) {
            // Behind the end nothing is read, and what comes to stand there is zero first.
            memset(file->kept + file->kept_size, 0, file->room - file->kept_size);
            memcpy(file->now, file->kept, file->room);
            memset(file->dirty, 0, file->room / MEMORY_DISK_SECTOR);
        }
        file->dirty_from = file->dirty_to = 0;
        file->size = file->kept_size;
    }
    p->off = false;
    p->failing = false;
}

/* ---- changes ---- */

size_t memory_disk_read(const struct memory_disk_file *file, void *data, size_t size, size_t at)
{
    const size_t there = at >= file->size ? 0 : file->size - at;
    const size_t count = size < there ? size : there;

    if (count > 0) {
        memcpy(data, file->now + at, count);
    }
    return count;
}

void memory_disk_write(struct memory_disk *p, struct memory_disk_file *file, const void *data,
                       size_t size, size_t at)
{
    if (p->held) {
        return;
    }
    const bool stays = has_effect(p);

    reserve(file, at + size);
    memcpy(file->now + at, data, size);
    file->size = at + size > file->size ? at + size : file->size;
    if (stays) {
        mark(file, at, at + size);
    }
}

void memory_disk_truncate(struct memory_disk *p, struct memory_disk_file *file, size_t size)
{
    if (p->held) {
        return;
    }
    const bool stays = has_effect(p);

    reserve(file, size);
    if (size < file->size) {
        memset(file->now + size, 0, file->size - size);
        if (stays) {
            mark(file, size, file->size);
        }
    }
    file->size = size;
}

void memory_disk_sync(struct memory_disk *p, struct memory_disk_file *file)
{
    if (!p->held && has_effect(p)) {
        settle(file, NULL);
    }
}

void memory_disk_sync_names(struct memory_disk *p)
{
    if (!p->held && has_effect(p)) {
        copy_names(p->kept, p->now);
    }
}

/* ---- names ---- */

static const char *name_in(const char *path)
{
    return strrchr(path, '/') + 1;
}

struct memory_disk *memory_disk_of(const char *path)
{
    const unsigned long number = path[0] == '/' ? strtoul(path + 1, NULL, 10) : MEMORY_DISKS_MAX;
    struct memory_disk *p = number < MEMORY_DISKS_MAX ? table.disk[number] : NULL;

    ASSERT(p != NULL);
    return p;
}

static struct memory_disk_name *place(struct memory_disk *p, const char *name)
{
    struct memory_disk_name *free_place = NULL;

    for (size_t i = 0; i < MEMORY_DISK_NAMES_MAX; i++) {
        if (p->now[i].file == NULL) {
            free_place = &p->now[i];
        } else if (strcmp(p->now[i].name, name) == 0) {
            return &p->now[i];
        }
    }
    return free_place;
}

struct memory_disk_file *memory_disk_find(const char *path, bool make)
{
    struct memory_disk *p = memory_disk_of(path);
    struct memory_disk_name *n = place(p, name_in(path));

    ASSERT(n != NULL);
    if (n->file == NULL && make) {
        (void)has_effect(p);
        n->file = mem_new(1, sizeof *n->file);
        n->file->users = 1;
        (void)snprintf(n->name, sizeof n->name, "%s", name_in(path));
    }
    if (n->file != NULL) {
        n->file->users++; // the handle's
    }
    return n->file;
}

bool memory_disk_remove(const char *path)
{
    struct memory_disk *p = memory_disk_of(path);
    struct memory_disk_name *n = place(p, name_in(path));

    if (n == NULL || n->file == NULL) {
        return false;
    }
    if (p->held) {
        return true;
    }
    (void)has_effect(p);
    memory_disk_release(n->file);
    n->file = NULL;
    return true;
}

/* ---- base/files.h ---- */

static int file_open(const char *path, int flags)
{
    const struct memory_disk_name *n = place(memory_disk_of(path), name_in(path));
    const bool there = n != NULL && n->file != NULL;
    int i = 0;

    if (there ? (flags & O_EXCL) != 0 : (flags & O_CREAT) == 0) {
        errno = there ? EEXIST : ENOENT;
        return -1;
    }
    while (table.open[i] != NULL) {
        i++;
        ASSERT(i < HANDLES_MAX);
    }
    table.open[i] = memory_disk_find(path, true);
    table.of[i] = memory_disk_of(path);
    return i;
}

static int file_close(int file)
{
    memory_disk_release(table.open[file]);
    table.open[file] = NULL;
    return 0;
}

static off_t file_size(int file)
{
    return (off_t)table.open[file]->size;
}

static ssize_t file_read(int file, void *data, size_t size, off_t at)
{
    return (ssize_t)memory_disk_read(table.open[file], data, size, (size_t)at);
}

static ssize_t file_write(int file, const void *data, size_t size, off_t at)
{
    memory_disk_write(table.of[file], table.open[file], data, size, (size_t)at);
    return (ssize_t)size;
}

static int file_sync(int file)
{
    memory_disk_sync(table.of[file], table.open[file]);
    return 0;
}

static bool file_exists(const char *path)
{
    const struct memory_disk_name *n = place(memory_disk_of(path), name_in(path));

    return n != NULL && n->file != NULL;
}

static int file_rename(const char *from, const char *to)
{
    struct memory_disk *p = memory_disk_of(from);
    struct memory_disk_name *old = place(p, name_in(to));

    if (old != NULL && old->file != NULL) {
        memory_disk_release(old->file);
        old->file = NULL;
    }
    struct memory_disk_name *n = place(p, name_in(from));
    ASSERT(n != NULL && n->file != NULL);
    (void)has_effect(p);
    (void)snprintf(n->name, sizeof n->name, "%s", name_in(to));
    return 0;
}

static int file_remove(const char *path)
{
    errno = ENOENT;
    return memory_disk_remove(path) ? 0 : -1;
}

static int directory_sync_names(const char *path)
{
    memory_disk_sync_names(memory_disk_of(path));
    return 0;
}

static const struct files files_on_memory_disks = {
    .open = file_open,
    .close = file_close,
    .size = file_size,
    .read = file_read,
    .write = file_write,
    .sync = file_sync,
    .exists = file_exists,
    .rename = file_rename,
    .remove = file_remove,
    .sync_directory = directory_sync_names,
};

void memory_disk_install(void)
{
    if (files != &files_on_memory_disks) {
        files = &files_on_memory_disks;
        memory_disk_install_sqlite();
    }
}

/* ---- lives ---- */

struct memory_disk *memory_disk_new(uint64_t seed)
{
    struct memory_disk *p = mem_new(1, sizeof *p);
    size_t number = 0;

    while (table.disk[number] != NULL) {
        number++;
        ASSERT(number < MEMORY_DISKS_MAX);
    }
    table.disk[number] = p;
    (void)snprintf(p->path, sizeof p->path, "/%zu", number);
    p->luck = (struct prng){seed};
    return p;
}

void memory_disk_free(struct memory_disk *p)
{
    for (size_t i = 0; i < MEMORY_DISKS_MAX && p != NULL; i++) {
        if (table.disk[i] == p) {
            table.disk[i] = NULL;
        }
    }
    if (p != NULL) {
        drop_names(p->now);
        drop_names(p->kept);
        mem_free(p);
    }
}

const char *memory_disk_path(const struct memory_disk *p)
{
    return p->path;
}
