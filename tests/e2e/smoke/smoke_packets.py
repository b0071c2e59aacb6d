#!/usr/bin/env python3
"""Clients that speak packets: requests, sessions, limits, and a gateway that stops."""
import os
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, main, succeeds, until
from packets import Client

KICK_BAD_PACKET, KICK_TOO_LARGE, KICK_NO_HELLO, KICK_VERSION = 100, 101, 102, 103
KICKED, REPLACED = 1007, 1


def plugin(fleet, name):
    return ["--actor", os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", name)]


def start(fleet, node=("--kind", "0:echo", "--kind", "1:kv"), gateway=()):
    fleet.coordinators(1)
    fleet.node("n1", node)
    g = fleet.gateway("g1", ["--frames", "127.0.0.1:0", *gateway])
    return g, tuple(g.fields["frames"].rsplit(":", 1))


def figures(gateway):
    text = Resp(gateway.resp)("INFO", "packets")
    return {k: int(v) for k, v in (line.split(":") for line in text.split("\r\n") if ":" in line)}


def requests_are_answered(binary):
    with Fleet(binary) as fleet:
        _, address = start(fleet)
        client = Client(address)
        assert (client.ack.version, client.ack.packet_max, client.ack.requests_max) == (1, 65536, 1024)
        until("somebody owns it", lambda: client.ask(b"a", b"x").status == packets.OK)
        for size in (0, 1, 64, 65000):
            answer = client.ask(b"id-%d" % size, b"p" * size)
            assert (answer.status, answer.payload) == (packets.OK, b"p" * size)
        assert client.ask(b"a", b"y", deadline_ms=5000, flags=packets.IDEMPOTENT).payload == b"y"
        assert client.ask(b"a", kind=77).status == packets.NO_OWNER
        # Many at once, to several ids: each is answered, and those to one id in order.
        client.send(*(packets.asking(packets.REQUEST, 1000 + i, b"id-%d" % (i % 7), b"%d" % i) for i in range(3000)))
        answers = [client.response() for _ in range(3000)]
        assert sorted(a.request for a in answers) == list(range(1000, 4000))
        assert all(a.status == packets.OK and int(a.payload) == a.request - 1000 for a in answers)
        for own in range(7):
            mine = [a.request for a in answers if (a.request - 1000) % 7 == own]
            assert mine == sorted(mine)
        # Nothing comes back for a notify; a ping does, in its turn.
        client.send(packets.asking(packets.NOTIFY, 7, b"a", b"x"), packets.packet(packets.PING, b"hey"))
        assert client.wait(packets.PONG, packets.RESPONSE) == (packets.PONG, b"hey")


def nonsense_is_refused(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet)
        client = Client(address)
        until("somebody owns it", lambda: client.ask(b"a", b"x").status == packets.OK)
        assert client.ask(b"a", flags=0x40).status == packets.BAD_REQUEST
        assert client.ask(b"").status == packets.BAD_REQUEST
        client.send(packets.packet(0x81, b"of a later version"))
        assert client.ask(b"a", b"x").status == packets.OK
        for code, what in (
            (KICK_NO_HELLO, packets.asking(packets.REQUEST, 1, b"a")),
            (KICK_NO_HELLO, packets.packet(packets.HELLO, b"GET / HTTP/1.1\r\n\r\n")),
            (KICK_NO_HELLO, packets.packet(packets.HELLO, b'{"sys":{"version":"1.1.1","type":"js-websocket"}}')),
            (KICK_VERSION, packets.hello(2, 9)),
            (KICK_BAD_PACKET, packets.hello() + packets.packet(99)),
            (KICK_BAD_PACKET, packets.hello() + packets.packet(packets.REQUEST, b"short")),
            (KICK_TOO_LARGE, packets.hello() + packets.packet(packets.REQUEST, b"x" * 65537)),
        ):
            other = Client(address, greet=False)
            other.send(what)
            number, text = other.notice(packets.KICK)
            assert number == code and ("pomelo" in text) == (b"js-websocket" in what), (number, text)
            assert other.closed()
        seen = figures(gateway)
        assert (seen["bad_requests"], seen["kicked_no_hello"], seen["kicked_bad_packet"]) == (2, 3, 2), seen
        assert (seen["kicked_version"], seen["kicked_too_large"]) == (1, 1), seen


def pushes_come_to_packets_too(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, plugin(fleet, "pusher.so") + ["--kind", "1:kv"])
        ops = Resp(gateway.resp)
        until("somebody owns it", lambda: succeeds(ops, "CALL", "x", "events") is not None)
        first, second = Client(address), Client(address)
        assert first.bind(b"a", kind=9).status == packets.NO_OWNER
        assert first.bind(b"a", kind=1).status == packets.REJECTED
        assert first.bind(b"shy").status == packets.REJECTED
        assert first.unbind().status == packets.BAD_REQUEST
        assert first.bind(b"a").status == packets.OK
        assert first.push() == (1, b"hello")
        for i in range(20):
            assert ops("CALL", "a", f"push {i}") == "0"
        assert [first.push() for _ in range(20)] == [(2 + i, b"%d" % i) for i in range(20)]
        # A newer one takes its place, and is kicked by the actor.
        assert second.bind(b"a").status == packets.OK
        assert first.notice(packets.KICK)[0] == REPLACED and first.closed()
        assert second.push() == (1, b"hello")
        assert ops("CALL", "a", "kick go away") == "0"
        assert second.notice(packets.KICK) == (KICKED, "go away") and second.closed()
        until("told", lambda: ops("CALL", "a", "events") == "BOUND REPLACED LOST2")
        third = Client(address)
        assert third.bind(b"a").status == packets.OK and third.unbind().status == packets.OK
        assert ops("CALL", "a", "events").endswith("BOUND LOST1")


def a_gateway_that_stops_says_so(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet)
        client = Client(address)
        until("somebody owns it", lambda: client.ask(b"a", b"x").status == packets.OK)
        gateway.kill(signal.SIGTERM)
        retry_ms, _ = client.notice(packets.GOAWAY)
        assert retry_ms > 0
        answer = client.ask(b"a", b"x")
        assert answer.status == packets.MOVING and answer.retry_ms > 0
        client.close()
        assert gateway.wait() == 0


main([requests_are_answered, nonsense_is_refused, pushes_come_to_packets_too, a_gateway_that_stops_says_so])
