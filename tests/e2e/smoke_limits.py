#!/usr/bin/env python3
"""Limits of a gateway: who is turned away hears why and when to come back, whatever it says itself; who asks
too much is told so; operators get in meanwhile."""
import socket
import struct
import time

import packets
from fleet import Fleet, Resp, main, until
from packets import Client

RATE_LIMITED = 11


def figures(gateway):
    """By one connection: the room of operators is small in these tests."""
    if not hasattr(gateway, "operator"):
        gateway.operator = Resp(gateway.resp)
    text = gateway.operator("INFO")
    return {k: int(v) for k, v in (w.split(":") for w in text.split("\r\n") if ":" in w) if v.isdigit()}


def counts(gateway, **right):
    """Threads tell one another what they have counted some milliseconds later."""
    until(f"figures are {right}", lambda: right.items() <= figures(gateway).items())


def start(fleet, *limits):
    fleet.coordinators(1)
    fleet.node("n1", ("--kind", "0:echo"))
    gateway = fleet.gateway("g1", ["--frames", "127.0.0.1:0", *limits])
    return gateway, tuple(gateway.fields["frames"].rsplit(":", 1))


def refused(address, said=b""):
    """When to come back; the gateway closes then."""
    client = Client(address, greet=False)
    if said:
        client.send(said)
    retry_ms, text = client.notice(packets.GOAWAY)
    assert retry_ms > 0 and text, (retry_ms, text)
    assert client.closed()
    client.close()
    return retry_ms


def who_asks_too_much_is_told_when_to_ask_again(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, "--request-rate", "1", "--request-burst", "3")
        client = Client(address)
        client.send(*(packets.asking(packets.REQUEST, 100 + i, b"a", b"x") for i in range(5)))
        answers = sorted(client.response() for _ in range(5))
        assert [a.status == RATE_LIMITED for a in answers] == [False] * 3 + [True] * 2, answers
        assert all(0 < a.retry_ms <= 1001 for a in answers[3:]), answers
        counts(gateway, rate_limited=2)
        until("it is answered when it waits", lambda: client.ask(b"a", b"x").status == packets.OK, pause=1.1)
        client.close()


def an_address_has_so_many_connections(binary, threads="1"):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, "--address-clients", "3", "--threads", threads)
        here = [Client(address) for _ in range(3)]
        # Who has said much already, hears it too: a close on what it said would lose it.
        for said in (b"", packets.hello(), packets.hello() + packets.asking(packets.REQUEST, 1, b"a", b"x" * 30000)):
            assert refused(address, said) >= 5000
        counts(gateway, refused_address_connections=3, rejected_connections=3, ready=1)
        other = socket.create_connection((address[0], int(address[1])), source_address=("127.0.0.2", 0))
        other.sendall(packets.hello())
        assert other.recv(1)[0] == packets.HELLO_ACK
        here.pop().close()

        def comes_in():
            client = Client(address, greet=False)
            client.send(packets.hello())
            return client.wait(packets.HELLO_ACK, packets.GOAWAY)[0] == packets.HELLO_ACK

        until("there is room", comes_in)


def threads_have_one_door(binary):
    an_address_has_so_many_connections(binary, "3")


def a_storm_is_given_appointments(binary):
    """A burst of 5, then 20 a second: of 300 few come in, the others are told when."""
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, "--accept-rate", "20", "--accept-burst", "5")
        assert figures(gateway)["ready"] == 1
        began = time.monotonic()
        storm = [Client(address, greet=False) for _ in range(300)]
        for client in storm:
            client.send(packets.hello())
        first = [client.wait(packets.HELLO_ACK, packets.GOAWAY) for client in storm]
        passed = time.monotonic() - began
        # Tools get in, and see it for a second after the last one was turned away.
        assert figures(gateway)["ready"] == 0 or time.monotonic() - began > 1
        hints = [struct.unpack(">I", body[:4])[0] for type_, body in first if type_ == packets.GOAWAY]
        let_in = 300 - len(hints)
        assert 5 <= let_in <= 5 + 20 * passed + 1, (let_in, passed)
        # The last is told to come when the rate has had time for those before it, or a quarter later.
        assert max(hints) >= len(hints) * 50 - passed * 1000, max(hints)
        assert max(hints) <= (len(hints) * 50 + 200) * 1.25, max(hints)
        assert len(set(hints)) > len(hints) / 4
        counts(gateway, refused_accept_rate=len(hints))
        for client in storm:
            client.close()


def players_leave_room_to_operators(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, "--max-clients", "64")  # one of which is no player's
        here = [Client(address) for _ in range(63)]
        assert refused(address) >= 1000
        assert figures(gateway)["refused_full"] == 1
        assert figures(gateway)["ready"] == 0
        for client in here:
            client.close()
        counts(gateway, ready=1)


main(
    [
        who_asks_too_much_is_told_when_to_ask_again,
        an_address_has_so_many_connections,
        threads_have_one_door,
        a_storm_is_given_appointments,
        players_leave_room_to_operators,
    ]
)
