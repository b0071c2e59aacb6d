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


def parts(page, text):
    """[(what, text)] of a page: "heading 2", "item", "row", "paragraph", "code", in their order."""
    found = []
    kind = None
    for line in FENCE.sub(lambda m: "```" + m[0].replace("\n", "\v"), re.sub(r"<!--.*?-->\n", "", text, flags=re.S)).split("\n"):
        if line.startswith("```"):
            found, kind = [*found, ("code", line[3:].replace("\v", "\n"))], None
        elif not line.strip():
            kind = "code" if kind == "code" else None
        elif line.startswith("    ") and kind in (None, "code"):
            if kind is None:
                found.append(("code", ""))
            found[-1], kind = ("code", found[-1][1] + line + "\n"), "code"
        elif heading := re.match(r"(#+) ", line):
            found, kind = [*found, (f"heading {len(heading[1])}", line)], None
        elif kind and kind != "code" and not re.match(r"(\||[-*] |\d+\. )", line):
            found[-1] = (found[-1][0], found[-1][1] + "\n" + line)
        else:
            kind = "row" if line[0] == "|" else "item" if re.match(r"[-*] |\d+\. ", line) else "paragraph"
            found.append((kind, line))
    return [(what, said, links(page, said), re.findall(r"\d+(?:[.,]\d+)*", re.sub(r"\]\([^)]*\)|`[^`]*`", "", said))) for what, said in found]


def links(page, text):
    """Where it leads, by the pages' names in English."""
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, hash_, anchor = target.partition("#")
        at = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        english = at.replace("docs/zh/", "docs/").replace("README.zh.md", "README.md")
        found.append(target if ":" in path else english + hash_ + (anchor if english == at else ""))
    return sorted(re.sub(r"#.*", "", f) if f.split("#")[0] in TRANSLATED else f for f in found)


# Pages that are there in Chinese, too.
TRANSLATED = {"README.md": "README.zh.md", **{f"docs/{n}.md": f"docs/zh/{n}.md" for n in ("why", "concepts", "tour", "adopt")}}


def lags(page, english, other_page, chinese):
    """Where a translation is another page than the original, or nothing: by its parts, code, figures and links."""
    ours, theirs = parts(page, english), parts(other_page, chinese)
    for (what, said, leads, figures), (their_what, their_said, their_leads, their_figures) in zip(ours, theirs):
        where = f"{page}: {said[:300]!r}\n{other_page}: {their_said[:300]!r}\n"
        if what != their_what:
            return f"{where}a {what} is a {their_what}"
        if what == "code" and said != their_said:
            return f"{where}other code: REWRITE=1 copies it"
        if what != "code" and leads != their_leads:
            return f"{where}leads elsewhere: {leads}, {their_leads}"
        if what != "code" and sorted(figures) != sorted(their_figures):
            return f"{where}has other figures: {figures}, {their_figures}"
    return "" if len(ours) == len(theirs) else f"{page} has {len(ours)} parts, {other_page} {len(theirs)}: {max(ours, theirs, key=len)[min(len(ours), len(theirs))][:2]}"
