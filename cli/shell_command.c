/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills in an operator's command template, quoted for the shell, and runs it.
 */
#include "cli/shell_command.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_AGAIN_MS = 50, HOST_SIZE = 128 };

extern char **environ;

/* ---- the template ---- */

/* What the address has before its port. */
static void host_of(const char *address, char out[HOST_SIZE])
{
    const char *colon = strrchr(address, ':');
    size_t size = colon == NULL ? strlen(address) : (size_t)(colon - address);

    if (size >= 2 && address[0] == '[' && address[size - 1] == ']') {
        address++;
        size -= 2;
    }
    (void)snprintf(out, HOST_SIZE, "%.*s", (int)size, address);
}

static bool put(char out[SHELL_COMMAND_MAX], size_t *used, const char *text, size_t size)
{
    if (*used + size >= SHELL_COMMAND_MAX) {
        return false;
    }
    memcpy(out + *used, text, size);
    *used += size;
    out[*used] = '\0';
    return true;
}

/* In single quotes, in which a shell sees nothing but text; a quote of its own is put outside. */
static bool put_quoted(char out[SHELL_COMMAND_MAX], size_t *used, const char *text)
{
    bool fits = put(out, used, "'", 1);

    for (const char *at = text; *at != '\0' && fits; at++) {
        fits = *at == '\'' ? put(out, used, "'\\''", 4) : put(out, used, at, 1);
    }
    return fits && put(out, used, "'", 1);
}

/* NULL: it is none. */
static const char *word_of(const char *at, size_t size, const struct shell_words *w,
                           const char *host)
{
    const struct {
        const char *name;
        const char *value;
    } words[] = {{"node", w->node}, {"host", host}, {"address", w->address}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].name) == size && memcmp(words[i].name, at, size) == 0) {
            return words[i].value;
        }
    }
    return NULL;
}

bool shell_command_fill(const char *template, const struct shell_words *words,
                        char out[SHELL_COMMAND_MAX], char *why, size_t why_size)
{
    char host[HOST_SIZE];
    size_t used = 0;
    bool fits = true;

    out[0] = '\0';
    host_of(words->address, host);
    for (const char *at = template; *at != '\0' && fits; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        const bool shells = at > template && at[-1] == '$'; // ${variable}

        if (end == NULL || shells) {
            fits = put(out, &used, at, 1);
            continue;
        }
        const char *word = word_of(at + 1, (size_t)(end - at - 1), words, host);

        if (word == NULL) {
            (void)snprintf(
                why, why_size, "%.*s is not {node}, {host} or {address}", (int)(end - at + 1), at);
            return false;
        }
        fits = put_quoted(out, &used, word);
        at = end;
    }
    if (!fits) {
        (void)snprintf(why, why_size, "the command is longer than %d", SHELL_COMMAND_MAX - 1);
    }
    return fits;
}

/* ---- running ---- */

static pid_t start(const char *command)
{
    char shell[] = "/bin/sh";
    char flag[] = "-c";
    char text[SHELL_COMMAND_MAX];
    char *const argv[] = {shell, flag, text, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    pid_t pid = -1;

    (void)snprintf(text, sizeof text, "%s", command);
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return -1;
    }
    if (posix_spawnattr_init(&how) == 0) {
        // A group of its own: all of it is ended, not the shell alone.
        if (posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) != 0 ||
            posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP) != 0 ||
            posix_spawn(&pid, shell, &actions, &how, argv, environ) != 0) {
            pid = -1;
        }
        (void)posix_spawnattr_destroy(&how);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return pid;
}

int shell_command_run(const char *command, uint32_t wait_s)
{
    const struct timespec pause = {.tv_nsec = (long)LOOK_AGAIN_MS * 1000000};
    const uint64_t end_us = clock_boottime_us() + (uint64_t)wait_s * 1000000;
    const pid_t pid = start(command);
    int status = 0;
    pid_t ended = 0;

    if (pid < 0) {
        (void)fprintf(stderr, "ringhold: can't start /bin/sh\n");
        return -1;
    }
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && clock_boottime_us() < end_us) {
        (void)nanosleep(&pause, NULL);
    }
    if (ended == 0) {
        (void)kill(-pid, SIGTERM);
        (void)waitpid(pid, &status, 0);
        (void)fprintf(
            stderr, "ringhold: the command took longer than %u s and was ended\n", wait_s);
        return -1;
    }
    if (ended < 0 || !WIFEXITED(status)) {
        (void)fprintf(stderr,
                      "ringhold: the command was ended by signal %d\n",
                      ended < 0 ? 0 : WTERMSIG(status));
        return -1;
    }
    return WEXITSTATUS(status);
}
