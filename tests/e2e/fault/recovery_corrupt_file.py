#!/usr/bin/env python3
"""Recovery, scenario 4: a file is corrupt. One case a file.

The daemon refuses to start and names the file and the remedy; the remedy is done to the letter;
the fleet passes `ringhold check`. Meanwhile the other coordinators go on, and no value is lost.
"""
import os
import shutil
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, healthy, main, succeeds, until


def damage(path):
    """Overwrite a small file whole (its record stands there more than once), of a large one a quarter
    in the middle: a few bytes of a database may be such as nothing is kept in."""
    size = os.path.getsize(path)
    begin, length = (0, size) if size <= 65536 else (size // 2, size // 4)
    with open(path, "r+b") as f:
        f.seek(begin)
        f.write(os.urandom(length))


def build(binary):
    fleet = Fleet(binary)
    fleet.coordinators(3)
    for name in ("n1", "n2", "n3"):
        fleet.node(name)
    redis = Resp(fleet.gateway("g1").resp)
    fleet.settled(["n1", "n2", "n3"])
    for i in range(200):
        assert redis("SET", f"k{i}", str(i)) == "OK"
    return fleet, redis


def values_are_there(redis):
    assert all(redis("GET", f"k{i}") == str(i) for i in range(200))


def refused(fleet, process):
    """It ended by itself, without a signal, and named a file and what to do."""
    code = process.wait()
    assert code > 0, (code, process.tail())
    assert fleet.folder in process.tail(20) and "recover" in process.tail(20), process.tail(20)


def a_coordinators(file, *, remade=False):
    def run(binary):
        fleet, redis = build(binary)
        with fleet:
            victim = fleet.process("c2")
            victim.kill(15).wait()
            damage(os.path.join(fleet.data("c2"), file))
            if remade:  # only a copy for people: each start makes it anew
                fleet.coordinator(2)
            else:
                refused(fleet, fleet.coordinator(2, ready=False))
                code, out, _ = fleet.run("recover", "inspect", fleet.data("c2"))
                assert code == 2 and file in out and "damaged" in out, out
                # The runbook: all stop, the best sound folder is copied, the copy is adopted.
                for number in (1, 3):
                    fleet.process(f"c{number}").kill(15).wait()
                os.rename(fleet.data("c2"), fleet.data("c2.damaged"))
                shutil.copytree(fleet.data("c1"), fleet.data("c2"))
                words = ["coordinator", "--id", "2", "--cluster", fleet.cluster, "--peers", fleet.peers]
                code, _, err = fleet.run(*words, "--data", fleet.data("c2"), "--adopt")
                assert code == 0, err
                started = [
                    fleet.coordinator(1, extra=["--readmit", "2"], ready=False),
                    fleet.coordinator(2, ready=False),
                    fleet.coordinator(3, extra=["--readmit", "2"], ready=False),
                ]
                for process in started:
                    process.wait_ready()
            fleet.settled(["n1", "n2", "n3"], deadline=90)
            values_are_there(redis)
            healthy(fleet)

    run.__name__ = "a_coordinators_" + file.replace(".", "_").replace("-", "_")
    return run


def a_nodes(file):
    def run(binary):
        fleet, redis = build(binary)
        with fleet:
            fleet.process("n2").kill(9).wait()
            damage(os.path.join(fleet.data("n2"), file))
            refused(fleet, fleet.node("n2", ready=False))
            # The runbook: a new node in a new folder; the old name is removed.
            fleet.node("n2b")
            fleet.settled(["n1", "n2b", "n3"], deadline=90)
            fleet.tell("node", "remove", "n2")
            fleet.settled(["n1", "n2b", "n3"], deadline=90)
            until("requests are answered", lambda: succeeds(redis, "SET", "after", "1") == "OK")
            healthy(fleet)

    run.__name__ = f"a_nodes_{file}"
    return run


main(
    [a_coordinators(file) for file in ("raft.db", "raft.tail", "witness")]
    + [a_coordinators("state.db", remade=True)]
    + [a_nodes(file) for file in ("number", "identity")]
)
