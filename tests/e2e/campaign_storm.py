#!/usr/bin/env python3
"""A login storm: STORM (50,000) attempts as fast as they can be made, at a gateway for a tenth of them.

It lets in CAPACITY / s (STORM / 25), and STORM / 10 at a time; each stays for 2 s and asks. Everybody else is told
when to come, and comes then. Printed: its memory, the latency of those that are in beside that without a storm, and
what it refuses a second beside a bare listener on libuv. Alone: it compares times.
"""
import os
import subprocess

from campaign import Bots, actor, figures, gateway, mib, ms, peak, raise_file_limit, say
from fleet import Fleet, free_port, main

STORM = int(os.environ.get("STORM", "50000"))
CAPACITY = int(os.environ.get("CAPACITY", str(max(STORM // 25, 1))))
PLAY = ("--stay", "2s", "--ask", "1s", "--check", "echo", "--sources", 16)


def limits(files):
    """By half as many files as there may be: each connection is one here and one there."""
    most = files * 3 // 4
    at_a_time = STORM // 10
    if at_a_time > most:
        say(f"scaled down: {files} files allow {most} connections at a time, not {at_a_time}")
        at_a_time = most
    return ("--accept-rate", str(CAPACITY), "--max-clients", str(at_a_time))


def calm(fleet, g):
    """As many logins a second as it lets in, nine tenths of them, and nobody else."""
    told = Bots(fleet, g.fields["frames"], "--n", CAPACITY * 5, "--rate", CAPACITY * 9 // 10, *PLAY).told()
    say(f"calm: {told['logins']} logins, requests p50 {ms(told['request']['p50_us'])} p99 {ms(told['request']['p99_us'])}")
    return told


def a_storm_passes(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ("--kind", "0:echo"))
        g = gateway(fleet, "g1", *limits(raise_file_limit()))
        normal = calm(fleet, g)
        before, counted = peak(g), figures(g)
        told = Bots(fleet, g.fields["frames"], "--n", STORM, *PLAY).told()
        refused = figures(g)["rejected_connections"] - counted["rejected_connections"]
        assert told["logins"] == told["over"] == STORM and told["cut"] == 0, told
        assert told["turned_away"] == refused and told["clean"], (told, refused)
        say(f"storm: {STORM} wanted in, {refused} times one was turned away, the longest hint {told['hint_max_ms'] / 1000:.0f} s")
        say(f"all were in after {told['in_seconds']:.1f} s, {STORM / told['in_seconds']:.0f}/s of {CAPACITY}/s")
        p99, was = told["request"]["p99_us"], normal["request"]["p99_us"]
        say(f"requests of those that were in: p50 {ms(told['request']['p50_us'])} p99 {ms(p99)}, {p99 / was:.2f} of normal")
        say(f"the gateway's memory: {mib(before)} before, {mib(peak(g))} at most")
        assert peak(g) < 256 * 1048576


def refusals(fleet, address):
    told = Bots(fleet, address, "--n", STORM // 2, "--once", "--ask", "0ms", "--sources", 16).told(2)
    return told["turned_away"], told["attempts"] / told["seconds"]


def refusing_is_as_fast_as_accepting(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ("--kind", "0:echo"))
        g = gateway(fleet, "g1", "--max-clients", "1")
        address = f"127.0.0.1:{free_port()}"
        bare = subprocess.Popen([actor(fleet, "bench", "accept_uv"), address], stdout=subprocess.PIPE)
        try:
            assert bare.stdout.readline() == b"ready\n"
            for _ in range(3):
                theirs, ours = refusals(fleet, address), refusals(fleet, g.fields["frames"])
                assert theirs[0] == ours[0] == STORM // 2, (theirs, ours)
                say(f"refused {ours[1]:.0f}/s; a bare listener {theirs[1]:.0f}/s; ratio {ours[1] / theirs[1]:.2f}")
        finally:
            bare.kill()
            bare.wait()


main([a_storm_passes, refusing_is_as_fast_as_accepting])
