/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes figures for Prometheus, or as JSON: names, labels, histograms.
 */
#include "base/metrics.h"

#include "base/exemplar.h"
#include "base/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t bounds_us[METRICS_BUCKETS] = {
    1000,
    2000,
    5000,
    10000,
    20000,
    50000,
    100000,
    200000,
    500000,
    1000000,
    2000000,
    5000000,
    10000000,
    UINT64_MAX,
};

void metrics_begin(struct metrics *m, enum metrics_format format, struct buffer *out)
{
    *m = (struct metrics){.out = out, .format = format};
    if (format == METRICS_JSON) {
        buffer_put_format(m->out, "{");
    }
}

void metrics_end(struct metrics *m)
{
    if (m->format == METRICS_JSON) {
        buffer_put_format(m->out, "}");
    }
}

/* Quotes, backslashes and line breaks: all formats write them alike, and words have no other
 * control characters that JSON would mind. */
static void put_escaped(struct metrics *m, const char *word)
{
    for (; *word != '\0'; word++) {
        if (*word == '\n') {
            buffer_put_format(m->out, "\\n");
        } else if (*word == '"' || *word == '\\') {
            buffer_put_format(m->out, "\\%c", *word);
        } else if ((unsigned char)*word >= ' ') {
            buffer_put_format(m->out, "%c", *word);
        }
    }
}

static void put_quoted(struct metrics *m, const char *word)
{
    buffer_put_format(m->out, "\"");
    put_escaped(m, word);
    buffer_put_format(m->out, "\"");
}

/* Of the name, as # HELP and # TYPE have it: in OpenMetrics a counter's is without _total. */
static int family_size(const struct metrics *m, const struct metric *metric)
{
    static const char total[] = "_total";
    const size_t size = strlen(metric->name);
    const size_t end = sizeof total - 1;
    const bool cut = m->format == METRICS_OPEN && metric->type == METRIC_COUNTER && size > end &&
                     strcmp(metric->name + size - end, total) == 0;

    return (int)(cut ? size - end : size);
}

static void put_unit(struct metrics *m, const char *name, size_t size)
{
    static const char *const units[] = {"seconds", "bytes"};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const size_t end = strlen(units[i]);

        if (size > end && name[size - end - 1] == '_' &&
            memcmp(name + size - end, units[i], end) == 0) {
            buffer_put_format(m->out, "# UNIT %.*s %s\n", (int)size, name, units[i]);
        }
    }
}

/* # HELP and # TYPE, once a name. */
static void put_head(struct metrics *m, const struct metric *metric)
{
    static const char *const types[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};

    if (m->last == metric->name) {
        return;
    }
    m->last = metric->name;
    if (m->format != METRICS_JSON) {
        const int size = family_size(m, metric);

        buffer_put_format(m->out, "# HELP %.*s %s\n", size, metric->name, metric->help);
        buffer_put_format(m->out, "# TYPE %.*s %s\n", size, metric->name, types[metric->type]);
        if (m->format == METRICS_OPEN) {
            put_unit(m, metric->name, (size_t)size);
        }
    }
}

static void put_comma(struct metrics *m)
{
    if (m->out->size > 0 && m->out->data[m->out->size - 1] != '{') {
        buffer_put_format(m->out, ",");
    }
}

/* All up to the value. A label is part of the key in JSON: "name{word}". */
static void put_name(struct metrics *m, const struct metric *metric, const char *label,
                     const char *word)
{
    if (m->format == METRICS_JSON) {
        put_comma(m);
        buffer_put_format(m->out, "\"%s", metric->name);
        if (word != NULL) {
            buffer_put_format(m->out, "{");
            put_escaped(m, word);
            buffer_put_format(m->out, "}");
        }
        buffer_put_format(m->out, "\":");
        return;
    }
    put_head(m, metric);
    buffer_put_format(m->out, "%s", metric->name);
    if (word != NULL) {
        buffer_put_format(m->out, "{%s=\"", label);
        put_escaped(m, word);
        buffer_put_format(m->out, "\"}");
    }
    buffer_put_format(m->out, " ");
}

/* Seconds to the microsecond, without a float's doubts. */
static void put_us(struct metrics *m, uint64_t us)
{
    buffer_put_format(m->out, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
}

static void put_line_end(struct metrics *m)
{
    if (m->format != METRICS_JSON) {
        buffer_put_format(m->out, "\n");
    }
}

void metrics_put_labelled(struct metrics *m, const struct metric *metric, const char *label,
                          const char *word, uint64_t value)
{
    put_name(m, metric, label, word);
    buffer_put_format(m->out, "%" PRIu64, value);
    put_line_end(m);
}

void metrics_put(struct metrics *m, const struct metric *metric, uint64_t value)
{
    metrics_put_labelled(m, metric, NULL, NULL, value);
}

static void metrics_put_us_labelled(struct metrics *m, const struct metric *metric,
                                    const char *label, const char *word, uint64_t us)
{
    put_name(m, metric, label, word);
    put_us(m, us);
    put_line_end(m);
}

void metrics_put_us(struct metrics *m, const struct metric *metric, uint64_t us)
{
    metrics_put_us_labelled(m, metric, NULL, NULL, us);
}

static uint64_t value_at(const void *stats, size_t offset)
{
    uint64_t value;

    memcpy(&value, (const char *)stats + offset, sizeof value);
    return value;
}

void metrics_put_rows(struct metrics *m, const struct metrics_row *row, size_t count,
                      const void *stats)
{
    for (size_t i = 0; i < count; i++) {
        (row[i].is_us ? metrics_put_us
                      : metrics_put)(m, &row[i].metric, value_at(stats, row[i].offset));
    }
}

void metrics_put_words(struct metrics *m, const struct metric *metric, const char *label,
                       const struct metrics_word *word, size_t count, const void *stats)
{
    for (size_t i = 0; i < count; i++) {
        metrics_put_labelled(m, metric, label, word[i].word, value_at(stats, word[i].offset));
    }
}

/* ---- histograms ---- */

uint64_t metrics_bound_us(unsigned bucket)
{
    return bounds_us[bucket < METRICS_BUCKETS ? bucket : METRICS_BUCKETS - 1];
}

void metrics_time(struct metrics_times *t, uint64_t us)
{
    unsigned i = 0;

    while (us > bounds_us[i]) {
        i++;
    }
    t->bucket[i]++;
    t->sum_us += us;
}

void metrics_add_times(struct metrics_times *t, const struct metrics_times *more)
{
    for (unsigned i = 0; i < METRICS_BUCKETS; i++) {
        t->bucket[i] += more->bucket[i];
    }
    t->sum_us += more->sum_us;
}

/* What a row of a histogram says besides its number. */
struct series {
    const char *name;
    const char *kind;  /* of actors; NULL = it is of no kind */
    const char *label; /* NULL = it has none */
    const char *word;
    bool counts; /* of things: a thousandth of what is told as seconds */
};

static void put_value(struct metrics *m, const struct series *s, uint64_t us)
{
    if (s->counts) {
        buffer_put_format(m->out, "%" PRIu64, us / 1000);
    } else {
        put_us(m, us);
    }
}

/* kind="1",label="word", as far as it has them. Returns true if it has one. */
static bool put_labels(struct metrics *m, const struct series *s)
{
    if (s->kind != NULL) {
        buffer_put_format(m->out, "kind=\"%s\"", s->kind);
    }
    if (s->label != NULL) {
        buffer_put_format(m->out, s->kind != NULL ? ",%s=" : "%s=", s->label);
        put_quoted(m, s->word);
    }
    return s->kind != NULL || s->label != NULL;
}

/* 0.001, 1.0: as OpenMetrics wants bounds, which are the same however they are asked for. */
static void put_bound(struct metrics *m, const struct series *s, uint64_t bound_us)
{
    put_value(m, s, bound_us);
    if (s->counts) {
        buffer_put_format(m->out, ".0");
        return;
    }
    while (m->out->data[m->out->size - 1] == '0' && m->out->data[m->out->size - 2] != '.') {
        m->out->size--;
    }
}

/* # {trace_id="…",span_id="…"} took when */
static void put_exemplar(struct metrics *m, const struct exemplar *e, uint64_t wall_us)
{
    char trace[2 * TRACE_ID_SIZE + 1];
    char span[2 * TRACE_SPAN_SIZE + 1];

    buffer_put_format(m->out,
                      " # {trace_id=\"%s\",span_id=\"%s\"} ",
                      traceparent_hex(e->context.trace, TRACE_ID_SIZE, trace),
                      traceparent_hex(e->context.span, TRACE_SPAN_SIZE, span));
    put_us(m, e->took_us);
    buffer_put_format(m->out, " ");
    put_us(m, e->at_us + wall_us);
}

/* name_bucket{label="word",le="0.001"} */
static void put_bucket(struct metrics *m, const struct series *s, uint64_t bound_us, uint64_t count)
{
    buffer_put_format(m->out, "%s_bucket{", s->name);
    buffer_put_format(m->out, put_labels(m, s) ? ",le=\"" : "le=\"");
    if (bound_us == UINT64_MAX) {
        buffer_put_format(m->out, "+Inf");
    } else {
        put_bound(m, s, bound_us);
    }
    buffer_put_format(m->out, "\"} %" PRIu64, count);
}

/* "name_sum{label="word"} ", of JSON "name_sum{word}": */
static void put_row_name(struct metrics *m, const struct series *s, const char *what)
{
    const bool json = m->format == METRICS_JSON;

    buffer_put_format(m->out, json ? "\"%s_%s" : "%s_%s", s->name, what);
    if (json && (s->kind != NULL || s->label != NULL)) {
        buffer_put_format(m->out,
                          s->kind != NULL && s->label != NULL ? "{%s,%s}" : "{%s%s}",
                          s->kind != NULL ? s->kind : "",
                          s->label != NULL ? s->word : "");
    } else if (s->kind != NULL || s->label != NULL) {
        buffer_put_format(m->out, "{");
        (void)put_labels(m, s);
        buffer_put_format(m->out, "}");
    }
    buffer_put_format(m->out, json ? "\":" : " ");
}

/* name_sum and name_count: all that JSON tells. */
static void put_whole(struct metrics *m, const struct series *s, uint64_t sum_us, uint64_t count)
{
    const bool json = m->format == METRICS_JSON;

    if (json) {
        put_comma(m);
    }
    put_row_name(m, s, "sum");
    put_value(m, s, sum_us);
    buffer_put_format(m->out, json ? "," : "\n");
    put_row_name(m, s, "count");
    buffer_put_format(m->out, json ? "%" PRIu64 : "%" PRIu64 "\n", count);
}

static void put_series(struct metrics *m, const struct metric *metric, const struct series *s,
                       const struct metrics_times *times)
{
    uint64_t count = 0;

    if (m->format != METRICS_JSON) {
        put_head(m, metric);
    }
    for (unsigned i = 0; i < METRICS_BUCKETS; i++) {
        count += times->bucket[i];
        if (m->format != METRICS_JSON) {
            put_bucket(m, s, bounds_us[i], count);
            buffer_put_format(m->out, "\n");
        }
    }
    put_whole(m, s, times->sum_us, count);
}

void metrics_put_times(struct metrics *m, const struct metric *metric, const char *label,
                       const char *word, const struct metrics_times *times)
{
    put_series(
        m, metric, &(struct series){.name = metric->name, .label = label, .word = word}, times);
}

void metrics_count(struct metrics_times *t, uint64_t count)
{
    metrics_time(t, count * 1000);
}

void metrics_put_counts(struct metrics *m, const struct metric *metric,
                        const struct metrics_times *counts)
{
    put_series(m, metric, &(struct series){.name = metric->name, .counts = true}, counts);
}

/* `kind` of the exemplars. */
static void put_latency(struct metrics *m, const struct metric *metric, const struct series *s,
                        const struct latency *l, const struct exemplars *e, int32_t kind)
{
    const bool text = m->format != METRICS_JSON;
    uint64_t count = 0;

    if (text) {
        put_head(m, metric);
    }
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        const uint64_t in_it = latency_read(&l->bucket[i]);
        const struct exemplar *last =
            e == NULL || in_it == 0 ? NULL : exemplars_find(e, kind, s->word, i);

        count += in_it;
        if (text) {
            put_bucket(m, s, latency_bound_us(i), count);
            if (last != NULL) {
                put_exemplar(m, last, e->wall_us);
            }
            buffer_put_format(m->out, "\n");
        }
    }
    put_whole(m, s, latency_read(&l->sum_us), count);
}

void metrics_put_latencies(struct metrics *m, const struct metric *metric,
                           const struct metrics_series *series, const struct latencies *l,
                           const struct exemplars *e)
{
    const uint32_t rows = atomic_load_explicit(&l->count, memory_order_acquire);
    char kind[8] = "other";

    for (uint32_t i = 0; i <= rows; i++) {
        if (i > 0) {
            (void)snprintf(kind, sizeof kind, "%u", l->row[i].kind);
        }
        for (unsigned s = 0; s < series->count; s++) {
            const struct latency *one = &l->row[i].of[series->first + s];

            if (latency_count(one) > 0) {
                put_latency(
                    m,
                    metric,
                    &(struct series){.name = metric->name,
                                     .kind = kind,
                                     .label = series->label,
                                     .word = series->label == NULL ? NULL : series->word[s]},
                    one,
                    e,
                    i == 0 ? EXEMPLAR_OTHER : l->row[i].kind);
            }
        }
    }
}
