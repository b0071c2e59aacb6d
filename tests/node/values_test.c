/* SPDX-License-Identifier: Apache-2.0
 *
 * The named values of a durable actor: their order, limits, changes and how these are undone.
 */
#include "node/durable/values.h"

#include "base/mem.h"
#include "base/prng.h"
#include "storage/actors/changes.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static uint64_t below(struct prng *random, uint64_t end)
{
    return prng_between(random, 0, end - 1);
}

static struct bytes of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static void put(struct named_values *v, const char *key, const char *value)
{
    assert_int_equal(named_values_put(v, of(key), of(value)), NAMED_PUT_DONE);
}

/* "key=value …", in order. */
static const char *all_of(const struct named_values *v)
{
    static char text[512];
    struct bytes key = {0};
    struct bytes bytes = {0};
    size_t used = 0;

    text[0] = '\0';
    while (named_values_next(v, key, &key, &bytes)) {
        used += (size_t)snprintf(text + used,
                                 sizeof text - used,
                                 "%.*s=%.*s ",
                                 (int)key.size,
                                 (const char *)key.data,
                                 (int)bytes.size,
                                 (const char *)bytes.data);
    }
    return text;
}

/* The changes, in order: "key=value", "-key". */
static const char *sealed(struct named_values *v)
{
    static char text[512];
    struct buffer out = {0};
    struct store_change c;
    size_t used = 0;

    text[0] = '\0';
    named_values_seal(v, &out);
    struct bytes all = buffer_bytes(&out);
    while (changes_next(&all, &c)) {
        used += (size_t)snprintf(text + used,
                                 sizeof text - used,
                                 c.gone ? "-%.*s " : "%.*s=%.*s ",
                                 (int)c.key.size,
                                 (const char *)c.key.data,
                                 (int)c.bytes.size,
                                 (const char *)c.bytes.data);
    }
    buffer_fini(&out);
    return text;
}

static void they_are_in_the_order_of_their_bytes(void **state)
{
    struct named_values v;

    (void)state;
    named_values_init(&v);
    put(&v, "b", "2");
    put(&v, "ab", "3");
    put(&v, "a", "1");
    put(&v, "\xff", "4");
    put(&v, "b", "");
    assert_string_equal(all_of(&v), "a=1 ab=3 b= \xff=4 ");
    assert_int_equal(v.size, 1 + 1 + 2 + 1 + 1 + 1 + 1);
    named_values_fini(&v);
}

static void a_seal_has_each_change_once(void **state)
{
    struct named_values v;

    (void)state;
    named_values_init(&v);
    put(&v, "a", "1");
    put(&v, "b", "2");
    put(&v, "a", "3");
    assert_string_equal(sealed(&v), "a=3 b=2 ");
    assert_false(named_values_are_changed(&v));
    assert_string_equal(sealed(&v), "");
    assert_true(named_values_delete(&v, of("a")));
    assert_false(named_values_delete(&v, of("a")));
    put(&v, "c", "4");
    assert_true(named_values_delete(&v, of("c")));
    assert_string_equal(all_of(&v), "b=2 ");
    assert_string_equal(sealed(&v), "-a -c ");
    assert_int_equal(v.count, 1);
    named_values_fini(&v);
}

static void what_is_undone_is_as_it_was(void **state)
{
    struct named_values v;

    (void)state;
    named_values_init(&v);
    put(&v, "a", "1");
    put(&v, "b", "2");
    (void)sealed(&v);
    put(&v, "a", "other");
    put(&v, "a", "another");
    assert_true(named_values_delete(&v, of("b")));
    put(&v, "c", "new");
    named_values_undo(&v);
    assert_string_equal(all_of(&v), "a=1 b=2 ");
    assert_int_equal(v.size, 4);
    assert_string_equal(sealed(&v), "");
    named_values_fini(&v);
}

/* What is read may be put elsewhere, or in its own place. */
static void a_value_may_be_put_where_it_came_from(void **state)
{
    struct named_values v;
    struct bytes bytes = {0};

    (void)state;
    named_values_init(&v);
    put(&v, "a", "1");
    assert_true(named_values_get(&v, of("a"), &bytes));
    assert_int_equal(named_values_put(&v, of("a"), bytes), NAMED_PUT_DONE);
    assert_true(named_values_get(&v, of("a"), &bytes));
    assert_int_equal(named_values_put(&v, of("b"), bytes), NAMED_PUT_DONE);
    assert_string_equal(all_of(&v), "a=1 b=1 ");
    named_values_fini(&v);
}

static void there_is_an_end_to_them(void **state)
{
    enum { PART = NAMED_VALUES_SIZE_MAX / 64 };
    struct named_values v;
    char key[16];
    uint8_t *part = mem_new(1, PART);

    (void)state;
    named_values_init(&v);
    for (int i = 0; i < 63; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        assert_int_equal(named_values_put(&v, of(key), bytes_of(part, PART)), NAMED_PUT_DONE);
    }
    assert_int_equal(named_values_put(&v, of("x"), bytes_of(part, PART)), NAMED_PUT_FULL);
    assert_int_equal(named_values_put(&v, of("0"), bytes_of(part, PART)), NAMED_PUT_DONE);
    named_values_fini(&v);
    named_values_init(&v);
    for (int i = 0; i < NAMED_VALUES_MAX; i++) {
        (void)snprintf(key, sizeof key, "%06d", i);
        put(&v, key, "");
    }
    assert_int_equal(named_values_put(&v, of("x"), of("")), NAMED_PUT_FULL);
    put(&v, "000007", "7");
    named_values_fini(&v);
    mem_free(part);
}

/* A table that takes what is sealed is the same as the one that was changed. */
static void what_is_sealed_makes_the_same_again(void **state)
{
    struct prng random;
    struct named_values v;
    struct named_values copy;

    (void)state;
    random = (struct prng){7};
    named_values_init(&v);
    named_values_init(&copy);
    for (int round = 0; round < 2000; round++) {
        struct buffer out = {0};
        struct store_change c;
        char before[512];

        (void)snprintf(before, sizeof before, "%s", all_of(&v));
        for (uint64_t i = below(&random, 6); i > 0; i--) {
            const char key[2] = {(char)('a' + below(&random, 8)), '\0'};
            const char value[2] = {(char)('0' + below(&random, 10)), '\0'};

            if (below(&random, 3) == 0) {
                (void)named_values_delete(&v, of(key));
            } else {
                put(&v, key, value);
            }
        }
        if (below(&random, 4) == 0) {
            named_values_undo(&v);
            assert_string_equal(all_of(&v), before);
        }
        named_values_seal(&v, &out);
        struct bytes all = buffer_bytes(&out);
        while (changes_next(&all, &c)) {
            if (c.gone) {
                (void)named_values_delete(&copy, c.key);
            } else {
                assert_int_equal(named_values_put(&copy, c.key, c.bytes), NAMED_PUT_DONE);
            }
        }
        buffer_clear(&out);
        named_values_seal(&copy, &out);
        buffer_fini(&out);
        (void)snprintf(before, sizeof before, "%s", all_of(&v));
        assert_string_equal(all_of(&copy), before);
        assert_int_equal(copy.size, v.size);
    }
    named_values_fini(&v);
    named_values_fini(&copy);
}

static void they_are_loaded_in_order_alone(void **state)
{
    struct named_values v;
    struct buffer all = {0};
    const struct store_change a = {.key = of("a"), .bytes = of("1")};
    const struct store_change b = {.key = of("b"), .bytes = of("2")};

    (void)state;
    named_values_init(&v);
    changes_put(&all, &a);
    changes_put(&all, &b);
    assert_true(named_values_load(&v, buffer_bytes(&all)));
    assert_string_equal(all_of(&v), "a=1 b=2 ");
    assert_string_equal(sealed(&v), "");
    assert_false(named_values_load(&v, buffer_bytes(&all)));
    named_values_fini(&v);
    buffer_fini(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_in_the_order_of_their_bytes),
        cmocka_unit_test(a_seal_has_each_change_once),
        cmocka_unit_test(what_is_undone_is_as_it_was),
        cmocka_unit_test(a_value_may_be_put_where_it_came_from),
        cmocka_unit_test(there_is_an_end_to_them),
        cmocka_unit_test(what_is_sealed_makes_the_same_again),
        cmocka_unit_test(they_are_loaded_in_order_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
