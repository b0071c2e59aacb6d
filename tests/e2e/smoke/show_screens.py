#!/usr/bin/env python3
"""Writes docs/screens.md: what the commands that one looks at most print, of a real fleet. `make screens-page` runs it.
`show_screens.py BINARY before` writes the other half, by a build of before."""
import os
import re
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
sys.path.append(sys.path[0])
from smoke_screens import PAGE, begun, screens

HEAD = """# What operators see

Tables are plain text of at most 100 columns: `-o wide` has all columns, `-o tsv` and `-o json` are for programs
([json.md](json.md)). Both halves of this page were printed by real fleets that went the same way: `make screens-page`
writes the second one again, and `make check` looks whether it still fits.

"""
PARTS = {"before": "## Before", "now": "## Now"}


def part(title, shown):
    text = title + "\n"
    for command, out in shown:
        # A fleet of the test listens where it can; people's listen at 7400.
        text += f"\n### `ringhold {re.sub(r'^txn show .*', 'txn show', command)}`\n\n    $ ringhold {command}\n"
        text += "".join(f"    {line}".rstrip() + "\n" for line in out.splitlines())
    return text


def kept(which):
    """The other half, as the page has it."""
    if not os.path.exists(PAGE):
        return ""
    with open(PAGE) as f:
        found = re.search(rf"^{PARTS[which]}\n.*?(?=^## |\Z)", f.read(), re.S | re.M)
    return found.group(0).rstrip() + "\n" if found else ""


def write(binary, which):
    with begun(binary) as fleet:
        halves = {name: kept(name) for name in PARTS}
        halves[which] = part(PARTS[which], screens(fleet))
    with open(PAGE, "w") as f:
        f.write(HEAD + "\n".join(half for half in halves.values() if half))


write(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "now")
