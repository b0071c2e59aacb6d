/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/books/backlog.h.
 */
#include "tests/test.h"

#include "node/books/backlog.h"

#include <string.h>

static void frames_come_out_in_order(void **state)
{
    struct backlog b;
    enum frame_type type = FRAME_CONTROL;

    (void)state;
    backlog_init(&b);
    assert_true(backlog_is_empty(&b));
    backlog_put(&b, FRAME_ANSWER, bytes_of("one", 3));
    backlog_put(&b, FRAME_CONTROL, bytes_of(NULL, 0));
    backlog_put(&b, FRAME_STATE, bytes_of("three", 5));
    assert_int_equal(b.size, 8);

    const struct bytes one = backlog_front(&b, &type);
    assert_int_equal(type, FRAME_ANSWER);
    assert_true(bytes_equal(one, bytes_of("one", 3)));
    backlog_pop(&b);
    assert_int_equal(backlog_front(&b, &type).size, 0);
    assert_int_equal(type, FRAME_CONTROL);
    backlog_pop(&b);
    const struct bytes three = backlog_front(&b, &type);
    assert_int_equal(type, FRAME_STATE);
    assert_true(bytes_equal(three, bytes_of("three", 5)));
    assert_int_equal(b.size, 5);
    backlog_pop(&b);
    assert_true(backlog_is_empty(&b));
    assert_int_equal(b.size, 0);
    backlog_fini(&b);
}

/* A link that breaks takes what waited for it along: the sanitizer would tell of a leak. */
static void what_is_left_is_freed(void **state)
{
    struct backlog b;

    (void)state;
    backlog_init(&b);
    backlog_put(&b, FRAME_ANSWER, bytes_of("one", 3));
    backlog_put(&b, FRAME_ANSWER, bytes_of("two", 3));
    backlog_fini(&b);
    assert_int_equal(b.size, 0);
    assert_true(backlog_is_empty(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_out_in_order),
        cmocka_unit_test(what_is_left_is_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
