-- Tests of login.lua without a fleet: docs/testing.md explains them.
--
--     ringhold test examples/lua/login_test.lua

local test = require("ringhold_test")

test.case("who comes first makes the account, and its secret stays", function()
    local t = test.new("login.lua")
    local till, kind, name = string.unpack(">I8I2s1", assert(t:call("login/login-0", "ada:secret")))
    test.equal(kind, 11)
    test.equal(name, "ada")
    assert(till > os.time())
    assert(t:call("login/login-1", "ada:secret"), "every login knows her")
    test.equal(select(2, t:call("login/login-0", "ada:guess")), "ERR wrong name or secret")
    test.equal(select(2, t:call("login/login-0", "ada")), "ERR show NAME:SECRET")
end)

test.case("clients can't try out secrets", function()
    local t = test.new("login.lua")
    test.equal(select(2, t:call("account/ada", "check secret")), "ERR who asks?")
end)

test.case("a client is greeted, and a player counts its steps", function()
    local t = test.new("login.lua")
    assert(t:bind("account/ada"))
    test.equal(t:pushed("account/ada"), "hello ada")
    test.equal(t:call("account/ada", "play mage"), "go on as mage")
    assert(t:bind("player/ada/mage"))   -- as the gateway does then
    test.equal(t:pushed("player/ada/mage"), "you are ada/mage")
    test.equal(t:call("player/ada/mage", "step"), "1")
    test.equal(t:pushed("player/ada/mage"), "step 1")
end)

test.case("who is not bound can't go on", function()
    local t = test.new("login.lua")
    test.equal(select(2, t:call("account/ada", "play mage")), "NOTBOUND bind yourself first")
end)
