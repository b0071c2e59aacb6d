#!/usr/bin/env python3
"""The library for hosts in Python (hosts/python): its own tests, `ringhold conform host`, and its game (hosts/python/examples/trade.py)
beside a real node and gateway: gifts, pushes, alarms; a host that is killed and restarted, hangs, and is moved away from."""
import os
import signal
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, free_port, healthy, main, succeeds, until
from trade_game import TradeGame, comes_back_when_killed, gives_and_pushes, stands_still

LIBRARY = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "hosts", "python"))
FOUND = {"PYTHONPATH": LIBRARY, "PYTHONDONTWRITEBYTECODE": "1"}
KINDS = ["--kind", "0:host=player,durable,alarms,sessions=kick", "--kind", "4:host=room,turn=2"]
TOKEN = "0123456789abcdef"


def python(*words, **more):
    return subprocess.Popen([sys.executable, *words], env={**os.environ, **FOUND}, **more)


class Game(TradeGame):
    def __init__(self, fleet, *names, token=None):
        self.addresses = {}
        self.token = token
        super().__init__(fleet, *names)

    def node(self, name):
        where = ["--host", "unix:" + self.fleet.data(name + ".sock")]
        if self.token:
            where = ["--host", f"127.0.0.1:{free_port()}", "--host-token", self.token]
        self.addresses[name] = where[1]
        store = ["--store", "sqlite:" + self.fleet.data("game.db")]
        return self.fleet.node(name, [*KINDS, *store, *where, "--host-silence", "1s"])

    def host(self, name, log="host", token=TOKEN):
        words = [os.path.join(LIBRARY, "examples", "trade.py"), self.addresses[name]]
        env = {**FOUND, "RINGHOLD_HOST_TOKEN": token if self.token else ""}
        return self.fleet.start(f"{log}-{name}", words, env=env, ready=False, program=sys.executable)


def its_own_tests_pass(_):
    with python("-W", "error", "-m", "unittest", cwd=LIBRARY, stderr=subprocess.PIPE, text=True) as tests:
        _, said = tests.communicate(timeout=120)
    assert tests.returncode == 0 and said.rstrip().endswith("\nOK"), said  # none is skipped


def it_conforms(binary):
    with Fleet(binary) as fleet:
        address = "unix:" + fleet.data("conform.sock")
        with subprocess.Popen([binary, "conform", "host", address], stdout=subprocess.PIPE, text=True) as judge:
            with python(os.path.join(LIBRARY, "examples", "conform.py"), address, stderr=subprocess.DEVNULL) as host:
                said, _ = judge.communicate(timeout=120)
                host.terminate()
    plan = said.splitlines()[1].removeprefix("1..")
    assert judge.returncode == 0 and "SKIP" not in said and f"# {plan} passed, 0 failed" in said, said


def players_give_and_rooms_push(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, "n1")
        gives_and_pushes(game)
        # What a client says wrongly is an answer, and breaks nobody.
        for wrong in ("remind nan x", "remind x y", "add x 0", "add x ²", "give bob x -1", "give", b"\xff", ""):
            assert game.error("ann", wrong).startswith("ERR "), wrong
        assert not fleet.process("host-n1").log_has("Traceback")
        healthy(fleet)


def a_host_that_is_killed_comes_back(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, "n1")
        comes_back_when_killed(game, 3)
        # One turn that hangs ends its actor alone, and the pings are answered.
        assert game.error("@4/cellar", "hang").startswith("UNKNOWN outcome")
        assert game("ann", "bag") == "sword=2"
        # Another one takes over from one that hangs, and the old one, when it wakes, is told so.
        old = fleet.process("host-n1").kill(signal.SIGSTOP)
        until("it stands still", lambda: stands_still(old.popen.pid))
        game.host("n1", "other")
        until("another one serves", lambda: succeeds(game, "ann", "bag") == "sword=2")
        old.kill(signal.SIGCONT)
        until("it was told", lambda: old.log_has("the kind player has a host"))
        assert game("ann", "add sword 1") == "3"
        healthy(fleet)


def a_node_restarts_and_its_host_comes_again(binary):
    with Fleet(binary) as fleet:
        token = fleet.data("token")
        with open(os.open(token, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        game = Game(fleet, "n1", token=token)
        assert game("ann", "add coin 5") == "5"
        wrong = game.host("n1", "wrong", "0123456789abcdeX")
        assert wrong.wait() == 1 and wrong.log_has("Refused: the node says goodbye: the token is not the node's"), wrong.tail()
        host = fleet.process("host-n1")
        fleet.process("n1").kill().wait()
        fleet.start("n1", fleet.process("n1").words)
        until("it lives again", lambda: succeeds(game, "ann", "bag") == "coin=5")
        assert host.running and not host.log_has("Traceback")


def rooms_move_with_what_they_have(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, "n1", "n2")
        fleet.settled(["n1", "n2"])
        rooms = [f"room-{i}" for i in range(6)]
        for i, room in enumerate(rooms):
            assert game(f"p{i}", f"join {room}") == "joined"
            assert game(f"p{i}", f"say {room} hi") == "said to 1"
        fleet.tell("node", "drain", "n1", "--wait", "60")
        for i, room in enumerate(rooms):
            assert game(f"@4/{room}", "who") == f"p{i}, 1 said"


main([
    its_own_tests_pass,
    it_conforms,
    players_give_and_rooms_push,
    a_host_that_is_killed_comes_back,
    a_node_restarts_and_its_host_comes_again,
    rooms_move_with_what_they_have,
])  # fmt: skip
