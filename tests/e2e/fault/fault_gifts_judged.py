#!/usr/bin/env python3
"""Players give each other gold (examples/gifts.c) while all there is of a fleet is killed, in short runs. Each run has
accounts of its own and a history of what its clients saw, which porcupine (tests/tools/linearizable) judges account by
account. Then bugs are planted, and it must refuse a run of each. (INJECT build, with MUTANTS.)

RUNS=: so many; SEED= draws loads and deaths; STORES= in turn, of Sqlite, Postgres, Redis (`make porcupine`).
"""
import collections
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import durable
import judge
from fleet import DEADLINE, Fleet, main, until
from trades import DID_NOT_RUN, NODES, POOR, Caller, Trades, earned

RUNS = int(os.environ.get("RUNS", "2"))
SEED = int(os.environ.get("SEED", str(int(time.time()))))
STORES = [getattr(durable, name) for name in os.environ.get("STORES", "Sqlite").split()]
PLANTED = ("M_ANSWERFIRST", "M_NOSAVEDANSWER", "M_NOTAGAIN", "M_SENDTWICE")
PLANTED_RUNS = 20  # of each; what it takes is mostly the first
FLEET_RUNS = 10  # in one fleet
DEATHS = 5  # in a run, each of one or two
ACCOUNTS = 40
CLIENTS = 12
START = 1_000_000
AMOUNT_MAX = 400_000  # many amounts: so a sum says which gifts it is made of
PAUSE_S = 0.02  # of a client between two operations: other tests run beside


def now():
    return time.monotonic_ns()


class Book:
    """What was asked and answered in one run, by accounts."""

    def __init__(self, run):
        self.lines = {f"r{run}.{i}": [] for i in range(ACCOUNTS)}
        self.gifts = []  # (since when, to whom, amount, whether it is certain)
        self.lock = threading.Lock()

    def note(self, account, call, words, answer):
        """A request of `gold`, `earn N` or `give WHOM N`, and its answer; None = nobody knows."""
        end = now()
        verb, *rest = words.split()
        amount = rest[-1] if rest else "-"
        known = answer is not None
        line = f"{call} {end if known else '-'} {verb.upper()} {amount} {answer if known else '-'}"
        with self.lock:
            if known or verb != "gold":
                self.lines[account].append(line)
            if verb == "give" and answer != POOR:
                self.gifts.append((call, rest[0], amount, known))

    def close(self, path, arrived, gold):
        """Every gift had arrived then, and the store has so much gold."""
        for since, whom, amount, certain in self.gifts:
            self.lines[whom].append(f"{since} {arrived if certain else '-'} TAKE {amount} -")
        with open(path, "w", encoding="ascii") as file:
            file.write("ringhold-gifts 1\n")
            for account, lines in self.lines.items():
                last = f"{arrived + 1} {now()} GOLD - {gold[account]}"
                file.write("\n".join([f"KEY {account}", *lines, last, ""]))


class Trader(threading.Thread):
    """Fills some accounts, and then asks any of them for one thing at a time."""

    def __init__(self, book, addresses, run, number, begin):
        super().__init__(daemon=True)
        self.book = book
        self.begin = begin  # all have earned
        self.draw = random.Random(f"{SEED}.{run}.{number}")
        self.call = Caller(addresses, self.draw)
        self.mine = list(book.lines)[number::CLIENTS]
        self.answers = 0
        self.stopping = False
        self.failed = None
        self.start()

    def ask(self, account, words):
        call = now()
        answer = self.call(account, words)
        if answer != DID_NOT_RUN:
            self.book.note(account, call, words, answer)
            self.answers += answer is not None
        return answer

    def trade(self):
        account, whom = self.draw.sample(list(self.book.lines), 2)
        if self.draw.random() < 0.3:
            self.ask(account, "gold")
        else:
            self.ask(account, f"give {whom} {self.draw.randint(1, AMOUNT_MAX)}")

    def run(self):
        try:
            for account in self.mine:  # nobody was killed yet
                assert isinstance(earned(self.ask, account, START), int), account
            self.begin.wait()
            while not self.stopping:
                self.trade()
                time.sleep(PAUSE_S)  # the rate of the load; nothing is waited for by it
        except Exception as error:  # told by who waits for it
            self.failed = error
            self.begin.abort()

    def done(self):
        self.stopping = True
        self.join(2 * DEADLINE)
        assert not self.is_alive() and self.failed is None, self.failed


def look_at_all(book, asker):
    """Who is asked lives, and sends what it has to send at once."""
    for account in book.lines:
        until(f"{account} is answered", lambda: asker.ask(account, "gold") not in (None, DID_NOT_RUN))


class Run:
    def __init__(self, trades, number):
        self.trades = trades
        self.number = number
        self.draw = random.Random(f"{SEED}.{number}")
        self.begin = time.monotonic()
        self.book = Book(number)
        begin = threading.Barrier(CLIENTS)
        self.traders = [Trader(self.book, trades.addresses, number, i, begin) for i in range(CLIENTS)]
        self.history = os.path.join(os.path.dirname(trades.fleet.binary), f"gifts-{SEED}-{number}")
        self.killed = []
        self.operations = self.open = self.refused = 0

    def hurt(self, names):
        """Half of the time, nodes die of answers that are lost (? in what is printed)."""
        unheard = self.draw.random() < 0.5
        died = self.trades.hurt(names, self.go_on, unheard)
        self.killed.append("+".join(n + "?" * (unheard and n in NODES) for n in died))

    def play(self, deaths):
        """Returns the sum of all gold in the end. `deaths`: who dies, one list after the other."""
        self.go_on()
        for names in deaths(self.draw):
            self.hurt(names)
        for trader in self.traders:
            trader.done()
        look_at_all(self.book, self.traders[0])
        self.trades.arrive()
        arrived = now()
        gold = self.trades.store.reader().all_gold()
        self.book.close(self.history, arrived, gold)
        return sum(gold[account] for account in self.book.lines)

    def counts(self):
        return sum((t.call.counts for t in self.traders), collections.Counter())

    def go_on(self, count=10):
        """Each client is answered so many times: so what those had who died has others, or them again."""
        want = [t.answers + count for t in self.traders]

        def has_gone_on():
            self.trades.revive()
            enough = all(t.answers >= w for t, w in zip(self.traders, want))
            return enough or any(t.failed for t in self.traders)

        until("the load goes on", has_gone_on, 180)
        assert not any(t.failed for t in self.traders), [t.failed for t in self.traders]

    def judged(self, *words):
        program = judge.program(self.trades.fleet.binary)
        done = subprocess.run([program, *words, self.history], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode == 0, done.stdout.splitlines()

    def judge(self):
        """Is each account linearizable? Prints a line, and returns what else the judge said."""
        good, said = self.judged()
        numbers = [int(n) for n in re.findall(r"\d+", said[-1])]
        self.operations, self.open, self.refused = numbers[0], numbers[1], numbers[-2]
        seconds = time.monotonic() - self.begin
        print(f"# run {self.number}, {self.trades.store.name}, killed {', '.join(self.killed)}, {seconds:.1f} s: {said[-1]}")
        sys.stdout.flush()
        return good, said[:-1]

    def forget(self):
        for path in glob.glob(glob.escape(self.history) + "*"):
            os.remove(path)


class Totals:
    def __init__(self):
        self.runs = self.linearizable = self.operations = self.open = 0
        self.counts = collections.Counter()  # of answers that say nothing
        self.deaths = collections.Counter()
        self.stores = collections.Counter()

    def add(self, run, good):
        self.runs += 1
        self.linearizable += good
        self.operations += run.operations
        self.open += run.open
        self.counts += run.counts()
        self.stores[run.trades.store.name] += 1

    def show(self):
        def words(counter):
            return ", ".join(f"{name} {n}" for name, n in sorted(counter.items()) if n)

        print(f"# SEED={SEED}: {self.runs} runs ({words(self.stores)}), {self.linearizable} of them linearizable;"
              f" killed: {words(self.deaths)}; {self.operations} operations, {self.open} without an answer; UNKNOWN"
              f" {self.counts['UNKNOWN']}, too late {self.counts['TIMEOUT']}, connections lost {self.counts['cut']}",
              flush=True)  # fmt: skip


def the_judge_tells_good_from_bad(binary):
    with tempfile.TemporaryDirectory(prefix="ringhold-golden-") as folder:  # it draws what it refuses beside the file
        shutil.copytree(os.path.join(judge.TOOL, "golden"), folder, dirs_exist_ok=True)
        names = sorted(os.listdir(folder))
        assert {name.split("-")[0] for name in names} == {"good", "bad"}, names
        for name in names:
            done = subprocess.run([judge.program(binary), name], cwd=folder, capture_output=True, text=True)
            assert done.returncode == name.startswith("bad"), (name, done.returncode, done.stdout, done.stderr)


def each_account_is_linearizable(binary):
    totals = Totals()
    number = 0
    try:
        while number < RUNS:
            store = STORES[number // FLEET_RUNS % len(STORES)]
            number = some_runs(binary, store, totals, number)
    finally:
        totals.show()
    assert totals.linearizable == RUNS


def some_runs(binary, store_type, totals, number):
    """In one fleet. Returns the number of the last."""
    with store_type() as store, Fleet(binary) as fleet:
        trades = Trades(fleet, store, binary)
        for number in range(number + 1, min(number + FLEET_RUNS, RUNS) + 1):
            run = Run(trades, number)
            gold = run.play(lambda draw: [trades.draw(draw) for _ in range(DEATHS)])
            good, said = run.judge()
            print("".join(f"#   {line}\n" for line in said), end="")  # its history stays
            assert gold == ACCOUNTS * START, (gold, run.history)
            in_doubt = any(t.call.in_doubt() for t in run.traders)
            assert trades.doubt_is_excused() or not in_doubt, (run.counts(), run.history)
            totals.add(run, good)
            if good and number == 1:
                sound, said = run.judged("--doctored")
                print("".join(f"# {line}\n" for line in said), end="")
                assert sound, run.history
            if good:
                run.forget()
        totals.deaths += trades.deaths
    return number


def planted_bugs_are_found(binary):
    for mutant in PLANTED:
        with durable.Sqlite() as store, Fleet(binary) as fleet:
            trades = Trades(fleet, store, binary, {"RINGHOLD_MUTANT": mutant})
            print(f"# planted: {mutant}", flush=True)
            until_refused(trades)


def until_refused(trades):
    for number in range(1, PLANTED_RUNS + 1):
        run = Run(trades, number)
        run.play(lambda draw: [[draw.choice(NODES)] for _ in range(DEATHS)])
        good, _ = run.judge()
        run.forget()
        if not good:
            assert run.refused > 0, "it is undecided"
            return
    raise AssertionError("it was not found")


CASES = [the_judge_tells_good_from_bad, each_account_is_linearizable, planted_bugs_are_found]
if skip := judge.build(sys.argv[1]) or next((w for w in (s.missing() for s in STORES) if w), None):
    print("".join(f"ok - {case.__name__} # SKIP {skip}\n" for case in CASES), end="")
    sys.exit(0)
main(CASES)
