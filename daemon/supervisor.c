/* SPDX-License-Identifier: Apache-2.0
 *
 * Speaks systemd's notify protocol on a thread of its own, also for the
 * watchdog.
 */
#include "daemon/supervisor.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    START_MS = 100, /* between two questions until it is ready */
    PERIOD_MS = 1000,
    SEND_MS = 1000,
    MESSAGE_SIZE = 512,
};

struct supervisor {
    struct pages *pages; /* borrowed */
    int socket;          /* connected to systemd's */
    uint32_t period_ms;  /* once it is ready */
    bool watched;        /* WatchdogSec= is set */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool ending; /* under the lock */
    bool ready;  /* all below: the thread's alone */
    char status[MESSAGE_SIZE / 2];
};

/* ---- words ---- */

/* Waits for room, but only SEND_MS. False: it was not told. */
static bool tell(const struct supervisor *s, const char *words)
{
    return send(s->socket, words, strlen(words), MSG_NOSIGNAL) >= 0;
}

/* What the loop answered: the words that follow from it. */
static void speak(struct supervisor *s, enum pages_result result, const char *status)
{
    char words[MESSAGE_SIZE] = "";
    size_t size = 0;
    const bool becomes_ready = result == PAGES_YES && !s->ready;

    if (result != PAGES_YES && result != PAGES_NO) {
        return; // no loop yet, none any more, or one that hangs: nobody speaks for it
    }
    if (becomes_ready) {
        size += (size_t)snprintf(words + size, sizeof words - size, "READY=1\n");
    }
    if (s->watched) {
        size += (size_t)snprintf(words + size, sizeof words - size, "WATCHDOG=1\n");
    }
    if (strcmp(status, s->status) != 0) {
        size += (size_t)snprintf(words + size, sizeof words - size, "STATUS=%.250s\n", status);
    }
    if (size > 0 && tell(s, words)) { // else it is all said again next time
        s->ready = s->ready || becomes_ready;
        (void)snprintf(s->status, sizeof s->status, "%s", status);
    }
}

/* ---- the thread ---- */

static void ask(struct supervisor *s)
{
    struct buffer page = {0};
    const enum pages_result result = pages_ask(s->pages, PAGE_READY, s->period_ms, &page);

    buffer_put(&page, "", 1);
    page.data[strcspn((const char *)page.data, "\n")] = '\0';
    speak(s, result, (const char *)page.data);
    buffer_fini(&page);
}

/* False: it is to end. */
static bool wait_for_end(struct supervisor *s)
{
    const uint32_t ms = s->ready ? s->period_ms : START_MS;
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t ns = (uint64_t)t.tv_nsec + (uint64_t)(ms % 1000) * 1000000;
    t.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    (void)pthread_mutex_lock(&s->lock);
    while (!s->ending && pthread_cond_timedwait(&s->ended, &s->lock, &t) == 0) {
    }
    const bool ending = s->ending;
    (void)pthread_mutex_unlock(&s->lock);
    return !ending;
}

static void *run(void *argument)
{
    struct supervisor *s = argument;

    do {
        ask(s);
    } while (wait_for_end(s));
    return NULL;
}

/* ---- life ---- */

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = strlen(path);

    if ((path[0] != '/' && path[0] != '@') || size >= sizeof address.sun_path) {
        errno = EINVAL;
        return -1;
    }
    memcpy(address.sun_path, path, size);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; // in Linux' own name space
    }
    const struct timeval patience = {.tv_sec = SEND_MS / 1000};
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd >= 0 && connect(fd,
                           (const struct sockaddr *)&address,
                           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)) != 0) {
        const int error = errno;

        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* WATCHDOG_USEC is for the process that WATCHDOG_PID names. A third of it: one answer may be late.
 */
static void take_watchdog(struct supervisor *s)
{
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    const unsigned long long us = usec == NULL ? 0 : strtoull(usec, NULL, 10);

    s->period_ms = PERIOD_MS;
    if (us == 0 || (pid != NULL && strtoll(pid, NULL, 10) != (long long)getpid())) {
        return;
    }
    s->watched = true;
    if (us / 3000 < PERIOD_MS) {
        s->period_ms = us < 3000 ? 1 : (uint32_t)(us / 3000);
    }
}

static void start(struct supervisor *s)
{
    pthread_condattr_t attributes;

    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->ended, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static void free_all(struct supervisor *s)
{
    (void)pthread_cond_destroy(&s->ended);
    (void)pthread_mutex_destroy(&s->lock);
    (void)close(s->socket);
    mem_free(s);
}

bool supervisor_open(const char *daemon, struct pages *pages, struct supervisor **out)
{
    const char *path = getenv("NOTIFY_SOCKET");

    *out = NULL;
    if (path == NULL || path[0] == '\0') {
        return true;
    }
    struct supervisor *s = mem_new(1, sizeof *s);
    s->pages = pages;
    s->socket = connect_to(path);
    if (s->socket < 0) {
        (void)fprintf(stderr, "ringhold %s: NOTIFY_SOCKET=%s: %s\n", daemon, path, strerror(errno));
        mem_free(s);
        return false;
    }
    take_watchdog(s);
    start(s);
    if (pthread_create(&s->thread, NULL, run, s) != 0) {
        (void)fprintf(
            stderr, "ringhold %s: can't start the thread for systemd's watchdog\n", daemon);
        free_all(s);
        return false;
    }
    *out = s;
    return true;
}

void supervisor_close(struct supervisor *s)
{
    if (s == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    s->ending = true;
    (void)pthread_cond_signal(&s->ended);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    (void)tell(s, "STOPPING=1\nSTATUS=stopped\n");
    free_all(s);
}
