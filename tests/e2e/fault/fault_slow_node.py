#!/usr/bin/env python3
"""One of four nodes answers seconds late, or not at all, while a fifth joins.

A proxy delays every byte between n2 and the coordinator. The moves that do not touch n2 are all
committed before the first one that waits for it, and `ringhold txn list` names n2 as the one
waited for.
"""
import collections
import queue
import signal
import socket
import sys
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, pairs, until

DELAY = 2.5  # seconds, one way: a move takes two answers, and a well node gives both in a few ms


class DelayProxy:
    """Passes TCP on; each byte arrives `delay` seconds later, in both directions."""

    def __init__(self, target):
        self.target = target
        self.delay = 0.0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.target)
            except OSError:
                return
            for source, sink in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.pump(source, sink)

    def pump(self, source, sink):
        line = queue.Queue()

        def take():
            try:
                while data := source.recv(65536):
                    line.put((time.monotonic() + self.delay, data))
            except OSError:
                pass
            line.put((time.monotonic() + self.delay, b""))

        def give():
            try:
                while True:
                    due, data = line.get()
                    time.sleep(max(0.0, due - time.monotonic()))
                    if not data:
                        break
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        for body in (take, give):
            threading.Thread(target=body, daemon=True).start()

    def close(self):
        self.listener.close()


class Watch(threading.Thread):
    """Reads `txn list` again and again: whom do pending transactions wait for?"""

    def __init__(self, fleet):
        super().__init__(daemon=True)
        self.fleet = fleet
        self.named = collections.Counter()
        self.example = ""
        self.stop = False

    def run(self):
        while not self.stop:
            for row in self.fleet.ask("txn", "list"):
                text = row.get("waiting_for", "")
                if row["state"] == "pending" and ": no answer for " in text:
                    self.named[text.split(":")[0]] += 1
                    if text.startswith("n2:"):
                        self.example = text
            time.sleep(0.01)


def join(fleet, name, home):
    """A node joins. Returns the commits of its moves in their order: True for one that touches n2."""
    before = fleet.ask("events", "--limit", "1")[0]["id"]
    fleet.node(name)
    fleet.settled(home + [name], deadline=180)
    touched = {str(t["txn"]): {t["from"], t["to"]} for t in fleet.ask("txn", "list", "--limit", "200")}
    commits = []
    for e in sorted(fleet.ask("events", "--limit", "1000"), key=lambda e: e["id"]):
        pair = touched.get(e["subject"].removeprefix("txn "), set())
        if e["id"] > before and e["accepted"] == "yes" and e["command"] == "commit" and name in pair:
            commits.append("n2" in pair)
    return commits


def one_slow_node_delays_only_its_own_moves(binary):
    home = ["n1", "n2", "n3", "n4"]
    with Fleet(binary) as fleet:
        # A long lease: a slow link is not to be taken for a dead node here.
        fleet.coordinators(1, extra=["--lease", "30s", "--prepare-ms", "60000"])
        proxy = DelayProxy(("127.0.0.1", list(fleet.ports.values())[0]))
        for name in home:
            words = ["node", "--name", name, "--cluster", fleet.cluster, "--listen", "127.0.0.1:0"]
            words += ["--join", proxy.address if name == "n2" else fleet.addresses]
            fleet.start(name, words + ["--data", fleet.data(name)])
        fleet.settled(home)
        proxy.delay = DELAY
        watch = Watch(fleet)
        watch.start()
        commits = join(fleet, "n5", home)
        watch.stop = True
        watch.join(10)
        words = ["n2's" if slow else "other" for slow in commits]
        print(f"# moves as they were committed: {' '.join(words)}")
        print(f"# txn list named as waited for: {dict(watch.named)}, e.g. {watch.example or '-'}")
        assert True in commits and False in commits, commits
        assert commits == sorted(commits), "a move that n2 has no part in waited for n2"
        assert watch.named["n2"] > 0, watch.named
        assert watch.named["n2"] >= max(watch.named.values()), watch.named
        proxy.close()


def a_silent_node_delays_only_its_own_vnodes(binary):
    """At the shipped caps: a node stands still while another one joins, and nothing but its own vnodes waits."""
    home = ["n1", "n2", "n3", "n4"]
    with Fleet(binary) as fleet:
        # A long lease: who stands still is silent here, not dead, and nobody takes over what it has.
        fleet.coordinators(1, extra=["--lease", "300s", "--prepare-ms", "600000"])
        for name in home:
            fleet.node(name)
        redis = Resp(fleet.gateway("g1").resp)
        fleet.settled(home)
        keys = [f"k{i}" for i in range(400)]
        owner = {key: pairs(redis("WHERE", key))["node"] for key in keys}
        assert [redis("INCR", key) for key in keys] == [1] * len(keys)
        silent = fleet.process("n2")
        silent.kill(signal.SIGSTOP)
        fleet.node("n5")

        def rows(state):
            found = [t for t in fleet.ask("txn", "list", "--limit", "200") if t["state"] == state and t["to"] == "n5"]
            return collections.Counter(t["from"] for t in found)

        def given():
            """Every other node has given what it was to give; what is left is the silent one's."""
            left = fleet.status()["planned"] + fleet.status()["pending"]
            return not set(rows("pending")) - {"n2"} and set(rows("committed")) == {"n1", "n3", "n4"} and left

        mine = [key for key in keys if owner[key] == "n2"]
        others = [key for key in keys if owner[key] != "n2"]
        assert mine and others
        # While the others' moves are under way, and after them.
        for turn in (2, 3):
            assert [redis("INCR", key) for key in others] == [turn] * len(others)
            until("the moves of the others are committed", given)
        print(f"# answered while n2 was silent: {2 * len(others)} requests; moved to n5: {dict(rows('committed'))}")
        assert not rows("committed")["n2"], rows("committed")
        silent.kill(signal.SIGCONT)
        fleet.settled([*home, "n5"], deadline=180)
        assert [redis("INCR", key) for key in mine] == [2] * len(mine)
        assert [redis("INCR", key) for key in others] == [4] * len(others)
        assert rows("committed")["n2"] > 0, rows("committed")


main([one_slow_node_delays_only_its_own_moves, a_silent_node_delays_only_its_own_vnodes])
