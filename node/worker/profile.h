/* SPDX-License-Identifier: Apache-2.0
 *
 * Which actors of a worker took most of its time lately? A sketch of bounded
 * size: 64 counters (space-saving, Metwally et al. 2005). Whoever took more than
 * a 64th of a window's time is surely among them; a count may be too high by what
 * the counter's previous owner had, never too low.
 *
 * Time may come in portions of up to 50 us that belong to several who took turns: whoever is at
 * work when one is full gets it, which is right on the average (complete_uv.c).
 *
 * Two windows, the last whole one and the one that runs, so that what is told is
 * of the last 5 to 10 seconds.
 *
 * Pure.
 */
#ifndef NODE_WORKER_PROFILE_H
#define NODE_WORKER_PROFILE_H

#include "base/bytes.h"
#include "wire/record.h"

enum { HOT_COUNTERS = 64, PROFILE_WINDOW_US = 5000000 };

struct profile_counter {
    uint64_t hash;
    uint64_t busy_us;
    uint64_t tasks;
    uint16_t kind;
    uint8_t id_size;
    uint8_t id[RECORD_ID_MAX];
};

struct profile_window {
    struct profile_counter counter[HOT_COUNTERS];
    size_t count;
};

/* All zero is a valid empty one. */
struct profile {
    struct profile_window window[2];
    size_t now; /* index of the window that runs */
    uint64_t since_us;
};

/* The actor was busy for so long. `counter->hash` covers kind and id. */
void profile_add(struct profile *h, uint64_t now_us, const struct profile_counter *counter);
/* The busiest first, at most `max`. Returns how many. */
size_t profile_top(struct profile *h, uint64_t now_us, struct profile_counter *out, size_t max);

#endif
