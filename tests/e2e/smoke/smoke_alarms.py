#!/usr/bin/env python3
"""Alarms of durable actors over three nodes that share a store: each goes off at least once and none before its time, though
its node is killed, or the whole fleet, and nobody asks its actor again. SQL alone says so."""
import os
import signal
import sqlite3
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, healthy, main, until

NODES = ("n1", "n2", "n3")
GAME = """
local clock = ringhold.kind("clock", {durable = true})

function clock.set(self, name, seconds, every)
    ringhold.put("set " .. name, string.format("%.6f", ringhold.time() + seconds))
    ringhold.alarm(name, tonumber(seconds), {every = tonumber(every), payload = "of " .. name})
    return "set"
end

function clock.stop(self, name)
    return ringhold.cancel_alarm(name) and "stopped" or "none"
end

function clock.on_alarm(self, name, payload)
    local count = (tonumber(ringhold.get("count " .. name)) or 0) + 1
    ringhold.put("count " .. name, count)
    ringhold.put("rang " .. name, string.format("%.6f", ringhold.time()))
    assert(payload == "of " .. name)
    if name == "spoiled" and count < 2 and not self.failed then
        self.failed = true
        error("on purpose")
    end
end
"""


class Store:
    """A foreign reader of the file."""

    def __init__(self, fleet):
        self.db = sqlite3.connect(f"file:{fleet.folder}/actors.db?mode=ro", uri=True, timeout=60)

    def values(self, what):
        """What the actors have put under that key, by their ids."""
        rows = self.db.execute("SELECT id, value FROM value WHERE key = ?", (what.encode(),))
        return {row[0].decode(): float(row[1]) for row in rows}

    def alarms(self):
        return self.db.execute("SELECT count(*) FROM alarm").fetchone()[0]

    def all_rang(self, name, ids):
        return set(self.values(f"rang {name}")) >= set(ids) and self.alarms() == 0

    def check(self, name, ids):
        due, rang = self.values(f"set {name}"), self.values(f"rang {name}")
        for i in ids:
            assert rang[i] >= due[i] - 0.00001, f"{i} rang {due[i] - rang[i]} s before its time"


def each_goes_off_whatever_dies(binary):
    ids = [f"clock-{i}" for i in range(60)]
    with Fleet(binary) as fleet:
        script = os.path.join(fleet.folder, "game.lua")
        with open(script, "w") as f:
            f.write(GAME)
        words = ["--lua", script, "--store", f"sqlite:{fleet.folder}/actors.db", "--threads", "2"]
        fleet.coordinators(1)
        nodes = {name: fleet.node(name, words) for name in NODES}
        redis = Resp(fleet.gateway("g1").resp, timeout=120)
        fleet.settled(list(NODES))
        store = Store(fleet)
        # A node dies amidst them: some are due before its death, and some behind it.
        for n, i in enumerate(ids):
            assert redis("CALL", i, f"set one {n * 0.05:.2f}") == "set"
        nodes["n1"].kill(signal.SIGKILL)
        nodes["n1"].wait()
        until("all go off, those of the dead node too", lambda: store.all_rang("one", ids))
        store.check("one", ids)
        # A callback that fails, and a periodic one.
        redis("CALL", ids[0], "set spoiled 0.1")
        redis("CALL", ids[1], "set often 0.1 0.1")
        until("it is tried again", lambda: store.values("count spoiled").get(ids[0]) == 1)
        until("it goes off again and again", lambda: store.values("count often").get(ids[1], 0) >= 3)
        assert redis("CALL", ids[1], "stop often") == "stopped"
        assert redis("CALL", ids[1], "stop often") == "none"
        assert store.alarms() == 0
        # Nobody is there when they come due.
        for i in ids:
            assert redis("CALL", i, "set two 1") == "set"
        for p in fleet.processes:
            p.kill(signal.SIGKILL)
            p.wait()
        left = store.alarms()
        fleet.coordinator(1)
        for name in NODES:
            fleet.node(name, words)
        until("all go off in the new fleet", lambda: store.all_rang("two", ids))
        store.check("two", ids)
        store.check("one", ids)
        store.db.close()
        healthy(fleet)
        print(f"# {left} of {len(ids)} were left when nobody was there", flush=True)


main([each_goes_off_whatever_dies])
