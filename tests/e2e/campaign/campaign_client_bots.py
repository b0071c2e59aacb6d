#!/usr/bin/env python3
"""Players by the client libraries, thousands in a process, while all nodes are restarted one after the other: each keeps a ledger of
what the actor and its pushes told it. BOTS (10,000) in Go (clients/go/examples/bots), then MONO_BOTS (500) in C# (clients/csharp/examples), on two
gateways, ask every ASK (10) seconds and are pushed to each second. Nothing is lost, comes twice, or begins afresh."""
import json
import os
import shutil
import subprocess
import sys
import time

sys.path[:0] = [sys.path[0] + "/..", sys.path[0] + "/../smoke"]  # fleet.py and the like
from campaign import actor, figures, gateway, raise_file_limit, say
from fleet import Fleet, main, until
from smoke_clients import built_by_go, built_by_mono
from smoke_rolling_restart import Machines, rolling

BOTS = int(os.environ.get("BOTS", "10000"))
MONO_BOTS = int(os.environ.get("MONO_BOTS", "500"))
ASK = float(os.environ.get("ASK", "10"))
NODES = ("n1", "n2", "n3")


class Nodes(Machines):
    def begin(self, name):
        self.done.append(name)
        self.fleet.node(name, words(self.fleet), ready=False)


def words(fleet):
    return ["--actor", actor(fleet, "examples", "bots.so")]


def bound(gateways):
    return sum(figures(g)["bound_clients"] for g in gateways)


def through_a_rolling_restart(binary, command, count, rate):
    raise_file_limit()
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        for name in NODES:
            fleet.node(name, words(fleet))
        gateways = [gateway(fleet, f"g{i}", "--max-clients", str(count * 9 // 8 + 100)) for i in (1, 2)]
        fleet.settled(NODES)
        addresses = ",".join(g.fields["frames"] for g in gateways)
        options = [f"-gateways={addresses}", f"-n={count}", f"-rate={rate}", f"-ask={ASK}s", "-time=0s"]
        with subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bots:
            until("all are bound", lambda: bound(gateways) == count, deadline=300)
            say(f"{count} are in")
            begin, rounds = time.monotonic(), 0
            while time.monotonic() < begin + 3 * ASK:  # each has asked in one by then
                machines = Nodes(fleet)
                try:
                    code, out, err = rolling(fleet, "--command", machines.command)
                finally:
                    machines.end()
                assert code == 0 and machines.done == list(NODES), (out, err, machines.done)
                rounds += 1
            say(f"all nodes were restarted, {rounds} times")
            told, _ = bots.communicate(timeout=120)  # its stdin is closed: it ends
        told = json.loads(told)
        say(" ".join(f"{name} {number}" for name, number in told.items()))
        assert bots.returncode == 0, bots.returncode
        for name in ("lost", "duplicated", "pushes_lost", "pushes_duplicated", "unknown", "refused", "begun_afresh"):
            assert told[name] == 0, told
        assert told["bots"] == count and told["ok"] >= count and told["pushes"] >= count, told
        say("verdict: clean")


def players_in_go(binary):
    if not shutil.which("go"):
        print("# SKIP Go: it is not installed")
        return
    through_a_rolling_restart(binary, [built_by_go("clients/go", "./examples/bots")], BOTS, 500)


def players_in_csharp(binary):
    if not shutil.which("mcs"):
        print("# SKIP C#: mono is not installed")
        return
    through_a_rolling_restart(binary, ["mono", built_by_mono("Bots.cs")], MONO_BOTS, 100)


if __name__ == "__main__":
    main([players_in_go, players_in_csharp])
