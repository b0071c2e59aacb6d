#!/usr/bin/env python3
"""An actor that ends its node's process again and again: after the third time no node runs it any
more, it is named, and all its neighbours are served; cleared, it is served again.

"boss" of the plugin unruly.c calls abort() when it is told to die. kill -9 of an operator ends
processes too, and is nobody's fault: whoever ran then has one strike, and that is all.
"""
import itertools
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, answer_of, healthy, main, succeeds, until

STRIKES = 3
NEIGHBOURS = [f"id{i}" for i in range(200)]


def plugin(fleet):
    return os.path.join(os.path.dirname(os.path.abspath(fleet.binary)), "tests", "plugins", "unruly.so")


def start(fleet, count=1):
    fleet.coordinators(1)
    words = ["--actor", plugin(fleet), "--threads", "2"]
    for i in range(1, count + 1):
        fleet.node(f"n{i}", words)
    return words, fleet.gateway("g1").resp


def rows(fleet):
    return {r["actor"]: r for r in fleet.ask("quarantine", "list")}


def vnode_of(fleet, name):
    return fleet.ask("where", f"0/{name}")["vnode"]


def beside(fleet, name):
    """An id of the same vnode: where ids lie is drawn anew in each fleet, and one in 128 lies there."""
    home = vnode_of(fleet, name)
    return next(i for i in (f"beside{n}" for n in itertools.count()) if vnode_of(fleet, i) == home)


def dies_of(fleet, node, words, resp, name):
    """Told to die it ends its node, which is started again and serves."""
    Resp(resp).send(("CALL", name, "die"))
    assert node.wait() == -6, node.tail()
    node = fleet.node(node.name, words)
    until("its neighbours are served", lambda: succeeds(Resp(resp), "CALL", "other", "x") == "fine")
    return node


def three_deaths_are_quarantine(binary):
    with Fleet(binary) as fleet:
        words, resp = start(fleet)
        node = fleet.process("n1")
        for turn in range(1, STRIKES + 1):
            assert fleet.status()["quarantine"] == []
            node = dies_of(fleet, node, words, resp, "boss")
            row = until("it has a strike", lambda: rows(fleet).get("0/boss"))
            assert (row["strikes"], row["last_node"]) == (turn, "n1"), row
            assert list(rows(fleet)) == ["0/boss"], "nobody else ran"
        named = fleet.status()["quarantine"]
        assert [(r["actor"], r["kind"]) for r in named] == [("0/boss", "unruly")], named
        assert "0/boss" in fleet.tell("status")
        redis = Resp(resp)
        for _ in range(5):
            assert answer_of(redis, "CALL", "boss", "die").startswith("QUARANTINED")
        until("they are counted", lambda: fleet.status()["nodes"][0]["quarantined"] >= 5)
        # Its vnode serves: whoever else is in it, and all others.
        for name in [beside(fleet, "boss"), *NEIGHBOURS]:
            assert redis("CALL", name, "x") == "fine"
        assert node.running and node.log_has("quarantined actor=0/boss")
        told = fleet.tell("quarantine", "clear", "0/boss", "--reason", "mended")
        assert "served again" in told, told
        assert fleet.status()["quarantine"] == [] and rows(fleet) == {}
        assert until("it is served", lambda: succeeds(redis, "CALL", "boss", "x")) == "fine"
        past = [e for e in fleet.ask("events") if e["command"] == "release"]
        assert [(e["subject"], e["reason"]) for e in past] == [("actor 0/boss", "mended")], past
        assert past[0]["by"], past
        assert any("0/boss" in e["why"] for e in fleet.ask("events") if e["command"] == "register")
        healthy(fleet)


def it_is_found_out_on_whatever_node_it_kills(binary):
    with Fleet(binary) as fleet:
        words, resp = start(fleet, 3)
        fleet.settled()
        redis = Resp(resp)
        deaths = 0
        while not fleet.status()["quarantine"]:
            fleet.settled()  # it dies where it is asked for
            owner = fleet.ask("where", "0/boss")["node"]
            dies_of(fleet, fleet.process(owner), words, resp, "boss")
            deaths += 1
            assert deaths <= STRIKES
            until("strikes", lambda n=deaths: rows(fleet).get("0/boss", {}).get("strikes") == n)
        assert deaths == STRIKES
        fleet.settled()
        assert answer_of(redis, "CALL", "boss", "x").startswith("QUARANTINED")
        # Wherever its vnode goes.
        owner = fleet.ask("where", "0/boss")["node"]
        fleet.tell("node", "drain", owner, "--wait", "60")
        assert fleet.ask("where", "0/boss")["node"] != owner
        assert answer_of(redis, "CALL", "boss", "x").startswith("QUARANTINED")
        assert all(p.running for p in (fleet.process(f"n{i}") for i in (1, 2, 3)))
        healthy(fleet)


def a_poison_request_kills_two_nodes_at_most(binary):
    """A GET may run again after its owner died: of one that kills, no third owner dies. Its strikes count though none
    of the dead comes back, and once if one does: asked again and again, it ends no fourth."""
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--lease", "1s", "--election-ms", "300"])
        nodes = [fleet.node(f"n{i}", ["--actor", plugin(fleet), "--threads", "2"]) for i in range(1, 5)]
        resp = fleet.gateway("g1", ["--deadline-ms", "60000"]).resp
        fleet.settled()
        told = answer_of(Resp(resp), "GET", "poison")
        assert told.startswith("UNKNOWN"), told
        dead = [n for n in nodes if not n.running]
        assert len(dead) == 2, [n.name for n in dead]
        assert rows(fleet)["0/poison"]["strikes"] == 2, rows(fleet)
        back = fleet.node(dead[0].name, ["--actor", plugin(fleet), "--threads", "2"])
        fleet.settled()
        assert rows(fleet)["0/poison"]["strikes"] == 2, rows(fleet)
        assert [e["why"] for e in fleet.ask("events") if e["command"] == "reassign"].count(
            "the second death of a request to 0/poison") == 1
        told = answer_of(Resp(resp), "GET", "poison")  # the third death; its copy is refused
        assert told.startswith("UNKNOWN"), told
        for _ in range(5):
            told = answer_of(Resp(resp), "GET", "poison")
            assert told.startswith("QUARANTINED"), told
        assert list(rows(fleet)) == ["0/poison"], "nobody else was asked"
        for name in NEIGHBOURS:
            until(f"{name} is served", lambda n=name: succeeds(Resp(resp), "CALL", n, "x") == "fine")
        assert sum(n.running for n in [*nodes, back]) == 2


def kills_and_clean_stops_are_nobodys_fault(binary):
    with Fleet(binary) as fleet:
        words, resp = start(fleet)
        Resp(resp).send(("CALL", "busy", "hang"))
        node = fleet.process("n1")
        until("it runs", lambda: any(r["id"] == "busy" for r in fleet.ask("top", "--hot")))
        node.kill().wait()
        fleet.node("n1", words)
        row = until("it was seen", lambda: rows(fleet).get("0/busy"))
        assert row["strikes"] == 1 and fleet.status()["quarantine"] == [], row
        fleet.process("n1").kill().wait()  # it runs nobody now
        node = fleet.node("n1", words)
        until("served", lambda: succeeds(Resp(resp), "CALL", "busy", "x") == "fine")
        assert rows(fleet)["0/busy"]["strikes"] == 1
        with open(os.path.join(fleet.data("n1"), "running"), "r+b") as file:
            node.kill().wait()
            file.write(b"damaged!" * 64)
        node = fleet.node("n1", words)
        assert node.log_has("blame_damaged"), node.tail()
        assert rows(fleet)["0/busy"]["strikes"] == 1


def an_operator_may_put_one_in(binary):
    with Fleet(binary) as fleet:
        _, resp = start(fleet)
        redis = Resp(resp)
        assert redis("CALL", "a b", "x") == "fine"
        fleet.tell("quarantine", "add", "0/a%20b")
        until("it is refused", lambda: answer_of(redis, "CALL", "a b", "x").startswith("QUARANTINED"))
        assert redis("CALL", "a", "x") == "fine"
        for words, why in ((("add", "a b"), "is not KIND/ID"), (("clear", "0/b"), "not in quarantine")):
            code, _, err = fleet.run("quarantine", *words, "--coordinators", fleet.addresses)
            assert code == 1 and why in err, (words, code, err)
        fleet.tell("quarantine", "clear", "0/a%20b")
        assert until("it is served", lambda: succeeds(redis, "CALL", "a b", "x")) == "fine"


main([
    three_deaths_are_quarantine,
    it_is_found_out_on_whatever_node_it_kills,
    a_poison_request_kills_two_nodes_at_most,
    kills_and_clean_stops_are_nobodys_fault,
    an_operator_may_put_one_in,
])  # fmt: skip
