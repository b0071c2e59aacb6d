#!/usr/bin/env python3
"""Each sample of README.md and docs/ works: it is run, compiled or read, by what its fence says.

    c            compiled with all warnings, at the end of a file or of a function; "c FILE" is a file, and
                 "c FILE +after:TEXT" or "+before:TEXT" goes into it. "…" stands for what is left out.
    lua          loaded by `ringhold node --lua-check`, all blocks of a page as one script
    console      run, with the blocks that are files, in an empty folder: "$ COMMAND", and what it printed
    sh run       run, line by line; what stands behind "# " in quotes must come out
    sh           read: each program is known, each option of `ringhold` is taken by it, with its value. So are
                 the commands of indented blocks, and the names of commands and options in running text
    go python js  read by their compilers; json yaml ini  read
    text mermaid  no sample: output, formats, drawings

What does not stand alone has a comment above it: <!-- given: declarations that it needs -->, or
<!-- fragment: why it is not even read -->. docs/actors.md has smoke_walk.py, which types it with an installed ringhold.
"""
import concurrent.futures
import configparser
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import commands, main
from pages import ROOT, Shell, blocks, has_networks, indented, read, write_file

PAGES = ["README.md", *sorted(os.path.relpath(p, ROOT) for p in glob.glob(f"{ROOT}/docs/*.md"))]
NO_SAMPLES = {"text", "mermaid"}
# Programs of samples that need not be here.
ELSEWHERE = set(
    "apt apt-get cc chown curl docker go kubectl make node npm openssl pip pkg-config prometheus promtool psql python3 "
    "redis-cli redis-benchmark redis-server rsync scp sqlite3 ssh sudo systemctl journalctl wrk".split()
)
STARTS = {";", "&", "&&", "|", "||", "(", ")", "{", "!", "do", "then", "else", "if", "until", "while", "sudo", "exec", "time"}
C_FLAGS = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-fsyntax-only"]
GIVEN = "".join(f"#include <{h}.h>\n" for h in (
    "ringhold", "ringhold_test", "ringhold_client", "stdbool", "stdint", "stdio", "stdlib", "string"
)) + '#pragma GCC diagnostic ignored "-Wunused"\n#pragma GCC diagnostic ignored "-Wunused-parameter"\n#pragma GCC diagnostic ignored "-Wmissing-field-initializers"\n'  # fmt: skip


def run(words, folder, **more):
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, **more)  # fmt: skip
    return done.returncode, done.stdout


class Bench:
    """Where samples are tried: a folder that goes at the end, and what is wrong with them."""

    def __init__(self, binary):
        self.binary = os.path.abspath(binary)
        self.every = commands(binary)
        self.options = {}
        self.known = {}  # what bash says of a word, so that each is asked once

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="ringhold-samples-")
        path = os.path.dirname(self.binary) + ":" + os.environ["PATH"]
        self.env = {"PATH": path, "HOME": self.folder, "LANG": "C.UTF-8", "TERM": "dumb"}
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def compiled(self, source):
        with open(os.path.join(self.folder, "sample.c"), "w") as f:
            f.write(source)
        return run(["cc", *C_FLAGS, "sample.c"], self.folder)

    def c(self, block):
        if block.words:
            write_file(self.folder, block.words, block.body)
            with open(os.path.join(self.folder, block.words.split()[0])) as f:
                code, said = self.compiled(f.read())
            return "" if code == 0 or "ringhold_actor" in said else said  # which another file of its page has
        body = re.sub(r"…,? ?", "", block.body)
        head = GIVEN + block.given
        code, said = self.compiled(f'{head}#line 1 "sample"\n{body}')
        if code != 0 and "ringhold_actor = " not in body:
            code, inside = self.compiled(f'{head}void sample(void);\nvoid sample(void) {{\n#line 1 "sample"\n{body}}}\n')
            said = min(said, inside, key=lambda s: s.count("error:"))
        return said if code else ""

    def lua(self, text):
        with open(os.path.join(self.folder, "sample.lua"), "w") as f:
            f.write(text)
        code, said = run([self.binary, "node", "--lua-check", "sample.lua"], self.folder)
        return said if code else ""

    def by(self, words, block, end):
        if not shutil.which(words[0]):
            print(f"# {block}: not read, {words[0]} is not here")
            return ""
        with open(os.path.join(self.folder, "sample" + end), "w") as f:
            f.write(block.body)
        code, said = run([*words, "sample" + end], self.folder)
        return said if code else ""

    def of_command(self, words):
        """The command that these words call, and how many of them are its name."""
        for count in (2, 1):
            name = " ".join(words[:count])
            if name in self.every:
                return name, count
        return None, 0

    def options_of(self, command):
        if command not in self.options:
            self.options[command] = set(re.findall(r"^  --([a-z0-9-]+)", run([self.binary, *command.split(), "--help"], None)[1], re.M))
        return self.options[command]

    def ringhold(self, words):
        """What the program says of this command line: it takes words in their order, up to one that it doesn't know."""
        words = [w for i, w in enumerate(words) if w not in ("...", "…") or words[i - 1].startswith("--")]
        words = [re.sub("^[A-Z]$", "1", w) for w in words]  # a number of the reader's
        words = words[2:] if words[:1] == ["--context"] else words  # whose file is looked for first
        flags = [i for i, w in enumerate(words) if w.startswith("-")]
        if words[:1] in (["version"], ["--version"], ["--help"], ["help"]) or "--help" in words:
            return ""
        first = next((i for i, w in enumerate(words) if not w.startswith("-") and (i == 0 or i - 1 not in flags)), 0)
        command, _ = self.of_command(words[first:])
        if command is None:
            return "there is no such command"
        code, said = run([self.binary, *words, "--no-such-flag", "--nor-this"], self.folder, env=self.env)
        if code == 1 and "--no-such-flag: unknown flag" in said:
            return ""
        return "its last flag needs a value" if "--nor-this: unknown flag" in said else said.strip()

    def line(self, line):
        """What is wrong with one line of shell."""
        inner = re.findall(r"\$\(([^()]*)\)", line)
        lexer = shlex.shlex(re.sub(r"\$\([^()]*\)", "it", line), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            tokens = list(lexer)
        except ValueError as e:
            return str(e)
        found, command = [], None
        for token in [*tokens, ";"]:
            if token in STARTS or set(token) <= set(";&|()"):
                found += [command] if command else []
                command = []
            elif command is None:
                command = [token]
            else:
                command.append(token)
        return "; ".join(filter(None, [*map(self.line, inner), *map(self.command, found)]))

    def command(self, words):
        kept = []
        while words:
            word, *words = words
            if re.fullmatch(r"[<>]+&?", word):
                if kept and kept[-1] in ("1", "2"):
                    kept.pop()
                words = words[1:]
            elif kept or not re.match(r"\w+=", word):
                kept.append(word)
        if not kept:
            return ""
        name = kept[0]
        if name == "ringhold":
            wrong = self.ringhold(kept[1:])
            return wrong and f"{shlex.join(kept)}: {wrong}"
        if name in ELSEWHERE or name.startswith("./") or name.startswith("$"):
            return ""
        if name not in self.known:
            self.known[name] = subprocess.run(["bash", "-c", 'type -- "$1"', "bash", name], capture_output=True).returncode == 0
        return "" if self.known[name] else f"{name}: there is no such program"

    def shell(self, block):
        body = block.body
        if block.language == "console":
            body = "".join(re.findall(r"^\$ (.*\n)", body, re.M))
        done = subprocess.run(["bash", "-n"], input=body, capture_output=True, text=True)
        wrong = filter(None, map(self.line, body.replace("\\\n", " ").splitlines()))
        # A page may show what a mistake looks like.
        return done.stderr or "\n".join(w for w in wrong if w.partition(": ")[2] not in block.body)

    def data(self, block):
        try:
            if block.language == "json":
                json.loads(block.body)
            elif block.language == "ini":
                configparser.ConfigParser(interpolation=None, strict=False).read_string(block.body)
            else:
                import yaml  # of all machines, only what makes packages has it

                list(yaml.safe_load_all(block.body))
        except Exception as e:  # whatever such a reader says
            return f"{type(e).__name__}: {e}"
        return ""

    def wrong(self, block):
        """What is wrong with this block, or nothing."""
        if block.fragment or block.language in NO_SAMPLES or block.language == "lua":
            return ""
        if block.language == "c":
            return self.c(block)
        if block.language in ("sh", "bash", "console"):
            return self.shell(block)
        if block.language in ("json", "yaml", "ini"):
            return self.data(block)
        if block.language == "python":
            return self.by([sys.executable, "-m", "py_compile"], block, ".py")
        if block.language in ("js", "javascript"):
            return self.by(["node", "--check"], block, ".mjs")
        if block.language == "go":
            return self.by(["gofmt", "-e", "-l"], block, ".go")
        return f"a fence of '{block.language}': which sample it is, or text, is told in CONTRIBUTING.md"

    def page(self, page, text):
        """All that is wrong with a page's samples."""
        found = [(str(b), self.wrong(b)) for b in blocks(page, text)]
        scripts = [b for b in blocks(page, text) if b.language == "lua" and not b.fragment]
        if scripts:
            found.append((str(scripts[0]), self.lua("".join(b.body for b in scripts))))
        for number, line in indented(text):
            typed = re.match(r"(?:\$ )?(ringhold [a-z-].*)", line)
            if typed and not re.match(r"ringhold \w+:|.*\S {4,}[^#\s]", typed[1]):  # what it printed; a table
                found.append((f"{page}:{number}", self.line(typed[1])))
        for name in set(re.findall(r"`ringhold ([a-z][^`\n]*)`", text)):
            words = name.split()
            command, count = self.of_command(words)
            group = any(c.startswith(words[0] + " ") for c in self.every)
            second = len(words) > 1 and count < 2 and re.fullmatch("[a-z]+", words[1])
            if (command is None and not group and words[0] != "version") or (group and second):
                found.append((page, f"`ringhold {name}`: there is no such command"))
            flags = set(re.findall(r"(?<!\S)--([a-z0-9-]+)", name)) - {"help", "version"}
            if command and flags - self.options_of(command):
                found.append((page, f"`ringhold {name}`: it has no {flags - self.options_of(command)}"))
        return ["\n".join(f"{where}: {what.strip()}".splitlines()[:5]) for where, what in found if what]


def each_sample_is_right(binary):
    with Bench(binary) as bench:
        wrong = [w for page in PAGES for w in bench.page(page, read(page))]
    assert not wrong, "\n" + "\n".join(wrong)


MISTAKES = {
    "```c\nint f(void) { return rh_no_such(); }\n```\n": "rh_no_such",
    "```c\nint f(void) { return g; }\n```\n": "g",
    "```lua\nlocal room = ringhold.kind(\n```\n": "sample.lua",
    "```sh\nringhold status --nmae x\n```\n": "nmae: unknown flag",
    "```sh\nringhold node wait n1 && ringhold stats\n```\n": "no such command",
    "```sh\nringhold events --limit\n```\n": "limit",
    "```sh\nringhold events --limit many   # a few\n```\n": "limit",
    "```sh\nls | rignhold status\n```\n": "no such program",
    "```sh\nif ringhold status; then\n```\n": "syntax error",
    "```console\n$ ringhold ring --dif add n3\nFROM  TO\n```\n": "dif: unknown flag",
    "so:\n\n    ringhold node drain n1 --wiat 3\n": "wiat: unknown flag",
    "Ask `ringhold node drian n1`.\n": "no such command",
    "Ask `ringhold node drain --wiat`.\n": "wiat",
    "```json\n{\"a\": 1,}\n```\n": "JSONDecodeError",
    "```yaml\na: [1\n```\n": "ParserError",
    "```ini\nname n1\n```\n": "MissingSectionHeader",
    "```python\ndef f(:\n```\n": "SyntaxError",
    "```\nanything\n```\n": "CONTRIBUTING.md",
}
RIGHT = (
    "<!-- fragment: a part of a file -->\n```c\n} else {\n```\n"
    "<!-- given: struct player { int gold; }; -->\n```c\nstruct player p = {…};\nprintf(\"%d\", p.gold);\n```\n"
    "```text\nringhold what it printed --here\n```\n"
)  # fmt: skip


def mistakes_are_found(binary):
    with Bench(binary) as bench:
        for text, want in MISTAKES.items():
            found = bench.page("page.md", text)
            assert len(found) == 1 and want in found[0], (text, found)
        assert not bench.page("page.md", RIGHT), bench.page("page.md", RIGHT)


def without_notice(text):
    """The shell tells that a job was killed when it likes: behind that command, or behind the next one."""
    return re.sub(r"^bash: line \d+: +\d+ Killed .*\n?", "", text, flags=re.M)


def typed(shell, block):
    """A block that is run: commands one after the other."""
    if block.language == "sh":
        for line in block.body.replace("\\\n", " ").splitlines():
            want = re.search(r'# "(.*?)"', line)
            if not line.startswith("make"):  # which the reader does before there is anything to type
                said, code = shell.ask(line)
                assert code == 0 and (not want or want[1] in said.splitlines()), f"{block}: {line}\nended with {code}: {said}"
        return
    for command, told in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.body, re.M):
        told, said = without_notice(told), without_notice(shell.type(command)[0])
        one_word = command.startswith("redis-cli") and re.fullmatch(r"\S+\n", told)
        ended = set(re.findall(r"^exit code .*", told, re.M))
        assert bool(told.strip()) == bool(said), f"{block}: {command}\nsays {said!r}, and not {told!r}"
        assert not one_word or said.strip() == told.strip(), f"{block}: {command}\nsays {said!r}, and not {told!r}"
        assert ended <= set(said.splitlines()), f"{block}: {command}\nsays {said!r}, and not {told!r}"


def is_run(block):
    return not block.fragment and (block.language == "console" or block.words == "run")


def do(binary, parts):
    """What a reader does with the blocks of a page, in an empty folder with the tree's examples and build."""
    with Bench(binary) as bench:
        os.symlink(os.path.join(ROOT, "examples"), os.path.join(bench.folder, "examples"))
        os.makedirs(os.path.join(bench.folder, "build"))
        os.symlink(os.path.dirname(bench.binary), os.path.join(bench.folder, "build", "gcc"))
        shell = Shell(bench.folder, bench.env)
        try:
            shell.type("shopt -s expand_aliases")
            for block in parts:
                if is_run(block):
                    typed(shell, block)
                elif block.words and not block.fragment:
                    write_file(bench.folder, block.words, block.body)
        finally:
            shell.end()


UNTRUE = (
    "```sh run\nfalse\n```\n",
    '```sh run\necho 37   # "36"\n```\n',
    "```console\n$ true\nwhat it does not say\n```\n",
    "```console\n$ echo what is not told\n```\n",
    '```console\n$ (exit 3); echo "exit code $?"\nexit code 0\n```\n',
)


def pages_that_are_run_do_what_they_say(binary):
    if not has_networks():
        print("# skipped: no network namespace to be had")
        return
    for text in UNTRUE:
        try:
            do(binary, blocks("page.md", text))
        except AssertionError:
            continue
        raise AssertionError(f"this was not found: {text}")
    pages = [parts for parts in (blocks(p, read(p)) for p in PAGES) if any(map(is_run, parts))]
    with concurrent.futures.ThreadPoolExecutor() as pool:  # each has a network of its own
        list(pool.map(lambda parts: do(binary, parts), pages))


main([each_sample_is_right, mistakes_are_found, pages_that_are_run_do_what_they_say])
