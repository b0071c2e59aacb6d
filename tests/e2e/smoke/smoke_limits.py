#!/usr/bin/env python3
"""Limits of a gateway: who is turned away hears why and when to come back, whatever it says itself; who asks
too much is told so; operators get in meanwhile."""
import os
import socket
import struct
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
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
        here = [Client(address, source=f"127.0.1.{i + 1}") for i in range(63)]
        assert refused(address) >= 1000
        assert figures(gateway)["refused_full"] == 1
        assert figures(gateway)["ready"] == 0
        for client in here:
            client.close()
        counts(gateway, ready=1)


SECRET, STUCK, ECHO = b"s" * 32, 0, 7
SHARE = 128  # requests of one token


def start_known(fleet, *limits):
    """As start(), with tokens; actors of kind STUCK, which answer nothing, are there as well."""
    keys = fleet.data("keys")
    with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
        f.write(f"k hex:{SECRET.hex()}\n")
    fleet.coordinators(1)
    unruly = os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "unruly.so")
    fleet.node("n1", ("--kind", f"{ECHO}:echo", "--actor", unruly))
    gateway = fleet.gateway("g1", ["--frames", "127.0.0.1:0", "--auth-keys", keys, *limits])
    return gateway, tuple(gateway.fields["frames"].rsplit(":", 1))


def known(address, who, kind=0, source=None):
    """A connection that has shown its token; or None, and why it was told to go."""
    client = Client(address, source=source)
    client.send(packets.packet(packets.AUTH, packets.token("k", SECRET, who, kind).encode()))
    type_, body = client.wait(packets.AUTH_OK, packets.GOAWAY)
    return (client, None) if type_ == packets.AUTH_OK else (None, body[4:].decode())


def all_are_answered(address, count):
    for i in range(count):
        player, why = known(address, b"player-%d" % i, ECHO)
        assert player is not None, why
        assert player.ask(b"player-%d" % i, b"x", kind=ECHO).status == packets.OK
        player.close()


def one_token_asks_no_more_than_its_share(binary):
    """Of 40 x 64 requests to one actor, which answers none, few are taken; all others are served."""
    with Fleet(binary) as fleet:
        gateway, address = start_known(fleet, "--deadline-ms", "3000")
        fleet.settled(["n1"])
        lines = [known(address, b"greedy", STUCK)[0] for _ in range(40)]
        for line in lines:
            line.send(*(packets.asking(packets.REQUEST, i + 1, b"greedy", b"defer", STUCK) for i in range(64)))
        until("most of them have to wait", lambda: figures(gateway)["rests_entity"] >= len(lines) - SHARE // 64)
        assert figures(gateway)["in_flight"] <= SHARE + len(lines), figures(gateway)
        all_are_answered(address, 50)
        # They get no answer but that there is none; then those that waited go on.
        assert lines[0].response().status == packets.TIMEOUT
        until("others of them are under way", lambda: figures(gateway)["requests"] > 50 + 2 * SHARE)
        assert figures(gateway)["in_flight"] <= SHARE + len(lines), figures(gateway)
        all_are_answered(address, 50)


def one_token_has_its_share_of_connections(binary, threads="1"):
    """An eighth of what is free, and others get in; an address has eight of nine."""
    with Fleet(binary) as fleet:
        gateway, address = start_known(fleet, "--max-clients", "600", "--threads", threads)
        fleet.settled(["n1"])
        came = [known(address, b"greedy", ECHO, f"127.0.1.{i % 4 + 1}") for i in range(150)]
        lines = [line for line, _ in came if line is not None]
        told = [why for line, why in came if line is None]
        assert 16 <= len(lines) <= 600 // 9 + 2 * int(threads), len(lines)
        assert set(told) == {"this entity has used its share of connections: the rest is for others"}, told
        counts(gateway, refused_entity_share=len(told))
        all_are_answered(address, 100)


def one_token_has_its_share_of_each_thread(binary):
    one_token_has_its_share_of_connections(binary, "3")


def one_address_leaves_room_for_others(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, "--max-clients", "180")
        here, told = [], None
        while told is None:
            client = Client(address, greet=False)
            client.send(packets.hello())
            type_, body = client.wait(packets.HELLO_ACK, packets.GOAWAY)
            here.append(client)
            told = body[4:].decode() if type_ == packets.GOAWAY else None
        assert told == "this address has used its share of connections: the rest is for others", told
        assert 155 <= len(here) <= 161, len(here)
        counts(gateway, refused_address_share=1, refused_full=0)
        for _ in range(5):
            here.append(Client(address, source="127.0.0.9"))
            assert here[-1].ask(b"a", b"x").status == packets.OK


main(
    [
        who_asks_too_much_is_told_when_to_ask_again,
        an_address_has_so_many_connections,
        threads_have_one_door,
        a_storm_is_given_appointments,
        players_leave_room_to_operators,
        one_token_asks_no_more_than_its_share,
        one_token_has_its_share_of_connections,
        one_token_has_its_share_of_each_thread,
        one_address_leaves_room_for_others,
    ]
)
