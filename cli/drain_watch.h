/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching a node get empty: a bar, how fast, how long yet, and whom it waits
 * for. Only watching: who stops it (^C) detaches, and the drain goes on.
 */
#ifndef CLI_DRAIN_WATCH_H
#define CLI_DRAIN_WATCH_H

#include "cli/query.h"

enum drain_end {
    DRAIN_EMPTY,    /* it owns nothing, or is gone */
    DRAIN_NOT_YET,  /* wait_s are over */
    DRAIN_DETACHED, /* ^C */
    DRAIN_NOBODY,   /* no coordinator answers; why is printed */
};

/* How far a drain is. */
struct drain_pace {
    uint32_t done; /* vnodes */
    uint32_t left;
    uint64_t moved_us; /* that it took: what was waited for a time is not counted */
    uint64_t wait_us;  /* some that are planned begin in so long only; 0 = none does */
    bool moves;        /* others are under way meanwhile */
};
/* Return the microseconds that it takes yet; 0 = nothing moved so far, and nobody knows. The least
 * that it takes, while `done` is 0. */
uint64_t drain_eta_us(const struct drain_pace *pace);

/* Watch node `name` for at most wait_s seconds; 0 = as long as it takes. On a terminal (stderr) two
 * lines are drawn anew; elsewhere a line is printed when a tenth is done, and for each new blocker.
 * Takes SIGINT over while it lasts. */
enum drain_end drain_watch(const struct query *q, const char *name, uint32_t wait_s);

/* Return the exit code of a command that ends with the watch. */
int drain_exit_code(enum drain_end end);

/* Ask for the drain of a node, or take it back; tells on stdout what comes of it. False after
 * printing why not. */
bool drain_wish(const struct query *q, const char *node, bool cancel);

#endif
