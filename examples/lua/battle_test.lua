-- Tests of battle.lua without a fleet: docs/testing.md explains them.
--
--     ringhold test examples/lua/battle_test.lua

local test = require("ringhold_test")

local function begun()
    local t = test.new("battle.lua")
    test.equal(t:call("battle/7", "join ada"), "waiting")
    test.equal(t:call("battle/7", "join bob"), "fighting")
    return t
end

-- Ada hits as often as she may, until somebody has won.
local function fought()
    local t = begun()
    repeat
        local left = assert(t:call("battle/7", "attack ada bob"))
        t:advance(500)
    until tonumber(left) == 0
    return t
end

test.case("the last one standing wins, and both players hear of it", function()
    local t = fought()
    assert(t:call("battle/7", "state"):find("^over .*winner=ada$"))
    test.equal(t:call("battle/7", "score ada"), "1 of 1")
    test.equal(t:call("battle/7", "score bob"), "0 of 1")
end)

test.case("who has hit must wait for two ticks", function()
    local t = begun()
    assert(t:call("battle/7", "attack ada bob"))
    local answer, why = t:call("battle/7", "attack ada bob")
    test.equal(answer, nil)
    test.equal(why, "TOOSOON your arm is tired")
    t:advance(500)
    assert(t:call("battle/7", "attack ada bob"))
end)

test.case("when time is up, the strongest wins", function()
    local t = begun()
    assert(t:call("battle/7", "attack bob ada"))
    t:advance(59000)
    assert(t:call("battle/7", "state"):find("^fighting"))
    t:advance(1500)
    assert(t:call("battle/7", "state"):find("winner=bob$"))
end)

test.case("a battle that moves in the middle goes on", function()
    local t = begun()
    assert(t:move("battle/7"))
    t:advance(61000)
    assert(t:call("battle/7", "state"):find("^over"), "its clock ticks on")
end)

test.case("a battle ends by itself, and the next one is new", function()
    local t = fought()
    t:advance(31000)
    test.equal(t:lives("battle/7"), false)
    test.equal(t:call("battle/7", "state"), "waiting")
end)

test.case("a crash takes a battle, which is in memory alone", function()
    local t = begun()
    t:crash()
    test.equal(t:call("battle/7", "state"), "waiting")
end)
