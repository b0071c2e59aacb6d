#!/usr/bin/env python3
"""A fleet goes from one version to the next under load, and a step back: nothing lost.

The next version is a build of NEXT=1: one ahead in the protocol of links and in the fleet's format.
Coordinators, nodes and gateways are replaced one by one, so that each version talks with the other;
a part goes back, as it may until the upgrade is finished; then all are new, an operator finishes
it, and who is older is refused: a node, a gateway, a coordinator on its own folder. The judge reads
the journals of all processes.
"""
import os
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, healthy, main, until
from ledger import Load, judge

NODES = ["n1", "n2", "n3"]
GATEWAYS = ["g1", "g2"]
NEXT = "build/gcc-next/ringhold"
TODAY = 4  # the newest format that the older one reads: a new fleet begins with it
LINKS_NEXT = 6  # the newest protocol of links that the next one speaks


class Mixed(Fleet):
    """Each process is of the version that `newer` says."""

    def __init__(self, binary):
        super().__init__(binary)
        self.newer = set()
        self.next = os.path.abspath(NEXT)
        self.journals = self.data("journals")
        os.mkdir(self.journals)
        self.listens = {}

    def start(self, name, words, env=None, ready=True, program=None):
        program = program or (self.next if name in self.newer else self.binary)
        return super().start(name, words, env, ready, program)

    def begin(self, name, ready=True):
        if name[0] == "c":
            return self.coordinator(int(name[1:]), ready=ready)
        if name[0] == "n":
            env = {"RINGHOLD_LEDGER": self.journals}
            return self.node(name, ["--actor", "ledger"], env, ready)
        return self.gateway(name, port=self.listens.setdefault(name, self.port()))

    def replace(self, name, newer):
        """Stop it, start the other version in its place, and wait until all is well."""
        process = self.process(name)
        code = process.kill(signal.SIGTERM).wait()
        assert code == 0, f"{name} ended with {code}: {process.tail()}"
        (self.newer.add if newer else self.newer.discard)(name)
        self.begin(name)
        until(f"{name} is linked", lambda: self.build_of(name))
        self.settled(NODES)

    def builds(self):
        return self.ask("upgrade")

    def build_of(self, name):
        wanted = ("coordinator", name[1:]) if name[0] == "c" else ({"n": "node", "g": "gateway"}[name[0]], name)
        for b in self.builds()["builds"]:
            if (b["process"], b["name"]) == wanted and b["version"] != "not linked":
                ahead = b["version"].endswith("+next")
                return b if ahead == (name in self.newer) else None
        return None

    def refused(self, name, why):
        """One of the older version is refused, says so, and goes."""
        process = self.begin(name, ready=False) if name[0] != "g" else None
        if process is None:
            words = ["gateway", "--name", name, "--cluster", self.cluster, "--join", self.addresses]
            process = self.start(name, words + ["--resp", "127.0.0.1:0"], ready=False)
        until(f"{name} is told why not", lambda: process.log_has(why))
        process.kill(signal.SIGKILL).wait()

    def events(self, command):
        return [e for e in self.ask("events", "--limit", "1000") if e["command"] == command]


def start_all(fleet):
    fleet.coordinators(3)
    for name in NODES + GATEWAYS:
        fleet.begin(name)
    fleet.settled(NODES)


def versions_are_mixed_then_the_older_is_refused(binary):
    with Mixed(binary) as fleet:
        start_all(fleet)
        assert fleet.builds()["why"].startswith("no process here reads a newer format"), fleet.builds()
        gateways = [fleet.process(g).resp for g in GATEWAYS]
        load = Load(gateways, ids=300, clients=6, rate=800, patience=60)
        until("requests are answered", lambda: load.answered() > 500)
        # The first of each, so that in each role both versions are at work together; one goes back.
        for name in ["c1", "n1", "g1"]:
            fleet.replace(name, newer=True)
        assert fleet.process("n1").log_has("link mixed"), "both versions are linked, and nobody says so"
        b = fleet.builds()
        assert b["format"] == TODAY and b["format_next"] == 0, b
        code, out, err = fleet.run("upgrade", "--finish", "--coordinators", fleet.addresses)
        assert code != 0 and ("upgrade it" in err or "reads a newer" in err), (code, out, err)
        for name in ["n1", "c1"]:
            fleet.replace(name, newer=False)
        for name in ["c1", "c2", "c3", "n1", "n2", "n3", "g2"]:
            fleet.replace(name, newer=True)
        # A restored file of before the upgrade must not be needed: nothing new was written so far.
        assert not fleet.events("upgrade") and not fleet.events("ahead")
        b = until("all may rise", lambda: (b := fleet.builds())["format_next"] == TODAY + 1 and b)
        assert all(x["link_protocol"] == LINKS_NEXT for x in b["builds"]), b
        out = fleet.tell("upgrade", "--finish")
        assert f"format is {TODAY + 1}" in out, out
        until("the new command came", lambda: fleet.events("ahead"))
        # Every coordinator has marked its folder, so the older version starts on none.
        for name in ["c1", "c2", "c3"]:
            until(f"{name} knows", lambda n=name: fleet.process(n).log_has(f"fleet_format format={TODAY + 1}"))
        victim = next(c for c in ["c1", "c2", "c3"] if fleet.process(c) is not fleet.leader())
        fleet.process(victim).kill(signal.SIGTERM).wait()
        fleet.newer.discard(victim)
        old = fleet.begin(victim, ready=False)
        assert old.wait() == 1, "an older coordinator runs on a newer folder"
        assert old.log_has(f"the fleet's format is {TODAY + 1} there, and this version reads 1..{TODAY}"), old.tail()
        fleet.newer.add(victim)
        fleet.begin(victim)  # nothing was touched
        until(f"{victim} is back", lambda: fleet.build_of(victim))
        fleet.refused("n4", f"the fleet's format is {TODAY + 1}, node n4 reads 1..{TODAY}: give it a newer version")
        fleet.refused("g3", f"the fleet's format is {TODAY + 1}, gateway g3 reads 1..{TODAY}: give it a newer version")
        fleet.settled(NODES)
        requests = load.finish()
        healthy(fleet)
        verdict = judge(requests, fleet.journals)
        print(f"# {verdict.words()}")
        verdict.must_be_clean()
        # What was on the way to a gateway when it closed: its client can't know, the judge does.
        assert set(verdict.codes) <= {"OK", "CUT"}, verdict.codes


main([versions_are_mixed_then_the_older_is_refused])
