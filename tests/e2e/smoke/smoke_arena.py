#!/usr/bin/env python3
"""examples/arena: `run` from start to end; and bots who keep count of the gold while a node joins, one drains, one is killed, and hosts are
killed: none is lost, none is made. Its compose file and Kubernetes patch have options that the programs take."""
import json
import os
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import DEADLINE, Fleet, Resp, free_port, main, succeeds, until
from smoke_clients import ROOT

HERE = os.path.join(ROOT, "examples", "arena")
KINDS = ["0:host=player,durable,sessions=kick", "1@singleton:host=lobby,durable", "2:host=room,durable,alarms"]
KINDS += ["3@singleton:host=board,durable"]


class Arena:
    def __init__(self, fleet):
        self.fleet, self.program = fleet, os.path.join(fleet.folder, "arena")
        subprocess.run(["go", "build", "-o", self.program, "."], cwd=HERE, check=True)

    def node(self, name):
        kinds = [word for kind in KINDS for word in ("--kind", kind)]
        store = ["--store", "sqlite:" + self.fleet.data("game.db"), "--host-silence", "1s"]
        self.fleet.node(name, [*kinds, *store, "--host", "unix:" + self.fleet.data(name + ".sock")])
        self.host(name)

    def host(self, name):
        words = ["host", "unix:" + self.fleet.data(name + ".sock")]
        return self.fleet.start(f"host-{name}", words, program=self.program, ready=False)


def one_command_starts_it(binary):
    words = [os.path.join(HERE, "run"), "--bots", "6", "--time", "3s", "--port", str(free_port())]
    run = subprocess.run(words, env={**os.environ, "RINGHOLD": os.path.abspath(binary)}, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and "60 gold, as in the beginning" in run.stdout, (run.stdout, run.stderr)
    for wrong in (["--bots"], ["--nonsense"]):
        assert subprocess.run([words[0], *wrong], capture_output=True, timeout=60).returncode == 1, wrong


def no_gold_is_lost_and_none_is_made(binary):
    with Fleet(binary) as fleet:
        arena = Arena(fleet)
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            arena.node(name)
        fleet.settled(["n1", "n2"])
        gateway = fleet.gateway("g1", ["--frames", "127.0.0.1:0"])
        redis = Resp(gateway.resp)
        until("a player answers", lambda: (succeeds(redis, "CALL", "x", "hello") or "").startswith("you "))
        words = [arena.program, "bots", "-gateways", gateway.fields["frames"], "-n", "30", "-time", "2m"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as bots:
            until("they play", lambda: won(redis) >= 5)
            fleet.process("host-n1").kill().wait()
            arena.host("n1")
            until("they play on", more(redis))
            arena.node("n3")
            fleet.settled(["n1", "n2", "n3"])
            fleet.tell("node", "drain", "n2", "--wait", "60")
            until("they play on", more(redis))
            fleet.process("n3").kill().wait()
            until("they play on", more(redis))
            bots.terminate()  # all is seen: now they count
            out, err = bots.communicate(timeout=120)
        assert bots.returncode == 0 and "300 gold, as in the beginning" in out, (out, err)
        print("# " + out.strip())


def won(redis):
    top = succeeds(redis, "CALL", "x", "top") or "top []"
    return sum(row["wins"] for row in json.loads(top.removeprefix("top ")))


def more(redis):
    before = won(redis)
    return lambda: won(redis) > before


def containers_have_options_that_there_are(binary):
    with open(os.path.join(HERE, "compose.yaml"), encoding="utf-8") as f:
        compose = f.read()
    with open(os.path.join(HERE, "kubernetes.yaml"), encoding="utf-8") as f:
        patch = f.read()
    for kind in KINDS:
        assert compose.count(f'--kind, "{kind}"') == 2 and f"- --kind={kind}\n" in patch, kind
    for command in ("coordinator", "node", "gateway"):
        told = subprocess.run([binary, command, "--help"], capture_output=True, text=True, check=True, timeout=DEADLINE).stdout
        for line in compose.split(f"command: [{command},")[1:]:
            for word in line.split("]")[0].split():
                if word.startswith("--"):
                    assert word.rstrip(",") in told, (command, word)


if __name__ == "__main__":
    if not shutil.which("go"):
        print("# SKIP Go: it is not installed")
        main([containers_have_options_that_there_are])
    main([one_command_starts_it, no_gold_is_lost_and_none_is_made, containers_have_options_that_there_are])
