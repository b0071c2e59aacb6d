/* SPDX-License-Identifier: Apache-2.0
 *
 * A node whose actors sleep while their alarms come due: it asks the store, and starts its own, so
 * many a second.
 */
#include "base/log.h"
#include "base/mem.h"
#include "node/host/inside.h"
#include "storage/actors/due.h"
#include "tests/planted.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

enum { SLEEPER = 3, NAPPER = 5, ROWS_MAX = 3000, WALL_MS = 1000000, TICK_US = 20000 };

static const struct host_kind kinds[] = {
    {.number = 0, .name = "kv"},
    {.number = SLEEPER, .name = "sleeper", .durable = true, .alarms = true},
    {.number = NAPPER, .name = "napper", .durable = true, .alarms = true},
};

static struct host *host;
static struct host_effects effects;
static struct view leader;
static uint64_t now_us;
static uint64_t wall_ms; /* ahead of that; 0 = nobody knows it */

/* The store: of the one kind, an alarm a millisecond, of the other none. */
static struct {
    size_t count;
    bool gone[ROWS_MAX];
    char id[ROWS_MAX][16];
    size_t asked; /* pages */
    size_t pages; /* of these: of SLEEPER */
    bool silent;  /* the page that was asked for last has not come */
    bool broken;
} store;

static struct {
    size_t count;
    size_t foreign;
    enum err error; /* they start so */
} started;

static void take(const struct host_event *in)
{
    struct host_event event = *in;

    event.now_us = now_us;
    event.wall_us = wall_ms == 0 ? 0 : now_us + wall_ms * 1000;
    host_effects_clear(&effects);
    host_step(host, &event, &effects);
}

static void hear(Rh__Control__BodyCase body, void *message)
{
    Rh__Control c = RH__CONTROL__INIT;

    c.era = 1;
    c.body_case = body;
    c.reg_ok = message; // any member of the union
    take(&(struct host_event){.type = HOST_CONTROL, .message = &c});
}

static void registers(void)
{
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Config whole;

    take(&(struct host_event){.type = HOST_COORDINATOR_UP});
    view_config(&leader, &whole);
    ok.nonce = 99;
    ok.slot = 1;
    ok.incarnation = 10;
    ok.floor = 14;
    ok.config = &whole;
    hear(RH__CONTROL__BODY_REG_OK, &ok);
    view_config_fini(&whole);
}

static int setup_rate(uint32_t rate)
{
    static const struct ring_op half[] = {
        {.kind = RING_MOVE, .vnode = 0, .from = 2, .to = 1},
        {.kind = RING_MOVE, .vnode = 2, .from = 2, .to = 1},
    };
    struct host_config config = host_config_default();

    log_set_level(LOG_ERROR);
    now_us = 1000000;
    wall_ms = WALL_MS;
    memset(&store, 0, sizeof store);
    memset(&started, 0, sizeof started);
    view_init(&leader, RING_GRID_MIN);
    leader.key = (struct ring_key){1, 2};
    leader.era = 1;
    ring_create(&leader.ring, 4, 2, 12);
    ring_reassign(&leader.ring, half, 2, 13);
    leader.member = mem_new(2, sizeof *leader.member);
    leader.member[0] = (struct view_member){1, "n1", "h:1", 10, 1, false, "", {0}};
    leader.member[1] = (struct view_member){2, "n2", "h:2", 11, 1, false, "", {0}};
    leader.member_count = 2;
    (void)snprintf(config.name, sizeof config.name, "n1");
    config.nonce = 99;
    config.kinds = kinds;
    config.kind_count = sizeof kinds / sizeof kinds[0];
    config.alarm_rate = rate;
    host = host_new(&config);
    registers();
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_rate(1000000);
}

static int setup_slow(void **state)
{
    (void)state;
    return setup_rate(10);
}

static int teardown(void **state)
{
    (void)state;
    host_check(host);
    host_free(host);
    host_effects_fini(&effects);
    memset(&effects, 0, sizeof effects);
    view_fini(&leader);
    return 0;
}

static void is_due(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(store.id[i], sizeof store.id[i], "s%u", (unsigned)i);
        store.gone[i] = false;
    }
    store.count = count;
}

static bool is_mine(size_t i)
{
    const struct bytes id = bytes_of(store.id[i], strlen(store.id[i]));

    return host_owns(host, ring_point_cell(host_position(host, SLEEPER, id)));
}

static size_t mine_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < store.count; i++) {
        count += is_mine(i) ? 1 : 0;
    }
    return count;
}

/* The page behind that alarm. */
static void answer(uint16_t kind, uint64_t now_ms, struct bytes after)
{
    struct due_alarm last = {0};
    struct buffer page = {0};
    size_t count = 0;

    (void)due_next(&after, &last);
    for (size_t i = 0; i < store.count && count < STORE_DUE_MAX && kind == SLEEPER; i++) {
        const struct due_alarm d = {.due_ms = WALL_MS + 1 + i,
                                    .id = bytes_of(store.id[i], strlen(store.id[i])),
                                    .name = bytes_of("tax", 3)};

        if (!store.gone[i] && d.due_ms > last.due_ms && d.due_ms <= now_ms && !store.broken) {
            due_put(&page, &d);
            count++;
        }
    }
    take(&(struct host_event){
        .type = HOST_DUE_PAGE, .kind = kind, .id = buffer_bytes(&page), .now_us = now_us});
    buffer_fini(&page);
}

/* It is started, and its alarm goes off. */
static void starts(const struct host_effect *e)
{
    const struct bytes id = actor_id(e->actor);

    for (size_t i = 0; i < store.count; i++) {
        if (bytes_equal(id, bytes_of(store.id[i], strlen(store.id[i])))) {
            started.count++;
            started.foreign += is_mine(i) ? 0 : 1;
            store.gone[i] = started.error == ERR_OK;
        }
    }
    take(&(struct host_event){
        .type = HOST_COMPLETED,
        .actor = e->actor,
        .completion = {.verb = VERB_ACTIVATE, .error = started.error},
    });
}

/* Do what the last step wants. True: it has asked for a page, which has come: a step as well. */
static bool does(void)
{
    struct host_effects all = effects;
    const struct host_effect *asked = NULL;

    effects = (struct host_effects){0};
    for (size_t i = 0; i < all.count; i++) {
        const struct host_effect *e = &all.item[i];

        if (e->type == HOST_SUBMIT && e->submission.verb == VERB_ACTIVATE) {
            starts(e);
        } else if (e->type == HOST_DUE) {
            store.asked++;
            store.pages += e->kinds[0] == SLEEPER ? 1 : 0;
            asked = store.silent ? NULL : e;
        }
    }
    if (asked != NULL) {
        answer(asked->kinds[0], asked->count, bytes_of(all.bytes.data + asked->at, asked->size));
    }
    host_effects_fini(&all);
    return asked != NULL;
}

static void settle(void)
{
    while (does()) {
    }
}

static void run(unsigned ms)
{
    for (const uint64_t until_us = now_us + (uint64_t)ms * 1000; now_us < until_us;) {
        now_us += TICK_US;
        take(&(struct host_event){.type = HOST_TICK});
        settle();
    }
}

static void it_asks_once_a_second(void **state)
{
    (void)state;
    run(2000);
    assert_int_equal(store.pages, 2);
    assert_int_equal(store.asked, 4); // of each kind
    run(1000);
    assert_int_equal(store.pages, 3);
}

static void its_own_are_started_and_no_others(void **state)
{
    (void)state;
    is_due(100);
    assert_true(mine_count() > 10 && mine_count() < 90);
    run(1000);
    assert_int_equal(started.count, mine_count());
    assert_int_equal(started.foreign, 0);
    assert_int_equal(host->alarms.started, mine_count());
    assert_true(host->alarms.lag_us > 0);
    run(2000);
    assert_int_equal(started.count, mine_count());
    assert_int_equal(host->alarms.lag_us, 0); // those of others are not its
}

static void nobody_is_started_before_the_time(void **state)
{
    (void)state;
    is_due(1);
    store.id[0][0] = 's';
    while (!is_mine(0)) {
        store.id[0][1]++;
    }
    wall_ms = WALL_MS - 10000; // of 1 s since the start
    run(8000);
    assert_int_equal(started.count, 0);
    run(2000);
    assert_int_equal(started.count, 1);
}

static void who_lives_is_left_alone(void **state)
{
    (void)state;
    is_due(100);
    run(1000);
    memset(store.gone, 0, sizeof store.gone); // it is due again, and the actor knows it
    run(2000);
    assert_int_equal(started.count, mine_count());
}

static void so_many_are_started_a_second(void **state)
{
    (void)state;
    is_due(400);
    run(1000);
    assert_true(started.count >= 9 && started.count <= 14);
    run(4000);
    assert_true(started.count >= 49 && started.count <= 54);
    assert_true(store.pages <= 2); // it has a page still
}

static void many_come_page_by_page(void **state)
{
    (void)state;
    is_due(ROWS_MAX);
    run(4000); // they come due one a millisecond
    assert_int_equal(started.count, mine_count());
    memset(store.gone, 0, sizeof store.gone);
    store.pages = 0; // who lives costs a look, too
    run(980);
    assert_int_equal(store.pages, 3);
}

static void a_store_that_fails_is_asked_again(void **state)
{
    (void)state;
    is_due(10);
    store.broken = true;
    run(1000);
    assert_int_equal(started.count, 0);
    store.broken = false;
    run(1000);
    assert_int_equal(started.count, mine_count());
}

static void a_slow_store_is_asked_once(void **state)
{
    (void)state;
    is_due(10);
    store.silent = true;
    run(5000);
    assert_int_equal(store.asked, 1);
    store.silent = false;
    answer(SLEEPER, WALL_MS + now_us / 1000, (struct bytes){0});
    settle();
    run(20);
    assert_int_equal(started.count, mine_count());
}

/* Its back-off is the actor's own; the row waits, and is met again. */
static void who_fails_is_started_again(void **state)
{
    (void)state;
    is_due(1);
    while (!is_mine(0)) {
        store.id[0][1]++;
    }
    started.error = ERR_REFUSED;
    run(5000);
    assert_true(started.count >= 3 && started.count <= 5);
    started.error = ERR_OK;
    run(30000);
    assert_true(store.gone[0]);
}

static void without_a_wall_clock_nothing_is_due(void **state)
{
    (void)state;
    wall_ms = 0;
    run(2000);
    assert_int_equal(store.asked, 0);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_asks_once_a_second, setup, teardown),
        cmocka_unit_test_setup_teardown(its_own_are_started_and_no_others, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_is_started_before_the_time, setup, teardown),
        cmocka_unit_test_setup_teardown(who_lives_is_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(so_many_are_started_a_second, setup_slow, teardown),
        cmocka_unit_test_setup_teardown(many_come_page_by_page, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_that_fails_is_asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_store_is_asked_once, setup, teardown),
        cmocka_unit_test_setup_teardown(who_fails_is_started_again, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_wall_clock_nothing_is_due, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_ALARMASLEEP};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
