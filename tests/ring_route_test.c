/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prng.h"
#include "ring/route.h"

#include "tests/test.h"

#include <string.h>

enum { MOST = 300 };

static const struct ring_key key = {1, 2};

static void make_ring(struct ring *r)
{
    ring_init(r, 15);
    ring_create(r, 1000, 7, 1);
}

static void a_batch_gives_what_single_lookups_give(void **state)
{
    static uint8_t text[MOST][255];
    struct bytes ids[MOST];
    uint64_t numbers[MOST];
    ring_hit hits[MOST + 1];
    struct prng p = {4};
    struct ring r;

    (void)state;
    make_ring(&r);
    for (size_t i = 0; i < MOST; i++) {
        numbers[i] = prng_u64(&p);
        for (size_t b = 0; b < sizeof text[i]; b++) {
            text[i][b] = (uint8_t)prng_u64(&p);
        }
        ids[i] = bytes_of(text[i], (size_t)prng_between(&p, 1, 255));
    }
    for (size_t count = 0; count <= MOST; count++) {
        hits[count] = UINT32_MAX;
        ring_route_u64(ring_table_of(&r), key, numbers, count, hits);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(hits[i], ring_at(&r, ring_position_u64(key, numbers[i])));
        }
        ring_route_bytes(ring_table_of(&r), key, ids, count, hits);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(hits[i], ring_at(&r, ring_position(key, ids[i])));
        }
        assert_int_equal(hits[count], UINT32_MAX);
    }
    ring_fini(&r);
}

/* Such runs are hashed side by side, where the processor can. */
static void runs_of_ids_of_one_size_are_hashed_right(void **state)
{
    static uint8_t text[MOST][255];
    struct bytes ids[MOST];
    ring_hit hits[MOST];
    struct prng p = {6};
    struct ring r;

    (void)state;
    make_ring(&r);
    for (size_t i = 0; i < MOST; i++) {
        for (size_t b = 0; b < sizeof text[i]; b++) {
            text[i][b] = (uint8_t)prng_u64(&p);
        }
    }
    for (size_t size = 1; size <= 255; size++) {
        for (size_t i = 0; i < MOST; i++) {
            // Now and then one of another size among them.
            ids[i] = bytes_of(text[i], prng_chance(&p, 3) ? 5 : size);
        }
        ring_route_bytes(ring_table_of(&r), key, ids, MOST, hits);
        for (size_t i = 0; i < MOST; i++) {
            assert_int_equal(hits[i], ring_at(&r, ring_position(key, ids[i])));
        }
    }
    ring_fini(&r);
}

static void sequential_ids_spread_evenly(void **state)
{
    enum { IDS = 1 << 18, VNODES = 16 };
    static uint64_t ids[IDS];
    static ring_hit hits[IDS];
    unsigned count[VNODES] = {0};
    struct ring r;

    (void)state;
    ring_init(&r, 14);
    ring_create(&r, VNODES, 1, 1);
    for (unsigned shift = 0; shift < 48; shift += 16) {
        memset(count, 0, sizeof count);
        for (uint64_t i = 0; i < IDS; i++) {
            ids[i] = i << shift;
        }
        ring_route_u64(ring_table_of(&r), key, ids, IDS, hits);
        for (size_t i = 0; i < IDS; i++) {
            count[ring_hit_vnode(hits[i])]++;
        }
        for (unsigned v = 0; v < VNODES; v++) {
            // 2^14 are expected; the standard deviation is 124.
            assert_in_range(count[v], (1 << 14) - 620, (1 << 14) + 620);
        }
    }
    ring_fini(&r);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_batch_gives_what_single_lookups_give),
        cmocka_unit_test(runs_of_ids_of_one_size_are_hashed_right),
        cmocka_unit_test(sequential_ids_spread_evenly),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
