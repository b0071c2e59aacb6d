/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated world: virtual time, one seed, the events still to come, and
 * the first rule that was broken.
 *
 * Everything that happens is an event on one heap, ordered by time and then by
 * the order of its making; all randomness comes from one prng. So one seed is
 * one history, on every machine.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/bytes.h"
#include "base/prng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORLD_LINE_MAX = 240, WORLD_LINES_KEPT = 60 };

struct world_event;

/* A process that may stand still: its events wait until it goes on, in their order, its timers
 * before what it reads, as libuv has it. */
struct world_gate {
    bool shut;
    struct world_event *late; /* owned */
    size_t count;
    size_t cap;
};

typedef void (*world_run)(void *context, const struct world_event *event);

/* An event for later. a, b, c and data belong to the caller. */
struct world_event {
    uint64_t at_us;
    uint64_t order; /* set by world_at() */
    world_run run;
    void *context;
    uint64_t a;
    uint64_t b;
    uint64_t c;
    void *data;              /* owned by the world from world_at() on: freed after `run` */
    struct world_gate *gate; /* borrowed; NULL = it never waits */
    bool timer;              /* of the process itself: nothing comes from outside */
};

struct world {
    uint64_t seed;
    uint64_t now_us;
    struct prng prng;
    struct world_event *heap; /* owned */
    size_t heap_count;
    size_t heap_cap;
    uint64_t order;
    uint64_t hash;    /* of the history so far: two runs of a seed must agree */
    uint64_t events;  /* done */
    uint64_t at_once; /* of them, at this moment */
    bool print;       /* each trace line to stdout */
    bool keep;        /* the last lines in `line`, for the report of a violation */
    char line[WORLD_LINES_KEPT][WORLD_LINE_MAX];
    uint64_t line_count;
    const char *checker; /* that was violated first; NULL = none */
    char violation[WORLD_LINE_MAX];
    uint64_t violation_us;
};

void world_init(struct world *w, uint64_t seed);
void world_fini(struct world *w);

/* Schedule. Times in the past mean now. */
void world_at(struct world *w, uint64_t at_us, struct world_event event);
/* Do everything up to and including `until_us`, or until a violation. */
void world_run_until(struct world *w, uint64_t until_us);

/* From now on events with this gate wait. */
void world_shut(struct world_gate *gate);
/* Run now what waited at the gate. */
void world_open(struct world *w, struct world_gate *gate);
void world_gate_fini(struct world_gate *gate);

/* Uniform in [low, high]. */
uint64_t world_between(struct world *w, uint64_t low, uint64_t high);
/* True `per_mille` times of a thousand. */
bool world_chance(struct world *w, uint64_t per_mille);
/* Time from now to the next of events that come every `mean_us` on average; mean_us > 0. */
uint64_t world_gap(struct world *w, uint64_t mean_us);

/* One line of trace: time, process, what. Call it through TRACE, which costs nothing when off. */
void world_trace(struct world *w, const char *who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define TRACE(world, ...)                      \
    do {                                       \
        if ((world)->print || (world)->keep) { \
            world_trace((world), __VA_ARGS__); \
        }                                      \
    } while (0)

/* A rule was broken. Only the first is kept; the run stops after the event. */
void world_violate(struct world *w, const char *checker, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
