/* SPDX-License-Identifier: Apache-2.0
 *
 * Times: how long do requests, activations and waits in mailboxes take, by kind, and how deep do
 * mailboxes get? For /metrics.
 *
 * No clock is read for it: a request counts from the step that took it to the step that answered
 * it. What runs at once is counted in a batch, with the time at which that was over, as whoever ran
 * it says.
 */
#ifndef NODE_HOST_TIMES_H
#define NODE_HOST_TIMES_H

#include "base/latency.h"
#include "wire/record.h"

#include <stddef.h>

struct host;
struct running;

/* Series of a kind's row. */
enum times_series {
    TIMES_REQUEST = 0, /* and enum answer_code */
    TIMES_MAILBOX = ANSWER_CODE_LAST + 1,
    TIMES_ACTIVATED,
    TIMES_NOT_ACTIVATED,
    TIMES_SERIES,
};
_Static_assert((int)TIMES_SERIES <= (int)LATENCY_SERIES, "a series for each");

/* How a request ended, in a word: of enum answer_code, in its order. */
extern const char *const times_answer_words[ANSWER_CODE_LAST + 1];

struct times {
    struct latencies all;
    uint32_t at_once[LATENCY_KINDS + 1]; /* that ran so, and are not counted in there yet; … */
    uint32_t errors[LATENCY_KINDS + 1];  /* … of these, those that are no OK */
    uint32_t kind; /* that was counted last, and its row; beyond 16 bits: none */
    uint32_t row;
    uint64_t deepest[2]; /* mailbox: of this window, and the one before */
    uint64_t window_us;  /* when this one began */
};

/* Hosted kinds have rows in their order (kind_state.row), the first LATENCY_KINDS of them. */
void times_init(struct host *h);
/* One of that row ran at once. */
static inline void times_at_once(struct times *t, uint32_t row, enum answer_code code)
{
    t->at_once[row]++;
    if (__builtin_expect(code != ANSWER_OK, false)) {
        t->errors[row]++;
    }
}
/* What ran at once in this step was over then. */
void times_end_batch(struct times *t, uint64_t us);
/* A request of that kind that came at `came_us`, and has not run, is ended in this step. */
void times_answered(struct host *h, uint16_t kind, uint64_t came_us, enum answer_code code);
/* Likewise, one that has run. */
void times_ran(struct host *h, uint16_t kind, const struct running *r, enum answer_code code);
/* An activation that began then is over. */
void times_activated(struct host *h, uint16_t kind, uint64_t began_us, bool lives);
/* Add to `out` how many requests actors of that row answered ever, by how long they took. Returns
 * how many that is. */
uint64_t times_add_took(const struct times *t, uint32_t row, uint64_t out[LATENCY_BUCKETS]);
/* Set `out` to that of all rows. */
void times_took(const struct times *t, uint64_t out[LATENCY_BUCKETS]);
/* So many wait in a mailbox. */
static inline void times_depth(struct times *t, size_t depth)
{
    t->deepest[0] = depth > t->deepest[0] ? depth : t->deepest[0];
}
/* Return the most that waited in one mailbox within the last 5 to 10 s. */
uint64_t times_deepest(const struct times *t);
void times_tick(struct host *h);

#endif
