-- A battle room: players join, it starts when it is full, ticks four times a second, and ends by
-- itself: the last one standing wins, or whoever is strongest when time is up. The result goes to
-- the players' own actors, which may live on other nodes.
--
--     ringhold node --name n1 --lua examples/lua/battle.lua
--     redis-cli -p 6380 CALL battle:7 "join ada"
--     redis-cli -p 6380 CALL battle:7 "join bob"
--     redis-cli -p 6380 CALL battle:7 "attack ada bob"
--     redis-cli -p 6380 CALL battle:7 "state"
--     redis-cli -p 6380 CALL @1/ada "score"        # a player's own actor is of kind 1

local PLAYERS <const> = 2
local HEALTH <const> = 100
local TICK_MS <const> = 250
local LENGTH_MS <const> = 60000
local COOLDOWN_TICKS <const> = 2
local STAY_MS <const> = 30000   -- after the end, so that players can still ask how it ended

local battle = ringhold.kind("battle", {number = 0})
local player = ringhold.kind("player", {number = 1})

---- the battle

function battle.on_activate(self, state)
    if not state then
        self.phase = "waiting"   -- then "fighting", then "over"
        self.fighters = {}       -- name -> {health, ready = tick of its next attack}
        self.count, self.tick = 0, 0
    elseif self.phase == "fighting" then
        ringhold.timer("tick", TICK_MS, TICK_MS)   -- it moved in the middle: go on
    elseif self.phase == "over" then
        ringhold.timer("close", STAY_MS)
    end
end

local function fighter(self, name)
    local f = self.fighters[name or ""]
    if not f then ringhold.refuse("NOTHERE no such fighter") end
    return f
end

function battle.join(self, name)
    if not name then ringhold.refuse("ERR who are you? join NAME") end
    if self.phase ~= "waiting" then ringhold.refuse("CLOSED the battle has begun") end
    if not self.fighters[name] then
        self.fighters[name] = {health = HEALTH, ready = 0}
        self.count = self.count + 1
    end
    if self.count == PLAYERS then
        self.phase = "fighting"
        ringhold.timer("tick", TICK_MS, TICK_MS)
    end
    return self.phase
end

local function finish(self, winner)
    self.phase, self.winner = "over", winner
    ringhold.cancel("tick")
    ringhold.timer("close", STAY_MS)
    local id = ringhold.self()
    for name in pairs(self.fighters) do   -- nobody waits for these
        ringhold.send("player", name, "result", id, name == winner)
    end
end

-- Who is alive, and who of them is strongest.
local function standing(self)
    local alive, best = 0, nil
    for name, f in pairs(self.fighters) do
        if f.health > 0 then
            alive = alive + 1
            if not best or f.health > self.fighters[best].health then best = name end
        end
    end
    return alive, best
end

function battle.attack(self, from, to)
    local attacker, victim = fighter(self, from), fighter(self, to)
    if self.phase ~= "fighting" then ringhold.refuse("CLOSED nobody fights now") end
    if attacker.health <= 0 then ringhold.refuse("DEAD you can't") end
    if self.tick < attacker.ready then ringhold.refuse("TOOSOON your arm is tired") end
    attacker.ready = self.tick + COOLDOWN_TICKS
    victim.health = math.max(0, victim.health - math.random(20, 40))
    local alive, best = standing(self)
    if alive == 1 then finish(self, best) end
    return victim.health
end

function battle.state(self)
    local words = {self.phase}
    for name, f in pairs(self.fighters) do words[#words + 1] = name .. "=" .. f.health end
    if self.winner then words[#words + 1] = "winner=" .. self.winner end
    return table.concat(words, " ")
end

function battle.on_timer(self, name)
    if name == "close" then
        return ringhold.exit()   -- the actor ends; whoever comes later finds a new battle
    end
    self.tick = self.tick + 1
    if self.tick * TICK_MS >= LENGTH_MS then finish(self, select(2, standing(self))) end
end

-- Ask a player's own actor: reads as if it blocked, and blocks nobody else.
function battle.score(_, name)
    local won, fought = ringhold.call("player", name, "score")
    return won .. " of " .. fought
end

---- the players: kind 1, asked by battles

function player.on_activate(self, state)
    if not state then self.won, self.fought = 0, 0 end
end

function player.result(self, _, has_won)
    self.fought = self.fought + 1
    if has_won then self.won = self.won + 1 end
end

function player.score(self) return self.won, self.fought end
