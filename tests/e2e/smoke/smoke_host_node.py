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
from fleet import Fleet, free_port, healthy, main, succeeds, until
from trade_game import TradeGame, comes_back_when_killed, gives_and_pushes

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
LIBRARY = os.path.join(ROOT, "hosts", "node")
NODE = shutil.which("node") or shutil.which("nodejs")
TOKEN = "0123456789abcdef"
KINDS = ["--kind", "0:host=player,durable,alarms,sessions=kick", "--kind", "4:host=room"]


def example(name):
    return os.path.join(LIBRARY, "examples", name)


class Game(TradeGame):
    def __init__(self, fleet, nodes=1, tcp=False):
        names = [f"n{i}" for i in range(1, nodes + 1)]
        self.tcp = tcp
        self.addresses = {n: f"127.0.0.1:{free_port()}" if tcp else f"unix:{fleet.data(f'{n}.sock')}" for n in names}
        with open(fleet.data("token"), "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        os.chmod(fleet.data("token"), 0o600)
        super().__init__(fleet, *names)

    def node(self, name):
        where = ["--host", self.addresses[name], *(["--host-token", self.fleet.data("token")] if self.tcp else [])]
        return self.fleet.node(name, [*KINDS, "--store", "sqlite:" + self.fleet.data("game.db"), *where])

    def host(self, name):
        env = {"RINGHOLD_HOST_TOKEN": TOKEN if self.tcp else ""}
        return self.fleet.start(f"host-{name}", [example("trade.js"), self.addresses[name]], env, ready=False, program=NODE)


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
        gives_and_pushes(game)
        healthy(fleet)


def a_host_that_is_killed_comes_back(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, tcp=True)
        comes_back_when_killed(game)
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
