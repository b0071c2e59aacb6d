/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of gateway/client/target.h.
 */
#include "gateway/client/target.h"
#include "tests/test.h"

#include <string.h>

static struct bytes text(const char *s)
{
    return bytes_of(s, strlen(s));
}

static void a_prefix_names_the_kind(void **state)
{
    static const struct {
        const char *key;
        unsigned kind;
        const char *id;
    } cases[] = {
        {"@7/boss", 7, "boss"},
        {"@0/@7/boss", 0, "@7/boss"},
        {"@65535/x", 65535, "x"},
        {"@9/mail/3", 9, "mail/3"},
        {"@12345//", 12345, "/"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct target t;

        assert_true(target_read(text(cases[i].key), &t));
        assert_int_equal(t.kind, cases[i].kind);
        assert_int_equal(t.id.size, strlen(cases[i].id));
        assert_memory_equal(t.id.data, cases[i].id, t.id.size);
    }
}

static void anything_else_is_an_id(void **state)
{
    static const char *const keys[] = {"",
                                       "@",
                                       "@7",
                                       "@7/",
                                       "@/x",
                                       "7/x",
                                       "@07/x",
                                       "@00/x",
                                       "@65536/x",
                                       "@123456/x",
                                       "@7x/y",
                                       "@-1/x",
                                       "@home",
                                       "player-1"};

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct target t;

        assert_false(target_read(text(keys[i]), &t));
        assert_int_equal(t.id.size, strlen(keys[i]));
    }
}

static void a_role_has_a_first_kind(void **state)
{
    struct ring_segment chat = {
        .policy = RING_HASH, .bits = 14, .role = "chat", .kind = {4, 8}, .kind_count = 2};
    struct ring_segment boss = {
        .policy = RING_OLDEST, .role = "match", .kind = {7}, .kind_count = 1};
    struct view v;
    uint16_t kind = 99;

    (void)state;
    view_init(&v, 14);
    ring_create(&v.ring, 4, RING_NODE_NONE, 1);
    ring_put_segment(&v.ring, 0, &boss, 4, 2);
    ring_put_segment(&v.ring, 1, &chat, 4, 3);
    assert_true(target_kind_of_role(&v, "", &kind));
    assert_int_equal(kind, 0);
    assert_true(target_kind_of_role(&v, "chat", &kind));
    assert_int_equal(kind, 4);
    assert_false(target_kind_of_role(&v, "match", &kind)); // it has a singleton only
    assert_false(target_kind_of_role(&v, "shop", &kind));
    view_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prefix_names_the_kind),
        cmocka_unit_test(anything_else_is_an_id),
        cmocka_unit_test(a_role_has_a_first_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
