#!/usr/bin/env python3
"""Recovery, scenario 3: an older backup is restored under a fleet that went on since.

The ring of the backup is not the ring of today: another node has joined since, vnodes have moved.
The era is raised, so no number is used twice, and nodes and gateways follow by themselves. A
restore without the raised era (files copied back by hand) is noticed and refused.
"""
import os
import shutil
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, flat, healthy, main, number_of, succeeds, until


def a_backup_older_than_the_ring_is_restored(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        for name in ("n1", "n2"):
            fleet.node(name)
        gateway = fleet.gateway("g1").resp
        old = fleet.settled(["n1", "n2"])

        # A backup of a running coordinator; then the ring goes on.
        backup = fleet.data("backup")
        code, out, err = fleet.run("recover", "backup", fleet.data("c1"), backup)
        assert code == 0, (out, err)
        fleet.node("n3")
        new = fleet.settled(["n1", "n2", "n3"])
        assert number_of(new["version"]) > number_of(old["version"])

        # All coordinators' disks are lost.
        for number in (1, 2, 3):
            fleet.process(f"c{number}").kill().wait()
            shutil.rmtree(fleet.data(f"c{number}"))
        folders = [f"{number}={fleet.data(f'c{number}')}" for number in (1, 2, 3)]
        code, out, _ = fleet.run("recover", "restore", backup, *folders)
        assert code == 1 and not os.path.exists(fleet.data("c1")), out  # it only told
        code, out, err = fleet.run("recover", "restore", backup, *folders, "--lease", "3s", "--yes")
        assert code == 0, (out, err)
        started = [fleet.coordinator(number, ready=False) for number in (1, 2, 3)]
        for process in started:
            process.wait_ready()

        # All three nodes are back, the third as well, which the backup did not know.
        now = fleet.settled(["n1", "n2", "n3"], deadline=120)
        assert number_of(now["version"]) > number_of(new["version"]), "a number went back"
        redis = Resp(gateway)
        until("requests are answered", lambda: succeeds(redis, "SET", "after", "1") == "OK")
        healthy(fleet)


def files_copied_back_by_hand_are_refused(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.gateway("g1")
        fleet.settled(["n1"])
        fleet.process("c1").kill(15).wait()
        shutil.copytree(fleet.data("c1"), fleet.data("copy"))
        fleet.coordinator(1)
        node = fleet.node("n2")
        fleet.settled(["n1", "n2"])
        # The folder of yesterday, with today's memory of how far it was: refused by itself.
        fleet.process("c1").kill(15).wait()
        shutil.copy(fleet.data("copy/raft.db"), fleet.data("c1/raft.db"))
        code, _, err = fleet.run(
            "coordinator", "--id", "1", "--cluster", fleet.cluster, "--peers", fleet.peers,
            "--data", fleet.data("c1"),
        )  # fmt: skip
        assert code not in (0, None) and code > 0 and "recover" in err, (code, err)
        # The whole folder of yesterday looks sound: a node that has seen more refuses it.
        shutil.rmtree(fleet.data("c1"))
        shutil.copytree(fleet.data("copy"), fleet.data("c1"))
        coordinator = fleet.coordinator(1)
        # Its incarnation is unknown there: it has no lease, and isn't barred by who knows less.
        until("it says so", lambda: coordinator.log_has("database_went_back node="))  # n1 and g1 know it, too
        assert node.running, node.tail()
        node.kill(9).wait()
        node = fleet.node("n2", ready=False)
        assert node.wait() not in (0, 75) and node.log_has("went back"), node.tail()
        # The remedy: what is there becomes a new era, above all that the nodes have seen.
        fleet.process("c1").kill(15).wait()
        backup = fleet.data("backup")
        c1 = fleet.data("c1")
        for words in (["backup", c1, backup], ["restore", backup, c1, "--lease", "3s", "--yes"]):
            code, out, err = fleet.run("recover", *words)
            assert code == 0, (words, out, err)
        fleet.coordinator(1)
        if not fleet.process("n1").running:
            fleet.node("n1")
        fleet.node("n2")
        fleet.settled(["n1", "n2"], deadline=120)
        healthy(fleet)


def a_whole_folder_copied_back_under_running_nodes_is_noticed(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            fleet.node(name)
        redis = Resp(fleet.gateway("g1").resp)
        old = fleet.settled(["n1", "n2"])
        fleet.process("c1").kill(15).wait()
        shutil.copytree(fleet.data("c1"), fleet.data("copy"))
        fleet.coordinator(1)
        fleet.tell("node", "weight", "n2", "3")
        until("vnodes moved", lambda: number_of(fleet.settled(["n1", "n2"])["version"]) > number_of(old["version"]) + 8)
        fleet.process("c1").kill(15).wait()
        shutil.rmtree(fleet.data("c1"))
        shutil.copytree(fleet.data("copy"), fleet.data("c1"))
        # Its files agree with each other, and both nodes run and are registered there: they know more.
        coordinator = fleet.coordinator(1)
        until("it says so", lambda: coordinator.log_has("database_went_back"))
        until("no lease is in force", lambda: "has no valid lease" in flat(fleet.run(
            "check", "--coordinators", fleet.addresses, "--cluster", fleet.cluster)[1]))  # fmt: skip
        shown = fleet.status()
        assert {n["version"] for n in shown["nodes"]} != {shown["version"]}, shown
        assert number_of(shown["number"]) == number_of(old["number"]), "a number was drawn again"
        coordinator.kill(15).wait()
        backup = fleet.data("backup")
        for words in (["backup", fleet.data("c1"), backup], ["restore", backup, fleet.data("c1"), "--lease", "3s", "--yes"]):
            code, out, err = fleet.run("recover", *words)
            assert code == 0, (words, out, err)
        fleet.coordinator(1)
        fleet.settled(["n1", "n2"], deadline=120)
        until("requests are answered", lambda: succeeds(redis, "SET", "after", "1") == "OK")
        healthy(fleet)


main([
    a_backup_older_than_the_ring_is_restored,
    files_copied_back_by_hand_are_refused,
    a_whole_folder_copied_back_under_running_nodes_is_noticed,
])  # fmt: skip
