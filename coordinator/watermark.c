/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the witness file, so that a folder that went back in time is found at
 * the start.
 */
#include "coordinator/watermark.h"

#include "base/log.h"
#include "base/mem.h"
#include "storage/log/number.h"
#include "storage/log/watermark_record.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    PAUSE_MS = 100, /* between two writes: they would slow those of raft.db */
    /* While no number is drawn. Below format 4 the index grows with the leases' renewals, as
     * barriers are entries then. */
    IDLE_PAUSE_MS = 1000,
};

struct watermark {
    struct number *file;
    struct watermark_record found;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct watermark_record noted;
    struct watermark_record written;
    bool pausing; /* not to be woken by what is noted; while it is idle, unless a number is */
    bool idle;
    bool stopping;
};

static void store(struct watermark *w, const struct watermark_record *note)
{
    uint8_t payload[WATERMARK_RECORD_SIZE];

    watermark_record_encode(payload, note);
    if (number_store(w->file, bytes_of(payload, sizeof payload)) != ERR_OK) {
        exit(74); // It said why. A disk that fails the witness fails raft.db next.
    }
}

static struct timespec after(const struct timespec *since, long ms)
{
    const long ns = since->tv_nsec + ms % 1000 * 1000000L;

    return (struct timespec){.tv_sec = since->tv_sec + ms / 1000 + ns / 1000000000L,
                             .tv_nsec = ns % 1000000000L};
}

/* Only who stops may shorten it, and a number that was drawn the second part: whatever is noted
 * meanwhile goes with the next write. */
static void pause_writing(struct watermark *w)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    const struct timespec until = after(&now, PAUSE_MS);
    const struct timespec idle_until = after(&now, IDLE_PAUSE_MS);

    w->pausing = true;
    while (!w->stopping && pthread_cond_timedwait(&w->changed, &w->lock, &until) == 0) {
    }
    w->idle = true;
    while (!w->stopping && w->noted.number == w->written.number &&
           pthread_cond_timedwait(&w->changed, &w->lock, &idle_until) == 0) {
    }
    w->pausing = w->idle = false;
}

static void *run(void *argument)
{
    struct watermark *w = argument;

    (void)pthread_mutex_lock(&w->lock);
    while (!w->stopping || w->noted.index > w->written.index) {
        if (w->noted.index <= w->written.index) {
            (void)pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        const struct watermark_record note = w->noted;
        (void)pthread_mutex_unlock(&w->lock);
        store(w, &note);
        (void)pthread_mutex_lock(&w->lock);
        w->written = note;
        pause_writing(w);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

enum err watermark_open(struct watermark **out, const char *folder)
{
    struct watermark *w = mem_new(1, sizeof *w);
    struct buffer payload = {0};
    pthread_condattr_t attributes;
    char path[4200];

    *out = NULL;
    (void)snprintf(path, sizeof path, "%s/witness", folder);
    enum err error = number_open(&w->file, path, &payload);
    if (error == ERR_OK && !watermark_record_decode(buffer_bytes(&payload), &w->found)) {
        error = ERR_CORRUPT;
    }
    buffer_fini(&payload);
    w->noted = w->written = w->found;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    if (error != ERR_OK || pthread_create(&w->thread, NULL, run, w) != 0) {
        log_error(
            "witness",
            "unusable",
            "file=%s reason=\"%s\" remedy=\"the file only guards against old copies of raft.db: if "
            "ringhold recover verify finds raft.db sound, move this file away and start\"",
            path,
            err_text(error));
        number_close(w->file);
        mem_free(w);
        return error == ERR_OK ? ERR_IO : error;
    }
    *out = w;
    return ERR_OK;
}

void watermark_close(struct watermark *w)
{
    if (w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    w->stopping = true;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    number_close(w->file);
    (void)pthread_mutex_destroy(&w->lock);
    (void)pthread_cond_destroy(&w->changed);
    mem_free(w);
}

uint64_t watermark_number(const struct watermark *w)
{
    return w->found.number;
}

uint64_t watermark_index(const struct watermark *w)
{
    return w->found.index;
}

bool watermark_agrees(const struct watermark *w, uint64_t number)
{
    return number >= w->found.number;
}

void watermark_put(struct watermark *w, uint64_t number, uint64_t index)
{
    (void)pthread_mutex_lock(&w->lock);
    if (index > w->noted.index) {
        w->noted = (struct watermark_record){number, index};
        if (!w->pausing || (w->idle && number != w->written.number)) {
            (void)pthread_cond_signal(&w->changed);
        }
    }
    (void)pthread_mutex_unlock(&w->lock);
}
