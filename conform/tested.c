/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts the program with pipes for its input and output, and cuts what it says into lines.
 */
#include "conform/tested.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    READ_SIZE = 65536,
    END_MS = 10000, /* for a program to end that says no more */
};

static bool make_pipe(int pair[2])
{
    if (pipe(pair) != 0) {
        return false;
    }
    (void)fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(pair[1], F_SETFD, FD_CLOEXEC);
    return true;
}

static int spawn(struct tested *t, char *const *program, int in, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;

    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    (void)posix_spawnattr_init(&how);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    const int failed = posix_spawnp(&t->pid, program[0], &files, &how, program, environ);
    (void)posix_spawnattr_destroy(&how);
    (void)posix_spawn_file_actions_destroy(&files);
    return failed;
}

bool tested_start(struct tested *t, char *const *program)
{
    int typed[2] = {-1, -1};
    int said[2] = {-1, -1};

    *t = (struct tested){.pid = -1, .in = -1, .out = -1};
    if (!make_pipe(typed)) {
        return false;
    }
    if (!make_pipe(said)) {
        (void)close(typed[0]);
        (void)close(typed[1]);
        return false;
    }
    const int failed = spawn(t, program, typed[0], said[1]);

    (void)close(typed[0]);
    (void)close(said[1]);
    t->in = typed[1];
    t->out = said[0];
    if (failed != 0) {
        t->pid = -1;
        errno = failed;
    }
    return failed == 0;
}

void tested_type(struct tested *t, const char *line)
{
    struct buffer text = {0};

    buffer_put(&text, line, strlen(line));
    buffer_put(&text, "\n", 1);
    for (size_t at = 0; at < text.size && t->in >= 0;) {
        const ssize_t put = write(t->in, text.data + at, text.size - at);

        if (put <= 0 && errno != EINTR) {
            tested_ends_input(t); // it has ended, as its output will tell
        }
        at += put > 0 ? (size_t)put : 0;
    }
    buffer_fini(&text);
}

static void add_line(struct tested *t, const char *from, size_t size)
{
    char *line = mem_new(size + 1, 1);
    size_t to = 0;

    for (size_t i = 0; i < size; i++) {
        const bool blank = isspace((unsigned char)from[i]) != 0;

        if (!blank) {
            line[to++] = from[i];
        } else if (to > 0 && line[to - 1] != ' ') {
            line[to++] = ' ';
        }
    }
    line[to > 0 && line[to - 1] == ' ' ? to - 1 : to] = '\0';
    if (t->count < TESTED_LINES_MAX) {
        t->line[t->count++] = line;
    } else {
        mem_free(line);
    }
}

void tested_read(struct tested *t)
{
    const ssize_t got = read(t->out, buffer_reserve(&t->text, READ_SIZE), READ_SIZE);
    const uint8_t *end = NULL;

    if (got <= 0) {
        (void)close(t->out);
        t->out = -1;
        return;
    }
    t->text.size += (size_t)got;
    while (t->text.size > 0 && (end = memchr(t->text.data, '\n', t->text.size)) != NULL) {
        const size_t size = (size_t)(end - t->text.data);

        add_line(t, (const char *)t->text.data, size);
        buffer_consume(&t->text, size + 1);
    }
}

void tested_ends_input(struct tested *t)
{
    if (t->in >= 0) {
        (void)close(t->in);
    }
    t->in = -1;
}

static void kill_if_it_stays(pid_t pid)
{
    struct pollfd ends = {.fd = pidfd_open(pid, 0), .events = POLLIN};

    if (ends.fd >= 0 && poll(&ends, 1, END_MS) == 0) {
        (void)kill(-pid, SIGKILL);
    }
    if (ends.fd >= 0) {
        (void)close(ends.fd);
    }
}

int tested_fini(struct tested *t)
{
    int status = -1;

    tested_ends_input(t);
    if (t->pid > 0) {
        if (t->out >= 0) {
            (void)kill(-t->pid, SIGKILL);
        } else {
            kill_if_it_stays(t->pid);
        }
        while (waitpid(t->pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    if (t->out >= 0) {
        (void)close(t->out);
    }
    for (size_t i = 0; i < t->count; i++) {
        mem_free(t->line[i]);
    }
    buffer_fini(&t->text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
