#!/usr/bin/env python3
"""Packets through WebSockets: requests, sessions, what is no upgrade, frames that break the rules, the slow."""
import os
import resource
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
import websocket
from fleet import Fleet, Resp, main, succeeds, until
from websocket import BINARY, CLOSE, CONTINUED, FIN, PING, PONG, TEXT, Client, WebSocket, frame

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
NORMAL, GOING_AWAY, PROTOCOL, UNSUPPORTED, BAD_DATA, POLICY, TOO_LARGE = 1000, 1001, 1002, 1003, 1007, 1008, 1009
TRY_AGAIN = 1013


def start(fleet, *gateway, node=("--kind", "0:echo")):
    fleet.coordinators(1)
    fleet.node("n1", node)
    g = fleet.gateway("g1", ["--ws", "127.0.0.1:0", *gateway])
    return g, tuple(g.fields["ws"].rsplit(":", 1))


def figures(gateway):
    text = Resp(gateway.resp)("INFO", "transport")
    return {k: int(v) for k, v in (line.split(":") for line in text.split("\r\n") if ":" in line)}


def counts(gateway, **right):
    """Threads tell one another what they have counted some milliseconds later."""
    until(f"figures are {right}", lambda: right.items() <= figures(gateway).items())


def answered(address):
    client = Client(address)
    until("somebody owns it", lambda: client.ask(b"a", b"x").status == packets.OK)
    return client


def requests_are_answered(binary):
    for threads in ("1", "3"):
        with Fleet(binary) as fleet:
            gateway, address = start(fleet, "--threads", threads)
            client = answered(address)
            for size in (0, 1, 64, 110, 120, 65000):
                got = client.ask(b"id-%d" % size, b"p" * size)
                assert (got.status, got.payload) == (packets.OK, b"p" * size)
            client.send(*(packets.asking(packets.REQUEST, 1000 + i, b"id-%d" % (i % 7), b"%d" % i) for i in range(3000)))
            got = [client.response() for _ in range(3000)]
            assert sorted(a.request for a in got) == list(range(1000, 4000))
            assert all(a.status == packets.OK and int(a.payload) == a.request - 1000 for a in got)
            others = [Client(address) for _ in range(8)]
            assert all(other.ask(b"b", b"y").payload == b"y" for other in others)
            # One message may come in pieces, with pings between them; and a byte at a time.
            whole = packets.asking(packets.REQUEST, 7, b"a", b"in pieces")
            client.ws.send(frame(BINARY, whole[:3], fin=False), frame(PING, b"hey"), frame(CONTINUED, b"", fin=False))
            client.ws.send(frame(CONTINUED, whole[3:]))
            assert client.ws.read() == (PONG, b"hey")
            assert client.response().payload == b"in pieces"
            for byte in frame(BINARY, whole):
                client.ws.send(bytes([byte]))
            assert client.response().payload == b"in pieces"
            # Frames may be behind the request that asks for the upgrade.
            early = Client(address, greet=False, behind=frame(BINARY, packets.hello()))
            assert early.read()[0] == packets.HELLO_ACK
            client.ws.send(frame(CLOSE, b"\x03\xe8bye"))
            assert client.ws.closed() == NORMAL
            counts(gateway, ws_opened=10, ws_left=1)


def pushes_and_kicks_come(binary):
    plugin = os.path.join(os.path.dirname(binary), "tests", "plugins", "pusher.so")
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, node=("--actor", plugin))
        ops = Resp(gateway.resp)
        until("somebody owns it", lambda: succeeds(ops, "CALL", "x", "events") is not None)
        first, second = Client(address), Client(address)
        assert first.bind(b"a").status == packets.OK
        assert first.push() == (1, b"hello")
        for i in range(20):
            assert ops("CALL", "a", f"push {i}") == "0"
        assert [first.push() for _ in range(20)] == [(2 + i, b"%d" % i) for i in range(20)]
        assert second.bind(b"a").status == packets.OK
        assert first.notice(packets.KICK)[0] == 1
        assert first.ws.closed() == NORMAL
        assert ops("CALL", "a", "kick go away") == "0"
        assert second.notice(packets.KICK) == (1007, "go away")
        assert second.ws.closed() == NORMAL
        until("told", lambda: ops("CALL", "a", "events") == "BOUND REPLACED LOST2")
        # The protocol's own rules hold here too.
        third = Client(address, greet=False)
        third.send(packets.packet(packets.PING))
        assert third.notice(packets.KICK)[0] == 102
        assert third.ws.closed() == NORMAL


def other_requests_are_refused(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(
            fleet, "--ws-path", "/game", "--ws-origins", "https://a.example,https://b.example:8443")
        at = {"path": "/game"}
        table = [
            ("http_upgrade_required", 426, {"drop": ("Upgrade", "Connection")}),
            ("http_upgrade_required", 426, {"Sec_WebSocket_Version": "12"}),
            ("http_upgrade_required", 426, {"drop": ("Sec-WebSocket-Version",)}),
            ("http_not_found", 404, {"path": "/"}),
            ("http_not_found", 404, {"path": "/game/"}),
            ("http_method", 405, {"method": "POST"}),
            ("http_forbidden", 403, {"Origin": "https://evil.example"}),
            ("http_forbidden", 403, {"Origin": "null"}),
            ("http_bad_request", 400, {"version": "HTTP/1.0"}),
            ("http_bad_request", 400, {"drop": ("Host",)}),
            ("http_bad_request", 400, {"drop": ("Connection",)}),
            ("http_bad_request", 400, {"drop": ("Sec-WebSocket-Key",)}),
            ("http_bad_request", 400, {"Sec_WebSocket_Key": "c2hvcnQ="}),
            ("http_bad_request", 400, {"Content_Length": "5"}),
            ("http_bad_request", 400, {"X_Odd": "a\x01b"}),
            ("http_too_large", 431, {"X_Long": "x" * 9000}),
        ]
        right = {}
        for reason, status, odd in table:
            right[reason] = right.get(reason, 0) + 1
            check_refused(address, status, websocket.request(address, KEY, **{**at, **odd}))
        for garbage in (packets.hello(), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\r\n\r\n\r\n", b"GET /game\n\n\r\n\r\n"):
            right["http_bad_request"] += 1
            check_refused(address, 400, garbage)
        counts(gateway, **right, ws_opened=0)
        for origin in ("https://a.example", "https://B.example:8443"):
            Client(address, path="/game?token=no", Origin=origin).close()
        named = Client(address, path="/game", Sec_WebSocket_Protocol="other, ringhold.v1")
        assert named.ws.headers["sec-websocket-protocol"] == "ringhold.v1"
        assert "sec-websocket-protocol" not in Client(address, path="/game", Sec_WebSocket_Protocol="other").ws.headers


def check_refused(address, status, what):
    s = websocket.connect(address)
    s.sendall(what)
    with s.makefile("rb") as file:
        got, headers, text = websocket.answer(file)
        assert (got, headers["content-type"]) == (status, "text/plain") and text, (what, got, headers)
        if status == 426:
            assert headers["sec-websocket-version"] == "13" and headers["upgrade"] == "websocket"
        assert file.read(1) == b""
    s.close()


def broken_rules_are_closed(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet)
        good = answered(address)
        hello = packets.hello()
        large = packets.packet(packets.REQUEST, b"x" * 65536)
        table = [
            ("ws_text", UNSUPPORTED, frame(TEXT, b"hello")),
            ("ws_text", UNSUPPORTED, frame(TEXT, b"")),
            ("ws_protocol", PROTOCOL, frame(BINARY, hello, mask=False)),
            ("ws_protocol", PROTOCOL, frame(PING, b"x", mask=False)),
            ("ws_protocol", PROTOCOL, frame(BINARY, hello, rsv=4)),
            ("ws_protocol", PROTOCOL, frame(BINARY, hello, rsv=1)),
            ("ws_protocol", PROTOCOL, frame(3, b"x")),
            ("ws_protocol", PROTOCOL, frame(11, b"x")),
            ("ws_protocol", PROTOCOL, frame(CONTINUED, b"x")),
            ("ws_protocol", PROTOCOL, frame(BINARY, hello[:3], fin=False) + frame(BINARY, hello[3:])),
            ("ws_protocol", PROTOCOL, frame(PING, b"x" * 126)),
            ("ws_protocol", PROTOCOL, frame(PING, b"x", fin=False)),
            ("ws_protocol", PROTOCOL, frame(CLOSE, b"\x03")),
            ("ws_protocol", PROTOCOL, frame(CLOSE, b"\x03\xed")),
            ("ws_protocol", PROTOCOL, bytes([FIN | BINARY, 0x80 | 126, 0, 5]) + bytes(9)),
            ("ws_bad_utf8", BAD_DATA, frame(CLOSE, b"\x03\xe8\xc0\xaf")),
            ("ws_too_large", TOO_LARGE, frame(BINARY, large + b"x")),
            ("ws_too_large", TOO_LARGE, bytes([FIN | BINARY, 0x80 | 127]) + bytes([0x7F]) + bytes(12)),
            ("ws_too_large", TOO_LARGE, bytes([FIN | BINARY, 0x80 | 127]) + bytes([0x7F]) + bytes(11)),  # no byte of a body
            ("ws_left", 1012, frame(CLOSE, b"\x03\xf4why")),
            ("ws_left", 1013, frame(CLOSE, b"\x03\xf5why")),
            ("ws_left", 1014, frame(CLOSE, b"\x03\xf6")),
            ("ws_bad_message", POLICY, frame(BINARY, b"")),
            ("ws_bad_message", POLICY, frame(BINARY, hello[:3])),
            ("ws_bad_message", POLICY, frame(BINARY, hello[:-1])),
            ("ws_bad_message", POLICY, frame(BINARY, hello + hello)),
            ("ws_pings", POLICY, frame(PING, b"x") * 1000),
        ]
        right = {}
        for reason, code, what in table:
            right[reason] = right.get(reason, 0) + 1
            ws = WebSocket(address)
            ws.send(what)
            got = ws.closed()
            assert got == code, (reason, code, got, what[:40])
        # In pieces it may not be larger either: the packet's header tells.
        pieces = WebSocket(address)
        pieces.send(frame(BINARY, hello), frame(BINARY, packets.packet(packets.REQUEST, b"x" * 65537)[:100], fin=False))
        assert pieces.read()[1][0] == packets.HELLO_ACK
        assert pieces.read()[1][:1] == bytes([packets.KICK])
        assert pieces.closed() == NORMAL
        counts(gateway, **right)
        assert good.ask(b"a", b"still here").payload == b"still here"


def the_slow_are_closed(binary):
    """Who stops at any place of the handshake goes, by the time since it came."""
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, "--opening-time", "2s")
        good = answered(address)
        whole = websocket.request(address, KEY)
        slow = [websocket.connect(address) for _ in range(4)]
        for s, size in zip(slow, (0, 1, len(whole) // 2, len(whole) - 1)):
            s.sendall(whole[:size])
        for s in slow:
            with s.makefile("rb") as file:
                assert websocket.answer(file)[0] == 408
                assert file.read(1) == b""
            s.close()
        counts(gateway, http_timeout=4)
        # It is open, but says no hello; and half a message is none.
        all_silent = [WebSocket(address) for _ in range(2)]
        all_silent[1].send(frame(BINARY, packets.hello())[:8])
        for silent in all_silent:
            opcode, body = silent.read()
            assert (opcode, body[0]) == (BINARY, packets.KICK)
            assert silent.closed() == NORMAL
        assert good.ask(b"a", b"x").payload == b"x"


def who_does_not_read_is_not_read_from(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet)
        good = answered(address)
        ws = WebSocket(address)
        asked = packets.asking(packets.REQUEST, 1, b"a", b"x" * 60000)
        ws.send(frame(BINARY, packets.hello()))
        ws.socket.setblocking(False)
        sent = 0
        while sent < 64 << 20:  # far above what all buffers hold
            try:
                sent += ws.socket.send(frame(BINARY, asked))
            except BlockingIOError:
                break
        assert good.ask(b"a", b"x").payload == b"x"
        assert gateway.rss() < 200 * 1024 * 1024


def a_gateway_that_stops_says_so(binary):
    with Fleet(binary) as fleet:
        gateway, address = start(fleet)
        client = answered(address)
        idle = websocket.connect(address)
        gateway.kill(signal.SIGTERM)
        retry_ms, _ = client.notice(packets.GOAWAY)
        assert retry_ms > 0
        got = client.ask(b"a", b"x")
        assert got.status == packets.MOVING and got.retry_ms > 0
        client.ws.send(frame(CLOSE, b"\x03\xe9"))
        assert client.ws.closed() == GOING_AWAY
        idle.close()
        assert gateway.wait() == 0


def one_too_many_is_told(binary):
    keys_text = "k1 hex:" + "00" * 32 + "\n"
    with Fleet(binary) as fleet:
        path = fleet.data("keys")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(keys_text)
        gateway, address = start(fleet, "--auth-keys", path, "--unauthenticated-address", "2")
        held = [Client(address) for _ in range(2)]
        check_told(address)
        early = WebSocket(address, behind=frame(BINARY, packets.hello()) + frame(PING, b"x"))
        assert early.read()[1][0] == packets.GOAWAY
        assert early.closed() == TRY_AGAIN
        counts(gateway, turned_away_told=2, http_full=0, ws_opened=2)
        # What is no upgrade is told that, full or not.
        check_refused(address, 404, websocket.request(address, KEY, path="/else"))
        check_refused(address, 400, packets.hello())
        assert len(held[0].auth(packets.token("k1", bytes(32), b"me"))) == 3
        again = Client(address)
        assert again.ack.flags == packets.ACK_AUTH


def check_told(address):
    """Turned away, in words that a page can read: when to come back."""
    ws = WebSocket(address)
    opcode, body = ws.read()
    assert (opcode, body[0]) == (BINARY, packets.GOAWAY) and len(body) > 8, (opcode, body)
    assert int.from_bytes(body[4:8], "big") > 0
    assert ws.closed() == TRY_AGAIN


def those_who_wait_to_be_told_are_few(binary):
    """A socket that is turned away and says nothing costs one of 1024 places, for as long as it may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, "--address-clients", "1", "--opening-time", "60s")
        good = answered(address)
        before = gateway.rss()
        silent = [websocket.connect(address) for _ in range(1024)]
        check_refused(address, 503, websocket.request(address, KEY))
        counts(gateway, http_full=1, turned_away_told=0)
        assert gateway.rss() - before < 64 << 20
        silent.pop().close()
        silent[0].sendall(websocket.request(address, KEY))
        assert silent[0].recv(12) == b"HTTP/1.1 101"
        counts(gateway, turned_away_told=1)
        until("there is a place again", lambda: refused_with(address) == 101)
        for s in silent:
            s.close()
        assert good.ask(b"a", b"still here").payload == b"still here"
    with Fleet(binary) as fleet:
        gateway, address = start(fleet, "--address-clients", "1", "--opening-time", "2s")
        good = answered(address)
        with websocket.connect(address) as s, s.makefile("rb") as file:
            assert websocket.answer(file)[0] == 408
            assert file.read(1) == b""
        assert good.ask(b"a", b"still here").payload == b"still here"


def refused_with(address):
    with websocket.connect(address) as s, s.makefile("rb") as file:
        s.sendall(websocket.request(address, KEY))
        return websocket.answer(file)[0]


main([
    requests_are_answered,
    pushes_and_kicks_come,
    other_requests_are_refused,
    broken_rules_are_closed,
    the_slow_are_closed,
    who_does_not_read_is_not_read_from,
    a_gateway_that_stops_says_so,
    one_too_many_is_told,
    those_who_wait_to_be_told_are_few,
])
