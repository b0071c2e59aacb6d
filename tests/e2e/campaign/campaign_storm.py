#!/usr/bin/env python3
"""A login storm: STORM (50,000) attempts as fast as they can be made, at a gateway for a tenth of them.

It lets in CAPACITY / s (STORM / 25), and STORM / 10 at a time; each stays for 2 s and asks. Everybody else is told
when to come, and comes then. Printed: its memory, the latency of those that are in beside that without a storm, and
what it refuses a second beside a bare listener on libuv. Alone: it compares times.

The generator has cores of its own, or on one machine it takes from the gateway what it has. What is left of the
machine's share (the kernel's work for loopback, caches) is measured in the same run: PLAYERS ask at the gateway in the
storm, and as many, as often, at one beside it that nobody storms, on the same cores.
"""
import os
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from campaign import Bots, actor, cores, figures, gateway, mib, ms, peak, raise_file_limit, say, stay_on
from fleet import Fleet, free_port, main, until

STORM = int(os.environ.get("STORM", "50000"))
CAPACITY = int(os.environ.get("CAPACITY", str(max(STORM // 25, 1))))
PLAYERS = int(os.environ.get("PLAYERS", "100"))
PLAY = ("--stay", "2s", "--ask", "1s", "--check", "echo", "--sources", 16)
STEADY = ("--n", PLAYERS, "--ask", "100ms", "--check", "echo", "--prefix", "steady-")
CALM_S, STORM_S = 10, max(STORM // CAPACITY // 2, 10)


def limits(files):
    """By half as many files as there may be: each connection is one here and one there."""
    most = files * 3 // 4
    at_a_time = STORM // 10 + PLAYERS
    if at_a_time > most:
        say(f"scaled down: {files} files allow {most} connections at a time, not {at_a_time}")
        at_a_time = most
    return ("--accept-rate", str(CAPACITY), "--max-clients", str(at_a_time))


class Steady:
    """The same players at two gateways, for so long."""

    def __init__(self, fleet, gateways, seconds, on):
        self.runs = [Bots(fleet, g.fields["frames"], *STEADY, "--time", f"{seconds}s", on=on) for g in gateways]
        for g in gateways:
            until("players are in", lambda g=g: figures(g)["connected_clients"] >= PLAYERS)

    def p99(self):
        told = [run.told() for run in self.runs]
        assert all(t["clean"] and t["cut"] == 0 and t["logins"] == PLAYERS for t in told), told
        return [t["request"]["p99_us"] for t in told]


def row(what, *cells):
    say(f"  {what:34}" + "".join(f"{cell:>16}" for cell in cells))


def the_others_are_told_and_come_later(told, refused):
    assert told["logins"] == told["over"] == STORM and told["cut"] == 0, told
    assert told["turned_away"] == refused and told["clean"], (told, refused)
    say(f"storm: {STORM} wanted in, {refused} times one was turned away, the longest hint {told['hint_max_ms'] / 1000:.0f} s")
    say(f"all were in after {told['in_seconds']:.1f} s, {STORM / told['in_seconds']:.0f}/s of {CAPACITY}/s")


def a_storm_passes(binary):
    servers, generator = cores()
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        nodes = [fleet.node(name, ("--kind", "0:echo")) for name in ("n1", "n2")]
        g = gateway(fleet, "g1", *limits(raise_file_limit()))
        beside = gateway(fleet, "g2")
        for process in (g, beside, *nodes):
            stay_on(process.popen.pid, servers)
        os.sched_setaffinity(0, generator)
        calm = Steady(fleet, (g, beside), CALM_S, servers).p99()
        steady = Steady(fleet, (g, beside), STORM_S, servers)
        before, counted = peak(g), figures(g)
        run = Bots(fleet, g.fields["frames"], "--n", STORM, *PLAY, on=generator)
        stormed = steady.p99()
        told = run.told()
        refused = figures(g)["rejected_connections"] - counted["rejected_connections"]
        the_others_are_told_and_come_later(told, refused)
        row(f"p99 of {PLAYERS} who are in", "calm", "in the storm", "ratio")
        row("at the gateway in the storm", ms(calm[0]), ms(stormed[0]), f"{stormed[0] / calm[0]:.2f}")
        row("at the one beside it", ms(calm[1]), ms(stormed[1]), f"{stormed[1] / calm[1]:.2f}")
        row("the gateway's own share", "", "", f"{stormed[0] / stormed[1]:.2f}")
        p99 = told["request"]["p99_us"]
        say(f"p99 of those let in, as the generator sees it, which is late itself: {ms(p99)}")
        say(f"the gateway's memory: {mib(before)} before, {mib(peak(g))} at most")
        assert peak(g) < 256 * 1048576
        verdict = "within" if stormed[0] <= 2 * max(calm[0], stormed[1]) else "OVER"
        say(f"verdict: p99 of those who are in is {verdict} twice the normal")


def refusals(fleet, address, on):
    told = Bots(fleet, address, "--n", STORM // 2, "--once", "--ask", "0ms", "--sources", 16, on=on).told(2)
    return told["turned_away"], told["attempts"] / told["seconds"]


def refusing_is_as_fast_as_accepting(binary):
    servers, generator = cores()
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ("--kind", "0:echo"))
        g = gateway(fleet, "g1", "--max-clients", "1")
        address = f"127.0.0.1:{free_port()}"
        bare = subprocess.Popen([actor(fleet, "bench", "accept_uv"), address], stdout=subprocess.PIPE)
        try:
            assert bare.stdout.readline() == b"ready\n"
            for pid in (bare.pid, g.popen.pid):
                stay_on(pid, servers)
            for _ in range(3):
                theirs, ours = (refusals(fleet, at, generator) for at in (address, g.fields["frames"]))
                assert theirs[0] == ours[0] == STORM // 2, (theirs, ours)
                say(f"refused {ours[1]:.0f}/s; a bare listener {theirs[1]:.0f}/s; ratio {ours[1] / theirs[1]:.2f}")
        finally:
            bare.kill()
            bare.wait()


main([a_storm_passes, refusing_is_as_fast_as_accepting])
