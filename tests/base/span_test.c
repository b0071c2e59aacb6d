/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/span.h.
 */
#include "base/span.h"

#include "tests/test.h"

struct noted {
    struct trace_span last;
    size_t count;
    size_t dropped[SPAN_DROPS];
};

static void put(void *context, const struct trace_span *span)
{
    struct noted *n = context;

    n->last = *span;
    n->count++;
}

static void drop(void *context, enum span_drop why)
{
    struct noted *n = context;

    n->dropped[why]++;
}

static void an_open_span_is_noted_when_it_ends(void **state)
{
    struct noted n = {0};
    const struct tracing tracing = {.put = put, .drop = drop, .context = &n};
    struct spans s;

    (void)state;
    spans_init(&s, &tracing, 7);
    const struct trace_context root = spans_new_trace(&s);
    struct trace_span a = spans_child(&s, &root, SPAN_REQUEST, 3, bytes_of("boss", 4));
    const struct trace_span b = spans_child(&s, &a.context, SPAN_HANDLER, 3, bytes_of("boss", 4));

    assert_memory_equal(a.parent, root.span, sizeof a.parent);
    assert_memory_equal(b.parent, a.context.span, sizeof b.parent);
    assert_memory_equal(a.context.trace, b.context.trace, TRACE_ID_SIZE);
    assert_memory_not_equal(a.context.span, b.context.span, TRACE_SPAN_SIZE);
    a.from_us = 5;
    assert_true(spans_begin(&s, 1, &a));
    assert_int_equal(n.count, 0);
    spans_end(&s, 2, 9, NULL, 1); // there is none
    assert_int_equal(n.count, 0);
    spans_end(&s, 1, 9, "TIMEOUT", 2);
    assert_int_equal(n.count, 1);
    assert_int_equal(n.last.from_us, 5);
    assert_int_equal(n.last.to_us, 9);
    assert_int_equal(n.last.attempts, 2);
    assert_string_equal(n.last.outcome, "TIMEOUT");
    spans_end(&s, 1, 9, NULL, 1);
    assert_int_equal(n.count, 1);
    spans_fini(&s);
}

static void only_so_many_are_open(void **state)
{
    struct noted n = {0};
    const struct tracing tracing = {.put = put, .drop = drop, .context = &n};
    struct spans s;

    (void)state;
    spans_init(&s, &tracing, 7);
    const struct trace_context root = spans_new_trace(&s);
    const struct trace_span a = spans_child(&s, &root, SPAN_REQUEST, 3, bytes_of("boss", 4));

    for (uint64_t key = 0; key < SPANS_OPEN_MAX; key++) {
        assert_true(spans_begin(&s, key, &a));
    }
    assert_false(spans_begin(&s, SPANS_OPEN_MAX, &a));
    assert_int_equal(n.dropped[SPAN_DROP_OPEN], 1);
    spans_end(&s, 4, 1, NULL, 1);
    assert_true(spans_begin(&s, SPANS_OPEN_MAX, &a));
    spans_fini(&s); // frees those that are open: valgrind and the sanitizer see that
    assert_int_equal(n.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_span_is_noted_when_it_ends),
        cmocka_unit_test(only_so_many_are_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
