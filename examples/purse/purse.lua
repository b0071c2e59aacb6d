-- A purse: a durable actor who gives others gold, by numbered requests. README.md says what it is asked and what it keeps.
--
--     ringhold node --name n1 --lua examples/purse/purse.lua --store sqlite:game.db …

local purse = ringhold.kind("purse", {number = 0, durable = true})

local function number(name) return tonumber(ringhold.get(name) or 0) end

local function add(name, by)
    ringhold.put(name, number(name) + by)
    return ringhold.get(name)
end

function purse.on_message() ringhold.refuse("ERR earn N AMOUNT, give N WHOM AMOUNT, gold") end

local function counted(word)
    local n = math.tointeger(tonumber(word))
    return n and n > 0 and n or purse.on_message()
end

-- Each request is done once: who asks again hears the answer again. All that it changes is one commit.
local function request(seq, change)
    local done = number("done")
    if seq < done then ringhold.refuse("ERR a later request is done") end
    if seq > done then
        ringhold.put("done", seq)
        ringhold.put("answer", change())
    end
    return ringhold.get("answer")
end

function purse.earn(self, seq, amount)
    seq, amount = counted(seq), counted(amount)
    return request(seq, function() return add("gold", amount) end)
end

function purse.give(self, seq, whom, amount)
    seq, amount = counted(seq), counted(amount)
    return request(seq, function()
        if amount > number("gold") then return "POOR" end
        ringhold.send_once("purse", whom, "take", seq, amount)
        return add("gold", -amount)
    end)
end

-- What another purse gives arrives once.
function purse.take(self, seq, amount)
    local _, from = ringhold.from()
    if not from then purse.on_message() end
    add("from/" .. from .. "/" .. seq, amount)
    add("gold", amount)
end

function purse.gold() return tostring(number("gold")) end
