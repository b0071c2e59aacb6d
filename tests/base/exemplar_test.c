/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/exemplar.h: which request is told of a bucket, and how OpenMetrics has it.
 */
#include "base/exemplar.h"

#include "tests/test.h"

#include <string.h>

static struct exemplars e;
static struct latencies l;

/* One that has taken so long. `id`: of its trace and its span. */
static struct trace_span ended(uint16_t kind, const char *outcome, uint64_t took_us, int id)
{
    struct trace_span span = {.what = SPAN_REQUEST,
                              .came_us = 1000,
                              .to_us = 1000 + took_us,
                              .outcome = outcome,
                              .kind = kind,
                              .is_counted = true,
                              .has_row = true};

    memset(span.context.trace, id, TRACE_ID_SIZE);
    memset(span.context.span, id, TRACE_SPAN_SIZE);
    return span;
}

static void note(const struct trace_span *span)
{
    exemplars_note(&e, span);
}

static void assert_told(int32_t kind, const char *outcome, unsigned bucket, int id)
{
    const struct exemplar *found = exemplars_find(&e, kind, outcome, bucket);

    assert_non_null(found);
    assert_int_equal(found->context.trace[0], id);
}

static void the_last_of_each_bucket_is_told(void **state)
{
    (void)state;
    memset(&e, 0, sizeof e);
    assert_null(exemplars_find(&e, 3, "ok", 0));
    assert_null(exemplars_find(&e, EXEMPLAR_OTHER, "ok", 0));
    struct trace_span span = ended(3, NULL, 10, 1);
    note(&span);
    span = ended(3, NULL, 63, 2); // the same bucket
    note(&span);
    span = ended(3, NULL, UINT64_MAX / 2, 3);
    note(&span);
    span = ended(3, "error", 64, 4);
    note(&span);
    assert_told(3, "ok", 0, 2);
    assert_told(3, NULL, LATENCY_BUCKETS - 1, 3);
    assert_told(3, "error", 1, 4);
    assert_null(exemplars_find(&e, 3, "error", 0));
    assert_null(exemplars_find(&e, 3, "timeout", 0));
    assert_null(exemplars_find(&e, 4, "ok", 0));
    span.is_counted = false; // a hold, a commit
    span.to_us = span.came_us;
    note(&span);
    assert_null(exemplars_find(&e, 3, "error", 0));
}

static void kinds_without_a_row_share_one_and_open_none(void **state)
{
    (void)state;
    memset(&e, 0, sizeof e);
    for (uint16_t kind = 0; kind < 100; kind++) {
        struct trace_span span = ended(kind, "no_kind", 10, 1);

        span.has_row = false;
        note(&span);
    }
    assert_told(EXEMPLAR_OTHER, "no_kind", 0, 1);
    assert_int_equal(e.kinds, 0);
    for (int kind = 0; kind < LATENCY_KINDS + 1; kind++) {
        const struct trace_span span = ended((uint16_t)kind, NULL, 10, 2);

        note(&span);
    }
    assert_told(0, "ok", 0, 2);
    assert_told(LATENCY_KINDS - 1, "ok", 0, 2);
    assert_null(exemplars_find(&e, LATENCY_KINDS, "ok", 0)); // there was no room
}

static void openmetrics_has_it_behind_the_bucket(void **state)
{
    static const char *const outcomes[] = {"ok", "error"};
    static const struct metric took = {"t_seconds", "Took.", METRIC_HISTOGRAM};
    static const struct metrics_series by_outcome = {
        .label = "outcome", .word = outcomes, .count = 2};
    static const char line[] =
        "t_seconds_bucket{kind=\"3\",outcome=\"error\",le=\"0.000128\"} 1 # "
        "{trace_id=\"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\",span_id=\"0a0a0a0a0a0a0a0a\"} 0.000100 "
        "1700000000.001100\n";
    struct trace_span span = ended(3, "error", 100, 0x0a);
    struct buffer out = {0};
    struct metrics m;

    (void)state;
    memset(&e, 0, sizeof e);
    memset(&l, 0, sizeof l);
    e.wall_us = UINT64_C(1700000000000000);
    latency_add(&l.row[latencies_row(&l, 3)].of[1], 100, 1);
    note(&span);
    span = ended(3, "error", 10, 0x0b); // of a bucket that counts nothing
    note(&span);
    for (enum metrics_format format = METRICS_TEXT; format <= METRICS_OPEN; format++) {
        metrics_begin(&m, format, &out);
        metrics_put_latencies(&m, &took, &by_outcome, &l, format == METRICS_OPEN ? &e : NULL);
        buffer_put(&out, "", 1);
        assert_int_equal(strstr((const char *)out.data, line) != NULL, format == METRICS_OPEN);
        assert_null(strstr((const char *)out.data, "0b0b"));
        buffer_clear(&out);
    }
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_of_each_bucket_is_told),
        cmocka_unit_test(kinds_without_a_row_share_one_and_open_none),
        cmocka_unit_test(openmetrics_has_it_behind_the_bucket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
