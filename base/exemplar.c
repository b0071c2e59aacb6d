/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes the last traced request of each bucket.
 */
#include "base/exemplar.h"

#include "base/mem.h"

#include <string.h>

/* `kinds` + 1: none. */
static uint32_t row_of(const struct exemplars *e, int32_t kind)
{
    uint32_t row = 1;

    if (kind == EXEMPLAR_OTHER) {
        return 0;
    }
    while (row <= e->kinds && e->kind[row] != kind) {
        row++;
    }
    return row;
}

/* `outcomes`: none. */
static uint32_t series_of(const struct exemplars *e, const char *outcome)
{
    uint32_t series = 0;

    while (series < e->outcomes && strcmp(e->outcome[series], outcome) != 0) {
        series++;
    }
    return series;
}

void exemplars_note(struct exemplars *e, const struct trace_span *span)
{
    const char *outcome = span->outcome == NULL ? "ok" : span->outcome;
    const uint32_t row = row_of(e, span->has_row ? span->kind : EXEMPLAR_OTHER);
    const uint32_t series = series_of(e, outcome);

    if (!span->is_counted || row > LATENCY_KINDS || series >= LATENCY_SERIES) {
        return;
    }
    if (row > e->kinds) {
        e->kind[++e->kinds] = span->kind;
    }
    if (series == e->outcomes) {
        e->outcome[e->outcomes++] = outcome;
    }
    const uint64_t took_us = span->to_us - span->came_us;
    e->of[row][series][latency_bucket(took_us)] = (struct exemplar){
        .context = span->context, .took_us = took_us, .at_us = span->to_us, .is_there = true};
}

const struct exemplar *exemplars_find(const struct exemplars *e, int32_t kind, const char *outcome,
                                      unsigned bucket)
{
    const uint32_t row = row_of(e, kind);
    const uint32_t series = series_of(e, outcome == NULL ? "ok" : outcome);

    if (row > e->kinds || series == e->outcomes || !e->of[row][series][bucket].is_there) {
        return NULL;
    }
    return &e->of[row][series][bucket];
}

struct exemplars *exemplars_copy(const struct tracing *tracing, const struct metrics *m,
                                 bool of_calls)
{
    if (tracing == NULL || m->format != METRICS_OPEN) {
        return NULL;
    }
    struct exemplars *copy = mem_new(1, sizeof *copy);

    tracing->exemplars(tracing->context, of_calls, copy);
    return copy;
}
