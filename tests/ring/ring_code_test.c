/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring's bytes and digest are for ever: the golden ones here were computed
 * by a second, independent program.
 */
#include "base/prng.h"
#include "ring/ring.h"

#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static void small_ring(struct ring *r)
{
    const struct ring_op split[] = {{.kind = RING_SPLIT, .vnode = 2, .other = 9, .at = 10000}};
    const struct ring_op move[] = {{.kind = RING_MOVE, .vnode = 9, .from = 1, .to = 2}};
    const struct ring_op merge[] = {{.kind = RING_MERGE, .vnode = 0, .other = 1}};

    ring_init(r, 14);
    ring_create(r, 4, 1, 10);
    ring_apply(r, split, 1, 10, 3);
    ring_apply(r, move, 1, 11, 7);
    ring_renew_owner(r, 2, 12);
    ring_apply(r, merge, 1, 13, 8);
}

static void the_bytes_and_the_digest_are_golden(void **state)
{
    static const char want[] =
        "52494e47010e00000d0000000000000004000000000000000000000001000a000000000000000a0000000000"
        "00000000000000000000020000000020000001000a000000000000000a000000000000000000000000000000"
        "090000001027000002000c000000000000000c00000000000000070000000000000003000000003000000100"
        "0a000000000000000a0000000000000000000000000000004756df7a";
    struct buffer out = {0};
    char hex[sizeof want];
    struct ring r;

    (void)state;
    small_ring(&r);
    ring_encode(&r, &out);
    assert_int_equal(out.size * 2 + 1, sizeof want);
    for (size_t i = 0; i < out.size; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", out.data[i]);
    }
    assert_string_equal(hex, want);
    assert_int_equal(r.digest[0], 0xc31751370dea74e9u);
    assert_int_equal(r.digest[1], 0x029ae776ad61577au);
    buffer_fini(&out);
    ring_fini(&r);

    ring_init(&r, 16);
    ring_create(&r, 192, 1, 5);
    assert_int_equal(r.digest[0], 0xee04eb7e7939e92au);
    assert_int_equal(r.digest[1], 0x191542a8ae89f3f1u);
    ring_fini(&r);
}

static void assert_round_trip(const struct ring *r)
{
    struct buffer first = {0};
    struct buffer second = {0};
    struct ring copy;

    ring_encode(r, &first);
    assert_int_equal(ring_decode(&copy, buffer_bytes(&first)), ERR_OK);
    ring_check_invariants(&copy);
    assert_memory_equal(copy.digest, r->digest, sizeof r->digest);
    assert_int_equal(copy.version, r->version);
    ring_encode(&copy, &second);
    assert_true(bytes_equal(buffer_bytes(&first), buffer_bytes(&second)));
    buffer_fini(&first);
    buffer_fini(&second);
    ring_fini(&copy);
}

static void what_is_encoded_decodes_to_the_same(void **state)
{
    struct ring r;

    (void)state;
    small_ring(&r);
    assert_round_trip(&r);
    ring_fini(&r);
    for (unsigned grid = RING_GRID_MIN; grid <= RING_GRID_MAX; grid++) {
        ring_init(&r, (uint8_t)grid);
        assert_round_trip(&r);
        ring_create(&r, 100 * grid, 4095, UINT64_MAX);
        assert_round_trip(&r);
        ring_fini(&r);
    }
}

static void assert_refused(struct bytes in, enum err want)
{
    struct ring r;

    assert_int_equal(ring_decode(&r, in), want);
    assert_int_equal(r.vnode_count, 0);
    ring_check_invariants(&r);
    ring_fini(&r);
}

static void every_prefix_and_every_flipped_bit_is_refused(void **state)
{
    struct buffer out = {0};
    struct ring r;

    (void)state;
    small_ring(&r);
    ring_encode(&r, &out);
    assert_refused(bytes_of(NULL, 0), ERR_CORRUPT);
    for (size_t size = 0; size < out.size; size++) {
        assert_refused(bytes_of(out.data, size), ERR_CORRUPT);
    }
    for (size_t bit = 0; bit < 8 * out.size; bit++) {
        out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_refused(buffer_bytes(&out), bit / 8 == 4 ? ERR_FOREIGN : ERR_CORRUPT);
        out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    buffer_put(&out, "", 1);
    assert_refused(buffer_bytes(&out), ERR_CORRUPT);
    buffer_fini(&out);
    ring_fini(&r);
}

/* The same CRC bit by bit, so that hostile bytes below carry a true one. */
static void seal(struct buffer *b)
{
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < b->size - 4; i++) {
        crc ^= b->data[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        b->data[b->size - 4 + i] = (uint8_t)(~crc >> (8 * i));
    }
}

static void bytes_with_a_true_crc_that_are_no_ring_are_refused(void **state)
{
    // Where the small ring's second vnode starts: after header and one vnode.
    enum { SECOND = 20 + 34 };
    static const struct {
        const char *what;
        size_t at;
        uint8_t value;
    } cases[] = {
        {"grid below 14", 5, 13},
        {"grid above 20", 5, 21},
        {"reserved bytes", 6, 1},
        {"more vnodes than bytes", 16, 5},
        {"vnodes beyond any grid", 19, 255},
        {"first vnode not at cell 0", 20 + 4, 1},
        {"two vnodes with one id", SECOND, 0},
        {"id beyond 2^20", SECOND + 2, 0x10},
        {"two vnodes at one cell", SECOND + 5, 0},
        {"a vnode beyond the grid", SECOND + 5, 0x40},
        {"owner above 4095", SECOND + 9, 0x10},
        {"generation above version", SECOND + 10, 14},
        {"cold above generation", SECOND + 18, 11},
    };
    struct ring r;

    (void)state;
    small_ring(&r);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer out = {0};

        ring_encode(&r, &out);
        out.data[cases[i].at] = cases[i].value;
        seal(&out);
        print_message("%s\n", cases[i].what);
        assert_refused(buffer_bytes(&out), ERR_CORRUPT);
        buffer_fini(&out);
    }
    ring_fini(&r);
}

static void what_random_bytes_decode_to_is_a_ring(void **state)
{
    struct prng p = {11};
    struct ring base;
    unsigned decoded = 0;

    (void)state;
    small_ring(&base);
    for (unsigned i = 0; i < 4000; i++) {
        struct buffer out = {0};
        struct ring r;

        ring_encode(&base, &out);
        for (uint64_t n = prng_between(&p, 1, 3); n > 0; n--) {
            out.data[prng_between(&p, 5, out.size - 5)] = (uint8_t)prng_u64(&p);
        }
        seal(&out);
        if (ring_decode(&r, buffer_bytes(&out)) == ERR_OK) {
            decoded++;
            // Only what it holds is left to vary, so it encodes to the same bytes.
            assert_round_trip(&r);
        }
        ring_fini(&r);
        buffer_fini(&out);
    }
    assert_in_range(decoded, 200, 3800);
    ring_fini(&base);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(the_bytes_and_the_digest_are_golden),
        cmocka_unit_test(what_is_encoded_decodes_to_the_same),
        cmocka_unit_test(every_prefix_and_every_flipped_bit_is_refused),
        cmocka_unit_test(bytes_with_a_true_crc_that_are_no_ring_are_refused),
        cmocka_unit_test(what_random_bytes_decode_to_is_a_ring),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
