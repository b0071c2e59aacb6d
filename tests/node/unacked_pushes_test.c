/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/runtime/unacked_pushes.h.
 */
#include "node/runtime/unacked_pushes.h"

#include "base/mem.h"

#include "tests/test.h"

#include <string.h>

static uint8_t big[BOND_UNACKED_MAX + 1];

static void put(struct unacked_pushes *u, const char *text)
{
    unacked_pushes_put(u, bytes_of(text, strlen(text)));
}

/* The kept ones, one behind the other with a dot. */
static void keeps(const struct unacked_pushes *u, const char *text)
{
    const struct bytes all = unacked_pushes_bytes(u);
    struct reader in = {.at = all.data, .left = all.size};
    struct bytes payload;
    struct buffer got = {0};
    uint32_t count = 0;

    while (unacked_pushes_next(&in, &payload)) {
        buffer_put(&got, payload.data, payload.size);
        buffer_put(&got, ".", 1);
        count++;
    }
    assert_false(in.bad);
    assert_int_equal(count, u->count);
    assert_true(bytes_equal(buffer_bytes(&got), bytes_of(text, strlen(text))));
    buffer_fini(&got);
}

static void what_is_acknowledged_goes(void **state)
{
    struct unacked_pushes u = {0};

    (void)state;
    keeps(&u, "");
    unacked_pushes_drop(&u, 5, 5); // nothing is there
    put(&u, "six");
    put(&u, "");
    put(&u, "eight");
    keeps(&u, "six..eight.");
    unacked_pushes_drop(&u, 8, 5);
    keeps(&u, "six..eight.");
    unacked_pushes_drop(&u, 8, 6);
    keeps(&u, ".eight.");
    put(&u, "nine");
    unacked_pushes_drop(&u, 9, 8);
    keeps(&u, "nine.");
    unacked_pushes_drop(&u, 9, UINT64_MAX); // a client that lies
    keeps(&u, "");
    assert_int_equal(u.bytes.cap, 0); // nothing is held for nothing
    unacked_pushes_fini(&u);
}

static void the_oldest_makes_room(void **state)
{
    struct unacked_pushes u = {0};

    (void)state;
    put(&u, "a");
    put(&u, "b");
    unacked_pushes_put(&u, bytes_of(big, BOND_UNACKED_MAX - 4 - 5)); // "b" fits beside it
    assert_int_equal(u.count, 2);
    assert_int_equal(unacked_pushes_bytes(&u).size, BOND_UNACKED_MAX);
    put(&u, "");
    assert_int_equal(u.count, 2);
    for (int i = 0; i < 100000; i++) {
        put(&u, "0123456789");
        assert_true(unacked_pushes_bytes(&u).size <= BOND_UNACKED_MAX &&
                    u.bytes.cap / 4 <= BOND_UNACKED_MAX);
    }
    assert_int_equal(u.count, BOND_UNACKED_MAX / 14);
    unacked_pushes_fini(&u);
}

static void what_is_too_large_leaves_no_gap(void **state)
{
    struct unacked_pushes u = {0};

    (void)state;
    put(&u, "a");
    unacked_pushes_put(&u, bytes_of(big, BOND_UNACKED_MAX - 3));
    keeps(&u, "");
    put(&u, "b");
    keeps(&u, "b.");
    unacked_pushes_fini(&u);
}

static void it_travels(void **state)
{
    struct unacked_pushes from = {0};
    struct unacked_pushes to = {0};

    (void)state;
    unacked_pushes_load(&to, unacked_pushes_bytes(&from));
    keeps(&to, "");
    put(&from, "a");
    put(&from, "b");
    put(&from, "c");
    unacked_pushes_drop(&from, 3, 1);
    unacked_pushes_load(&to, unacked_pushes_bytes(&from));
    keeps(&to, "b.c.");
    unacked_pushes_fini(&from);
    unacked_pushes_fini(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_acknowledged_goes),
        cmocka_unit_test(the_oldest_makes_room),
        cmocka_unit_test(what_is_too_large_leaves_no_gap),
        cmocka_unit_test(it_travels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
