/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of games in Lua: a script's actors in a runtime.
 */
#include "tests/test.h"

#include "tests/lua/lua_rig.h"
#include "wire/cursor.h"
#include "wire/record.h"

/* Answer the call that the actor made last. */
static void answer(struct rig *r, int status, const void *data, size_t size)
{
    const struct call_answer a = {
        .number = r->t.call.number, .status = status, .payload = bytes_of(data, size)};

    runtime_answer(r->t.runtime, &a);
}

/* ---- messages ---- */

static void words_and_commands_become_methods(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.add(self, a, b) self.n = (self.n or 0) + a + (b or 0) return self.n end\n"
             "function k.get(self) return self.n end\n"
             "function k.half(self) return 0.5 end\n"
             "function k.yes(self) return true end\n"
             "function k.show(self, ...) return table.concat({...}, '|') end\n"
             "function k._mine(self) return 1 end\n"
             "function k.on_message(self, ...) return 'default ' .. table.concat({...}, '|') end\n",
             false);
    rig_enter(&r);
    assert_string_equal(call(&r, "get"), "");
    assert_string_equal(call(&r, "add 2"), "2");
    assert_string_equal(call(&r, "half"), "0.5");
    assert_string_equal(call(&r, "yes"), "1");
    assert_string_equal(call(&r, "show a 'b c' \"d\""), "a|b c|d");
    assert_string_equal(call(&r, "_mine x"), "default _mine x");
    assert_string_equal(call(&r, "on_message"), "default on_message");
    assert_string_equal(call(&r, "\"half"), "default \"half");
    assert_string_equal(call(&r, ""), "default ");
    assert_string_equal(runtime_rig_command(&r.t, "SHOW id x y"), "b:x|y");
    assert_string_equal(runtime_rig_command(&r.t, "FLY id x"), "b:default fly|x");
    assert_string_equal(runtime_rig_command(&r.t, "YES id"), "i:1");
    rig_free(&r);
}

static void errors_are_answered_and_the_actor_lives(void **state)
{
    const struct {
        const char *payload;
        const char *answer;
    } cases[] = {
        {"nosuch", "ERR lua: kind room has no method 'nosuch'"},
        {"boom", "game.lua:2: attempt to index a nil value (local 'x')"},
        {"object", "(an error without a text)"},
        {"refuse", "NOITEM you have none"},
        {"spin", "it ran 1000000 instructions without a wait"},
        {"stubborn", "it ran 1000000 instructions without a wait"},
        {"nested", "it ran 1000000 instructions without a wait"},
        {"eat", "not enough memory"},
        {"global", "assignment to the new global 'oops'"},
        {"yield", "coroutine.yield() outside"},
        {"sort", "can't wait here"},
        {"inner", "only the actor's own coroutines can wait"},
        {"table", "it returned a table"},
        {"forks", "more than 1024 coroutines of one actor"},
        {"late", "the method waited longer than its limit of 50 ms"},
        {"itself", "ERR the actor can't be called now, or called itself"},
        {"nokind", "no kind 'fly' in this script"},
        {"packs", "value 2 is a function"},
    };
    struct rig r = {0};

    (void)state;
    rig_make(
        &r,
        "local k = ringhold.kind('room', {limit = 50})\n"
        "function k.boom(self) local x return x.y end\n"
        "function k.object(self) error({}) end\n"
        "function k.refuse(self) ringhold.refuse('NOITEM you have none') end\n"
        "function k.spin(self) while true do end end\n"
        "function k.stubborn(self) while true do pcall(k.spin) end end\n"
        "function k.nested(self) return coroutine.wrap(k.spin)() end\n"
        "function k.eat(self) local t = {} while true do t[#t+1] = ('x'):rep(1e6) .. #t end end\n"
        "function k.global(self) oops = 1 end\n"
        "function k.yield(self) coroutine.yield() end\n"
        "function k.sort(self) table.sort({1, 2}, function() ringhold.sleep(1) end) end\n"
        "function k.inner(self) coroutine.wrap(function() ringhold.sleep(1) end)() end\n"
        "function k.table(self) return {} end\n"
        "function k.forks(self) while true do ringhold.fork(function() end) end end\n"
        "function k.late(self) ringhold.wait() end\n"
        "function k.itself(self) ringhold.call('room', ringhold.self(), 'x') end\n"
        "function k.nokind(self) ringhold.send('fly', 'a', 'x') end\n"
        "function k.packs(self) ringhold.send('room', 'a', 'x', print) end\n"
        "function k.ok(self) return 'alive' end\n",
        false);
    rig_enter(&r);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *text = call(&r, cases[i].payload);

        if (strstr(text, cases[i].answer) == NULL) {
            fail_msg("%s: %s", cases[i].payload, text);
        }
        assert_int_equal(r.t.code, ANSWER_APP_ERROR);
        assert_string_equal(call(&r, "ok"), "alive");
    }
    rig_free(&r);
}

/* ---- waiting ---- */

static void sleep_reads_as_if_it_blocked(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.nap(self) local a = ringhold.now() ringhold.sleep(5)\n"
             "  return ringhold.now() - a >= 5 end\n"
             "function k.early(self) ringhold.ret('first') ringhold.sleep(500) self.d = 1 end\n"
             "function k.done(self) return self.d end\n"
             "function k.fan(self) local out, me, left = {}, ringhold.running(), 3\n"
             "  for i = 3, 1, -1 do ringhold.fork(function(by) ringhold.sleep(i * 2)\n"
             "    out[#out + 1] = i + by left = left - 1\n"
             "    if left == 0 then ringhold.wakeup(me) end end, 10) end\n"
             "  ringhold.wait() return #out end\n"
             "function k.later(self) ringhold.timeout(5, function() self.d = 2 end) end\n"
             "function k.never(self) local n = ringhold.timeout(5, function() self.d = 3 end)\n"
             "  return ringhold.cancel(n) and not ringhold.cancel(n) end\n"
             "function k.clock(self) ringhold.timer('tick', 2, 2) end\n"
             "function k.on_timer(self, name) self.t = (self.t or 0) + 1\n"
             "  if self.t == 3 then ringhold.cancel(name) end end\n"
             "function k.ticks(self) return self.t end\n",
             false);
    rig_enter(&r);
    assert_string_equal(call(&r, "nap"), "1");
    // The tick of the next call ends its sleep already, if this process gets no CPU until then.
    const size_t pokes = r.t.told[VERB_POKE];
    assert_string_equal(call(&r, "early"), "first");
    assert_string_equal(call(&r, "done"), "");
    pass_from(&r, VERB_POKE, pokes);
    runtime_turn(r.t.actor, 5);
    assert_string_equal(call(&r, "done"), "1");
    assert_string_equal(call(&r, "fan"), "3");
    assert_string_equal(call(&r, "later"), "");
    pass(&r, VERB_POKE);
    runtime_turn(r.t.actor, 6);
    assert_string_equal(call(&r, "done"), "2");
    assert_string_equal(call(&r, "never"), "1");
    assert_string_equal(call(&r, "clock"), "");
    for (int i = 0; i < 3; i++) {
        pass(&r, VERB_POKE);
        runtime_turn(r.t.actor, 7);
    }
    assert_string_equal(call(&r, "ticks"), "3");
    rig_free(&r);
}

static void a_message_is_not_disturbed_while_it_sleeps(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.work(self) ringhold.timeout(1, function() self.x = 'disturbed' end)\n"
             "  self.x = 'mine' ringhold.sleep(20) return self.x end\n",
             false);
    rig_enter(&r);
    assert_string_equal(call(&r, "work"), "mine");
    rig_free(&r);
}

static void calls_carry_values_and_errors(void **state)
{
    static const char packed[] = "\x1bRL\x01\x05\x02ok\x06\x01\x03\x02\x07";
    struct rig r = {0};

    (void)state;
    rig_make(
        &r,
        "local k = ringhold.kind('room')\n"
        "ringhold.kind('guild', {number = 9, timeout = 700})\n"
        "function k.ask(self) local a, b = ringhold.call('guild', 'g1', 'rank', 1, {x = 2})\n"
        "  return a .. (type(b) == 'table' and b[1] or '') end\n"
        "function k.try(self) local good, why = pcall(ringhold.call, 'guild', 'g1', 'rank')\n"
        "  return tostring(good) .. ' ' .. why end\n"
        "function k.raw(self) return ringhold.rawcall(4, 'c', 'GET x') end\n"
        "function k.after(self) ringhold.ret('now') self.x = ringhold.call('guild', 'g', 'x') end\n"
        "function k.seen(self) return self.x end\n",
        false);
    rig_enter(&r);
    (void)runtime_rig_call(&r.t, "ask");
    assert_int_equal(r.t.told[VERB_CALL], 1);
    assert_int_equal(r.t.call.timeout_ms, 700);
    assert_memory_equal(r.t.called.data, "9 g1 \x1bRL\x01\x05\x04rank", 15);
    answer(&r, RH_OK, packed, sizeof packed - 1);
    assert_string_equal(r.t.text, "ok1");
    (void)runtime_rig_call(&r.t, "ask");
    answer(&r, RH_FAILED, "NORANK none", 11);
    assert_non_null(strstr(r.t.text, "game.lua:3: NORANK none"));
    (void)runtime_rig_call(&r.t, "try");
    answer(&r, RH_TIMEOUT, "", 0);
    assert_string_equal(r.t.text,
                        "false TIMEOUT no answer in time; the call may have run, at most once");
    (void)runtime_rig_call(&r.t, "try");
    answer(&r, RH_OK, "\x1bRL\x01\x09", 5);
    assert_string_equal(r.t.text, "false UNKNOWN outcome: the answer can't be decoded");
    (void)runtime_rig_call(&r.t, "raw");
    assert_int_equal(r.t.called.size, 9);
    answer(&r, RH_OK, "plain", 5);
    assert_string_equal(r.t.text, "plain");
    assert_string_equal(call(&r, "after"), "now");
    answer(&r, RH_OK, "then", 4);
    runtime_turn(r.t.actor, 5);
    assert_string_equal(call(&r, "seen"), "then");
    rig_free(&r);
}

static void scripts_ask_scripts_in_values(void **state)
{
    static const char payload[] = "\x1bRL\x01\x05\x05whois\x06\x00\x05\x01n\x03\x0a\x07";
    struct buffer body = {0};
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.whois(self, t) local kind, id = ringhold.from()\n"
             "  return kind, id, t.n, {1} end\n",
             false);
    rig_enter(&r);
    const struct caller caller = {.kind = 0, .id = bytes_of("ada", 3)};
    struct writer w = {buffer_reserve(&body, caller_size(&caller)), caller_size(&caller), false};
    caller_put(&w, &caller);
    body.size += caller_size(&caller);
    buffer_put(&body, payload, sizeof payload - 1);
    runtime_rig_run(&r.t, REQUEST_CALL, buffer_bytes(&body));
    assert_memory_equal(r.t.text,
                        "\x1bRL\x01\x05\x04room\x05\x03"
                        "ada\x03\x0a\x06\x01\x03\x02\x07",
                        23);
    // The same from a client is a payload that names no method.
    runtime_rig_run(&r.t, 0, bytes_of(payload, sizeof payload - 1));
    assert_int_equal(r.t.code, ANSWER_APP_ERROR);
    buffer_fini(&body);
    rig_free(&r);
}

/* ---- life ---- */

static void self_moves_without_being_asked(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.on_activate(self, state) self.moves = (self.moves or -1) + 1\n"
             "  self.bag = self.bag or {'sword'} assert((state == nil) == (self.moves == 0)) end\n"
             "function k.show(self) return self.moves .. self.bag[1] .. ringhold.fence() end\n"
             "function k.life(self) return ringhold.incarnation() end\n"
             "function k.version(self) return ringhold.version end\n"
             "function k.spoil(self) self.bag.f = print end\n",
             false);
    rig_enter(&r);
    assert_string_equal(call(&r, "show"), "0sword7");
    assert_string_equal(call(&r, "version"), rh_version());
    char life[256];
    (void)snprintf(life, sizeof life, "%s", call(&r, "life"));
    assert_memory_equal(life, "0000000000000007-", 17);
    assert_string_equal(call(&r, "life"), life);
    runtime_rig_move(&r.t, r.kind[0].ops, r.shared);
    assert_true(strcmp(call(&r, "life"), life) > 0);
    assert_string_equal(call(&r, "show"), "1sword9");
    (void)call(&r, "spoil");
    runtime_export(r.t.actor);
    assert_false(r.t.has_state); // A function does not move: it goes cold.
    runtime_unfreeze(r.t.actor);
    assert_string_equal(call(&r, "show"), "1sword9");
    rig_free(&r);
}

/* Start the actor with a state of that version. */
static void enter_with(struct rig *r, struct bytes state, uint32_t version)
{
    const struct runtime_entry entry = {.ops = r->kind[0].ops,
                                        .shared = r->shared,
                                        .fence = 9,
                                        .state = state,
                                        .has_state = true,
                                        .state_version = version};

    runtime_tick(r->t.runtime, clock_boottime_us());
    runtime_rig_enter(&r->t, &entry);
}

static void a_script_upgrades_the_state_of_the_one_before(void **state)
{
    struct rig r = {0};
    struct buffer old = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room', {state_version = 1})\n"
             "function k.on_activate(self) self.bag = 'sword' end\n",
             false);
    rig_enter(&r);
    runtime_export(r.t.actor);
    assert_true(r.t.has_state);
    buffer_put(&old, r.t.state.data, r.t.state.size);
    rig_free(&r);
    rig_make(&r,
             "local k = ringhold.kind('room', {state_version = 2, state_version_most = 2})\n"
             "function k.on_upgrade(state, version)\n"
             "  if state.bag == 'torn' then error('torn') end\n"
             "  if state.bag == 'none' then return 'no table' end\n"
             "  return {bags = {state.bag}, was = version} end\n"
             "function k.on_activate(self) end\n"
             "function k.show(self) return self.bags[1] .. self.was end\n",
             false);
    assert_int_equal(r.kind[0].ops->state_version, 2);
    assert_non_null(r.kind[0].ops->upgrade);
    enter_with(&r, buffer_bytes(&old), 1);
    assert_string_equal(call(&r, "show"), "sword1");
    runtime_discard(r.t.actor, RH_MOVED);
    buffer_clear(&old);
    buffer_put(&old, "\1S", 2);
    buffer_put(&old, "\6\0\5\3bag\5\4torn\7", 14); // {bag = "torn"}: lua/pack.h
    enter_with(&r, buffer_bytes(&old), 1);
    assert_null(r.t.actor);
    memcpy(old.data + 11, "none", 4);
    enter_with(&r, buffer_bytes(&old), 1);
    assert_null(r.t.actor);
    memcpy(old.data + 11, "good", 4);
    enter_with(&r, buffer_bytes(&old), 1);
    assert_string_equal(call(&r, "show"), "good1");
    buffer_fini(&old);
    rig_free(&r);
}

static void callbacks_may_wait_refuse_and_fail(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.on_activate(self, state) ringhold.sleep(2) self.x = state or 'fresh' end\n"
             "function k.on_handoff(self) ringhold.sleep(2)\n"
             "  if self.x == 'busy' then return ringhold.BUSY end\n"
             "  if self.x == 'cold' then return ringhold.COLD end\n"
             "  if self.x == 'bad' then error('no') end return self.x end\n"
             "function k.on_flush(self, why) ringhold.sleep(2) self.why = why\n"
             "  if self.x == 'full' then error('disk full') end end\n"
             "function k.set(self, x) self.x = x end\n"
             "function k.get(self) return self.x .. ' ' .. tostring(self.why) end\n",
             false);
    rig_enter(&r);
    pass(&r, VERB_ACTIVATE);
    assert_string_equal(call(&r, "get"), "fresh nil");
    runtime_export(r.t.actor);
    pass(&r, VERB_EXPORT);
    assert_true(r.t.has_state);
    runtime_unfreeze(r.t.actor);
    assert_string_equal(call(&r, "get"), "fresh moved");
    (void)call(&r, "set busy");
    runtime_export(r.t.actor);
    pass(&r, VERB_EXPORT);
    assert_int_equal(r.t.error, ERR_BUSY);
    (void)call(&r, "set cold");
    runtime_export(r.t.actor);
    pass(&r, VERB_EXPORT);
    assert_false(r.t.has_state);
    runtime_unfreeze(r.t.actor);
    (void)call(&r, "set bad");
    runtime_export(r.t.actor);
    pass(&r, VERB_EXPORT);
    assert_int_equal(r.t.error, ERR_OK);
    assert_false(r.t.has_state);
    runtime_unfreeze(r.t.actor);
    (void)call(&r, "set full");
    runtime_retire(r.t.actor);
    pass(&r, VERB_RETIRE);
    assert_int_equal(r.t.error, ERR_IO); // It stays alive.
    assert_string_equal(call(&r, "get"), "full idle");
    rig_free(&r);
}

static void an_activation_that_fails_leaves_nothing(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.on_activate(self) if ringhold.fence() == 7 then ringhold.sleep(2) end\n"
             "  error('no') end\n",
             false);
    rig_enter(&r); // It fails after a wait.
    assert_non_null(r.t.actor);
    pass(&r, VERB_ACTIVATE);
    assert_int_equal(r.t.error, ERR_REFUSED);
    assert_null(r.t.actor);
    rig_enter(&r);
    runtime_discard(r.t.actor, RH_STOP); // It is stopped while it waits.
    const struct runtime_entry at_once = {.ops = r.kind[0].ops, .shared = r.shared, .fence = 8};
    runtime_rig_enter(&r.t, &at_once);
    assert_null(r.t.actor);
    const struct runtime_entry torn = {.ops = r.kind[0].ops,
                                       .shared = r.shared,
                                       .fence = 9,
                                       .has_state = true,
                                       .state = bytes_of("\x01S\x06\x05", 4)};
    runtime_rig_enter(&r.t, &torn);
    assert_null(r.t.actor);
    rig_free(&r);
}

static void an_actor_is_stopped_in_the_midst_of_it(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.work(self) local c <close> = setmetatable({}, {__close = function()\n"
             "  assert(ringhold.self() == nil) end})\n"
             "  ringhold.fork(ringhold.wait) ringhold.wait() end\n"
             "function k.on_deactivate(self, why) ringhold.sleep(1) end\n",
             false);
    rig_enter(&r);
    (void)runtime_rig_call(&r.t, "work");
    runtime_discard(r.t.actor, RH_FENCED);
    rig_free(&r);
}

/* ---- reload ---- */

static void a_new_script_runs_and_self_stays(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.hit(self) self.n = (self.n or 0) + 1 return self.n end\n"
             "function k.v(self) return 'one' end\n",
             true);
    rig_enter(&r);
    assert_string_equal(call(&r, "hit"), "1");
    rewrite(&r,
            "local k = ringhold.kind('room')\n"
            "function k.hit(self) self.n = (self.n or 0) + 10 return self.n end\n"
            "function k.v(self) return 'two' end\n",
            1000);
    expect_soon(&r, "v", "two");
    assert_string_equal(call(&r, "hit"), "11");
    rewrite(&r, "this is no Lua\n", 2000);
    rewrite(&r, "ringhold.kind('hall')\n", 3000);
    rewrite(&r,
            "local k = ringhold.kind('room')\n"
            "function k.v(self) return 'three' end\n"
            "error('at the end')\n",
            4000);
    while (r.game->seen_mtime.tv_sec != 4000) { // Read, and refused.
        assert_string_equal(call(&r, "v"), "two");
    }
    assert_string_equal(call(&r, "v"), "two");
    rewrite(&r, "#!/usr/bin/lua\nfunction ringhold.kind('room').v() return 4 end\n", 5000);
    while (r.game->seen_mtime.tv_sec != 5000) {
        assert_string_equal(call(&r, "v"), "two");
    }
    rewrite(&r, "#!/usr/bin/lua\nringhold.kind('room').v = function() return 4 end\n", 6000);
    expect_soon(&r, "v", "4");
    rig_free(&r);
}

static void wrong_scripts_are_refused(void **state)
{
    const char *const wrong[] = {
        "",
        "ringhold.kind()",
        "ringhold.kind('Room')",
        "ringhold.kind('room') ringhold.kind('room')",
        "ringhold.kind('a', {number = 1}) ringhold.kind('b', {number = 1})",
        "ringhold.kind('a', {number = 65536})",
        "ringhold.kind('a', {number = '1'})",
        "ringhold.kind('a', {idle = 0})",
        "ringhold.kind('a', {idle = true})",
        "ringhold.kind('a', {idel = 3})",
        "ringhold.kind('a', {placement = 'here'})",
        "ringhold.kind('a', {placement = 'daemons'})",
        "ringhold.kind('a', {daemons = 3})",
        "ringhold.kind('a', {part = 0.1})",
        "ringhold.kind('a', {placement = 'hosts', part = 1.1})",
        "ringhold.kind('a', {placement = 'hosts', part = '0.1'})",
        "ringhold.kind('a', {raw = 1})",
        "ringhold.kind('a', {sessions = 'all'})",
        "ringhold.kind('a', {sessions = 'allow', sessions_max = 17})",
        "ringhold.kind('a', {sessions_max = 2})",
        "ringhold.kind('a', {[1] = 1})",
        "ringhold.kind('a', 7)",
        "ringhold.start(print) ringhold.start(print)",
        "ringhold.kind('a') ringhold.self()",
        "ringhold.kind('a') ringhold.start(function() ringhold.sleep(1) end)",
        "ringhold.kind('a') while true do end",
        "ringhold.kind('a') coroutine.yield()",
        "ringhold.kind('a') require('nosuchmodule')",
        "ringhold.kind('a') local t = {} while true do t = {t, t} end",
        "\x1bLua",
    };
    struct rig r = {0};

    (void)state;
    folder_make(r.folder, sizeof r.folder);
    (void)snprintf(r.path, sizeof r.path, "%s/game.lua", r.folder);
    const struct game_options options = {
        .script = r.path, .instructions_max = 1000000, .memory_max = (size_t)16 << 20};
    assert_null(game_open(&options)); // no such file
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_script(&r, wrong[i]);
        if (game_open(&options) != NULL) {
            fail_msg("%s", wrong[i]);
        }
    }
    folder_remove(r.folder);
}

static void a_script_says_where_its_kinds_live(void **state)
{
    struct rig r = {0};

    (void)state;
    folder_make(r.folder, sizeof r.folder);
    (void)snprintf(r.path, sizeof r.path, "%s/game.lua", r.folder);
    const struct game_options options = {
        .script = r.path, .instructions_max = 1000000, .memory_max = (size_t)16 << 20};
    write_script(&r,
                 "ringhold.kind('a', {placement = 'hosts'})\n"
                 "ringhold.kind('b', {placement = 'hosts', part = 0.1})\n"
                 "ringhold.kind('c', {placement = 'hosts', part = 0})\n");
    struct game *g = game_open(&options);
    assert_non_null(g);
    assert_int_equal(g->shown[0].placement, RH_PLACE_HOSTS);
    assert_int_equal(g->shown[0].part, 0);
    assert_int_equal(g->shown[1].part, 100);
    assert_int_equal(g->shown[2].part, RH_PART_NONE);
    game_close(g);
    folder_remove(r.folder);
}

/* ---- the store ---- */

static void a_stale_owner_is_refused(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "local file = debug.getinfo(1, 'S').source:match('@(.*)/') .. '/store.db'\n"
             "local old, new = ringhold.store(file, 't'), ringhold.store(file, 't')\n"
             "function k.test(self)\n"
             "  assert(old:claim('a', 5) == nil)\n"
             "  old:save('a', 5, {gold = 7, bag = {'x'}})\n"
             "  assert(old:claim('a', 5).gold == 7)\n"
             "  assert(new:claim('a', 9).bag[1] == 'x')\n"
             "  local saved, why = pcall(old.save, old, 'a', 5, {gold = 0})\n"
             "  assert(not saved and why:match('^FENCED'), why)\n"
             "  assert(not pcall(old.claim, old, 'a', 8))\n"
             "  assert(not pcall(old.save, old, 'b', 9, 1))\n"
             "  assert(not pcall(new.save, new, 'a', 9, print))\n"
             "  new:save('a', 9, 'text')\n"
             "  assert(new:claim('a', 9) == 'text')\n"
             "  assert(not pcall(ringhold.store, '/proc/none/x.db'))\n"
             "  assert(not pcall(ringhold.store, file, 'a\"b'))\n"
             "  return 'ok' end\n",
             false);
    rig_enter(&r);
    assert_string_equal(call(&r, "test"), "ok");
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_commands_become_methods),
        cmocka_unit_test(errors_are_answered_and_the_actor_lives),
        cmocka_unit_test(sleep_reads_as_if_it_blocked),
        cmocka_unit_test(a_message_is_not_disturbed_while_it_sleeps),
        cmocka_unit_test(calls_carry_values_and_errors),
        cmocka_unit_test(scripts_ask_scripts_in_values),
        cmocka_unit_test(a_script_upgrades_the_state_of_the_one_before),
        cmocka_unit_test(self_moves_without_being_asked),
        cmocka_unit_test(callbacks_may_wait_refuse_and_fail),
        cmocka_unit_test(an_activation_that_fails_leaves_nothing),
        cmocka_unit_test(an_actor_is_stopped_in_the_midst_of_it),
        cmocka_unit_test(a_new_script_runs_and_self_stays),
        cmocka_unit_test(wrong_scripts_are_refused),
        cmocka_unit_test(a_script_says_where_its_kinds_live),
        cmocka_unit_test(a_stale_owner_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
