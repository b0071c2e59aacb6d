/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the lines of a history, as docs/history.md describes them.
 */
#include "base/history.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_IO = 74 };

struct history {
    int fd;
};

const char *history_event_name(enum history_event_type type)
{
    static const char *const names[] = {
#define X(name, text) text,
        HISTORY_EVENTS(X)
#undef X
    };

    return names[type];
}

const char *history_word(struct bytes id, char out[HISTORY_WORD_SIZE])
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;

    for (size_t i = 0; i < id.size && i < HISTORY_WORD_MAX; i++) {
        const uint8_t byte = id.data[i];

        if (byte > ' ' && byte < 0x7f && byte != '%') {
            out[used++] = (char)byte;
        } else {
            out[used++] = '%';
            out[used++] = digits[byte >> 4];
            out[used++] = digits[byte & 15];
        }
    }
    out[used] = '\0';
    return out;
}

/* All of it, or false. A line goes out whole unless the disk is full. */
static bool put(int fd, const char *text, size_t size)
{
    ssize_t got = 0;

    do {
        got = write(fd, text, size);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

enum err history_open(struct history **out, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat info;
    char head[32];

    *out = NULL;
    if (fd < 0) {
        return ERR_IO;
    }
    // Two processes may both find it empty: a second head is legal.
    const int size = snprintf(head, sizeof head, "ringhold-history %d\n", HISTORY_FORMAT);
    if (fstat(fd, &info) != 0 || (info.st_size == 0 && !put(fd, head, (size_t)size))) {
        (void)close(fd);
        return ERR_IO;
    }
    *out = mem_new(1, sizeof **out);
    (*out)->fd = fd;
    return ERR_OK;
}

enum err history_open_asked(struct history **out)
{
    const char *path = getenv("RINGHOLD_HISTORY");

    *out = NULL;
    return path == NULL || path[0] == '\0' ? ERR_OK : history_open(out, path);
}

void history_write(struct history *h, uint64_t time_us, const char *process,
                   enum history_event_type type, const char *format, ...)
{
    char line[HISTORY_LINE_MAX];
    va_list args;
    int more = 0;

    if (h == NULL) {
        return;
    }
    const int size = snprintf(
        line, sizeof line, "%" PRIu64 " %s %s ", time_us, process, history_event_name(type));
    ASSERT(size > 0 && (size_t)size < sizeof line / 2);
    va_start(args, format);
    more = vsnprintf(line + size, sizeof line - (size_t)size, format, args);
    va_end(args);
    ASSERT(more >= 0 && (size_t)(size + more) + 1 < sizeof line);
    line[size + more] = '\n';
    if (!put(h->fd, line, (size_t)(size + more) + 1)) {
        (void)fprintf(stderr, "ringhold: can't write the history: %s\n", strerror(errno));
        _exit(EXIT_IO);
    }
}

void history_close(struct history *h)
{
    if (h != NULL) {
        (void)close(h->fd);
        mem_free(h);
    }
}
