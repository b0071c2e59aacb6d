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
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import main

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.join(HERE, "..", "..")
BLOCK = re.compile(r"^```(c|sh)([^\n]*)\n(.*?)^```$", re.M | re.S)

JOB = re.compile(r"^bash: line \d+: +\d+ Killed ")  # what bash says of a job that was killed


def the_walk():
    with open(os.path.join(ROOT, "docs", "actors.md")) as f:
        text = f.read()
    ends = [m.start() for m in re.finditer(r"^## (?!\d)", text, re.M)]
    return [m.groups() for m in BLOCK.finditer(text[: ends[0]])]


def the_example_is_on_the_page(_binary):
    """Word by word, from its first include on."""
    with open(os.path.join(ROOT, "examples", "gifts.c")) as f:
        code = f.read()
    assert any(body == code[code.index("#include") :] for _, _, body in the_walk()), "examples/gifts.c differs"


def write_file(folder, words, body):
    name, _, where = words.strip().partition(" ")
    path = os.path.join(folder, name)
    if not where:
        with open(path, "w") as f:
            f.write(body)
        return
    side, text = where[1:].split(":", 1)
    with open(path) as f:
        lines = f.read().splitlines(keepends=True)
    at = max(i for i, line in enumerate(lines) if text in line)
    lines[at if side == "before" else at + 1 : at if side == "before" else at + 1] = [body]
    with open(path, "w") as f:
        f.write("".join(lines))


class Shell:
    """One bash, as somebody's terminal: commands one after the other, with what each printed."""

    def __init__(self, folder, env):
        inside = "ip link set lo up && exec bash --norc --noprofile"
        self.popen = subprocess.Popen(
            ["unshare", "--net", "--map-root-user", "bash", "-c", inside],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=folder, env=env, start_new_session=True, text=True,
        )  # fmt: skip

    def type(self, line):
        """(what it printed, its exit code)"""
        mark = uuid.uuid4().hex
        self.popen.stdin.write(f"{line}\necho {mark} $?\n")
        self.popen.stdin.flush()
        said = []
        while True:
            got = self.popen.stdout.readline()
            assert got, f"the shell ended at: {line}\n{''.join(said)}"
            if mark in got:
                return "".join(said).strip(), int(got.split()[-1])
            if not JOB.match(got):
                said.append(got)

    def end(self):
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()


def take_step(shell, line):
    """Type one line. A client that comes before its servers are up is typed again."""
    command, _, want = line.partition(" # ")
    want = want.strip()
    end = time.monotonic() + 30
    while True:
        said, code = shell.type(command)
        early = "Could not connect" in said or "Connection refused" in said
        if not early or time.monotonic() > end:
            break
        time.sleep(0.1)
    if want == "number":
        assert re.fullmatch(r"\d+", said), (command, said)
    elif want:
        assert said == want, f"{command}\nsaid {said!r}, not {want!r}"
    elif not command.rstrip().endswith(("&", "!")) and not command.startswith("kill -9"):
        assert code == 0, f"{command}\nended with {code}: {said}"


def the_page_works_as_written(binary):
    probe = subprocess.run(["unshare", "--net", "--map-root-user", "true"], capture_output=True)
    if probe.returncode != 0:
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
