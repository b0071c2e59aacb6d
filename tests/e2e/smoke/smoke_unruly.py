#!/usr/bin/env python3
"""Actors that hang, defer for ever, talk nonsense, answer twice: nobody else suffers, and people can see who it is."""
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, main, refused, until

WORKERS = "4"
OK, INVALID, GONE, NO_KIND = 0, 1, 2, 11


def plugin(fleet, name):
    return os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", name)


def start(fleet, *gateway):
    fleet.coordinators(1)
    node = fleet.node("n1", ["--actor", plugin(fleet, "unruly.so"), "--threads", WORKERS])
    return node, fleet.gateway("g1", gateway)


def call(redis, name, payload):
    return redis("CALL", name, payload)


def answer(redis):
    """What it says, or why not."""
    try:
        return redis.read()
    except RespError as e:
        return str(e)


def misbehaving_costs_nobody_else(binary):
    with Fleet(binary) as fleet:
        node, gateway = start(fleet)
        redis = Resp(gateway.resp)
        assert call(redis, "a", "twice") == "first"
        assert call(redis, "b", "self") == str(INVALID)
        assert call(redis, "c", "unknown") == str(NO_KIND)
        assert call(redis, "c", "nowhere") == str(OK)  # nobody waits for what becomes of it
        assert "broken" in refused(redis, "CALL", "d", "fail")
        assert "quit" in refused(redis, "CALL", "e", "quit")
        # Its deactivate, which replies as well, has been called before it is known that it ended.
        until("it ended", lambda: node.log_has("reply_at_end actor=0/e kind=unruly"))
        assert call(redis, "f", "late") == str(GONE)
        Resp(gateway.resp).send(("CALL", "nonsense", "x"))
        for what in (
            "second_reply actor=0/a kind=unruly",
            "calls_itself actor=0/b kind=unruly",
            "unknown_kind actor=0/c kind=unruly",
            "failed actor=0/d kind=unruly",
            'bad_result actor=0/nonsense kind=unruly what="activate"',
            "actor_not_started actor=0/nonsense",
        ):
            until(what, lambda what=what: node.log_has(" warn node " + what))
        assert node.running and call(redis, "f", "x") == "fine"
        # What they asked of others is counted: two got through, one was answered.
        until("both calls are counted", lambda: [
            (c["node"], c["requests"], c["in_flight"]) for c in fleet.ask("top", "--calls")
        ] == [("n1", 2, 0)])  # fmt: skip
        # Those that live: neither who ended, nor who could not start.
        until("a, b, c and f live", lambda: [n["actors"] for n in fleet.status()["nodes"]] == [4])


def who_hangs_is_named(binary):
    with Fleet(binary) as fleet:
        node, gateway = start(fleet, "--deadline-ms", "1000")
        fleet.settled(["n1"])  # what waited for an owner would not run
        redis = Resp(gateway.resp)
        assert refused(redis, "CALL", "late one", "defer").startswith("TIMEOUT")
        assert refused(redis, "CALL", "stuck one", "hang").startswith("TIMEOUT")

        def hot(what):
            rows = fleet.ask("top", "--hot")
            return next((r for r in rows if r["what"] == what and r["id"] == "stuck%20one"), None)

        row = until("top tells", lambda: hot("runs"))
        assert (row["node"], row["kind"]) == ("n1", 0), row
        # Its worker is lost; three others go on, and the lease with them.
        served = set()

        def others_are_served():
            asked = [(i, Resp(gateway.resp)) for i in range(40) if i not in served]
            for i, other in asked:
                other.send(("CALL", f"p{i}", "x"))
            served.update(i for i, other in asked if answer(other) == "fine")
            for _, other in asked:
                other.close()
            return len(served) >= 15

        until("who lives on another worker is served", others_are_served)
        until("a line names who hangs", lambda: node.log_has("slow_callback actor=0/stuck%20one"))
        until("a line names who defers", lambda: node.log_has("slow_answer actor=0/late%20one"))
        assert node.running
        assert redis("PING") == "PONG"


def a_state_too_big_moves_cold(binary):
    with Fleet(binary) as fleet:
        node, gateway = start(fleet)
        redis = Resp(gateway.resp)
        for i in range(50):
            assert call(redis, f"p{i}", "x") == "fine"
        fleet.node("n2", ["--actor", plugin(fleet, "unruly.so")])
        until("some moved", lambda: node.log_has("state_too_big actor=0/p"))
        fleet.settled(["n1", "n2"])
        for i in range(50):
            assert call(redis, f"p{i}", "x") == "fine"


def an_object_of_another_abi_is_refused(binary):
    with Fleet(binary) as fleet:
        words = ["node", "--name", "n1", "--join", "127.0.0.1:1", "--data", fleet.data("n1")]
        foreign = plugin(fleet, "foreign.so")
        code, _, err = fleet.run(*words, "--actor", foreign)
        assert code == 1 and len(err.splitlines()) == 1, err
        assert foreign in err and "ABI 1" in err and "this is ABI 2" in err, err


def an_object_has_several_kinds(binary):
    with Fleet(binary) as fleet:
        several = plugin(fleet, "several.so")
        fleet.coordinators(1)
        fleet.node("n1", ["--actor", several + ":orc", "--kind", f"3@together:{several}:wolf=grey"])
        redis = Resp(fleet.gateway("g1").resp)
        assert [call(redis, name, "who") for name in ("x", "@3/x")] == ["orc", "wolf"]
        words = ["node", "--name", "n2", "--join", "127.0.0.1:1", "--data", fleet.data("n2")]
        for kind in ("", ":cat"):
            code, _, err = fleet.run(*words, "--kind", f"3:{several}{kind}")
            assert code == 1 and len(err.splitlines()) == 1 and "orc, wolf, ghost" in err, err


main(
    [
        misbehaving_costs_nobody_else,
        who_hangs_is_named,
        a_state_too_big_moves_cold,
        an_object_of_another_abi_is_refused,
        an_object_has_several_kinds,
    ]
)
