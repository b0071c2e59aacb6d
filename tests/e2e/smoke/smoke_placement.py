#!/usr/bin/env python3
"""Pins and moves by an operator, under load: an id goes where it is pinned and stays; it leaves a node that drains or dies,
or waits for it; a list of moves by a program; what is refused, and why. No request is lost or runs twice."""
import json
import re
import signal
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, started, until

KEYS = ["boss"] + [f"k{i}" for i in range(7)]


class Load(threading.Thread):
    """Counts each key up, one request after the other, and keeps what was answered."""

    def __init__(self, fleet, keys=KEYS):
        super().__init__(daemon=True)
        self.redis, self.keys, self.over = Resp(fleet.process("g1").resp), keys, threading.Event()
        self.told = {key: [] for key in keys}
        self.start()

    def run(self):
        while not self.over.is_set():
            for key in self.keys:
                self.told[key].append(self.redis("INCR", key))

    def end(self):
        self.over.set()
        self.join()
        for key, told in self.told.items():
            assert told == list(range(1, len(told) + 1)), (key, told[-20:])  # none lost, none doubled
        return sum(len(told) for told in self.told.values())


def where(fleet, key):
    return fleet.ask("where", f"0/{key}")["node"]


def another(fleet, key):
    return "n2" if where(fleet, key) != "n2" else "n1"


def pins(fleet):
    return {p["id"]: p for p in fleet.ask("pin", "list")}


def rests(fleet):
    until("nothing moves", lambda: not any(fleet.status()[k] for k in ("pending", "planned", "planning")))


def refused(fleet, why, *words):
    code, out, err = fleet.run(*words, "--coordinators", fleet.addresses)
    assert code == 1 and why in err, (words, code, out, err)


def an_id_is_pinned_falls_back_while_its_node_drains_and_comes_back(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2", "n3")
        load = Load(fleet)
        before = where(fleet, "boss")
        node = another(fleet, "boss")
        assert fleet.ask("pin", "0/boss", node, "--dry-run")["moves"]
        assert not pins(fleet)
        fleet.tell("pin", "0/boss", node, "--reason", "its game runs there")
        until("boss is where it is pinned", lambda: where(fleet, "boss") == node)
        assert pins(fleet)["0/boss"]["state"] == "there", pins(fleet)
        rests(fleet)
        told = fleet.ask("where", "0/boss")
        assert told["node"] == node and told["moved_in"] != "0" and told["moved_ms_ago"] >= 0, told
        moved = (told["moved_from"], told["moved_to"], told["moved_why"])
        assert moved == (before, node, f"wished at {node}"), told
        code, out, _ = fleet.run("where", "0/boss", "--coordinators", fleet.addresses)
        line = f"last moved from {before} to {node} in transaction {told['moved_in']}, "
        assert code == 0 and line in out and out.endswith(f"s ago: wished at {node}\n"), out
        fleet.node("n4")  # others move, it does not
        fleet.settled(["n1", "n2", "n3", "n4"])
        rests(fleet)
        assert where(fleet, "boss") == node
        assert any("actor 0/boss at " + node in e["subject"] for e in fleet.ask("events")), fleet.ask("events")

        fleet.tell("node", "drain", node)
        until("its node is empty", lambda: all(n["vnodes"] == 0 for n in fleet.status()["nodes"] if n["node"] == node))
        assert where(fleet, "boss") != node and pins(fleet)["0/boss"]["state"] == "drains"
        assert fleet.status()["pins_away"] == 1
        fleet.tell("node", "drain", node, "cancel")
        until("boss is back", lambda: where(fleet, "boss") == node)

        rests(fleet)
        fleet.tell("unpin", "0/boss")
        rests(fleet)
        assert not pins(fleet) and fleet.status()["pins"] == 0
        assert load.end() > len(KEYS)


def what_is_pinned_to_a_dead_node_goes_by_hash_or_waits(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2", "n3")
        fleet.tell("pin", "0/a", "n2")
        fleet.tell("pin", "0/b", "n2", "--if-dead", "wait")
        until("both are at n2", lambda: where(fleet, "a") == where(fleet, "b") == "n2")
        rests(fleet)
        load = Load(fleet, ["k1"])
        fleet.process("n2").kill(signal.SIGKILL)
        until("others have what it had", lambda: where(fleet, "a") != "n2")
        assert where(fleet, "b") == "n2"
        states = pins(fleet)
        assert states["0/a"]["state"] == states["0/b"]["state"] == "dead", states
        refused(fleet, "are pinned to it and wait", "node", "remove", "n2")
        fleet.node("n2")
        until("a is back", lambda: where(fleet, "a") == "n2")
        assert where(fleet, "b") == "n2"
        assert Resp(fleet.process("g1").resp)("INCR", "b") == 1
        load.over.set()
        load.join()  # before its gateway ends


def a_program_moves_vnodes(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2", "n3")
        load = Load(fleet)
        owned = [v for v in fleet.ask("ring")["vnodes"] if v["owner"] == "n1"]
        plan = [{"vnode": v["vnode"], "node": "n3"} for v in owned[:3]]
        with open(fleet.data("plan.json"), "w", encoding="utf-8") as file:
            json.dump(plan, file)
        shown = fleet.ask("move", "--json", fleet.data("plan.json"), "--dry-run")
        assert shown["vnodes"] >= 3 and shown["transactions"] >= 1, shown
        assert len(pins(fleet)) == 0
        fleet.tell("move", "--json", fleet.data("plan.json"))

        def moved(vnodes, node):
            now = {v["vnode"]: v["owner"] for v in fleet.ask("ring")["vnodes"]}
            return all(now.get(vnode) == node for vnode in vnodes)

        vnodes = [m["vnode"] for m in plan]
        until("they are at n3", lambda: moved(vnodes, "n3"))
        rests(fleet)
        assert moved(vnodes, "n3")  # and stay
        assert fleet.status()["pins"] == 3
        fleet.tell("move", str(owned[3]["vnode"]), "n2", "--once")
        until("it is at n2, or was", lambda: any(e["command"] == "move" and "n2 once" in e["why"] for e in fleet.ask("events")))
        rests(fleet)
        assert fleet.status()["pins"] == 3

        vnode = str(vnodes[0])
        refused(fleet, "unknown node 'n9'", "move", vnode, "n9")
        refused(fleet, "no such vnode", "move", "1000000", "n1")
        refused(fleet, "it is not pinned", "unpin", "0/nobody")
        refused(fleet, "unknown node 'n9'", "pin", "0/ann", "n9")
        refused(fleet, "use VNODE NODE", "move", vnode)
        fleet.tell("node", "drain", "n2")
        refused(fleet, "node 'n2' drains", "move", str(owned[4]["vnode"]), "n2")
        with open(fleet.data("bad.json"), "w", encoding="utf-8") as file:
            file.write('[{"vnode": 1, "node": "n1"}, {"vnode": }]')
        refused(fleet, "byte 39", "move", "--json", fleet.data("bad.json"))
        with open(fleet.data("lines"), "w", encoding="utf-8") as file:
            file.write("".join(f"0/p{i} n3\n" for i in range(1500)))
        fleet.tell("pin", "--lines", fleet.data("lines"))
        until("all are pinned", lambda: fleet.status()["pins"] == 1503)
        until("all are there", lambda: all(p["state"] == "there" for p in fleet.ask("pin", "list")))
        assert load.end() > len(KEYS)


def what_two_lines_say_of_one_cell_is_told_with_both(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2", "n3")

        def lines(*text):
            with open(fleet.data("lines"), "w", encoding="utf-8") as file:
                file.write("".join(line + "\n" for line in text))
            return fleet.data("lines")

        def vnode_of(key):
            return str(fleet.ask("where", f"0/{key}")["vnode"])

        rests(fleet)
        vnode = vnode_of("ann")
        cid = next(f"cid{i}" for i in range(1000) if vnode_of(f"cid{i}") != vnode)
        both = f"line 1 and line 3 have a cell in common: vnode {vnode} at 'n2', 0/ann at 'n3': pin both alike"
        many = lines(f"{vnode} n2", "", "ann n3", "bob n9", f"{cid} n1", f"{cid} n1")
        refused(fleet, both, "pin", "--lines", many)
        refused(fleet, "line 4, 0/bob: unknown node 'n9'", "pin", "--lines", many)
        refused(fleet, f"line 5 and line 6 both name 0/{cid}: leave one out", "pin", "--lines", many)
        refused(fleet, "3 of 5 pins are refused, so nothing is changed", "pin", "--lines", many, "--dry-run")
        refused(fleet, "line 2, 0/bob: it is not pinned", "unpin", "--lines", lines("", "bob"))
        refused(fleet, "line 2 is wrong", "pin", "--lines", lines("ann n3", "% n3"))
        assert not pins(fleet)
        # A thousand lines are one command: what is refused is the second one's.
        many = lines(*(f"{vnode} n2" if i == 0 else f"0/p{i} n2" for i in range(1000)), "ann n3")
        code, out, err = fleet.run("pin", "--lines", many, "--coordinators", fleet.addresses)
        # With the vnode's cells, or with an id of the thousand that happens to be in the cell of ann.
        why = r"line 1001, 0/ann: it has a cell in common with (cells \d+|0/p\d+).*, which is pinned to 'n2'.*: unpin that first, or pin both alike"
        assert code == 1 and re.search(why, err), (code, out, err)
        assert len(fleet.ask("pin", "list")) == 1000
        fleet.tell("pin", "--lines", lines("ann n2"))


main([
    an_id_is_pinned_falls_back_while_its_node_drains_and_comes_back,
    what_is_pinned_to_a_dead_node_goes_by_hash_or_waits,
    a_program_moves_vnodes,
    what_two_lines_say_of_one_cell_is_told_with_both,
])  # fmt: skip
