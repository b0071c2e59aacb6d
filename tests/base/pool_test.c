/* SPDX-License-Identifier: Apache-2.0
 *
 * Small records by the million: base/pool.h, and what names them by handle (strand.h, lookup.h).
 */
#include "base/lookup.h"
#include "base/pool.h"
#include "base/strand.h"
#include "base/table.h"

#include "tests/test.h"

#include <string.h>

enum { COUNT = 5000 };

struct record {
    uint64_t key;
    uint32_t same;
    struct strand_link link;
};

static struct pool pool;
static uint32_t handle[COUNT];

static struct record *at(uint32_t h)
{
    return pool_at(&pool, h);
}

static int end(void **state)
{
    (void)state;
    pool_fini(&pool);
    return 0;
}

static void fill(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        struct record *r = pool_take(&pool, sizeof *r, &handle[i]);

        assert_true(handle[i] != 0 && r->key == 0 && r->same == 0 && !strand_linked(&r->link));
        r->key = i;
    }
}

static void records_stay_and_their_memory_is_used_again(void **state)
{
    uint32_t other = 0;

    (void)state;
    fill();
    const size_t size = pool.size;
    assert_true(size >= COUNT * sizeof(struct record));
    assert_true(size < COUNT * sizeof(struct record) + 20480);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(at(handle[i])->key, i);
    }
    for (size_t i = 1; i < COUNT; i += 2) {
        pool_give(&pool, handle[i]);
    }
    assert_int_equal(pool.count, COUNT / 2);
    for (size_t i = 1; i < COUNT; i += 2) {
        const struct record *r = pool_take(&pool, sizeof *r, &handle[i]);

        assert_int_equal(r->key, 0);
        at(handle[i])->key = i;
    }
    assert_int_equal(pool.size, size);
    uint8_t *large = pool_take(&pool, POOL_ITEM_MAX, &other);
    memset(large, 0xff, POOL_ITEM_MAX);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(at(handle[i])->key, i);
        pool_give(&pool, handle[i]);
    }
    pool_give(&pool, other);
    assert_int_equal(pool.count, 0);
    assert_true(pool.size <= 32768); // one chunk of each size is kept
}

static void a_list_by_handles_keeps_order(void **state)
{
    const struct strand links = {&pool, offsetof(struct record, link)};
    uint32_t first = 0;
    uint64_t want = 0;

    (void)state;
    fill();
    for (size_t i = 0; i < COUNT; i++) {
        strand_push(links, &first, handle[i]);
    }
    for (size_t i = 0; i < COUNT; i += 2) { // the first of all among them
        strand_remove(links, &first, handle[i]);
        assert_false(strand_linked(&at(handle[i])->link));
    }
    for (uint32_t i = first; i != 0; i = strand_next(links, first, i)) {
        assert_int_equal(at(i)->key, want * 2 + 1);
        want++;
    }
    assert_int_equal(want, COUNT / 2);
    while (first != 0) {
        strand_remove(links, &first, first);
    }
}

static void one_leaves_a_list_that_is_not_known(void **state)
{
    const struct strand links = {&pool, offsetof(struct record, link)};
    uint32_t head = 0;

    (void)state;
    fill();
    (void)pool_take(&pool, sizeof(struct record), &head);
    strand_begin(links, head);
    assert_int_equal(strand_next(links, head, head), 0);
    for (size_t i = 0; i < 3; i++) {
        strand_put_before(links, head, handle[i]);
    }
    strand_cut(links, handle[0]);
    strand_cut(links, handle[2]);
    assert_int_equal(strand_next(links, head, head), handle[1]);
    assert_int_equal(strand_next(links, head, handle[1]), 0);
    strand_cut(links, handle[1]);
    assert_int_equal(strand_next(links, head, head), 0);
}

static uint64_t hash_of(const void *record)
{
    return table_mix(((const struct record *)record)->key);
}

static bool is_in(const struct lookup *t, uint64_t key)
{
    uint32_t i = lookup_first(t, table_mix(key));

    while (i != 0 && at(i)->key != key) {
        i = at(i)->same;
    }
    return i != 0;
}

static void a_table_by_handles_finds_what_was_put_and_not_removed(void **state)
{
    struct lookup t = {.pool = &pool, .same = offsetof(struct record, same), .hash = hash_of};

    (void)state;
    fill();
    assert_false(is_in(&t, 0));
    for (size_t i = 0; i < COUNT; i++) { // all that are in are found at each size
        lookup_put(&t, handle[i]);
        assert_true(is_in(&t, i) && is_in(&t, i / 2) && is_in(&t, 0) && !is_in(&t, i + 1));
    }
    for (size_t i = 0; i < COUNT; i += 2) {
        lookup_remove(&t, handle[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(is_in(&t, i) == (i % 2 == 1));
    }
    for (size_t i = 1; i < COUNT; i += 2) {
        lookup_remove(&t, handle[i]);
    }
    lookup_fini(&t);
}

/* Walk in pages of `buckets`; between them `others` come until all are in, then each second goes.
 */
static void walk_while_others_come_and_go(size_t buckets)
{
    enum { LASTING = COUNT / 10 };
    struct lookup t = {.pool = &pool, .same = offsetof(struct record, same), .hash = hash_of};
    static uint8_t met[COUNT];
    uint64_t place = 0;
    size_t put = LASTING;
    size_t gone = LASTING;

    fill();
    memset(met, 0, sizeof met);
    for (size_t i = 0; i < LASTING; i++) {
        lookup_put(&t, handle[i]);
    }
    do {
        for (size_t i = 0; i < buckets && (i == 0 || place != 0); i++) {
            for (uint32_t r = lookup_walk(&t, &place); r != 0; r = at(r)->same) {
                met[at(r)->key]++;
            }
        }
        for (size_t i = 0; i < 3 * buckets && put < COUNT; i++) {
            lookup_put(&t, handle[put++]);
        }
        for (size_t i = 0; i < buckets && put == COUNT && gone < COUNT; i++, gone += 2) {
            lookup_remove(&t, handle[gone]);
        }
    } while (place != 0);
    for (size_t i = 0; i < COUNT; i++) {
        ASSERT(i < LASTING ? met[i] == 1 : met[i] <= 1);
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (is_in(&t, i)) {
            lookup_remove(&t, handle[i]);
        }
    }
    assert_int_equal(lookup_walk(&t, &place) | place, 0);
    lookup_fini(&t);
    pool_fini(&pool);
}

static void a_walk_meets_once_who_is_there_all_the_time(void **state)
{
    (void)state;
    walk_while_others_come_and_go(1);
    walk_while_others_come_and_go(3);
    walk_while_others_come_and_go(100);
    walk_while_others_come_and_go(SIZE_MAX / 4);
}

/* Every size, for the buckets part one by one. */
static void a_walk_meets_all_at_each_size(void **state)
{
    struct lookup t = {.pool = &pool, .same = offsetof(struct record, same), .hash = hash_of};
    uint64_t place = 0;

    (void)state;
    fill();
    for (size_t i = 0; i < COUNT / 10; i++) {
        size_t met = 0;
        size_t buckets = 0;

        lookup_put(&t, handle[i]);
        do {
            for (uint32_t r = lookup_walk(&t, &place); r != 0; r = at(r)->same) {
                met++;
            }
            buckets++;
        } while (place != 0);
        ASSERT(met == i + 1 && buckets == t.bucket_count);
    }
    for (size_t i = 0; i < COUNT / 10; i++) {
        lookup_remove(&t, handle[i]);
    }
    lookup_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(records_stay_and_their_memory_is_used_again, end),
        cmocka_unit_test_teardown(a_list_by_handles_keeps_order, end),
        cmocka_unit_test_teardown(one_leaves_a_list_that_is_not_known, end),
        cmocka_unit_test_teardown(a_table_by_handles_finds_what_was_put_and_not_removed, end),
        cmocka_unit_test_teardown(a_walk_meets_once_who_is_there_all_the_time, end),
        cmocka_unit_test_teardown(a_walk_meets_all_at_each_size, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
