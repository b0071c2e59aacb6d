#!/usr/bin/env python3
"""What an operator asks and changes: the plan before a node comes or goes, weights, backups."""
import os

from fleet import Fleet, Resp, main


def shares(fleet):
    return {n["node"]: n["share_ppm"] for n in fleet.status()["nodes"]}


def started(fleet, *names):
    fleet.coordinators(1)
    for name in names:
        fleet.node(name)
    fleet.gateway("g1")
    fleet.settled(names)


def refused(fleet, *words):
    code, out, err = fleet.run(*words, "--coordinators", fleet.addresses)
    assert code == 1 and out == "" and err, (words, code, out, err)
    return err


def a_plan_is_what_happens_then(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2", "n3")
        version = fleet.status()["version"]
        redis = Resp(fleet.process("g1").resp)
        for i in range(300):
            redis("SET", f"k{i}", "x" * 100)
        plan = fleet.ask("ring", "--diff", "weight", "n1", "3")
        before = shares(fleet)
        assert fleet.status()["version"] == version, "looking changes nothing"
        assert plan["vnodes"] > 0 and plan["transactions"] > 0 and plan["time_us"] > 0, plan
        fleet.tell("node", "weight", "n1", "3")
        fleet.settled(["n1", "n2", "n3"])
        after = shares(fleet)
        for name in before:
            came = sum(m["share_ppm"] for m in plan["moves"] if m["to"] == name)
            went = sum(m["share_ppm"] for m in plan["moves"] if m["from"] == name)
            assert abs(before[name] + came - went - after[name]) < 10, (name, before, after, plan)
        again = fleet.ask("ring", "--diff", "weight", "n1", "3")
        assert again["vnodes"] == 0 and again["moves"] == [], again
        drain = fleet.ask("ring", "--diff", "drain", "n1")
        assert {m["from"] for m in drain["moves"]} == {"n1"}, drain
        assert drain["actors"] > 0 and drain["bytes"] > 0 and drain["share_ppm"] == after["n1"], drain
        join = fleet.ask("ring", "--diff", "add", "n9")
        assert {m["to"] for m in join["moves"]} == {"n9"}, join
        assert abs(join["share_ppm"] - 1000000 / 6) < 20000, join


def what_makes_no_sense_is_refused(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1")
        assert "unknown node" in refused(fleet, "ring", "--diff", "drain", "n9")
        assert "last node" in refused(fleet, "ring", "--diff", "drain", "n1")
        assert "there already" in refused(fleet, "ring", "--diff", "add", "n1")
        assert "--diff is add" in refused(fleet, "ring", "--diff", "sink", "n1")
        assert "1 to 1000" in refused(fleet, "ring", "--diff", "weight", "n1", "1001")
        assert "WEIGHT" in refused(fleet, "ring", "--diff", "weight", "n1")
        assert "--diff" in refused(fleet, "ring", "n1")
        assert "unknown node" in refused(fleet, "node", "weight", "n9", "2")
        assert "1 to 1000" in refused(fleet, "node", "weight", "n1", "0")


def a_backup_goes_to_a_file_or_a_folder(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1")
        folder = fleet.data("backups")
        os.mkdir(folder)
        code, out, err = fleet.run("backup", folder, "--data", fleet.data("c1"))
        assert code == 0 and "cluster ringhold" in out, (code, out, err)
        (file,) = os.listdir(folder)
        assert file.startswith("ringhold-") and file.endswith(".backup"), file
        code, _, err = fleet.run("backup", os.path.join(folder, file), "--data", fleet.data("c1"))
        assert code == 1 and "--yes replaces it" in err, (code, err)
        fleet.process("c1").kill().wait()
        code, out, err = fleet.run("restore", os.path.join(folder, file), fleet.data("c1"), "--yes")
        assert code == 0, (code, out, err)
        fleet.coordinator(1)
        fleet.settled(["n1"])


main([
    a_plan_is_what_happens_then,
    what_makes_no_sense_is_refused,
    a_backup_goes_to_a_file_or_a_folder,
])  # fmt: skip
