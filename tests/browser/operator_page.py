#!/usr/bin/env python3
"""The coordinators' page as an operator uses it: under load and in a drain, light and dark, by the keyboard alone; what
axe-core says of it; and a fleet of 1,000 nodes.

    operator_page.py BINARY      takes playwright-core and axe-core from build/browser, where screenshots go; make browser
                                 does all that, and PICTURES=1 writes docs/page-*.webp anew
"""
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

from fleet import Fleet, Resp, RespError, main, until  # noqa: E402

ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
FOLDER = os.path.join(ROOT, "build", "browser")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
NODE = shutil.which("node") or shutil.which("nodejs")
TOKEN = "o" * 20
SIZE = {"width": 1280, "height": 1000}
PICTURE_MAX = 100 * 1024  # of one in docs
NAMES = ("n1", "n2", "n3", "n4")
THOUSAND, VNODES, CELLS = 1000, 64000, 1 << 16
DOM_MAX = 6000  # elements of the page that shows them


def lacks():
    """Why the page can't be looked at here, or None."""
    if not os.path.exists(CHROMIUM):
        return f"there is no {CHROMIUM}"
    for name in ("playwright-core", "axe-core"):
        if not os.path.isdir(os.path.join(FOLDER, "node_modules", name)):
            return f"npm's {name} is not in build/browser: make browser"
    return None if NODE else "there is no node"


class Tab:
    def __init__(self):
        words = [NODE, os.path.join(HERE, "pages.mjs")]
        self.popen = subprocess.Popen(words, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.stdin.close()
        try:
            self.popen.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()

    def __call__(self, what, **more):
        self.popen.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self.popen.stdin.flush()
        line = self.popen.stdout.readline()
        assert line, f"the browser's driver has ended: {what}"
        answer = json.loads(line)
        assert "error" not in answer, (what, more, answer)
        return answer["ok"]

    def judged(self, name):
        """axe-core finds nothing that is serious."""
        found = self("axe")
        bad = [f for f in found if f[0] in ("serious", "critical")]
        assert not bad, (name, bad)
        print(f"# axe-core, {name}: {len(found)} findings, none serious" + "".join(f"; {f[0]}: {f[1]} {f[2]}" for f in found))

    def shots(self, name):
        for colours in ("light", "dark"):
            self("colours", colours=colours)
            path = os.path.join(FOLDER, f"page-{name}-{colours}.webp")
            self("shot", path=path, quality=75)
            self.judged(f"{name} {colours}")
            size = os.path.getsize(path)
            assert 10000 < size < PICTURE_MAX, (path, size)
            print(f"# {os.path.relpath(path)}: {size} bytes")
            if os.environ.get("PICTURES"):
                shutil.copy(path, os.path.join(ROOT, "docs"))


class Load:
    """Somebody plays, until it is left, with actors that live anywhere but at `never`."""

    def __init__(self, address, never):
        redis = Resp(address)
        self.players = [p for p in (f"player-{i}" for i in range(2000)) if never not in str(redis("WHERE", p))]
        self.address, self.ends = address, threading.Event()
        self.thread = threading.Thread(target=self.play)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    def play(self):
        redis = Resp(self.address)
        for turn in itertools.count():
            redis.send(*[("INCR", self.players[(turn * 50 + i) % len(self.players)]) for i in range(50)])
            for _ in range(50):
                try:
                    redis.read()
                except RespError:
                    pass
            if self.ends.wait(0.02):  # half of a core's work would hide the page's own
                return


def drain_by_keyboard(tab, name):
    tab("reach", id="operator")
    tab("type", text=TOKEN)
    tab("reach", id="by")
    tab("type", text="alice")
    tab("reach", id="deed-node")
    tab("type", text=name)
    tab("press", keys="Escape")  # of the list that it offers
    tab("reach", id="reason")
    tab("type", text="new disks")
    tab("press", keys="Enter")
    tab("wait", expression="document.getElementById('sure').open")
    assert name in tab("text", id="sure-words")
    tab("press", keys="Escape")  # on second thoughts
    tab("wait", expression="!document.getElementById('sure').open")
    tab("reach", id="reason")
    tab("press", keys="Enter")
    tab("wait", expression="document.getElementById('sure').open")
    tab("press", keys="Tab")
    tab("press", keys="Enter")
    tab("wait", expression=f"document.getElementById('done').innerText === '{name} drains'")


def an_operator_drains_a_node_under_load(binary):
    plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "tests", "plugins", "unruly.so")
    with Fleet(binary, "island") as fleet, Tab() as tab:
        secret = fleet.data("operator")
        with open(secret, "w") as f:
            f.write(TOKEN + "\n")
        os.chmod(secret, 0o600)
        url = f"http://127.0.0.1:{fleet.port()}/"
        words = ["--admin", url.split("/")[2], "--operator-token", secret]
        fleet.coordinators(1, extra=[*words, "--prepare-ms", "60000", "--moves-at-once", "1"])
        for name in NAMES:
            fleet.node(name, ["--actor", plugin, "--threads", "2"])
        gateway = fleet.gateway("g1")
        fleet.settled(NAMES)
        with Load(gateway.resp, "n2"):
            tab("open", url=url, colours="light", **SIZE)
            # Three points of ten seconds: what is drawn is a line.
            tab("wait", expression="trend.points.length >= 3 && trend.points.at(-1)[2] > 0")
            tab("wait", expression="[...document.querySelectorAll('#plots path')].every((p) => p.getAttribute('d').includes('L'))")
            assert "requests/s" in tab("text", id="plots") and "island" in tab("text", id="cluster")
            tab.shots("load")

            # The switch goes before what the system wants.
            for theme in ("dark", "light"):
                tab("pick", id="theme", value=theme)
                ink = tab("value", expression="getComputedStyle(document.body).color")
                assert ink == {"dark": "rgb(230, 237, 243)", "light": "rgb(27, 31, 36)"}[theme], (theme, ink)
            tab("pick", id="theme", value="")

            # Actors that never end hold the drain up, and the page says so.
            ids = (f"k{i}" for i in itertools.count())
            stuck = list(itertools.islice((k for k in ids if fleet.ask("where", k)["node"] == "n2"), 20))
            busy = stuck[0]
            Resp(gateway.resp).send(("CALL", busy, "hang"))
            until("it hangs", lambda: any(r["id"] == busy for r in fleet.ask("top", "--hot")))
            Resp(gateway.resp).send(*[("CALL", k, "hang") for k in stuck[1:]])
            drain_by_keyboard(tab, "n2")
            tab("wait", expression="document.getElementById('nodes').innerText.includes('leaving')")
            # The page says which, and why the rest of the drain waits.
            tab("wait", expression="document.getElementById('transactions').innerText.includes('waits for n2: actor')")
            tab("wait", expression="document.getElementById('waits').innerText.includes('drain of n2')")
            tab("reach", id="find-id")
            tab("type", text=busy)
            tab("press", keys="Enter")
            tab("wait", expression="document.getElementById('found').innerText.includes('fence')")
            assert "n2" in tab("text", id="found") and busy in tab("text", id="found")
            tab("reach", id="look")
            tab("press", keys="Enter")
            tab("wait", expression=f"document.getElementById('hot').innerText.includes('0/{busy}')")
            tab("value", expression="scrollTo(0, 0)")
            tab.shots("drain")
            assert tab("errors") == [], tab("errors")
        row = next(e for e in fleet.ask("events", "--limit", "1000") if e["command"] == "drain")
        assert row["by"].startswith("alice@127.0.0.1") and row["reason"] == "new disks", row


def answer_of_a_large_fleet(path):
    """What a coordinator would tell of it."""
    nodes = [
        {
            "name": f"node-{i:04}", "role": "default", "address": f"10.0.{i // 250}.{i % 250}:7001", "state": "suspect" if i == 777 else "live",
            "vnodes": VNODES // THOUSAND, "cells": 65 + (i < 536), "actors": 1000 + i, "held": 0, "requests": 10**6 + i, "p99_us": 900 + i, "forwarded": 0, "lease_ms": 2500,
        }
        for i in range(THOUSAND)
    ]  # fmt: skip
    edges = [CELLS * 1024 * i // VNODES for i in range(VNODES + 1)]
    owners = [f"node-{i % THOUSAND:04}" for i in range(VNODES)]
    random.Random(7).shuffle(owners)
    vnodes = [[a, b, owner, "", "default"] for a, b, owner in zip(edges, edges[1:], owners)]
    points = [[1700000000000 + 10000 * i, 10000, 10**6 + i * 1000, i % 7, 0, 900 + i % 50 * 20] for i in range(360)]
    columns = ["end_ms", "took_ms", "requests", "held", "moves", "p99_us"]
    with open(path, "w") as f:
        json.dump(
            {
                "schema": 1, "cluster": "large", "leader": 1, "term": 3, "version": "17", "pending": 0, "planned": 0, "planning": False,
                "changes": "yes", "waits": [], "trend": {"next": 361, "columns": columns, "points": points}, "coordinators": [],
                "nodes": nodes, "gateways": [], "vnodes": vnodes, "transactions": [],
            },
            f,
        )  # fmt: skip


def a_thousand_nodes_are_drawn_once(binary):
    with Fleet(binary, "large") as fleet, Tab() as tab:
        url = f"http://127.0.0.1:{fleet.port()}/"
        fleet.coordinators(1, extra=["--admin", url.split("/")[2]])
        answer = fleet.data("answer.json")
        answer_of_a_large_fleet(answer)
        tab("open", url=url, colours="light", answer=answer, **SIZE)
        count = tab("value", expression="document.getElementsByTagName('*').length")
        rows = tab("value", expression="document.getElementById('nodes').tBodies[0].rows.length")
        shapes = tab("value", expression="document.querySelectorAll('#drawing path').length")
        assert rows == 100 and THOUSAND * 99 // 100 < shapes <= THOUSAND and count < DOM_MAX, (rows, shapes, count)
        assert "node-0777" in tab("value", expression="document.getElementById('nodes').tBodies[0].rows[0].innerText"), "who is in trouble comes first"
        # From the answer to pixels: decode, draw, lay out; for people who read this, as no machine is promised to be as fast.
        # What is drawn again makes no row anew.
        took, anew = tab("value", expression="""(async () => {
            const text = await (await fetch("/fleet?again")).text();
            const watcher = new MutationObserver(() => {});
            watcher.observe(document.getElementById("nodes").tBodies[0], { childList: true });
            drawn = null;
            const begin = performance.now();
            const fleet = JSON.parse(text);
            ring = { version: fleet.version, vnodes: fleet.vnodes };
            hour(fleet); draw(fleet); tables(fleet); headline(fleet, transactions(fleet.transactions));
            document.body.getBoundingClientRect();
            return [performance.now() - begin, watcher.takeRecords().length];
        })()""")  # fmt: skip
        assert anew == 0, anew
        print(f"# {THOUSAND} nodes with {VNODES} vnodes: {count} elements, drawn and laid out in {took:.0f} ms")
        tab("reach", id="filter")
        tab("type", text="node-09")
        tab("wait", expression="document.getElementById('nodes').tBodies[0].rows.length === 100")
        assert "100 of 1000" in tab("text", id="nodes-words")
        tab.judged("1,000 nodes")
        assert tab("errors") == [], tab("errors")


def skipped(case, why):
    def told(_binary):
        pass

    told.__name__ = f"{case.__name__} # SKIP {why}"
    return told


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    found = [an_operator_drains_a_node_under_load, a_thousand_nodes_are_drawn_once]
    main(found if lacks() is None else [skipped(case, lacks()) for case in found])
