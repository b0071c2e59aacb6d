#!/usr/bin/env python3
"""Those who would do harm, beside PLAYERS (200) who are in and ask: SILENT (10,000) sockets that say nothing; some at each
stage that send a byte a second; garbage as fast as it can be sent. Memory stays bounded, and no player is cut. Printed: the
gateway's memory, what it counted, and the players' p99 beside that without. Alone: it compares times."""
import os
import random
import socket
import struct
import sys
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from campaign import Bots, actor, cores, figures, gateway, mib, ms, peak, raise_file_limit, say, stay_on
from fleet import Fleet, main, until

SILENT = int(os.environ.get("SILENT", "10000"))
PLAYERS = int(os.environ.get("PLAYERS", "200"))
LORIS = int(os.environ.get("LORIS", "50"))  # at each stage
ROOM = 128 * 1048576  # more than that a gateway never takes in this


class Place:
    """A node, a gateway that knows no keys, and one that does; each on its half of the cores, and the harm on the other."""

    def __init__(self, fleet, *limits):
        servers, self.others = cores()
        fleet.coordinators(1)
        node = fleet.node("n1", ["--actor", actor(fleet, "examples", "bots.so")])
        self.fleet = fleet
        self.g = gateway(fleet, "g1", "--ws", "127.0.0.1:0", *limits)
        for process in (node, self.g):
            stay_on(process.popen.pid, servers)
        os.sched_setaffinity(0, self.others)
        self.frames = tuple(self.g.fields["frames"].rsplit(":", 1))
        self.ws = tuple(self.g.fields["ws"].rsplit(":", 1))

    def play(self, seconds=10, *more):
        words = ("--n", PLAYERS, "--rate", 500, "--time", f"{seconds}s", "--ask", "100ms", "--check", "count")
        return Bots(self.fleet, self.g.fields["frames"], *words, *more)

    def players_are_in(self):
        until("players are in", lambda: figures(self.g)["bound_clients"] >= PLAYERS)

    def judge(self, name, calm, told, before, counted):
        now = figures(self.g)
        was, p99 = calm["request"]["p99_us"], told["request"]["p99_us"]
        say(f"{name}: p99 of {PLAYERS} players {ms(was)} without, {ms(p99)} with: ratio {p99 / was:.2f}")
        say(f"{name}: memory {mib(before)} before, {mib(peak(self.g))} at most")
        reasons = {k: v - counted.get(k, 0) for k, v in now.items() if v > counted.get(k, 0)}
        words = ("kicked_", "closed_", "refused_", "http_", "ws_", "rejected_")
        say(f"{name}: counted " + " ".join(f"{k} {v}" for k, v in sorted(reasons.items()) if k.startswith(words)))
        assert told["clean"] and told["unanswered"] == 0, told
        assert told["cut"] == told["kicked"] == 0 and told["logins"] == PLAYERS, told
        assert peak(self.g) < ROOM


def connect(address, source="127.0.0.1"):
    s = socket.create_connection((address[0], int(address[1])), source_address=(source, 0), timeout=30)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def those_who_say_nothing(binary):
    files = raise_file_limit()
    count = min(SILENT, files - 500)
    with Fleet(binary) as fleet:
        p = Place(fleet, "--max-clients", str(count + PLAYERS + 100))
        calm = p.play().told()
        before, counted = peak(p.g), figures(p.g)
        run = p.play(16)
        p.players_are_in()
        began = time.monotonic()
        here = [connect(p.frames, f"127.0.1.{i % 16 + 1}") for i in range(count)]
        say(f"{count} sockets that say nothing, in {time.monotonic() - began:.1f} s")

        def gone():
            return figures(p.g)["kicked_no_hello"] - counted["kicked_no_hello"] == count

        until("all are kicked", gone, deadline=60)
        say(f"all were kicked, {time.monotonic() - began:.1f} s after the first came")
        p.judge("silent", calm, run.told(), before, counted)
        for s in here:
            s.close()


def drip(sockets, text, stop):
    """A byte of `text` to each, each second; whoever is refused is forgotten."""
    at = 0
    while sockets and not stop.is_set():
        for s in list(sockets):
            try:
                s.send(text[at % len(text) : at % len(text) + 1])
            except OSError:
                sockets.remove(s)
        at += 1
        stop.wait(1)


def those_who_send_a_byte_a_second(binary):
    raise_file_limit()
    upgrade = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nX-Filler: " + b"x" * 4000
    request = packets.asking(packets.REQUEST, 1, b"loris", b"y" * 4000)
    with Fleet(binary) as fleet:
        p = Place(fleet)
        calm = p.play().told()
        before, counted = peak(p.g), figures(p.g)
        run = p.play(20)
        p.players_are_in()
        stop = threading.Event()
        greeted = [connect(p.frames) for _ in range(LORIS)]
        for s in greeted:
            s.sendall(packets.hello())
        stages = {
            "hello": ([connect(p.frames) for _ in range(LORIS)], packets.hello() * 100),
            "upgrade": ([connect(p.ws) for _ in range(LORIS)], upgrade),
            "request": (greeted, request),
        }
        threads = [threading.Thread(target=drip, args=(*words, stop)) for words in stages.values()]
        for t in threads:
            t.start()

        def cut():
            now = figures(p.g)
            return [now[k] - counted[k] for k in ("kicked_no_hello", "http_timeout")] == [LORIS, LORIS]

        until("those that never get done are cut", cut, deadline=30)
        told = run.told()
        stop.set()
        for t in threads:
            t.join()
        # A request that comes slowly costs its own connection: so much of it waits, and no more.
        say(f"of {LORIS} each: hello and upgrade were cut; {len(greeted)} that were greeted are still sending their request")
        p.judge("slow-loris", calm, told, before, counted)
        for s in greeted:
            s.close()


def garbage(p, until_when, sent):
    """Random bytes, and packets with random bodies, before and after a hello."""
    chance = random.Random()
    while time.monotonic() < until_when:
        address = p.frames if chance.random() < 0.7 else p.ws
        try:
            s = connect(address)
            if chance.random() < 0.5:
                s.sendall(packets.hello())
            for _ in range(chance.randrange(1, 20)):
                body = chance.randbytes(chance.randrange(0, 200))
                head = bytes([chance.randrange(1, 20)]) + struct.pack(">I", len(body))[1:]
                s.sendall(body if chance.random() < 0.3 else head + body)
            sent[0] += 1
        except OSError:
            pass
        finally:
            s.close()


def those_who_talk_nonsense(binary):
    raise_file_limit()
    with Fleet(binary) as fleet:
        p = Place(fleet)
        calm = p.play().told()
        before, counted = peak(p.g), figures(p.g)
        run = p.play(12)
        p.players_are_in()
        sent = [0]
        garbage(p, time.monotonic() + 8, sent)
        told = run.told()
        say(f"garbage: {sent[0]} connections of it in 8 s")
        p.judge("garbage", calm, told, before, counted)


main([those_who_say_nothing, those_who_send_a_byte_a_second, those_who_talk_nonsense])
