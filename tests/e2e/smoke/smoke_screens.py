#!/usr/bin/env python3
"""What people see fits 100 columns, names what is wrong in its first line, and is drawn in place when it is watched."""
import os
import re
import shlex
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
sys.path.append(sys.path[0])
from fleet import Fleet, Resp, flat, main, number_of, until
from smoke_drain import Terminal, started

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.normpath(os.path.join(HERE, "..", "..", "docs", "screens.md"))
COLUMNS = 100


def begun(binary):
    """A fleet of three nodes with actors; two names are longer than most."""
    fleet = Fleet(binary)
    fleet.coordinators(3)
    for name in ("n1", "n2", "game-server-17"):
        fleet.node(name)
    fleet.gateway("g1")
    fleet.settled(["n1", "n2", "game-server-17"])
    redis = Resp(fleet.process("g1").resp)
    for i in range(3000):
        redis("SET", f"player-{i}", "x" * 200)
    until("nodes tell how long that took", lambda: all(n["p99_us"] > 0 for n in fleet.status()["nodes"]))
    return fleet


def screens(fleet):
    """[(command, what it prints)], in the order in which a fleet goes through them."""
    shown = []

    def show(*words, code=0):
        said, out, err = fleet.run(*words, "--coordinators", fleet.addresses)
        assert said == code, (words, said, out, err)
        shown.append((shlex.join(words), out + err))

    show("status")
    show("node", "list")
    show("node", "drain", "n2", "--watch", "--reason", "its disk is replaced")
    fleet.settled(["n1", "game-server-17"])
    moved = next(t for t in fleet.ask("txn", "list") if t["from"] == "n2" and t["state"] == "committed")
    show("txn", "show", str(moved["txn"]))
    fleet.process("n1").kill().wait()
    until("n1 is dead", lambda: {n["node"]: n["state"] for n in fleet.status()["nodes"]}["n1"] == "dead")
    fleet.settled(["game-server-17"])
    show("check", code=2)
    show("events", "--limit", "9")
    show("status")
    return shown


def every_screen_fits(binary):
    with begun(binary) as fleet:
        shown = screens(fleet)
    with open(PAGE) as f:
        page = f.read()
    said = dict(shown)
    for command, out in shown:
        wide = [line for line in out.splitlines() if len(line) > COLUMNS]
        assert not wide, (command, wide)
        assert not re.search("[^\x20-\x7e\n]", out), (command, "no plain text", out)
        # As many digits as 64 bits may have: the 32 hexadecimal digits of a fleet's id may have 12 decimal ones in a row.
        assert not re.search(r"(?<![0-9a-f])[0-9]{12,20}(?![0-9a-f])", out), (command, "a number without its era", out)
    assert shown[0][1].startswith("HEALTHY\n"), shown[0]
    assert shown[-1][1].startswith("PROBLEM: node n1 is dead: start it again, or: ringhold node remove n1\n"), shown[-1]
    assert re.search(r"node n1 \(incarnation 1\.\d+\) was fenced", flat(said["events --limit 9"])), said
    # The page has them all, as wide; its outputs are of another run.
    for command, _ in shown:
        asked = re.sub(r"^txn show .*", "txn show", command)
        assert f"$ ringhold {asked}" in page, command
    wide = [line for line in page.splitlines() if line.startswith("    ") and len(line) > 4 + COLUMNS]
    after = page[page.index("## Now"):]
    assert not [line for line in wide if line in after], wide


def a_number_is_taken_in_both_forms(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            fleet.node(name)
            fleet.settled([name] if name == "n1" else ["n1", "n2"])
        txn = fleet.ask("txn", "list")[0]["txn"]
        assert re.fullmatch(r"1\.\d+", txn), txn
        for form in (txn, str(number_of(txn))):
            assert fleet.ask("txn", "show", form)["txn"] == txn
            assert f"transaction {txn} " in fleet.tell("txn", "show", form)


def tables_have_a_form_for_programs(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ["--zone", "a"])
        fleet.settled(["n1"])
        head, row = fleet.tell("node", "list", "-o", "tsv").splitlines()
        (node,) = fleet.ask("node", "list")
        assert head.split("\t") == list(node) and row.split("\t")[0] == "n1", (head, node)
        assert len(head.split("\t")) == len(row.split("\t")) and "a" in row.split("\t")
        assert "INCARNATION" in fleet.tell("node", "list", "-o", "wide")
        assert "INCARNATION" not in fleet.tell("node", "list")
        first, *rest = fleet.tell("status", "-o", "tsv").split("\n\n")
        assert first.startswith("node\tstate\tshare_ppm\t") and [t.split("\t")[0] for t in rest] == ["coordinator", "role", "zone"], (first, rest)
        code, out, err = fleet.run("where", "k", "-o", "tsv", "--coordinators", fleet.addresses)
        assert code == 1 and not out and "prints no table" in err, (code, out, err)


def a_watched_status_is_drawn_in_place(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        watched = Terminal(fleet, "status", "--watch")
        # Each is drawn over the one before it; the word says what the colour does.
        again = "\033\\[H\033\\[J\033\\[32mHEALTHY\033\\[0m"
        until("it is drawn again", lambda: len(re.findall(again, watched.text)) > 2)
        watched.popen.kill()
        watched.end(-9)


class Going:
    """Something is done again and again."""

    def __init__(self, what):
        self.ends = threading.Event()
        self.what = what
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ends.is_set():
            self.what()

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def what_a_node_is_asked_and_what_waits_there_is_shown(binary):
    with Fleet(binary) as fleet:
        busy, _redis = started(fleet)  # an actor of n2 hangs
        crowd = Resp(fleet.process("g1").resp)
        crowd.send(*[("CALL", busy, "hang")] * 7)
        mine = [key for key in (f"k{i}" for i in range(20)) if fleet.ask("where", key)["node"] == "n1"]
        redis = Resp(fleet.process("g1").resp)

        def node(name):
            for key in mine:
                redis("CALL", key, "noop")
            return next(n for n in fleet.status()["nodes"] if n["node"] == name)

        until("they wait", lambda: node("n2")["waiting"] >= 7)
        until("n1 tells its rate", lambda: node("n1")["requests_s"] > 0)
        until("and how long it takes", lambda: node("n1")["p99_us"] > 0)
        row = r"^n1 .* [1-9][0-9]*/s +[1-9][0-9.]* (us|ms|s) +0 "
        assert re.search(row, fleet.tell("status"), re.M)
        assert re.search(r"^requests: [1-9]\d* a second, p99 of a node [1-9].* at most \(n1\)$", fleet.tell("status"), re.M)
        # What hangs is answered by nobody: the node that says nothing of it is last.
        assert [(n["node"], n["p99_us"] > 0) for n in fleet.ask("top", "--nodes")] == [("n1", True), ("n2", False)]
        until("n2 tells its rate", lambda: re.search(r"^n2 +live +[0-9]+/s +- +[7-9] ", fleet.tell("top", "--nodes"), re.M))
        assert [n["p99_us"] > 0 for n in fleet.ask("node", "list")] == [True, False]
        # Of one kind, in all nodes, of the time that somebody looks.
        with Going(lambda: redis("CALL", mine[0], "noop")):
            (kind,) = fleet.ask("top", "--kinds", "--for", "1s")
        assert kind["kind"] == "0" and kind["requests_s"] > 0 and 0 < kind["p50_us"] <= kind["p99_us"], kind
        code, _, err = fleet.run("top", "--nodes", "--calls", "--coordinators", fleet.addresses)
        assert code == 1 and "give one of" in err, err


if __name__ == "__main__":
    main([
        every_screen_fits,
        a_number_is_taken_in_both_forms,
        tables_have_a_form_for_programs,
        a_watched_status_is_drawn_in_place,
        what_a_node_is_asked_and_what_waits_there_is_shown,
    ])  # fmt: skip
