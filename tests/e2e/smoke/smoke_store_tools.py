#!/usr/bin/env python3
"""What operators do with durable actors: values of one that lives are read and changed through its owner, and of one
whose nodes are stopped in the file; the file is checked, counted and copied while nodes run, and shrunk when none does."""
import json
import os
import sqlite3
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main

GAME = """
local chest = ringhold.kind("chest", {durable = true})
local plain = ringhold.kind("plain")
function chest.get(self, item) return ringhold.get(item) or "none" end
function chest.put(self, item, value) ringhold.put(item, value) return "put" end
function plain.ping(self) return "pong" end
"""
BIG = bytes(range(256)) * 4096  # 1 MiB, the most that a value may have, and no text


class Game:
    """Two nodes with one store, which hosts chests."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.store = os.path.join(fleet.folder, "actors.db")
        self.script = os.path.join(fleet.folder, "game.lua")
        with open(self.script, "w") as f:
            f.write(GAME)
        fleet.coordinators(1)
        self.nodes = [fleet.node(n, ["--lua", self.script, "--store", f"sqlite:{self.store}"]) for n in ("n1", "n2")]
        self.call = Resp(fleet.gateway("g1").resp, timeout=120)
        fleet.settled(["n1", "n2"])

    def fails(self, *words, text):
        words = [*words] if words[0] == "store" or "--store" in words else [*words, *self.where()]
        code, out, err = self.fleet.run(*words)
        assert code == 1 and text in err + out, (words, code, out, err)

    def where(self):
        return ("--coordinators", self.fleet.addresses, "--cluster", self.fleet.cluster)

    def path(self, name, data=None):
        path = os.path.join(self.fleet.folder, name)
        if data is not None:
            with open(path, "wb") as f:
                f.write(data)
        return path


def exported(game, who, *words):
    path = game.path("export.json")
    code, _, err = game.fleet.run("actor", "export", who, "--file", path, *(words or game.where()))
    assert code == 0, err
    with open(path) as f:
        return json.load(f)


def values_of_one_that_lives(game):
    fleet, call = game.fleet, game.call
    assert call("CALL", "ann", "put gold 5") == "put"
    assert fleet.tell("actor", "get", "0/ann", "gold") == "5"
    assert fleet.tell("actor", "set", "0/ann", "gold", "7", "--reason", "a gift") == "set: 1\n"
    assert call("CALL", "ann", "get gold") == "7"  # it has the new one in its memory
    assert fleet.ask("actor", "get", "0/ann", "gold") == {"key": "gold", "value": "7"}
    # One that sleeps is started; the largest value takes many pages there and back.
    fleet.tell("actor", "set", "0/bob", "map%00", "--file", game.path("big", BIG))
    assert fleet.ask("actor", "get", "0/bob") == [{"key": "map%00", "bytes": len(BIG)}]
    fleet.tell("actor", "get", "0/bob", "map%00", "--file", game.path("back"))
    with open(game.path("back"), "rb") as f:
        assert f.read() == BIG
    assert fleet.tell("actor", "delete", "0/ann", "gold") == "deleted: 1\n"
    assert call("CALL", "ann", "get gold") == "none"
    game.fails("actor", "delete", "0/ann", "gold", text="there is no such value")
    game.fails("actor", "get", "0/ann", "gold", text="there is no such value")
    game.fails("actor", "get", "1/ann", text="its kind is not durable")
    game.fails("actor", "get", "9/ann", text="")
    told = [(e["subject"], e["reason"]) for e in fleet.ask("events", "--limit", "1000") if e["command"] == "values"]
    assert told.count(("actor 0/ann", "a gift")) == 1 and len(told) == 4, told


def an_import_is_all_or_nothing(game):
    fleet = game.fleet
    many = {f"k{i:03}": "x" * 5000 for i in range(200)}  # 1 MB: several pages
    rows = [{"key": k, "value": v} for k, v in many.items()] + [{"key64": "AP8", "value64": "_w"}]
    path = game.path("many.json", json.dumps({"values": rows}).encode())
    game.call("CALL", "eve", "put old 1")
    assert fleet.tell("actor", "import", "0/eve", "--file", path) == "imported: 201\n"
    assert game.call("CALL", "eve", "get k199") == many["k199"] and game.call("CALL", "eve", "get old") == "1"
    assert fleet.tell("actor", "import", "0/eve", "--file", path, "--replace") == "imported: 201\n"
    assert game.call("CALL", "eve", "get old") == "none"
    found = exported(game, "0/eve")
    assert found["actor"] == "0/eve" and found["values"] == [rows[-1], *rows[:-1]], str(found)[:300]
    half = game.path("half.json", b'{"values":[{"key":"a","value":"1"},{"key":"","value":"2"}]}')
    game.fails("actor", "import", "0/eve", "--file", half, text="a key has 1 to 255 bytes")
    assert exported(game, "0/eve") == found
    return found


def the_file_while_nodes_run(game):
    fleet, copy = game.fleet, game.path("copy.db")
    assert fleet.run("store", "check", game.store)[0] == 0
    figures = json.loads(fleet.run("store", "stats", f"sqlite:{game.store}", "--json")[1])
    assert figures["values"] == 202 and figures["actors"] == 3 and figures["value_bytes"] > len(BIG), figures
    assert fleet.run("store", "backup", game.store, copy)[0] == 0
    game.fails("store", "backup", game.store, copy, text="give --force")
    assert fleet.run("store", "backup", game.store, copy, "--force")[0] == 0
    assert not [name for name in os.listdir(fleet.folder) if name.startswith("copy.db.") or name.startswith("copy.db-")]
    # Nobody writes beside a node, which has the values in its memory.
    game.fails("store", "vacuum", game.store, text="stop the nodes")
    game.fails("actor", "set", "0/ann", "gold", "1", "--store", game.store, text="stop the nodes")
    assert game.call("CALL", "ann", "get gold") == "none"
    db = sqlite3.connect(copy)
    db.execute("INSERT INTO entry (kind, id, part, key, bytes) VALUES (0, X'676f6e65', 1, X'6b', zeroblob(1048577))")
    db.commit()
    db.close()
    code, out, _ = fleet.run("store", "check", copy)
    assert code == 1 and sorted(out.splitlines()) == [
        "actor 0/gone, key k: a row of value has no actor",
        "actor 0/gone, key k: a row of value is not at most 1048576 bytes (1048577)",
    ], out


def the_file_when_they_are_stopped(game, found):
    fleet = game.fleet
    for p in game.nodes:
        p.kill()
        p.wait()
    assert exported(game, "0/eve", "--store", f"sqlite:{game.store}") == found
    assert fleet.run("actor", "set", "0/eve", "gold", "3", "--store", game.store)[0] == 0
    assert fleet.run("actor", "set", "0/new", "gold", "4", "--store", game.store)[0] == 0
    assert fleet.run("actor", "delete", "0/bob", "map%00", "--store", game.store)[0] == 0
    size = os.path.getsize(game.store)
    assert fleet.run("store", "vacuum", game.store)[0] == 0 and os.path.getsize(game.store) < size
    for name in ("n1", "n2"):
        fleet.node(name, ["--lua", game.script, "--store", f"sqlite:{game.store}"])
    fleet.settled(["n1", "n2"], deadline=120)
    assert [game.call("CALL", name, "get gold") for name in ("eve", "new")] == ["3", "4"]
    assert fleet.run("store", "check", game.store)[0] == 0


def operators_read_change_and_keep_durable_actors(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet)
        values_of_one_that_lives(game)
        found = an_import_is_all_or_nothing(game)
        the_file_while_nodes_run(game)
        the_file_when_they_are_stopped(game, found)


main([operators_read_change_and_keep_durable_actors])
