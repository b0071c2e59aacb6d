"""Samples of the documentation: the blocks of a page, and a shell to type them in."""
import os
import re
import signal
import subprocess
import time
import uuid

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FENCE = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1 *$", re.M | re.S)
COMMENT = re.compile(r"<!-- (fragment|given):\s*((?:(?!-->).)*?)\s*-->\n\n?\Z", re.S)
JOB = re.compile(r"^bash: line \d+: +\d+ Killed ")  # what bash says of a job that was killed


class Block:
    """A fenced block: its language, the words behind it, its text; what the comment above it says."""

    def __init__(self, page, text, match):
        self.page, self.line = page, text.count("\n", 0, match.start()) + 1
        self.language, _, self.words = match[2].strip().partition(" ")
        self.body = match[3]
        comment = COMMENT.search(text[max(0, text.rfind("<!--", 0, match.start())) : match.start()])
        self.fragment = comment and comment[1] == "fragment" and comment[2]
        self.given = comment[2] + "\n" if comment and comment[1] == "given" else ""

    def __str__(self):
        return f"{self.page}:{self.line}"


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        return f.read()


def blocks(page, text):
    return [Block(page, text, m) for m in FENCE.finditer(text)]


def indented(text):
    """(line number, line) of the blocks that are indented, and not fenced; a line that goes on in the next is one with it."""
    text = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    number, before = 1, ""
    for line in text.replace("\\\n", "\v").split("\n"):
        if line.startswith("    ") and (not before or before.startswith("    ")):
            yield number, line[4:].replace("\v", " ")
            before = "    "
        else:
            before = line.strip() and line
        number += 1 + line.count("\v")


def write_file(folder, words, body):
    """"FILE": a file; "FILE +before:TEXT" or "FILE +after:TEXT": into that file, before or after the last line that has TEXT."""
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


def has_networks():
    """May this process make a network namespace, in which the default ports are free?"""
    return subprocess.run(["unshare", "--net", "--map-root-user", "true"], capture_output=True).returncode == 0


class Shell:
    """One bash, as somebody's terminal, on a network of its own: commands one after the other, with what each printed."""

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

    def ask(self, command):
        """The same, of a client that may come before its servers are up: then it is typed again."""
        end = time.monotonic() + 30
        while True:
            said, code = self.type(command)
            early = "Could not connect" in said or "Connection refused" in said
            if not early or time.monotonic() > end:
                return said, code
            time.sleep(0.1)

    def end(self):
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
