#!/usr/bin/env python3
"""Coordinators that all die, fall behind, or lose their folder."""
import os
import shutil
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, number_of, until


def last(fleet, number):
    return fleet.process(f"c{number}")


def all_killed_and_restarted_keep_ring_and_numbers(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1")
        fleet.node("n2")
        redis = Resp(fleet.gateway("g1").resp)
        before = fleet.settled(["n1", "n2"])
        redis("SET", "a", "1")
        for number in fleet.ports:
            last(fleet, number).kill()
        for number in fleet.ports:
            last(fleet, number).wait()
        assert redis("GET", "a") == "1", "the fleet serves on without coordinators"
        for number in fleet.ports:
            fleet.coordinator(number)
        after = fleet.settled(["n1", "n2"])
        assert after["digest"] == before["digest"]
        assert number_of(after["version"]) >= number_of(before["version"])
        assert number_of(after["number"]) >= number_of(before["number"])
        fleet.node("n3")
        later = fleet.settled(["n1", "n2", "n3"])
        assert number_of(later["number"]) > number_of(before["number"])
        assert redis("GET", "a") == "1"


def a_follower_past_the_logs_start_gets_a_snapshot(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3, extra=["--snapshot-entries", "16"])
        fleet.node("n1")
        fleet.node("n2")
        fleet.settled(["n1", "n2"])
        leader = fleet.leader()
        lagging = next(i for i in fleet.ports if f"c{i}" != leader.name)
        last(fleet, lagging).kill().wait()
        for _ in range(3):
            fleet.tell("node", "drain", "n2")
            fleet.settled(["n1"])
            fleet.tell("node", "drain", "n2", "cancel")
            fleet.settled(["n1", "n2"])
        back = fleet.coordinator(lagging, extra=["--snapshot-entries", "16"])
        until("the snapshot is installed", lambda: back.log_has("snapshot_restored"))
        want = fleet.status()
        # It must be able to lead with what it got: kill the other two, one comes back.
        others = [i for i in fleet.ports if i != lagging]
        for number in others:
            last(fleet, number).kill().wait()
        fleet.coordinator(others[0], extra=["--snapshot-entries", "16"])
        status = fleet.settled(["n1", "n2"])
        assert status["digest"] == want["digest"] and number_of(status["number"]) >= number_of(want["number"])


def a_wiped_voter_is_refused_and_the_remedy_works(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1")
        before = fleet.settled(["n1"])
        leader = fleet.leader()
        wiped = next(i for i in fleet.ports if f"c{i}" != leader.name)
        healthy = next(i for i in fleet.ports if i != wiped)
        last(fleet, wiped).kill().wait()
        shutil.rmtree(fleet.data(f"c{wiped}"))
        bad = fleet.coordinator(wiped)
        until(
            "the reason is logged",
            lambda: any(last(fleet, i).log_has("could vote twice") for i in fleet.ports),
        )
        coordinators = fleet.status()["coordinators"]
        assert [c["role"] for c in coordinators if c["coordinator"] == wiped] == ["unreachable"], coordinators
        # The documented remedy (docs/raft.md).
        for number in fleet.ports:
            last(fleet, number).kill().wait()
        assert not bad.running
        shutil.rmtree(fleet.data(f"c{wiped}"))
        shutil.copytree(fleet.data(f"c{healthy}"), fleet.data(f"c{wiped}"))
        code, out, err = fleet.run(
            "coordinator", "--id", str(wiped), "--peers", fleet.peers, "--data", fleet.data(f"c{wiped}"), "--adopt"
        )
        assert code == 0, err
        for number in fleet.ports:
            extra = [] if number == wiped else ["--readmit", str(wiped)]
            fleet.coordinator(number, extra=extra)
        after = fleet.settled(["n1"])
        assert after["digest"] == before["digest"]
        until(
            "all three are linked",
            lambda: all(c["role"] != "unreachable" for c in fleet.status()["coordinators"]),
        )


def a_folder_that_went_back_is_refused(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        last(fleet, 1).kill().wait()
        old = os.path.join(fleet.folder, "old")
        shutil.copytree(fleet.data("c1"), old)
        fleet.coordinator(1)
        fleet.node("n2")
        fleet.settled(["n1", "n2"])
        last(fleet, 1).kill(15).wait()
        for name in os.listdir(old):
            if name.startswith("raft.db"):
                shutil.copy(os.path.join(old, name), os.path.join(fleet.data("c1"), name))
        again = fleet.start(
            "again", ["coordinator", "--peers", fleet.peers, "--data", fleet.data("c1")], ready=False
        )
        assert again.wait() != 0
        assert again.log_has("confirmed writes are missing"), again.tail()


main(
    [
        all_killed_and_restarted_keep_ring_and_numbers,
        a_follower_past_the_logs_start_gets_a_snapshot,
        a_wiped_voter_is_refused_and_the_remedy_works,
        a_folder_that_went_back_is_refused,
    ]
)
