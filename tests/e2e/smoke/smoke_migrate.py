#!/usr/bin/env python3
"""A store of durable actors goes from SQLite to PostgreSQL, to Redis and back, with the fleet stopped; after each step nodes go on
from there. In each database an operator checks and counts it beside nodes, and changes a value without them."""
import json
import os
import sqlite3
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import durable
from durable import inventory
from fleet import Fleet, Resp, main, until

SPOIL = {
    "postgres": """INSERT INTO value VALUES (0, 'gone', 'k', 'x');
INSERT INTO value VALUES (0, 'ann', 'long', decode(repeat('00', 1048577), 'hex'));
INSERT INTO send VALUES (0, 'ann', '\\x00ffffffffff0001', '\\x000001')""",
    "redis": [
        ("HSET", "ringhold:value:0:gone", "k", "x"),
        ("HSET", "ringhold:value:0:ann", "long", "x" * 1048577),
        ("HSET", "ringhold:send:0:ann", b"\x00\xff\xff\xff\xff\xff\x00\x01", "x"),
    ],
}
HEAL = {
    "postgres": "DELETE FROM value WHERE id = 'gone' OR key = 'long'; DELETE FROM send",
    "redis": [("DEL", "ringhold:value:0:gone", "ringhold:send:0:ann"), ("HDEL", "ringhold:value:0:ann", "long")],
}
FAULTS = [
    "actor 0/ann, key %00%FF%FF%FF%FF%FF%00%01: its send is newer than its last commit",
    "actor 0/ann, key long: a row of value is not at most 1048576 bytes (1048577)",
    "actor 0/gone, key k: a row of value has no actor",
]


def writes(store, what):
    if store.name == "postgres":
        store.query(*what[store.name].split(";"))
    else:
        for words in what[store.name]:
            store.ask(*words)


def sql(store, statement):
    """Of somebody who has the file open no longer than that."""
    db = sqlite3.connect(store.path)
    db.execute(statement)
    db.commit()
    db.close()


class Game:
    """A node with an inventory in a store, which changes."""

    def __init__(self, fleet, binary):
        self.fleet, self.binary = fleet, binary
        fleet.coordinators(1)
        self.redis = self.node = None

    def start(self, store):
        self.node = self.fleet.node("n1", ["--actor", inventory(self.binary), "--store", store.option])
        if self.redis is None:
            self.redis = Resp(self.fleet.gateway("g1").resp, timeout=120)
        self.fleet.settled(["n1"], deadline=120)

    def stop(self):
        self.node.kill().wait()

    def add(self, name, count):
        return int(self.redis("CALL", name, f"ADD gold {count}"))

    def store(self, *words, code=0):
        found, out, err = self.fleet.run("store", *words)
        assert found == code, (words, found, out, err)
        return out + err

    def stats(self, store):
        return json.loads(self.store("stats", store.option, "--json"))

    def migrates(self, source, target, *words, code=0):
        return self.store("migrate", "--from", source.option, "--to", target.option, *words, code=code)


def beside_nodes(game, store):
    assert "is sound" in game.store("check", store.option)
    figures = game.stats(store)
    assert figures["actors"] > 1000 and figures["values"] > 1000 and figures["answers"] > 0, figures
    if store.name == "sqlite":
        return
    assert "pg_dump" in (text := game.store("backup", store.option, "copy", code=1)) or "BGSAVE" in text
    if store.name == "postgres":
        game.store("vacuum", store.option)
    else:
        assert "BGREWRITEAOF" in game.store("vacuum", store.option, code=1)
    code, _, err = game.fleet.run("actor", "set", "0/ann", "gold", "1", "--store", store.option)
    assert code == 1 and "stop the nodes" in err, err


def none_comes(game, store, text):
    words = ["--join", game.fleet.addresses, "--data", game.fleet.data("n9"), "--listen", "127.0.0.1:0"]
    words += ["--actor", inventory(game.binary), "--store", store.option]
    code, _, err = game.fleet.run("node", "--name", "n9", *words)
    assert code == 1 and text in err, err


def while_somebody_is_alone(game, store):
    """No node comes, nor another command, as long as one has it; here by its own means."""
    if store.name == "postgres":
        reader = store.reader()
        reader.line("SELECT pg_advisory_lock(7467, ('store'::regclass::oid::bigint - 2147483648)::integer)")
        none_comes(game, store, "an operator's command has it alone")
        reader.psql.communicate()
    elif store.name == "redis":
        store.ask("SET", "ringhold:alone", "1")
        none_comes(game, store, "an operator's command has it alone")
        code, _, err = game.fleet.run("actor", "get", "0/ann", "--store", store.option)
        assert code == 1 and "an operator's command has it alone" in err, err
        store.ask("DEL", "ringhold:alone")


def without_them(game, store, gold):
    def actor(*words):
        code, out, err = game.fleet.run("actor", *words, "--store", store.option)
        assert code == 0, (words, out, err)
        return out

    assert actor("get", "0/ann", "gold") == str(gold)
    assert actor("set", "0/ann", "gold", str(gold + 5)) == "set: 1\n"
    path = os.path.join(game.fleet.folder, "ann.json")
    actor("export", "0/ann", "--file", path)
    actor("import", "0/new", "--file", path)
    assert actor("get", "0/new", "gold") == str(gold + 5)
    if store.name != "sqlite":
        writes(store, SPOIL)
        found = sorted(game.store("check", store.option, code=1).splitlines())
        assert found == FAULTS, (store.name, found)
        writes(store, HEAL)
        assert "is sound" in game.store("check", store.option)


def what_is_cut_off_is_begun_anew(game, source, target):
    """A row that can't be read stops it amidst its work."""
    sql(source, "INSERT INTO alarm VALUES (0, X'7a', X'61', X'', -1, 0)")
    text = game.migrates(source, target, code=1)
    assert "actor 0/z: it can't be read" in text, text
    none_comes(game, target, "a copy into it was not finished")
    assert "give --again" in game.migrates(source, target, code=1)
    sql(source, "DELETE FROM alarm WHERE id = X'7a'")
    game.migrates(source, target, "--again")


def a_store_goes_from_one_database_to_another(binary):
    kinds = [kind for kind in (durable.Postgres, durable.Redis) if not kind.missing()]
    with Fleet(binary) as fleet, durable.Sqlite() as first, durable.Sqlite() as last:
        servers = [kind().__enter__() for kind in kinds]
        try:
            goes_round(Game(fleet, binary), [first, *servers, last])
        finally:
            for server in servers:
                server.__exit__()


def goes_round(game, stores):
    first = stores[0]
    game.start(first)
    gold = game.add("ann", 7)
    game.add("z", 1)
    text = game.migrates(first, stores[1], code=1)
    assert "the source: somebody else has it open: stop the nodes" in text, text
    game.stop()
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)"
    sql(first, rows + " INSERT INTO actor SELECT 0, CAST('k' || i AS BLOB), 0, i FROM n")
    sql(first, "INSERT INTO value SELECT 0, id, CAST('gold' AS BLOB), CAST(number AS BLOB) FROM actor WHERE fence = 0")
    assert "schema version 2" in game.store("migrate", "--from", first.option)
    what_is_cut_off_is_begun_anew(game, first, stores[1])
    assert "not empty" in game.migrates(first, stores[1], code=1)
    for i, store in enumerate(stores[1:]):
        if i > 0:
            before, text = game.stats(stores[i]), game.migrates(stores[i], store)
            assert f"copied and compared: {before['actors']} actors" in text, text
        gold = goes_on(game, store, gold)


def goes_on(game, store, gold):
    game.start(store)
    assert game.add("ann", 1) == gold + 1 and game.add("k1500", 1) > 1500
    beside_nodes(game, store)
    game.stop()
    while_somebody_is_alone(game, store)
    without_them(game, store, gold + 1)
    return gold + 6


main([a_store_goes_from_one_database_to_another])
