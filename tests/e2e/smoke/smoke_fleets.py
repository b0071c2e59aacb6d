#!/usr/bin/env python3
"""Two fleets of one cluster name on the same ports, one after the other: what is left of the first
does not join the second, says so, and goes on when its own coordinators are back.
"""
import os
import re
import sys
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, main, succeeds, until

WAY_IN = "to join, start node n1 in an empty folder"


def refusals(address):
    """Links that a process refused since others are of another fleet."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return int(re.search(r'^ringhold_link_refusals_total\{reason="fleet"\} (\d+)', text, re.M)[1])


def paged(fleet):
    """Flags for a page of metrics, and where it will be."""
    address = f"127.0.0.1:{fleet.port()}"
    return address, ("--admin", address)


def end(fleet, *names):
    for name in names:
        fleet.process(name).kill().wait()


def founded(fleet):
    """Its id: the first leader draws it, and it is nobody's before the log has it."""
    return until("it is founded", lambda: fleet.status()["fleet"])


def begin_first(fleet):
    """A fleet of two nodes and a gateway, whose coordinators are killed."""
    fleet.coordinators(3)
    pages = {}
    for name, start in (("n1", fleet.node), ("n2", fleet.node), ("g1", fleet.gateway)):
        pages[name], flags = paged(fleet)
        start(name, flags)
    fleet.settled(["n1", "n2"])
    assert Resp(fleet.process("g1").resp)("SET", "mine", "1") == "OK"
    number = fleet.status()["fleet"]
    assert re.fullmatch("[0-9a-f]{32}", number), number
    code, out, _ = fleet.run("status", "--coordinators", fleet.addresses)
    assert code == 0 and f"fleet {number}" in out, out
    end(fleet, "c1", "c2", "c3")
    return number, pages


def is_unharmed(fleet, number, nodes):
    """Nobody else is in it, and nothing that it does failed."""
    told = fleet.settled(nodes)
    assert told["fleet"] == number
    assert {n["node"] for n in told["nodes"]} == set(nodes), told["nodes"]
    assert {g["gateway"] for g in told["gateways"]} <= {"g1", "g2"}, told["gateways"]
    commands = [e["command"] for e in fleet.ask("events", "--limit", "1000")]
    own = sum(fleet.process(n).log_count("node registered") for n in nodes)
    assert commands.count("register") == own and not {"drain", "cancel", "remove", "weight", "stop"} & set(commands), (own, commands)


def what_is_left_of_a_fleet_does_not_join_the_next_one(binary):
    with Fleet(binary) as first, Fleet(binary) as second:
        old, pages = begin_first(first)
        second.ports = first.ports
        # One of three: not founded yet, it takes whoever comes.
        page, flags = paged(second)
        c1 = second.coordinator(1, extra=("--log-level", "debug", *flags))
        until("the others' node is linked to it", lambda: c1.log_has("peer=n1 role=node"))
        until("their gateway too", lambda: c1.log_has("peer=g1 role=gateway"))
        for number in (2, 3):
            second.coordinator(number)
        new = founded(second)
        assert new != old

        for name in ("n1", "n2", "g1"):
            p = first.process(name)
            until(f"{name} says that it is another fleet", lambda p=p: p.log_has(f"fleet is {new} there, {old} here"))
            until(f"{name} counts it", lambda n=name: refusals(pages[n]) > 0)
            assert p.running
        until("a coordinator says so", lambda: c1.log_has(f"fleet is {old} there, {new} here: {WAY_IN}"))
        until("and counts it", lambda: refusals(page) > 0)

        # It is used by nodes and a gateway of the same names as those.
        for name in ("n1", "n2"):
            second.node(name)
        redis = Resp(second.gateway("g1").resp)
        for i in range(200):
            assert redis("SET", f"key-{i}", str(i)) == "OK"
        second.node("n3")
        is_unharmed(second, new, ["n1", "n2", "n3"])
        assert [redis("GET", f"key-{i}") for i in range(200)] == [str(i) for i in range(200)]
        assert redis("GET", "mine") is None
        assert not any(first.process(n).log_has("coordinator_learnt") for n in ("n1", "n2", "g1"))

        # The first one's coordinators come back.
        end(second, "c1", "c2", "c3", "n1", "n2", "n3", "g1")
        for number in (1, 2, 3):
            first.coordinator(number)
        told = first.settled(["n1", "n2"])
        assert told["fleet"] == old
        assert all(first.process(n).running for n in ("n1", "n2", "g1"))
        redis = Resp(first.process("g1").resp)
        until("it serves", lambda: succeeds(redis, "SET", "mine", "2") == "OK")


def a_folder_of_another_fleet_is_told_so_and_another_one_joins(binary):
    with Fleet(binary) as first, Fleet(binary) as second:
        old, _ = begin_first(first)
        end(first, "n1", "n2", "g1")
        second.ports = first.ports
        for number in (1, 2, 3):
            second.coordinator(number, ready=False)
        new = founded(second)

        stray = first.node("n1", ready=False)
        until("it says how to join", lambda: stray.log_has(f"fleet is {new} there, {old} here: {WAY_IN}"))
        assert stray.log_count(WAY_IN) <= 3  # once for each of the coordinators' links
        assert stray.running and not second.status()["nodes"]
        stray.kill().wait()
        second.node("n1")
        second.settled(["n1"])

        # Started again it is of that one, whatever comes first.
        end(second, "n1", "c1", "c2", "c3")
        for number in (1, 2, 3):
            second.coordinator(number, ready=False)
        second.node("n1")
        assert second.settled(["n1"])["fleet"] == new


def with_sessions(fleet):
    """A fleet whose actors take sessions, and where its clients come in."""
    pusher = os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "pusher.so")
    fleet.coordinators(1)
    fleet.node("n1", ["--actor", pusher])
    host, port = fleet.gateway("g1", ["--frames", "127.0.0.1:0"]).fields["frames"].rsplit(":", 1)
    fleet.settled(["n1"])
    return host, int(port)


def a_session_of_another_fleet_is_nobodys(binary):
    with Fleet(binary) as first, Fleet(binary) as second:
        there, here = with_sessions(first), with_sessions(second)
        stranger = packets.Client(there).keep(b"alice")

        def refused(why):
            answer = packets.Client(here).resume(b"alice", stranger.name)
            assert answer.status == packets.REJECTED and answer.payload.startswith(why), answer

        refused(b"GONE")
        code, out, err = second.run("trace", "0/alice", "--coordinators", second.addresses)
        assert code == 1 and "--wake" in err, ("her actor was woken for it", out, err)
        alice = packets.Client(here)
        own = alice.keep(b"alice")
        assert own.name != stranger.name
        refused(b"REPLACED")
        assert alice.ask(b"alice", b"hello").status == packets.OK, "hers is as it was"
        alice.close()
        assert packets.Client(here).resume(b"alice", own.name).status == packets.OK


def gateways_of_one_name_are_named(binary):
    with Fleet(binary) as fleet:
        leader = fleet.coordinators(1)[0]
        fleet.node("n1")
        for name in ("g1", "g2", "g1"):
            fleet.gateway(name, ["--threads", "2"])
        said = until("it is said", lambda: [x for x in fleet.tell("status").splitlines() if "have the name" in x])
        assert said == ["PROBLEM: 2 gateways have the name g1: give each one a --name of its own"], said
        assert leader.log_has("gateway_name_twice gateway=g1") and not leader.log_has("gateway_name_twice gateway=g2")
        fleet.process("g1").kill().wait()
        until("one is left", lambda: "have the name" not in fleet.tell("status"))


main(
    [
        what_is_left_of_a_fleet_does_not_join_the_next_one,
        a_folder_of_another_fleet_is_told_so_and_another_one_joins,
        a_session_of_another_fleet_is_nobodys,
        gateways_of_one_name_are_named,
    ]
)
