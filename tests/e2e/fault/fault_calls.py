#!/usr/bin/env python3
"""Actors call actors while their nodes are drained.

Purses (tests/plugins/purses.c) pay each other, also in chains of three, in circles and in bursts, on
three nodes of which one after the other is restarted: it drains, its purses move in the midst of
payments, it comes back. Every payment is answered: with success, or, where purses waited for each
other, with DEADLOCK, and then it was not made. No money appears or is lost, none comes twice or out
of the order of its pair, and no drain waits for a chain that waits for the drain: such a chain would
fail at its own 10 s, or the move be cancelled at T_prepare.
"""
import os
import random
import signal
import sys
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, healthy, main, pairs, until

NODES = 3
PURSES = 40
CLIENTS = 6
START = 1000


def purse(number):
    return f"p{number:02}"


class Payer(threading.Thread):
    """Sends payments one after the other until it is told to stop."""

    def __init__(self, address, seed):
        super().__init__(daemon=True)
        self.random = random.Random(seed)
        self.redis = Resp(address)
        self.stop = False
        self.failed = None
        self.times = {"pay": [], "chain": [], "gift": []}
        self.poor = 0
        self.circles = 0

    def command(self):
        a, b, c = self.random.sample(range(PURSES), 3)
        kind = self.random.choice(["pay", "chain", "gift"])
        words = {
            "pay": f"pay 1 {purse(b)}",
            "chain": f"pay 2 {purse(b)} {purse(c)}",
            "gift": f"gift 5 {purse(b)}",
        }[kind]
        return kind, purse(a), words

    def run(self):
        try:
            while not self.stop:
                kind, payer, words = self.command()
                begin = time.monotonic()
                try:
                    self.redis("CALL", payer, words)
                except RespError as error:
                    if str(error).startswith("ERR too little"):
                        self.poor += 1
                    elif not_made(error):
                        self.circles += 1
                    else:
                        raise AssertionError(f"{payer}: {words}: {error}") from None
                self.times[kind].append(time.monotonic() - begin)
        except Exception as error:  # told by the main thread
            self.failed = error


def not_made(error):
    """RH_DEADLOCK, at the purse that was asked or at one behind it."""
    return str(error).startswith("ERR not paid") and "(16)" in str(error)


def circles_are_refused(fleet, redis):
    """A purse pays by way of others to itself: it waits for who waits for it."""
    at = {}
    for i in range(PURSES):
        at.setdefault(pairs(redis("WHERE", purse(i)))["node"], []).append(purse(i))
    a, b, c = (purses[0] for purses in at.values())  # on three nodes …
    d = at[pairs(redis("WHERE", a))["node"]][1]  # … and beside the first
    for way in ((b, a), (d, a), (b, c, a), (b, d, c, a)):
        try:
            raise AssertionError(f"paid: {redis('CALL', a, 'pay 1 ' + ' '.join(way))}")
        except RespError as error:
            assert not_made(error), f"{way}: {error}"
    assert redis("CALL", a, "balance") == str(START), redis("CALL", a, "balance")
    log = fleet.process(pairs(redis("WHERE", c))["node"])
    assert log.log_has("deadlock") and log.log_has(f"actor=0/{c}"), log.tail()


def share(times, part):
    times = sorted(times)
    return 1000 * times[min(len(times) - 1, int(len(times) * part))]


def overdue(fleet):
    """Moves that were cancelled because somebody did not stop in time."""
    return [t for t in fleet.ask("txn", "list", "--limit", "1000") if "did not stop" in t["outcome"]]


def payments_go_on_while_purses_move(binary):
    plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "tests", "plugins", "purses.so")
    with Fleet(binary) as fleet:
        names = [f"n{i}" for i in range(1, NODES + 1)]
        words = ["--actor", plugin]
        fleet.coordinators(3, extra=["--prepare-ms", "30000"])
        for name in names:
            fleet.node(name, words)
        address = fleet.gateway("g1", ["--deadline-ms", "30000"]).resp
        fleet.settled(names)
        redis = Resp(address)
        for i in range(PURSES):
            assert redis("CALL", purse(i), f"earn {START}") == str(START)
        circles_are_refused(fleet, redis)
        payers = [Payer(address, seed) for seed in range(CLIENTS)]
        for payer in payers:
            payer.start()

        def paid():
            return sum(len(times) for p in payers for times in p.times.values())

        def look():
            for p in payers:
                assert p.failed is None, p.failed

        until("payments are made", lambda: paid() > 200)
        took = []
        for name in names:
            before = paid()
            begin = time.monotonic()
            process = fleet.process(name)
            code = process.kill(signal.SIGTERM).wait(120)
            took.append(time.monotonic() - begin)
            assert code == 0, f"{name} ended with {code}: {process.tail()}"
            fleet.node(name, words)
            fleet.settled(names, deadline=120)
            until("payments go on", lambda b=before: paid() > b + 100)
            look()
        for payer in payers:
            payer.stop = True
        for payer in payers:
            payer.join(60)
            assert not payer.is_alive(), "a payment has no answer"
        look()
        total = sum(int(redis("CALL", purse(i), "balance")) for i in range(PURSES))
        print(f"# {paid()} payments, {sum(p.poor for p in payers)} refused by poor purses, "
              f"{sum(p.circles for p in payers)} for a circle; drained "
              f"in {', '.join(f'{t:.1f}' for t in took)} s")  # fmt: skip
        for kind in payers[0].times:
            times = [t for p in payers for t in p.times[kind]]
            print(f"# {kind}: {len(times)}, p50 {share(times, 0.5):.1f} p99 {share(times, 0.99):.1f} "
                  f"longest {share(times, 1):.0f} ms")  # fmt: skip
        healthy(fleet)
        assert total == PURSES * START, f"there were {PURSES * START}, now {total}"
        assert not overdue(fleet), overdue(fleet)


main([payments_go_on_while_purses_move])
