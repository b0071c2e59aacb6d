#!/usr/bin/env python3
"""Placement by load on four real nodes: hash leaves one of them with most of a Zipf load, and `--balance load` shares it out.
The leader's figure says so, and so do the requests themselves, of which this script knows how many it sends for each id. (A
node that shares its processor with others needs more time for each: the two are not quite the same.)

With --minutes N the load goes on for that long after it was shared out, and no vnode may move to and fro: the owner of each
cell is looked at every second, and changes once at most."""
import os
import signal
import sys
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, healthy, main, until

NODES = ["n1", "n2", "n3", "n4"]
IDS = 400
MINUTES = 0  # to watch after the balance
if "--minutes" in sys.argv:
    at = sys.argv.index("--minutes")
    MINUTES = float(sys.argv[at + 1])
    del sys.argv[at : at + 2]
BATCH = 200


class Load:
    """Asks the ids again and again, the nth of them 1/n as often as the first, and counts the answers."""

    def __init__(self, address, ids):
        self.parts = {i: 1 / (n + 1) for n, i in enumerate(ids)}
        self.ids = ids
        self.redis = Resp(address)
        self.over = threading.Event()
        self.answered = 0
        self.wrong = []
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def round(self):
        """Each id as often as it is its turn: whole parts of a debt that grows by its part."""
        debt = dict.fromkeys(self.ids, 0.0)
        while True:
            for i in self.ids:
                debt[i] += self.parts[i]
                while debt[i] >= 1:
                    debt[i] -= 1
                    yield i
            yield self.ids[0]

    def ask(self):
        turns = self.round()
        while not self.over.is_set():
            batch = [next(turns) for _ in range(BATCH)]
            self.redis.send(*(("GET", i) for i in batch))
            for i in batch:
                if self.redis.read() != i:
                    self.wrong.append(i)
                self.answered += 1

    def stop(self):
        self.over.set()
        self.thread.join()
        assert not self.wrong and self.answered > 0, self.wrong[:10]


def node_of(fleet):
    return {a["id"]: a["node"] for a in fleet.ask("actors", "--limit", "0")}


def max_to_mean(fleet, parts):
    """The greatest part of the requests that a node gets, as a multiple of what each should have."""
    # Who moves while the nodes are asked, one after the other, may be told by none of them.
    at = until("all are there", lambda: (lambda a: a if parts.keys() <= a.keys() else None)(node_of(fleet)))
    own = {n: sum(parts[i] for i in parts if at[i] == n) for n in NODES}
    return max(own.values()) * len(NODES) / sum(own.values())


def owners(fleet):
    """(first cell, cell behind the last, owner), of each vnode."""
    return [(v["from"], v["to"], v["owner"]) for v in fleet.ask("ring")["vnodes"]]


def watch(fleet, parts, minutes):
    """A load that stays as it is moves nothing twice. Returns how many cells moved, and the worst figures seen."""
    now = owners(fleet)
    ways = [[] for _ in range(max(to for _, to, _ in now))]  # of each cell: its owners, and when each came
    worst = [0.0, 0.0]
    begin = time.monotonic()
    while time.monotonic() - begin < minutes * 60:
        for first, to, who in now:
            for way in ways[first:to]:
                if not way or way[-1][0] != who:
                    way.append((who, round(time.monotonic() - begin)))
        twice = [(cell, way) for cell, way in enumerate(ways) if len(way) > 2]
        assert not twice, (len(twice), twice[0])
        b = fleet.status()["balance"]
        worst = [max(worst[0], b["max_permille"] / 1000), max(worst[1], max_to_mean(fleet, parts))]
        time.sleep(1)
        now = owners(fleet)
    return sum(len(way) - 1 for way in ways), worst


def a_zipf_load_is_shared_out(binary):
    with Fleet(binary) as fleet:
        path = os.path.join(fleet.folder, "ringhold.ini")

        def configure(by):
            with open(path, "w") as f:
                f.write(f"[coordinator]\nbalance = {by}\nbalance-moves = 20\n")

        configure("hash")
        (coordinator,) = fleet.coordinators(1, extra=["--config", path])
        for n in NODES:
            fleet.node(n)
        gateway = fleet.gateway("g1")
        fleet.settled(NODES)
        redis = Resp(gateway.resp)
        ids = [f"k{i}" for i in range(IDS)]
        for i in ids:
            assert redis("SET", i, i) == "OK"
        at = node_of(fleet)
        # Bad luck: as long as n1 has any, it has two of three, those that are asked most first.
        ours = [i for i in ids if at[i] == "n1"]
        others = [i for i in ids if at[i] != "n1"]
        ids = [(ours if (n % 3 != 2 and ours) or not others else others).pop() for n in range(IDS)]
        load = Load(gateway.resp, ids)
        by_hash = max_to_mean(fleet, load.parts)
        assert by_hash > 1.8, by_hash

        def known():
            b = fleet.status()["balance"]
            return b if b["unknown_why"] == "" and b["max_permille"] > 1150 else None

        # Nothing moves for the load's sake yet, but what would is told.
        b = until("the load is known", known, deadline=120, pause=0.5)
        assert (b["by"], b["node"], b["vnode_node"]) == ("hash", "n1", "n1"), b
        assert fleet.status()["version"] == fleet.ask("ring")["version"] and max_to_mean(fleet, load.parts) == by_hash
        plan = fleet.ask("ring", "--diff", "balance")
        assert plan["vnodes"] > 0 and {m["from"] for m in plan["moves"]} <= {"n1", "n2", "n3", "n4"}, plan

        configure("load")
        coordinator.popen.send_signal(signal.SIGHUP)

        def shared_out():
            b = fleet.status()["balance"]
            requests = max_to_mean(fleet, load.parts)
            return (b["max_permille"] / 1000, requests) if b["max_permille"] <= 1150 and requests <= 1.25 else None

        by_load = until("the load is shared out", shared_out, deadline=180, pause=0.5)
        print(f"max/mean: {by_hash:.2f} of requests by hash; {by_load[1]:.2f} by load, {by_load[0]:.2f} of the time")
        if MINUTES > 0:
            moved, worst = watch(fleet, load.parts, MINUTES)
            print(f"{MINUTES:g} minutes after that: {moved} cells moved once, none twice; "
                  f"at most {worst[1]:.2f} of requests, {worst[0]:.2f} of the time")
        load.stop()
        assert "balance by load" in fleet.tell("status")
        fleet.settled(NODES)
        healthy(fleet)


def what_is_no_balance_is_refused(binary):
    with Fleet(binary) as fleet:
        code, _, err = fleet.run("coordinator", "--data", fleet.data("c1"), "--balance", "luck")
        assert code != 0 and "--balance must be hash, load or memory" in err, (code, err)


main([a_zipf_load_is_shared_out, what_is_no_balance_is_refused])
