#!/usr/bin/env python3
"""All coordinators are stopped, and the fleet serves on.

Planned (`ringhold coordinators maintenance`): for longer than two leases no coordinator runs; each
request is answered OK, and once, and no node ever held anything back, though all of them were restarted
one after the other before that. A node that dies in that time is replaced after its extended lease, and
not before. Unplanned, with `--on-lease-loss serve`: the same,
and each node tells that it serves without a lease.

How long nobody renewed a lease is told by the nodes: by how much less is left of theirs, and by
their count of leases that ran out.
"""
import http.client
import os
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, succeeds, until
from ledger import Faults, Load, judge

LEASE = 3
LENGTHS = 2  # of leases, for which no coordinator runs
FOR = 120  # s; longer than anything here is waited for: what is over before, was taken back


class Served:
    """Three coordinators, two nodes that tell their figures, a gateway, and a load that is judged."""

    def __init__(self, fleet, extra=()):
        self.fleet = fleet
        self.env = {"RINGHOLD_LEDGER": fleet.data("journals")}
        os.mkdir(self.env["RINGHOLD_LEDGER"])
        fleet.coordinators(3, extra=["--lease", f"{LEASE}s"])
        self.pages = {name: f"127.0.0.1:{fleet.port()}" for name in ("n1", "n2")}
        for name, page in self.pages.items():
            fleet.node(name, ["--actor", "ledger", "--admin", page, *extra], self.env)
        self.gateway = fleet.gateway("g1").resp
        fleet.settled(["n1", "n2"])
        self.load = Load([self.gateway], ids=300, rate=400, patience=60)
        self.answered(500)

    def answered(self, more):
        before = self.load.answered()
        until("requests are answered", lambda: self.load.answered() > before + more)

    def figure(self, node, name):
        host, port = self.pages[node].rsplit(":", 1)
        page = http.client.HTTPConnection(host, int(port), timeout=10)
        page.request("GET", "/metrics")
        lines = page.getresponse().read().decode().splitlines()
        page.close()
        return next(float(line.split()[-1]) for line in lines if line.startswith(name))

    def left(self):
        return {n: self.figure(n, "ringhold_node_lease_margin_seconds") for n in self.pages}

    def stop_coordinators(self, number):
        for i in self.fleet.ports:
            self.fleet.process(f"c{i}").kill(number)
        for i in self.fleet.ports:
            self.fleet.process(f"c{i}").wait()

    def start_coordinators(self):
        for p in [self.fleet.coordinator(i, extra=["--lease", f"{LEASE}s"], ready=False) for i in self.fleet.ports]:
            p.wait_ready()

    def restart_coordinators_in_turn(self):
        for i in self.fleet.ports:
            self.fleet.process(f"c{i}").kill(signal.SIGTERM)
            self.fleet.process(f"c{i}").wait()
            self.fleet.coordinator(i, extra=["--lease", f"{LEASE}s"], ready=False).wait_ready()
            until("all coordinators are linked", self.all_are_linked)

    def all_are_linked(self):
        rows = self.fleet.ask("coordinators", "list")
        return len(rows) == len(self.fleet.ports) and all(r["linked"] == "yes" for r in rows)

    def must_never_have_paused(self):
        for n in self.pages:
            assert self.figure(n, "ringhold_node_lease_gated_total") == 0, n
            assert self.figure(n, "ringhold_node_leaseless_total") == 0, n
            assert not self.fleet.process(n).log_has("lease_soft"), n

    def verdict(self):
        verdict = judge(self.load.finish(), self.env["RINGHOLD_LEDGER"], Faults())
        print(f"# {verdict.words()}")
        verdict.must_be_clean()
        assert set(verdict.codes) == {"OK"}, verdict.codes


def stopped_as_planned(binary, number):
    with Fleet(binary) as fleet:
        served = Served(fleet)
        answer = fleet.ask("coordinators", "maintenance", "--for", f"{FOR}s", "--reason", "new kernel")
        assert {n["node"]: n["extended"] for n in answer["nodes"]} == {"n1": "yes", "n2": "yes"}, answer
        assert answer["longest_ms"] > FOR * 1000 and answer["takeover_ms"] > answer["longest_ms"]
        status = fleet.status()
        assert status["longest_ms"] == answer["longest_ms"] and status["lease_ms"] == LEASE * 1000
        # Who leads now did not extend them, and leaves them.
        served.restart_coordinators_in_turn()
        fleet.settled(["n1", "n2"])
        status = fleet.status()
        assert status["longest_ms"] == answer["longest_ms"], status
        assert status["extended_nodes"] == 2 and status["extended_ms"] > LENGTHS * LEASE * 1000, status
        served.stop_coordinators(number)
        before = served.left()
        assert min(before.values()) > (LENGTHS + 1) * LEASE, before
        until(
            f"no lease was renewed for {LENGTHS} of them",
            lambda: all(before[n] - left > LENGTHS * LEASE for n, left in served.left().items()),
        )
        served.answered(500)
        served.start_coordinators()
        fleet.settled(["n1", "n2"])
        told = [e for e in fleet.ask("events", "--limit", "200") if e["command"] == "lease" and e["reason"]]
        assert [e["reason"] for e in told] == ["new kernel"], told
        served.answered(500)
        served.verdict()
        served.must_never_have_paused()
        assert fleet.status()["extended_nodes"] == 2
        ended = fleet.ask("coordinators", "maintenance", "--end")
        assert ended["longest_ms"] == LEASE * 1000 and ended["for_ms"] == 0, ended
        assert {n["extended"] for n in ended["nodes"]} == {"no"}, ended
        assert fleet.status()["longest_ms"] == LEASE * 1000 and fleet.status()["extended_nodes"] == 0
        assert max(served.left().values()) <= LEASE, served.left()
        served.must_never_have_paused()


def coordinators_that_are_stopped_as_planned_are_not_missed(binary):
    stopped_as_planned(binary, signal.SIGTERM)


def nor_are_those_that_are_killed_then(binary):
    stopped_as_planned(binary, signal.SIGKILL)


def who_dies_meanwhile_is_replaced_after_its_extended_lease(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3, extra=["--lease", f"{LEASE}s"])
        for name in ("n1", "n2"):
            fleet.node(name)
        redis = Resp(fleet.gateway("g1").resp)
        fleet.settled(["n1", "n2"])
        takeover_ms = fleet.ask("coordinators", "maintenance", "--for", "5s")["takeover_ms"]
        assert takeover_ms > 5000 + LEASE * 1000
        fleet.process("n2").kill()

        def row(name):
            return next((n for n in fleet.ask("node", "list") if n["node"] == name), None)

        # By its leader's count more than a lease of its own is left: nobody else may have its ids.
        until("n2 is suspect", lambda: row("n2")["state"] == "suspect")
        assert row("n2")["lease_ms_left"] > 2 * LEASE * 1000, row("n2")
        fleet.settled(["n1"])
        for i in range(100):
            until("each id answers", lambda key=f"k{i}": succeeds(redis, "INCR", key))
        lowered = until("the long leases are forgotten", lambda: fleet.status()["longest_ms"] == LEASE * 1000)
        assert lowered and fleet.leader().running


def a_time_that_is_too_long_is_refused(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--lease", "200s"])
        fleet.node("n1")
        fleet.settled(["n1"])
        words = ["coordinators", "maintenance", "--coordinators", fleet.addresses]
        code, _, error = fleet.run(*words, "--for", "121s")
        assert code == 1 and "from 1000ms to 120s" in error, error
        code, _, error = fleet.run(*words, "--for", "120s")
        assert code == 1 and "longer than 300 s" in error, error
        assert fleet.status()["longest_ms"] == 200000


def nodes_that_are_told_to_serve_need_no_coordinators(binary):
    with Fleet(binary) as fleet:
        served = Served(fleet, ["--on-lease-loss", "serve"])
        served.stop_coordinators(signal.SIGKILL)
        until(
            "each node's lease is over",
            lambda: all(served.figure(n, "ringhold_node_lease_lapses_total") == 1 for n in served.pages),
        )
        served.answered(1000)
        assert all(fleet.process(n).log_has("serving_without_lease") for n in served.pages)
        served.start_coordinators()
        fleet.settled(["n1", "n2"])
        until("they have leases again", lambda: min(served.left().values()) > 0)
        served.answered(500)
        served.verdict()
        served.must_never_have_paused()


main(
    [
        coordinators_that_are_stopped_as_planned_are_not_missed,
        nor_are_those_that_are_killed_then,
        who_dies_meanwhile_is_replaced_after_its_extended_lease,
        a_time_that_is_too_long_is_refused,
        nodes_that_are_told_to_serve_need_no_coordinators,
    ]
)
