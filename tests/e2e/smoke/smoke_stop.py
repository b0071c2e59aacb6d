#!/usr/bin/env python3
"""How a node ends that can hand nothing over, as its coordinators are gone: what it has is flushed by its fence, and it
ends by itself. And how one goes on that stood still: with its actors' memory, as long as nobody else has its ids."""
import os
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, succeeds, until

STOP = 1  # RH_STOP of ringhold.h
VALUES = {"ada": "fast", "bob": "slow and late", "cyd": "fast too"}


def saver(fleet):
    plugins = os.path.join(os.path.dirname(os.path.abspath(fleet.binary)), "tests", "plugins")
    return f"{plugins}/saver.so={fleet.data('saved')}"


def saved(fleet):
    """The value of each id that a flush wrote, and why it did."""
    with open(fleet.data("saved"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split(" ", 3) for line in f]
    return {row[0]: (int(row[2]), row[3]) for row in rows}


def alone(fleet, lease):
    """One node with dirty actors; its coordinator is dead."""
    fleet.coordinators(1, extra=["--lease", lease, "--election-ms", "300"])
    node = fleet.node("n1", ["--actor", saver(fleet)])
    redis = Resp(fleet.gateway("g1").resp)
    for key, value in VALUES.items():
        assert redis("CALL", key, value) == ""
    fleet.process("c1").kill().wait()
    return node


def everything_is_saved(fleet, node):
    assert saved(fleet) == {key: (STOP, value) for key, value in VALUES.items()}, saved(fleet)
    assert node.log_has("actors=3 unsaved=0"), node.tail()


def a_node_whose_coordinators_are_gone_ends(binary):
    with Fleet(binary) as fleet:
        node = alone(fleet, "1s")
        until("its lease is over", lambda: node.log_has("lease_gated"))
        assert node.kill(signal.SIGTERM).wait() == 69, node.tail()
        assert node.log_has("exit code 69"), node.tail()
        everything_is_saved(fleet, node)


def a_second_sigterm_ends_it_at_once(binary):
    with Fleet(binary) as fleet:
        node = alone(fleet, "100s")  # it has its lease for longer than the test waits
        node.kill(signal.SIGTERM)
        until("it leaves", lambda: node.log_has("leaving"))
        assert node.kill(signal.SIGTERM).wait() == 143, node.tail()
        everything_is_saved(fleet, node)


def a_node_that_another_era_finds_flushes_first(binary):
    with Fleet(binary) as fleet:
        node = alone(fleet, "1s")
        code, out, err = fleet.run("recover", "new-cluster", fleet.data("c1"), "--lease", "1s", "--yes")
        assert code == 0, (out, err)
        fleet.coordinator(1, extra=["--lease", "1s", "--election-ms", "300"])
        until("all is saved", lambda: saved(fleet) == {key: (STOP, value) for key, value in VALUES.items()})
        fleet.settled(["n1"])
        redis = Resp(fleet.process("g1").resp)
        until("it serves in the new era", lambda: succeeds(redis, "CALL", "ada", "new") == "")
        assert node.running and node.log_count("registered") == 2, node.tail()


def an_embedded_node_ends_likewise(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--lease", "1s", "--election-ms", "300"])
        program = os.path.join(os.path.dirname(os.path.abspath(binary)), "examples", "embedded")
        server = fleet.start("e1", ["e1", fleet.addresses, fleet.data("e1")], program=program)
        fleet.process("c1").kill().wait()
        assert server.kill(signal.SIGTERM).wait() == 69, server.tail()


def a_node_that_stood_still_goes_on_with_its_memory(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--lease", "10s"])
        node = fleet.node("n1")
        redis = Resp(fleet.gateway("g1").resp)
        fleet.node("n2")
        fleet.settled(["n1", "n2"])
        mine = [k for k in (f"k{i}" for i in range(40)) if fleet.ask("where", k)["node"] == "n1"]
        for key in mine:
            assert redis("SET", key, "kept") == "OK"

        def state():
            return next(n["state"] for n in fleet.status()["nodes"] if n["node"] == "n1")

        node.kill(signal.SIGSTOP)
        until("it is suspect, which others could use", lambda: state() == "suspect")
        node.kill(signal.SIGCONT)
        until("it is live again", lambda: state() == "live")
        assert mine and [redis("GET", key) for key in mine] == ["kept"] * len(mine)
        assert node.running and not fleet.process("c1").log_has("fenced"), node.tail()


def one_that_is_back_says_when_it_gets_its_share(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--lease", "1s", "--election-ms", "300"])
        fleet.node("n1")
        fleet.node("n2")
        fleet.settled(["n1", "n2"])
        fleet.process("n1").kill().wait()
        fleet.settled(["n2"])
        fleet.node("n1")
        row = next(n for n in fleet.status()["nodes"] if n["node"] == "n1")
        assert row["vnodes"] == 0 and 0 < row["joins_ms"] <= 10000, row
        until("its share waits for that", lambda: "waiting (returned)" in fleet.tell("status"))


main(
    [
        one_that_is_back_says_when_it_gets_its_share,
        a_node_that_stood_still_goes_on_with_its_memory,
        a_node_whose_coordinators_are_gone_ends,
        a_second_sigterm_ends_it_at_once,
        a_node_that_another_era_finds_flushes_first,
        an_embedded_node_ends_likewise,
    ]
)
