#!/usr/bin/env python3
"""`ringhold events` names what an operator did, who he is, and the reason that he gave."""
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
sys.path.append(sys.path[0])
from fleet import Fleet, main, until
from secured import Secured
from smoke_drain import started


def newest(fleet):
    return fleet.ask("events", "--limit", "1")[0]["id"]


def done(fleet, command, *words):
    """Tell the fleet, with a reason of its own; returns its event, which has that word."""
    before = newest(fleet)
    reason = f"ticket {before}: {command}"
    fleet.tell(*words, "--reason", reason)
    rows = [e for e in fleet.ask("events", "--limit", "100") if e["id"] > before and e["reason"] == reason]
    assert [e["command"] for e in rows] == [command], (words, rows)
    assert "@" in rows[0]["by"] and " from 127.0.0.1:" in rows[0]["by"], rows
    assert reason in fleet.tell("events", "--limit", "100")
    return rows[0]


def each_change_is_named(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2", "n3"):
            fleet.node(name)
        fleet.settled(["n1", "n2", "n3"])
        assert done(fleet, "drain", "node", "drain", "n2")["subject"] == "node n2"
        assert done(fleet, "cancel", "node", "drain", "n2", "cancel")["subject"] == "node n2"
        assert done(fleet, "weight", "node", "weight", "n2", "3")["why"] == "weight 3"
        assert done(fleet, "quarantine", "quarantine", "add", "0/boss")["subject"] == "actor 0/boss"
        assert done(fleet, "release", "quarantine", "clear", "0/boss")["subject"] == "actor 0/boss"
        assert done(fleet, "pin", "pin", "0/boss", "n1")["subject"] == "actor 0/boss at n1"
        assert done(fleet, "unpin", "unpin", "0/boss")["subject"] == "actor 0/boss"
        fleet.node("n4")
        assert done(fleet, "replace", "node", "replace", "n3", "n4")["why"] == "by n4"
        assert done(fleet, "remove", "node", "remove", "n2")["subject"] == "node n2"
        fleet.process("n4").kill(15).wait()
        until("its own wish is no operator's", lambda: any(
            (e["command"], e["subject"], e["by"]) == ("stop", "node n4", "") for e in fleet.ask("events", "--limit", "100")
        ))  # fmt: skip


def other_coordinators_are_named(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        more = []
        for number in (2, 3):
            address = f"127.0.0.1:{fleet.port()}"
            words = ["coordinator", "--id", str(number), "--cluster", fleet.cluster, "--listen", address]
            fleet.start(f"c{number}", [*words, "--join-group", "--data", fleet.data(f"c{number}")])
            more.append(f"{number}={address}")
        fleet.tell("coordinators", "add", ",".join(more), "--reason", "three of them")
        rows = until("it is told", lambda: [e for e in fleet.ask("events") if e["reason"] == "three of them"])
        assert [(e["command"], e["subject"]) for e in rows] == [("coordinators", "coordinators")], rows
        assert rows[0]["why"].startswith("wished: 1=") and "@" in rows[0]["by"], rows


def a_transaction_that_is_decided_by_hand_is_named(binary):
    with Fleet(binary) as fleet:
        busy, _redis = started(fleet)  # an actor of n2 hangs
        fleet.tell("node", "drain", "n2")
        txn = until("it pends", lambda: [t["txn"] for t in fleet.ask("txn", "list") if busy in t["waiting_for"]])[0]
        event = done(fleet, "resolve", "txn", "resolve", str(txn), "--abort")
        assert event["subject"] == f"txn {txn}" and "aborted by" in event["why"], event


def what_the_history_cannot_keep_is_refused(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        before = newest(fleet)
        changes = (
            ("node", "drain", "n1"),
            ("node", "remove", "n1"),
            ("node", "replace", "n1", "n2"),
            ("node", "weight", "n1", "2"),
            ("daemons", "bots", "3"),
            ("quarantine", "add", "0/boss"),
            ("quarantine", "clear", "0/boss"),
            ("pin", "0/boss", "n1"),
            ("unpin", "0/boss"),
            ("move", "0", "n1"),
            ("coordinators", "set", "1=127.0.0.1:1"),
            ("txn", "resolve", "1", "--abort"),
            ("upgrade", "--finish"),
            ("fix", "--yes"),
            ("rolling-restart", "--dry-run"),
        )
        for words in changes:
            for reason, why in (
                ("r" * 201, "the value is too long: at most 200 bytes"),
                ("one\ntwo", "must be UTF-8 without control characters"),
                ("\x1b[2J", "must be UTF-8 without control characters"),
            ):
                code, _, err = fleet.run(*words, "--reason", reason, "--coordinators", fleet.addresses)
                assert code == 1 and "--reason" in err and why in err, (words, code, err)
        assert newest(fleet) == before
        longest = "ü" * 100
        fleet.tell("node", "weight", "n1", "2", "--reason", longest)
        (event,) = [e for e in fleet.ask("events") if e["command"] == "weight"]
        assert event["reason"] == longest, event


def an_operator_is_known_by_his_certificate(binary):
    with Secured(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        fleet.tell("node", "weight", "n1", "2")
        (event,) = [e for e in fleet.ask("events") if e["command"] == "weight"]
        assert " as operator tests from 127.0.0.1:" in event["by"], event


main(
    [
        each_change_is_named,
        other_coordinators_are_named,
        a_transaction_that_is_decided_by_hand_is_named,
        what_the_history_cannot_keep_is_refused,
        an_operator_is_known_by_his_certificate,
    ]
)
