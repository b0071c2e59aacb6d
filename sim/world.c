/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual time: the queue of events, random draws, the first violation.
 */
#include "sim/world.h"

#include "base/mem.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { AT_ONCE_MAX = 1000000 };

void world_init(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    // Neighbouring seeds must not give neighbouring streams.
    w->prng.state = table_mix(seed * 0x9e3779b97f4a7c15u + 1);
}

void world_fini(struct world *w)
{
    for (size_t i = 0; i < w->heap_count; i++) {
        mem_free(w->heap[i].data);
    }
    mem_free(w->heap);
    w->heap = NULL;
    w->heap_count = w->heap_cap = 0;
}

static bool sooner(const struct world_event *a, const struct world_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void swap(struct world_event *a, struct world_event *b)
{
    const struct world_event t = *a;

    *a = *b;
    *b = t;
}

void world_at(struct world *w, uint64_t at_us, struct world_event event)
{
    size_t i = w->heap_count;

    if (w->heap_count == w->heap_cap) {
        w->heap_cap = w->heap_cap == 0 ? 256 : 2 * w->heap_cap;
        w->heap = mem_resize(w->heap, w->heap_cap * sizeof *w->heap);
    }
    event.at_us = at_us > w->now_us ? at_us : w->now_us;
    event.order = ++w->order;
    w->heap[w->heap_count++] = event;
    while (i > 0 && sooner(&w->heap[i], &w->heap[(i - 1) / 2])) {
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

static struct world_event pop(struct world *w)
{
    const struct world_event first = w->heap[0];
    size_t i = 0;

    w->heap[0] = w->heap[--w->heap_count];
    for (;;) {
        size_t least = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < w->heap_count; child++) {
            if (sooner(&w->heap[child], &w->heap[least])) {
                least = child;
            }
        }
        if (least == i) {
            return first;
        }
        swap(&w->heap[i], &w->heap[least]);
        i = least;
    }
}

void world_shut(struct world_gate *gate)
{
    gate->shut = true;
}

void world_open(struct world *w, struct world_gate *gate)
{
    const size_t count = gate->count;

    gate->shut = false;
    gate->count = 0;
    for (unsigned turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < count; i++) {
            if (gate->late[i].timer == (turn == 0)) {
                world_at(w, w->now_us, gate->late[i]);
            }
        }
    }
}

void world_gate_fini(struct world_gate *gate)
{
    for (size_t i = 0; i < gate->count; i++) {
        mem_free(gate->late[i].data);
    }
    mem_free(gate->late);
    *gate = (struct world_gate){0};
}

static void wait_at(struct world_gate *gate, const struct world_event *e)
{
    if (gate->count == gate->cap) {
        gate->cap = gate->cap == 0 ? 64 : 2 * gate->cap;
        gate->late = mem_resize(gate->late, gate->cap * sizeof *gate->late);
    }
    gate->late[gate->count++] = *e;
}

void world_run_until(struct world *w, uint64_t until_us)
{
    while (w->checker == NULL && w->heap_count > 0 && w->heap[0].at_us <= until_us) {
        struct world_event e = pop(w);

        w->at_once = e.at_us == w->now_us ? w->at_once + 1 : 0;
        if (w->at_once > AT_ONCE_MAX) {
            world_violate(w, "livelock", "events without end at one moment");
        }
        w->now_us = e.at_us;
        if (e.gate != NULL && e.gate->shut) {
            wait_at(e.gate, &e);
            continue;
        }
        w->events++;
        w->hash = table_mix(w->hash ^ e.at_us ^ (e.order << 20) ^ (e.a << 40));
        e.run(e.context, &e);
        mem_free(e.data);
    }
    if (w->checker == NULL && w->now_us < until_us) {
        w->now_us = until_us;
    }
}

uint64_t world_between(struct world *w, uint64_t low, uint64_t high)
{
    return prng_between(&w->prng, low, high);
}

bool world_chance(struct world *w, uint64_t per_mille)
{
    return per_mille > 0 && prng_between(&w->prng, 1, 1000) <= per_mille;
}

uint64_t world_gap(struct world *w, uint64_t mean_us)
{
    return prng_between(&w->prng, 1, 2 * mean_us);
}

void world_trace(struct world *w, const char *who, const char *format, ...)
{
    char *line = w->line[w->line_count++ % WORLD_LINES_KEPT];
    const int n = snprintf(line,
                           WORLD_LINE_MAX,
                           "%3" PRIu64 ".%06" PRIu64 " %-5s ",
                           w->now_us / 1000000,
                           w->now_us % 1000000,
                           who);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line + n, (size_t)(WORLD_LINE_MAX - n), format, args);
    va_end(args);
    if (w->print) {
        (void)puts(line);
    }
}

void world_violate(struct world *w, const char *checker, const char *format, ...)
{
    va_list args;

    if (w->checker != NULL) {
        return;
    }
    w->checker = checker;
    w->violation_us = w->now_us;
    va_start(args, format);
    (void)vsnprintf(w->violation, sizeof w->violation, format, args);
    va_end(args);
    TRACE(w, "CHECK", "%s: %s", checker, w->violation);
}
