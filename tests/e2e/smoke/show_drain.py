#!/usr/bin/env python3
"""Writes docs/drain.md: a drain as a person sees it on a terminal, captured from a real one, and the metrics before and
after. `make drain-page` runs it. It is a test too: it fails if a part of what it is to show doesn't come."""
import os
import re
import signal
import sys
import time
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, until
from smoke_drain import Terminal

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.normpath(os.path.join(HERE, "..", "..", "docs", "drain.md"))
ACTORS, STATE = 30000, 1024
GAME = """
local actor = ringhold.kind("player")
function actor.fill(self, size) self.bag = string.rep("x", tonumber(size)) end
function actor.fight(self, seconds) ringhold.sleep(tonumber(seconds) * 1000) return "won" end
"""
FIGURES = (
    ("n1", "ringhold_node_vnodes"), ("n2", "ringhold_node_vnodes"), ("n3", "ringhold_node_vnodes"),
    ("n1", "ringhold_node_actors"), ("n2", "ringhold_node_actors"), ("n3", "ringhold_node_actors"),
    ("n2", "ringhold_node_held_total"), ("n2", "ringhold_node_forwarded_total"),
    ("n2", 'ringhold_node_hold_seconds_count{outcome="committed"}'),
    ("n2", 'ringhold_node_hold_seconds_sum{outcome="committed"}'),
    ("c1", "ringhold_coordinator_transactions_committed_total"), ("c1", "ringhold_coordinator_transactions_pending"),
    ("g1", "ringhold_gateway_requests_total"), ("g1", 'ringhold_gateway_not_ok_total{outcome="unknown"}'),
    ("g1", 'ringhold_gateway_not_ok_total{outcome="timeout"}'),
)  # fmt: skip


def figures(admins):
    found = {}
    for name, address in admins.items():
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                key, _, value = line.rpartition(" ")
                found[name, key] = value
    return {f: found.get(f, "0") for f in FIGURES}


def screens(terminal, begin):
    """What stood on the screen, each time it had been drawn whole: (seconds, lines). The bar is two lines which are
    drawn anew, with the cursor left in the first."""
    text, shown = "", []
    for when, more in terminal.drawn:
        text += more
        while "\033[A\r" in text:
            frame, text = text.split("\033[A\r", 1)
            lines = [re.sub("\033\\[K|\r", "", l).rstrip() for l in frame.split("\n")]
            shown.append((when - begin, lines))
    if text.strip():
        rest = re.sub("\033\\[[KA]|\r", "", text)
        shown.append((terminal.drawn[-1][0] - begin, [l for l in rest.split("\n") if l.strip()]))
    return shown


def picked(shown):
    """Some of them: the first, those while it moves fast, the first with a blocker, and the last two."""
    first_blocked = next((i for i, (_, lines) in enumerate(shown) if len(lines) > 1 and lines[-1].strip()), None)
    moving = [i for i, (_, lines) in enumerate(shown) if "vnodes/s" in lines[0]]
    wanted = {0, *moving[:: max(1, len(moving) // 3)][:3], first_blocked, len(shown) - 2, len(shown) - 1}
    return [shown[i] for i in sorted(w for w in wanted if w is not None and 0 <= w < len(shown))]


def told(shown):
    return "\n".join(f"{when:5.1f} s  {line}" for when, lines in picked(shown) for line in lines if line.strip())


def table(before, while_, after):
    rows = ["| | | before | while `boss` fights | after |", "|---|---|---|---|---|"]
    rows += [f"| {n} | `{f}` | {before[n, f]} | {while_[n, f]} | {after[n, f]} |" for n, f in FIGURES]
    return "\n".join(rows)


def started(fleet, script):
    admins = {name: f"127.0.0.1:{fleet.port()}" for name in ("c1", "n1", "n2", "n3", "g1")}
    fleet.coordinators(1, extra=["--admin", admins["c1"]])
    for name in ("n1", "n2"):
        fleet.node(name, ["--lua", script, "--admin", admins[name]])
    fleet.gateway("g1", ["--admin", admins["g1"]])
    fleet.settled(["n1", "n2"])
    redis = Resp(fleet.process("g1").resp)
    for at in range(0, ACTORS, 500):
        redis.send(*[("CALL", f"player-{i}", f"fill {STATE}") for i in range(at, at + 500)])
        for _ in range(500):
            redis.read()
    fleet.node("n3", ["--lua", script, "--admin", admins["n3"]])  # what it is given shows what moves take here
    fleet.settled(["n1", "n2", "n3"])
    return admins, redis


def capture(fleet, script):
    admins, redis = started(fleet, script)
    boss = next(f"boss-{i}" for i in range(1000) if fleet.ask("where", f"0/boss-{i}")["node"] == "n2")
    redis.send(("CALL", boss, "fight 7"))
    until("it fights", lambda: any(r["id"] == boss for r in fleet.ask("top", "--hot")))
    plan = fleet.tell("ring", "--diff", "drain", "n2")
    before = figures(admins)
    begin = time.monotonic()
    first = Terminal(fleet, "node", "drain", "n2", "--watch")
    first.shows(r"n2 \[#+-+\] \d+ of \d+ vnodes left, \d+ actors, [0-9.]+ vnodes/s, \d+ s to go")
    first.shows(f"waits for n2: actor 0/{boss}")
    seen = len(first.drawn)
    until("it is shown for a while", lambda: len(first.drawn) > seen + 4)
    first.popen.send_signal(signal.SIGINT)
    first.end(130)
    while_ = figures(admins)
    second = Terminal(fleet, "node", "drain", "n2", "--watch")
    second.shows(f"waits for n2: actor 0/{boss}")
    second.shows("n2 is empty after")
    second.end(0)
    assert redis.read() == "won", "who fought was not hurried"
    fleet.settled(["n1", "n3"])
    until("n2 says so", lambda: figures(admins)["n2", "ringhold_node_actors"] == "0")
    return boss, plan, begin, first, second, (before, while_, figures(admins))


PAGE_TEXT = """# A drain, as you see it

Captured from a real fleet's terminal by `make drain-page`, which writes this page: three nodes, the last of
which has just joined, {actors} actors of {state} bytes, and one, `{boss}`, in a fight that takes 7 seconds. The seconds at the left count from the first command.

## What would move

    $ ringhold ring --diff drain n2
{plan}

The estimate of bytes and time comes from the moves when n3 joined. Without the fighter the drain would take about as long.

## The drain, until ^C

    $ ringhold node drain n2 --watch
{first}

The command redraws two lines: the bar with its rate and the time to go, and the name of the actor or node that it waits for.
Everything else moves on; the vnodes in the fighter's transaction wait for it. ^C ends only the display (exit code 130).

## The drain goes on, and ends

    $ ringhold node drain n2 --watch
{second}

The fighter was not interrupted: it answered `won`, and moved then. Exit code 0.

## Its metrics

{table}

`hold_seconds` tells how long vnodes were held: most of the sum is the vnodes that waited for the fighter. Every request was
answered by its actor.
"""


def indented(text):
    return "\n".join("    " + line if line.strip() else "" for line in text.rstrip().splitlines())


def write(binary):
    with Fleet(binary) as fleet:
        script = os.path.join(fleet.folder, "game.lua")
        with open(script, "w") as f:
            f.write(GAME)
        boss, plan, begin, first, second, metrics = capture(fleet, script)
    page = PAGE_TEXT.format(
        actors=f"{ACTORS:,}",
        state=f"{STATE:,}",
        boss=boss,
        plan=indented(plan),
        first=indented(told(screens(first, begin))),
        second=indented(told(screens(second, begin))),
        table=table(*metrics),
    )
    with open(PAGE, "w") as f:
        f.write(page)
    print(page)


write(sys.argv[1])
