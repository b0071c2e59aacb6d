/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/traceparent.h: the examples of W3C trace context, and what is none.
 */
#include "base/traceparent.h"

#include "tests/test.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static bool parse(const char *text, struct trace_context *c)
{
    return traceparent_parse(bytes_of(text, strlen(text)), c);
}

static bool is_valid(const char *text)
{
    struct trace_context c;

    return parse(text, &c);
}

static void the_examples_of_the_standard_are_read(void **state)
{
    static const uint8_t span[] = {0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7};
    struct trace_context c;
    char text[TRACEPARENT_SIZE + 1];

    (void)state;
    assert_true(parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", &c));
    assert_int_equal(c.trace[0], 0x4b);
    assert_int_equal(c.trace[15], 0x36);
    assert_memory_equal(c.span, span, sizeof span);
    assert_int_equal(c.flags, TRACE_SAMPLED);
    assert_true(trace_context_is_sampled(&c));
    assert_string_equal(traceparent_print(&c, text),
                        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_true(parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", &c));
    assert_false(trace_context_is_sampled(&c));
}

static void a_later_version_may_say_more(void **state)
{
    struct trace_context c;
    char text[TRACEPARENT_SIZE + 1];

    (void)state;
    assert_true(parse("cc-" TRACE "-" SPAN "-01", &c));
    assert_true(parse("cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like", &c));
    assert_string_equal(traceparent_print(&c, text), "00-" TRACE "-" SPAN "-01");
    assert_false(is_valid("cc-" TRACE "-" SPAN "-01.what-the-future-will-be-like"));
    assert_false(is_valid("00-" TRACE "-" SPAN "-01-what-the-future-will-not-be-like"));
    // Flags that version 00 doesn't know are taken, and not passed on.
    assert_true(parse("00-" TRACE "-" SPAN "-ff", &c));
    assert_string_equal(traceparent_print(&c, text), "00-" TRACE "-" SPAN "-01");
}

static void what_is_invalid_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-0g",
        "00-" TRACE "-" SPAN "-0A",
        "ff-" TRACE "-" SPAN "-01",
        "0x-" TRACE "-" SPAN "-01",
        ".0-" TRACE "-" SPAN "-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-" TRACE "-B7AD6B7169203331-01",
        "00-.af7651916cd43dd8448eb211c80319c-" SPAN "-01",
        "00-" TRACE "-.7ad6b7169203331-01",
        "00-" TRACE "-" SPAN "-01 ",
        " 00-" TRACE "-" SPAN "-01",
        "00--" TRACE SPAN "--01",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(is_valid(bad[i]));
    }
}

static void a_context_is_25_bytes(void **state)
{
    struct trace_context c;
    struct trace_context back;
    uint8_t bytes[3 + TRACE_CONTEXT_SIZE] = "abc";
    struct bytes body = {bytes, sizeof bytes};

    (void)state;
    assert_true(parse("00-" TRACE "-" SPAN "-01", &c));
    trace_context_store(bytes + 3, &c);
    trace_context_take(&body, &back);
    assert_int_equal(body.size, 3);
    assert_memory_equal(&c, &back, sizeof c);
    memset(back.span, 0, sizeof back.span);
    assert_false(trace_context_is_sampled(&back));
    memset(c.trace, 0, sizeof c.trace);
    assert_false(trace_context_is_sampled(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard_are_read),
        cmocka_unit_test(a_later_version_may_say_more),
        cmocka_unit_test(what_is_invalid_is_refused),
        cmocka_unit_test(a_context_is_25_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
