/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of a Raft world's events, and its trace.
 */
#include "sim/raft/inside.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

void raft_world_trace(struct raft_world *w, uint64_t value)
{
    w->result->trace = (w->result->trace ^ value) * 1099511628211u;
}

void raft_world_violation(struct raft_world *w, const struct sim_voter *n, const char *what)
{
    char *first = w->result->first_violation;

    if (w->result->violations++ == 0) {
        (void)snprintf(first,
                       sizeof w->result->first_violation,
                       "t=%.3fs voter %u index %" PRIu64 ": %s",
                       (double)w->now_us / 1e6,
                       n->place + 1,
                       n->applied,
                       what);
    }
    if (w->options.verbose) {
        printf("%10.3f  voter %u  VIOLATION %s\n", (double)w->now_us / 1e6, n->place + 1, what);
    }
}

void raft_world_say(const struct raft_world *w, const struct sim_voter *n, const char *what)
{
    if (w->options.verbose) {
        printf("%10.3f  voter %u  %s\n", (double)w->now_us / 1e6, n->place + 1, what);
    }
}

/* ---- event heap ---- */

static bool is_before(const struct raft_event *a, const struct raft_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->number < b->number;
}

void raft_world_push(struct raft_world *w, struct raft_event event)
{
    if (w->heap_count == w->heap_max) {
        w->heap_max = w->heap_max == 0 ? 256 : 2 * w->heap_max;
        w->heap = mem_resize(w->heap, w->heap_max * sizeof *w->heap);
    }
    event.number = w->event_number++;
    size_t at = w->heap_count++;
    for (; at > 0 && is_before(&event, &w->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        w->heap[at] = w->heap[(at - 1) / 2];
    }
    w->heap[at] = event;
}

struct raft_event raft_world_pop(struct raft_world *w)
{
    const struct raft_event top = w->heap[0];
    const struct raft_event last = w->heap[--w->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= w->heap_count) {
            break;
        }
        if (child + 1 < w->heap_count && is_before(&w->heap[child + 1], &w->heap[child])) {
            child++;
        }
        if (!is_before(&w->heap[child], &last)) {
            break;
        }
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return top;
}

void raft_world_push_for(struct raft_world *w, enum raft_event_kind kind, const struct sim_voter *n,
                         uint64_t at_us)
{
    raft_world_push(
        w, (struct raft_event){.at_us = at_us, .kind = kind, .node = n->place, .life = n->life});
}
