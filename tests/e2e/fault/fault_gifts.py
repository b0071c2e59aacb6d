#!/usr/bin/env python3
"""Players give each other gold (examples/gifts.c, durable actors whose sends arrive once) while nodes, gateways and
coordinators are killed with kill -9. A foreign reader of the store finds as much gold as before, and of each player
just what its answers say. MINUTES=10: as long as that, with 10,000 players; STORE=Postgres or Redis, whose server is
killed then, too (make trades).
"""
import os
import random
import signal
import sys
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import durable
from fleet import Fleet, Resp, RespError, main, until

STORE = getattr(durable, os.environ.get("STORE", "Sqlite"))
MINUTES = float(os.environ.get("MINUTES", "0"))
PLAYERS = 10000 if MINUTES else 300
CLIENTS = 8
START = 10
NODES = ("n1", "n2", "n3")
GATEWAYS = ("g1", "g2")
NOT_RUN = ("TIMEOUT", "REJECTED", "STORE_UNAVAILABLE", "STORE_FENCED", "OVERLOADED", "BUSY")


class Giver(threading.Thread):
    """Gives from its own players to any, one by one, and remembers what was answered, and what may have run."""

    def __init__(self, number, addresses, begin):
        super().__init__(daemon=True)
        self.random = random.Random(number)
        self.mine = range(number, PLAYERS, CLIENTS)
        self.addresses = addresses
        self.begin = begin  # all have earned
        self.given = []  # (from, to, amount): answered
        self.perhaps = []  # the same: the connection was lost, or nobody knows
        self.unknown = self.cut = 0
        self.stopping = False
        self.failed = None
        self.redis = None

    def ask(self, player, words):
        """Its answer; None = it did not run, or nobody knows."""
        try:
            if self.redis is None:
                self.redis = Resp(self.random.choice(list(self.addresses.values())), timeout=120)
            return int(self.redis("CALL", player, words))
        except RespError as error:
            word = str(error).removeprefix("ERR ").split()[0]
            if "not got that much" in str(error) or word in NOT_RUN and word != "TIMEOUT":
                return "refused"
            assert word in ("UNKNOWN", "TIMEOUT"), error
            self.unknown += 1
        except OSError:
            self.cut += 1
            self.redis = None
        return None

    def earn(self):
        """Nothing is hurt yet, and nobody gives."""
        for i in self.mine:
            assert self.ask(f"p{i}", f"earn {START}") == START
        self.begin.wait()

    def give(self):
        player, whom = (f"p{self.random.choice(self.mine)}", f"p{self.random.randrange(PLAYERS)}")
        amount = self.random.randint(1, 3)
        answer = self.ask(player, f"give {whom} {amount}")
        if answer is None:
            self.perhaps.append((player, whom, amount))
        elif answer != "refused":
            self.given.append((player, whom, amount))

    def run(self):
        try:
            self.earn()
            while not self.stopping:
                self.give()
        except Exception as error:  # told by the thread that waits for it
            self.failed = error


def go_on(givers, count=60):
    want = [len(g.given) + count for g in givers]
    until(
        "gifts are given",
        lambda: any(g.failed for g in givers) or all(len(g.given) >= w for g, w in zip(givers, want)),
        180,
    )
    assert not any(g.failed for g in givers), [g.failed for g in givers]


class Trades:
    def __init__(self, fleet, store, binary):
        self.fleet, self.store = fleet, store
        plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "examples", "gifts.so")
        self.words = ["--actor", plugin, "--store", store.option]
        self.addresses = {}
        fleet.coordinators(3, extra=["--lease", "1s", "--election-ms", "200"])
        for name in NODES:
            self.start(name)
        for name in GATEWAYS:
            self.start(name)
        fleet.settled(list(NODES))

    def start(self, name):
        if name in NODES:
            self.fleet.node(name, self.words)
        elif name in GATEWAYS:
            self.addresses[name] = self.fleet.gateway(name).resp
        else:
            self.fleet.coordinator(int(name[1:]))

    def kill(self, name):
        self.fleet.process(name).kill(signal.SIGKILL).wait()

    def hurt(self, name, givers):
        self.kill(name)
        go_on(givers)
        self.start(name)
        self.fleet.settled(list(NODES), deadline=120)


def must_agree(store, givers):
    """What SQL says of each player against what the clients were told."""
    found = store.reader().all_gold()
    sure = {f"p{i}": START for i in range(PLAYERS)}
    for g in givers:
        for player, whom, amount in g.given:
            sure[player] -= amount
            sure[whom] += amount
    least, most = dict(sure), dict(sure)
    for g in givers:
        for player, whom, amount in g.perhaps:
            least[player] -= amount
            most[whom] += amount
    assert sum(found.values()) == PLAYERS * START, (sum(found.values()), PLAYERS * START)
    wrong = {p: (least[p], found.get(p, 0), most[p]) for p in sure if not least[p] <= found.get(p, 0) <= most[p]}
    assert not wrong, wrong


def no_gold_is_lost_or_made(binary):
    with STORE() as store, Fleet(binary) as fleet:
        trades = Trades(fleet, store, binary)
        begin = threading.Barrier(CLIENTS)
        givers = [Giver(i, trades.addresses, begin) for i in range(CLIENTS)]
        for giver in givers:
            giver.start()
        go_on(givers)
        end = time.monotonic() + MINUTES * 60
        draw = random.Random(int(os.environ.get("SEED", "1")))
        for name in ("n1", "c1", "g1", "n2"):
            trades.hurt(name, givers)
        while time.monotonic() < end:
            name = draw.choice([*NODES, *NODES, *GATEWAYS, "c1", "c2", "c3", "the store"])
            if name != "the store":
                trades.hurt(name, givers)
            elif STORE is not durable.Sqlite:
                store.kill()
                store.__enter__()
                go_on(givers)
        for giver in givers:
            giver.stopping = True
        for giver in givers:
            giver.join(120)
            assert not giver.is_alive() and giver.failed is None, giver.failed
        until("every gift has arrived", lambda: store.reader().sends() == 0, 120)
        must_agree(store, givers)
        given, cut = sum(len(g.given) for g in givers), sum(g.cut for g in givers)
        unknown = sum(g.unknown for g in givers)
        print(f"# {given} gifts answered, {cut} connections lost, {unknown} unknown or too late; the sum is as before")


main([no_gold_is_lost_or_made])
