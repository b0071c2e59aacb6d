#!/usr/bin/env python3
"""A rolling restart of every node, one after another, under load: nothing lost, nothing forgotten.

ACTORS ids live with 1 KiB of memory each (the ledger actor's ballast: changed by every request,
handed over with a checksum that is looked at when it arrives). Each node in turn gets SIGTERM: its
ids move to the others, it ends with 0 and is started again. The judge reads the journals of all
processes. Times are printed, never asserted.

Alone: its load takes all there is of a small machine.
"""
import bisect
import collections
import os
import signal
import socket
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, healthy, main, until
from ledger import ACTIVATE, EXPORT, Journal, Load, Request, id_hash, judge, now_ns, resp, take_reply

ACTORS = int(os.environ.get("ACTORS", "100000"))
NODES = int(os.environ.get("NODES", "4"))
RATE = int(os.environ.get("RATE", "2000"))
BALLAST = 1024
WAKER = 1000000  # the client number that wakes them all


def sweep(address, count, seq):
    """Ask each id once, as client WAKER; returns the requests."""
    done = []
    flying = collections.deque()
    inside = b""
    with socket.create_connection(address, timeout=60) as s:
        name = 0
        while name < count or flying:
            out = []
            while name < count and len(flying) < 1000:
                out.append(resp([b"CALL", b"p%d" % name, b"%d %d" % (WAKER, seq)]))
                flying.append((f"p{name}", now_ns()))
                name += 1
            s.sendall(b"".join(out))
            data = s.recv(1 << 18)
            assert data, "the gateway hung up"
            inside += data
            while True:
                reply, inside = take_reply(inside)
                if reply is None:
                    break
                who, sent = flying.popleft()
                code = "OK" if reply[:1] == b"+" else "ERROR"
                done.append(Request(WAKER, who, seq, sent, now_ns(), code, reply.decode()))
    return done


def freezes(folder):
    """Of each id: when it was frozen to be moved, and how often it came to life."""
    frozen = collections.defaultdict(list)
    lives = collections.Counter()
    for entry in os.listdir(folder):
        if entry.endswith(".journal"):
            for when, name, _, _, _, event in Journal(os.path.join(folder, entry)).records:
                if event == EXPORT:
                    frozen[name].append(when)
                lives[name] += event == ACTIVATE
    for times in frozen.values():
        times.sort()
    return frozen, lives


def met_a_move(request, frozen):
    """Its id froze while it was under way, or in the second before it was sent."""
    times = frozen.get(id_hash(request.id), ())
    at = bisect.bisect_left(times, request.sent_ns - 1000000000)
    return at < len(times) and times[at] <= request.answered_ns


def share(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))] if times else 0.0


def every_node_is_restarted_under_load(binary):
    with Fleet(binary) as fleet:
        journals = fleet.data("journals")
        os.mkdir(journals)
        env = {"RINGHOLD_LEDGER": journals, "RINGHOLD_BALLAST": str(BALLAST)}
        words = ["--actor", "ledger"]
        names = [f"n{i}" for i in range(1, NODES + 1)]
        fleet.coordinators(3)
        for name in names:
            fleet.node(name, words, env)
        gateway = fleet.gateway("g1").resp
        fleet.settled(names)
        begin = time.monotonic()
        woken = sweep(gateway, ACTORS, 1)
        waking = time.monotonic() - begin
        alive = until(
            "the nodes tell of their actors",
            lambda: (n := sum(n["actors"] for n in fleet.status()["nodes"])) >= ACTORS and n,
        )
        load = Load([gateway], ids=ACTORS, hot=64, clients=8, rate=RATE, patience=60)
        until("requests are answered", lambda: load.answered() > 1000)
        took = []
        for name in names:
            begin = time.monotonic()
            process = fleet.process(name)
            code = process.kill(signal.SIGTERM).wait(120)
            assert code == 0, f"{name} ended with {code}: {process.tail()}"
            fleet.node(name, words, env)
            fleet.settled(names, deadline=120)
            took.append(time.monotonic() - begin)
        requests = load.finish()
        # Each is asked once more: who moved and was not asked for since has to start from what came.
        last = sweep(gateway, ACTORS, 2)
        healthy(fleet)
        verdict = judge(woken + requests + last, journals)
        frozen, lives = freezes(journals)
        moves = sum(n - 1 for n in lives.values())
        all_ms = [(r.answered_ns - r.sent_ns) / 1e6 for r in requests]
        met_ms = [(r.answered_ns - r.sent_ns) / 1e6 for r in requests if met_a_move(r, frozen)]
        print(f"# {alive} live actors of {BALLAST} bytes on {NODES} nodes, woken in {waking:.1f} s")
        print(f"# each node down and even again after {', '.join(f'{t:.1f}' for t in took)} s")
        print(f"# {len(lives)} actors came to life {moves} times again after a move, each with its memory intact")
        print(f"# {len(met_ms)} requests to moving ids: p50 {share(met_ms, 0.5):.1f} p99 "
              f"{share(met_ms, 0.99):.1f} longest {share(met_ms, 1):.1f} ms; all {len(all_ms)}: p50 "
              f"{share(all_ms, 0.5):.2f} p99 {share(all_ms, 0.99):.2f} ms")  # fmt: skip
        print(f"# {verdict.words()}")
        forgetful = [r for r in last if r.text != "+OK 2"]
        assert not forgetful, f"{len(forgetful)} actors forgot: {forgetful[0]}"
        assert len(lives) >= ACTORS and moves > ACTORS // NODES, f"only {moves} moves"
        verdict.must_be_clean(planned=True)


main([every_node_is_restarted_under_load])
