/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of the demo: what its story, its waiting and its result share.
 */
#ifndef DEMO_DEMO_H
#define DEMO_DEMO_H

#include "daemon/admin.h"
#include "demo/fleet.h"
#include "demo/load_uv.h"

enum { DEMO_ASK_MS = 15000, DEMO_SETTLE_MS = 60000 };

struct demo {
    uint32_t seconds;
    uint32_t ids;
    uint32_t rate;
    uint32_t seed;
    bool keep;
    char history_path[4096]; /* "" = none */
    struct history *history;
    uint64_t start_us;
    struct fleet fleet;
    struct admin *admin;
    struct load *load;
    uint64_t held; /* requests, ever, of all nodes */
    uint64_t hold_us_max;
    uint64_t joined; /* ids that the joining node took over */
    bool killed_in_prepare;
    uint64_t killed_txn;
    char killed_what[128];
};

/* ---- watch.c */

/* From now on an interrupt ends the waiting. */
void demo_catch_interrupts(void);
/* Print a line of the story, behind the time. */
void demo_say(const struct demo *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ask the leader; NULL = no answer came. admin_free() it. */
Rh__AdminReply *demo_ask_status(struct demo *d);
Rh__AdminReply *demo_ask_txns(struct demo *d, uint32_t limit);
Rh__AdminReply *demo_ask_txn(struct demo *d, uint64_t number);
/* Note what the nodes of a status held. */
void demo_note_holds(struct demo *d, const Rh__AdminReply *reply);
/* True if nobody interrupted the demo and all processes live; false after printing why. */
bool demo_healthy(struct demo *d);
/* Show one line on a terminal, until the next output. */
void demo_progress(struct demo *d, const char *what);
void demo_end_progress(void);
/* Let the load run. */
bool demo_run_for(struct demo *d, uint32_t ms, const char *what);
/* Wait until nothing moves or is planned, and `name` owns something (or nothing). */
bool demo_wait_settled(struct demo *d, const char *name, bool owns, const char *what);

/* ---- result.c */

/* Prints it; what the process exits with. */
int demo_result(struct demo *d, bool played, uint64_t load_us);

#endif
