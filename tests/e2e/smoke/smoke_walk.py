#!/usr/bin/env python3
"""docs/actors.md, typed as it stands into an empty folder, by somebody with an installed ringhold.

The walk ends at the first section without a number. A fenced block "c FILE" is a file; with
"+before:TEXT" or "+after:TEXT" it is put into that file before, or after, the line that has TEXT. A
block "sh" is typed line by line; what stands after "# " at a line's end must come out ("number": any).
Ports are the defaults: it runs in a network namespace of its own, or is skipped.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import main
from pages import ROOT, Shell, blocks, has_networks, read, write_file


def the_walk():
    text = read("docs/actors.md")
    end = re.search(r"^## (?!\d)", text, re.M).start()
    return [(b.language, b.words, b.body) for b in blocks("docs/actors.md", text[:end])]


def the_example_is_on_the_page(_binary):
    """Word by word, from its first include on."""
    with open(os.path.join(ROOT, "examples", "gifts.c")) as f:
        code = f.read()
    assert any(body == code[code.index("#include") :] for _, _, body in the_walk()), "examples/gifts.c differs"


def take_step(shell, line):
    command, _, want = line.partition(" # ")
    want = want.strip()
    said, code = shell.ask(command)
    if want == "number":
        assert re.fullmatch(r"\d+", said), (command, said)
    elif want:
        assert said == want, f"{command}\nsaid {said!r}, not {want!r}"
    elif not command.rstrip().endswith(("&", "!")) and not command.startswith("kill -9"):
        assert code == 0, f"{command}\nended with {code}: {said}"


def the_page_works_as_written(binary):
    if not has_networks():
        print("# skipped: no network namespace to be had")
        return
    folder = tempfile.mkdtemp(prefix="ringhold-walk-")
    prefix = os.path.join(folder, "installed")
    place = os.path.join(folder, "empty")
    os.mkdir(place)
    subprocess.run(
        ["make", "-s", "-C", ROOT, "install", f"PREFIX={prefix}", "DEPS=skip"], check=True, stdout=subprocess.DEVNULL
    )
    env = {
        **os.environ,
        "PATH": f"{prefix}/bin:{os.environ['PATH']}",
        "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig",
        "LD_LIBRARY_PATH": f"{prefix}/lib",
    }
    shell = Shell(place, env)
    try:
        for language, words, body in the_walk():
            if language == "c":
                write_file(place, words, body)
                continue
            for line in body.splitlines():
                take_step(shell, line)
    except AssertionError:
        for name in sorted(os.listdir(place)):
            if name.endswith(".log"):
                with open(os.path.join(place, name), errors="replace") as f:
                    print("".join(f"# {name}: {x}" for x in f.readlines()[-8:]), end="", flush=True)
        raise
    finally:
        shell.end()
        shutil.rmtree(folder, ignore_errors=True)


main([the_example_is_on_the_page, the_page_works_as_written])
