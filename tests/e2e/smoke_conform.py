#!/usr/bin/env python3
"""`ringhold conform`: gateways pass it, what is none doesn't, and its bytes are those of the protocol's page."""
import os
import re
import socket
import threading

import packets
from fleet import Fleet, Resp, free_port, main, succeeds, until

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "protocol-client.md")


def bare(text):
    return "".join(text.split())


def conform(fleet, address, *words):
    code, out, err = fleet.run("conform", address, *words, deadline=120)
    lines = out.splitlines()
    wrong = [text for i, line in enumerate(lines) if line.startswith("not ok") for text in lines[i : i + 2]]
    skipped = [line for line in lines if "# SKIP" in line]
    return code, wrong or err, len(skipped), lines


def played_on_a_gateway(binary, *more, words=(), secrets=""):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        pusher = os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "pusher.so")
        fleet.node("n1", ["--actor", pusher, "--kind", "1:echo"])
        if secrets:
            path = fleet.data("keys")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
                f.write(secrets)
            more, words = [*more, "--auth-keys", path], [*words, "--keys", path]
        gateway = fleet.gateway("g1", ["--frames", "127.0.0.1:0", *more])
        until("somebody owns it", lambda: succeeds(Resp(gateway.resp), "CALL", "conform", "events") is not None)
        for kind in ("0", "1"):
            code, wrong, skipped, lines = conform(fleet, gateway.fields["frames"], "--kind", kind, *words)
            assert code == 0, wrong
            assert lines[1] == f"1..{len(lines) - 3}", lines[:2]
            assert skipped < len(lines) / 4, [line for line in lines if "SKIP" in line]


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
                client.recv(10)
                client.sendall(bytes.fromhex("02000018 01000000 00007530 00010000 00000400 1122334455667788"))
                client.recv(65536)
                client.sendall(self.answer)

    def close(self):
        self.listener.close()


def what_does_it_wrong_fails(binary):
    kick = packets.packet(packets.KICK, b"\0\0\0\x64bad")
    with Fleet(binary) as fleet:
        for answer, vector, says in (
            (packets.packet(packets.PONG, b"y"), "a ping comes back as a pong", "wanted 04 000001 78; got 04 000001 79"),
            (b"", "a ping comes back as a pong", "it closed the connection"),
            (b"\4\0\0", "a ping comes back as a pong", "within a packet"),
            (kick, "a ping comes back as a pong", "got a kick with 100"),
            (kick + kick, "a packet of type 99", "nothing behind a kick"),
            (packets.packet(packets.KICK, b"\0\0\0\x65"), "a packet of type 99", "wanted a kick with 100"),
            (packets.packet(packets.RESPONSE, b"\0\0\0\7\0\0\0\0\0"), "whose id is cut", "with status 9"),
        ):
            wrong = Wrong(answer)
            code, told, _, _ = conform(fleet, wrong.address, "--only", vector)
            assert code == 2 and len(told) == 2 and says in bare_blanks(told[1]), (code, told, says)
            wrong.close()
        code, out, _ = fleet.run("conform", f"127.0.0.1:{free_port()}")
        assert code == 1 and out.startswith("Bail out! "), out
        for words in (["conform"], ["conform", "nowhere"], ["conform", "127.0.0.1:1", "--id", ""]):
            assert fleet.run(*words)[0] == 1, words


def bare_blanks(text):
    return " ".join(text.split())


main(
    [
        a_gateway_passes,
        a_gateway_that_asks_for_tokens_passes,
        the_page_and_the_vectors_agree,
        what_does_it_wrong_fails,
    ]
)
