#!/usr/bin/env python3
"""Actors that hang, defer for ever, talk nonsense, answer twice: nobody else suffers, and people can see who it is."""
import json
import os

from fleet import Fleet, Resp, RespError, main, until

WORKERS = "4"
GONE, INVALID, NO_KIND = 2, 1, 11


def start(fleet):
    plugin = os.path.join(os.path.dirname(os.path.abspath(fleet.binary)), "tests", "plugins", "unruly.so")
    fleet.coordinators(1)
    node = fleet.node("n1", ["--actor", plugin, "--threads", WORKERS])
    return node, fleet.gateway("g1")


def call(redis, name, payload):
    return redis("CALL", name, payload)


def error_of(redis, name, payload):
    try:
        call(redis, name, payload)
    except RespError as e:
        return str(e)
    raise AssertionError("it succeeded")


def misbehaving_costs_nobody_else(binary):
    with Fleet(binary) as fleet:
        node, gateway = start(fleet)
        redis = Resp(gateway.resp)
        assert call(redis, "a", "twice") == "first"
        assert call(redis, "b", "self") == str(INVALID)
        assert call(redis, "c", "unknown") == str(NO_KIND)
        assert "broken" in error_of(redis, "d", "fail")
        Resp(gateway.resp).send(("CALL", "e", "defer"))
        until("the node lives", lambda: call(redis, "f", "x") == "fine")
        Resp(gateway.resp).send(("CALL", "nonsense", "x"))
        for what in ("second_reply kind=0 actor=unruly id=a", "calls_itself kind=0 actor=unruly id=b"):
            until(what, lambda what=what: node.log_has(what))
        until("failed", lambda: node.log_has("failed kind=0 actor=unruly id=d"))
        until("nonsense", lambda: node.log_has('bad_result kind=0 actor=unruly id=nonsense what="activate"'))
        assert node.running


def who_hangs_is_named(binary):
    with Fleet(binary) as fleet:
        node, gateway = start(fleet)
        redis = Resp(gateway.resp)
        Resp(gateway.resp).send(("CALL", "stuck one", "hang"))

        def hot(what):
            rows = fleet.ask("top", "--hot")
            return next((r for r in rows if r["what"] == what and r["us"] > 300000), None)

        row = until("top tells", lambda: hot("runs"))
        assert (row["id"], row["node"], row["kind"]) == ("stuck%20one", "n1", 0), row
        # Its worker is lost; three others go on, and the lease with them.
        served = 0
        for i in range(40):
            other = Resp(gateway.resp, timeout=0.5)
            try:
                served += call(other, f"p{i}", "x") == "fine"
            except TimeoutError:
                pass
        assert served >= 15, served
        assert node.running
        assert redis("PING") == "PONG"


def a_state_too_big_moves_cold(binary):
    with Fleet(binary) as fleet:
        node, gateway = start(fleet)
        redis = Resp(gateway.resp)
        plugin = node.words[node.words.index("--actor") + 1]
        for i in range(50):
            assert call(redis, f"p{i}", "x") == "fine"
        fleet.node("n2", ["--actor", plugin])
        until("some moved", lambda: node.log_has("state_too_big kind=0 actor=unruly id=p"))
        fleet.settled(["n1", "n2"])
        for i in range(50):
            assert call(redis, f"p{i}", "x") == "fine"


main([misbehaving_costs_nobody_else, who_hangs_is_named, a_state_too_big_moves_cold])
