/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads histories (docs/history.md) and judges them: sim/history/check.c's core.
 *
 *     bytes of files --history_book_read()--> events, in order of time --history_judge()--> verdict
 *
 * It knows nothing of rings, transactions or simulators: only what a real
 * process can have written down. Pure.
 */
#ifndef SIM_HISTORY_HISTORY_H
#define SIM_HISTORY_HISTORY_H

#include "base/history.h"
#include "base/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_ERROR_SIZE = 320, HISTORY_TEXT_SIZE = 200 };

enum history_code {
    HISTORY_OK,
    HISTORY_APPERR,
    HISTORY_UNKNOWN,
    HISTORY_TIMEOUT,
    HISTORY_REJECTED,
    HISTORY_NOKIND,
};
enum { HISTORY_CODES = HISTORY_NOKIND + 1 };
const char *history_code_name(enum history_code code);

/* One line. Names are numbers of the book's words, 0 = not said. */
struct history_event {
    uint64_t time_us;
    const char *text; /* borrowed: the line, without its newline */
    uint32_t text_size;
    uint32_t process;
    uint32_t of;
    uint32_t entity;
    uint32_t session;
    uint32_t digest;
    uint64_t seq;
    uint64_t fence;
    uint64_t inc;
    uint64_t txn;
    uint64_t version;
    uint64_t until_us;
    uint64_t effects;
    uint16_t file;
    uint8_t type;  /* enum history_event_type */
    uint8_t code;  /* enum history_code */
    uint32_t keys; /* which were said: HISTORY_HAS_* */
    bool no_reply;
    bool idempotent;
    bool accepted;
    bool committed;
    bool broken; /* STOP: what it did since it was saved is lost */
};

enum { HISTORY_HAS_EFFECTS = 1 << 0, HISTORY_HAS_FENCE = 1 << 1 };

struct history_word_entry;

struct history_file {
    char *name;       /* owned */
    const char *data; /* borrowed until the book's end */
    size_t size;
};

struct history_book {
    struct history_event *event; /* owned; as read */
    size_t event_count;
    size_t event_cap;
    struct history_event **order; /* owned; by time, then as read; after history_judge() */
    struct table words;
    struct history_word_entry **word; /* owned; by number - 1 */
    size_t word_count;
    size_t word_cap;
    struct history_file *file; /* owned */
    size_t file_count;
    size_t processes;
};

void history_book_init(struct history_book *b);
void history_book_fini(struct history_book *b);

/* Take a whole file, whose bytes stay the caller's and must outlive the book. False if a line is
 * malformed: `error` says "name:line: why". */
bool history_book_read(struct history_book *b, const char *name, struct bytes bytes,
                       char error[HISTORY_ERROR_SIZE]);
/* A word as it was written; "-" for 0. */
const char *history_book_word(const struct history_book *b, uint32_t number);
/* The event's line in its file, from 1. */
size_t history_book_line(const struct history_book *b, const struct history_event *e);

/* ---- verdict ---- */

/* Rule, the checker of specification §7.1 that it belongs to, its name in the summary. */
#define HISTORY_RULES(X)                                                                        \
    X(RULE_LIVE_TWICE, "K1", "live-twice")     /* lives, runs or is frozen out of turn */       \
    X(RULE_LEASE, "K1", "past-lease")          /* begins something after its lease */           \
    X(RULE_LOST, "K3", "lost")                 /* answered OK and never ran */                  \
    X(RULE_DUPLICATED, "K3", "duplicated")     /* answered OK and ran twice */                  \
    X(RULE_RUN_TWICE, "K3", "run-twice")       /* ran twice, whatever was answered */           \
    X(RULE_REFUSED_RAN, "K3", "refused-ran")   /* answered REJECTED or NOKIND and ran */        \
    X(RULE_STATE, "K3", "state")               /* an actor woke without all it did */           \
    X(RULE_ORDER, "K4", "out-of-order")        /* ran after a later one of its lane */          \
    X(RULE_REAL_TIME, "K4", "before-its-time") /* ran before SEND, or after its OK */           \
    X(RULE_AGREEMENT, "K5", "disagreed")       /* outcomes, versions, digests */                \
    X(RULE_FENCED, "K6", "fenced")         /* acted after its REASSIGN, or with an old token */ \
    X(RULE_STALL, "K7", "stalled")         /* waited longer than the bound given */             \
    X(RULE_UNANSWERED, "K9", "unanswered") /* no answer, and nobody gave up */                  \
    X(RULE_INVENTED, "K9", "invented")     /* ran or answered, never sent */

enum history_rule {
#define X(name, checker, text) name,
    HISTORY_RULES(X)
#undef X
        HISTORY_RULES_COUNT
};
const char *history_rule_name(enum history_rule rule);    /* "live-twice" */
const char *history_rule_checker(enum history_rule rule); /* "K1" */

struct history_bounds {
    uint64_t stall_us; /* the longest that a request may wait; 0 = any */
    bool unfinished;   /* the history was cut off: requests may be open */
};

struct history_accusation {
    enum history_rule rule;
    const struct history_event *event;
    char text[HISTORY_TEXT_SIZE];
};

struct history_verdict {
    uint64_t broken[HISTORY_RULES_COUNT]; /* how often */
    uint64_t broken_total;
    struct history_accusation first; /* if broken_total > 0 */
    uint64_t events;
    uint64_t processes;
    uint64_t entities;
    uint64_t sessions;
    uint64_t requests;
    uint64_t answers[HISTORY_CODES];
    uint64_t no_reply;
    uint64_t abandoned; /* open when their session was closed or their client died */
    uint64_t open;
    uint64_t runs;
    uint64_t activations;
    uint64_t moved; /* activations on another process than before */
    uint64_t crashes;
    uint64_t overruns; /* runs that ended when their actor was live no more: no effect counted */
    uint64_t refused;  /* by stores */
    uint64_t wait_max_us;
    const struct history_event *waited; /* the SEND of the longest wait, NULL = none */
};

void history_judge(struct history_book *b, const struct history_bounds *bounds,
                   struct history_verdict *out);

/* The last events before and with the accused one that are about the same thing, oldest first;
 * how many, at most `max`. */
size_t history_context(const struct history_book *b, const struct history_event *accused,
                       const struct history_event **out, size_t max);

#endif
