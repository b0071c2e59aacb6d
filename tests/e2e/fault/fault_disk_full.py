#!/usr/bin/env python3
"""A full disk under a coordinator, the leader too, and under a node: small file systems in memory,
filled by the test. Needs root.

The process ends with exit 74 and names the file; others go on, no request fails; when there is room
again it starts as if nothing had been.
"""
import contextlib
import os
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, healthy, main, until
from ledger import Faults, Load, judge


@contextlib.contextmanager
def small_disk(folder):
    os.makedirs(folder)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", folder], capture_output=True)
    assert done.returncode == 0, done.stderr
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder):
    """Not a byte is left."""
    with open(os.path.join(folder, "ballast"), "wb", buffering=0) as f:
        for size in (65536, 4096):
            with contextlib.suppress(OSError):
                while True:
                    f.write(b"x" * size)


def drain(fleet, turn):
    words = ["node", "drain", "n3"] + (["cancel"] if turn % 2 else [])
    fleet.run(*words, "--coordinators", fleet.addresses, "--cluster", fleet.cluster)


def ledger_node(fleet, name):
    fleet.node(name, ["--actor", "ledger"], {"RINGHOLD_LEDGER": fleet.data("journals")})


def three_under_load(fleet):
    """Three coordinators, three nodes: the load, and where the journals are."""
    os.mkdir(fleet.data("journals"))
    fleet.coordinators(3)
    for name in ("n1", "n2", "n3"):
        ledger_node(fleet, name)
    gateway = fleet.gateway("g1").resp
    fleet.settled(["n1", "n2", "n3"])
    return Load([gateway], ids=300, rate=600, patience=60), fleet.data("journals")


def a_coordinators_disk_fills(which):
    def run(binary):
        with Fleet(binary) as fleet, contextlib.ExitStack() as disks:
            for number in (1, 2, 3):
                disks.enter_context(small_disk(fleet.data(f"c{number}")))
            load, journals = three_under_load(fleet)
            leader = fleet.leader()
            victim = leader
            if which == "follower":
                victim = next(p for p in fleet.processes if p.name[0] == "c" and p is not leader)
            fill(fleet.data(victim.name))
            turn = 0

            def ended():
                nonlocal turn
                drain(fleet, turn)  # something to write
                turn += 1
                return not victim.running

            until("it notices that its disk is full", ended, pause=0.3)
            assert victim.wait() == 74, (victim.wait(), victim.tail())
            assert "disk is full" in victim.tail(20) and fleet.data(victim.name) in victim.tail(20), victim.tail(20)
            fleet.settled(deadline=90)
            os.unlink(os.path.join(fleet.data(victim.name), "ballast"))
            fleet.coordinator(int(victim.name[1:]))
            fleet.settled(deadline=90)
            verdict = judge(load.finish(), journals)
            print(f"# {verdict.words()}")
            verdict.must_be_clean(planned=True)
            healthy(fleet)
            for p in fleet.processes:  # before their disks go
                p.kill().wait()

    run.__name__ = f"a_{which}s_disk_fills"
    return run


def a_nodes_disk_fills(binary):
    with Fleet(binary) as fleet, small_disk(fleet.data("n2")):
        load, journals = three_under_load(fleet)
        fill(fleet.data("n2"))
        victim = fleet.process("n2")
        faults = Faults()
        turn = 0

        def ended():
            nonlocal turn
            drain(fleet, turn)  # a transaction: its number has to be written before the vote
            turn += 1
            return not victim.running or turn > 20

        until("it notices, or needs no room", ended, pause=0.5)
        if victim.running:
            print("# its record is overwritten in place: a full disk does not hurt it")
        else:
            faults.killed(victim)
            assert victim.wait() == 74, (victim.wait(), victim.tail())
            os.unlink(os.path.join(fleet.data("n2"), "ballast"))
            ledger_node(fleet, "n2")
        fleet.settled(deadline=90)
        verdict = judge(load.finish(), journals, faults)
        print(f"# {verdict.words()}")
        verdict.must_be_clean()
        healthy(fleet)
        for p in fleet.processes:
            p.kill().wait()


def missing():
    """Why no small file system can be mounted here, or ""."""
    if os.geteuid() != 0:
        return "needs root to mount a small file system"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(os.path.join(folder, "probe")):
                return ""
        except AssertionError as error:
            return f"can't mount a small file system: {error}"


cases = [a_coordinators_disk_fills("follower"), a_coordinators_disk_fills("leader"), a_nodes_disk_fills]
why = missing()
if why:
    for case in cases:
        print(f"ok - {case.__name__} # SKIP {why}")
else:
    main(cases)
