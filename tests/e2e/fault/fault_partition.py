#!/usr/bin/env python3
"""Partitions between real processes, each in a network namespace of its own.

A node that is cut off stops by itself before its vnodes are served elsewhere: the ledger sees no
id live twice, whatever is cut from what, one way or both.
"""
import os
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import main, until
from ledger import Faults, Load, judge
from machines import Machines, enter, missing

LEASE = 3


def build(fleet):
    journals = fleet.data("journals")
    os.mkdir(journals)
    env = {"RINGHOLD_LEDGER": journals}
    fleet.coordinators(3, extra=["--lease", f"{LEASE}s"])
    for name in ("n1", "n2", "n3"):
        fleet.node(name, ["--actor", "ledger"], env)
    # Who asks a node that is cut off waits as long as the cut lasts, and that is as long as 3000 answers take here.
    gateways = [fleet.gateway(name, ["--deadline-ms", "60000"]).resp for name in ("g1", "g2")]
    fleet.settled(["n1", "n2", "n3"])
    space = fleet.namespace("ops")
    return Load(gateways, inside=lambda: enter(space), ids=300, rate=500, slow_ms=50, patience=60), env


def finish(fleet, load, env, faults, extra=""):
    before = load.answered()
    until("requests are answered again", lambda: load.answered() > before + 300)
    verdict = judge(load.finish(), env["RINGHOLD_LEDGER"], faults)
    print(f"# {verdict.words()}{extra}")
    verdict.must_be_clean()


def owners(fleet):
    return {n["node"] for n in fleet.status()["nodes"] if n["vnodes"] > 0}


def a_node_cut_off_from_everybody_is_replaced(binary):
    with Machines(binary) as fleet:
        load, env = build(fleet)
        faults = Faults()
        victim = fleet.process("n2")
        faults.halts(victim)
        fleet.isolate("n2")
        begin = time.monotonic()
        until("n2 is replaced", lambda: owners(fleet) == {"n1", "n3"})
        took = time.monotonic() - begin
        fleet.heal()
        assert victim.wait() == 75, victim.tail()
        fleet.node("n2", ["--actor", "ledger"], env)
        fleet.settled(["n1", "n2", "n3"], deadline=90)
        finish(fleet, load, env, faults, f"; replaced after {took:.1f} s (lease {LEASE} s)")


def a_node_cut_off_from_the_coordinators_only_is_replaced(binary):
    with Machines(binary) as fleet:
        load, env = build(fleet)
        faults = Faults()
        faults.halts(fleet.process("n1"))
        fleet.isolate("n1", ["c1", "c2", "c3"])
        until("n1 is replaced", lambda: owners(fleet) == {"n2", "n3"})
        fleet.heal()
        assert fleet.process("n1").wait() == 75
        fleet.node("n1", ["--actor", "ledger"], env)
        fleet.settled(["n1", "n2", "n3"], deadline=90)
        finish(fleet, load, env, faults)


def a_node_whose_packets_to_the_coordinators_are_lost_is_replaced(binary):
    """One way only: it hears them, they don't hear it."""
    with Machines(binary) as fleet:
        load, env = build(fleet)
        faults = Faults()
        faults.halts(fleet.process("n3"))
        for coordinator in ("c1", "c2", "c3"):
            fleet.cut("n3", coordinator)
        until("n3 is replaced", lambda: owners(fleet) == {"n1", "n2"})
        fleet.heal()
        assert fleet.process("n3").wait() == 75
        fleet.node("n3", ["--actor", "ledger"], env)
        fleet.settled(["n1", "n2", "n3"], deadline=90)
        finish(fleet, load, env, faults)


def a_leader_cut_off_from_its_peers_is_followed_by_another(binary):
    """It still reaches nodes and gateways, but grants nothing: no lease is lost, no request fails."""
    with Machines(binary) as fleet:
        load, env = build(fleet)
        old = fleet.leader().name
        fleet.isolate(old, [c for c in ("c1", "c2", "c3") if c != old])
        until("another leads", lambda: fleet.leader().name != old)
        fleet.node("n4", ["--actor", "ledger"], env)
        fleet.settled(["n1", "n2", "n3", "n4"], deadline=90)
        fleet.heal()
        fleet.settled(["n1", "n2", "n3", "n4"], deadline=90)
        verdict = judge(load.finish(), env["RINGHOLD_LEDGER"])
        print(f"# {verdict.words()}")
        verdict.must_be_clean(planned=True)


def nodes_cut_off_from_each_other_move_nothing_and_lose_nothing(binary):
    """State can't cross: the move waits or is called off, and is made when the cut heals."""
    with Machines(binary) as fleet:
        load, env = build(fleet)
        fleet.node("n4", ["--actor", "ledger"], env)
        fleet.isolate("n4", ["n1", "n2", "n3"])
        before = load.answered()
        until("requests are answered meanwhile", lambda: load.answered() > before + 3000)
        fleet.heal()
        fleet.settled(["n1", "n2", "n3", "n4"], deadline=120)
        verdict = judge(load.finish(), env["RINGHOLD_LEDGER"])
        print(f"# {verdict.words()}")
        verdict.must_be_clean(planned=True)


cases = [
    a_node_cut_off_from_everybody_is_replaced,
    a_node_cut_off_from_the_coordinators_only_is_replaced,
    a_node_whose_packets_to_the_coordinators_are_lost_is_replaced,
    a_leader_cut_off_from_its_peers_is_followed_by_another,
    nodes_cut_off_from_each_other_move_nothing_and_lose_nothing,
]
why = missing()
if why:
    for case in cases:
        print(f"ok - {case.__name__} # SKIP {why}")
else:
    main(cases)
