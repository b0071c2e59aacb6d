#!/usr/bin/env python3
"""`ringhold conform`: gateways pass it, through TCP and WebSockets; what is none doesn't; its bytes are the page's."""
import base64
import hashlib
import os
import re
import socket
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import certificates
import packets
import websocket
from fleet import Fleet, Resp, free_port, main, succeeds, until

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "protocol-client.md")


# Why a vector isn't played.
SLOW, OPEN, KEYS = "takes minutes: --slow", "the gateway asks for a token", "the gateway asks for no token"
WS, SESSION = "needs a WebSocket: ws://", "needs an actor that takes a session: --id, --kind"
SKYNET, LESS = "needs skynet's frames: skynet://", "a frame of skynet's holds less"


def bare(text):
    return "".join(text.split())


def conform(fleet, address, *words):
    code, out, err = fleet.run("conform", address, *words, deadline=120)
    lines = out.splitlines()
    wrong = [text for i, line in enumerate(lines) if line.startswith("not ok") for text in lines[i : i + 2]]
    skipped = {line.split("# SKIP ")[1] for line in lines if "# SKIP" in line}
    return code, wrong or err, skipped, lines


def start(fleet):
    fleet.coordinators(1)
    pusher = os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "pusher.so")
    fleet.node("n1", ["--actor", pusher, "--kind", "1:echo"])


def serving(fleet, words):
    gateway = fleet.gateway("g1", words)
    until("somebody owns it", lambda: succeeds(Resp(gateway.resp), "CALL", "conform", "events") is not None)
    return gateway


def played_on_a_gateway(binary, words=(), secrets=""):
    with Fleet(binary) as fleet:
        start(fleet)
        more = ["--frames", "127.0.0.1:0", "--ws", "127.0.0.1:0", "--skynet", "127.0.0.1:0"]
        if secrets:
            path = fleet.data("keys")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
                f.write(secrets)
            more, words = [*more, "--auth-keys", path], [*words, "--keys", path]
        gateway = serving(fleet, more)
        wheres = {
            "tcp": gateway.fields["frames"],
            "ws": f"ws://{gateway.fields['ws']}/",
            "skynet": f"skynet://{gateway.fields['skynet']}",
        }
        for kind, carrier in (("0", "tcp"), ("1", "tcp"), ("0", "ws"), ("1", "ws"), ("0", "skynet"), ("1", "skynet")):
            where = wheres[carrier]
            code, wrong, skipped, lines = conform(fleet, where, "--kind", kind, "--pushes", "push hey", *words)
            assert code == 0, wrong
            assert lines[1] == f"1..{len(lines) - 3}", lines[:2]
            right = {SLOW, OPEN if secrets else KEYS}
            right |= {WS} if carrier != "ws" else set()
            right |= {LESS} if carrier == "skynet" else {SKYNET}
            right |= {SESSION} if kind == "1" else set()
            assert skipped == right, skipped


def a_gateway_passes_by_tls(binary):
    with Fleet(binary) as fleet:
        start(fleet)
        chain, key = certificates.make(fleet, "good")
        other, _ = certificates.make(fleet, "other")
        listeners = ["--frames-tls", "127.0.0.1:0", "--wss", "127.0.0.1:0"]
        fields = serving(fleet, [*listeners, "--tls-cert", chain, "--tls-key", key]).fields
        tcp, ws = f"tls://{fields['frames-tls']}", f"wss://localhost:{fields['wss'].rsplit(':', 1)[1]}/"
        for where in (tcp, ws):
            code, wrong, skipped, _ = conform(fleet, where, "--pushes", "push hey", "--ca", chain)
            assert code == 0, wrong
            assert skipped == {SLOW, KEYS, SKYNET} | ({WS} if where == tcp else set()), skipped
        code, wrong, _, _ = conform(fleet, ws, "--insecure-tls", "--only", "ping")
        assert code == 0, wrong
        for where, words in ((tcp, []), (ws, ["--ca", other])):
            code, out, _ = fleet.run("conform", where, *words)
            assert code == 1 and out.startswith("Bail out! "), (where, out)
        assert fleet.run("conform", tcp, "--ca", fleet.data("nothing.pem"))[0] == 1
        assert fleet.run("conform", tcp.replace("tls", "tcp"))[0] == 1


def a_gateway_passes(binary):
    played_on_a_gateway(binary)


def a_gateway_that_asks_for_tokens_passes(binary):
    played_on_a_gateway(binary, secrets=f"k9 hex:{'5a' * 32}\n", words=["--id", "conform"])


def the_page_and_the_vectors_agree(binary):
    with Fleet(binary) as fleet:
        code, out, _ = fleet.run("conform", "--list")
        assert code == 0
    sent = bare(out)
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    rows = re.findall(r"^\| (\d+) \| [^|]*\|[^|]*\|[^|]*\| `([0-9a-f ]+)` \|$", text, re.M)
    assert len(rows) >= 12, rows
    for type_, hexes in rows:
        assert int(bare(hexes)[:2], 16) == int(type_), (type_, hexes)
        assert len(bare(hexes)) == 8 + 2 * int(bare(hexes)[2:8], 16), hexes
        assert bare(hexes) in sent, f"no vector has {hexes}"
    tokens = re.findall(r"`(rh1\.k\d\.[A-Za-z0-9_.-]+)`", text)
    assert len(tokens) == 2 and all(token in sent for token in tokens), tokens


GREETING = bytes.fromhex("02000018 01000000 00007530 00010000 00000400 1122334455667788")


class Wrong:
    """Greets as a gateway does, and then does one thing wrong to all that come."""

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                try:
                    self.talk(client)
                except OSError:
                    pass  # it has heard enough

    def talk(self, client):
        client.recv(10)
        client.sendall(GREETING)
        client.recv(65536)
        client.sendall(self.answer)

    def close(self):
        self.listener.close()


def what_does_it_wrong_fails(binary):
    kick = packets.packet(packets.KICK, b"\0\0\0\x64bad")
    with Fleet(binary) as fleet:
        for answer, vector, says in (
            (packets.packet(packets.PONG, b"y"), "a ping comes back as a pong", "wanted 04 000001 78; got 04 000001 79"),
            (b"", "a ping comes back as a pong", "the gateway closed the connection"),
            (b"\4\0\0", "a ping comes back as a pong", "within a packet"),
            (kick, "a ping comes back as a pong", "got a kick with 100"),
            (kick + kick, "a packet of type 99", "wanted the end, and nothing before"),
            (packets.packet(packets.KICK, b"\0\0\0\x65"), "a packet of type 99", "wanted a kick with 100"),
            (packets.packet(packets.RESPONSE, b"\0\0\0\7\0\0\0\0\0"), "whose id is cut", "with status 9"),
        ):
            wrong = Wrong(answer)
            code, told, _, _ = conform(fleet, wrong.address, "--only", vector)
            assert code == 2 and len(told) == 2 and says in bare_blanks(told[1]), (code, told, says)
            wrong.close()
        code, out, _ = fleet.run("conform", f"127.0.0.1:{free_port()}")
        assert code == 1 and out.startswith("Bail out! "), out
        for words in (["conform"], ["conform", "nowhere"], ["conform", "http://127.0.0.1:1/"], ["conform", "127.0.0.1:1", "--id", ""]):
            assert fleet.run(*words)[0] == 1, words


class WrongWebSocket(Wrong):
    """The same through a WebSocket; or its handshake has this accept."""

    def __init__(self, answer, accept=None):
        self.accept = accept
        super().__init__(answer)

    def talk(self, client):
        file = client.makefile("rb")
        _, headers, _ = websocket.heads(file)
        if not headers:
            return
        proof = hashlib.sha1(headers["sec-websocket-key"].encode() + websocket.MAGIC).digest()
        accept = self.accept or base64.b64encode(proof).decode()
        lines = ["HTTP/1.1 101 Yes", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {accept}"]
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        file.read(len(websocket.frame(websocket.BINARY, packets.hello())))
        client.sendall(websocket.frame(websocket.BINARY, GREETING, mask=False))
        client.recv(65536)
        client.sendall(self.answer)


def what_breaks_a_websockets_rules_fails(binary):
    def frame(opcode, body, **more):
        return websocket.frame(opcode, body, **{"mask": False, **more})

    pong, close = packets.packet(packets.PONG, b"x"), frame(websocket.CLOSE, b"\x03\xea")
    kick = packets.packet(packets.KICK, b"\0\0\0\x64bad")
    ping, unknown = "a ping comes back as a pong", "a packet of type 99"
    with Fleet(binary) as fleet:
        for answer, vector, says in (
            (frame(websocket.BINARY, pong, mask=True), ping, "got a masked frame"),
            (frame(websocket.BINARY, pong, fin=False), ping, "got a fragment"),
            (frame(websocket.BINARY, pong, rsv=4), ping, "got a frame with reserved bits"),
            (frame(websocket.BINARY, pong + pong), ping, "not exactly one packet"),
            (frame(websocket.BINARY, pong[:-1]), ping, "not exactly one packet"),
            (frame(websocket.TEXT, pong), ping, "neither of bytes nor of control"),
            (frame(websocket.BINARY, pong)[:-1], ping, "within a packet"),
            (close, ping, "the gateway closed the WebSocket with 1002"),
            (close + close, ping, "a frame behind its close"),
            (frame(websocket.BINARY, kick), unknown, "its code is 0"),
            (frame(websocket.BINARY, kick) + close, unknown, "wanted a close with 1000; its code is 1002"),
        ):
            wrong = WrongWebSocket(answer)
            code, told, _, _ = conform(fleet, f"ws://{wrong.address}/", "--only", vector)
            assert code == 2 and len(told) == 2 and says in bare_blanks(told[1]), (code, told, says)
            wrong.close()
        other = WrongWebSocket(b"", accept="dGhlIHNhbXBsZSBub25jZQ==")
        code, out, _ = fleet.run("conform", f"ws://{other.address}/")
        assert code == 1 and out.startswith("Bail out! wanted Sec-WebSocket-Accept"), out
        other.close()


def bare_blanks(text):
    return " ".join(text.split())


main(
    [
        a_gateway_passes,
        a_gateway_passes_by_tls,
        a_gateway_that_asks_for_tokens_passes,
        the_page_and_the_vectors_agree,
        what_does_it_wrong_fails,
        what_breaks_a_websockets_rules_fails,
    ]
)
