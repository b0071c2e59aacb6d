/* SPDX-License-Identifier: Apache-2.0
 *
 * The durable log: a thread that does requests in order and tells when each is
 * on the disk.
 */
#include "storage/log/log_sqlite.h"

#include "storage/log/atomic_replace.h"
#include "storage/log/raftdb_sqlite.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LOG_PATH_MAX = 4200 };

/* The database is used by one thread at a time: the worker while `busy`, else whoever holds the
 * lock. The loop goes first: a term or a vote waits for one transaction at most. */
struct log_sqlite {
    struct log_store store; /* must be first */
    struct raftdb *db;
    int lock_file;
    void *context;
    void (*wake)(void *context);

    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct list queued;   /* log_request */
    struct list finished; /* log_request */
    bool busy;            /* the worker is in a transaction */
    unsigned urgent;      /* loop calls that wait for the worker */
    bool stopping;
};

static struct log_sqlite *self(struct log_store *store)
{
    return (struct log_sqlite *)(void *)store;
}

static void *work(void *argument)
{
    struct log_sqlite *s = argument;
    struct list batch;

    list_init(&batch);
    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->stopping && (list_empty(&s->queued) || s->urgent > 0)) {
            (void)pthread_cond_wait(&s->changed, &s->lock);
        }
        if (s->stopping) {
            break;
        }
        list_splice_back(&batch, &s->queued);
        s->busy = true;
        (void)pthread_mutex_unlock(&s->lock);
        raftdb_write(s->db, &batch);
        (void)pthread_mutex_lock(&s->lock);
        s->busy = false;
        list_splice_back(&s->finished, &batch);
        (void)pthread_cond_broadcast(&s->changed);
        (void)pthread_mutex_unlock(&s->lock);
        s->wake(s->context);
        (void)pthread_mutex_lock(&s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Between enter() and leave() the database belongs to the loop. */
static void enter(struct log_sqlite *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->urgent++;
    while (s->busy) {
        (void)pthread_cond_wait(&s->changed, &s->lock);
    }
}

static void leave(struct log_sqlite *s)
{
    s->urgent--;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

static uint64_t set_vote(struct log_store *store, uint64_t term, uint64_t vote)
{
    struct log_sqlite *s = self(store);
    const uint64_t start_us = clock_boottime_us();

    enter(s);
    raftdb_set_vote(s->db, term, vote);
    leave(s);
    return clock_boottime_us() - start_us;
}

static void set_peer(struct log_store *store, const struct log_peer *peer)
{
    struct log_sqlite *s = self(store);

    enter(s);
    raftdb_set_peer(s->db, peer);
    leave(s);
}

static void set_admitted(struct log_store *store)
{
    struct log_sqlite *s = self(store);

    enter(s);
    raftdb_set_admitted(s->db);
    leave(s);
}

static void set_format(struct log_store *store, uint32_t fleet_format)
{
    struct log_sqlite *s = self(store);

    enter(s);
    raftdb_set_format(s->db, fleet_format);
    leave(s);
}

static void submit(struct log_store *store, struct log_request *request)
{
    struct log_sqlite *s = self(store);

    (void)pthread_mutex_lock(&s->lock);
    list_push_back(&s->queued, &request->link);
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
}

static struct log_request *completed(struct log_store *store)
{
    struct log_sqlite *s = self(store);

    (void)pthread_mutex_lock(&s->lock);
    struct log_request *request = log_requests_take(&s->finished);
    (void)pthread_mutex_unlock(&s->lock);
    return request;
}

static void close_store(struct log_store *store)
{
    struct log_sqlite *s = self(store);

    (void)pthread_mutex_lock(&s->lock);
    s->stopping = true;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->worker, NULL);
    log_requests_free(&s->queued);
    log_requests_free(&s->finished);
    raftdb_close(s->db);
    (void)close(s->lock_file);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static const struct log_store_ops ops = {
    .set_vote = set_vote,
    .set_peer = set_peer,
    .set_admitted = set_admitted,
    .set_format = set_format,
    .submit = submit,
    .completed = completed,
    .close = close_store,
};

/* Returns the descriptor that holds the folder's lock through `*out`. */
static enum err lock_folder(const char *directory, int *out)
{
    static const char *const of_node[] = {"identity", "number", NULL}; // node/folder.h
    char path[LOG_PATH_MAX];
    const char *foreign = directory_find(directory, of_node);

    if (foreign != NULL) {
        log_error("raft",
                  "folder_refused",
                  "file=%s/%s error=ERR_FOREIGN reason=\"it is a node's folder\" remedy=\"point "
                  "--data at this coordinator's own folder, or use an empty one\"",
                  directory,
                  foreign);
        return ERR_FOREIGN;
    }
    if (!directory_make(directory)) {
        log_error("raft",
                  "folder_refused",
                  "file=%s error=ERR_IO reason=\"%s\" remedy=\"give this user access to the place, "
                  "or choose another\"",
                  directory,
                  strerror(errno));
        return ERR_IO;
    }
    (void)snprintf(path, sizeof path, "%s/raft.lock", directory);
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) {
        log_error(
            "raft",
            "folder_refused",
            "file=%s error=ERR_IO reason=\"%s\" remedy=\"give this user access to the folder\"",
            path,
            strerror(errno));
        return ERR_IO;
    }
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
        log_error("raft",
                  "folder_refused",
                  "file=%s error=ERR_LOCKED reason=\"a running process uses the folder\" "
                  "remedy=\"stop that coordinator, or use another folder\"",
                  path);
        (void)close(file);
        return ERR_LOCKED;
    }
    if (atomic_replace_interrupted(directory)) {
        log_error(
            "raft",
            "folder_refused",
            "file=%s/%s error=ERR_CORRUPT reason=\"a restore of this folder was interrupted\" "
            "remedy=\"give the same ringhold recover command again: it completes the restore "
            "first\"",
            directory,
            ATOMIC_REPLACE_JOURNAL);
        (void)close(file);
        return ERR_CORRUPT;
    }
    *out = file;
    return ERR_OK;
}

/* Signals are the loop's business. */
static void start_worker(struct log_sqlite *s)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&s->worker, NULL, work, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    ASSERT(failed == 0);
}

enum err log_sqlite_open(struct log_store **out, struct log_image *image,
                         const struct log_sqlite_config *config)
{
    int lock_file = -1;
    struct raftdb *db = NULL;
    enum err e = lock_folder(config->directory, &lock_file);

    if (e != ERR_OK) {
        return e;
    }
    e = raftdb_open(&db, image, config);
    if (e != ERR_OK) {
        (void)close(lock_file);
        return e;
    }
    struct log_sqlite *s = mem_new(1, sizeof *s);
    s->store.ops = &ops;
    s->db = db;
    s->lock_file = lock_file;
    s->context = config->context;
    s->wake = config->wake;
    list_init(&s->queued);
    list_init(&s->finished);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    start_worker(s);
    *out = &s->store;
    return ERR_OK;
}

enum err log_sqlite_adopt(const struct log_sqlite_config *config)
{
    int lock_file = -1;
    enum err e = lock_folder(config->directory, &lock_file);

    if (e != ERR_OK) {
        return e;
    }
    e = raftdb_adopt(config);
    (void)close(lock_file);
    return e;
}

enum err log_sqlite_inspect(const char *directory, struct log_folder *out)
{
    char path[LOG_PATH_MAX];
    int lock_file = -1;

    (void)snprintf(path, sizeof path, "%s/raft.db", directory);
    if (access(path, F_OK) != 0) {
        return ERR_NOT_FOUND;
    }
    enum err e = lock_folder(directory, &lock_file);
    if (e != ERR_OK) {
        return e;
    }
    e = raftdb_inspect(directory, out);
    (void)close(lock_file);
    return e;
}

void log_sqlite_wait(struct log_store *store)
{
    struct log_sqlite *s = self(store);

    (void)pthread_mutex_lock(&s->lock);
    while (s->busy || !list_empty(&s->queued)) {
        (void)pthread_cond_wait(&s->changed, &s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
}
