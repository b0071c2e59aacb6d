#!/usr/bin/env python3
"""Recovery, scenario 2: the quorum is lost for good; one coordinator's folder is left.

`ringhold recover new-cluster` makes a group of one voter, or a new group of three, from the one
survivor. It may lack the last commits: so the era is raised, and every node registers anew.
"""
import os
import shutil
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, healthy, main, succeeds, until


def lose_all_but_one(fleet):
    """A fleet with some data; then two of three coordinators are gone with their disks."""
    fleet.coordinators(3)
    for name in ("n1", "n2", "n3"):
        fleet.node(name)
    gateway = fleet.gateway("g1").resp
    fleet.id = fleet.settled(["n1", "n2", "n3"])["fleet"]
    redis = Resp(gateway)
    assert redis("SET", "before", "1") == "OK"
    for number in (1, 2, 3):
        fleet.process(f"c{number}").kill().wait()
    for number in (1, 3):
        shutil.rmtree(fleet.data(f"c{number}"))
    return gateway


def answers(fleet, gateway):
    """The fleet serves: a new value can be written and read. Old ones were in memory only."""
    assert fleet.settled(["n1", "n2", "n3"], deadline=90)["fleet"] == fleet.id, "it is the same fleet"
    redis = Resp(gateway)
    until("requests are answered", lambda: succeeds(redis, "SET", "after", "2") == "OK")
    assert redis("GET", "after") == "2"
    healthy(fleet)


def recover(fleet, *words):
    code, out, err = fleet.run("recover", *words)
    assert code == 0, (words, code, out, err)
    return out


def one_survivor_founds_a_group_of_one(binary):
    with Fleet(binary) as fleet:
        gateway = lose_all_but_one(fleet)

        # What is there?
        code, out, _ = fleet.run("recover", "inspect", fleet.data("c2"))
        assert code == 0, out
        # Without --yes it only tells what it would do.
        code, out, _ = fleet.run("recover", "new-cluster", fleet.data("c2"))
        assert code == 1 and not any("replaced" in f for f in os.listdir(fleet.data("c2"))), out

        recover(fleet, "new-cluster", fleet.data("c2"), "--lease", "3s", "--yes")
        # The nodes and gateways know three addresses; only this one answers from now on.
        old = fleet.ports
        fleet.ports = {2: old[2]}
        fleet.coordinator(2)
        answers(fleet, gateway)


def one_survivor_founds_a_group_of_three(binary):
    with Fleet(binary) as fleet:
        gateway = lose_all_but_one(fleet)
        recover(fleet, "new-cluster", fleet.data("c2"), "--voters", "1,2,3", "--lease", "3s", "--yes")
        # It leaves a file for the other machines.
        founding = next(
            os.path.join(fleet.data("c2"), f)
            for f in os.listdir(fleet.data("c2"))
            if f.startswith("new-cluster.era-")
        )
        for number in (1, 3):
            recover(fleet, "restore", founding, f"{number}={fleet.data(f'c{number}')}", "--yes")
        started = [fleet.coordinator(number, ready=False) for number in (1, 2, 3)]
        for process in started:
            process.wait_ready()
        answers(fleet, gateway)


main([one_survivor_founds_a_group_of_one, one_survivor_founds_a_group_of_three])
