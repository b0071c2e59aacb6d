-- A chat: an actor for each room and each guest, on one node at a time, wherever the fleet puts it.
--
--     ringhold node --name n1 --lua examples/lua/chat.lua
--     redis-cli -p 6380 CALL room:1 "join ada"
--     redis-cli -p 6380 CALL room:1 "say ada 'hello there'"
--
-- What others say is pushed to the connection that said BIND @1/ada, also while room and guest
-- move; without one it waits for her. Who has left is told only to those who are there.
-- docs/lua.md explains it.

local MISSED_MAX <const> = 100   -- who misses so many lines has left

local room = ringhold.kind("room", {number = 0, idle = 3600})
local guest = ringhold.kind("guest", {number = 1, idle = 3600})

-- `state` is nil when nobody was here before. Moved, `self` has its fields already.
function room.on_activate(self, state)
    if not state then self.members = {} end   -- name -> true
end

local function check(self, name)
    if not self.members[name or ""] then ringhold.refuse("NOTHERE join first") end
end

-- To the clients that are bound now: one broadcast, whoever is in the room.
local function announce(self, text)
    ringhold.broadcast("guest", self.members, text)
end

-- To the guests themselves: each keeps it if its client is not there.
local function tell(self, text, but)
    for name in pairs(self.members) do
        if name ~= but then ringhold.send("guest", name, "hear", text) end
    end
end

function room.join(self, name)
    if not name or name == "" or #name > 255 then ringhold.refuse("ERR who are you? join NAME") end
    if not self.members[name] then tell(self, "* " .. name .. " joined") end
    self.members[name] = true   -- its id too, of kind 1
    return room.who(self)
end

function room.leave(self, name)
    check(self, name)
    self.members[name] = nil
    announce(self, "* " .. name .. " left")
    return "bye"
end

function room.say(self, name, ...)
    check(self, name)
    tell(self, name .. ": " .. table.concat({...}, " "), name)
    return "said"
end

function room.who(self)
    local names = {}
    for name in pairs(self.members) do names[#names + 1] = name end
    table.sort(names)
    return table.concat(names, " ")
end

function guest.on_activate(self, state)
    if not state then self.missed = {} end   -- lines that wait for a client
end

function guest.hear(self, text)
    local kind, id = ringhold.from()
    if kind ~= "room" then ringhold.refuse("ERR only rooms say that") end
    if ringhold.push(text) then return end   -- nil: no client is bound
    self.missed[#self.missed + 1] = text
    if #self.missed >= MISSED_MAX then
        ringhold.send("room", id, "leave", (ringhold.self()))
        self.missed = {"* you missed too much, and left " .. id}
    end
end

-- A client came, or has gone. A room has no such callback: nobody can bind to it.
function guest.on_session(self, what)
    if what == "lost" then return end
    for _, text in ipairs(self.missed) do ringhold.push(text) end
    self.missed = {}
end
