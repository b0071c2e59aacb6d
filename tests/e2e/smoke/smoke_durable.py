#!/usr/bin/env python3
"""Durable actors in a SQLite file that three nodes share: each request runs once and is answered, never UNKNOWN, while
nodes are killed and ids move; what was answered is in the file, as SQL alone says it, and it is there again after
everything was killed."""
import os
import re
import signal
import sqlite3
import sys
import threading
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, healthy, main, until

NODES = ("n1", "n2", "n3")
GAME = """
local chest = ringhold.kind("chest", {durable = true})

function chest.add(self, item, count)
    local now = (tonumber(ringhold.get(item)) or 0) + tonumber(count)
    ringhold.put(item, now)
    return now
end

function chest.spoil(self)
    ringhold.put("gold", "all of it")
    error("on purpose")
end

function chest.list(self)
    local all = {}
    local item, count = ringhold.next()
    while item do
        all[#all + 1] = item .. "=" .. count
        item, count = ringhold.next(item)
    end
    return table.concat(all, " ")
end

function chest.drop(self, item)
    ringhold.put(item, nil)
    return "dropped"
end
"""


def inventory(binary):
    return os.path.join(os.path.dirname(os.path.abspath(binary)), "examples", "inventory.so")


def words_of(fleet, binary):
    return ["--actor", inventory(binary), "--store", f"sqlite:{fleet.folder}/actors.db", "--threads", "2"]


def word_of(error):
    """The code of an error; the gateway puts ERR before those of actors that are asked by CALL."""
    return str(error).removeprefix("ERR ").split()[0]


class Store:
    """A foreign reader of the file."""

    def __init__(self, fleet):
        self.db = sqlite3.connect(f"file:{fleet.folder}/actors.db?mode=ro", uri=True, timeout=60)

    def gold(self, name):
        row = self.db.execute(
            "SELECT value FROM value WHERE kind = 0 AND id = ? AND key = ?", (name.encode(), b"gold")
        ).fetchone()
        return int(row[0]) if row else 0

    def close(self):
        self.db.close()


class Player(threading.Thread):
    """Adds gold to its own inventories, one by one, and compares each answer with what came before and with the file."""

    def __init__(self, fleet, address, number):
        super().__init__(daemon=True)
        self.fleet = fleet
        self.address = address
        self.names = [f"player-{number}-{i}" for i in range(5)]
        self.least = dict.fromkeys(self.names, 0)  # that it has for certain
        self.most = dict.fromkeys(self.names, 0)  # that it may have: with those that took too long
        self.answers = self.late = 0
        self.stopping = False
        self.failed = None

    def ask(self, redis, name):
        self.most[name] += 1
        try:
            return int(redis("CALL", name, "ADD gold 1"))
        except RespError as error:
            word = word_of(error)
            assert word in ("TIMEOUT", "REJECTED"), error  # on a machine that is very busy
            if word == "TIMEOUT":
                self.late += 1  # it may have run, and may run yet
            else:
                self.most[name] -= 1
            return None

    def run(self):
        redis, store = Resp(self.address, timeout=120), Store(self.fleet)
        try:
            while not self.stopping:
                for name in self.names:
                    count = self.ask(redis, name)
                    if count is None:
                        continue
                    assert self.least[name] < count <= self.most[name], f"{name}: {count}, {self.least}, {self.most}"
                    assert store.gold(name) >= count, f"{name} was answered {count}, and the store has {store.gold(name)}"
                    self.least[name] = count
                    self.answers += 1
        except Exception as error:  # told by the thread that waits for it
            self.failed = error
        store.close()
        redis.close()

    def done(self):
        self.stopping = True
        self.join(120)
        assert not self.is_alive() and self.failed is None, self.failed


def goes_on(players):
    """Every player is answered three times more in all of its inventories."""
    want = [p.answers + 3 * len(p.names) for p in players]
    until(
        "the load goes on",
        lambda: any(p.failed for p in players) or all(p.answers >= w for p, w in zip(players, want)),
        180,
    )
    assert not any(p.failed for p in players), [p.failed for p in players]


def what_was_answered_is_in_the_file_whatever_dies(binary):
    with Fleet(binary) as fleet:
        words = words_of(fleet, binary)
        fleet.coordinators(1)
        nodes = {name: fleet.node(name, words) for name in NODES}
        gateway = fleet.gateway("g1").resp
        fleet.settled(list(NODES))
        players = [Player(fleet, gateway, i) for i in range(4)]
        for p in players:
            p.start()
        goes_on(players)
        for name in NODES[:2]:
            nodes[name].kill(signal.SIGKILL)
            nodes[name].wait()
            goes_on(players)
            nodes[name] = fleet.node(name, words)
            fleet.settled(list(NODES))
        fleet.node("n4", words)  # ids move to it under load
        fleet.settled([*NODES, "n4"])
        goes_on(players)
        for p in players:
            p.done()
        store = Store(fleet)
        found = {name: store.gold(name) for p in players for name in p.names}
        for p in players:
            for name in p.names:
                assert p.least[name] <= found[name] <= p.most[name], f"{name}: {found[name]}, {p.least}, {p.most}"
        healthy(fleet)
        for p in fleet.processes:
            p.kill(signal.SIGKILL)
            p.wait()
        store.close()
        fleet.coordinator(1)
        for name in [*NODES, "n4"]:
            fleet.node(name, words)
        redis = Resp(fleet.gateway("g2").resp, timeout=120)
        fleet.settled([*NODES, "n4"], deadline=120)
        for name, count in found.items():
            assert int(redis("CALL", name, "GET gold")) == count
        assert int(redis("CALL", "player-0-0", "TAKE gold 1")) == found["player-0-0"] - 1
        print(f"# {sum(p.answers for p in players)} answers, {sum(p.late for p in players)} late", flush=True)


def a_store_that_is_locked_changes_nothing(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", words_of(fleet, binary))
        redis = Resp(fleet.gateway("g1").resp, timeout=120)
        fleet.settled(["n1"])
        assert int(redis("CALL", "ann", "ADD gold 5")) == 5
        other = sqlite3.connect(f"{fleet.folder}/actors.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert int(redis("CALL", "ann", "GET gold")) == 5  # reading needs no store
        try:
            redis("CALL", "ann", "ADD gold 1")
            raise AssertionError("it was answered")
        except RespError as error:
            # On a busy machine its time may be over before the store gives up.
            assert word_of(error) in ("STORE_UNAVAILABLE", "UNKNOWN", "TIMEOUT"), error
        other.execute("ROLLBACK")
        other.close()
        assert int(redis("CALL", "ann", "GET gold")) in (5, 6)  # 6: it was saved when the lock was gone
        assert Store(fleet).gold("ann") == int(redis("CALL", "ann", "GET gold"))


def a_durable_kind_needs_a_store(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        start = ["node", "--name", "n1", "--join", fleet.addresses, "--data", fleet.data("n1"), "--listen", "127.0.0.1:0"]
        start += ["--actor", inventory(binary)]
        code, _, err = fleet.run(*start)
        assert code == 1 and "a durable kind needs a store (--store sqlite:PATH): inventory" in err, err
        code, _, err = fleet.run(*start, "--store", "postgres:game")
        assert code == 1 and "is not sqlite:PATH" in err, err
        code, _, err = fleet.run(*start, "--store", f"sqlite:{fleet.folder}")
        assert code == 1 and f"can't use {fleet.folder}: " in err, err


def a_script_has_named_values_too(binary):
    with Fleet(binary) as fleet:
        script = os.path.join(fleet.folder, "game.lua")
        with open(script, "w") as f:
            f.write(GAME)
        with open(script + ".bad", "w") as f:
            f.write(GAME + "\nfunction chest.on_flush(self) end\n")
        code, _, err = fleet.run("node", "--lua-check", script + ".bad")
        assert code != 0 and "kind 'chest': durable goes with no on_flush" in err, err
        admin = f"127.0.0.1:{fleet.port()}"
        words = ["--lua", script, "--store", f"sqlite:{fleet.folder}/actors.db", "--admin", admin]
        fleet.coordinators(1)
        node = fleet.node("n1", words)
        redis = Resp(fleet.gateway("g1").resp, timeout=120)
        fleet.settled(["n1"])
        assert int(redis("CALL", "ann", "add gold 5")) == 5
        assert int(redis("CALL", "ann", "add axe 1")) == 1
        try:
            redis("CALL", "ann", "spoil")
            raise AssertionError("no error")
        except RespError as error:
            assert "on purpose" in str(error), error
        assert redis("CALL", "ann", "list") == "axe=1 gold=5"
        assert redis("CALL", "ann", "drop axe") == "dropped"
        with urllib.request.urlopen(f"http://{admin}/metrics", timeout=60) as page:
            text = page.read().decode()
        assert re.search(r"^ringhold_node_store_commits_total 3$", text, re.M), text
        assert re.search(r'^ringhold_node_store_refused_total\{reason="fenced"\} 0$', text, re.M), text
        node.kill(signal.SIGKILL)
        node.wait()
        fleet.node("n1", words)
        fleet.settled(["n1"])
        assert redis("CALL", "ann", "list") == "gold=5"


main([
    what_was_answered_is_in_the_file_whatever_dies,
    a_store_that_is_locked_changes_nothing,
    a_durable_kind_needs_a_store,
    a_script_has_named_values_too,
])
