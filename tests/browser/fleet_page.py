#!/usr/bin/env python3
"""The coordinators' page in Chromium: idle, while a node joins, with a transaction that hangs; on a desk and on a phone.

    fleet_page.py BINARY         screenshots are in build/browser; make browser does all that
"""
import itertools
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

from fleet import Fleet, Resp, main, until  # noqa: E402

FOLDER = os.path.normpath(os.path.join(HERE, "..", "..", "build", "browser"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --virtual-time-budget=7000"
).split()
WIDTHS = {"desk": (1280, 900), "phone": (390, 1400)}


class Page:
    def __init__(self, fleet):
        self.fleet = fleet
        self.url = f"http://127.0.0.1:{fleet.port()}/"

    @property
    def admin(self):
        return ["--admin", self.url.split("/")[2]]

    def chromium(self, *words):
        done = subprocess.run(
            [CHROMIUM, *FLAGS, f"--user-data-dir={self.fleet.data('chromium')}", *words, self.url],
            capture_output=True, text=True, timeout=120,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout, done.stderr

    def text(self):
        """What it shows after some seconds: (words, shapes of the ring)."""
        dom, errors = self.chromium("--dump-dom", "--enable-logging=stderr")
        wrong = [s for s in errors.splitlines() if "CONSOLE" in s]
        assert not wrong, wrong
        body = dom[dom.index("<body") :]
        ring = body[body.index('id="drawing"') :].partition("</svg>")[0]
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body)), ring.count("<path ")

    def shots(self, name):
        for where, (width, height) in WIDTHS.items():
            path = os.path.join(FOLDER, f"fleet-{name}-{where}.png")
            self.chromium(f"--window-size={width},{height}", f"--screenshot={path}")
            assert os.path.getsize(path) > 10000, path
            print(f"# {os.path.relpath(path)}")


def a_person_sees_the_fleet(binary):
    os.makedirs(FOLDER, exist_ok=True)
    plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "tests", "plugins", "unruly.so")
    node = ["--actor", plugin, "--threads", "2"]
    with Fleet(binary, "island") as fleet:
        page = Page(fleet)
        fleet.ports = {i: fleet.port() for i in (1, 2, 3)}
        for i in (1, 2, 3):
            fleet.coordinator(i, extra=[*(page.admin if i == 1 else []), "--prepare-ms", "60000"], ready=False)
        for name in ("n1", "n2", "n3"):
            fleet.node(name, node)
        fleet.gateway("g1")
        fleet.settled(["n1", "n2", "n3"])
        words, shapes = page.text()
        assert "island" in words and "nothing under way" in words and "3 nodes" in words and "192 vnodes" in words, words
        assert "STUCK" not in words and shapes == 3 and re.search(r"33\.\d %", words), (words, shapes)
        page.shots("idle")

        # An actor that never ends holds its vnode: a join takes the others, and waits for that one.
        busy = next(f"k{i}" for i in itertools.count() if fleet.ask("where", f"0/k{i}")["node"] == "n2")
        Resp(fleet.process("g1").resp).send(("CALL", busy, "hang"))
        until("it hangs", lambda: any(r["id"] == busy for r in fleet.ask("top", "--hot")))
        fleet.process("n2").kill(signal.SIGTERM)
        until("it waits for the actor", lambda: any(busy in t["waiting_for"] for t in fleet.ask("txn", "list")))
        fleet.node("n4", node, ready=False)
        until("n4 is known", lambda: any(n["node"] == "n4" for n in fleet.status()["nodes"]))
        page.shots("join")
        until("it is stuck", lambda: "STUCK" in page.text()[0], pause=1)
        words, shapes = page.text()
        assert f"waits for n2: actor 0/{busy}" in words and "stuck" in words and "leaving" in words, words
        assert "are moving" in words and shapes > 4, (words, shapes)
        page.shots("stuck")

        for i in (2, 3):
            fleet.process(f"c{i}").kill().wait()
        until("no leader is told", lambda: "no coordinator answers as leader" in page.text()[0])


main([a_person_sees_the_fleet])
