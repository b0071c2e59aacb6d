#!/usr/bin/env python3
"""Ids with one tag live on one node: 100 ids of two kinds and 10 tags, on real processes that are asked all the time
while a node joins and another one is drained."""
import itertools
import os
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, healthy, main, until

GAME = """
local room = ringhold.kind("room", {placement = "together"})
local seat = ringhold.kind("seat", {placement = "together"})

local function add(self)
    self.count = (self.count or 0) + 1
    return ringhold.node() .. " " .. self.count
end
room.add, seat.add = add, add
"""
TAGS = [f"match-{i}" for i in range(10)]


def ids_of(tag):
    """Five rooms, among them the one that has the tag's own name, and five seats."""
    rooms = [tag, *(f"room-{i}{{{tag}}}" for i in range(4))]
    return rooms + [f"@1/{{{tag}}}seat-{i}" for i in range(5)]


class Load(threading.Thread):
    """Asks all ids in turn. Each answer is the one before and one more; from which node it comes is kept by tag."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.redis = Resp(address, timeout=120)
        self.rounds = 0
        self.heard = {tag: [] for tag in TAGS}  # nodes, in the order of the answers
        self.stopping = False
        self.failed = None

    def run(self):
        try:
            while not self.stopping:
                self.rounds += 1
                for tag in TAGS:
                    for name in ids_of(tag):
                        node, count = self.redis("CALL", name, "add").split()
                        assert int(count) == self.rounds, f"{name} is {count} in round {self.rounds}"
                        self.heard[tag].append(node)
        except Exception as error:  # told by the thread that waits for it
            self.failed = error

    def goes_on(self):
        """Two whole rounds more, begun from now on."""
        want = self.rounds + 3
        until("the load goes on", lambda: self.rounds >= want or self.failed, 120)
        assert self.failed is None, self.failed

    def owners(self):
        """Of each tag the nodes that answered since the last call, each as often as it took over."""
        heard, self.heard = self.heard, {tag: [] for tag in TAGS}
        return {tag: [node for node, _ in itertools.groupby(nodes)] for tag, nodes in heard.items()}

    def done(self):
        self.stopping = True
        self.join(120)
        assert not self.is_alive() and self.failed is None, self.failed


def one_node_each(fleet, gateway):
    """No tag lives on two nodes, by the gateway's ring; returns where each lives, as the leader says too."""
    redis = Resp(gateway)
    homes = {}
    for tag in TAGS:
        nodes = {redis("WHERE", name)[1] for name in ids_of(tag)}
        assert nodes == {fleet.ask("where", f"1/ann{{{tag}}}")["node"]}, f"{tag} lives on {nodes}"
        homes[tag] = nodes.pop()
    return homes


def who_has_one_tag_lives_on_one_node_through_a_join_and_a_drain(binary):
    with Fleet(binary) as fleet:
        script = os.path.join(fleet.folder, "game.lua")
        with open(script, "w") as f:
            f.write(GAME)
        fleet.coordinators(1)
        for name in ("n1", "n2", "n3"):
            fleet.node(name, ["--lua", script])
        gateway = fleet.gateway("g1").resp
        fleet.settled(["n1", "n2", "n3"])
        load = Load(gateway)
        load.start()
        load.goes_on()
        load.owners()
        homes = one_node_each(fleet, gateway)
        fleet.node("n4", ["--lua", script])
        fleet.settled(["n1", "n2", "n3", "n4"])
        load.goes_on()
        # What was asked behind an answer of the new node never goes to the old one: the tag moved as one.
        for tag, owners in load.owners().items():
            assert owners in ([homes[tag]], [homes[tag], "n4"]), f"{tag} of {homes[tag]} was answered by {owners}"
        homes = one_node_each(fleet, gateway)
        fleet.tell("node", "drain", "n1", "--wait", "60")
        fleet.settled(["n2", "n3", "n4"])
        load.goes_on()
        load.done()
        for tag, owners in load.owners().items():
            assert owners[0] == homes[tag] and len(owners) == 1 + (homes[tag] == "n1"), f"{tag}: {owners}"
        assert "n1" not in one_node_each(fleet, gateway).values()
        lives = {row["id"]: row["node"] for row in fleet.ask("actors", "--limit", "200")}
        assert len(lives) == 100, lives
        healthy(fleet)


def where_tells_the_tag_that_decides(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ["--kind", "3@together:kv", "--kind", "4:kv"])
        gateway = Resp(fleet.gateway("g1").resp)
        fleet.settled(["n1"])
        assert "tag match-42 decides" in fleet.tell("where", "3/room-7{match-42}")
        assert fleet.ask("where", "3/match-42")["tag"] == "match-42"
        assert fleet.ask("where", "4/room-7{match-42}")["tag"] == ""
        assert "tag" not in fleet.tell("where", "0/room-7{match-42}")
        assert gateway("SET", "@3/room-7{match-42}", "1") == "OK"
        assert gateway("GET", "@3/room-7{match-42}") == "1"
        roles = {(r["placement"], r["kinds"]) for r in fleet.status()["roles"]}
        assert roles == {("hash", "4 kv"), ("together", "3 kv")}, roles
        code, _, err = fleet.run("node", "--name", "n2", "--join", fleet.addresses, "--data", fleet.data("n2"),
                                 "--listen", "127.0.0.1:0", "--kind", "3:kv")
        assert code != 0 and "by together: it can't be 'kv' of the default role, by hash" in err, err


main([
    who_has_one_tag_lives_on_one_node_through_a_join_and_a_drain,
    where_tells_the_tag_that_decides,
])
