/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process has counted, written out for who watches it: the text that
 * Prometheus scrapes (exposition format 0.0.4, or OpenMetrics 1.0.0), or an
 * object of JSON with the same names. Values are rendered as they are put; nothing is kept.
 *
 * Names end in _total, _seconds or _bytes as Prometheus asks for; all rows of
 * one name follow each other. A label's value is a word of ours, never an id.
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include "base/bytes.h"
#include "base/latency.h"

#include <stdbool.h>
#include <stdint.h>

/* METRICS_OPEN: METRICS_OPEN_END ends what is whole, whoever has written parts of it. */
enum metrics_format { METRICS_TEXT, METRICS_OPEN, METRICS_JSON };
#define METRICS_OPEN_END "# EOF\n"
enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metrics {
    struct buffer *out; /* borrowed */
    enum metrics_format format;
    const char *last; /* name of the row before, borrowed; NULL = none */
};

/* A name, and what it means: static text. */
struct metric {
    const char *name;
    const char *help; /* a sentence without line break or backslash */
    enum metric_type type;
};

/* The object's "{" of JSON. `out` is appended to. */
void metrics_begin(struct metrics *m, enum metrics_format format, struct buffer *out);
/* Write the "}" that ends a series' labels. */
void metrics_end(struct metrics *m);

/* One value of a name that has no label. */
void metrics_put(struct metrics *m, const struct metric *metric, uint64_t value);
/* Write one of several values of a name: {label="word"}. `word` is quoted as the format wants
 * it. */
void metrics_put_labelled(struct metrics *m, const struct metric *metric, const char *label,
                          const char *word, uint64_t value);
/* Seconds, of microseconds. */
void metrics_put_us(struct metrics *m, const struct metric *metric, uint64_t us);

/* A number of a struct of figures, and what it is called. */
struct metrics_row {
    struct metric metric;
    size_t offset; /* of a uint64_t */
    bool is_us;    /* told as seconds */
};
void metrics_put_rows(struct metrics *m, const struct metrics_row *row, size_t count,
                      const void *stats);

/* Several numbers of one name, told apart by a label. */
struct metrics_word {
    const char *word;
    size_t offset; /* of a uint64_t */
};
void metrics_put_words(struct metrics *m, const struct metric *metric, const char *label,
                       const struct metrics_word *word, size_t count, const void *stats);

/* How often something took how long. Bucket i counts up to metrics_bound_us(i), and not what a
 * lower one counts; the last counts the rest. */
enum { METRICS_BUCKETS = 14 };
struct metrics_times {
    uint64_t bucket[METRICS_BUCKETS];
    uint64_t sum_us;
};
/* 1 ms, 2 ms, 5 ms … 10 s; UINT64_MAX for the last. */
uint64_t metrics_bound_us(unsigned bucket);
void metrics_time(struct metrics_times *t, uint64_t us);
/* Count what `more` counts, too. */
void metrics_add_times(struct metrics_times *t, const struct metrics_times *more);
/* Write the times as a histogram of Prometheus: name_bucket{label="word",le="0.001"}, name_sum,
 * name_count. `label` NULL: without one. */
void metrics_put_times(struct metrics *m, const struct metric *metric, const char *label,
                       const char *word, const struct metrics_times *times);

/* Count how often there were how many: 1, 2, 5, 10 … 10000 of something. */
void metrics_count(struct metrics_times *t, uint64_t count);
/* Write what metrics_count() counted. */
void metrics_put_counts(struct metrics *m, const struct metric *metric,
                        const struct metrics_times *counts);

struct exemplars;

/* Write what was counted of each kind as histograms of Prometheus: name_bucket{kind="1",
 * label="word",le="0.000064"}, and so on. Series `first` and those behind it are of these words; a
 * word is static text. What was never counted is not written. `e`: exemplars for OpenMetrics, of
 * the same outcomes; NULL = none. */
struct metrics_series {
    const char *label; /* NULL = by kind alone, and there is one series */
    const char *const *word;
    unsigned first;
    unsigned count;
};
void metrics_put_latencies(struct metrics *m, const struct metric *metric,
                           const struct metrics_series *series, const struct latencies *l,
                           const struct exemplars *e);

#endif
