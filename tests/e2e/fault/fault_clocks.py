#!/usr/bin/env python3
"""Nodes whose clocks run at other rates (libfaketime) serve, keep their leases, and lose nothing in a planned change.
Clocks that are worse than promised are told by the leader, and a slow one's lease is cut (docs/leases.md).

What a slow clock could break, two owners of one actor, is shown by the simulator, whose nodes all have clocks of
their own rate (M_DRIFT).
"""
import glob
import sys
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, flat, main, until

RATES = {"n1": "0.95", "n2": "1.05", "n3": "1.0"}
WRONG = {"n1": "1.2", "n2": "2", "n3": "1.0", "n4": "0.75"}
KEYS = 200


def clocks_of_other_rates_lose_nothing(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3, extra=["--lease", "2s", "--election-ms", "300"])
        for name, rate in RATES.items():
            fleet.node(name, env=fake(rate))
        fleet.settled(list(RATES))
        redis = Resp(fleet.gateway("g1").resp)
        rounds = 0

        def ask_all():
            nonlocal rounds
            rounds += 1
            for i in range(KEYS):
                assert redis("INCR", f"k{i}") == rounds, (i, rounds)

        for name in RATES:
            fleet.tell("node", "drain", name)
            left = [other for other in RATES if other != name]
            until("it is empty", lambda: (ask_all(), fleet.settled())[1] and owners(fleet) == set(left))
            fleet.tell("node", "drain", name, "cancel")
            until("it is back", lambda: (ask_all(), fleet.settled())[1] and owners(fleet) == set(RATES))
        print(f"# {rounds * KEYS} requests, each counted once")


def fake(rate):
    (library,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    return {"LD_PRELOAD": library, "FAKETIME": f"+0 x{rate}"}


def clocks(fleet):
    return {n["node"]: float(n["clock"].rstrip("%")) for n in fleet.ask("node", "list")}


def findings(fleet):
    return flat(fleet.run("check", "--coordinators", fleet.addresses, "--cluster", fleet.cluster)[1])


def clocks_beyond_the_promise_are_told(binary):
    """Two fleets at a time: of one the nodes' clocks are wrong, of the other the leader's."""
    with Fleet(binary) as fleet, Fleet(binary) as other:
        other.coordinators(1, env=fake("1.5"), extra=["--lease", "2s"])
        fleet.coordinators(1, extra=["--lease", "2s"])
        admin = {name: fleet.port() for name in WRONG}
        for name, rate in WRONG.items():
            fleet.node(name, ["--admin", f"127.0.0.1:{admin[name]}"], env=fake(rate))
        for name in ("n1", "n2"):
            other.node(name)
        redis = Resp(fleet.gateway("g1").resp)
        same = Resp(other.gateway("g1").resp)
        rounds = 0

        def ask_all():
            nonlocal rounds
            rounds += 1
            for i in range(KEYS):
                assert redis("INCR", f"k{i}") == rounds, (i, rounds)
                assert same("INCR", f"k{i}") == rounds, (i, rounds)

        def told():
            ask_all()
            now, there = clocks(fleet), clocks(other)
            near = all(abs(now[n] - 100 * (float(r) - 1)) < 10 for n, r in WRONG.items())
            return near and all(clock < -20 for clock in there.values())

        until("the clocks are measured", told)
        print(f"# {clocks(fleet)}; where the leader's runs 1.5 times as fast: {clocks(other)}")
        for name, rate in WRONG.items():
            assert fleet.process(name).log_has("clock_runs_away") == (rate != "1.0"), name
        # A lease that is shorter counts once the longer one before it would end sooner.
        until("n4 goes by a shorter lease", lambda: 1.3 < lease_s(admin["n4"]) < 1.7)
        assert lease_s(admin["n2"]) == 2
        said = findings(fleet)
        assert "the clock of node n4 runs" in said and "slower" in said and "clock of node n3" not in said, said
        assert "stop the leader" not in said and "stop the leader" in findings(other), (said, findings(other))
        assert "the clock of n2 runs away" in fleet.tell("status")
        fleet.tell("node", "drain", "n4")  # as it is told to do
        until("n4 is empty", lambda: (ask_all(), fleet.settled())[1] and "n4" not in owners(fleet))
        print(f"# {2 * rounds * KEYS} requests, each counted once")


def lease_s(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        return next(float(line.split()[-1]) for line in page.read().decode().splitlines()
                    if line.startswith("ringhold_node_lease_seconds"))  # fmt: skip


def owners(fleet):
    return {n["node"] for n in fleet.status()["nodes"] if n["vnodes"] > 0}


main([clocks_of_other_rates_lose_nothing, clocks_beyond_the_promise_are_told])
