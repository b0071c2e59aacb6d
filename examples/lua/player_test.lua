-- Tests of player.lua without a fleet: docs/testing.md explains them.
--
--     ringhold test examples/lua/player_test.lua

local test = require("ringhold_test")

-- A world whose players are in a file of its own.
local function world()
    local file = os.tmpname()
    local removed <close> = setmetatable({}, {__close = function() os.remove(file) end})
    local t = test.new("player.lua=" .. file)
    assert(t:call("player/ada", "bag"))   -- it has the file open, so its name may go
    return t
end

test.case("what was given survives a crash and a move", function()
    local t = world()
    test.equal(t:call("player/ada", "give sword"), "1")
    test.equal(t:call("player/ada", "give potion 3"), "3")
    t:crash()
    test.equal(t:call("player/ada", "bag"), "potion=3 sword=1")
    assert(t:move("player/ada"))
    test.equal(t:call("player/ada", "bag"), "potion=3 sword=1")
end)

test.case("nobody takes more than there is", function()
    local t = world()
    test.equal(t:call("player/ada", "give potion 3"), "3")
    test.equal(t:call("player/ada", "take potion 2"), "1")
    local answer, why = t:call("player/ada", "take potion 2")
    test.equal(answer, nil)
    test.equal(why, "NOITEM you have not so many")
    test.equal(t:call("player/ada", "bag"), "potion=1")
end)

test.case("a count that is none is refused", function()
    local t = world()
    for _, count in ipairs({"0", "-1", "1.5", "many", "1000001"}) do
        local _, why = t:call("player/ada", "give", "potion", count)
        test.equal(why, "ERR how many?", count)
    end
    test.equal(t:call("player/ada", "bag"), "")
end)
