#!/usr/bin/env python3
"""Sessions that outlive their connection: resumed at another gateway, while the actor pushes and moves."""
import os
import random
import signal
import struct
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, main, pairs, until
from packets import Client

PLAYERS, ROUNDS, BURST = 5, 10, 6
REPLACED = 1
NO_SESSION = "14"
TAKEN, GONE, OVER = b"TAKEN", b"GONE", b"REPLACED"


def plugin(fleet, name):
    return os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", name)


def frames(gateway):
    return tuple(gateway.fields["frames"].rsplit(":", 1))


def gateway(fleet, name):
    return fleet.gateway(name, ["--frames", "127.0.0.1:0"])


def counted(ops):
    return figures(ops, "ringhold")


def figures(ops, section="sessions"):
    text = ops("INFO", section)
    return {k: int(v) for k, v in (line.split(":") for line in text.split("\r\n") if ":" in line) if v.isdigit()}


class Player:
    """A client with a ledger: what it was pushed, what it asked, and what it was answered."""

    def __init__(self, name, address):
        self.name = name
        self.number = 0  # of requests
        self.counted = 0  # the last number that its actor pushed
        self.pushes = 0  # the last sequence
        self.open = {}  # requests without an answer
        self.told = 0
        self.client = Client(address)
        until("somebody owns it", lambda: self.client.ask(name, b"events").status == packets.OK)
        self.session = self.client.keep(name)
        assert self.session.next == 1 and self.session.keep_ms == 30000, self.session

    def lowest(self):
        return min(self.open, default=self.number + 1)

    def ask(self, count):
        for _ in range(count):
            self.number += 1
            self.open[self.number] = b"run %d" % self.number
        return list(self.open)[-count:]

    def send(self, numbers, flags=0):
        self.client.send(*(packets.asking(packets.REQUEST, n, self.name, self.open[n], flags=flags) for n in numbers))

    def take(self):
        """One packet; what it says has to fit."""
        type_, body = self.client.wait(packets.PUSH, packets.RESPONSE)
        if type_ == packets.RESPONSE:
            number, status = struct.unpack(">IB", body[:5])
            assert number in self.open and status == packets.OK, (number, status, body[9:])
            assert int(body[9:]) == number, body
            del self.open[number]
            self.told += 1
            return
        sequence, text = struct.unpack(">Q", body[:8])[0], body[8:]
        assert sequence == self.pushes + 1, (sequence, self.pushes)
        self.pushes = sequence
        if text != b"hello":
            assert int(text) == self.counted + 1, (text, self.counted)
            self.counted += 1

    def come_back(self, address):
        """By another line; what has no answer is sent again."""
        self.client = Client(address)
        answer = self.client.resume(self.name, self.session.name, self.pushes, self.lowest())
        assert answer.status == packets.OK, answer
        self.session = packets.session(answer.payload)
        assert self.session.next == self.pushes + 1, (self.session, self.pushes)
        self.send(list(self.open), packets.AGAIN)

    def settle(self):
        while self.open:
            self.take()
        self.client.send(packets.ack(self.pushes, self.lowest()))


def nothing_is_lost_by_a_lost_line(binary):
    rng = random.Random()
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2", "n3"):
            fleet.node(name, ["--actor", plugin(fleet, "pusher.so")])
        fleet.settled(["n1", "n2", "n3"])
        gateways = [gateway(fleet, "g1"), gateway(fleet, "g2")]
        addresses = [frames(g) for g in gateways]
        players = [Player(b"p%d" % i, addresses[i % 2]) for i in range(PLAYERS)]
        for p in players:
            p.ask(1)
            p.send([1])
        ops = Resp(gateways[1].resp)
        for p in players:
            assert ops("CALL", p.name.decode(), "count 5") == "0"
        drained = False
        for round_ in range(ROUNDS):
            for p in players:
                p.send(p.ask(BURST))
                for _ in range(rng.randrange(0, 2 * BURST)):
                    p.take()
                p.client.close()
            if round_ == ROUNDS // 3:
                fleet.tell("node", "drain", "n1")
                drained = True
            if round_ == 2 * ROUNDS // 3:
                gateways[0].kill()  # its clients come back by the other one; its former lines are missed
                addresses = addresses[1:]
            for p in players:
                p.come_back(rng.choice(addresses))
            for p in players:
                p.settle()
        assert drained
        fleet.settled(["n2", "n3"])
        for p in players:
            count = p.counted + 20
            while p.counted < count:
                p.take()
            assert ops("CALL", p.name.decode(), "score") == f"{p.number} 0"
        f = figures(ops)
        assert f["sessions_returned"] > 0 and f["sessions_gone"] == 0, f


def what_is_over_is_said(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--lease", "2s"])
        for name in ("n1", "n2"):
            fleet.node(name, ["--kind", f"0:{plugin(fleet, 'pusher.so')}", "--kind", f"1:{plugin(fleet, 'jealous.so')}"])
        fleet.settled(["n1", "n2"])
        g1, g2 = gateway(fleet, "g1"), gateway(fleet, "g2")
        ops = Resp(g2.resp)

        def came_back(name, session, pushes, g=g2, **more):
            client = Client(frames(g))
            return client, client.resume(name, session.name, pushes, **more)

        # More was pushed than is kept: the client is told how much it missed.
        client = Client(frames(g1))
        until("somebody owns it", lambda: client.ask(b"a", b"events").status == packets.OK)
        session = client.keep(b"a")
        assert client.push() == (1, b"hello")
        client.close()
        until("it is missed", lambda: ops("CALL", "a", "events") == "BOUND LOST1")
        for _ in range(3):
            assert ops("CALL", "a", "push " + "x" * 400) == "0"
        client, answer = came_back(b"a", session, 1)
        assert packets.session(answer.payload).next == 2
        assert [client.push()[0] for _ in range(4)] == [2, 3, 4, 5]  # and a hello
        assert ops("CALL", "a", "events") == "BOUND LOST1 RESUMED1"
        client.close()
        until("it is missed", lambda: ops("CALL", "a", "events").endswith("LOST1"))
        assert ops("CALL", "a", "flood 1") == "0"  # 64 KiB: too large to be kept, and so all before it
        assert ops("CALL", "a", "push x") == "0"
        client, answer = came_back(b"a", session, 5)
        assert packets.session(answer.payload).next == 7
        assert client.push() == (7, b"x")

        # A line that hangs is kicked when its session goes on elsewhere.
        other, answer = came_back(b"a", session, 7, g1)
        assert answer.status == packets.OK
        assert client.notice(packets.KICK)[0] == REPLACED
        assert client.closed()

        # Another client has taken its place; or it has left; or it is nobody's.
        third = Client(frames(g1))
        assert third.bind(b"a").status == packets.OK
        assert other.notice(packets.KICK)[0] == REPLACED
        answer = came_back(b"a", session, 7)[1]
        assert answer.status == packets.REJECTED and answer.payload.startswith(OVER), answer
        session = Client(frames(g1)).keep(b"b")
        answer = came_back(b"c", session, 0)[1]
        assert answer.status == packets.REJECTED and answer.payload.startswith(GONE), answer
        client, answer = came_back(b"b", session, 0)
        assert answer.status == packets.OK and client.unbind().status == packets.OK
        answer = came_back(b"b", session, 0)[1]
        assert answer.status == packets.REJECTED and answer.payload.startswith(GONE), answer

        # What makes no sense.
        assert client.ask(b"b", b"short", type_=packets.RESUME).status == packets.BAD_REQUEST
        assert Client(frames(g1)).ask(b"b", b"x", flags=packets.AGAIN).status == packets.BAD_REQUEST

        # One that is kept is in nobody's way, and not for ever.
        until("a kind of its own", lambda: client.ask(b"j", b"x", kind=1).status == packets.OK)
        first, second = Client(frames(g1)), Client(frames(g2))
        session = first.keep(b"j", kind=1)
        assert session.keep_ms == 500
        answer = second.bind(b"j", kind=1)
        assert answer.status == packets.REJECTED and answer.payload.startswith(TAKEN), answer
        first.close()
        until("it is over", lambda: second.ask(b"j", b"x", kind=1).payload == NO_SESSION.encode())
        answer = came_back(b"j", session, 0, kind=1)[1]
        assert answer.status == packets.REJECTED and answer.payload.startswith(GONE), answer

        # The actor is lost with its node: its client is told, and may resume what was begun afresh.
        lost = Client(frames(g1))
        session = lost.keep(b"d")
        assert lost.push() == (1, b"hello")
        fleet.process(pairs(ops("WHERE", "d"))["node"]).kill()
        begun = packets.session(lost.wait(packets.BEGUN)[1])
        assert begun.next == 1 and begun.name != session.name
        assert lost.push() == (1, b"hello")
        assert came_back(b"d", session, 1)[1].payload.startswith(GONE)  # nobody took its place
        client, answer = came_back(b"d", begun, 1)
        assert answer.status == packets.OK and packets.session(answer.payload).next == 2


def a_take_over_keeps_nobody_out(binary):
    """Who is bound waits and runs at the new owner, as who is not; only what ran at the kill is UNKNOWN."""
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--lease", "2s"])
        for name in ("n1", "n2"):
            fleet.node(name, ["--actor", plugin(fleet, "pusher.so")])
        fleet.settled(["n1", "n2"])
        g = gateway(fleet, "g1")
        ops = Resp(g.resp)
        ids = [b"p%d" % i for i in range(24)]
        mine = [i for i in ids if pairs(ops("WHERE", i.decode()))["node"] == "n1"]
        bound, free = {i: Client(frames(g)) for i in mine}, {i: Client(frames(g)) for i in mine}
        for i in mine:
            bound[i].keep(i)
            assert bound[i].ask(i, b"run 1").status == packets.OK
        n1 = fleet.process("n1")
        n1.kill(signal.SIGSTOP)
        for i in mine[:2]:  # under way when it is killed
            bound[i].send(packets.asking(packets.REQUEST, 8, i, b"run 8"))
        until("they are under way", lambda: counted(ops)["in_flight"] == 2)
        n1.kill().wait()
        until("its link is gone", lambda: g.log_has("link unreachable"))
        for i in mine:
            bound[i].send(*(packets.asking(packets.REQUEST, 10 + n, i, b"run %d" % n) for n in (1, 2, 3)))
            free[i].send(*(packets.asking(packets.REQUEST, 10 + n, i, b"events") for n in (1, 2, 3)))
        for i in mine[:2]:
            answer = bound[i].response()
            assert (answer.request, answer.status) == (8, packets.UNKNOWN) and answer.payload, answer
        for client in [*bound.values(), *free.values()]:
            answers = [client.response() for _ in range(3)]
            assert [(a.request, a.status) for a in answers] == [(10 + n, packets.OK) for n in (1, 2, 3)], answers
        for i in mine:  # each ran once, in order, in an actor that was begun afresh
            assert ops("CALL", i.decode(), "score") == "3 0", i
        figures = counted(ops)
        assert (figures["unknown"], figures["rejected"], figures["overloaded"]) == (2, 0, 0), figures
        print(f"# {len(mine)} bound, {len(mine)} unbound")


main([nothing_is_lost_by_a_lost_line, what_is_over_is_said, a_take_over_keeps_nobody_out])
