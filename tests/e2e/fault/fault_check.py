#!/usr/bin/env python3
"""`ringhold check` finds what was planted, `ringhold fix --yes` repairs it.

Needs a build with INJECT=1: each fault is one from which no process recovers
by itself.
"""
import json
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until


class Faults(Fleet):
    """Each process looks for its faults in files of its name."""

    def env(self, name):
        return {
            "RINGHOLD_INJECT_FILE": self.data(f"{name}.fault"),
            "RINGHOLD_INJECT_LOSE": self.data(f"{name}.lose"),
        }

    def write(self, file, text):
        path = self.data(file)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def plant(self, name, fault):
        self.write(f"{name}.fault", fault)
        until(f"{name} takes {fault}", lambda: not os.path.exists(self.data(f"{name}.fault")))

    def check(self, settle_ms=2500):
        code, out, err = self.run(
            "check", "-o", "json", "--coordinators", self.addresses, "--settle-ms", str(settle_ms)
        )
        assert code in (0, 2), (code, out, err)
        return [(f["check"], f["subject"]) for f in json.loads(out)["findings"]]

    def passes(self):
        """Nothing is wrong, or not for long."""
        found = self.check(10000)
        assert found == [], found

    def fix(self, *words):
        code, out, err = self.run(
            "fix", "--coordinators", self.addresses, "--settle-ms", "2500", *words
        )
        print("\n".join("# " + line for line in out.splitlines()), flush=True)
        assert not err, err
        return code, out


def a_gateway_with_a_broken_ring_fetches_another(binary):
    with Faults(binary) as fleet:
        fleet.coordinators(3)
        for name in ("n1", "n2"):
            fleet.node(name)
        fleet.settled(["n1", "n2"])
        gateway = fleet.gateway("g1", env=fleet.env("g1"))
        redis = Resp(gateway.resp)
        assert [redis("INCR", f"k{i}") for i in range(200)] == [1] * 200
        fleet.passes()
        fleet.plant("g1", "spoil-ring")
        assert fleet.check() == [("configuration", "gateway g1")]
        code, out = fleet.fix("--dry-run")
        assert code == 0 and "would    g1 fetches the whole" in out, out
        assert fleet.check() == [("configuration", "gateway g1")], "a dry run did something"
        code, out = fleet.fix("--yes")
        assert code == 0 and "done     g1 fetches the whole" in out, out
        fleet.passes()
        assert [redis("INCR", f"k{i}") for i in range(200)] == [2] * 200


def an_actor_outside_its_nodes_vnodes_is_stopped(binary):
    with Faults(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            fleet.node(name, env=fleet.env(name))
        fleet.settled(["n1", "n2"])
        redis = Resp(fleet.gateway("g1").resp)
        assert [redis("INCR", f"k{i}") for i in range(200)] == [1] * 200
        fleet.plant("n1", "stray")
        found = fleet.check()
        assert ("actors", "node n1") in found and len(found) == 2, found  # it lives twice, too
        code, out = fleet.fix()
        assert code == 2 and "nothing was done" in out, out
        code, out = fleet.fix("--yes", "--reason", "two of one")
        assert code == 0 and "done     n1 stops the actors" in out, out
        notes = [e for e in fleet.ask("events") if e["command"] == "fix"]
        assert [(e["subject"], e["reason"]) for e in notes] == [("node n1", "two of one")], notes
        assert "@" in notes[0]["by"], notes
        assert [redis("INCR", f"k{i}") for i in range(200)] == [2] * 200


def a_node_that_never_heard_the_outcome_is_told(binary):
    with Faults(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1", env=fleet.env("n1"))
        fleet.settled(["n1"])
        redis = Resp(fleet.gateway("g1").resp)
        for i in range(500):
            redis("INCR", f"k{i}")
        fleet.write("n1.lose", "cancel-received\npoll-sent\n")
        target = fleet.node("n2", env={"RINGHOLD_INJECT": "state-received"}, ready=False)
        target.wait()
        until("its moves are given up", lambda: not fleet.status()["pending"])
        found = until("n1 holds", lambda: [f for f in fleet.check() if f[0] == "holds"])
        assert found == [("holds", "node n1")] * len(found), found
        code, out = fleet.fix("--yes")
        assert code == 0, out
        assert "done     n1 is told again the outcome" in out and "n2, dead and empty, is removed" in out, out
        gone = [e for e in fleet.ask("events") if e["command"] == "remove"]
        assert gone and "@" in gone[0]["by"] and "node n2" in gone[0]["reason"], gone
        assert [redis("INCR", f"k{i}") for i in range(500)] == [2] * 500


main(
    [
        a_gateway_with_a_broken_ring_fetches_another,
        an_actor_outside_its_nodes_vnodes_is_stopped,
        a_node_that_never_heard_the_outcome_is_told,
    ]
)
