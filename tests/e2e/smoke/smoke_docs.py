#!/usr/bin/env python3
"""Pages are true: adopt.md is walked beside a real PostgreSQL, the figures of capacity.md and data-centres.md are those of
benchmarks.md, and each alert has its place in the runbook. REWRITE=1 puts what adopt.md's commands print now into the page."""
import os
import re
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import stores
from fleet import main

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


class Database(stores.Postgres):
    """It listens at a socket in its folder, too: the page's processes have a network of their own."""

    def __init__(self):
        super().__init__()
        self.settings = [f"unix_socket_directories={self.folder}"]


def unnumbered(text):
    """Outputs differ each time, in their numbers alone."""
    return re.sub(r" +", " ", re.sub(r"\d+", "N", text))


def the_way_from_crc32_is_as_written(binary):
    why = stores.missing(binary, [Database])
    if os.geteuid() != 0 or why:
        print(f"# skipped: {why or 'not root'}")
        return
    with Database() as game:
        game.query("CREATE DATABASE game")
        env = {**os.environ, "PGHOST": game.folder, "PGPORT": str(game.port), "PGUSER": "game"}
        page = os.path.join(game.folder, "adopt.md")
        shutil.copy(os.path.join(ROOT, "docs", "adopt.md"), page)
        subprocess.run([os.path.join(ROOT, "tools", "tour"), binary, page], env=env, check=True)
        if os.environ.get("REWRITE"):
            shutil.copyfile(page, os.path.join(ROOT, "docs", "adopt.md"))
        said, found = unnumbered(read("docs/adopt.md")), unnumbered(read(page))
        for one, other in zip(said.splitlines(), found.splitlines(), strict=True):
            assert one == other, f"the page says {one!r}, the command {other!r}"


def figures_are_those_that_were_measured(_binary):
    measured = {
        part: rows
        for part, rows in re.findall(r"<!-- figures: (\w+) -->(.*?)<!-- end -->", read("docs/benchmarks.md"), re.S)
    }
    quote = re.compile(r"\| ([\d.,]+) ?([^|]*?) \| `make bench-(\w+)`: ([^|]+?) \|$", re.M)
    shown = quote.findall(read("docs/capacity.md")) + quote.findall(read("docs/data-centres.md"))
    assert len(shown) > 30, shown
    for figure, unit, part, row in shown:
        assert f"| {row} | {unit} | {figure} |" in measured[part], f"bench-{part} has no {figure} {unit} of '{row}'"


def each_alert_has_its_place_in_the_runbook(_binary):
    places = re.findall(r"^### (Ringhold\w+)$", read("docs/operating.md"), re.M)
    alerts = re.findall(r"- alert: (\w+)\n.*?runbook: \"docs/operating.md#(\w+)\"", read("packaging/prometheus/ringhold.rules.yml"), re.S)
    assert sorted(places) == sorted(name for name, _ in alerts), (places, alerts)
    assert all(name.lower() == anchor for name, anchor in alerts), alerts


main([the_way_from_crc32_is_as_written, figures_are_those_that_were_measured, each_alert_has_its_place_in_the_runbook])
