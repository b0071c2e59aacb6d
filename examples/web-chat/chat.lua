-- A chat for browsers: an actor for each room and one for each player, wherever the fleet puts them.
--
-- A tab talks to its player's actor alone, which asks rooms for it. A room numbers its lines and keeps
-- the last of them; it only rings at its players, who then read what is new from where they were. So
-- whatever is sent twice, late or not at all, each tab shows each line once, in the room's order.
--
--     enter ROOM BORN AT    from the tab: I have the lines of that room up to AT; answer "BORN AT SAID"
--     say COUNT TEXT        my COUNTth line there: said once, however often it is sent
--     BORN N FROM COUNT TEXT    pushed: line N of the room

local LINES_MAX <const> = 500    -- that a room remembers
local HISTORY <const> = 50       -- shown to who comes in
local BATCH <const> = 100        -- read at a time
local TEXT_MAX <const> = 500     -- bytes
local PLAYERS_MAX <const> = 200  -- in a room
local AWAY_MS <const> = 60000    -- without a tab, then a player leaves
local LOOK_MS <const> = 5000     -- a ring that was lost with a node is made good so late

local room = ringhold.kind("room", {number = 0, idle = 3600})
-- raw: what a tab sends comes to on_message as it is, and calls no method.
local player = ringhold.kind("player", {number = 1, idle = 3600, raw = true})

---- rooms: only players may ask them

function room.on_activate(self, state)
    if not state then
        self.born = ringhold.fence()   -- another number if its lines were lost
        self.said = {}                 -- player -> how many lines it has said
        self.count = 0                 -- players
        self.lines, self.last = {}, 0  -- number -> line
    end
end

local function asker()
    local kind, name = ringhold.from()
    if kind ~= "player" then ringhold.refuse("ERR only players say that") end
    return name
end

local function add(self, name, count, text)
    local id = ringhold.self()
    self.last = self.last + 1
    self.lines[self.last] = self.last .. " " .. name .. " " .. count .. " " .. text
    self.lines[self.last - LINES_MAX] = nil
    for other in pairs(self.said) do ringhold.send("player", other, "ring", id, self.last) end
end

function room.enter(self)
    local name = asker()
    if not self.said[name] then
        if self.count >= PLAYERS_MAX then ringhold.refuse("FULL the room is full") end
        self.said[name], self.count = 0, self.count + 1
        add(self, "*", 0, name .. " came in")
    end
    return self.born, self.last, self.said[name]
end

function room.leave(self)
    local name = asker()
    if not self.said[name] then return end
    self.said[name], self.count = nil, self.count - 1
    add(self, "*", 0, name .. " left")
end

function room.say(self, count, text)
    local name = asker()
    local said = self.said[name]
    if not said then ringhold.refuse("NOTHERE enter first") end
    if count <= said then return end   -- a copy
    if count > said + 1 then ringhold.refuse("GAP say " .. said + 1 .. " first") end
    self.said[name] = count
    add(self, name, count, text)
end

-- What is behind line `at`.
function room.read(self, at)
    local lines = {}
    for n = math.max(at, self.last - LINES_MAX) + 1, math.min(self.last, at + BATCH) do
        lines[#lines + 1] = self.lines[n]
    end
    return self.born, self.last, lines
end

---- players

function player.on_activate(self, state)
    if not state then self.at, self.born = 0, 0 end
    if self.room then ringhold.timer("look", LOOK_MS, LOOK_MS) end   -- timers do not move
    if self.away then ringhold.timer("leave", AWAY_MS) end
end

-- Push what is new. Without a tab, or while the room can't be asked, it waits there.
local function look(self)
    repeat
        local asked, born, last, lines = pcall(ringhold.read, "room", self.room, "read", self.at)
        if not asked then return end
        if born ~= self.born then self.born, self.at = born, 0 end   -- a room that was lost
        for _, line in ipairs(lines) do
            if not ringhold.push(born .. " " .. line) then return end
            self.at = math.tointeger(tonumber(line:match("^%d+")))
        end
    until self.at >= last or #lines == 0
end

local function leave(self)
    if self.room then ringhold.send("room", self.room, "leave") end
    self.room = nil
    ringhold.cancel("look")
end

-- What the room says against it is said to the tab.
local function ask_room(id, ...)
    local answer = table.pack(pcall(ringhold.call, "room", id, ...))
    if not answer[1] then ringhold.refuse(tostring(answer[2])) end
    return table.unpack(answer, 2, answer.n)
end

local commands = {}

function commands.enter(self, words)
    local id, born, at = words:match("^([%w_-]+) (%d+) (%d+)$")
    if not id or #id > 24 then ringhold.refuse("ERR enter ROOM BORN AT") end
    if self.room and self.room ~= id then leave(self) end
    local its, last, said = ask_room(id, "enter")
    born, at = math.tointeger(tonumber(born)), math.tointeger(tonumber(at))
    if born ~= its or not at or at > last then at = math.max(0, last - HISTORY) end
    self.room, self.born, self.at = id, its, at
    ringhold.timer("look", LOOK_MS, LOOK_MS)
    ringhold.timer("now", 0)
    return its .. " " .. at .. " " .. said
end

function commands.say(self, words)
    local count, text = words:match("^(%d+) (.+)$")
    count = math.tointeger(tonumber(count))
    if not count or #text > TEXT_MAX or text:find("%c") then ringhold.refuse("ERR say COUNT TEXT") end
    if not self.room then ringhold.refuse("NOTHERE enter first") end
    ask_room(self.room, "say", count, text)
    return "said"
end

function player.on_message(self, text)
    local command, words = (text or ""):match("^(%l+) (.+)$")
    if not commands[command] or ringhold.from() then ringhold.refuse("ERR enter or say") end
    return commands[command](self, words)
end

function player.ring(self, id, last)
    if id ~= self.room then return ringhold.send("room", id, "leave") end   -- it knows me, I don't
    if last > self.at then look(self) end
end

function player.on_timer(self, name)
    if name == "leave" then
        leave(self)
    elseif self.room then
        look(self)
    end
end

-- A tab came, is back, or has gone. It says itself where it is.
function player.on_session(self, what)
    self.away = what == "lost"
    if self.away then ringhold.timer("leave", AWAY_MS) else ringhold.cancel("leave") end
end
