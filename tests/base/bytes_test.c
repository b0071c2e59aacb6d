/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/bytes.h, format.h, list.h and table.h.
 */
#include "base/bytes.h"
#include "base/format.h"
#include "base/list.h"
#include "base/table.h"

#include "tests/test.h"

struct item {
    struct list_link link;
    struct table_link by_key;
    uint64_t key;
};

static void a_buffer_grows_and_consumes_from_the_front(void **state)
{
    struct buffer b = {0};

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        buffer_put(&b, &i, sizeof i);
    }
    assert_int_equal(b.size, 1000 * sizeof(unsigned));
    buffer_consume(&b, 999 * sizeof(unsigned));
    assert_int_equal(b.size, sizeof(unsigned));
    assert_int_equal(*(const unsigned *)(const void *)b.data, 999);
    buffer_fini(&b);
}

static void a_text_of_any_length_is_appended(void **state)
{
    struct buffer b = {0};
    char text[1001];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    buffer_put_format(&b, "%d, ", -7);
    buffer_put_format(&b, "%s", "");
    buffer_put_format(&b, "%s.", text);
    assert_int_equal(b.size, 4 + 1000 + 1);
    assert_memory_equal(b.data, "-7, xxx", 7);
    assert_memory_equal(b.data + 1000, "xxxx.", 5);
    buffer_fini(&b);
}

static void a_list_keeps_order_and_splices(void **state)
{
    struct item items[4] = {0};
    struct list a;
    struct list b;

    (void)state;
    list_init(&a);
    list_init(&b);
    for (unsigned i = 0; i < 4; i++) {
        items[i].key = i;
        list_push_back(i < 2 ? &a : &b, &items[i].link);
    }
    list_splice_back(&a, &b);
    assert_true(list_empty(&b));
    list_remove(&items[1].link);
    const uint64_t want[] = {0, 2, 3};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(CONTAINER_OF(list_pop_front(&a), struct item, link)->key, want[i]);
    }
    assert_true(list_empty(&a));
}

static void a_table_finds_what_was_put_and_not_removed(void **state)
{
    static struct item items[1000];
    struct table t = {0};
    size_t seen = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        items[i].key = i;
        table_put(&t, &items[i].by_key, table_mix(i));
    }
    for (unsigned i = 0; i < 1000; i += 2) {
        table_remove(&t, &items[i].by_key);
    }
    for (unsigned i = 0; i < 1000; i++) {
        assert_true((table_first(&t, table_mix(i)) != NULL) == (i % 2 == 1));
    }
    for (struct table_walk w = {0}; table_walk(&t, &w) != NULL;) {
        seen++;
    }
    assert_int_equal(seen, 500);
    table_fini(&t);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_buffer_grows_and_consumes_from_the_front),
        cmocka_unit_test(a_text_of_any_length_is_appended),
        cmocka_unit_test(a_list_keeps_order_and_splices),
        cmocka_unit_test(a_table_finds_what_was_put_and_not_removed),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
