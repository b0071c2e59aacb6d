#!/usr/bin/env python3
"""Players give each other gold, both ways round a circle, while two of four nodes are killed and one drains.

examples/trade.c keeps gold, outbox and what was taken in one SQLite file, and fences its rows. Whoever
asks for a gift and gets no answer asks again by its name. In the end every gift was answered and has
arrived, once, and there is as much gold as before.
"""
import os
import signal
import sqlite3
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, main, until

NODES = 4
PLAYERS = 6
START = 60


class Giver(threading.Thread):
    """Gives to the next player of its circle until it is told to stop. A gift whose outcome is unknown is
    asked for again, by its name."""

    def __init__(self, address, number, step):
        super().__init__(daemon=True)
        self.address = address
        self.player, self.whom = f"p{number}", f"p{(number + step) % PLAYERS}"
        self.given = self.again = 0
        self.gold = 0
        self.stop = False
        self.failed = None

    def give(self, redis):
        amount = self.given % 3 + 1
        words = f"give {self.whom} {amount} {self.whom}-{self.given}"
        while True:
            try:
                redis("CALL", self.player, words)
                return amount
            except RespError as error:
                if "not got that much" in str(error):
                    return 0
                self.again += 1

    def has_gold(self, redis):
        """True as well when it shall stop, or nobody knows."""
        try:
            return self.stop or int(redis("CALL", self.player, "gold")) >= self.given % 3 + 1
        except RespError:
            return True

    def run(self):
        try:
            redis = Resp(self.address)
            while not self.stop:
                amount = self.give(redis)
                self.gold += amount
                self.given += amount > 0
                until("there is gold again", lambda: self.has_gold(redis))
        except Exception as error:  # told by the main thread
            self.failed = error


class Book:
    """What is in the players' file."""

    def __init__(self, path):
        self.path = path

    def __call__(self, sql):
        db = sqlite3.connect(self.path, timeout=30)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def number(self, sql):
        return self(sql)[0][0] or 0


def owners(fleet):
    return {n["node"] for n in fleet.status()["nodes"] if n["vnodes"] > 0}


def no_gold_is_lost_or_made(binary):
    plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "examples", "trade.so")
    if not os.path.exists(plugin):
        print("# SKIP: examples/trade.so was not built")
        return
    with Fleet(binary) as fleet:
        book = Book(fleet.data("players.db"))
        names = [f"n{i}" for i in range(1, NODES + 1)]
        words = ["--actor", f"{plugin}={book.path}"]
        fleet.coordinators(1, extra=["--lease", "1s", "--election-ms", "200"])
        for name in names:
            fleet.node(name, words)
        address = fleet.gateway("g1").resp
        fleet.settled(names)
        redis = Resp(address)
        for i in range(PLAYERS):
            assert redis("CALL", f"p{i}", f"earn {START}") == str(START)
        givers = [Giver(address, i, step) for i in range(PLAYERS) for step in (1, PLAYERS - 1)]
        for giver in givers:
            giver.start()

        def taken():
            return book.number("SELECT count(*) FROM gift WHERE taken = 1")

        def go_on():
            before = taken()
            until("gifts arrive", lambda: taken() >= before + 50)

        go_on()
        for name in names[:2]:
            fleet.process(name).kill().wait()
            go_on()  # some of them have another owner by now, others wait for one
        until("both are replaced", lambda: owners(fleet) == set(names[2:]))
        go_on()
        assert fleet.process(names[2]).kill(signal.SIGTERM).wait() == 0
        go_on()
        for giver in givers:
            giver.stop = True
        for giver in givers:
            giver.join(60)
            assert not giver.is_alive() and giver.failed is None, f"{giver.player}: {giver.failed}"
        until("every gift has arrived", lambda: book.number("SELECT count(*) FROM gift WHERE taken = 0") == 0)
        print(f"# {taken()} gifts arrived, {sum(g.again for g in givers)} times one was asked for again")
        gifts = {(a, b): (count, gold) for a, b, count, gold in book(
            "SELECT id, other, count(*), sum(amount) FROM gift GROUP BY id, other")}  # fmt: skip
        for giver in givers:
            assert gifts[giver.player, giver.whom][1] == giver.gold, (giver.player, giver.whom, giver.gold, gifts)
        gold = {f"p{i}": START for i in range(PLAYERS)}
        for (a, b), (_, amount) in gifts.items():
            gold[a] -= amount
            gold[b] += amount
        assert dict(book("SELECT id, gold FROM player")) == gold, (book("SELECT id, gold FROM player"), gold)
        assert sum(gold.values()) == PLAYERS * START
        for player, amount in gold.items():
            assert redis("CALL", player, "gold") == str(amount), player


main([no_gold_is_lost_or_made])
