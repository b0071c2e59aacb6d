/* SPDX-License-Identifier: Apache-2.0
 *
 * The alarms of an actor whose kind is a script.
 */
#include "tests/lua/lua_rig.h"
#include "tests/node/memory_store.h"

#include "base/log.h"

static const char *const script =
    "local k = ringhold.kind('clock', {durable = true})\n"
    "function k.set(self, name, seconds, every)\n"
    "  ringhold.alarm(name, tonumber(seconds), {every = tonumber(every), payload = 'of ' .. "
    "name})\n"
    "end\n"
    "function k.bare(self) ringhold.alarm('bare', 0) end\n"
    "function k.cancel(self, name) return tostring(ringhold.cancel_alarm(name)) end\n"
    "function k.bad(self, n)\n"
    "  local calls = {\n"
    "    function() ringhold.alarm('', 1) end,\n"
    "    function() ringhold.alarm('a', -1) end,\n"
    "    function() ringhold.alarm('a', 0/0) end,\n"
    "    function() ringhold.alarm('a', 1, {every = 0.05}) end,\n"
    "    function() ringhold.alarm('a', 1, {payload = ('x'):rep(65537)}) end,\n"
    "    function() ringhold.alarm('a', 1, 7) end,\n"
    "  }\n"
    "  calls[tonumber(n)]()\n"
    "end\n"
    "function k.on_alarm(self, name, payload)\n"
    "  if name == 'slow' then ringhold.sleep(1) end\n"
    "  ringhold.put('rang', name .. '=' .. payload)\n"
    "  if name == 'bad' then error('it is bad') end\n"
    "  return name ~= 'shy'\n"
    "end\n";

struct alarmed {
    struct memory_store store;
    struct rig r;
};

/* Let both clocks go on, and the store answer. */
static void go_on(struct alarmed *a)
{
    while (memory_store_waiting(&a->store) > 0) {
        memory_store_do(&a->store);
    }
    runtime_set_wall(a->r.t.runtime, clock_boottime_us(), clock_wall_us());
    runtime_tick(a->r.t.runtime, clock_boottime_us());
}

static void open_alarmed(struct alarmed *a)
{
    const struct runtime_config config = {.on_completion = runtime_rig_on_completion,
                                          .context = &a->r.t,
                                          .numbering = &runtime_rig_numbering,
                                          .on_store = memory_store_put,
                                          .store = &a->store};

    log_set_level(LOG_ERROR);
    *a = (struct alarmed){0};
    memory_store_open(&a->store);
    rig_make(&a->r, script, false);
    runtime_close(a->r.t.runtime, RH_STOP);
    a->r.t.runtime = runtime_new(&config);
    rig_enter(&a->r);
    go_on(a);
    assert_int_equal(a->r.t.error, ERR_OK);
}

static void close_alarmed(struct alarmed *a)
{
    rig_free(&a->r);
    memory_store_close(&a->store);
}

static const char *asks(struct alarmed *a, const char *text)
{
    const size_t before = a->r.t.answers;

    (void)runtime_rig_call(&a->r.t, text);
    while (a->r.t.answers == before) {
        go_on(a);
    }
    return a->r.t.text;
}

/* Its next turn, to the end. */
static void turns(struct alarmed *a, size_t poke)
{
    const size_t before = a->r.t.told[VERB_TURN];

    while (a->r.t.told[VERB_POKE] < poke) {
        go_on(a);
    }
    runtime_turn(a->r.t.actor, 9);
    while (a->r.t.told[VERB_TURN] == before) {
        go_on(a);
    }
}

static void it_calls_on_alarm(void **state)
{
    struct alarmed a;

    (void)state;
    open_alarmed(&a);
    (void)asks(&a, "set rent 0");
    turns(&a, 1);
    assert_string_equal(memory_store_text(&a.store, "rang"), "rent=of rent");
    assert_string_equal(memory_store_alarm(&a.store, "rent"), "");
    (void)asks(&a, "bare");
    turns(&a, 2);
    assert_string_equal(memory_store_text(&a.store, "rang"), "bare=");
    (void)asks(&a, "set slow 0"); // it waits within
    turns(&a, 3);
    assert_string_equal(memory_store_text(&a.store, "rang"), "slow=of slow");
    assert_string_equal(memory_store_alarm(&a.store, "slow"), "");
    close_alarmed(&a);
}

static void one_that_fails_has_changed_nothing_and_stays(void **state)
{
    struct alarmed a;

    (void)state;
    open_alarmed(&a);
    (void)asks(&a, "set bad 0");
    turns(&a, 1);
    assert_string_equal(memory_store_text(&a.store, "rang"), "");
    assert_true(a.store.table[CHANGE_ALARM].there == 1);
    (void)asks(&a, "cancel bad");
    (void)asks(&a, "set shy 0");
    turns(&a, 2);
    assert_string_equal(memory_store_text(&a.store, "rang"), "");
    assert_true(a.store.table[CHANGE_ALARM].there == 1);
    close_alarmed(&a);
}

static void it_can_be_cancelled(void **state)
{
    struct alarmed a;

    (void)state;
    open_alarmed(&a);
    (void)asks(&a, "set often 3600 0.5");
    assert_non_null(strstr(memory_store_alarm(&a.store, "often"), " 500 of often"));
    assert_string_equal(asks(&a, "cancel often"), "true");
    assert_string_equal(asks(&a, "cancel often"), "false");
    assert_true(a.store.table[CHANGE_ALARM].there == 0);
    close_alarmed(&a);
}

static void what_makes_no_sense_is_an_error(void **state)
{
    char text[16];
    struct alarmed a;

    (void)state;
    open_alarmed(&a);
    for (int i = 1; i <= 6; i++) {
        (void)snprintf(text, sizeof text, "bad %d", i);
        assert_int_equal(strncmp(asks(&a, text), "ERR lua: ", 9), 0);
    }
    assert_true(a.store.table[CHANGE_ALARM].there == 0);
    close_alarmed(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_calls_on_alarm),
        cmocka_unit_test(one_that_fails_has_changed_nothing_and_stays),
        cmocka_unit_test(it_can_be_cancelled),
        cmocka_unit_test(what_makes_no_sense_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
