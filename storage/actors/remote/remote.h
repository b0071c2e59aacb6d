/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store in a database elsewhere does next: connect, settle what is in doubt, send, wait.
 *
 *     begin -> [open -> settle ->] send -> done          the line breaks -> wait, open, settle ...
 *
 * A commit whose answer is lost is in doubt: the database may have done it, or may do it yet, when
 * its bytes come out of some buffer. Nothing else is sent before it is settled on a new line: the
 * number of its row is raised past it (line.h), so that a late one is refused. Then it is known
 * whether it was done, and "no" stays no.
 *
 * While there is no line, tasks are held for a while, in which a database that restarts is back;
 * after that each call tries once, as often as the back-off lets it, and is refused.
 *
 * Pure: the shell (store_remote_uv.h) calls remote_next() until it is done, and does what it says.
 */
#ifndef STORAGE_ACTORS_REMOTE_REMOTE_H
#define STORAGE_ACTORS_REMOTE_REMOTE_H

#include "storage/actors/remote/line.h"

enum {
    REMOTE_HOLD_MS = 3000,      /* so long tasks wait for a new line … */
    REMOTE_DOUBT_MS = 10000,    /* … and those in doubt, which are told UNKNOWN then */
    REMOTE_BACKOFF_MIN_MS = 50, /* between two attempts to connect; the first is made at once */
    REMOTE_BACKOFF_MAX_MS = 2000,
    REMOTE_LOSSES_MAX = 3, /* lines that one call may lose */
};

enum remote_step {
    REMOTE_OPEN,   /* line.open, then remote_opened() */
    REMOTE_SETTLE, /* line.settle of `doubt`, then remote_settled() */
    REMOTE_SEND,   /* line.send of the first `chosen_count` of `todo`, then remote_sent() */
    REMOTE_WAIT,   /* for `wait_ms` */
    REMOTE_DONE,   /* each task has its result */
};

struct remote_store {
    struct actor_store *store; /* whose counts it keeps */
    bool open;
    bool apart;       /* tasks go one by one, for one of them spoils it for the others */
    bool lost;        /* since `lost_ms` nothing was answered */
    uint64_t lost_ms; /* when the line broke */
    uint64_t try_ms;  /* when to open one */
    uint64_t back_ms; /* the back-off; 0 = at once */
    uint64_t wait_ms; /* REMOTE_WAIT */
    uint32_t losses;  /* of this call */
    bool was_opened;  /* once, at least */
    size_t doubt_count;
    size_t todo_count;
    size_t chosen_count; /* of `todo` */
    struct doubt doubt[STORE_TASKS_MAX];
    struct store_task *todo[STORE_TASKS_MAX];   /* no result yet, nor in doubt; in order */
    struct line_answer answer[STORE_TASKS_MAX]; /* of `doubt` or `todo` */
};

/* Take the tasks of a call, which borrows them until it is done. */
void remote_begin(struct remote_store *r, struct store_task *const *task, size_t count);
enum remote_step remote_next(struct remote_store *r, uint64_t now_ms);
void remote_opened(struct remote_store *r, bool good, uint64_t now_ms);
/* `good`: the line is still open. */
void remote_settled(struct remote_store *r, bool good, uint64_t now_ms);
void remote_sent(struct remote_store *r, bool good, uint64_t now_ms);

#endif
