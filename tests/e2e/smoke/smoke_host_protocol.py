#!/usr/bin/env python3
"""Actors in another process, a host in Go (hosts/go/examples/trade), beside real nodes: requests, pushes, gifts; a host
that is killed, hangs, or never comes; a node that is killed; a move with the actor's state; who may not connect.

Where Go is missing, the cases are skipped: they say so."""
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, free_port, healthy, main, succeeds, until
from trade_game import TradeGame, comes_back_when_killed, gives_and_pushes, stands_still

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
GO = os.path.join(ROOT, "hosts", "go")
KINDS = ["--kind", "0:host=player,durable,alarms,sessions=kick", "--kind", "4:host=room,turn=2"]


class Game(TradeGame):
    def __init__(self, fleet, program, nodes=1):
        self.program = program
        super().__init__(fleet, *[f"n{i}" for i in range(1, nodes + 1)])

    def node(self, name):
        store = ["--store", "sqlite:" + self.fleet.data("game.db"), "--admin", f"127.0.0.1:{free_port()}"]
        where = ["--host", "unix:" + self.fleet.data(name + ".sock"), "--host-silence", "1s"]
        return self.fleet.node(name, [*KINDS, *store, *where])

    def host(self, name):
        address = "unix:" + self.fleet.data(name + ".sock")
        return self.fleet.start(f"host-{name}", [address], program=self.program, ready=False)

    def owner(self, id):
        return self.redis("WHERE", id)[1]

    def figure(self, name, words):
        node = self.fleet.process(name)
        address = node.words[node.words.index("--admin") + 1]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
            lines = [line.rsplit(" ", 1) for line in page.read().decode().splitlines() if line.startswith(words)]
        return sum(int(value) for _, value in lines)


def players_give_and_rooms_push(program, binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, program)
        gives_and_pushes(game)
        assert game.figure("n1", "ringhold_node_hosts ") == 1
        assert game.figure("n1", "ringhold_node_host_dropped_total") == 0
        healthy(fleet)


def a_host_that_is_killed_comes_back(program, binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, program)
        comes_back_when_killed(game, 3)
        assert game.figure("n1", 'ringhold_node_hosts_ended_total{reason="closed"}') == 4
        assert fleet.process("n1").running
        healthy(fleet)


def a_host_that_hangs_is_noticed(program, binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, program)
        assert game("ann", "add sword 1") == "1"
        assert game("ann", "join lobby") == "joined"
        old = fleet.process("host-n1").kill(signal.SIGSTOP)
        until("all its threads stand still", lambda: stands_still(old.popen.pid))
        assert game.error("ann", "add sword 1").startswith("UNKNOWN outcome")  # it may have run there
        assert game.figure("n1", 'ringhold_node_hosts_ended_total{reason="hung"}') == 1
        game.host("n1")
        until("another one serves", lambda: succeeds(game, "ann", "bag") == "sword=1")
        # The old one wakes, and has nothing to say: its kinds are another's.
        old.kill(signal.SIGCONT)
        until("it was told", lambda: old.log_has("the kind player has a host"))
        assert game("ann", "add sword 1") == "2"
        old.kill().wait()
        # One turn that hangs ends its actor alone.
        assert game.error("@4/cellar", "hang").startswith("UNKNOWN outcome")
        assert game("ann", "bag") == "sword=2"
        assert game.figure("n1", 'ringhold_node_host_actors_failed_total{reason="too_slow"}') == 1


def values_outlive_a_node_and_rooms_move(program, binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, program, nodes=2)
        fleet.settled(["n1", "n2"])
        rooms = [f"room-{i}" for i in range(12)]
        for i, room in enumerate(rooms):
            game(f"p{i}", "add coin 5")
            assert game(f"p{i}", f"join {room}") == "joined"
            assert game(f"p{i}", f"say {room} hi") == "said to 1"
        left = game.owner(f"@4/{rooms[0]}")
        fleet.tell("node", "drain", left, "--wait", "60")
        stays = "n2" if left == "n1" else "n1"
        for i, room in enumerate(rooms):  # with what was in memory alone
            assert game(f"@4/{room}", "who") == f"p{i}, 1 said"
        game.node("n3")
        game.host("n3")
        fleet.settled([stays, "n3"])
        fleet.process(stays).kill().wait()
        for i in range(12):
            until("it lives again", lambda i=i: succeeds(game, f"p{i}", "bag") == "coin=5")


def who_is_no_host_is_told(binary):
    def frame(data):
        return struct.pack(">I", len(data)) + data

    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    def hello(kind, token=b"", product=b"ringhold", version=1):
        body = field(1, product) + bytes([0x10, version, 0x18, version]) + field(4, b"test")
        return frame(field(1, field(1, body + (field(5, token) if token else b"") + field(6, field(1, kind)))))

    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        token = fleet.data("token")
        with open(token, "w", encoding="ascii") as file:
            file.write("0123456789abcdef\n")
        os.chmod(token, 0o600)
        port = free_port()
        words = ["--host", f"127.0.0.1:{port}", "--host-token", token, "--kind", "0:host=player"]
        node = fleet.node("n1", words)
        good = b"0123456789abcdef"
        for what, reason in (
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "malformed"),
            (frame(b"\xff\xff\xff"), "malformed"),
            (frame(field(1, b"\x12\x00")), "unexpected"),
            (hello(b"player"), "token"),
            (hello(b"player", b"0123456789abcdeX"), "token"),
            (hello(b"player", good, version=9), "version"),
            (hello(b"player", good, b"other"), "version"),
            (hello(b"nobody", good), "kind_unknown"),
        ):
            before = node.log_count(f"reason={reason}")
            with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
                s.sendall(what)
                while s.recv(4096):
                    pass
            assert node.log_count(f"reason={reason}") == before + 1, (what, reason)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
            s.sendall(hello(b"player", good))
            assert s.recv(4096)[4:9]
            s.sendall(frame(field(1, field(3, b"\x08\x63\x10\x01"))))  # a step of nothing
            while s.recv(4096):
                pass
        until("it is said", lambda: node.log_has("reason=never_given"))
        assert node.running
        # Options that are no good.
        for extra, text in (
            (["--host", "0.0.0.0:7", "--host-token", token], "is not unix:PATH"),
            (["--host", "127.0.0.1:7"], "with --host-token"),
            (["--kind", "5:host=a"], "needs --host"),
            (["--host", "unix:" + fleet.data("s"), "--kind", "5:host=a,alarms"], "alarms need"),
            (["--host", "unix:" + fleet.data("s"), "--kind", "5:host=a,turn=0"], "a word is none of"),
        ):
            code, _, err = fleet.run("node", "--name", "n9", "--join", fleet.addresses, "--data", fleet.data("n9"), *extra)
            assert code == 1 and text in err, (extra, code, err)


def the_library_for_go_conforms(program, binary):
    folder = os.path.dirname(program)
    address = "unix:" + os.path.join(folder, "conform.sock")
    with subprocess.Popen([binary, "conform", "host", address], stdout=subprocess.PIPE, text=True) as judge:
        with subprocess.Popen([os.path.join(folder, "conform"), address], stderr=subprocess.DEVNULL) as host:
            said, _ = judge.communicate(timeout=120)
            host.terminate()
    assert judge.returncode == 0 and "not ok" not in said and "0 failed" in said, said
    tested = subprocess.run(["go", "test", "./..."], cwd=GO, capture_output=True, text=True, timeout=240, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def with_go(case):
    def run(binary):
        go = shutil.which("go")
        if go is None:
            print(f"# {case.__name__} is skipped: there is no Go here")
            return
        with tempfile.TemporaryDirectory(prefix="ringhold-go-") as folder:
            subprocess.run([go, "build", "-o", folder + "/", "./examples/..."], cwd=GO, check=True)
            case(os.path.join(folder, "trade"), binary)

    run.__name__ = case.__name__
    return run


main([
    with_go(the_library_for_go_conforms),
    with_go(players_give_and_rooms_push),
    with_go(a_host_that_is_killed_comes_back),
    with_go(a_host_that_hangs_is_noticed),
    with_go(values_outlive_a_node_and_rooms_move),
    who_is_no_host_is_told,
])  # fmt: skip
