#!/usr/bin/env python3
"""Pins and lists from C: examples/matchmaker.c moves rooms to the node that it chose and sees them there, also by TLS as an
operator; what it is refused, and told of it."""
import os
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, free_port, main, until
from secured import Secured

ROOMS = [f"room-{i}" for i in range(40)]


def matchmaker(fleet, *words, env=None, addresses=None):
    """(exit code, what it said, what went wrong)"""
    program = os.path.join(os.path.dirname(fleet.binary), "examples", "matchmaker")
    done = subprocess.run([program, addresses or fleet.addresses, *words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(env or {})})
    return done.returncode, done.stdout, done.stderr


def lives(fleet, *words, env=None):
    code, out, err = matchmaker(fleet, "list", *words, env=env)
    assert code == 0, (out, err)
    return {actor[2:]: node for node, actor, _ in (line.split() for line in out.splitlines())}


def rooms_go_where_they_are_pinned(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        for name in ("n1", "n2"):
            fleet.node(name)
        redis = Resp(fleet.gateway("g1").resp)
        fleet.settled(["n1", "n2"])
        assert lives(fleet) == {}
        for room in ROOMS:
            assert redis("INCR", room) == 1
        before = lives(fleet)
        assert sorted(before) == sorted(ROOMS) and set(before.values()) == {"n1", "n2"}, before
        assert lives(fleet, "room-1") == {r: n for r, n in before.items() if r.startswith("room-1")}
        theirs = [room for room in ROOMS if before[room] == "n1"][:5]
        code, out, err = matchmaker(fleet, "pin", "n2", *theirs)
        assert code == 0 and "5 pins in all" in out, (code, out, err)
        until("they are there", lambda: sorted(r for r, n in lives(fleet).items() if n == "n2" and r in theirs) == sorted(theirs))
        there = [a for a in fleet.ask("actors", "--node", "n2") if a["id"] in theirs]
        assert [a["state"] for a in there] == ["arrived"] * 5, there  # with what they remember: nobody has asked them yet
        assert all(redis("INCR", room) == 2 for room in theirs)
        pins = {p["id"]: p["node"] for p in fleet.ask("pin", "list")}
        assert pins == {f"0/{room}": "n2" for room in theirs}, pins
        code, out, err = matchmaker(fleet, "unpin", *theirs)
        assert code == 0 and fleet.ask("pin", "list") == [], (code, out, err)
        told = [(e["by"].split(" from ")[0], e["command"], e["reason"]) for e in fleet.ask("events")]
        assert ("matchmaker", "pin", "a match was made") in told, told
        assert ("matchmaker", "unpin", "the match is over") in told, told


def what_is_wrong_is_told(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        for words, told in (
            (["pin", "n1", ""], "out of range"),
            (["pin", "n1", "x" * 256], "out of range"),
            (["pin", "", "x"], "out of range"),
            (["pin", "n1", *(f"r{i}" for i in range(1001))], "1 to 1000"),
            (["unpin", "nobody"], "not pinned"),
            (["list", "x" * 256], "out of range"),
        ):
            code, out, err = matchmaker(fleet, *words)
            assert code == 1 and told in err, (words[:3], code, out, err)
        assert fleet.ask("pin", "list") == []
        code, out, err = matchmaker(fleet, "list", addresses=f"127.0.0.1:{free_port()}")
        assert code == 1 and "no coordinator answers" in err, (code, out, err)
        code, out, err = matchmaker(fleet, "list", addresses="nowhere")
        assert code == 1 and "is not host:port" in err, (code, out, err)


def only_an_operator_may_ask(binary):
    def as_one(stem):
        ca, certificate, key = fleet.flags(stem)[1::2]
        return {"RINGHOLD_TLS_CA": ca, "RINGHOLD_TLS_CERTIFICATE": certificate, "RINGHOLD_TLS_KEY": key}

    with Secured(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        code, out, err = matchmaker(fleet, "pin", "n1", "boss", env=as_one(fleet.operator))
        assert code == 0 and [p["id"] for p in fleet.ask("pin", "list")] == ["0/boss"], (code, out, err)
        for env, told in ((as_one(fleet.certificate("node", "n2")), "is for ringhold://ringhold/node/n2"),
                          (None, "no coordinator answers")):
            code, out, err = matchmaker(fleet, "unpin", "boss", env=env)
            assert code == 1 and told in err, (code, out, err)
        assert len(fleet.ask("pin", "list")) == 1


main([rooms_go_where_they_are_pinned, what_is_wrong_is_told, only_an_operator_may_ask])
