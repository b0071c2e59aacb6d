-- A login: who may come in is decided by an actor of the game, not by the gateway.
--
--     ringhold node --name n1 --lua examples/lua/login.lua
--     ringhold gateway --frames 127.0.0.1:7000 --auth-kind 10 --auth-keys keys
--     player 127.0.0.1:7000 11 ada ada:secret
--
-- A player shows NAME:SECRET. Who comes first with a name makes the account; `play mage` goes on as
-- one of its players. This sample forgets accounts with a crash: keep yours in a store
-- (player.lua). docs/lua.md explains it.

local HOURS <const> = 12     -- a login, and the token that is given for it, is good for
local ACCOUNT <const> = 11   -- the kind that a client is when it has logged in

local login = ringhold.kind("login", {number = 10, raw = true})
local player = ringhold.kind("player", {number = 12})
local account = ringhold.kind("account", {number = ACCOUNT})

-- The gateway asks login-0, login-1 …: the answer is who this is, and until when.
function login.on_message(self, shown)
    local name, secret = shown:match("^(%w+):(.+)$")
    if not name then ringhold.refuse("ERR show NAME:SECRET") end
    local asked, right = pcall(ringhold.call, "account", name, "check", secret)
    if not asked then ringhold.refuse("TRYAGAIN the account does not answer") end
    if not right then ringhold.refuse("ERR wrong name or secret") end
    return string.pack(">I8I2s1", os.time() + HOURS * 3600, ACCOUNT, name)
end

-- Only other actors may ask this: a client would try out secrets without end.
function account.check(self, secret)
    if ringhold.from() ~= "login" then ringhold.refuse("ERR who asks?") end
    self.secret = self.secret or secret
    return self.secret == secret
end

-- A client that is this account's may be bound to it.
function account.on_session(self, what)
    if what ~= "lost" then ringhold.push("hello " .. ringhold.self()) end
end

-- She chooses one of her players, and goes on as that one, at every gateway.
function account.play(self, name)
    if not name or not name:match("^%w+$") then ringhold.refuse("ERR play NAME") end
    if not ringhold.rebind("player", ringhold.self() .. "/" .. name) then
        ringhold.refuse("NOTBOUND bind yourself first")
    end
    return "go on as " .. name
end

function account.who(self) return (ringhold.self()) end

function player.on_activate(self, state)
    if not state then self.steps = 0 end
end

function player.on_session(self, what, why)
    if what ~= "lost" and why ~= "client" then ringhold.push("you are " .. ringhold.self()) end
end

function player.step(self)
    self.steps = self.steps + 1
    ringhold.push("step " .. self.steps)
    return self.steps
end
