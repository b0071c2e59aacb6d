-- Tests of chat.lua without a fleet: docs/testing.md explains them.
--
--     ringhold test examples/lua/chat_test.lua

local test = require("ringhold_test")

local function room_of(...)
    local t = test.new("chat.lua")
    for _, name in ipairs({...}) do assert(t:call("room/1", "join", name)) end
    return t
end

test.case("what is said is pushed to others, also when room and guest have moved", function()
    local t = room_of("ada", "bob")
    assert(t:bind("guest/ada") and t:bind("guest/bob"))
    t:pushed("guest/ada")   -- that bob joined
    test.equal(t:call("room/1", "say", "bob", "hello there"), "said")
    test.equal(t:pushed("guest/ada"), "bob: hello there")
    test.equal(t:pushed("guest/bob"), nil, "who has said it")
    assert(t:move("room/1") and t:move("guest/ada"))
    test.equal(t:call("room/1", "say bob again"), "said")
    test.equal(t:pushed("guest/ada"), "bob: again")
end)

test.case("what one misses waits", function()
    local t = room_of("ada", "bob")
    assert(t:call("room/1", "say bob one"))
    assert(t:call("room/1", "say bob two"))
    test.equal(t:pushed("guest/ada"), nil)
    assert(t:bind("guest/ada"))
    test.equal(t:pushed("guest/ada"), "* bob joined")
    test.equal(t:pushed("guest/ada"), "bob: one")
    test.equal(t:pushed("guest/ada"), "bob: two")
    test.equal(t:pushed("guest/ada"), nil)
end)

test.case("who misses too much has left", function()
    local t = room_of("ada", "bob")
    for i = 1, 100 do assert(t:call("room/1", "say bob", i)) end
    test.equal(t:call("room/1", "who"), "bob")
    assert(t:bind("guest/ada"))
    test.equal(t:pushed("guest/ada"), "* you missed too much, and left 1")
end)

test.case("who is not there says nothing, and nobody binds to a room", function()
    local t = room_of("ada")
    local _, why = t:call("room/1", "say eve hello")
    test.equal(why, "NOTHERE join first")
    test.equal(t:bind("room/1"), false)
    test.equal(select(2, t:call("guest/ada", "hear lies")), "ERR only rooms say that")
end)
