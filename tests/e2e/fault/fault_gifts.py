#!/usr/bin/env python3
"""Players give each other gold (examples/gifts.c, durable actors whose sends arrive once) while nodes, gateways and
coordinators are killed with kill -9, some of them two at once. A foreign reader of the store finds as much gold as before,
and of each player just what its answers say; no request was answered UNKNOWN. MINUTES=10: as long as that, with 10,000
players, and SEED= draws who dies; STORE=Postgres or Redis, whose server is killed then, too (make trades).
"""
import collections
import os
import random
import sys
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import durable
from fleet import Fleet, main, until
from trades import DID_NOT_RUN, POOR, Caller, Trades, earned

STORE = getattr(durable, os.environ.get("STORE", "Sqlite"))
MINUTES = float(os.environ.get("MINUTES", "0"))
SEED = int(os.environ.get("SEED", str(int(time.time()))))
PLAYERS = 10000 if MINUTES else 300
CLIENTS = 8
START = 10


class Giver(threading.Thread):
    """Gives from its own players to any, one by one, and remembers what was answered, and what may have run."""

    def __init__(self, number, addresses, begin):
        super().__init__(daemon=True)
        self.random = random.Random(f"{SEED}.{number}")
        self.mine = range(number, PLAYERS, CLIENTS)
        self.call = Caller(addresses, self.random)
        self.begin = begin  # all have earned
        self.given = []  # (from, to, amount): answered
        self.perhaps = []  # the same: the connection was lost, or nobody knows
        self.stopping = False
        self.failed = None

    def earn(self):
        """Nothing is hurt yet, and nobody gives."""
        for i in self.mine:
            assert earned(self.call, f"p{i}", START) == START
        self.begin.wait()

    def give(self):
        player, whom = (f"p{self.random.choice(self.mine)}", f"p{self.random.randrange(PLAYERS)}")
        amount = self.random.randint(1, 3)
        answer = self.call(player, f"give {whom} {amount}")
        if answer is None:
            self.perhaps.append((player, whom, amount))
        elif answer not in (POOR, DID_NOT_RUN):
            self.given.append((player, whom, amount))

    def run(self):
        try:
            self.earn()
            while not self.stopping:
                self.give()
        except Exception as error:  # told by the thread that waits for it
            self.failed = error


def go_on(trades, givers, count=60):
    want = [len(g.given) + count for g in givers]

    def has_gone_on():
        trades.revive()
        return any(g.failed for g in givers) or all(len(g.given) >= w for g, w in zip(givers, want))

    until("gifts are given", has_gone_on, 180)
    assert not any(g.failed for g in givers), [g.failed for g in givers]


def must_agree(found, givers):
    """What SQL says of each player against what the clients were told. Returns of how many players that is just one
    number."""
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
    return sum(least[p] == most[p] for p in sure)


def no_gold_is_lost_or_made(binary):
    print(f"# SEED={SEED}", flush=True)
    with STORE() as store, Fleet(binary) as fleet:
        trades = Trades(fleet, store, binary)
        begin = threading.Barrier(CLIENTS)
        givers = [Giver(i, trades.addresses, begin) for i in range(CLIENTS)]
        for giver in givers:
            giver.start()
        go_on(trades, givers)
        end = time.monotonic() + MINUTES * 60
        draw = random.Random(SEED)
        for names in (["n1"], ["c1"], ["g1"], ["n2", "c2"]):
            trades.hurt(names, lambda: go_on(trades, givers))
        while time.monotonic() < end:
            trades.hurt(trades.draw(draw), lambda: go_on(trades, givers))
        for giver in givers:
            giver.stopping = True
        for giver in givers:
            giver.join(120)
            assert not giver.is_alive() and giver.failed is None, giver.failed
        trades.arrive()
        exactly = must_agree(store.reader().all_gold(), givers)
        counts = sum((g.call.counts for g in givers), collections.Counter())
        assert trades.doubt_is_excused() or not any(g.call.in_doubt() for g in givers), counts
        print(f"# {store.name}: killed " + ", ".join(f"{sort} {n}" for sort, n in trades.deaths.items() if n))
        print(f"# {sum(len(g.given) for g in givers)} gifts answered, each in the store and once; UNKNOWN"
              f" {counts['UNKNOWN']}, too late {counts['TIMEOUT']}, connections lost {counts['cut']}; gold {PLAYERS * START} as before, and that of"
              f" {exactly} of {PLAYERS} players has to be what it is")  # fmt: skip


main([no_gold_is_lost_or_made])
