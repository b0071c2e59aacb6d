/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions from an id to its node.
 */
#include "ring/ring.h"
#include "tests/steps.h"
#include "tests/test.h"

enum { LOOKUPS = 8, GRID = 14 };

static const struct ring_key key = {0x0123456789abcdef, 0xfedcba9876543210};
static volatile uint64_t sink;

/* Each looks up `count` ids. */
typedef void (*work)(const struct ring *r, size_t count);

static void by_number(const struct ring *r, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += ring_hit_node(ring_at(r, ring_position_u64(key, i * 77)));
    }
    sink = sum;
}

static void by_text(const struct ring *r, size_t count)
{
    static const char text[] = "01234567-89ab-cdef-0123-456789abcdef" // 36 bytes, and as many
                               "76543210-ba98-fedc-3210-fedcba987654";
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += ring_hit_node(ring_at(r, ring_position(key, bytes_of(text + i, 36))));
    }
    sink = sum;
}

struct lookups {
    struct ring ring;
    work run;
};

/* Some lookups, then twice as many. */
static void look_up(void *context)
{
    const struct lookups *l = context;

    steps_begin();
    l->run(&l->ring, LOOKUPS);
    steps_next();
    l->run(&l->ring, (size_t)2 * LOOKUPS);
    steps_next();
}

/* Instructions of LOOKUPS lookups in a ring of so many cells and vnodes. */
static long cost_of(work run, uint8_t grid, uint32_t vnodes)
{
    struct lookups l = {.run = run};
    long part[2] = {0};

    if (!steps_countable()) {
        skip(); // before anything is made, which a skipped test would leave behind
    }
    ring_init(&l.ring, grid);
    ring_create(&l.ring, vnodes, 1, 1);
    steps_count(look_up, &l, part, 2);
    ring_fini(&l.ring);
    return part[1] - part[0];
}

static void check_cost(work run, long most)
{
    assert_in_range(cost_of(run, GRID, 64) / LOOKUPS, 50, most);
}

static void a_number_finds_its_node_in_few_instructions(void **state)
{
    (void)state;
    check_cost(by_number, 90);
}

static void a_text_of_36_bytes_finds_its_node_in_few_instructions(void **state)
{
    (void)state;
    check_cost(by_text, 160);
}

/* Each pinned cell is a vnode of its own, and what is between two of them another. */
static void what_is_pinned_costs_a_lookup_nothing(void **state)
{
    enum { WIDE = 20, PINS = 100000, VNODES = 4096 };

    (void)state;
    const long none = cost_of(by_text, WIDE, VNODES);
    const long all = cost_of(by_text, WIDE, VNODES + 2 * PINS);
    print_message("a lookup: %ld instructions without pins, %ld with %d\n",
                  none / LOOKUPS,
                  all / LOOKUPS,
                  PINS);
    assert_int_equal(none, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_finds_its_node_in_few_instructions),
        cmocka_unit_test(a_text_of_36_bytes_finds_its_node_in_few_instructions),
        cmocka_unit_test(what_is_pinned_costs_a_lookup_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
