#!/usr/bin/env python3
"""Nodes whose clocks run at other rates (libfaketime) serve, keep their leases, and lose nothing in a planned change.

What a slow clock could break, two owners of one actor, is shown by the simulator, whose nodes all have clocks of
their own rate (M_DRIFT).
"""
import glob

from fleet import Fleet, Resp, main, until

RATES = {"n1": "0.95", "n2": "1.05", "n3": "1.0"}
KEYS = 200


def clocks_of_other_rates_lose_nothing(binary):
    (library,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    with Fleet(binary) as fleet:
        fleet.coordinators(3, extra=["--lease", "2s", "--election-ms", "300"])
        for name, rate in RATES.items():
            fleet.node(name, env={"LD_PRELOAD": library, "FAKETIME": f"+0 x{rate}"})
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


def owners(fleet):
    return {n["node"] for n in fleet.status()["nodes"] if n["vnodes"] > 0}


main([clocks_of_other_rates_lose_nothing])
