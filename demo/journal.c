/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes an actor's deeds into a mapped file, so that kill -9 loses none, and
 * reads it for the judge.
 */
#include "demo/journal.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOCK_BOOTTIME
#define CLOCK_BOOTTIME 7
#endif

enum {
    RECORD_SIZE = sizeof(struct journal_record),
    HEADER_SIZE = 2 * RECORD_SIZE,
    // Whole pages and whole records: a window never cuts one.
    WINDOW_SIZE = 16 * 4096 * RECORD_SIZE,
    EXIT_IO = 74,
};

static const char magic[8] = "RHJRNL01";

_Static_assert(sizeof(struct journal_record) == 40, "the record has no padding");

struct journal {
    int fd;
    uint8_t *window; /* mapped; NULL before the first */
    size_t used;     /* in the window */
    off_t end;       /* of the file: after the window */
};

uint64_t journal_id_hash(struct bytes id)
{
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a

    for (size_t i = 0; i < id.size; i++) {
        hash = (hash ^ id.data[i]) * 0x100000001b3u;
    }
    return hash;
}

/* Map the next stretch of the file. */
static bool next_window(struct journal *j)
{
    if (j->window != NULL) {
        (void)munmap(j->window, WINDOW_SIZE);
        j->window = NULL;
    }
    // Reserve it now: a full disk must be an error here, not a SIGBUS later.
    errno = posix_fallocate(j->fd, j->end, WINDOW_SIZE);
    if (errno != 0) {
        return false;
    }
    void *map = mmap(NULL, WINDOW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, j->fd, j->end);
    if (map == MAP_FAILED) {
        return false;
    }
    j->window = map;
    j->used = 0;
    j->end += WINDOW_SIZE;
    return true;
}

enum err journal_open(struct journal **out, const char *path, const char *node)
{
    if (strlen(node) > JOURNAL_NAME_MAX) {
        return ERR_INVALID;
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno == EEXIST ? ERR_CONFLICT : ERR_IO;
    }
    struct journal *j = mem_new(1, sizeof *j);
    j->fd = fd;
    if (!next_window(j)) {
        journal_close(j);
        return ERR_IO;
    }
    for (size_t i = 0; node[i] != '\0'; i++) {
        j->window[sizeof magic + i] = (uint8_t)node[i];
    }
    memcpy(j->window, magic, sizeof magic);
    j->used = HEADER_SIZE;
    *out = j;
    return ERR_OK;
}

void journal_put(struct journal *j, const struct journal_record *record)
{
    struct journal_record copy = *record;
    struct timespec now;

    ASSERT(record->event != 0);
    if (j->used + RECORD_SIZE > WINDOW_SIZE && !next_window(j)) {
        (void)fprintf(stderr, "ringhold: can't write the journal: %s\n", strerror(errno));
        _exit(EXIT_IO);
    }
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    copy.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    copy.event = 0;
    struct journal_record *at = (struct journal_record *)(void *)(j->window + j->used);
    memcpy(at, &copy, sizeof copy);
    // A reader, or the file after a kill, sees the event only with all that belongs to it.
    atomic_thread_fence(memory_order_release);
    *(volatile uint32_t *)&at->event = record->event;
    j->used += RECORD_SIZE;
}

void journal_close(struct journal *j)
{
    if (j == NULL) {
        return;
    }
    if (j->window != NULL) {
        (void)munmap(j->window, WINDOW_SIZE);
    }
    (void)close(j->fd);
    mem_free(j);
}

static size_t count_records(const struct journal_record *record, size_t max)
{
    size_t count = 0;

    while (count < max && *(const volatile uint32_t *)&record[count].event != 0) {
        count++;
    }
    atomic_thread_fence(memory_order_acquire);
    return count;
}

static enum err view_map(struct journal_view *v, int fd)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        return ERR_IO;
    }
    if (!S_ISREG(status.st_mode) || status.st_size < HEADER_SIZE) {
        return ERR_CORRUPT;
    }
    v->map_size = (size_t)status.st_size;
    v->map = mmap(NULL, v->map_size, PROT_READ, MAP_SHARED, fd, 0);
    if (v->map == MAP_FAILED) {
        v->map = NULL;
        return ERR_IO;
    }
    const uint8_t *at = v->map;
    if (memcmp(at, magic, sizeof magic) != 0) {
        return ERR_CORRUPT;
    }
    memcpy(v->node, at + sizeof magic, JOURNAL_NAME_MAX);
    v->record = (const struct journal_record *)(const void *)(at + HEADER_SIZE);
    v->count = count_records(v->record, (v->map_size - HEADER_SIZE) / RECORD_SIZE);
    return ERR_OK;
}

enum err journal_view_open(struct journal_view *v, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    *v = (struct journal_view){0};
    if (fd < 0) {
        return errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    }
    const enum err error = view_map(v, fd);
    (void)close(fd);
    if (error != ERR_OK) {
        journal_view_close(v);
    }
    return error;
}

void journal_view_close(struct journal_view *v)
{
    if (v->map != NULL) {
        (void)munmap(v->map, v->map_size);
    }
    *v = (struct journal_view){0};
}
