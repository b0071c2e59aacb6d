#!/usr/bin/env python3
"""`ringhold check` on real processes: all well is 0, each loss is named, nobody there is 1."""
import json
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until


def check(fleet, settle_ms=1000):
    """Exit code, findings."""
    code, out, err = fleet.run(
        "check", "-o", "json", "--coordinators", fleet.addresses, "--settle-ms", str(settle_ms)
    )
    assert code in (0, 2), (code, out, err)
    answer = json.loads(out)
    assert answer["ok"] == (code == 0) and len(answer["checks"]) == 10, answer
    return code, answer["findings"]


def finds(fleet, *wanted):
    """These are wrong, (check, subject), and nothing else for long; returns the findings."""

    def looked():
        code, looked.findings = check(fleet)
        return code == 2 and [(f["check"], f["subject"]) for f in looked.findings] == list(wanted)

    try:
        until(f"it finds {wanted}", looked)
    except AssertionError as error:
        raise AssertionError(f"{error}: {looked.findings}") from None
    return looked.findings


def passes(fleet):
    """Nothing is wrong, or not for long: a busy machine may take its time to hear of a change."""
    code, findings = check(fleet, 10000)
    assert (code, findings) == (0, []), findings


def a_healthy_fleet_passes(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        nodes = {name: fleet.node(name) for name in ("n1", "n2", "n3")}
        fleet.settled(nodes)
        redis = Resp(fleet.gateway("g1").resp)
        for i in range(300):
            assert redis("INCR", f"k{i}") == 1
        code, out, err = fleet.run("check", "--coordinators", fleet.addresses)
        assert code == 0 and out.count("ok ") == 10, (out, err)
        assert "3 answer" in out and "3 of 3 answer" in out and "300 live" in out, out
        # One address will do: it names the others.
        one = fleet.addresses.split(",")[0]
        code, out, err = fleet.run("check", "--coordinators", one)
        assert code == 0 and "3 answer" in out, (out, err)


def it_passes_while_vnodes_move(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1")
        fleet.settled(["n1"])
        redis = Resp(fleet.gateway("g1").resp)
        for i in range(2000):
            redis("INCR", f"k{i}")
        fleet.node("n2")
        fleet.node("n3")
        for _ in range(3):
            passes(fleet)
        fleet.settled(["n1", "n2", "n3"])
        passes(fleet)


def a_killed_node_is_named_until_it_is_back(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        nodes = {name: fleet.node(name) for name in ("n1", "n2")}
        fleet.settled(nodes)
        nodes["n2"].kill().wait()
        findings = finds(fleet, ("nodes", "node n2"))
        assert "n2" in findings[0]["what"] and "start it again" in findings[0]["todo"]
        fleet.node("n2")
        fleet.settled(nodes)
        passes(fleet)


def a_stopped_node_is_named(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        node = fleet.node("n1")
        fleet.settled(["n1"])
        node.kill(19)
        finds(fleet, ("nodes", "node n1"), ("leases", "all nodes"))
        node.kill(18)


def a_killed_coordinator_is_named_until_it_is_back(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1")
        fleet.settled(["n1"])
        dead = fleet.leader().kill()
        dead.wait()
        number = int(dead.name[1:])
        address = f"127.0.0.1:{fleet.ports[number]}"
        (finding,) = finds(fleet, ("coordinators", f"coordinator at {address}"))  # once another leads
        assert address in finding["what"], finding
        fleet.coordinator(number)
        passes(fleet)
        for other in fleet.ports:
            fleet.process(f"c{other}").kill().wait()
        code, out, err = fleet.run(
            "check", "--coordinators", fleet.addresses, "--timeout-ms", "500"
        )
        assert code == 1 and "no coordinator answers" in err, (code, out, err)


SNAPSHOT_ENTRIES = 1024  # a coordinator takes a snapshot each so many entries of the log


def coordinators_agree_after_they_loaded_a_snapshot(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1")
        fleet.node("n2")
        fleet.settled(["n1", "n2"])
        weight = 1
        while fleet.settled()["applied_index"] <= SNAPSHOT_ENTRIES + 64:
            weight = 101 - weight  # 1 and 100 by turns: half of all vnodes move each time
            fleet.tell("node", "weight", "n1", str(weight))
        for number in fleet.ports:
            fleet.process(f"c{number}").kill().wait()
            fleet.coordinator(number)
            passes(fleet)


main(
    [
        a_healthy_fleet_passes,
        it_passes_while_vnodes_move,
        a_killed_node_is_named_until_it_is_back,
        a_stopped_node_is_named,
        a_killed_coordinator_is_named_until_it_is_back,
        coordinators_agree_after_they_loaded_a_snapshot,
    ]
)
