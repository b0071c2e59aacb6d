-- A chat room: one actor a room, on one node at a time, wherever the fleet has put it.
--
--     ringhold node --name n1 --lua examples/lua/chat.lua
--     redis-cli -p 6380 CALL room:1 "join ada"
--     redis-cli -p 6380 CALL room:1 "say ada 'hello there'"
--     redis-cli -p 6380 CALL room:1 "read ada"
--
-- When the room's node is drained the room moves, members, lines and all. docs/lua.md explains it.

local LINES_MAX <const> = 100   -- a room remembers so many
local AWAY_MS <const> = 300000  -- who reads nothing for so long has left

local room = ringhold.kind("room", {number = 0, idle = 3600})

-- `state` is nil when nobody was here before. Moved, `self` has its fields already.
function room.on_activate(self, state)
    if not state then
        self.members = {}   -- name -> {seen = last line it read, at = when}
        self.lines = {}     -- the last LINES_MAX; self.last is the number of the newest
        self.last = 0
    end
    ringhold.timer("sweep", 60000, 60000)   -- timers stay behind when it moves: set them here
end

local function add(self, text)
    self.last = self.last + 1
    self.lines[#self.lines + 1] = text
    if #self.lines > LINES_MAX then table.remove(self.lines, 1) end
end

local function member(self, name)
    local m = self.members[name or ""]
    if not m then ringhold.refuse("NOTHERE join first") end
    m.at = ringhold.time()
    return m
end

function room.join(self, name)
    if not name then ringhold.refuse("ERR who are you? join NAME") end
    if not self.members[name] then add(self, "* " .. name .. " joined") end
    self.members[name] = {seen = self.last, at = ringhold.time()}
    return room.who(self)
end

function room.leave(self, name)
    member(self, name)
    self.members[name] = nil
    add(self, "* " .. name .. " left")
    return "bye"
end

function room.say(self, name, ...)
    member(self, name)
    add(self, name .. ": " .. table.concat({...}, " "))
    return self.last
end

-- What was said since `name` read last, a line each.
function room.read(self, name)
    local m = member(self, name)
    local first = math.max(1, #self.lines - (self.last - m.seen) + 1)
    m.seen = self.last
    return table.concat(self.lines, "\n", first)
end

function room.who(self)
    local names = {}
    for name in pairs(self.members) do names[#names + 1] = name end
    table.sort(names)
    return table.concat(names, " ")
end

function room.on_timer(self)
    local limit = ringhold.time() - AWAY_MS / 1000
    for name, m in pairs(self.members) do
        if m.at < limit then room.leave(self, name) end
    end
end
