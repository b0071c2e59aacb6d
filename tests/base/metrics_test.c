/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/metrics.h: the text for Prometheus, and JSON.
 */
#include "base/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct stats {
    uint64_t count;
    uint64_t us;
};

static const struct metrics_row rows[] = {
    {{"a_total", "How many.", METRIC_COUNTER}, offsetof(struct stats, count), false},
    {{"b_seconds", "How long.", METRIC_GAUGE}, offsetof(struct stats, us), true},
};
static const struct metrics_word words[] = {
    {"x", offsetof(struct stats, count)},
    {"y", offsetof(struct stats, us)},
};
static const struct metric by_word = {"c_total", "Of both.", METRIC_COUNTER};

static void expect(struct buffer *out, const char *text)
{
    buffer_put(out, "", 1);
    assert_string_equal((const char *)out->data, text);
    buffer_fini(out);
}

static void put_all(struct metrics *m)
{
    const struct stats f = {.count = 7, .us = 1500001};

    metrics_put_rows(m, rows, 2, &f);
    metrics_put_words(m, &by_word, "of", words, 2, &f);
}

static void rows_are_text_for_prometheus(void **state)
{
    struct buffer out = {0};
    struct metrics m;

    (void)state;
    metrics_begin(&m, METRICS_TEXT, &out);
    put_all(&m);
    metrics_end(&m);
    expect(&out,
           "# HELP a_total How many.\n# TYPE a_total counter\na_total 7\n"
           "# HELP b_seconds How long.\n# TYPE b_seconds gauge\nb_seconds 1.500001\n"
           "# HELP c_total Of both.\n# TYPE c_total counter\n"
           "c_total{of=\"x\"} 7\nc_total{of=\"y\"} 1500001\n");
}

static void rows_are_openmetrics(void **state)
{
    static const struct metric size = {"d_bytes", "How much.", METRIC_GAUGE};
    struct buffer out = {0};
    struct metrics m;

    (void)state;
    metrics_begin(&m, METRICS_OPEN, &out);
    put_all(&m);
    metrics_put(&m, &size, 3);
    metrics_end(&m);
    expect(&out,
           "# HELP a How many.\n# TYPE a counter\na_total 7\n"
           "# HELP b_seconds How long.\n# TYPE b_seconds gauge\n# UNIT b_seconds seconds\n"
           "b_seconds 1.500001\n"
           "# HELP c Of both.\n# TYPE c counter\n"
           "c_total{of=\"x\"} 7\nc_total{of=\"y\"} 1500001\n"
           "# HELP d_bytes How much.\n# TYPE d_bytes gauge\n# UNIT d_bytes bytes\nd_bytes 3\n");
}

static void rows_are_an_object_of_json(void **state)
{
    struct buffer out = {0};
    struct metrics m;

    (void)state;
    metrics_begin(&m, METRICS_JSON, &out);
    put_all(&m);
    metrics_end(&m);
    expect(&out, "{\"a_total\":7,\"b_seconds\":1.500001,\"c_total{x}\":7,\"c_total{y}\":1500001}");
}

static void a_word_is_quoted(void **state)
{
    struct buffer out = {0};
    struct metrics m;

    (void)state;
    metrics_begin(&m, METRICS_TEXT, &out);
    metrics_put_labelled(&m, &by_word, "of", "a\"b\\c\nd\001", 1);
    expect(&out,
           "# HELP c_total Of both.\n# TYPE c_total counter\nc_total{of=\"a\\\"b\\\\c\\nd\"} 1\n");
    metrics_begin(&m, METRICS_JSON, &out);
    metrics_put_labelled(&m, &by_word, "of", "a\"b\\c\nd\001", 1);
    metrics_end(&m);
    expect(&out, "{\"c_total{a\\\"b\\\\c\\nd}\":1}");
}

static void times_are_counted_in_their_bucket(void **state)
{
    struct metrics_times t = {{0}, 0};

    (void)state;
    metrics_time(&t, 0);
    metrics_time(&t, 1000);
    metrics_time(&t, 1001);
    metrics_time(&t, UINT64_C(3600) * 1000000);
    assert_int_equal(t.bucket[0], 2);
    assert_int_equal(t.bucket[1], 1);
    assert_int_equal(t.bucket[METRICS_BUCKETS - 1], 1);
    assert_int_equal(t.sum_us, UINT64_C(3600002001));
    for (unsigned i = 1; i < METRICS_BUCKETS; i++) {
        assert_true(metrics_bound_us(i) > metrics_bound_us(i - 1));
    }
    assert_int_equal(metrics_bound_us(METRICS_BUCKETS - 1), UINT64_MAX);
}

static void times_of_two_are_put_together(void **state)
{
    struct metrics_times t = {{0}, 0};
    struct metrics_times more = {{0}, 0};

    (void)state;
    metrics_time(&t, 1000);
    metrics_time(&more, 1000);
    metrics_time(&more, UINT64_C(3600) * 1000000);
    metrics_add_times(&t, &more);
    assert_int_equal(t.bucket[0], 2);
    assert_int_equal(t.bucket[METRICS_BUCKETS - 1], 1);
    assert_int_equal(t.sum_us, UINT64_C(3600002000));
}

static void a_histogram_adds_up(void **state)
{
    static const struct metric held = {"h_seconds", "Held.", METRIC_HISTOGRAM};
    struct metrics_times t = {{0}, 0};
    struct buffer out = {0};
    struct metrics m;

    (void)state;
    metrics_time(&t, 500);
    metrics_time(&t, 1500);
    metrics_begin(&m, METRICS_JSON, &out);
    metrics_put_times(&m, &held, "how", "well", &t);
    metrics_end(&m);
    expect(&out, "{\"h_seconds_sum{well}\":0.002000,\"h_seconds_count{well}\":2}");
    metrics_begin(&m, METRICS_TEXT, &out);
    metrics_put_times(&m, &held, "how", "well", &t);
    static const char head[] = "# HELP h_seconds Held.\n# TYPE h_seconds histogram\n"
                               "h_seconds_bucket{how=\"well\",le=\"0.001\"} 1\n"
                               "h_seconds_bucket{how=\"well\",le=\"0.002\"} 2\n";
    static const char tail[] = "h_seconds_bucket{how=\"well\",le=\"+Inf\"} 2\n"
                               "h_seconds_sum{how=\"well\"} 0.002000\n"
                               "h_seconds_count{how=\"well\"} 2\n";
    assert_true(out.size > sizeof head + sizeof tail);
    assert_memory_equal(out.data, head, sizeof head - 1);
    assert_memory_equal(out.data + out.size - (sizeof tail - 1), tail, sizeof tail - 1);
    buffer_fini(&out);
}

static void a_histogram_may_count_things_and_have_no_label(void **state)
{
    static const struct metric sizes = {"batch_size", "Of a batch.", METRIC_HISTOGRAM};
    struct metrics_times counts = {.sum_us = 0};
    struct buffer out = {0};
    struct metrics m;

    (void)state;
    metrics_count(&counts, 1);
    metrics_count(&counts, 1024);
    metrics_begin(&m, METRICS_JSON, &out);
    metrics_put_counts(&m, &sizes, &counts);
    metrics_end(&m);
    expect(&out, "{\"batch_size_sum\":1025,\"batch_size_count\":2}");
    metrics_begin(&m, METRICS_TEXT, &out);
    metrics_put_counts(&m, &sizes, &counts);
    buffer_put(&out, "", 1);
    const char *text = (const char *)out.data;
    assert_non_null(strstr(text, "batch_size_bucket{le=\"1.0\"} 1\n"));
    assert_non_null(strstr(text, "batch_size_bucket{le=\"1000.0\"} 1\n"));
    assert_non_null(strstr(text, "batch_size_bucket{le=\"2000.0\"} 2\n"));
    assert_non_null(strstr(text, "batch_size_bucket{le=\"+Inf\"} 2\nbatch_size_sum 1025\n"));
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_text_for_prometheus),
        cmocka_unit_test(rows_are_openmetrics),
        cmocka_unit_test(rows_are_an_object_of_json),
        cmocka_unit_test(a_word_is_quoted),
        cmocka_unit_test(times_are_counted_in_their_bucket),
        cmocka_unit_test(times_of_two_are_put_together),
        cmocka_unit_test(a_histogram_adds_up),
        cmocka_unit_test(a_histogram_may_count_things_and_have_no_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
