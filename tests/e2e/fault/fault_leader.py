#!/usr/bin/env python3
"""kill -9 of the leader at each step between "BEGIN applied" and "COMMIT sent".

Each time: the transaction gets an outcome that `txn show` names, nothing stays
held, all processes end with one ring digest, and no request was lost.
"""
import os
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, nothing_held, until

POINTS = [
    "begin-applied",
    "prepare-sent",
    "prepare-sent:2",
    "vote-received",
    "vote-received:2",
    "commit-proposing",
    "commit-proposed",
    "commit-applied",
    "commit-sent",
    "commit-sent:2",
]


class Load(threading.Thread):
    """Increments keys one after another and remembers what each must be."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.redis = Resp(address)
        self.counts = {}
        self.stop = False
        self.error = None

    def run(self):
        try:
            i = 0
            while not self.stop:
                key = f"k{i % 400}"
                i += 1
                self.counts[key] = self.counts.get(key, 0) + 1
                answer = self.redis("INCR", key)
                assert answer == self.counts[key], (key, answer, self.counts[key])
        except Exception as error:  # told by the test
            self.error = error

    def finish(self):
        self.stop = True
        self.join(60)
        assert self.error is None, repr(self.error)
        assert not self.is_alive(), "a request was never answered"


def kill_at(binary, point):
    with Fleet(binary) as fleet:
        once = os.path.join(fleet.folder, "died")
        fleet.coordinators(3, env={"RINGHOLD_INJECT": point, "RINGHOLD_INJECT_ONCE": once})
        fleet.node("n1")
        fleet.settled(["n1"])
        load = Load(fleet.gateway("g1").resp)
        load.start()
        fleet.node("n2")
        dead = until(
            f"a leader dies at {point}",
            lambda: [p for p in fleet.processes if p.name[0] == "c" and not p.running],
        )[0]
        assert dead.log_has(f"killing myself at {point}")
        fleet.settled(["n1", "n2"])
        nothing_held(fleet)
        fleet.coordinator(int(dead.name[1:]))
        until(
            "the dead one is back",
            lambda: all(c["role"] != "unreachable" for c in fleet.status()["coordinators"]),
        )
        load.finish()
        status = fleet.settled(["n1", "n2"])
        txns = fleet.ask("txn", "list", "--limit", "200")
        assert txns and all(t["state"] in ("committed", "aborted") for t in txns), txns
        for t in txns:
            shown = fleet.ask("txn", "show", str(t["txn"]))
            assert shown["state"] == t["state"] and (shown["outcome"] or shown["state"] == "committed")
        digests = {p["digest"] for p in status["nodes"] + status["gateways"]} | {status["digest"]}
        assert len(digests) == 1, digests


def case(point):
    def run(binary):
        kill_at(binary, point)

    run.__name__ = "leader_killed_at_" + point.replace("-", "_").replace(":", "_time_")
    return run


main([case(point) for point in POINTS])
