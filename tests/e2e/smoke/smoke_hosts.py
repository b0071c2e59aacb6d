#!/usr/bin/env python3
"""Nodes of one role host different kinds: one that is placed by its hosts lives on these alone; a canary takes a part."""
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, healthy, main, until

SHORT = ["--lease", "1s", "--election-ms", "300"]
IDS = [f"id-{i}" for i in range(80)]


def homes(fleet):
    return {fleet.ask("where", f"3/{name}")["node"] for name in IDS[:20]}


def row_of(fleet):
    (row,) = [r for r in fleet.status()["roles"] if r["placement"] == "hosts"]
    return row


def a_kind_lives_on_the_nodes_that_host_it(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=SHORT)
        fleet.node("n1", ["--actor", "kv"])
        fleet.node("n2", ["--actor", "kv", "--kind", "3@hosts:kv"])
        fleet.node("n3", ["--actor", "kv", "--kind", "3@hosts:kv"])
        gateway = fleet.gateway("g1", ["--deadline-ms", "60000"]).resp
        redis = Resp(gateway, timeout=120)
        fleet.settled(["n1", "n2", "n3"])
        for name in IDS:
            assert redis("INCR", f"@3/{name}") == 1
        assert homes(fleet) == {"n2", "n3"}
        assert (row_of(fleet)["kinds"], row_of(fleet)["nodes"]) == ("3 kv", 2)
        # A drain finds the other host, and none else, with the state.
        fleet.tell("node", "drain", "n2", "--wait", "60")
        assert homes(fleet) == {"n3"}
        for name in IDS:
            assert redis("INCR", f"@3/{name}") == 2
        # The last one dies: its ids wait for a host, and all others are served.
        fleet.process("n2").kill().wait()
        fleet.process("n3").kill().wait()
        until("both are fenced", lambda: {n["state"] for n in fleet.status()["nodes"]} == {"live", "fenced", "dead"})
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(Resp(gateway, timeout=120)("INCR", "@3/waits")))
        waiting.start()
        assert redis("SET", "a", "1") == "OK"
        fleet.node("n4", ["--actor", "kv", "--kind", "3@hosts:kv"])
        waiting.join(60)
        assert answers == [1], answers
        assert homes(fleet) == {"n4"}


def who_comes_back_without_a_kind_gives_its_ids_away(binary):
    """Its process was killed, so it was not drained: it still owns what it can't run any more."""
    kinds = ["--actor", "kv", "--kind", "3@hosts:kv", "--kind", "7@singleton:echo"]
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=SHORT)
        fleet.node("n1", kinds)
        fleet.node("n2", kinds)
        redis = Resp(fleet.gateway("g1", ["--deadline-ms", "60000"]).resp, timeout=120)
        fleet.settled(["n1", "n2"])
        assert fleet.ask("where", "7/echo")["node"] == "n1"
        fleet.process("n1").kill().wait()
        fleet.node("n1", ["--actor", "kv"])
        for name in IDS:
            assert redis("INCR", f"@3/{name}") == 1
        assert redis("CALL", "@7/echo", "hi") == "hi"
        fleet.settled(["n1", "n2"])
        assert homes(fleet) == {"n2"} == {fleet.ask("where", "7/echo")["node"]}
        healthy(fleet)


def a_canary_takes_a_part(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ["--actor", "kv", "--kind", "3@hosts:kv"])
        fleet.node("n2", ["--actor", "kv", "--kind", "3@0.1:kv"])
        fleet.settled(["n1", "n2"])
        assert row_of(fleet)["canaries"] == "n2 0.1", row_of(fleet)
        parts = {n["node"]: n["parts"] for n in fleet.ask("node", "list")}
        assert parts == {"n1": "", "n2": "3 0.1"}, parts
        cells = {"n1": 0, "n2": 0}
        for v in fleet.ask("ring")["vnodes"]:
            if v["from"] >= 1 << 16:  # behind the default ones
                cells[v["owner"]] += v["to"] - v["from"]
        assert 0.06 < cells["n2"] / sum(cells.values()) < 0.13, cells
        # A kind that is hashed has no canaries: it says what to do.
        code, _, err = fleet.run("node", "--name", "n3", "--join", fleet.addresses, "--data", fleet.data("n3"),
                                 "--listen", "127.0.0.1:0", "--kind", "0@0.1:kv")
        assert code != 0 and "or set the node's weight (`ringhold node weight`)" in err, err
        for part in ("1.1", "2", "0.1234", "0.1x", "x"):
            code, _, err = fleet.run("node", "--name", "n3", "--join", fleet.addresses, "--kind", f"3@{part}:kv")
            assert code != 0 and "with a PART of 0 to 1" in err, (part, err)


main(
    [
        a_kind_lives_on_the_nodes_that_host_it,
        who_comes_back_without_a_kind_gives_its_ids_away,
        a_canary_takes_a_part,
    ]
)
