#!/usr/bin/env python3
"""Actors in a program of Node.js (hosts/node), beside a real node: the library's own tests, the vectors of `conform host`,
and examples/trade.js, which is asked, pushes, is killed and comes back, and moves: over a socket
of Unix and over TCP.

Where Node.js is missing, the cases are skipped: they say so."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, free_port, healthy, main, succeeds, until

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
LIBRARY = os.path.join(ROOT, "hosts", "node")
NODE = shutil.which("node") or shutil.which("nodejs")
TOKEN = "0123456789abcdef"
KINDS = ["--kind", "0:host=player,durable,alarms,sessions=kick", "--kind", "4:host=room"]


def example(name):
    return os.path.join(LIBRARY, "examples", name)


class Game:
    """One coordinator, a gateway, nodes with a host each, and one store."""

    def __init__(self, fleet, nodes=1, tcp=False):
        self.fleet = fleet
        self.tcp = tcp
        self.addresses = {}
        fleet.coordinators(1, extra=["--lease", "1s", "--election-ms", "300"])
        with open(fleet.data("token"), "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        os.chmod(fleet.data("token"), 0o600)
        for i in range(1, nodes + 1):
            self.addresses[f"n{i}"] = f"127.0.0.1:{free_port()}" if tcp else f"unix:{fleet.data(f'n{i}.sock')}"
            self.node(f"n{i}")
            self.host(f"n{i}")
        self.gateway = fleet.gateway("g1", ["--deadline-ms", "30000"]).resp
        self.redis = Resp(self.gateway)

    def node(self, name):
        where = ["--host", self.addresses[name], *(["--host-token", self.fleet.data("token")] if self.tcp else [])]
        return self.fleet.node(name, [*KINDS, "--store", "sqlite:" + self.fleet.data("game.db"), *where])

    def host(self, name):
        env = {"RINGHOLD_HOST_TOKEN": TOKEN if self.tcp else ""}
        return self.fleet.start(f"host-{name}", [example("trade.js"), self.addresses[name]], env, ready=False, program=NODE)

    def __call__(self, id, payload):
        return self.redis("CALL", id, payload)

    def error(self, id, payload):
        try:
            answer = self(id, payload)
        except RespError as error:
            return str(error)
        raise AssertionError(f"{id} {payload}: {answer} is no error")

    def bound(self, id):
        client = Resp(self.gateway)
        assert client("BIND", id) == "OK"
        return client


def the_library_tests_itself_and_conforms(binary):
    tested = subprocess.run([NODE, "--test"], cwd=LIBRARY, capture_output=True, text=True, timeout=120, check=False)
    passed = "fail 0" in tested.stdout and "pass 0" not in tested.stdout
    assert tested.returncode == 0 and passed, tested.stdout + tested.stderr
    with tempfile.TemporaryDirectory(prefix="ringhold-node-") as folder:
        address = f"unix:{folder}/conform.sock"
        with subprocess.Popen([binary, "conform", "host", address], stdout=subprocess.PIPE, text=True) as judge:
            with subprocess.Popen([NODE, example("conform.js"), address], stderr=subprocess.DEVNULL) as host:
                said, _ = judge.communicate(timeout=120)
                host.terminate()
    assert judge.returncode == 0 and "not ok" not in said and "0 failed" in said, said
    assert host.returncode == 0, host.returncode


def players_give_and_rooms_push(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet)
        assert game("ann", "add sword 2") == "2"
        assert game("ann", "bag") == "sword=2"
        assert game.error("ann", "dance") == "ERR add, bag, give, join, say, remind"
        bob = game.bound("bob")
        assert game("ann", "give bob sword 1") == "1"
        assert bob.read() == ["message", "bob", "* ann gave you sword 1"]
        assert game.error("ann", "give bob sword 9") == "NOITEM you have only 1"
        assert (game("ann", "bag"), game("bob", "bag")) == ("sword=1", "sword=1")
        assert game.error("ann", "say lobby hello") == "NOTHERE join first"  # what the room answered
        assert game("ann", "join lobby") == "joined"
        assert game("bob", "join lobby") == "joined"
        assert game("ann", "say lobby hello there") == "said to 2"
        assert bob.read() == ["message", "bob", "lobby ann: hello there"]
        assert game("@4/lobby", "tick") == "OK"
        until("the timer rang", lambda: game("@4/lobby", "who") == "ann bob, 2 said")
        assert game("bob", "remind 0.2 tea") == "OK"
        assert bob.read() == ["message", "bob", "* tea, 1"]
        # Many at once, of many actors.
        game.redis.send(*[("CALL", f"p{i % 50}", "add coin 1") for i in range(1000)])
        assert [game.redis.read() for _ in range(1000)] == [str(i // 50 + 1) for i in range(1000)]
        healthy(fleet)


def a_host_that_is_killed_comes_back(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, tcp=True)
        assert game("ann", "add sword 2") == "2"
        assert game("ann", "join lobby") == "joined"
        # The code of a player ends the whole process amidst a request.
        assert game.error("bob", "crash") == "UNKNOWN outcome: the actor's host ended amidst it"
        assert fleet.process("host-n1").wait() == 3
        waits = Resp(game.gateway)
        waits.send(("CALL", "ann", "bag"))  # for the host that comes
        game.host("n1")
        assert waits.read() == "sword=2"
        until("the room is there, afresh", lambda: succeeds(game, "@4/lobby", "who") == ", 0 said")
        fleet.process("host-n1").kill().wait()
        game.host("n1")
        until("it answers", lambda: succeeds(game, "ann", "bag") == "sword=2")
        # The node is killed: its host finds the next one at the same place.
        fleet.process("n1").kill().wait()
        game.node("n1")
        until("it answers again", lambda: succeeds(game, "ann", "bag") == "sword=2")
        assert fleet.process("host-n1").running
        healthy(fleet)


def rooms_move_with_what_they_remember(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, nodes=2)
        fleet.settled(["n1", "n2"])
        rooms = [f"room-{i}" for i in range(12)]
        for i, room in enumerate(rooms):
            assert game(f"p{i}", f"join {room}") == "joined"
            assert game(f"p{i}", f"say {room} hi") == "said to 1"
        fleet.tell("node", "drain", game.redis("WHERE", f"@4/{rooms[0]}")[1], "--wait", "60")
        for i, room in enumerate(rooms):
            assert game(f"@4/{room}", "who") == f"p{i}, 1 said"
        healthy(fleet)


def with_node(case):
    def run(binary):
        if NODE is None:
            print(f"# {case.__name__} is skipped: there is no Node.js here")
            return
        case(binary)

    run.__name__ = case.__name__
    return run


main([with_node(case) for case in (
    the_library_tests_itself_and_conforms,
    players_give_and_rooms_push,
    a_host_that_is_killed_comes_back,
    rooms_move_with_what_they_remember,
)])  # fmt: skip
