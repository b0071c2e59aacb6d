#!/usr/bin/env python3
"""Durable actors in a SQLite file that three nodes share: each request runs once and is answered, never UNKNOWN, while
nodes are killed and ids move; what was answered is in the file, as SQL alone says it, and it is there again after
everything was killed.

    STORE=Postgres smoke_durable.py BINARY whatever_dies        in PostgreSQL, or Redis
"""
import os
import re
import signal
import sqlite3
import sys
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import durable
from durable import Player, goes_on, inventory, must_agree, word_of
from fleet import Fleet, Resp, RespError, healthy, main

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


STORE = getattr(durable, os.environ.get("STORE", "Sqlite"))


def words_of(binary, store):
    return ["--actor", inventory(binary), "--store", store.option, "--threads", "2"]


def what_was_answered_is_in_the_store_whatever_dies(binary):
    with Fleet(binary) as fleet, STORE() as store:
        words = words_of(binary, store)
        fleet.coordinators(1)
        nodes = {name: fleet.node(name, words) for name in NODES}
        gateway = fleet.gateway("g1").resp
        fleet.settled(list(NODES))
        players = [Player(store, gateway, i) for i in range(4)]
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
        found = must_agree(players, store)
        healthy(fleet)
        for p in fleet.processes:
            p.kill(signal.SIGKILL)
            p.wait()
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
    with Fleet(binary) as fleet, durable.Sqlite() as store:
        fleet.coordinators(1)
        fleet.node("n1", words_of(binary, store))
        redis = Resp(fleet.gateway("g1").resp, timeout=120)
        fleet.settled(["n1"])
        assert int(redis("CALL", "ann", "ADD gold 5")) == 5
        other = sqlite3.connect(store.path, isolation_level=None)
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
        assert store.gold("ann") == int(redis("CALL", "ann", "GET gold"))


def a_durable_kind_needs_a_store(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        start = ["node", "--name", "n1", "--join", fleet.addresses, "--data", fleet.data("n1"), "--listen", "127.0.0.1:0"]
        start += ["--actor", inventory(binary)]
        code, _, err = fleet.run(*start)
        assert code == 1 and "a durable kind needs a store (--store): inventory" in err, err
        code, _, err = fleet.run(*start, "--store", "game.db")
        assert code == 1 and "is not sqlite:PATH, postgres:CONNECTION or redis:HOST:PORT" in err, err
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
    what_was_answered_is_in_the_store_whatever_dies,
    a_store_that_is_locked_changes_nothing,
    a_durable_kind_needs_a_store,
    a_script_has_named_values_too,
])
