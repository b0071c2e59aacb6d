#!/usr/bin/env python3
"""kill -9 of every role at every step of a change, under load, 200 times and more.

One fleet lives through all of a case: its coordinators and gateways die, or its nodes. Each round
a file names a step ("prepare-sent"); the first process of that role that comes there dies of
kill -9 and is started again. Meanwhile the ring changes all the time and clients go on. The ledger
judges at the end. With a second argument: the case whose name has it.

SHORT=1: once at each step.
"""
import os
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main, nothing_held, until
from ledger import Faults, Load, judge

KILLS = {"c": 9, "n": 1, "g": 12}  # a node that came back may take part after 10 s (hole 57)
if os.environ.get("SHORT"):
    KILLS = dict.fromkeys(KILLS, 1)

COORDINATOR = [
    "begin-applied", "prepare-sent", "prepare-sent:2", "prepared-received", "prepared-received:2",
    "commit-proposing", "commit-proposed", "commit-applied", "commit-sent", "commit-sent:3",
    "desire-applied", "renew-received:3", "grant-sent:2", "get_config-received",
]  # fmt: skip
NODE = [
    "prepare-received", "prepare-received:2", "prepared-sent", "prepared-sent:2", "state-sent",
    "state-sent:20", "state-received", "state-received:20", "state_ack-sent", "state_ack-received",
    "commit-received", "commit-received:2", "renew-sent", "grant-received", "request-received:500",
    "answer-sent:500",
]  # fmt: skip
GATEWAY = [
    "request-sent:300", "answer-received:300", "commit-received", "config-received", "get_config-sent",
]  # fmt: skip


class Field:
    """A fleet whose processes die when told, and are started again."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.faults = Faults()
        self.drained = False
        self.kills = 0
        self.arm = {role: os.path.join(fleet.folder, "arm-" + role) for role in "cng"}
        ledger = os.path.join(fleet.folder, "journals")
        os.mkdir(ledger)
        self.env = {
            role: {"RINGHOLD_INJECT_FILE": path, "RINGHOLD_LEDGER": ledger}
            for role, path in self.arm.items()
        }
        fleet.coordinators(3, env=self.env["c"])
        for name in ("n1", "n2", "n3", "n4"):
            self.start_node(name)
        self.resp = {}
        for name in ("g1", "g2"):
            self.start_gateway(name)
        fleet.settled(["n1", "n2", "n3", "n4"])
        self.load = Load(self.resp.values(), ids=600, rate=800, slow_ms=30, patience=60)
        self.ledger = ledger

    def start_node(self, name):
        self.fleet.node(name, ["--actor", "ledger"], self.env["n"])

    def start_gateway(self, name):
        # The same port again: its clients come back.
        port = self.resp[name][1] if name in self.resp else self.fleet.port()
        self.resp[name] = self.fleet.gateway(name, env=self.env["g"], port=port).resp

    def change(self):
        """Ask for a change of the ring: n4 out, n4 in, …"""
        words = ["cancel"] if self.drained else []
        try:
            self.fleet.tell("node", "drain", "n4", *words)
            self.drained = not self.drained
        except AssertionError:
            pass  # whoever was asked died of it: asked again in the next round

    def dead_of(self, role):
        latest = {p.name: p for p in self.fleet.processes}
        return [p for p in latest.values() if p.name[0] == role and not p.running]

    def disarm(self, role):
        """False: somebody has just come there, and dies."""
        try:
            os.unlink(self.arm[role])
            return True
        except FileNotFoundError:
            return False

    def kill_at(self, role, point):
        with open(self.arm[role] + ".new", "w") as f:
            f.write(point)
        os.rename(self.arm[role] + ".new", self.arm[role])
        self.change()
        end = time.monotonic() + 30
        again = time.monotonic() + 4
        while not self.dead_of(role):
            if time.monotonic() > again:
                self.change()
                again += 4
            if time.monotonic() > end and self.disarm(role):
                return False
            time.sleep(0.02)
        for process in self.dead_of(role):
            assert process.log_has("killing myself"), f"{process.name} ended: {process.tail()}"
            self.faults.killed(process)
            self.kills += 1
            if role == "c":
                self.fleet.coordinator(int(process.name[1:]), self.env["c"])
            elif role == "n":
                self.start_node(process.name)
            else:
                self.start_gateway(process.name)
        return True


def die_at_every_step(binary, roles):
    with Fleet(binary) as fleet:
        field = Field(fleet)
        missed = []
        for role, what, points in roles:
            for point in points:
                begin = time.monotonic()
                kills = sum(field.kill_at(role, point) for _ in range(KILLS[role]))
                fleet.settled(deadline=90)
                spent = time.monotonic() - begin
                print(f"# {what:<12} {point:<22} {kills} kills, settled again, {spent:.1f} s", flush=True)
                if kills < KILLS[role]:
                    missed.append(point)
        before = field.load.answered()
        until("requests are answered", lambda: field.load.answered() > before + 200)
        requests = field.load.finish()
        verdict = judge(requests, field.ledger, field.faults)
        print(f"# {field.kills} kills; {verdict.words()}")
        fleet.settled(deadline=90)
        nothing_held(fleet)
        txns = fleet.ask("txn", "list", "--limit", "1000")
        assert txns and all(t["state"] in ("committed", "aborted") for t in txns), txns
        assert not missed, f"never reached: {missed}"
        verdict.must_be_clean()


def coordinators_and_gateways_die_at_every_step(binary):
    die_at_every_step(binary, [("c", "coordinator", COORDINATOR), ("g", "gateway", GATEWAY)])


def nodes_die_at_every_step(binary):
    die_at_every_step(binary, [("n", "node", NODE)])


main([coordinators_and_gateways_die_at_every_step, nodes_die_at_every_step])
