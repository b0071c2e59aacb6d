#!/usr/bin/env python3
"""What the gateway says of commands that it takes is what a Redis server says beside it, byte by byte."""
import socket
import subprocess

from fleet import Fleet, Resp, free_port, main, until

# Played by one connection to each, in order. What only one of them can do is not here.
SAME = [
    "EXEC",
    "DISCARD",
    "UNWATCH",
    "UNWATCH x",
    "MULTI x",
    "WATCH",
]
# Behind MULTI, which is "OK" at Redis and an error here.
SAME_IN_MULTI = ["MULTI", "WATCH k", "RESET", "EXEC"]


class Pair:
    """A Redis server, and a gateway before one node."""

    def __init__(self, fleet):
        port = free_port()
        words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", fleet.folder]
        self.server = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        fleet.coordinators(1)
        fleet.node("n1")
        self.gateway = fleet.gateway("g1").resp
        self.redis = ("127.0.0.1", port)
        until("redis-server listens", lambda: self.listens())

    def listens(self):
        try:
            socket.create_connection(self.redis).close()
            return True
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()


def reply(address, data):
    """All bytes that come back for these, until the other side is silent for an ECHO's reply or closes."""
    with socket.create_connection(address, timeout=60) as s:
        end = b"$7\r\nthe end\r\n"
        s.sendall(data + Resp.encode(["ECHO", "the end"]))
        got = b""
        while not got.endswith(end):
            more = s.recv(65536)
            if not more:
                return got + b"(closed)"
            got += more
        return got[: -len(end)]


def compare(pair, data):
    gateway, redis = reply(pair.gateway, data), reply(pair.redis, data)
    assert gateway == redis, (data[:200], gateway[:300], redis[:300])


def commands_are_answered_as_redis_answers_them(binary):
    with Fleet(binary) as fleet, Pair(fleet) as pair:
        for line in SAME:
            compare(pair, line.encode() + b"\r\n")
        for line in SAME_IN_MULTI:
            gateway, redis = (reply(a, f"MULTI\r\n{line}\r\nDISCARD\r\n".encode()) for a in (pair.gateway, pair.redis))
            gateway, redis = (r.split(b"\r\n", 1) for r in (gateway, redis))
            assert gateway[0].startswith(b"-ERR ") and redis[0] == b"+OK", (gateway, redis)
            if line != "EXEC":
                assert gateway[1] == redis[1], (line, gateway, redis)
        # Redis says so when a command was refused behind MULTI; here MULTI itself was.
        aborted = reply(pair.redis, b"MULTI\r\nFLY\r\nEXEC\r\n").split(b"\r\n")[2]
        assert reply(pair.gateway, b"MULTI\r\nSET k 1\r\nEXEC\r\n").split(b"\r\n")[2] == aborted
        assert aborted.startswith(b"-EXECABORT "), aborted


def nothing_runs_behind_multi(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        gateway = fleet.gateway("g1").resp
        redis = Resp(gateway)
        assert redis("SET", "gold", "10") == "OK"
        sent = [["MULTI"], ["DECRBY", "gold", 7], ["SET", "gold", "0"], ["DEL", "gold"], ["EXEC"], ["INCR", "gold"]]
        redis.send(*sent)
        got = []
        for _ in sent:
            try:
                got.append(redis.read())
            except Exception as error:  # an error is a reply
                got.append(str(error))
        assert got[5] == 11, got
        assert all(str(g).startswith("ERR ") for g in got[:4]) and got[4].startswith("EXECABORT "), got


main([commands_are_answered_as_redis_answers_them, nothing_runs_behind_multi])
