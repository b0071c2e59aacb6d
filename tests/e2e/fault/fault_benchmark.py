#!/usr/bin/env python3
"""The unmodified redis-benchmark while a node joins and another drains: no error, and every INCR is
counted exactly once.

Alone: a million requests take all there is of a small machine.
"""
import os
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main

REQUESTS = int(os.environ.get("REQUESTS", "1000000"))
KEYS = 100000


def every_incr_counts_once_while_nodes_come_and_go(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        for name in ("n1", "n2", "n3"):
            fleet.node(name)
        fleet.settled(["n1", "n2", "n3"])
        host, port = fleet.gateway("g1").resp
        words = ["redis-benchmark", "-h", host, "-p", str(port), "-t", "set,get,incr", "-P", "16"]
        words += ["-r", str(KEYS), "-n", str(REQUESTS), "--csv"]
        bench = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        names = ["n1", "n2", "n3"]
        rounds = 0
        # One node more, one node less, as long as it runs; the machine has few cores, so what was
        # drained ends.
        while bench.poll() is None:
            names.append(f"n{len(names) + 1}")
            fleet.node(names[-1])
            fleet.settled(deadline=120)
            leaving = fleet.process(names[rounds])
            fleet.tell("node", "drain", leaving.name, "--wait", "120")
            assert leaving.kill(15).wait() == 0, leaving.tail()
            rounds += 1
        out = bench.stdout.read()
        assert bench.returncode == 0, out
        rows = [line for line in out.splitlines() if line.startswith('"')]
        assert [r.split(",")[0] for r in rows[1:]] == ['"SET"', '"GET"', '"INCR"'], out
        assert "rror" not in out, out
        assert rounds >= 1
        redis = Resp((host, port))
        keys = [f"counter:{i:012d}" for i in range(KEYS)]
        total = 0
        for at in range(0, KEYS, 1000):
            part = keys[at : at + 1000]
            redis.send(*[("GET", k) for k in part])
            total += sum(int(redis.read() or 0) for _ in part)
        assert total == REQUESTS, f"{total} counted of {REQUESTS}"
        print(f"# {rounds} joins and drains meanwhile; " + "; ".join(rows[1:]))


main([every_incr_counts_once_while_nodes_come_and_go])
