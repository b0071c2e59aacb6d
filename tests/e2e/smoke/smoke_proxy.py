#!/usr/bin/env python3
"""Players behind proxies: whose a connection is stands in a header, and limits and lists go by that."""
import os
import resource
import socket
import struct
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import certificates
import packets
import websocket
from fleet import Fleet, Resp, main, until

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def line(address, port=1234):
    family = "TCP6" if ":" in address else "TCP4"
    return f"PROXY {family} {address} {address} {port} 443\r\n".encode()


def binary(address, port=1234, tlvs=b"", command=0x21):
    kind, family = (socket.AF_INET6, 0x21) if ":" in address else (socket.AF_INET, 0x11)
    body = socket.inet_pton(kind, address) * 2 + struct.pack(">HH", port, 443) + tlvs
    return SIGNATURE + struct.pack(">BBH", command, family, len(body)) + body


class Behind(packets.Client):
    """A client whose first bytes are a proxy's."""

    def __init__(self, address, header, tls=None, behind=packets.hello()):  # pylint: disable=super-init-not-called
        self.socket = websocket.connect(address)
        self.kept, self.last = [], 0
        if tls is None:
            self.socket.sendall(header + behind)
        else:
            self.socket.sendall(header)
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
            self.socket.sendall(behind)
        self.file = self.socket.makefile("rb")

    def greeted(self):
        assert self.wait(packets.HELLO_ACK)
        return self


def start(fleet, *more, trusted="127.0.0.0/8,::1"):
    fleet.coordinators(1)
    fleet.node("n1", ["--kind", "0:echo"])
    gateway = fleet.gateway("g1", ["--frames", "127.0.0.1:0", "--ws", "127.0.0.1:0", "--proxy-from", trusted, *more])
    redis = Resp(gateway.resp)  # RESP is not asked
    until("somebody owns it", lambda: answers(redis))
    return gateway, redis


def answers(redis):
    try:
        return redis("CALL", "a", "x") == "x"
    except Exception:  # pylint: disable=broad-except
        return False


def at(gateway, entry="frames"):
    host, port = gateway.fields[entry].rsplit(":", 1)
    return host, int(port)


def figures(redis):
    text = redis("INFO", "transport")
    return {k: int(v) for k, v in (row.split(":") for row in text.split("\r\n") if ":" in row)}


def counts(redis, **right):
    until(f"figures are {right}", lambda: right.items() <= figures(redis).items())


def addresses(redis):
    return [word[5:] for word in redis("CLIENT", "LIST").split() if word.startswith("addr=")]


def who_is_named_counts(binary_):
    for threads in ("1", "3"):
        with Fleet(binary_) as fleet:
            chain, key = certificates.make(fleet, "one")
            tls = ["--frames-tls", "127.0.0.1:0", "--tls-cert", chain, "--tls-key", key]
            gateway, redis = start(fleet, "--address-clients", "1", "--threads", threads, *tls)
            held = [
                Behind(at(gateway), line("192.0.2.1")),
                Behind(at(gateway), binary("192.0.2.2", tlvs=b"\x03\x00\x04abcd")),
                Behind(at(gateway), line("2001:db8::1")),
                Behind(at(gateway), binary("2001:db8:1::1")),
                Behind(at(gateway), binary("::ffff:192.0.2.3")),
                Behind(at(gateway, "frames-tls"), line("192.0.2.4"), certificates.trusting(chain)),
            ]
            for client in held:
                assert client.greeted().ask(b"a", b"hi").payload == b"hi"
            for again in (line("192.0.2.1", 99), binary("::ffff:192.0.2.2"), binary("2001:db8::2"), line("192.0.2.3")):
                turned_away = Behind(at(gateway), again)
                assert turned_away.notice(packets.GOAWAY)[0] > 0
                assert turned_away.closed()
            web = websocket.connect(at(gateway, "ws"))
            web.sendall(line("192.0.2.1") + websocket.request(at(gateway), "dGhlIHNhbXBsZSBub25jZQ=="))
            with web, web.makefile("rb") as file:
                assert websocket.answer(file)[0] == 101
                assert file.read(2)[0] == websocket.FIN | websocket.BINARY
                assert file.read(1)[0] == packets.GOAWAY
            if threads == "1":  # the list is of the thread that is asked
                names = addresses(redis)
                for right in ("192.0.2.1:1234", "192.0.2.2:1234", "192.0.2.3:1234", "[2001:db8::1]:1234"):
                    assert right in names, names
            counts(redis, proxy_named=11, proxy_bad=0, turned_away_told=1)


def strangers_are_counted_by_it(binary_):
    with Fleet(binary_) as fleet:
        path = fleet.data("keys")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write("k1 hex:" + "00" * 32 + "\n")
        gateway, _ = start(fleet, "--auth-keys", path, "--unauthenticated-address", "1")
        held = [Behind(at(gateway), line(f"192.0.2.{i}")).greeted() for i in range(10)]
        assert Behind(at(gateway), line("192.0.2.5")).notice(packets.GOAWAY)[0] > 0
        assert len(held[5].auth(packets.token("k1", bytes(32), b"me"))) == 3
        Behind(at(gateway), line("192.0.2.5")).greeted()


def it_may_come_in_pieces(binary_):
    with Fleet(binary_) as fleet:
        gateway, redis = start(fleet)
        for header in (line("192.0.2.1"), binary("2001:db8::1", tlvs=bytes(100))):
            s = websocket.connect(at(gateway))
            for byte in header + packets.hello():
                s.sendall(bytes([byte]))
            assert s.recv(1) == bytes([packets.HELLO_ACK])
            s.close()
        # The proxy's own: it asks how we are.
        for header in (b"PROXY UNKNOWN\r\n", SIGNATURE + b"\x20\0\0\0", binary("192.0.2.1", command=0x20)):
            own = Behind(at(gateway), header).greeted()
            assert any(a == "%s:%d" % own.socket.getsockname() for a in addresses(redis)), addresses(redis)
        counts(redis, proxy_named=2, proxy_unnamed=3)


def what_is_no_header_is_closed(binary_):
    with Fleet(binary_) as fleet:
        gateway, redis = start(fleet, "--opening-time", "2s")
        table = [packets.hello(), b"GET / HTTP/1.1\r\n\r\n", b"PROXY TCP4 1 2 3 4\r\n", b"PROXY " + b"x" * 200, line("192.0.2.1")[:-2] + b"\n",
                 SIGNATURE + b"\x21\x12\0\x0c" + bytes(12), SIGNATURE + b"\x31\x11\0\x0c" + bytes(12), SIGNATURE + b"\x21\x11\xff\xff", SIGNATURE + b"\x21\x11\0\x04" + bytes(4)]
        for words in table:
            for entry in ("frames", "ws"):
                with websocket.connect(at(gateway, entry)) as s:
                    s.sendall(words)
                    assert ended(s)
        counts(redis, proxy_bad=2 * len(table), proxy_named=0)
        slow = [websocket.connect(at(gateway)) for _ in range(3)]
        slow[1].sendall(b"PROXY ")
        slow[2].sendall(binary("192.0.2.1")[:-1])
        for s in slow:
            assert ended(s)
            s.close()
        counts(redis, proxy_timeout=3)
        with websocket.connect(at(gateway)) as s:
            s.sendall(b"PROXY TCP4 ")
        counts(redis, proxy_gave_up=1)


def ended(s):
    """Closed, without a word."""
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True  # what it had not read


def those_without_a_header_are_few(binary_):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with Fleet(binary_) as fleet:
        gateway, redis = start(fleet, "--opening-time", "60s")
        silent = [websocket.connect(at(gateway)) for _ in range(1024)]
        with websocket.connect(at(gateway)) as s:
            assert ended(s)
        counts(redis, proxy_full=1)
        for s in silent:
            s.close()
        counts(redis, proxy_gave_up=1024)
        assert Behind(at(gateway), line("192.0.2.1")).greeted().ask(b"a", b"x").payload == b"x"


def from_others_it_is_bad_input(binary_):
    with Fleet(binary_) as fleet:
        gateway, redis = start(fleet, trusted="192.0.2.0/24")
        assert packets.Client(at(gateway)).ask(b"a", b"direct").payload == b"direct"
        for header in (line("192.0.2.1"), binary("192.0.2.1")):
            forged = Behind(at(gateway), header)
            assert forged.notice(packets.KICK)[0] in (100, 101, 102)
            with websocket.connect(at(gateway, "ws")) as s, s.makefile("rb") as file:
                s.sendall(header + websocket.request(at(gateway), "dGhlIHNhbXBsZSBub25jZQ=="))
                assert websocket.answer(file)[0] == 400
        assert not [a for a in addresses(redis) if a.startswith("192.0.2.")]
        counts(redis, proxy_named=0, proxy_bad=0)
        for odd in ("10.0.0.1/8", "localhost", "10.0.0.0/8,", "1.2.3.4/33"):
            code, _, err = fleet.run("gateway", "--frames", "127.0.0.1:0", "--proxy-from", odd)
            assert code == 1 and "--proxy-from" in err, (odd, code, err)


main([
    who_is_named_counts,
    strangers_are_counted_by_it,
    it_may_come_in_pieces,
    what_is_no_header_is_closed,
    those_without_a_header_are_few,
    from_others_it_is_bad_input,
])
