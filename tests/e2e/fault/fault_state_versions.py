#!/usr/bin/env python3
"""A deploy that changes an actor's state, node by node and under load: forth, and back again.

Three builds of one actor (tests/plugins/tally.c): the old one, the next one, whose states no old one reads, and a bridge
that writes as the old one does and reads both. Clients count: each answer is the one before and one more, so that a
message that was lost or ran twice shows, and so does a state that was lost or misread. Others are asked once at the beginning
and once at the end: they sleep on the state that came with their last move.
"""
import os
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, flat, healthy, main, until
from rounds import Rounds

NAMES = ["n1", "n2", "n3"]
OLD, BRIDGE, NEXT = "tally", "tally_bridge", "tally_next"


class Counter(Rounds):
    """Asks some ids in turn, by one client."""

    def __init__(self, address, prefix):
        super().__init__(address, [f"{prefix}{i}" for i in range(80)])

    def ask(self):
        self.redis.send(*[("CALL", name, "") for name in self.ids])
        answers = [int(self.redis.read()) for _ in self.ids]
        self.rounds += 1
        wrong = [(n, a) for n, a in zip(self.ids, answers) if a != self.rounds]
        assert not wrong, f"round {self.rounds}: {wrong[:3]}"


class Deploy:
    """A fleet that is under load from its beginning."""

    def __init__(self, fleet, build):
        self.fleet = fleet
        fleet.coordinators(3)
        for name in NAMES:
            self.start(name, build)
        self.gateways = [fleet.gateway(f"g{i}", ["--deadline-ms", "60000"]) for i in (1, 2)]
        fleet.settled(NAMES)
        self.sleepers = [f"sleeper-{i}" for i in range(200)]
        assert self.wake() == {"1"}
        self.loads = [Counter(g.resp, f"{p}-") for g in self.gateways for p in (g.name + "a", g.name + "b")]
        for load in self.loads:
            load.start()
        self.turn()

    def start(self, name, build):
        plugin = os.path.join(os.path.dirname(os.path.abspath(self.fleet.binary)), "tests", "plugins", build + ".so")
        self.fleet.node(name, ["--actor", plugin])

    def restart(self, name, build):
        old = self.fleet.process(name)
        assert old.kill(signal.SIGTERM).wait() == 0, old.tail()
        self.start(name, build)

    def roll(self, build):
        for name in NAMES:
            self.restart(name, build)
            self.fleet.settled(NAMES)
            self.turn()

    def turn(self):
        """Everybody was asked once more."""
        before = [load.rounds for load in self.loads]
        until(
            "a round of each",
            lambda: all(now.failed or now.rounds > then + 1 for now, then in zip(self.loads, before)),
        )

    def wake(self):
        """What those say that nobody asks."""
        redis = Resp(self.gateways[0].resp, timeout=120)
        return {redis("CALL", name, "") for name in self.sleepers}

    def vnodes(self):
        return {n["node"]: n["vnodes"] for n in self.fleet.status()["nodes"]}

    def unread(self):
        """(who can't read, whose states, the drain that waits for it, in words)"""
        rows = self.fleet.status()["obstacles"]
        return [(r["node"], r["other"], r["drains"], r["text"]) for r in rows if r["reason"] == "unread"]

    def end(self):
        counts = [load.done() for load in self.loads]
        assert self.wake() == {"2"}
        healthy(self.fleet)
        for name in NAMES:
            assert not self.fleet.process(name).log_has("a state of another version")
        print(f"# requests: {sum(counts)}, lost 0, doubled 0")


def a_new_version_comes_node_by_node(binary):
    with Fleet(binary) as fleet:
        deploy = Deploy(fleet, OLD)
        deploy.roll(NEXT)
        assert not deploy.unread()
        deploy.end()


def an_old_build_gets_nothing_that_it_cannot_read(binary):
    with Fleet(binary) as fleet:
        deploy = Deploy(fleet, NEXT)
        # Back at once does not work: the old build stays without vnodes, and `status` says why.
        deploy.restart("n1", OLD)
        (row,) = until("it is said", deploy.unread)
        assert row[0] == "n1" and row[1] in ("n2", "n3") and row[2] == "", row
        assert f"{row[1]} hands over version 2 of the states of kind 0 'tally', and n1 reads only 1" in row[3], row
        assert row[3] in flat(fleet.tell("status"))
        # A drain goes to whoever can read.
        fleet.tell("node", "drain", "n2", "--wait", "60")
        assert deploy.vnodes()["n1"] == deploy.vnodes()["n2"] == 0 < deploy.vnodes()["n3"]
        # The last one that can't give what it has keeps it.
        fleet.tell("node", "drain", "n3")
        rows = until("the drain is said to wait", lambda: [r for r in deploy.unread() if r[2] == "n3"])
        assert rows[0][:2] == ("n1", "n3"), rows
        deploy.turn()
        assert deploy.vnodes()["n1"] == 0 < deploy.vnodes()["n3"], deploy.vnodes()
        # What an operator wishes is told, too, and not done.
        fleet.tell("node", "drain", "n3", "cancel")
        fleet.tell("pin", f"0/{deploy.loads[0].ids[0]}", "n1")
        until("the pin is said to wait", lambda: [r for r in deploy.unread() if r[1] == "n3"])
        deploy.turn()
        fleet.tell("unpin", f"0/{deploy.loads[0].ids[0]}")
        fleet.tell("node", "drain", "n2", "cancel")
        deploy.restart("n1", NEXT)
        fleet.settled(NAMES)
        assert not deploy.unread()
        deploy.end()


def a_bridge_leads_back(binary):
    with Fleet(binary) as fleet:
        deploy = Deploy(fleet, NEXT)
        deploy.roll(BRIDGE)
        deploy.roll(OLD)
        assert not deploy.unread()
        deploy.end()


main(
    [
        a_new_version_comes_node_by_node,
        an_old_build_gets_nothing_that_it_cannot_read,
        a_bridge_leads_back,
    ]
)
