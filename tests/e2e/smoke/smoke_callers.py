#!/usr/bin/env python3
"""Actors of a brief kind call one another, on one node and on two: all are answered, and no worker thread is woken for it."""
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, pairs

CALLS = 4000


def plugin(fleet):
    return ["--actor", os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "caller_brief.so")]


def slept(pid):
    """How often threads of the process went to sleep, but for the first, which serves the links."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        if thread != str(pid):
            with open(f"/proc/{pid}/task/{thread}/status") as f:
                count += sum(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches"))
    return count


def calls_of_a_brief_kind_wake_no_worker(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        nodes = [fleet.node(name, plugin(fleet)) for name in ("n1", "n2")]
        redis = Resp(fleet.gateway("g1", ["--deadline-ms", "60000"]).resp)
        fleet.settled(["n1", "n2"])
        home = {f"a{i}": pairs(redis("WHERE", f"a{i}"))["node"] for i in range(100)}
        caller, *near = [name for name in home if home[name] == "n1"][:9]
        far = [name for name in home if home[name] == "n2"][:8]
        redis("CALL", caller, f"100 1 {' '.join(near + far)}")  # alive, links up
        for names in (near, far):
            for depth in (1, 8):
                before = sum(slept(node.popen.pid) for node in nodes)
                rate, p50, p99 = redis("CALL", caller, f"{CALLS} {depth} {' '.join(names)}").split()
                assert float(rate) > 0 and float(p50) <= float(p99), (rate, p50, p99)
                woken = sum(slept(node.popen.pid) for node in nodes) - before
                assert woken < CALLS / 4 / depth, f"{woken} wake-ups for {CALLS} calls, {depth} at a time"


main([calls_of_a_brief_kind_wake_no_worker])
