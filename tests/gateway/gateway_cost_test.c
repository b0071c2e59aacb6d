/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request costs inside the gateway, in counts that no machine changes.
 */
#include "tests/test.h"

#include "route/pending.h"
#include "tests/allocations.h"
#include "tests/gateway/gateway_rig.h"
#include "tests/steps.h"

enum { WARM_TURNS = 40, TURNS = 20, KEYS = 100000, STEPPED = 8 };

static void requests_allocate_nothing(enum gateway_rig_load load, bool streams)
{
    struct gateway_rig g;

    gateway_rig_init(&g, load, streams);
    for (int i = 0; i < WARM_TURNS + TURNS; i++) {
        gateway_rig_ask(&g, KEYS);
        allocations_counted = i >= WARM_TURNS;
        gateway_rig_there(&g);
        allocations_counted = false;
        gateway_rig_node(&g);
        allocations_counted = i >= WARM_TURNS;
        gateway_rig_back(&g);
        allocations_counted = false;
    }
    assert_int_equal(allocations, 0);
    assert_true(streams == (g.requests.cap == 0)); // it went the way that was meant
    // Each was answered, and the router forgot it.
    struct router_stats stats;

    router_stats(g.base.rig.router, &stats);
    assert_int_equal(stats.replied, (WARM_TURNS + TURNS) * GATEWAY_RIG_CLIENTS * GATEWAY_RIG_BATCH);
    assert_int_equal(stats.in_flight, 0);
    gateway_rig_fini(&g);
}

static void a_write_allocates_nothing(void **state)
{
    (void)state;
    requests_allocate_nothing(GATEWAY_RIG_SET, false);
    requests_allocate_nothing(GATEWAY_RIG_SET, true);
}

static void a_read_allocates_nothing(void **state)
{
    (void)state;
    requests_allocate_nothing(GATEWAY_RIG_GET, false);
    requests_allocate_nothing(GATEWAY_RIG_GET, true);
}

static void an_echo_allocates_nothing(void **state)
{
    (void)state;
    requests_allocate_nothing(GATEWAY_RIG_CALL, false);
    requests_allocate_nothing(GATEWAY_RIG_CALL, true);
}

static void a_packet_allocates_nothing(void **state)
{
    (void)state;
    requests_allocate_nothing(GATEWAY_RIG_PACKETS, false);
    requests_allocate_nothing(GATEWAY_RIG_PACKETS, true);
}

struct way {
    enum gateway_rig_load load;
    bool streams;
};

/* A batch of a client there, the node, then its answers back. */
static void a_batch(void *how)
{
    const struct way *way = how;
    struct gateway_rig g;

    gateway_rig_init(&g, way->load, way->streams);
    for (int i = 0; i < WARM_TURNS; i++) {
        gateway_rig_ask(&g, KEYS);
        gateway_rig_there(&g);
        gateway_rig_node(&g);
        gateway_rig_back(&g);
    }
    g.clients = 1;
    g.batch = STEPPED;
    gateway_rig_ask(&g, KEYS);
    steps_begin();
    gateway_rig_there(&g);
    steps_next();
    gateway_rig_node(&g);
    steps_next();
    gateway_rig_back(&g);
    steps_next();
}

/* In the build for tests; compiled as one (make LTO=1) it is less. */
static void check_instructions(struct way way, long most)
{
    enum { THERE, NODE, BACK, PARTS };
    long part[PARTS] = {0};

    steps_count(a_batch, &way, part, PARTS);
    printf("load %d by %s: there %ld, back %ld\n",
           (int)way.load,
           way.streams ? "streams" : "records",
           part[THERE] / STEPPED,
           part[BACK] / STEPPED);
    assert_in_range((part[THERE] + part[BACK]) / STEPPED, 300, most);
}

static void a_write_takes_few_instructions(void **state)
{
    (void)state;
    check_instructions((struct way){GATEWAY_RIG_SET, false}, 2420);
    check_instructions((struct way){GATEWAY_RIG_SET, true}, 1125);
}

static void a_read_takes_few_instructions(void **state)
{
    (void)state;
    check_instructions((struct way){GATEWAY_RIG_GET, false}, 2370);
    check_instructions((struct way){GATEWAY_RIG_GET, true}, 1095);
}

static void an_echo_takes_few_instructions(void **state)
{
    (void)state;
    check_instructions((struct way){GATEWAY_RIG_CALL, false}, 2300);
    check_instructions((struct way){GATEWAY_RIG_CALL, true}, 1100);
}

static void a_packet_takes_few_instructions(void **state)
{
    (void)state;
    check_instructions((struct way){GATEWAY_RIG_PACKETS, false}, 2220);
    check_instructions((struct way){GATEWAY_RIG_PACKETS, true}, 1185);
}

static void what_is_kept_for_reuse_is_bounded(void **state)
{
    struct pending_spares spares = {0};
    struct pending *p[10000];
    const struct question q = {.id = bytes_of("player-7", 8), .body = bytes_of("hello", 5)};

    (void)state;
    for (size_t i = 0; i < sizeof p / sizeof p[0]; i++) {
        p[i] = pending_new(&spares, &q);
    }
    for (size_t i = 0; i < sizeof p / sizeof p[0]; i++) {
        pending_free(&spares, p[i]);
    }
    assert_true(spares.size <= PENDING_SPARE_MAX);
    pending_spares_fini(&spares);
    assert_int_equal(spares.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_allocates_nothing),
        cmocka_unit_test(a_read_allocates_nothing),
        cmocka_unit_test(an_echo_allocates_nothing),
        cmocka_unit_test(a_packet_allocates_nothing),
        cmocka_unit_test(a_write_takes_few_instructions),
        cmocka_unit_test(a_read_takes_few_instructions),
        cmocka_unit_test(an_echo_takes_few_instructions),
        cmocka_unit_test(a_packet_takes_few_instructions),
        cmocka_unit_test(what_is_kept_for_reuse_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
