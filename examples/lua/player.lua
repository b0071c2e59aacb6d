-- A player whose inventory survives kill -9: each change is saved before it is answered, in a store
-- that refuses the write of an owner that was deposed.
--
--     ringhold node --name n1 --lua examples/lua/player.lua=/tmp/players.db
--     redis-cli -p 6380 CALL ada "give sword"
--     redis-cli -p 6380 CALL ada "give potion 3"
--     redis-cli -p 6380 CALL ada "bag"
--
-- What stands after "=" is ringhold.argument: the file, which all nodes of this machine share.

assert(ringhold.argument ~= "", "name the store's file: --lua player.lua=FILE")
local store = ringhold.store(ringhold.argument, "players")
local player = ringhold.kind("player", {number = 0, idle = 600})

-- Moved or not: claim the row with my fence, which is greater than any earlier owner's, and read it.
-- From now on no earlier owner can write. If a later one has it, this raises, and I don't start.
function player.on_activate(self)
    self.data = store:claim(ringhold.self(), ringhold.fence()) or {bag = {}, saves = 0}
end

-- The store has it all: hand nothing over, the next owner claims.
function player.on_handoff() return ringhold.COLD end

-- Change a copy, save it, and only then believe it: a save that fails changes nothing.
local function change(self, item, by)
    local data = {bag = {}, saves = self.data.saves + 1}
    for name, count in pairs(self.data.bag) do data.bag[name] = count end
    local count = (data.bag[item] or 0) + by
    if count < 0 then ringhold.refuse("NOITEM you have not so many") end
    data.bag[item] = count > 0 and count or nil
    local saved, why = pcall(store.save, store, (ringhold.self()), ringhold.fence(), data)
    if not saved then
        ringhold.fail(tostring(why))   -- "FENCED …": end this instance; a newer owner has the id
    end
    self.data = data
    return count
end

local function number(text)
    local n = math.tointeger(tonumber(text or 1))
    if not n or n < 1 or n > 1000000 then ringhold.refuse("ERR how many?") end
    return n
end

function player.give(self, item, count)
    if not item then ringhold.refuse("ERR give what?") end
    return change(self, item, number(count))
end

function player.take(self, item, count)
    if not item then ringhold.refuse("ERR take what?") end
    return change(self, item, -number(count))
end

function player.bag(self)
    local words = {}
    for item, count in pairs(self.data.bag) do words[#words + 1] = item .. "=" .. count end
    table.sort(words)
    return table.concat(words, " ")
end
