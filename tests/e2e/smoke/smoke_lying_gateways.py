#!/usr/bin/env python3
"""Gateways that lie to the clients of games: nothing that they say ends a client, fills it, or has it send for ever."""
import base64
import hashlib
import random
import socket
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import main
from smoke_clients import Player, Tcp, takes_websockets
from websocket import BINARY, CLOSE, MAGIC, TEXT, frame, heads

ACK = packets.packet(packets.HELLO_ACK, struct.pack(">BBHIIIQ", 1, 0, 0, 30000, 65536, 1024, 7))
NAME_UNBIND, REBOUND = 0x7FFFFFFE, 18
LARGE = 1000  # bytes of a payload that some of these call too large


def ack(version=1, flags=0, heartbeat_ms=30000, largest=65536):
    return packets.packet(packets.HELLO_ACK, struct.pack(">BBHIIIQ", version, 0, flags, heartbeat_ms, largest, 1024, 7))


def response(name, status, payload=b""):
    return packets.packet(packets.RESPONSE, struct.pack(">IBI", name, status, 0) + payload)


def notice(type_, number):
    return packets.packet(type_, struct.pack(">I", number) + b"text")


class Talk:
    """A connection of a client, over TCP."""

    def __init__(self, plain):
        self.socket = plain
        self.file = plain.makefile("rb")

    def exactly(self, size):
        data = self.file.read(size)
        if len(data) < size:
            raise ConnectionError("closed")
        return data

    def send(self, *all_packets):
        self.socket.sendall(b"".join(all_packets))

    def read(self):
        head = self.exactly(4)
        return head[0], self.exactly(int.from_bytes(head[1:], "big"))

    def too_large(self):
        self.send(notice(packets.KICK, 101))

    def greet(self, with_=ACK):
        assert self.read()[0] == packets.HELLO
        self.send(with_)

    def until_closed(self):
        while self.file.read(65536):
            pass


class WebTalk(Talk):
    """Over a WebSocket."""

    def __init__(self, plain):
        super().__init__(plain)
        key = heads(self.file)[1]["sec-websocket-key"].encode()
        proof = base64.b64encode(hashlib.sha1(key + MAGIC).digest()).decode()
        upgrade = ["HTTP/1.1 101 x", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {proof}"]
        plain.sendall(("\r\n".join(upgrade) + "\r\n\r\n").encode())

    def send(self, *all_packets):
        self.socket.sendall(b"".join(frame(BINARY, p, mask=False) for p in all_packets))

    def read(self):
        head = self.exactly(2)
        size = head[1] & 0x7F
        if size > 125:
            size = int.from_bytes(self.exactly(2 if size == 126 else 8), "big")
        mask = self.exactly(4)
        body = bytes(b ^ mask[i % 4] for i, b in enumerate(self.exactly(size)))
        if head[0] & 0xF == CLOSE:
            raise ConnectionError("closed")
        assert head[0] & 0xF == BINARY, head
        return body[0], body[4:]

    def too_large(self):
        self.socket.sendall(frame(CLOSE, struct.pack(">H", 1009), mask=False))


class Gateway:
    """Lies to its first connections, one lie each, and serves the others: it echoes."""

    def __init__(self, talk, lies=(), largest=1 << 24):
        self.talk, self.lies, self.largest = talk, list(lies), largest
        self.came = 0
        self.seen = []  # payloads of requests
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = ("ws://" if talk is WebTalk else "") + "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                plain = self.listener.accept()[0]
            except OSError:
                return
            lie = self.lies[self.came] if self.came < len(self.lies) else None
            self.came += 1
            threading.Thread(target=self.meet, args=(plain, lie), daemon=True).start()

    def meet(self, plain, lie):
        talk = None
        try:
            talk = self.talk(plain)
            if lie is None:
                talk.greet()
                self.serve(talk)
            else:
                lie(self, talk)
        except OSError:
            pass  # the client is gone, as it may be
        if talk is not None:
            talk.file.close()
        plain.close()

    def serve(self, talk):
        while True:
            type_, body = talk.read()
            if type_ not in (packets.REQUEST, packets.BIND):
                continue
            name, flags, size = struct.unpack(">IBB", body[:6])
            payload = body[8 + (4 if flags & packets.DEADLINE else 0) + size :]
            if type_ == packets.BIND:
                talk.send(response(name, packets.REJECTED, b"REFUSED"))
                continue
            self.seen.append(payload)
            if len(payload) > self.largest:
                talk.too_large()
                talk.until_closed()
                return
            talk.send(response(name, packets.OK, payload))


# ---- lies that end the connection, which the client sees through before it asks anything


def instead(*what):
    """Something else in the place of a hello-ack."""

    def lie(_, talk):
        talk.greet(b"")
        talk.send(*what)
        talk.until_closed()

    return lie


def behind(*what):
    """Something behind a good greeting."""
    return instead(ACK, *what)


def raw(*what):
    """Bytes that are no packets, whatever carries them."""

    def lie(_, talk):
        talk.greet()
        talk.socket.sendall(b"".join(what))
        talk.socket.shutdown(socket.SHUT_WR)
        talk.until_closed()

    return lie


noise = random.Random(4711).randbytes(1 << 16)
ENDING = [
    instead(ACK[:20]),
    instead(packets.packet(packets.HELLO_ACK, ACK[4:20])),
    instead(ack(version=0)),
    instead(ack(version=2)),
    instead(ack(largest=0)),
    instead(ack(largest=511)),
    instead(packets.packet(packets.AUTH_OK, bytes(10) + b"\1x")),
    instead(response(1, packets.OK)),
    instead(packets.packet(packets.PUSH, bytes(8))),
    instead(notice(packets.GOAWAY, 0)),
    instead(notice(packets.KICK, 102)),
    behind(ACK),
    behind(packets.packet(packets.AUTH_OK, bytes(10) + b"\1x")),
    behind(packets.packet(0)),
    behind(packets.packet(99)),
    behind(packets.packet(packets.RESPONSE, bytes(8))),
    behind(packets.packet(packets.PUSH, bytes(7))),
    behind(packets.packet(packets.BEGUN, bytes(35))),
    behind(packets.packet(packets.KICK, bytes(3))),
    behind(packets.packet(packets.GOAWAY, bytes(3))),
    behind(packets.packet(REBOUND, bytes(10) + b"\0")),
    behind(packets.packet(REBOUND, bytes(10) + b"\xffx")),
    behind(packets.packet(packets.PING, bytes(65))),
    behind(packets.packet(packets.REQUEST, bytes(20))),
    behind(notice(packets.KICK, 104)),
    behind(notice(packets.KICK, 105)),
    behind(packets.packet(packets.PUSH, bytes(2 << 20))),  # larger than it takes
    raw(b"\x09\xff\xff\xff" * 1000),
    raw(noise),
    raw(b""),
]


# ---- lies in a connection that goes on


def unasked(gateway, talk):
    """Answers to what nobody asked, and twice."""
    talk.greet()
    junk = [response(n, s, b"junk") for n in (0, 77, 0xFFFFFFFF, NAME_UNBIND) for s in (0, 2, 11, 255)]
    serve, send = gateway.serve, talk.send
    talk.send = lambda answer: send(*junk, answer, answer, *junk, packets.packet(packets.PUSH, b"\xff" * 8 + b"x"))
    serve(talk)


def flood(gateway, talk):
    """Pings, pushes and answers, and it reads none of what they bring about."""
    talk.greet()
    one = [packets.packet(packets.PING, bytes(64)), packets.packet(packets.PUSH, bytes(8)), response(9, 0, bytes(64))]
    for _ in range(300):
        talk.send(*(one * 100))
    gateway.serve(talk)


def later_statuses(gateway, talk):
    """A status that this version doesn't know is UNKNOWN."""
    talk.greet()
    send = talk.send
    talk.send = lambda answer: send(answer if answer[8] else answer[:8] + b"\x63" + answer[9:])
    gateway.serve(talk)


# ---- the tests


def every_way(binary):
    for program in Tcp().programs(binary):
        yield program, Talk
        if takes_websockets(program):
            yield program, WebTalk


def at_once(run, jobs):
    with ThreadPoolExecutor(max_workers=12) as pool:
        for future in [pool.submit(run, *job) for job in jobs]:
            future.result()


def a_client_survives_what_makes_no_sense(binary):
    def run(program, talk, lies):
        gateway = Gateway(talk, lies)
        with Player(program, [gateway.url], 0, "me") as player:
            player.next("refused")
            while player.ask("still here") != "answer OK still here":
                assert player.seen[-1].split()[1] in ("UNKNOWN", "MOVING"), player.seen
            assert gateway.came > len(lies), player.seen
            assert all(b"still here" == payload for payload in gateway.seen)
            player.leave()

    chunks = [ENDING[i : i + 3] for i in range(0, len(ENDING), 3)]
    at_once(run, [(program, talk, lies) for program, talk in every_way(binary) for lies in chunks])


def what_nobody_asked_for_is_passed_over(binary):
    def run(program, talk, lie):
        gateway = Gateway(talk, [lie])
        with Player(program, [gateway.url], 0, "me") as player:
            player.next("refused")
            for i in range(20):
                expected = f"answer OK {i}" if lie is not later_statuses else "answer"
                assert player.ask(str(i)).startswith(expected), player.seen
            if lie is flood:
                with open(f"/proc/{player.popen.pid}/status", encoding="ascii") as f:
                    grown = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
                assert grown < 200 * 1024, f"{grown} KiB"
            assert gateway.came == 1 and gateway.seen == [str(i).encode() for i in range(20)], (program, talk, lie, gateway.came, gateway.seen, player.seen)
            player.leave()

    at_once(run, [(*way, lie) for way in every_way(binary) for lie in (unasked, flood, later_statuses)])


def kicks_for_good_are_for_good(binary):
    def run(program, talk, code):
        gateway = Gateway(talk, [behind(notice(packets.KICK, code)) if code != 106 else instead(ack(flags=1))])
        with Player(program, [gateway.url], 0, "me") as player:
            assert player.next("kicked").startswith(f"kicked {code} "), player.seen
            player.next("ended")
            assert gateway.came == 1

    codes = (0, 1, 100, 101, 103, 106, 113, 1000, 0xFFFFFFFF)
    at_once(run, [(*way, code) for way in every_way(binary) for code in codes])


def what_was_called_too_large_is_not_sent_again(binary):
    """A gateway that takes less than it says: by a kick over TCP, by a close over WebSockets."""

    def run(program, talk):
        gateway = Gateway(talk, largest=LARGE)
        with Player(program, [gateway.url], 0, "me") as player:
            player.next("refused")
            for turn in range(3):
                big = "x" * (LARGE + 1 + turn)
                player.say(big, "small")
                ends = {player.next("answer"), player.next("answer")}
                assert any(end.startswith("answer BAD_REQUEST") for end in ends), ends
                assert ends & {"answer OK small", "answer UNKNOWN", "answer UNKNOWN "}, ends
                assert player.ask("still here") == "answer OK still here"
                assert gateway.seen.count(big.encode()) == 1
            assert gateway.came == 4
            player.leave()

    at_once(run, list(every_way(binary)))


def text_over_a_websocket_ends_the_connection(binary):
    def lie(_, talk):
        talk.greet()
        talk.socket.sendall(frame(TEXT, b"hello", mask=False))
        talk.until_closed()

    for program, talk in every_way(binary):
        if talk is WebTalk:
            gateway = Gateway(talk, [lie])
            with Player(program, [gateway.url], 0, "me") as player:
                player.next("lost the gateway sent text")
                assert player.ask("still here") == "answer OK still here"
                player.leave()


if __name__ == "__main__":
    main(
        [
            a_client_survives_what_makes_no_sense,
            what_nobody_asked_for_is_passed_over,
            kicks_for_good_are_for_good,
            what_was_called_too_large_is_not_sent_again,
            text_over_a_websocket_ends_the_connection,
        ]
    )
