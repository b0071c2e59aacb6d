/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of wire/trace.h.
 */
#include "tests/test.h"

#include "base/mem.h"
#include "wire/trace.h"

static const struct trace_hop first = {.node = {(const uint8_t *)"n1", 2},
                                       .version = 61,
                                       .waited_us = 40,
                                       .did = TRACE_HELD | TRACE_FORWARD};
static const struct trace_hop second = {
    .node = {(const uint8_t *)"node-2", 6}, .version = 62, .waited_us = 7, .did = TRACE_RAN};

static void is_hop(struct reader *in, const struct trace_hop *hop)
{
    struct trace_hop back;

    assert_true(trace_next(in, &back));
    assert_true(bytes_equal(back.node, hop->node) && back.version == hop->version);
    assert_true(back.waited_us == hop->waited_us && back.ran_us == hop->ran_us);
    assert_int_equal(back.did, hop->did);
}

static void hops_come_back_in_their_order(void **state)
{
    struct buffer hops = {0};
    struct trace_hop ran = second;

    (void)state;
    trace_put(&hops, &first);
    trace_put(&hops, &second);
    trace_set_ran(&hops, 99);
    ran.ran_us = 99;
    struct reader in = {.at = hops.data, .left = hops.size};
    struct trace_hop more;
    is_hop(&in, &first);
    is_hop(&in, &ran);
    assert_false(trace_next(&in, &more));
    assert_false(in.bad);
    assert_true(trace_has(buffer_bytes(&hops), TRACE_HELD));
    hops.size = 0;
    trace_put(&hops, &second);
    assert_false(trace_has(buffer_bytes(&hops), TRACE_HELD));
    buffer_fini(&hops);
}

static void what_is_cut_or_nonsense_is_no_hop(void **state)
{
    struct buffer hops = {0};
    struct trace_hop hop;

    (void)state;
    trace_put(&hops, &first);
    for (size_t cut = 1; cut < hops.size; cut++) {
        uint8_t *exact = mem_copy(hops.data, cut);
        struct reader in = {.at = exact, .left = cut};

        assert_false(trace_next(&in, &hop));
        assert_true(in.bad);
        mem_free(exact);
    }
    hops.data[hops.size - 1] = 8; // it did what nobody does
    struct reader in = {.at = hops.data, .left = hops.size};
    assert_false(trace_next(&in, &hop));
    assert_true(in.bad);
    buffer_fini(&hops);
}

static void there_is_an_end_to_them(void **state)
{
    struct buffer hops = {0};

    (void)state;
    for (size_t i = 0; i < TRACE_SIZE_MAX; i++) {
        trace_put(&hops, &first);
    }
    assert_true(hops.size <= TRACE_SIZE_MAX);
    buffer_clear(&hops);
    trace_set_ran(&hops, 5); // of no hop
    assert_int_equal(hops.size, 0);
    buffer_fini(&hops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hops_come_back_in_their_order),
        cmocka_unit_test(what_is_cut_or_nonsense_is_no_hop),
        cmocka_unit_test(there_is_an_end_to_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
