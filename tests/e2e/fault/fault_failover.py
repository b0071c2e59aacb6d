#!/usr/bin/env python3
"""kill -9 of a node under load: how long until its ids answer again?

One connection an id asks without pause, so that the first answer of the new owner is seen when it
comes. KILLS=N nodes killed at each lease length (30); LEASES=3,2 seconds. Times are printed beside
the lease, never asserted; that each id answers again, and that nothing ran twice, is.

MINUTES=N: nothing is killed, and nobody may be fenced for so long, whatever else the machine does.

Alone: its times are worth something only then.
"""
import collections
import os
import threading
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, pairs, until
from ledger import Faults, Load, judge, now_ns

KILLS = int(os.environ.get("KILLS", "30"))
MINUTES = float(os.environ.get("MINUTES", "0"))
LEASES = [float(x) for x in os.environ.get("LEASES", "3,2").split(",")]
IDS = 48


def share(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


def killed(fleet, probe, name, faults):
    """Kill the node; when that began, when it was dead, and the ids that it had."""
    mine = [i for i in range(IDS) if pairs(probe(b"WHERE", f"p{i}".encode()))["node"] == name]
    assert mine, f"{name} owns none of {IDS} ids"
    process = fleet.process(name)
    begin = now_ns()
    process.kill().wait()
    faults.killed(process)
    return begin, now_ns(), mine


def started(fleet, lease, **load):
    """Four nodes under load: their names, the load, the ledger's folder, the gateway's address."""
    journals = fleet.data("journals")
    os.mkdir(journals)
    env = {"RINGHOLD_LEDGER": journals}
    election = min(500, int(lease * 1000 / 3.3))  # a lease is to outlast three of them
    fleet.coordinators(3, extra=["--lease", f"{lease:g}s", "--election-ms", str(election)])
    names = [f"n{i}" for i in range(1, 5)]
    for name in names:
        fleet.node(name, ["--actor", "ledger"], env)
    gateway = fleet.gateway("g1").resp
    fleet.settled(names)
    load = Load([gateway], ids=IDS, hot=IDS, patience=60, **load)
    until("requests are answered", lambda: load.answered() > 500)
    return names, load, env, gateway


def nobody_is_fenced(lease):
    def run(binary):
        with Fleet(binary) as fleet:
            names, load, env, _ = started(fleet, lease, rate=100)
            end = threading.Event()
            threading.Timer(MINUTES * 60, end.set).start()
            busiest = 0
            while not end.wait(5):
                busiest = max(busiest, os.getloadavg()[0])
                for name in names:  # who is fenced exits
                    assert fleet.process(name).popen.poll() is None, fleet.process(name).tail()
            verdict = judge(load.finish(), env["RINGHOLD_LEDGER"], Faults())
            print(f"# lease {lease:g} s, {MINUTES:g} minutes, load of the machine up to {busiest:.0f}")
            print(f"# {verdict.words()}")
            verdict.must_be_clean()

    run.__name__ = f"nobody_is_fenced_at_lease_{lease:g}_s"
    return run


def kills_at_lease(lease):
    def run(binary):
        with Fleet(binary) as fleet:
            # One request of an id is under way at any time, or it was just answered.
            names, load, env, gateway = started(fleet, lease, clients=IDS, each=True)
            probe = Resp(gateway)
            faults = Faults()
            killings = []
            for i in range(KILLS):
                victim = names.pop(0)
                killings.append(killed(fleet, probe, victim, faults))
                until(f"{victim} is replaced", lambda: victim not in {
                    n["node"] for n in fleet.status()["nodes"] if n["vnodes"] > 0})  # fmt: skip
                fleet.tell("node", "remove", victim)
                names.append(f"n{i + 5}")
                fleet.node(names[-1], ["--actor", "ledger"], env)
                fleet.settled(names)
            requests = load.finish()
            times = []
            answers = collections.defaultdict(list)
            for r in requests:
                if r.code == "OK":
                    answers[r.id].append(r)
            for begin, dead, mine in killings:
                for i in mine:
                    # What was asked before may have been answered by the one that died.
                    after = [r.answered_ns for r in answers[f"p{i}"] if r.sent_ns > dead]
                    assert after, f"p{i} never answered again"
                    times.append((min(after) - begin) / 1e9)
            verdict = judge(requests, env["RINGHOLD_LEDGER"], faults)
            print(
                f"# lease {lease:g} s, {KILLS} kills, {len(times)} ids: answered again after p50 "
                f"{share(times, 0.5):.2f} p99 {share(times, 0.99):.2f} max {max(times):.2f} s; "
                f"goal p99 <= {lease + 0.7:.1f} s"
            )
            print(f"# {verdict.words()}")
            verdict.must_be_clean()

    run.__name__ = f"its_ids_answer_again_at_lease_{lease:g}_s"
    return run


main([(nobody_is_fenced if MINUTES else kills_at_lease)(lease) for lease in LEASES])
