#!/usr/bin/env python3
"""One player's token, used by who wants all of a gateway, beside PLAYERS (1,000) others who ask each ASK (500ms); default
flags. Four ways: 160 connections of 1,024 requests each to its own actor, which answers none; to one that answers at once;
for another's actor, which is refused; and 10,050 connections. Printed: the players' p99 and errors alone and beside it, SECONDS
(15) each. An older BINARY may be given, to compare: it prints all before it fails. Alone: it compares times."""
import os
import selectors
import signal
import socket
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from campaign import Bots, actor, cores, gateway, ms, raise_file_limit, say, stay_on
from fleet import Fleet, main

PLAYERS = int(os.environ.get("PLAYERS", "1000"))
SECONDS = int(os.environ.get("SECONDS", "15"))
ASK = os.environ.get("ASK", "500ms")
LINES, AT_ONCE, CROWD = 160, 1024, 10050
SECRET, GREEDY = b"g" * 32, b"greedy"
ECHO, STUCK = 7, 0  # kinds


class Greedy:
    """Its connections, in a process of their own: `keep` requests of each are under way, as far as it is let."""

    def __init__(self, address, on, kind, payload, lines=LINES, keep=AT_ONCE, entity=GREEDY):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.sched_setaffinity(0, on)
                Lines(address, lines, kind, payload, keep, entity).serve(write)
            finally:
                os._exit(0)
        os.close(write)
        got = os.read(self.read, 64)  # all have been let in, or turned away
        self.here, self.away = map(int, got.split())

    def stop(self):
        """How its requests were answered, by status."""
        os.kill(self.pid, signal.SIGTERM)
        got = b""
        while part := os.read(self.read, 4096):
            got += part
        os.close(self.read)
        os.waitpid(self.pid, 0)
        return {int(k): int(v) for k, v in (w.split(b":") for w in got.split())}


class Lines:
    def __init__(self, address, lines, kind, payload, keep, entity):
        self.keep = keep
        self.one = packets.asking(packets.REQUEST, 1, entity, payload, kind)
        self.statuses = {}
        self.selector = selectors.DefaultSelector()
        self.here = self.away = 0
        self.stopped = False
        signal.signal(signal.SIGTERM, self.stop)
        token = packets.packet(packets.AUTH, packets.token("k", SECRET, GREEDY, kind).encode())
        for i in range(lines):
            self.come(address, f"127.0.2.{i % 200 + 1}", packets.hello() + token)

    def stop(self, *_):
        self.stopped = True

    def come(self, address, source, first):
        """Into the fleet or away, before the next one comes."""
        s = socket.create_connection(address, source_address=(source, 0), timeout=30)
        try:
            s.sendall(first)
            got = b""
            while True:
                part = s.recv(4096)
                if not part:
                    raise OSError("closed")
                got += part
                types = [t for t, _ in whole(got)[0]]
                if packets.AUTH_OK in types:
                    break
                if packets.GOAWAY in types or packets.KICK in types:
                    raise OSError("turned away")
        except OSError:
            self.away += 1
            s.close()
            return
        self.here += 1
        s.setblocking(False)
        self.selector.register(s, selectors.EVENT_READ, [b"", self.one * self.keep])
        if self.keep:
            self.selector.modify(s, selectors.EVENT_READ | selectors.EVENT_WRITE, self.selector.get_key(s).data)

    def serve(self, write):
        os.write(write, f"{self.here} {self.away}".encode())
        while not self.stopped:
            for key, events in self.selector.select(0.2):
                try:
                    self.turn(key.fileobj, key.data, events)
                except BlockingIOError:
                    pass
                except OSError:
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()
        os.write(write, " ".join(f"{k}:{v}" for k, v in self.statuses.items()).encode())

    def turn(self, s, state, events):
        if events & selectors.EVENT_READ:
            part = s.recv(262144)
            if not part:
                raise OSError("closed")
            found, state[0] = whole(state[0] + part)
            for type_, body in found:
                if type_ == packets.RESPONSE:
                    self.statuses[body[4]] = self.statuses.get(body[4], 0) + 1
                    state[1] += self.one
                elif type_ == packets.PING:
                    state[1] += packets.packet(packets.PONG, body)
        if state[1]:
            state[1] = state[1][s.send(state[1]) :]
        self.selector.modify(s, selectors.EVENT_READ | (selectors.EVENT_WRITE if state[1] else 0), state)


def whole(text):
    """Its packets, and what is left."""
    found, at = [], 0
    while len(text) - at >= 4:
        size = int.from_bytes(text[at + 1 : at + 4], "big")
        if len(text) - at < 4 + size:
            break
        found.append((text[at], text[at + 4 : at + 4 + size]))
        at += 4 + size
    return found, text[at:]


def start(fleet):
    servers, others = cores()
    fleet.coordinators(1)
    kinds = ("--actor", actor(fleet, "tests", "plugins", "unruly.so"), "--kind", f"{ECHO}:echo")
    nodes = [fleet.node(name, kinds) for name in ("n1", "n2")]
    keys = fleet.data("keys")
    with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
        f.write(f"k hex:{SECRET.hex()}\n")
    g = gateway(fleet, "g1", "--auth-keys", keys)
    for process in (*nodes, g):
        stay_on(process.popen.pid, servers)
    os.sched_setaffinity(0, others)
    fleet.settled(["n1", "n2"])
    return g, keys, others


def play(fleet, g, keys):
    words = ("--n", PLAYERS, "--rate", PLAYERS // 2, "--time", f"{SECONDS}s", "--ask", ASK, "--no-bind")
    return Bots(fleet, g.fields["frames"], *words, "--kind", ECHO, "--keys", keys, "--check", "echo").ended()[1]


def errors_of(told):
    names = ("turned_away", "told_to_go", "kicked", "cut", "unreachable", "unknown", "unanswered", "wrong")
    bad = {k: told[k] for k in names if told[k] != 0}
    if told["logins"] != PLAYERS:
        bad["not_in"] = PLAYERS - told["logins"]
    if told["asked"] != told["ok"]:
        bad["not_ok"] = told["asked"] - told["ok"]
    return bad


def row(what, told):
    asked, bad = told["request"], errors_of(told)
    words = " ".join(f"{k} {v}" for k, v in bad.items()) or "no error"
    say(f"  {what:24} asked {told['asked']:6}  p50 {ms(asked['p50_us']):>10}  p99 {ms(asked['p99_us']):>10}  {words}")
    return asked["p99_us"], bad


WAYS = {
    "requests without an answer": dict(kind=STUCK, payload=b"defer"),
    "requests that are answered": dict(kind=ECHO, payload=b"x"),
    "requests that are refused": dict(kind=ECHO, payload=b"x", entity=b"another"),
    "connections": dict(kind=ECHO, payload=b"", lines=CROWD, keep=0),
}


def one_token_beside_players(binary):
    raise_file_limit()
    seen = []
    for way, how in WAYS.items():
        with Fleet(binary) as fleet:
            g, keys, others = start(fleet)
            say(f"{way}:")
            calm, _ = row("alone", play(fleet, g, keys))
            greedy = Greedy(tuple(g.fields["frames"].rsplit(":", 1)), others, **how)
            told = play(fleet, g, keys)
            statuses = greedy.stop()
            p99, bad = row("beside it", told)
            seen.append(bad)
            verdict = "within" if p99 <= 2 * calm and not bad else "OVER"
            say(f"  the greedy one: {greedy.here} connections, {greedy.away} turned away, answers by status {statuses}")
            say(f"  verdict: {verdict} twice the p99 alone, without an error; ratio {p99 / max(calm, 1):.2f}")
    assert not any(seen), seen


main([one_token_beside_players])
