#!/usr/bin/env python3
"""Zones on real processes: a role is kept in one, and others have its ids only while none of its nodes is there."""
import os
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, healthy, main, until


def vnodes(fleet):
    return {n["node"]: n["vnodes"] for n in fleet.status()["nodes"]}


def role_row(fleet, name):
    return next(r for r in fleet.status()["roles"] if r["role"] == name and r["placement"] == "hash")


def a_role_is_kept_in_its_zone_while_a_node_is_there(binary):
    with Fleet(binary) as fleet:
        path = os.path.join(fleet.folder, "ringhold.ini")

        def configure(text):
            with open(path, "w") as f:
                f.write("[coordinator]\n" + text)

        configure("role-zone = match=a\n")
        (coordinator,) = fleet.coordinators(1, extra=["--config", path])
        match = ["--role", "match", "--kind", "3:kv"]
        fleet.node("n1", ["--zone", "b"])
        fleet.node("m1", [*match, "--zone", "a"])
        fleet.node("m2", [*match, "--zone", "a"])
        fleet.node("m3", [*match, "--zone", "b"])
        gateway = fleet.gateway("g1")
        fleet.settled(["n1", "m1", "m2"])
        redis = Resp(gateway.resp)
        for i in range(50):
            assert redis("SET", f"@3/k{i}", i) == "OK"

        def all_there():
            assert [redis("GET", f"@3/k{i}") for i in range(50)] == [str(i) for i in range(50)]

        assert (role_row(fleet, "match")["zones"], role_row(fleet, "match")["astray"]) == ("a", "no")
        assert role_row(fleet, "default")["zones"] == ""
        zones = {z["zone"]: (z["nodes"], z["live"]) for z in fleet.status()["zones"]}
        assert zones == {"a": (2, 2), "b": (2, 2)}, zones
        assert {n["node"]: n["zone"] for n in fleet.ask("node", "list")} == {"n1": "b", "m1": "a", "m2": "a", "m3": "b"}
        # Both of the zone drain, one after the other: at last those elsewhere are better than none.
        fleet.tell("node", "drain", "m1", "--wait", "60")
        fleet.settled(["n1", "m2"])
        fleet.tell("node", "drain", "m2", "--wait", "60")
        fleet.settled(["n1", "m3"])
        all_there()
        assert role_row(fleet, "match")["astray"] == "yes"
        assert "role match is kept in a, where none of its nodes is" in fleet.tell("status")
        fleet.tell("node", "drain", "m1", "cancel")
        fleet.settled(["n1", "m1"])
        all_there()
        assert "is kept in" not in fleet.tell("status")
        # A wish that is taken back has the others have their share, without a restart.
        configure("prepare-ms = 8000\n")
        coordinator.popen.send_signal(signal.SIGHUP)
        fleet.settled(["n1", "m1", "m3"])
        all_there()
        healthy(fleet)


def others_serve_while_the_zone_is_lost_and_give_it_back(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--lease", "1s", "--election-ms", "300", "--role-zone", "a"])
        fleet.node("n1", ["--zone", "a"])
        fleet.node("n2", ["--zone", "b"])
        fleet.node("n3", ["--zone", "c"])
        fleet.settled(["n1"])
        fleet.process("n1").kill(signal.SIGKILL).wait()
        until("others have its ids", lambda: vnodes(fleet).get("n2", 0) > 0 and vnodes(fleet).get("n3", 0) > 0)
        assert role_row(fleet, "default")["astray"] == "yes"
        fleet.node("n1", ["--zone", "a"])
        until("it has them back", lambda: vnodes(fleet)["n1"] > 0 and vnodes(fleet)["n2"] == vnodes(fleet)["n3"] == 0)
        fleet.settled(["n1"])
        assert role_row(fleet, "default")["astray"] == "no"


def a_pin_to_a_node_outside_waits_until_nobody_is_inside(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--role-zone", "a"])
        fleet.node("n1", ["--zone", "a"])
        fleet.node("n2", ["--zone", "b"])
        fleet.settled(["n1"])

        def pin():
            (row,) = fleet.ask("pin", "list")
            return row["state"], row["owner"]

        fleet.tell("pin", "0/boss", "n2")
        until("nothing moves", lambda: not any(fleet.status()[k] for k in ("pending", "planned", "planning")))
        assert pin() == ("moves", "n1"), pin()
        fleet.tell("node", "drain", "n1", "--wait", "60")
        assert pin() == ("there", "n2"), pin()
        fleet.tell("node", "drain", "n1", "cancel")
        until("it is back in the zone", lambda: pin() == ("moves", "n1"))
        fleet.settled(["n1"])


def what_is_no_zone_is_refused(binary):
    with Fleet(binary) as fleet:
        for text in ("match=", "=", f"match={'x' * 64}", f"{'r' * 32}=a"):
            code, _, err = fleet.run("coordinator", "--data", fleet.data("c1"), "--role-zone", text)
            assert code != 0 and "is not ROLE=ZONE" in err, (text, code, err)


main([
    a_role_is_kept_in_its_zone_while_a_node_is_there,
    others_serve_while_the_zone_is_lost_and_give_it_back,
    a_pin_to_a_node_outside_waits_until_nobody_is_inside,
    what_is_no_zone_is_refused,
])
