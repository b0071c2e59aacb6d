#!/usr/bin/env python3
"""One that doesn't read what its actor pushes, among FAST (1,000) that do: it alone is cut, and the others are as
fast as without it. Alone: it compares times."""
import os
import socket
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from campaign import Bots, actor, cores, figures, gateway, ms, raise_file_limit, say, stay_on
from fleet import Fleet, main, until

FAST = int(os.environ.get("FAST", "1000"))


def play(fleet, g):
    return Bots(fleet, g.fields["frames"], "--n", FAST, "--time", "10s", "--ask", "200ms", "--check", "count")


def fall_asleep(g):
    """A client that asks for 16 MiB of pushes and reads none of it."""
    slow = packets.Client(tuple(g.fields["frames"].rsplit(":", 1)))
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    assert slow.bind(b"slow", kind=1).status == packets.OK
    flood = [packets.asking(packets.NOTIFY, 1000 + i, b"slow", b"flood 16", kind=1) for i in range(16)]
    slow.send(*flood)  # at once: it may be cut behind the first
    return slow


def only_the_slow_one_is_cut(binary):
    raise_file_limit()
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        pusher = f"1:{actor(fleet, 'tests', 'plugins', 'pusher.so')}"
        node = fleet.node("n1", ["--kind", f"0:{actor(fleet, 'examples', 'bots.so')}", "--kind", pusher])
        g = gateway(fleet, "g1")
        servers, others = cores()
        for process in (node, g):
            stay_on(process.popen.pid, servers)
        os.sched_setaffinity(0, others)
        before = play(fleet, g).told()
        rounds = []
        run = play(fleet, g)
        until("they are in", lambda: figures(g)["bound_clients"] >= FAST * 9 // 10)
        end = time.monotonic() + 6
        while time.monotonic() < end:  # one each second
            began = time.monotonic()
            slow = fall_asleep(g)
            rounds.append(slow)
            until("it is cut", lambda: figures(g)["closed_unread_pushes"] == len(rounds))
            slow.close()
            time.sleep(max(0, began + 1 - time.monotonic()))
        told = run.told()
        assert told["cut"] == told["kicked"] == 0 and told["clean"] and told["logins"] == FAST, told
        after = play(fleet, g).told()
        p99, was = told["request"]["p99_us"], [t["request"]["p99_us"] for t in (before, after)]
        say(f"{len(rounds)} slow readers, one after the other, were cut; of {FAST} others none")
        say(f"p99 of the others: {ms(was[0])} before, {ms(p99)} with them, {ms(was[1])} after: ratio {2 * p99 / sum(was):.2f}")


main([only_the_slow_one_is_cut])
