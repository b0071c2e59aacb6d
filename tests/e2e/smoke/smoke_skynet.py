#!/usr/bin/env python3
"""Players whose packets come as frames of skynet: asked, pushed to, kicked, and what breaks the rules."""
import os
import socket
import struct
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, main, succeeds, until

BAD_PACKET, TOO_LARGE = 100, 101


def framed(packet):
    """Of `u8 type, u24 size, body`: `u16 size, u8 type, body`."""
    return struct.pack(">H", len(packet) - 3) + packet[:1] + packet[4:]


class Client(packets.Client):
    def send(self, *all_of_them):
        self.socket.sendall(b"".join(framed(p) for p in all_of_them))

    def read(self):
        head = self.file.read(2)
        if len(head) < 2:
            raise ConnectionError("closed")
        body = self.file.read(int.from_bytes(head, "big"))
        return body[0], body[1:]


def start(fleet, *more):
    fleet.coordinators(1)
    pusher = os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "pusher.so")
    fleet.node("n1", ["--actor", pusher, "--kind", "1:echo"])
    g = fleet.gateway("g1", ["--skynet", "127.0.0.1:0", *more])
    ops = Resp(g.resp)
    until("somebody owns it", lambda: succeeds(ops, "CALL", "@1/x", "x") is not None)
    until("and of the other kind", lambda: succeeds(ops, "CALL", "x", "events") is not None)
    return tuple(g.fields["skynet"].rsplit(":", 1)), ops


def counted(ops, name, value):
    until(f"{name} is {value}", lambda: f"{name}:{value}\r\n" in ops("INFO", "transport"))


def packets_come_in_frames(binary):
    with Fleet(binary) as fleet:
        address, ops = start(fleet)
        client = Client(address)
        largest = b"x" * (65534 - 9)
        for payload in (b"", b"hey", largest):
            assert client.ask(b"a", payload, kind=1)[1:] == (packets.OK, 0, payload)
        # Byte by byte, several in one write: frames have no other borders.
        for byte in framed(packets.asking(packets.REQUEST, 8, b"a", b"slow", kind=1)):
            client.socket.sendall(bytes([byte]))
        assert client.response().payload == b"slow"
        names = range(100, 200)
        client.send(*(packets.asking(packets.REQUEST, n, b"a", b"%d" % n, kind=1) for n in names))
        assert [client.response().request for _ in names] == list(names)
        assert client.bind(b"me").status == packets.OK and client.push() == (1, b"hello")
        assert ops("CALL", "me", "push on") == "0" and client.push() == (2, b"on")
        assert ops("CALL", "me", "kick away") == "0"
        assert client.notice(packets.KICK) == (1007, "away") and client.closed()
        counted(ops, "frame_opened", 1)


def what_does_not_fit_ends_the_connection(binary):
    with Fleet(binary) as fleet:
        address, ops = start(fleet)
        client = Client(address)
        assert client.bind(b"me").status == packets.OK and client.push() == (1, b"hello")
        ops("CALL", "me", "flood 1")  # 64 KiB
        assert client.notice(packets.KICK)[0] == TOO_LARGE and client.closed()
        counted(ops, "frame_too_large", 1)
        client = Client(address)
        client.socket.sendall(b"\0\0")
        assert client.notice(packets.KICK)[0] == BAD_PACKET and client.closed()
        counted(ops, "frame_empty", 1)
        # Not greeted, and a client of the other port.
        for words in (framed(packets.asking(packets.REQUEST, 1, b"a")), packets.hello() + bytes(300)):
            stranger = Client(address, greet=False)
            stranger.socket.sendall(words)
            assert stranger.notice(packets.KICK)[0] in (BAD_PACKET, 102) and stranger.closed()
        assert Client(address).ask(b"a", b"well", kind=1).payload == b"well"


def who_is_turned_away_is_told_in_a_frame(binary):
    with Fleet(binary) as fleet:
        address, _ = start(fleet, "--address-clients", "1")
        client = Client(address)
        late = Client(address, greet=False)
        retry_ms, _ = late.notice(packets.GOAWAY)
        assert retry_ms > 0 and late.closed()
        client.socket.shutdown(socket.SHUT_WR)
        assert client.closed()


if __name__ == "__main__":
    main([packets_come_in_frames, what_does_not_fit_ends_the_connection, who_is_turned_away_is_told_in_a_frame])
