#!/usr/bin/env python3
"""Damaged folders under the shipped daemons, and the offline tool on them.

For each damage: the daemon starts with the very ring it had, or it ends with an exit code (never
by a signal) and a message that names the file and what to do. `ringhold recover inspect` sees it.
"""
import hashlib
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main, number_of, until

COORDINATOR = [
    # file, damage, does the daemon start, does inspect see it
    ("raft.db", "flip", False, True),
    ("raft.db", "cut", False, True),
    ("raft.db", "empty", False, True),
    ("raft.db", "missing", False, True),
    ("raft.db", "directory", False, True),
    ("raft.tail", "flip", False, True),
    ("raft.tail", "empty", False, True),
    ("raft.tail", "missing", False, True),
    ("witness", "flip", True, True),  # one of two records: the other one is whole
    ("witness", "cut", False, True),
    ("witness", "empty", False, True),
    ("witness", "directory", False, True),
    ("witness", "missing", True, False),
    ("state.db", "flip", True, None),
    ("state.db", "empty", True, True),
    ("state.db", "missing", True, False),
    ("state.db", "directory", False, True),
    ("raft.lock", "directory", False, True),
    ("recovery", "empty", False, True),
]

NODE = [
    ("identity", "flip", False, True),
    ("identity", "cut", False, True),
    ("identity", "empty", False, True),
    ("identity", "missing", False, True),
    ("identity", "directory", False, True),
    ("number", "cut", False, True),
    ("number", "empty", False, True),
    ("number", "missing", False, True),
    ("number", "directory", False, True),
    ("lock", "directory", False, True),
]


def damage(folder, file, how):
    path = os.path.join(folder, file)
    if how == "flip":
        with open(path, "r+b") as f:
            f.seek(20)
            byte = f.read(1)[0]
            f.seek(20)
            f.write(bytes([byte ^ 0x40]))
    elif how == "cut":
        os.truncate(path, os.path.getsize(path) // 2)
    elif how == "empty":
        open(path, "w").close()
    else:
        if os.path.exists(path):
            os.remove(path)
        if how == "directory":
            os.mkdir(path)


def outcome(fleet, words):
    """Start a daemon that is expected to end by itself; (exit code, all it said). None: it runs."""
    process = subprocess.Popen(
        [fleet.binary, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    watchdog = threading.Timer(30, process.kill)  # it must do one or the other
    watchdog.start()
    text = b""
    while True:
        line = process.stdout.readline()
        text += line
        if line.startswith(b"ready"):
            process.kill()
            process.wait()
            process.stdout.close()
            watchdog.cancel()
            return None, text.decode()
        if not line:
            code = process.wait(60)
            process.stdout.close()
            watchdog.cancel()
            return code, text.decode()


def said(code, text, folder, what):
    assert code is not None and code > 0, (what, code, text)
    assert folder in text, (what, text)
    remedies = ("recover", "remedy=", "give this user", "point --data", "stop that process first")
    assert any(word in text for word in remedies), (what, text)


def put_back(folder, sound):
    shutil.rmtree(folder)
    shutil.copytree(sound, folder)


def a_damaged_coordinator_starts_sound_or_says_why(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.node("n2")
        before = fleet.settled(["n1", "n2"])
        for name in ("n1", "n2", "c1"):
            fleet.process(name).kill().wait()
        fleet.coordinator(1).kill(15).wait()  # a clean stop: all is in raft.db
        folder, sound = fleet.data("c1"), fleet.data("sound")
        shutil.copytree(folder, sound)
        words = fleet.process("c1").words
        for file, how, starts, seen in COORDINATOR:
            what = f"{file} {how}"
            put_back(folder, sound)
            damage(folder, file, how)
            code, out, err = fleet.run("recover", "inspect", folder, "-o", "json")
            if seen is not None:
                assert code == (2 if seen else 0), (what, code, out, err)
            code, text = outcome(fleet, words)
            if not starts:
                said(code, text, folder, what)
                continue
            assert code is None, (what, text)
            code, out, err = fleet.run("recover", "verify", folder, "-o", "json")
            after = json.loads(out)
            assert after["digest"] == before["digest"], (what, out)
            assert number_of(after["number"]) >= number_of(before["number"]), (what, out)


def a_damaged_node_says_why(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        fleet.process("n1").kill().wait()
        folder, sound = fleet.data("n1"), fleet.data("sound")
        shutil.copytree(folder, sound)
        words = fleet.process("n1").words
        for file, how, starts, seen in NODE:
            what = f"{file} {how}"
            put_back(folder, sound)
            damage(folder, file, how)
            code, out, err = fleet.run("recover", "inspect", folder)
            assert code == (2 if seen else 0), (what, code, out, err)
            code, text = outcome(fleet, words)
            said(code, text, folder, what)
            assert not starts
        put_back(folder, sound)
        assert outcome(fleet, words)[0] is None


def one_folder_takes_one_process(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        for name in ("c1", "n1"):
            code, text = outcome(fleet, fleet.process(name).words)
            said(code, text, fleet.data(name), name)
            code, out, err = fleet.run("recover", "inspect", fleet.data(name))
            assert code == 0 and "IN USE" in out, (out, err)
        code, out, err = fleet.run("recover", "new-cluster", fleet.data("c1"), "--yes")
        assert code == 1 and "stop that coordinator" in err, (code, out, err)


def a_copied_folder_takes_nobodys_place(binary):
    """It says the same machine, boot and folder, and has a lock of its own: no proof that the first is dead."""
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        node = fleet.node("n1")
        fleet.node("n2")
        was = fleet.settled(["n1", "n2"])
        copy = fleet.data("copy")
        shutil.copytree(fleet.data("n1"), copy)
        words = [copy if w == fleet.data("n1") else w for w in node.words]
        code, text = outcome(fleet, words)
        assert code not in (0, None) and "belongs to a live node" in text, (code, text)
        now = fleet.settled(["n1", "n2"])
        assert node.running and now["number"] == was["number"], (was, now)
        # The one that had the name has it again at once: its folder proves it.
        node.kill().wait()
        fleet.start("n1", node.words)
        again = fleet.settled(["n1", "n2"])
        assert number_of(again["number"]) > number_of(now["number"])


def fingerprint(folder):
    """Every file below it, and what is in it."""
    found = {}
    for at, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(at, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = hashlib.sha256(f.read()).hexdigest()
    return found


def a_folder_of_another_role_is_refused(binary):
    """Whether or not its own process runs: else two of them write there, each by its own lock."""
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        node, coordinator = fleet.process("n1"), fleet.process("c1")

        def refused(words, mine, folder, role, what):
            was = None if what == "runs" else fingerprint(folder)
            names = sorted(os.listdir(folder))
            code, text = outcome(fleet, [folder if w == mine else w for w in words])
            lines = text.splitlines()  # at most one of the log, and the program's own
            assert code == 1 and 1 <= len(lines) <= 2 and all(folder in line for line in lines), (code, text)
            assert f"{role}'s" in text and "point --data" in text, text
            assert sorted(os.listdir(folder)) == names
            assert was is None or fingerprint(folder) == was

        for what in ("runs", "stopped"):
            if what == "stopped":
                node.kill().wait()
                coordinator.kill().wait()
            refused(coordinator.words, fleet.data("c1"), fleet.data("n1"), "node", what)
            refused(node.words, fleet.data("n1"), fleet.data("c1"), "coordinator", what)
        fleet.coordinator(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        assert not shared_files(fleet.data("c1")) and not shared_files(fleet.data("n1"))


def shared_files(folder):
    """Files that somebody else may read."""
    return [n for n in os.listdir(folder) if os.stat(os.path.join(folder, n)).st_mode & 0o077]


def what_is_left_of_a_new_file_leads_nowhere(binary):
    """A link where a daemon writes a file anew, before it gives it its name."""
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        bystander = fleet.data("bystander")
        with open(bystander, "w") as f:
            f.write("precious")
        os.mkdir(fleet.data("n1"))
        for name in ("identity.new", "number.new"):
            os.symlink(bystander, os.path.join(fleet.data("n1"), name))
        fleet.node("n1")
        fleet.settled(["n1"])
        with open(bystander) as f:
            assert f.read() == "precious"
        assert not os.path.islink(os.path.join(fleet.data("n1"), "identity"))


def hostile(good, foreign):
    """No backup, each in its own way: what it is, and its bytes."""
    size = len(good)
    for cut in sorted({0, 1, 15, 16, 99, 100, 511, 512, 4095, 4096, size // 2, size - 4096, size - 512, size - 1}):
        yield f"cut at {cut}", good[:cut]
    for at in sorted({0, 17, 18, 24, 28, 60, 96, 100, 103, *range(200, size, size // 40), size - 1}):
        yield f"bit of byte {at}", good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :]
    yield "something behind it", good + b"x" * 4096
    yield "a text", b"this is no backup\n" * 400
    yield "zeros", bytes(size)
    yield "another database", foreign


def a_hostile_backup_changes_nothing(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        before = fleet.settled(["n1"])
        folder, backup, bad = fleet.data("c1"), fleet.data("backup"), fleet.data("bad")
        code, out, err = fleet.run("backup", backup, "--data", folder)
        assert code == 0, (out, err)
        fleet.process("c1").kill().wait()
        with open(backup, "rb") as f:
            good = f.read()
        sqlite3.connect(fleet.data("foreign")).executescript("create table t(a); insert into t values (1);").close()
        with open(fleet.data("foreign"), "rb") as f:
            foreign = f.read()
        was = fingerprint(folder)

        def refused(what, file):
            code, out, err = fleet.run("restore", file, folder, "--yes")
            assert code > 0 and err and "Sanitizer" not in err, (what, code, out, err)
            assert fingerprint(folder) == was, what

        for what, content in hostile(good, foreign):
            with open(bad, "wb") as f:
                f.write(content)
            refused(what, bad)
        os.mkdir(fleet.data("empty"))
        refused("a directory", fleet.data("empty"))
        refused("nothing", fleet.data("none"))
        os.symlink(fleet.data("loop"), fleet.data("loop"))
        refused("a link to itself", fleet.data("loop"))
        fleet.coordinator(1)
        after = fleet.settled(["n1"])
        assert (after["era"], after["digest"]) == (before["era"], before["digest"]), (before, after)


def a_full_disk_ends_with_74_and_loses_nothing(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        before = fleet.settled(["n1"])
        coordinator = fleet.process("c1")
        pid = coordinator.popen.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, 1024))

        def gives_up():
            # Something to write: until it has come there.
            fleet.run("node", "drain", "n1", "--coordinators", fleet.addresses, "--timeout-ms", "500")
            return not coordinator.running

        until("it gives up", gives_up)
        assert coordinator.wait() == 74, coordinator.tail()
        assert fleet.data("c1") in coordinator.tail() and "remedy=" in coordinator.tail()
        fleet.coordinator(1)
        after = fleet.settled(["n1"])
        assert after["digest"] == before["digest"] and number_of(after["number"]) >= number_of(before["number"])


def a_new_nodes_full_disk_leaves_a_folder_that_starts(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        folder = fleet.data("n1")
        words = [binary, "node", "--name", "n1", "--data", folder, "--join", fleet.addresses]
        done = subprocess.run(["prlimit", "--fsize=6000", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1, done
        assert f"{folder}/number: can't create it" in done.stderr and "No space left" in done.stderr, done.stderr
        fleet.node("n1")  # there is room again
        fleet.settled(["n1"])


def integers(value):
    """All that there are in an answer."""
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return [i for v in inner for i in integers(v)]
    return [value] if isinstance(value, int) else []


def a_backup_restores_a_group_that_lost_all_its_folders(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1")
        fleet.node("n2")
        before = fleet.settled(["n1", "n2"])
        backup = fleet.data("backup")
        code, out, err = fleet.run("recover", "backup", fleet.data("c2"), backup)  # it runs
        assert code == 0, (out, err)
        folders = [fleet.data(f"c{i}") for i in fleet.ports]
        for i in fleet.ports:
            fleet.process(f"c{i}").kill().wait()
            shutil.rmtree(fleet.data(f"c{i}"))
        targets = [f"{i}={folder}" for i, folder in zip(fleet.ports, folders)]
        code, out, err = fleet.run("recover", "restore", backup, *targets)
        assert code == 1 and "nothing was changed" in out, (out, err)
        assert not os.path.exists(folders[0])
        code, out, err = fleet.run("recover", "restore", backup, *targets, "--lease", "3s", "--yes")
        assert code == 0, (out, err)
        for i in fleet.ports:
            fleet.coordinator(i)
        after = fleet.settled(["n1", "n2"])
        assert after["era"] > before["era"] and number_of(after["number"]) > number_of(before["number"])
        until(
            "both nodes register in the new era",
            lambda: all(number_of(n["incarnation"]) >> 40 == after["era"] for n in fleet.ask("node", "list")),
        )
        # What programs read as a floating point number is the number that was meant.
        for words in (["status"], ["node", "list"], ["ring"], ["txn", "list"], ["events"], ["where", "k"]):
            assert max(integers(fleet.ask(*words))) < 2**53, words
        fleet.tell("node", "drain", "n1", "--wait", "60")
        txn = fleet.ask("txn", "list")[0]["txn"]
        assert txn.startswith(f"{after['era']}.") and fleet.ask("txn", "show", txn)["txn"] == txn


main(
    [
        a_damaged_coordinator_starts_sound_or_says_why,
        a_damaged_node_says_why,
        one_folder_takes_one_process,
        a_copied_folder_takes_nobodys_place,
        a_folder_of_another_role_is_refused,
        what_is_left_of_a_new_file_leads_nowhere,
        a_full_disk_ends_with_74_and_loses_nothing,
        a_new_nodes_full_disk_leaves_a_folder_that_starts,
        a_backup_restores_a_group_that_lost_all_its_folders,
        a_hostile_backup_changes_nothing,
    ]
)
