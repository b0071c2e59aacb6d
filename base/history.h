/* SPDX-License-Identifier: Apache-2.0
 *
 * Histories: what did the processes of a fleet do, and when? Lines of text that
 * `ringhold-history` judges; docs/history.md is the format.
 *
 *     81723344 n1.4711 EXEC_BEGIN entity=ada session=c7 seq=12
 *     |        |       |          |
 *     time_us  process event      key=value …
 *
 * Each line is one write() with O_APPEND: processes may share a file, a line is
 * in the kernel's hands before what it tells has any effect, and kill -9 loses
 * none. So what one process wrote before it sent a message stands before what
 * the receiver then writes.
 */
#ifndef BASE_HISTORY_H
#define BASE_HISTORY_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HISTORY_FORMAT = 1,        /* "ringhold-history 1" heads every file */
    HISTORY_LINE_MAX = 4096,   /* bytes, newline included */
    HISTORY_PROCESS_MAX = 127, /* of a process's name */
    HISTORY_WORD_MAX = 255,    /* of an entity's or session's name, before it is escaped */
    HISTORY_WORD_SIZE = 3 * HISTORY_WORD_MAX + 1,
};

#define HISTORY_EVENTS(X)                                                 \
    X(HISTORY_ACTIVATE, "ACTIVATE")     /* the actor is live here */      \
    X(HISTORY_FREEZE, "FREEZE")         /* live no more, still there */   \
    X(HISTORY_UNFREEZE, "UNFREEZE")     /* live again */                  \
    X(HISTORY_STOP, "STOP")             /* gone */                        \
    X(HISTORY_EXEC_BEGIN, "EXEC_BEGIN") /* a request's code runs */       \
    X(HISTORY_EXEC_END, "EXEC_END")                                       \
    X(HISTORY_OUTPUT, "OUTPUT")         /* something leaves a node */     \
    X(HISTORY_STORE, "STORE")           /* a store took or refused */     \
    X(HISTORY_REGISTERED, "REGISTERED") /* the process's incarnation */   \
    X(HISTORY_LEASE, "LEASE")           /* the process's lease */         \
    X(HISTORY_CRASH, "CRASH")           /* a process is gone */           \
    X(HISTORY_PAUSE, "PAUSE")           /* it stands still */             \
    X(HISTORY_RESUME, "RESUME")                                           \
    X(HISTORY_SEND, "SEND")           /* a client asks */                 \
    X(HISTORY_ANSWER, "ANSWER")       /* it is answered */                \
    X(HISTORY_CLOSE, "CLOSE")         /* a session waits no more */       \
    X(HISTORY_COMMITTED, "COMMITTED") /* applied: a transaction */        \
    X(HISTORY_ABORTED, "ABORTED")                                         \
    X(HISTORY_REASSIGN, "REASSIGN") /* applied: an incarnation is over */ \
    X(HISTORY_OUTCOME, "OUTCOME")   /* a node is told of one */           \
    X(HISTORY_VIEW, "VIEW")         /* a process has a ring */            \
    X(HISTORY_NOTE, "NOTE")         /* any text, not judged */

enum history_event_type {
#define X(name, text) name,
    HISTORY_EVENTS(X)
#undef X
};

/* "EXEC_BEGIN" */
const char *history_event_name(enum history_event_type type);

/* An id as it stands in a line: bytes that are no printable ASCII, and '%', as %XX. Cut at
 * HISTORY_WORD_MAX bytes. Returns `out`. */
const char *history_word(struct bytes id, char out[HISTORY_WORD_SIZE]);

struct history;

/* Append to `path`, or make it. ERR_IO: it can't be opened or written. */
MUST_CHECK enum err history_open(struct history **out, const char *path);

/* The file that RINGHOLD_HISTORY names; *out = NULL and ERR_OK if it names none. */
MUST_CHECK enum err history_open_asked(struct history **out);

/* Write one line; `format` makes its keys and values. Ends the process (exit 74) when the disk is
 * full: a history with holes accuses the innocent. `h` may be NULL: nothing happens. */
void history_write(struct history *h, uint64_t time_us, const char *process,
                   enum history_event_type type, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Takes NULL. */
void history_close(struct history *h);

#endif
