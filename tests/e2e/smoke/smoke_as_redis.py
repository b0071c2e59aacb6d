#!/usr/bin/env python3
"""What the gateway says of commands that it takes is what a Redis server says beside it, byte by byte; and what
docs/redis-clients.md says of commands."""
import os
import re
import socket
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, free_port, main, until

# Played by one connection to each, in order. What only one of them can do is not here.
SAME = [
    "EXEC",
    "DISCARD",
    "UNWATCH",
    "UNWATCH x",
    "MULTI x",
    "WATCH",
    "CLIENT LIST ID x",
    "CLIENT LIST ID 0",
    "CLIENT LIST ID -1",
    "CLIENT LIST ID 99999999",
    "CLIENT LIST ID",
    "CLIENT LIST TYPE foo",
    "CLIENT LIST TYPE pubsub",
    "CLIENT LIST TYPE replica",
    "CLIENT LIST foo",
    "CLIENT LIST TYPE",
    "CLIENT NO-EVICT foo",
    "CLIENT NO-EVICT on",
    "CLIENT SETNAME 'a b'",
    "COMMAND LIST FILTERBY PATTERN g?t",
    "COMMAND LIST FILTERBY PATTERN GETSE*",
    "COMMAND LIST FILTERBY PATTERN [d]ecrb[a-z]",
    "COMMAND LIST FILTERBY MODULE x",
    "COMMAND LIST FILTERBY foo x",
    "COMMAND LIST FILTERBY",
    "COMMAND LIST foo",
    "SET k v FOO",
    "SET k v NX XX",
    "SET k v NX",
    "SET k v NX",
    "SET k v XX",
    "GET k",
    "GET 'unbalanced",
]
# Input that is no command, and ends the connection.
BROKEN = [b"*1\r\nPING\r\n", b"*1\r\n*1\r\n", b"*2\r\n$3\r\nGET\r\n:1\r\n", b"*1\r\n\r\n", b"*x\r\n"]
BROKEN += [b"*1\r\n$-1\r\n", b"*1\r\n$999999999\r\n", b"*2\r\n$3\r\nGET\r\n$x\r\n"]
# Behind MULTI.
SAME_IN_MULTI = ["MULTI", "WATCH k", "RESET"]


class Pair:
    """A Redis server, and a gateway before one node."""

    def __init__(self, fleet):
        port = free_port()
        words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", fleet.folder]
        server = fleet.start("redis", words, ready=False, program="redis-server")
        self.redis = ("127.0.0.1", port)
        fleet.coordinators(1)
        fleet.node("n1")
        self.gateway = fleet.gateway("g1").resp
        until("redis-server listens", lambda: not server.running or self.listens())

    def listens(self):
        try:
            socket.create_connection(self.redis).close()
            return True
        except OSError:
            return False


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
    with Fleet(binary) as fleet:
        pair = Pair(fleet)
        for line in SAME:
            compare(pair, line.encode() + b"\r\n")
        for data in BROKEN:
            compare(pair, data)
        for keys in (63, 64, 65, 1024, 2048):
            compare(pair, Resp.encode(["MGET", *range(keys)]))
            compare(pair, Resp.encode(["DEL", *range(keys)]))
        compare(pair, Resp.encode(["MSET", *[f"m{i // 2}" for i in range(2048)]]))
        compare(pair, Resp.encode(["MGET", *[f"m{i}" for i in range(1024)]]))
        for line in SAME_IN_MULTI:
            gateway, redis = (reply(a, f"MULTI\r\n{line}\r\nDISCARD\r\n".encode()) for a in (pair.gateway, pair.redis))
            assert gateway == redis, (line, gateway, redis)
        # Redis says so when a command was refused behind MULTI; here each is.
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
        assert got[0] == "OK" and all(str(g).startswith("ERR ") for g in got[1:4]), got
        assert got[4].startswith("EXECABORT "), got


def what_is_over_a_limit_is_named_and_the_connection_goes_on(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        gateway = fleet.gateway("g1")
        redis = Resp(gateway.resp)

        def refused(*words):
            try:
                redis(*words)
            except RespError as error:
                return str(error)
            raise AssertionError("it was taken")

        assert redis("SET", "a", "1") == "OK"
        for size in ((1 << 20) + 1, 3 << 20, 64 << 20):
            assert refused("SET", "a", "x" * size) == "ERR an argument has at most 1048576 bytes"
        assert refused("MSET", "a", "x" * 1000000, "b", "y" * 1000000, "c", "z" * 1000000).endswith("2097152 bytes")
        assert refused("DEL", "a", *range(100000)).endswith("at most 2048 arguments after its name")
        assert refused("SET", "a", *["NX"] * 100).endswith("at most 64 words")
        assert "EX is not supported" in refused("SET", "a", "2", "EX", "10")
        assert "keepttl is not supported" in refused("SET", "a", "2", "keepttl").lower()
        assert refused("CLIENT", "SETINFO", "lib-name", "a b").startswith("ERR lib-name cannot contain spaces")
        assert refused("CLIENT", "SETINFO", "colour", "red") == "ERR Unrecognized option 'colour'"
        assert redis("CLIENT", "SETINFO", "LIB-VER", "1.2") == "OK"
        assert redis("GET", "a") == "1"
        mine = redis("CLIENT", "ID")
        assert redis("CLIENT", "LIST", "ID", 77, mine).startswith(f"id={mine} ")
        other = Resp(gateway.resp)
        theirs = other("CLIENT", "ID")  # so it was accepted
        assert redis("CLIENT", "LIST", "TYPE", "normal").count("\n") == 2
        assert redis("CLIENT", "LIST", "ID", theirs).count("\n") == 1
        assert "role:master" in redis("INFO", "replication") and "loading:0" in redis("INFO", "persistence")
        assert gateway.rss() < 100 << 20  # what is dropped is not kept


PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "redis-clients.md")


def page_of_commands():
    """By command, what the page says is taken and what is not; and the commands that it says are unknown."""
    with open(PAGE, encoding="utf-8") as f:
        text = f.read().split("## Commands", 1)[1]
    table, unknown = text.split("All other commands are unknown", 1)
    rows = [line.strip()[1:-1].split("|") for line in table.splitlines() if line.startswith("| `")]
    spans = re.compile("`(.*?)`", re.S)
    found = {}
    for row in rows:
        name, taken, other = (spans.findall(cell) for cell in row)
        found[name[0]] = [[s for s in cell if s.split()[0] == name[0]] for cell in (taken, other)]
    return found, [s for s in spans.findall(unknown.split("\n\n", 1)[0]) if " " in s or s.isupper()]


def begin(address, line):
    """The first line of what comes back."""
    with socket.create_connection(address, timeout=60) as s:
        s.sendall(line.encode() + b"\r\n")
        return s.makefile("rb").readline()


def the_page_of_commands_says_what_a_gateway_does(binary):
    found, unknown = page_of_commands()
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        gateway = fleet.gateway("g1").resp
        redis = Resp(gateway)
        assert sorted(found) == sorted(name.upper() for name in redis("COMMAND", "LIST"))
        assert sum(len(taken) + len(other) for taken, other in found.values()) > 70 and len(unknown) > 50
        for taken, other in found.values():
            for line in taken:
                for key, value in (("k", "v"), ("n", "1")):
                    redis("SET", key, value)
                got = reply(gateway, line.encode() + b"\r\n")
                assert not got.startswith(b"-") and b"\r\n-" not in got, (line, got)
            for line in other:
                assert begin(gateway, line).startswith(b"-"), line
        for line in unknown:
            assert begin(gateway, line).startswith(b"-ERR unknown command"), line


main(
    [
        commands_are_answered_as_redis_answers_them,
        nothing_runs_behind_multi,
        what_is_over_a_limit_is_named_and_the_connection_goes_on,
        the_page_of_commands_says_what_a_gateway_does,
    ]
)
