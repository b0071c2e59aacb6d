#!/usr/bin/env python3
"""Several devices of one player: each has its session at a gateway of its own, while their actor pushes and moves."""
import random
import struct
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, main, until
from packets import Client

PLAYERS, ROUNDS, BURST, MAX = 4, 10, 5, 3
REPLACED, GAME = 1, 1007
NO_SESSION = "NOSESSION no client is bound to the actor"
# Devices are named by numbers, in the order in which they came.
GAME_LUA = """
local k = ringhold.kind('player', {sessions = 'allow', sessions_max = %d})
function k.on_activate(self)
  if not self.device then
    self.device, self.number, self.events, self.ran = {}, {}, '', {}
    self.all, self.own, self.every = 0, {}, 0
  elseif self.every > 0 then
    ringhold.timer('count', self.every, self.every)
  end
end
local function note(self, word) self.events = self.events .. (self.events == '' and '' or ' ') .. word end
function k.on_session(self, what, why, session, former)
  if not self.number[session] then
    table.insert(self.device, session)
    self.number[session] = #self.device
    self.own[#self.device] = 0
  end
  note(self, what .. self.number[session] .. (why and '.' .. why or '') .. (former and '/' .. self.number[former] or ''))
end
function k.on_timer(self)
  if ringhold.push('all ' .. self.all + 1) then self.all = self.all + 1 end
  for i, session in ipairs(self.device) do
    if ringhold.push_one(session, ('own %%d %%d'):format(i, self.own[i] + 1)) then self.own[i] = self.own[i] + 1 end
  end
end
function k.count(self, ms)
  self.every = tonumber(ms)
  ringhold.timer('count', self.every, self.every)
  return 'OK'
end
function k.told(self) return self.events end
function k.run(self, device, number)
  local last = self.ran[device] or 0
  if tonumber(number) <= last then note(self, 'TWICE') end
  self.ran[device] = tonumber(number)
  return number
end
local function said(done, why) return done and 'OK' or why end
function k.push(self, text) return said(ringhold.push(text)) end
function k.one(self, n, text) return said(ringhold.push_one(self.device[tonumber(n)], text)) end
function k.kick(self, n) return said(ringhold.kick_one(self.device[tonumber(n)], 1007, 'enough')) end
function k.rebind(self, n, id) return said(ringhold.rebind_one(self.device[tonumber(n)], 'player', id)) end
"""


def frames(gateway):
    return tuple(gateway.fields["frames"].rsplit(":", 1))


def start(fleet, nodes):
    path = fleet.data("game.lua")
    with open(path, "w") as f:
        f.write(GAME_LUA % MAX)
    fleet.coordinators(1)
    for name in nodes:
        fleet.node(name, ["--lua", path])
    fleet.settled(nodes)
    return [fleet.gateway(name, ["--frames", "127.0.0.1:0"]) for name in ("g1", "g2")]


class Device:
    """One session, and its ledger: what it was pushed, what it asked, and what it was answered."""

    def __init__(self, player, number, address):
        self.player = player
        self.number = number
        self.sequence = 0  # of the last push
        self.all = None  # the last number that all were pushed
        self.own = 0  # … and that this one was
        self.asked = 0
        self.open = {}
        self.client = Client(address)
        self.session = self.client.keep(player)
        assert self.session.next == 1 and self.session.keep_ms == 30000, self.session

    def ask(self, count):
        first = self.asked + 1
        for self.asked in range(first, first + count):
            self.open[self.asked] = b"run %d %d" % (self.number, self.asked)
        self.send(range(first, first + count))

    def send(self, names, flags=0):
        self.client.send(
            *(packets.asking(packets.REQUEST, n, self.player, self.open[n], flags=flags) for n in names)
        )

    def lowest(self):
        return min(self.open, default=self.asked + 1)

    def is_pushed(self, body):
        sequence, words = struct.unpack(">Q", body[:8])[0], body[8:].split()
        assert sequence == self.sequence + 1, (sequence, self.sequence)
        self.sequence = sequence
        if words[0] == b"all":
            assert self.all in (None, int(words[1]) - 1), (words, self.all)
            self.all = int(words[1])
        else:
            assert (int(words[1]), int(words[2])) == (self.number, self.own + 1), (words, self.number, self.own)
            self.own += 1

    def take(self):
        type_, body = self.client.wait(packets.PUSH, packets.RESPONSE)
        if type_ == packets.PUSH:
            self.is_pushed(body)
            return
        name, status = struct.unpack(">IB", body[:5])
        assert name in self.open and status == packets.OK and int(body[9:]) == name, (name, status, body[9:])
        del self.open[name]

    def come_back(self, address):
        self.client = Client(address)
        answer = self.client.resume(self.player, self.session.name, self.sequence, self.lowest())
        assert answer.status == packets.OK, answer
        self.session = packets.session(answer.payload)
        assert self.session.next == self.sequence + 1, (self.session, self.sequence)
        self.send(list(self.open), packets.AGAIN)

    def settle(self):
        while self.open:
            self.take()
        self.client.send(packets.ack(self.sequence, self.lowest()))


def each_device_has_all_that_is_its(binary):
    rng = random.Random()
    with Fleet(binary) as fleet:
        gateways = start(fleet, ["n1", "n2", "n3"])
        addresses = [frames(g) for g in gateways]
        ops = Resp(gateways[1].resp)
        players = [b"p%d" % i for i in range(PLAYERS)]
        # The first of each drops its line, again and again; the second keeps it.
        pairs = [[Device(p, n, addresses[n - 1]) for n in (1, 2)] for p in players]
        for p in players:
            assert ops("CALL", p.decode(), "count 5") == "OK"
        for round_ in range(ROUNDS):
            for first, second in pairs:
                first.ask(BURST)
                second.ask(BURST)
                for _ in range(rng.randrange(0, 2 * BURST)):
                    first.take()
            if round_ == ROUNDS // 3:
                fleet.tell("node", "drain", "n1")
            if round_ == 2 * ROUNDS // 3:
                gateways[0].kill()
                addresses = addresses[1:]
            for first, second in pairs:
                first.client.close()
                first.come_back(rng.choice(addresses))
                second.settle()
            for first, _ in pairs:
                first.settle()
        fleet.settled(["n2", "n3"])
        for pair in pairs:
            upto = max(d.all for d in pair) + 20
            for d in pair:
                while d.all < upto or d.own < upto // 2:
                    d.take()
            assert [d.sequence for d in pair] == [d.own + d.all for d in pair]
            told = ops("CALL", pair[0].player.decode(), "told").split()
            assert told[:2] == ["bound1", "bound2"], told
            assert {w for w in told[2:]} <= {"lost1.closed", "lost1.gateway", "resumed1.client"}, told
            assert told.count("resumed1.client") >= ROUNDS // 2, told


def one_more_than_may_be_takes_the_place_of_one(binary):
    with Fleet(binary) as fleet:
        gateways = start(fleet, ["n1", "n2"])
        addresses = [frames(g) for g in gateways]
        ops = Resp(gateways[1].resp)

        def told():
            return ops("CALL", "a", "told")

        devices = [Device(b"a", n, addresses[n % 2]) for n in range(1, MAX + 1)]
        assert told() == "bound1 bound2 bound3"
        fourth = Device(b"a", 4, addresses[0])
        assert devices[0].client.notice(packets.KICK)[0] == REPLACED and devices[0].client.closed()
        assert told() == "bound1 bound2 bound3 replaced4/1"
        # One that is away is in nobody's way, and has nothing to come back to.
        devices[2].client.close()
        until("it is missed", lambda: told().endswith("lost3.closed"))
        fifth = Device(b"a", 5, addresses[1])
        assert told().endswith("lost3.closed bound5")
        answer = Client(addresses[0]).resume(b"a", devices[2].session.name)
        assert answer.status == packets.REJECTED and answer.payload.startswith(b"GONE"), answer
        assert ops("CALL", "a", "one 3 x") == NO_SESSION
        # One of them is pushed to, kicked, goes on as another player; the others hear nothing of it.
        assert ops("CALL", "a", "one 2 mine") == "OK"
        assert devices[1].client.push() == (1, b"mine")
        assert ops("CALL", "a", "kick 2") == "OK"
        assert devices[1].client.notice(packets.KICK) == (GAME, "enough")
        until("it is gone", lambda: told().endswith("lost2.kicked"))
        assert ops("CALL", "a", "rebind 4 b") == "OK"
        until("it goes on as another", lambda: told().endswith("lost4.rebound"))
        assert fourth.client.bind(b"b").status == packets.OK
        assert ops("CALL", "b", "push you") == "OK"
        assert fourth.client.push() == (1, b"you")
        assert ops("CALL", "a", "push all") == "OK"
        assert fifth.client.push() == (1, b"all")


main([each_device_has_all_that_is_its, one_more_than_may_be_takes_the_place_of_one])
