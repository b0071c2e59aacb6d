#!/usr/bin/env python3
"""TLS on each of a gateway's listeners: requests both ways, handshakes that fail, the slow, new certificates."""
import os
import shutil
import signal
import socket
import ssl
import struct
import sys
import warnings

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import certificates
import packets
import websocket
from fleet import Fleet, Resp, RespError, main, until

TLS_1_2, TLS_1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def start(fleet, *more, name="first", env=None):
    """A gateway that listens by TLS everywhere; it, its certificate, its key."""
    chain, key = certificates.make(fleet, name)
    fleet.coordinators(1)
    fleet.node("n1", ["--kind", "0:kv", "--kind", "1:echo"])
    ports = [word for entry in ("frames-tls", "wss", "resp-tls") for word in (f"--{entry}", "127.0.0.1:0")]
    gateway = fleet.gateway("g1", [*ports, "--tls-cert", chain, "--tls-key", key, *more], env)
    redis = Resp(gateway.resp)
    until("somebody owns it", lambda: succeeds(redis))
    redis.close()
    return gateway, chain, key


def succeeds(redis):
    try:
        return redis("CALL", "@1/a", "x") == "x"
    except Exception:  # pylint: disable=broad-except
        return False


def at(gateway, entry):
    host, port = gateway.fields[entry].rsplit(":", 1)
    return host, int(port)


def figures(gateway):
    redis = Resp(gateway.resp)
    text = redis("INFO", "transport")
    redis.close()
    return {k: int(v) for k, v in (line.split(":") for line in text.split("\r\n") if ":" in line)}


def counts(gateway, **right):
    """Threads tell one another what they have counted some milliseconds later."""
    until(f"figures are {right}", lambda: right.items() <= figures(gateway).items())


def clients(gateway, tls):
    yield packets.Client(at(gateway, "frames-tls"), tls=tls)
    yield websocket.Client(at(gateway, "wss"), tls=tls)


def requests_are_answered(binary):
    for threads in ("1", "3"):
        with Fleet(binary) as fleet:
            gateway, chain, _ = start(fleet, "--threads", threads)
            for version in (TLS_1_2, TLS_1_3):
                for client in clients(gateway, certificates.trusting(chain, version)):
                    much_is_said(client)
                    client.close()
            counts(gateway, tls_opened=4, ws_opened=2)
            redis = Resp(at(gateway, "resp-tls"))
            redis.close()
            counts(gateway, tls_gave_up=1)


def much_is_said(client):
    for size in (0, 1, 110, 16000, 16384, 65000):
        got = client.ask(b"id", b"p" * size, kind=1)
        assert (got.status, got.payload) == (packets.OK, b"p" * size), size
    many = [packets.asking(packets.REQUEST, 1000 + i, b"id-%d" % (i % 7), b"%d" % i, kind=1) for i in range(2000)]
    client.send(*many)
    got = [client.response() for _ in many]
    assert sorted(a.request for a in got) == list(range(1000, 3000))
    assert all(a.status == packets.OK and int(a.payload) == a.request - 1000 for a in got)


def redis_clients_come_too(binary):
    with Fleet(binary) as fleet:
        gateway, chain, _ = start(fleet)
        context = certificates.trusting(chain)
        s = websocket.connect(at(gateway, "resp-tls"), tls=context)
        with s, s.makefile("rb") as file:
            value = os.urandom(1000000)
            s.sendall(b"*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$1000000\r\n" + value + b"\r\n")
            assert file.readline() == b"+OK\r\n"
            s.sendall(b"GET large\r\n" * 20)
            for _ in range(20):
                assert file.readline() == b"$1000000\r\n"
                assert file.read(1000002) == value + b"\r\n"
        # Who says that nothing follows is answered still.
        counts(gateway, tls_opened=1, tls_cut=1)
        said = half_closed(at(gateway, "resp-tls"), context, b"PING\r\nECHO bye\r\n")
        assert said == b"+PONG\r\n$3\r\nbye\r\n", said
        counts(gateway, tls_opened=2, tls_left=1, tls_cut=1)


def half_closed(address, context, words):
    """What comes back when the words are followed by a close_notify, in one write."""
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(come, go, server_hostname="localhost")
    said = b""
    with socket.create_connection(address, timeout=60) as s:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                s.sendall(go.read())
                come.write(s.recv(65536))
        tls.write(words)
        try:
            tls.unwrap()
        except ssl.SSLWantReadError:
            pass  # it has none to read yet
        s.sendall(go.read())
        while True:
            got = s.recv(65536)
            if not got:
                return said
            come.write(got)
            try:
                while True:
                    said += tls.read(65536)
            except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                pass


def handshakes_that_fail_are_counted(binary):
    warnings.simplefilter("ignore", DeprecationWarning)  # of TLS 1.1: that is the point
    with Fleet(binary) as fleet:
        gateway, chain, _ = start(fleet)
        other, _ = certificates.make(fleet, "other")
        good = packets.Client(at(gateway, "frames-tls"), tls=certificates.trusting(chain))
        old = certificates.trusting(chain)
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        weak = certificates.trusting(chain, TLS_1_2)
        weak.set_ciphers("AES128-SHA:AES256-SHA:@SECLEVEL=0")
        right = {"tls_opened": 1}

        def counted(reason, count=1):
            right[reason] = right.get(reason, 0) + count
            counts(gateway, **right)

        for entry in ("frames-tls", "wss", "resp-tls"):
            for words in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", packets.hello() + bytes(20), b"*1\r\n$4\r\nPING\r\n"):
                assert_closed(at(gateway, entry), words)
            counted("tls_plain", 3)
            refused(at(gateway, entry), old)
            refused(at(gateway, entry), weak)
            counted("tls_unshared", 2)
            for version in (TLS_1_2, TLS_1_3):
                refused(at(gateway, entry), certificates.trusting(other, version))
            counted("tls_alert", 2)
            assert_closed(at(gateway, entry), bytes.fromhex("16030100050a00000100"))
            assert_closed(at(gateway, entry), bytes.fromhex("160301ffff0100000100"))
            counted("tls_handshake", 2)
            with socket.create_connection(at(gateway, entry)) as s:
                s.sendall(b"\x16\x03\x01")
            counted("tls_gave_up")
        refused(at(gateway, "wss"), certificates.trusting(chain, alpn=["h2"]))
        counted("tls_unshared")
        web = websocket.Client(at(gateway, "wss"), tls=certificates.trusting(chain, alpn=["h2", "http/1.1"]))
        assert web.ws.socket.selected_alpn_protocol() == "http/1.1"
        counted("tls_opened")
        # Not even a record of its own that was changed on the way.
        raw = websocket.connect(at(gateway, "frames-tls"), tls=certificates.trusting(chain))
        counted("tls_opened")
        os.write(raw.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
        assert closed(raw)
        counted("tls_broken")
        raw = websocket.connect(at(gateway, "frames-tls"), tls=certificates.trusting(chain))
        counted("tls_opened")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()
        counted("tls_cut")
        for client in (good, web):
            assert client.ask(b"a", b"still here", kind=1).payload == b"still here"


def refused(address, context):
    try:
        s = websocket.connect(address, tls=context)
        s.recv(1)  # TLS 1.3: the client is done before the gateway
        s.close()
    except (ssl.SSLError, ConnectionError):
        return
    raise AssertionError("it was not refused")


def closed(s):
    try:
        while s.recv(4096):
            pass
    except (ssl.SSLError, ConnectionError):
        pass
    s.close()
    return True


def assert_closed(address, words):
    """It is told something, or nothing, and then the end; in the clear there is no word of ours."""
    with socket.create_connection(address, timeout=60) as s:
        s.sendall(words)
        got = b""
        while True:
            more = s.recv(4096)
            if not more:
                break
            got += more
    assert len(got) < 16, got  # an alert


def the_slow_are_closed(binary):
    with Fleet(binary) as fleet:
        gateway, chain, _ = start(fleet, "--opening-time", "2s")
        context = certificates.trusting(chain)
        come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(come, go, server_hostname="localhost")
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        hello = go.read()
        slow = []
        for entry in ("frames-tls", "wss", "resp-tls"):
            for size in (0, 1, 5, 9, len(hello) - 1, len(hello)):
                slow.append(websocket.connect(at(gateway, entry)))
                slow[-1].sendall(hello[:size])
        assert all(closed(s) for s in slow)
        counts(gateway, tls_timeout=len(slow), tls_opened=0)
        # TLS is there, but no request for a WebSocket.
        late = [websocket.connect(at(gateway, "wss"), tls=context) for _ in range(2)]
        late[1].sendall(b"GET / HTTP/1.1\r\nHost:")
        for s in late:
            with s.makefile("rb") as file:
                assert websocket.answer(file)[0] == 408
                assert file.read(1) == b""
            s.close()
        counts(gateway, http_timeout=2, tls_opened=2)


def subject(s):
    return dict(pair[0] for pair in s.getpeercert()["subject"])["commonName"]


def certificates_are_read_again(binary):
    with Fleet(binary) as fleet:
        gateway, chain, key = start(fleet, "--threads", "3", name="first")
        old = certificates.trusting(chain)
        second_chain, second_key = certificates.make(fleet, "second")
        new = certificates.trusting(second_chain)
        held = [packets.Client(at(gateway, "frames-tls"), tls=old) for _ in range(6)]
        assert subject(held[0].socket) == "first"
        # What is no pair changes nothing, and the log says which file and why.
        for odd, why in (
                (lambda: shutil.copyfile(second_key, key), "the key does not belong to the certificate"),
                (lambda: os.chmod(key, 0o644), "others may read or write the file"),
                (lambda: os.unlink(key), "No such file"),
                (lambda: overwrite(chain, "no certificate\n"), "the file contains no certificate (PEM)")):
            odd()
            gateway.kill(signal.SIGHUP)
            until(f"it says: {why}", lambda why=why: gateway.log_has(why))
            for _ in range(3):
                packets.Client(at(gateway, "frames-tls"), tls=old).close()
        assert not gateway.log_has("gateway certificate file=")
        shutil.copyfile(second_chain, chain + ".new")
        os.rename(chain + ".new", chain)
        shutil.copyfile(second_key, key)
        os.chmod(key, 0o600)
        gateway.kill(signal.SIGHUP)
        until("each thread has read it", lambda: gateway.log_count("gateway certificate file=") == 3)
        for _ in range(6):
            client = packets.Client(at(gateway, "frames-tls"), tls=new)
            assert subject(client.socket) == "second"
            client.close()
        refused(at(gateway, "frames-tls"), old)
        for client in held:
            assert client.ask(b"a", b"as before", kind=1).payload == b"as before"
            client.close()


def who_is_turned_away_is_told(binary):
    with Fleet(binary) as fleet:
        gateway, chain, _ = start(fleet, "--address-clients", "1")
        context = certificates.trusting(chain)
        held = packets.Client(at(gateway, "frames-tls"), tls=context)
        for version in (TLS_1_2, TLS_1_3):
            refused_too = packets.Client(at(gateway, "frames-tls"), greet=False, tls=certificates.trusting(chain, version))
            refused_too.send(packets.hello())
            retry_ms, text = refused_too.notice(packets.GOAWAY)
            assert retry_ms > 0 and text
            assert refused_too.closed()
        web = websocket.WebSocket(at(gateway, "wss"), tls=context)
        assert web.read()[1][0] == packets.GOAWAY
        assert web.closed() == 1013
        counts(gateway, turned_away_told=3, tls_opened=4, tls_full=0, ws_opened=0)
        assert held.ask(b"a", b"still here", kind=1).payload == b"still here"
    with Fleet(binary) as fleet:
        gateway, chain, _ = start(fleet, "--max-clients", "1")
        redis = until("there is room", lambda: let_in(gateway))
        s = websocket.connect(at(gateway, "resp-tls"), tls=certificates.trusting(chain))
        with s, s.makefile("rb") as file:
            assert file.read() == b"-ERR max number of clients reached\r\n"
        redis.close()


def let_in(gateway):
    """A connection, once the one before is gone."""
    redis = Resp(gateway.resp)
    try:
        return redis if redis("PING") == "PONG" else None
    except (RespError, ConnectionError):
        redis.close()
        return None


def overwrite(path, text):
    with open(path, "w") as f:
        f.write(text)


def a_bad_pair_is_told_before_it_starts(binary):
    with Fleet(binary) as fleet:
        chain, key = certificates.make(fleet, "first")
        _, other = certificates.make(fleet, "other")
        readable = fleet.data("readable.key")
        shutil.copyfile(key, readable)
        os.chmod(readable, 0o644)
        table = [
            ({"wss": "127.0.0.1:0"}, "these need --tls-cert"),
            ({"tls-cert": chain, "tls-key": key}, "needs one of --frames-tls"),
            ({"wss": "127.0.0.1:0", "tls-cert": chain}, "one needs the other"),
            ({"wss": "127.0.0.1:0", "tls-cert": chain, "tls-key": other}, "the key does not belong to the certificate"),
            ({"wss": "127.0.0.1:0", "tls-cert": chain, "tls-key": readable}, "chmod 600"),
            ({"wss": "127.0.0.1:0", "tls-cert": key, "tls-key": key}, "contains no certificate"),
            ({"wss": "127.0.0.1:0", "tls-cert": chain, "tls-key": chain}, "it"),
            ({"wss": "127.0.0.1:0", "tls-cert": fleet.data("none"), "tls-key": key}, "No such file"),
            ({"wss": "0.0.0.0:0", "tls-cert": chain, "tls-key": key}, "beyond loopback"),
        ]
        for options, why in table:
            path = fleet.data("gateway.ini")
            overwrite(path, "[gateway]\n" + "".join(f"{k} = {v}\n" for k, v in options.items()))
            code, _, err = fleet.run("config", "check", path)
            assert code == 1 and why in err, (options, code, err)
            code, _, err = fleet.run("gateway", *(w for k, v in options.items() for w in (f"--{k}", v)))
            assert code == 1 and why in err, (options, code, err)
        overwrite(path, f"[gateway]\nwss = 127.0.0.1:0\ntls-cert = {chain}\ntls-key = {key}\n")
        code, _, err = fleet.run("config", "check", path)
        assert code == 0, err


def an_idle_connection_takes_little(binary):
    count = 200
    with Fleet(binary) as fleet:
        # Under the address sanitizer freed memory is kept for a while; that is not the gateway's.
        gateway, chain, _ = start(fleet, env={"ASAN_OPTIONS": "quarantine_size_mb=1"})
        tls = certificates.trusting(chain)
        host, port = gateway.fields["frames-tls"].rsplit(":", 1)
        warm = [packets.Client((host, port), tls=tls) for _ in range(20)]
        before = gateway.rss()
        held = [packets.Client((host, port), tls=tls) for _ in range(count)]
        for client in held:
            assert client.ask(b"a", b"x" * 20000, kind=1).status == packets.OK
        grown = gateway.rss() - before
        print(f"# {count} connections by TLS: {grown // count} bytes each")
        assert grown < count * 100000
        for client in warm + held:
            client.close()


main([
    requests_are_answered,
    redis_clients_come_too,
    handshakes_that_fail_are_counted,
    the_slow_are_closed,
    certificates_are_read_again,
    who_is_turned_away_is_told,
    a_bad_pair_is_told_before_it_starts,
    an_idle_connection_takes_little,
])
