/* SPDX-License-Identifier: Apache-2.0
 *
 * The client of an actor whose kind is a script.
 */
#include "tests/test.h"

#include "tests/lua/lua_rig.h"

enum { GATEWAY = 70, CONNECTION = 5, OTHER = 6 };

static const char *const script =
    "local k = ringhold.kind('room')\n"
    "function k.on_session(self, what, why)\n"
    "  self.heard = (self.heard or '') .. what .. (why and '.' .. why or '') .. ' '\n"
    "  if self.bad then error('it is bad') end\n"
    "  if (self.slow or 0) > 0 then ringhold.sleep(self.slow) end\n"
    "  if self.asks then self.heard = self.heard .. ringhold.rawcall(7, 'x', 'who') end\n"
    "  if what ~= 'lost' then ringhold.push('hello') end\n"
    "  return not self.shy\n"
    "end\n"
    "function k.told(self) return self.heard end\n"
    "function k.set(self, name, value) self[name] = tonumber(value) or true end\n"
    "function k.push(self, text)\n"
    "  local done, why = ringhold.push(text)\n"
    "  return tostring(done) .. (why and ' ' .. why or '')\n"
    "end\n"
    "function k.kick(self, code, text)\n"
    "  local done, why = ringhold.kick(tonumber(code) or code, text)\n"
    "  return tostring(done) .. (why and ' ' .. why or '')\n"
    "end\n"
    "function k.cast(self, ...)\n"
    "  local ids = {}\n"
    "  for _, id in ipairs({...}) do ids[id] = id ~= 'gone' end\n"
    "  return ringhold.broadcast('room', ids, 'all')\n"
    "end\n"
    "function k.listed(self) return ringhold.broadcast(9, {'ann', 'bob', false}, '') end\n"
    "function k.many(self)\n"
    "  local ids = {}\n"
    "  for i = 1, 65537 do ids[i] = 'm' .. i end\n"
    "  ringhold.broadcast(9, ids, 'x')\n"
    "end\n"
    "function k.nobody(self) ringhold.broadcast(9, {''}, 'x') end\n"
    "function k.huge(self) ringhold.broadcast(9, {'a'}, ('x'):rep(262145)) end\n"
    "function k.bare(self) return tostring(ringhold.kick()) end\n"
    "function k.big(self) ringhold.push(('x'):rep(262145)) end\n"
    "function k.long(self) ringhold.kick(('x'):rep(256)) end\n"
    "function k.none(self) ringhold.push() end\n"
    "function k.nul(self) ringhold.kick('a\\0b') end\n"
    "function k.on_handoff(self) ringhold.push('late') end\n";

static const char no_session[] = "nil NOSESSION no client is bound to the actor";

static struct note note_of(enum note_type type, uint64_t connection)
{
    return (struct note){.type = (uint8_t)type,
                         .gateway = GATEWAY,
                         .connection = connection,
                         .round = 1,
                         .why = NOTE_LOST_CLOSED};
}

static void run_note(struct rig *r, const struct note *note)
{
    struct buffer body = {0};

    runtime_tick(r->t.runtime, clock_boottime_us());
    note_put(&body, note);
    runtime_rig_run(&r->t, REQUEST_SESSION, buffer_bytes(&body));
    buffer_fini(&body);
}

static void bound_as(const struct rig *r, enum bound_result result)
{
    struct bound bound = {.result = 99};

    assert_int_equal(bound_get(buffer_bytes(&r->t.answer), &bound), ERR_OK);
    assert_int_equal(bound.result, result);
}

static void binds(struct rig *r, uint64_t connection, enum bound_result result)
{
    const struct note note = note_of(NOTE_BIND, connection);
    const size_t before = r->t.answers;

    run_note(r, &note);
    if (r->t.answers == before) {
        pass(r, VERB_RUN);
    }
    bound_as(r, result);
}

static void loses(struct rig *r, uint64_t connection, enum note_lost why)
{
    struct note note = note_of(NOTE_LOST, connection);

    note.why = (uint8_t)why;
    run_note(r, &note);
}

static void make(struct rig *r)
{
    rig_make(r, script, false);
    rig_enter(r);
}

static void a_script_is_told_of_its_client(void **state)
{
    struct rig r = {0};

    (void)state;
    make(&r);
    assert_string_equal(call(&r, "push x"), no_session);
    assert_string_equal(call(&r, "kick x"), no_session);
    binds(&r, CONNECTION, BOUND_NEW);
    assert_int_equal(r.t.told[VERB_PUSH], 1); // hello
    assert_string_equal(call(&r, "push x"), "true");
    assert_string_equal(call(&r, "push ''"), "true");
    assert_true(r.t.push.type == PUSH_DATA && r.t.push.number == 3 &&
                r.t.push.connection == CONNECTION);
    binds(&r, OTHER, BOUND_NEW);
    loses(&r, CONNECTION, NOTE_LOST_CLOSED); // of the one that was replaced
    loses(&r, OTHER, NOTE_LOST_SLOW);
    assert_string_equal(call(&r, "push x"), no_session);
    const struct note resume = note_of(NOTE_RESUME, OTHER);
    run_note(&r, &resume);
    bound_as(&r, BOUND_NEW);
    runtime_gateway_gone(r.t.runtime, GATEWAY);
    runtime_turn(r.t.actor, 8);
    assert_string_equal(call(&r, "told"), "bound replaced lost.slow resumed lost.gateway ");
    rig_free(&r);
}

static void a_script_kicks_its_client(void **state)
{
    const struct {
        const char *payload;
        uint32_t code;
    } rows[] = {{"kick 1007 go", 1007}, {"kick 'go away'", RH_KICK_GAME}, {"bare", RH_KICK_GAME}};
    struct rig r = {0};

    (void)state;
    make(&r);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        binds(&r, CONNECTION + i, BOUND_NEW);
        assert_string_equal(call(&r, rows[i].payload), "true");
        assert_true(r.t.push.type == PUSH_KICK && r.t.push.code == rows[i].code);
        assert_string_equal(call(&r, "push x"), no_session);
        assert_string_equal(call(&r, "kick"), no_session);
        loses(&r, CONNECTION + i, NOTE_LOST_KICKED);
    }
    assert_string_equal(call(&r, "told"), "bound lost.kicked bound lost.kicked bound lost.kicked ");
    rig_free(&r);
}

static void what_cannot_be_told_is_raised(void **state)
{
    const struct {
        const char *payload;
        const char *error;
    } rows[] = {
        {"big", "a push is at most 256 KiB"},
        {"long", "a kick's text is at most 255 bytes"},
        {"none", "bad argument #1 to 'push'"},
        {"nul", "bad argument #1 to 'kick' (a text without NUL)"},
        {"kick 999", "bad argument #1 to 'kick' (a code of 1000 and up)"},
        {"kick 4294967296", "a code of 1000 and up"},
        {"kick 1000.5", "bad argument #1 to 'kick'"},
    };
    struct rig r = {0};

    (void)state;
    make(&r);
    binds(&r, CONNECTION, BOUND_NEW);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = call(&r, rows[i].payload);

        if (strncmp(text, "ERR lua: ", 9) != 0 || strstr(text, rows[i].error) == NULL) {
            fail_msg("%s: %s", rows[i].payload, text);
        }
    }
    assert_int_equal(r.t.told[VERB_PUSH], 1);
    runtime_export(r.t.actor); // on_handoff may not push: its error makes it move cold
    assert_int_equal(r.t.told[VERB_PUSH], 1);
    assert_false(r.t.has_state);
    rig_free(&r);
}

static void a_script_says_no(void **state)
{
    struct rig r = {0};

    (void)state;
    make(&r);
    (void)call(&r, "set shy");
    binds(&r, CONNECTION, BOUND_REFUSED);
    assert_string_equal(call(&r, "push x"), no_session);
    assert_string_equal(call(&r, "told"), "bound ");
    rig_free(&r);
}

static void an_error_refuses_the_client(void **state)
{
    struct rig r = {0};

    (void)state;
    make(&r);
    binds(&r, CONNECTION, BOUND_NEW);
    (void)call(&r, "set bad");
    loses(&r, CONNECTION, NOTE_LOST_CLOSED);
    binds(&r, CONNECTION, BOUND_REFUSED);
    assert_string_equal(call(&r, "told"), "bound lost.closed bound ");
    rig_free(&r);
}

static void a_session_may_sleep_and_call(void **state)
{
    const struct note note = note_of(NOTE_BIND, OTHER);
    struct rig r = {0};

    (void)state;
    make(&r);
    (void)call(&r, "set slow 5");
    binds(&r, CONNECTION, BOUND_NEW);
    (void)call(&r, "set slow 0");
    (void)call(&r, "set asks");
    const size_t before = r.t.answers;
    run_note(&r, &note);
    assert_int_equal(r.t.told[VERB_CALL], 1);
    assert_int_equal(r.t.answers, before);
    const struct call_answer answer = {
        .number = r.t.call.number, .status = RH_OK, .payload = bytes_of("me", 2)};
    runtime_answer(r.t.runtime, &answer);
    if (r.t.answers == before) {
        pass(&r, VERB_RUN);
    }
    bound_as(&r, BOUND_NEW);
    assert_string_equal(call(&r, "told"), "bound replaced me");
    assert_int_equal(r.t.told[VERB_PUSH], 3); // two say hello, and the kick

    // One that is stopped in the midst of it leaves nothing.
    (void)call(&r, "set slow 60000");
    const struct note third = note_of(NOTE_BIND, OTHER + 1);
    run_note(&r, &third);
    rig_free(&r);
}

static void the_same_is_pushed_to_many(void **state)
{
    struct rig r = {0};

    (void)state;
    make(&r);
    assert_string_equal(call(&r, "cast ann"), "1");
    assert_int_equal(r.t.told[VERB_CALL], 1);
    assert_int_equal(r.t.call.count, 1);
    assert_true(r.t.call.push);
    assert_true(bytes_equal(buffer_bytes(&r.t.called), bytes_of("0 \3ann \4all", 11)));
    assert_string_equal(call(&r, "cast ann bob gone"), "2");
    assert_int_equal(r.t.call.count, 2);
    assert_string_equal(call(&r, "cast"), "0");
    assert_string_equal(call(&r, "cast gone"), "0");
    assert_int_equal(r.t.told[VERB_CALL], 2);
    assert_string_equal(call(&r, "listed"), "2");
    assert_true(bytes_equal(buffer_bytes(&r.t.called), bytes_of("9 \3ann\3bob \4", 12)));
    assert_non_null(strstr(call(&r, "many"), "at most 65536 ids"));
    assert_non_null(strstr(call(&r, "nobody"), "ids of 1 to 255 bytes"));
    assert_non_null(strstr(call(&r, "huge"), "at most 256 KiB"));
    assert_int_equal(r.t.told[VERB_CALL], 3);
    rig_free(&r);
}

/* Its devices are named by the order in which they came. */
static const char *const devices =
    "local k = ringhold.kind('player', {sessions = 'allow', sessions_max = 2})\n"
    "function k.on_session(self, what, why, session, former)\n"
    "  self.device = self.device or {}\n"
    "  if former then self.gone = former == self.device[1] end\n"
    "  if what ~= 'lost' then table.insert(self.device, session) end\n"
    "  self.heard = what .. (why or '')\n"
    "end\n"
    "function k.told(self) return self.heard .. ' ' .. #self.device .. (self.gone and ' gone' or "
    "'') end\n"
    "local function said(done, why) return tostring(done) .. (why and ' ' .. why or '') end\n"
    "function k.push(self, n, text) return said(ringhold.push_one(self.device[tonumber(n)], text)) "
    "end\n"
    "function k.all(self, text) return said(ringhold.push(text)) end\n"
    "function k.kick(self, n, text) return said(ringhold.kick_one(self.device[tonumber(n)], 1007, "
    "text)) end\n"
    "function k.rebind(self, n) return said(ringhold.rebind_one(self.device[tonumber(n)], 0, "
    "'me')) end\n"
    "function k.bad(self) ringhold.push_one(0, 'x') end\n";

static void a_script_has_several_clients(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r, devices, false);
    assert_int_equal(r.kind[0].ops->sessions, RH_SESSIONS_ALLOW);
    assert_int_equal(r.kind[0].ops->sessions_max, 2);
    rig_enter(&r);
    binds(&r, CONNECTION, BOUND_NEW);
    binds(&r, OTHER, BOUND_NEW);
    assert_string_equal(call(&r, "told"), "bound 2");
    assert_string_equal(call(&r, "all x"), "true");
    assert_int_equal(r.t.told[VERB_PUSH], 2);
    assert_string_equal(call(&r, "push 1 x"), "true");
    assert_true(r.t.push.connection == CONNECTION && r.t.push.number == 2);
    assert_string_equal(call(&r, "push 2 x"), "true");
    assert_int_equal(r.t.push.connection, OTHER);
    binds(&r, OTHER + 1, BOUND_NEW);
    assert_string_equal(call(&r, "told"), "replaced 3 gone");
    assert_string_equal(call(&r, "push 1 x"), no_session);
    assert_string_equal(call(&r, "kick 2 go"), "true");
    assert_true(r.t.push.type == PUSH_KICK && r.t.push.connection == OTHER);
    assert_string_equal(call(&r, "rebind 3"), "true");
    assert_true(r.t.push.type == PUSH_REBIND && r.t.push.connection == OTHER + 1);
    assert_string_equal(call(&r, "all x"), no_session);
    assert_non_null(strstr(call(&r, "bad"), "a session as passed to on_session"));
    rig_free(&r);
}

static void without_a_handler_nobody_is_bound(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r, "ringhold.kind('room').on_session = 7", false);
    assert_null(r.kind[0].ops->session);
    rig_enter(&r);
    binds(&r, CONNECTION, BOUND_NEVER);
    rig_free(&r);

    // It was there when the node started, and the script took it away since.
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "function k.on_session(self) end\n"
             "function k.drop(self) k.on_session = nil end\n",
             false);
    rig_enter(&r);
    binds(&r, CONNECTION, BOUND_NEW);
    (void)call(&r, "drop");
    binds(&r, OTHER, BOUND_REFUSED);
    rig_free(&r);
}

static void a_handler_changes_but_does_not_come_or_go(void **state)
{
    struct rig r = {0};

    (void)state;
    rig_make(&r,
             "local k = ringhold.kind('room')\n"
             "ringhold.start(function() function k.on_session(self) end end)\n"
             "function k.v(self) return 'one' end\n",
             true);
    assert_non_null(r.kind[0].ops->session);
    rig_enter(&r);
    rewrite(&r, "local k = ringhold.kind('room') function k.v(self) return 'two' end\n", 1000);
    while (r.game->seen_mtime.tv_sec != 1000) { // Read, and refused.
        assert_string_equal(call(&r, "v"), "one");
    }
    assert_string_equal(call(&r, "v"), "one");
    binds(&r, CONNECTION, BOUND_NEW);
    rewrite(&r,
            "local k = ringhold.kind('room') function k.v(self) return 'three' end\n"
            "function k.on_session(self) return false end\n",
            2000);
    expect_soon(&r, "v", "three");
    binds(&r, OTHER, BOUND_REFUSED);
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_is_told_of_its_client),
        cmocka_unit_test(a_script_kicks_its_client),
        cmocka_unit_test(a_script_has_several_clients),
        cmocka_unit_test(what_cannot_be_told_is_raised),
        cmocka_unit_test(a_script_says_no),
        cmocka_unit_test(an_error_refuses_the_client),
        cmocka_unit_test(a_session_may_sleep_and_call),
        cmocka_unit_test(the_same_is_pushed_to_many),
        cmocka_unit_test(without_a_handler_nobody_is_bound),
        cmocka_unit_test(a_handler_changes_but_does_not_come_or_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
