#!/usr/bin/env python3
"""Ids that the fleet remembers live again without a request: after a kill -9 of their node, and after one of all processes
at once. They are forgotten when their actor ends itself and when an operator says so; above the bound none is taken."""
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, healthy, main, until

GAME = """
local guild = ringhold.kind("guild", {remembered = true})
local plain = ringhold.kind("plain")
function guild.on_activate(self) ringhold.log("begun", (ringhold.self())) end
function guild.where() return ringhold.node() end
function guild.done() ringhold.exit() return "bye" end
function plain.where() return ringhold.node() end
"""
GUILDS = [f"guild-{i}" for i in range(60)]


class Game:
    """Coordinators, nodes with the script, and a gateway."""

    def __init__(self, fleet, nodes, coordinators=1, extra=()):
        self.fleet = fleet
        self.script = os.path.join(fleet.folder, "game.lua")
        with open(self.script, "w") as f:
            f.write(GAME)
        fleet.coordinators(coordinators, extra=extra)
        for name in nodes:
            self.node(name)
        self.call = Resp(fleet.gateway("g1").resp, timeout=120)
        fleet.settled(nodes)

    def node(self, name):
        return self.fleet.node(name, ["--lua", self.script])

    def alive(self):
        """Who lives, on which node."""
        return {row["id"]: row["node"] for row in self.fleet.ask("actors", "--kind", "0", "--limit", "0")}

    def remembered(self):
        return [row["id"] for row in self.fleet.ask("remembered", "list", "--kind", "0", "--limit", "0")]


def all_live_again_when_their_node_was_killed(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, ["n1", "n2", "n3"])
        homes = {name: game.call("CALL", name, "where") for name in GUILDS}
        for i in range(60):
            game.call("CALL", f"@1/plain-{i}", "where")
        assert game.alive() == homes
        assert game.remembered() == sorted(GUILDS)  # whoever answered is remembered by then
        assert fleet.status()["remembered"] == 60
        lost = [name for name, home in homes.items() if home == "n2"]
        assert lost, homes
        fleet.process("n2").kill().wait()
        until("all live again", lambda: set(game.alive()) == set(GUILDS) and "n2" not in game.alive().values())
        others = fleet.ask("actors", "--kind", "1", "--limit", "0")
        assert "n2" not in {row["node"] for row in others} and len(others) < 60, others  # nobody asked these
        # A join and a drain move them alive, also those whom no request has woken since.
        game.node("n4")
        fleet.settled(["n1", "n3", "n4"])
        fleet.tell("node", "drain", "n1", "--wait", "60")
        fleet.settled(["n3", "n4"])
        until("all live there", lambda: set(game.alive()) == set(GUILDS))
        assert set(game.alive().values()) == {"n3", "n4"}
        fleet.tell("node", "remove", "n2")
        healthy(fleet)


def all_live_again_when_the_fleet_was_killed(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, ["n1", "n2"], coordinators=3)
        for name in GUILDS:
            game.call("CALL", name, "where")
        for process in list(fleet.processes):
            process.kill().wait()
        for i in fleet.ports:
            fleet.coordinator(i, ready=False)
        for name in ("n1", "n2"):
            game.node(name)
        fleet.settled(["n1", "n2"])  # no gateway, and so no request
        until("all live again", lambda: set(game.alive()) == set(GUILDS))
        assert game.remembered() == sorted(GUILDS)


def who_ends_itself_and_whom_an_operator_names_is_forgotten(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, ["n1", "n2"])
        for name in GUILDS[:6]:
            game.call("CALL", name, "where")
        assert game.call("CALL", "guild-0", "done") == "bye"
        until("it is forgotten", lambda: "guild-0" not in game.remembered())
        assert game.call("CALL", "guild-1", "done") == "bye"
        home = game.call("CALL", "guild-1", "where")  # it lives again, and is remembered again
        assert home and "guild-1" in game.remembered()
        done = fleet.tell("remembered", "forget", "0/guild-2", "0/guild-3", "--reason", "test")
        assert "3 ids are remembered in all" in done, done
        until("they end", lambda: set(game.alive()) == {"guild-1", "guild-4", "guild-5"})
        assert game.remembered() == ["guild-1", "guild-4", "guild-5"]
        event = fleet.ask("events", "--limit", "50")
        assert any(e["command"] == "forget" and e["reason"] == "test" for e in event), event
        code, _, err = fleet.run("remembered", "forget", "0/guild-2", "--coordinators", fleet.addresses)
        assert code == 1 and "is not remembered" in err, err
        for name in ("n1", "n2"):
            fleet.process(name).kill().wait()
            game.node(name)
        fleet.settled(["n1", "n2"])
        until("those that are left live again", lambda: set(game.alive()) == {"guild-1", "guild-4", "guild-5"})


def above_the_bound_an_id_is_served_and_not_remembered(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, ["n1"], extra=["--remember-max", "3"])
        for name in GUILDS[:5]:
            assert game.call("CALL", name, "where") == "n1"
        status = fleet.status()
        assert (status["remembered"], status["remembered_max"], status["remembered_full"]) == (3, 3, 2), status
        assert game.remembered() == GUILDS[:3]
        assert "2 times one was not, for want of room" in fleet.tell("status")
        fleet.process("n1").kill().wait()
        game.node("n1")
        until("three live again", lambda: set(game.alive()) == set(GUILDS[:3]))


main([
    all_live_again_when_their_node_was_killed,
    all_live_again_when_the_fleet_was_killed,
    who_ends_itself_and_whom_an_operator_names_is_forgotten,
    above_the_bound_an_id_is_served_and_not_remembered,
])
