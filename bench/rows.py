"""Rows of figures, the same way for every benchmark: measured in turn, printed, collected.

    import os, sys
    from rows import Goal, Table, cpu_seconds, rounds, scaled

    def main():
        with Table("Frames", "64-byte frames, 1,000 senders, the gateway against the relay.") as table:
            rate = table.row("frames, 64 B", "frames/s", peer="relay", goal=Goal.ratio_at_least(1.2))
            late = table.row("p99", "us", peer="relay", goal=Goal.ratio_at_most(1.0), why="one wake-up more")
            for _ in rounds():                      # ROUNDS of them, fewer when the time is up
                ours, theirs = ask_ours(scaled(200000)), ask_relay(scaled(200000))
                rate.round(ours.rate, theirs.rate)  # one value of each, taken one after the other
                late.round(ours.p99, theirs.p99)
            table.figure("syscalls a frame", 0.07, goal=Goal.at_most(0.1))  # a count, without a peer
            table.row("CPU", "us/frame", goal=Goal.at_most(2)).rounds([1.6, 1.7, 1.5])  # no peer, but rounds

    main()

At the end of the `with`, also when an exception ends it, the rows that have values are printed to
stdout as a table; and if BENCH_ROWS names a file, appended there as one line of JSON each, from
which `make bench` makes docs/benchmarks.md. Nothing else belongs on stdout but what a reader of that
page wants; progress goes to stderr, by progress().

Ratio: ours / peer's of each round, and of these the median. What a noisy machine does in a round, it
does to both. Spread: the least and the greatest of these ratios; without a peer, of our values. The
figures shown beside it are medians of their own, so their quotient may differ a little from the ratio.

A row has one peer. Where there are two, make two rows of one name.

Environment: ROUNDS (5), QUICK=1 (2 rounds, scaled() counts: does it run at all?), BENCH_ROWS (see
above), BENCH_SECONDS (90: the budget of this script; rounds() ends in time for it).
"""
import json
import math
import operator
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

QUICK = os.environ.get("QUICK", "") not in ("", "0")
ROUNDS = int(os.environ.get("ROUNDS", "2" if QUICK else "5"))
BUDGET = float(os.environ.get("BENCH_SECONDS", "90"))
BENCH = os.path.basename(sys.argv[0])
BEGUN = time.monotonic()


def progress(text):
    """A line on stderr, with the seconds since the start."""
    print(f"# {BENCH} {time.monotonic() - BEGUN:5.1f} s: {text}", file=sys.stderr, flush=True)


def scaled(count, by=10):
    """`count`, or a tenth of it with QUICK=1."""
    return max(1, count // by) if QUICK else count


def rounds(count=None, seconds=None):
    """0, 1, … for ROUNDS (or `count`) rounds. Ends sooner when one more like the longest would go over
    `seconds` for this loop, or over the budget of the script; the first is always run."""
    count = count or ROUNDS
    begin = time.monotonic()
    end = min(BEGUN + BUDGET, begin + (seconds or BUDGET))
    longest = 0.0
    for i in range(count):
        start = time.monotonic()
        if i > 0 and start + longest > end:
            progress(f"time is up after {i} of {count} rounds")
            return
        yield i
        longest = max(longest, time.monotonic() - start)
        progress(f"round {i + 1} of {count}, {time.monotonic() - start:.1f} s")


def installed(program):
    """Whether the peer is there; says so on stderr if not. Its rows are then left out."""
    if shutil.which(program):
        return True
    progress(f"no {program} here: its rows are left out (tools/setup bench peers)")
    return False


def cpu_seconds(*pids):
    """User and system time of these processes so far, of all their threads. Resolution: 10 ms."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()  # from field 3 on: the name may hold blanks
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def cpu_of_children():
    """User and system time of the processes that we started, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def switches(*pids):
    """Context switches of these processes so far, of all their threads: (voluntary, involuntary)."""
    sums = {"voluntary_ctxt_switches": 0, "nonvoluntary_ctxt_switches": 0}
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{thread}/status") as f:
                    for line in f:
                        name, _, value = line.partition(":")
                        if name in sums:
                            sums[name] += int(value)
            except FileNotFoundError:
                pass  # it has ended meanwhile
    return tuple(sums.values())


def instructions(*words, within=()):
    """Instructions that a run of this program takes, by callgrind; or only what runs in the functions `within`, but not
    in those that are among them, too, and are called by them. Take the difference of two runs of different length, so that
    what is done once does not count. Slow: fifty times."""
    only = [f"--toggle-collect={function}" for function in within]
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *only, *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


class Goal:
    """What a row should reach: a text for readers, which figure it is about (`ratio` or `ours`), and a
    test of that figure. The four makers are for the usual; Goal("an odd number", "ours", test) for others."""

    def __init__(self, text, of, test):
        self.text, self.of, self.test = text, of, test

    @classmethod
    def _limit(cls, sign, of, limit, mark=""):
        compare = {">=": operator.ge, "<=": operator.le}[sign]
        return cls(f"{sign} {number(limit)}{mark}", of, lambda value: compare(round(value, 6), limit))

    @classmethod
    def ratio_at_least(cls, limit):
        return cls._limit(">=", "ratio", limit, "x")

    @classmethod
    def ratio_at_most(cls, limit):
        return cls._limit("<=", "ratio", limit, "x")

    @classmethod
    def at_least(cls, limit):
        return cls._limit(">=", "ours", limit)

    @classmethod
    def at_most(cls, limit):
        return cls._limit("<=", "ours", limit)


class Row:
    """One line of a table; made by Table.row()."""

    def __init__(self, name, unit, peer, goal, why):
        self.name, self.unit, self.peer, self.goal, self.why = name, unit, peer, goal, why
        self.ours, self.theirs = [], []

    def round(self, ours, theirs=None):
        """The values of one round. `theirs` is of the row's peer; a row without a peer has none."""
        assert (theirs is None) == (self.peer is None), f"{self.name}: peer {self.peer}, value {theirs}"
        self.ours.append(float(ours))
        if theirs is not None:
            self.theirs.append(float(theirs))

    def rounds(self, ours, theirs=None):
        """The values of all rounds, for a program that does its own."""
        assert theirs is None or len(ours) == len(theirs), self.name
        for i, value in enumerate(ours):
            self.round(value, None if theirs is None else theirs[i])

    def record(self):
        """The row as what JSON can hold: medians, ratio, spread, and whether the goal is met (None: no goal)."""
        ratios = [1.0 if a == b else a / b if b else float("inf") for a, b in zip(self.ours, self.theirs)]
        spread = ratios or self.ours
        record = {
            "name": self.name,
            "unit": self.unit,
            "peer": self.peer,
            "ours": statistics.median(self.ours),
            "theirs": statistics.median(self.theirs) if self.theirs else None,
            "ratio": statistics.median(ratios) if ratios else None,
            "least": min(spread),
            "greatest": max(spread),
            "rounds": len(self.ours),
            "goal": None,
            "met": None,
            "why": self.why,
        }
        if self.goal:
            record["goal"] = self.goal.text
            record["met"] = bool(self.goal.test(record[self.goal.of]))
        return record


class Table:
    """A table of rows under a title; `what` says in a sentence or two what is measured and against what."""

    def __init__(self, title, what):
        self.title, self.what = title, what
        self.list = []

    def row(self, name, unit="", peer=None, goal=None, why=""):
        """A new row, to be given values. `why`: shown if the goal is missed; a short plain reason."""
        self.list.append(Row(name, unit, peer, goal, why))
        return self.list[-1]

    def figure(self, name, value, unit="", goal=None, why=""):
        """A row of one value without a peer: a count."""
        row = self.row(name, unit, None, goal, why)
        row.round(value)
        return row

    def records(self):
        return [{"bench": BENCH, "table": self.title, "what": self.what, **r.record()} for r in self.list if r.ours]

    def __enter__(self):
        progress(self.title)
        return self

    def __exit__(self, *_):
        records = self.records()
        print(f"{self.title}: {self.what}")
        print(aligned([HEAD] + [cells(r) for r in records]), end="\n\n", flush=True)
        path = os.environ.get("BENCH_ROWS")
        if path:
            with open(path, "a") as f:
                f.writelines(json.dumps(r) + "\n" for r in records)


HEAD = ("", "unit", "ours", "peer's", "peer", "ratio", "spread", "goal", "")


def number(value):
    """A number as one reads it: three digits of it at least, thousands apart."""
    if value is None:
        return ""
    if math.isinf(value):
        return "inf"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"


def cells(record):
    """The cells of a record, as HEAD names them."""
    many = record["rounds"] > 1
    times = "x" if record["ratio"] is not None else ""
    return (
        record["name"],
        record["unit"],
        number(record["ours"]),
        number(record["theirs"]),
        record["peer"] or "",
        number(record["ratio"]) + times,
        f"{number(record['least'])}..{number(record['greatest'])}{times}" if many else "",
        record["goal"] or "",
        {None: "", True: "met", False: "MISSED"}[record["met"]],
    )


def aligned(table):
    """Rows of cells as lines; figures to the right, words to the left."""
    words = (0, 1, 4, 7, 8)
    width = [max(len(row[i]) for row in table) for i in range(len(HEAD))]
    lines = []
    for row in table:
        line = [c.ljust(width[i]) if i in words else c.rjust(width[i]) for i, c in enumerate(row)]
        lines.append("  ".join(line).rstrip())
    return "\n".join(lines)
