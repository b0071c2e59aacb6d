#!/usr/bin/env python3
"""The manual pages keep up: each command, option and public function is on one, as the program says it,
and each page renders without a warning."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import commands, main
from pages import FENCE, TRANSLATED, lags

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
HELP_OF_ALL = {"config", "help"}


def text_of(*words):
    with open(os.path.join(ROOT, *words)) as f:
        return f.read()


def output(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def options(binary, command):
    return set(re.findall(r"^  --([a-z0-9-]+)", output(binary, *command.split(), "--help"), re.M))


def pages(binary):
    """{"ringhold-node.1": its text as a reader sees it}, of the pages that make has built beside the
    binary: a word that scdoc does not take ends make. A warning of groff is a failure."""
    texts = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "man", "*.scd"))):
        name = os.path.basename(path)[: -len(".scd")]
        built = os.path.join(os.path.dirname(os.path.abspath(binary)), "man", name)
        groff = ["groff", "-Kutf8", "-man", "-Tutf8", "-P-cbou", "-ww", "-rLL=1000n", "-rHY=0", built]
        shown = subprocess.run(groff, capture_output=True, text=True, timeout=60)
        assert shown.returncode == 0 and not shown.stderr, (built, shown.stderr)
        texts[name] = shown.stdout
    return texts


def the_pages_say_what_the_program_says(binary):
    if not shutil.which("scdoc") or not shutil.which("groff"):
        print("# no scdoc or no groff here: no page was looked at")
        return
    shown = pages(binary)
    every = {"stall", "unfinished", "quiet", "version"} | HELP_OF_ALL  # of ringhold-history, of ringhold
    for command in commands(binary):
        name = f"ringhold-{command.split()[0]}.1"
        assert name in shown, f"docs/man lacks {name}.scd"
        call = re.match(r"usage: (ringhold .* \[options\])", output(binary, *command.split(), "--help")).group(1)
        assert call in shown[name], f"{name} does not say how {command} is called"
        said = options(binary, command)
        every |= said
        section = shown[name].split("\nOPTIONS\n")[1].split("\nEXIT STATUS\n")[0]
        parts = re.split(r"^ {3}(\S.*)\n", section, flags=re.M)  # a heading, its text, the next one
        section = dict(zip(parts[1::2], parts[2::2])).get(command, parts[0])
        on_page = set(re.findall(r"^ +--([a-z0-9-]+)", section, re.M))
        assert on_page == said, (name, command, on_page ^ said)
    for name, text in shown.items():
        stale = set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", text)) - every - {"cflags", "libs"}
        assert not stale, f"{name} names options that there are not: {stale}"
        for page, section in re.findall(r"\b((?:lib)?ringhold[a-z_.-]*)\(([135])\)", text):
            assert f"{page}.{section}" in shown, f"{name} refers to {page}({section})"
    for role in ("coordinator", "node", "gateway"):
        keys = shown["ringhold.ini.5"].split(f"KEYS OF [{role}]")[1].split("\nKEYS OF")[0].split("\nEXAMPLES")[0]
        on_page = set(re.findall(r"^ {7}([a-z0-9-]+)(?: \S+)?$", keys, re.M))
        said = options(binary, role) - HELP_OF_ALL - {"check-config", "print-config"}
        assert on_page == said, (role, on_page ^ said)


def completed(binary, *words):
    """What bash offers for the last of these words."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ringhold; '
              'printf "%s\\n" "${COMPREPLY[@]}"')  # fmt: skip
    completion = os.path.join(ROOT, "packaging", "completion", "ringhold.bash")
    shown = subprocess.run(["bash", "-c", script, "bash", completion, binary, *words], cwd=ROOT,
                           capture_output=True, text=True, timeout=60)  # fmt: skip
    assert shown.returncode == 0 and not shown.stderr, (words, shown.stderr)
    return set(shown.stdout.split())


def every_command_is_told_and_completed(binary):
    """ringhold(1) lists it, and bash knows its second words, options, and their values."""
    page = output(os.path.join(ROOT, "tools", "manual"), binary, os.path.join(ROOT, "docs", "man", "ringhold.1.scd"))
    listed = re.findall(r"^\*ringhold ([a-z-]+)\*$", page, re.M)
    assert sorted(listed) == sorted({c.split()[0] for c in commands(binary)} | {"version"}), listed
    for name in sorted({c.split()[0] for c in commands(binary) if " " in c}):
        wanted = {c.split()[1] for c in commands(binary) if c.startswith(name + " ")}
        offered = completed(binary, name, "")
        assert offered == wanted, (name, offered)
    for command in commands(binary):
        offered = completed(binary, *command.split(), "--")
        assert offered == {f"--{o}" for o in options(binary, command)}, (command, offered)
    assert completed(binary, "status", "-o", "") == {"table", "wide", "tsv", "json"}
    assert completed(binary, "ring", "--diff", "d") == {"drain"}
    assert completed(binary, "gateway", "--log-level", "w") == {"warn"}
    assert completed(binary, "node", "--lua", "README") == {"README.md", "README.zh.md"}
    assert completed(binary, "node", "--name", "") == set()


def translations_keep_up(_binary):
    """A page in Chinese has the parts, the code, the figures and the links of the page in English. With REWRITE=1 it gets the code."""
    for page, chinese in TRANSLATED.items():
        if not os.path.exists(os.path.join(ROOT, page)):
            continue
        if os.environ.get("REWRITE"):
            fences = iter([m[0] for m in FENCE.finditer(text_of(page))])
            text = FENCE.sub(lambda m, fences=fences: next(fences, m[0]), text_of(chinese))
            with open(os.path.join(ROOT, chinese), "w") as f:
                f.write(text)
        lag = lags(page, text_of(page), chinese, text_of(chinese))
        assert not lag, lag
    english = "# A\n\nIt takes 3 s.\n\n- [b](b.md)\n\n```sh\nls\n```\n"
    assert not lags("docs/NAME.md", english, "docs/zh/NAME.md", "# 甲\n\n3 秒。\n\n- [乙](../b.md)\n\n```sh\nls\n```\n")
    for ours, theirs in (("3 s", "4 s"), ("b.md)", "c.md)"), ("- [", "["), ("ls", "rm"), ("# A\n", "## A\n"), ("```\n", "```\n\nMore.\n")):
        assert lags("docs/NAME.md", english, "docs/NAME.md", theirs.join(english.rsplit(ours, 1))), (ours, theirs)


def every_public_function_is_in_the_manual(_binary):
    """Of the library, by its header; of the client also in the text that shows how to use it."""
    for header, page, macro in (("ringhold.h", "libringhold", "RH_API"), ("ringhold_client.h", "ringhold_client", "RHC_API")):
        assert f"@functions ../../include/{header}" in text_of("docs", "man", f"{page}.3.scd")
        names = re.findall(rf"\b{macro}\b[^;(]*?\b(rhc?_\w+)\(", text_of("include", header))
        assert len(names) > 20, names
        if not shutil.which("scdoc"):
            continue
        source = output(os.path.join(ROOT, "tools", "manual"), "true", os.path.join(ROOT, "docs", "man", f"{page}.3.scd"))
        told = source.split("# FUNCTIONS")[1].split("# RETURN VALUE")[0].replace("\\", "")
        missing = [n for n in names if not re.search(rf"^\*[^\n]*\b{n}\([^\n]*;\*\n\t", told, re.M)]
        assert not missing, f"{page}.3 lacks {missing}"


def every_function_of_the_client_is_on_its_page(_binary):
    names = re.findall(r"\bRHC_API\b[^;(]*?\b(rhc_\w+)\(", text_of("include", "ringhold_client.h"))
    page = text_of("docs", "clients.md")
    missing = [n for n in names if n not in page]
    assert len(names) > 20 and not missing, f"docs/clients.md lacks {missing}"


def what_watches_names_figures_that_there_are(_binary):
    named = set(re.findall(r"[a-z_]+", text_of("docs", "metrics.md")))
    dashboard = json.loads(text_of("packaging", "grafana", "ringhold.json"))
    used = " ".join(t["expr"] for p in dashboard["panels"] for t in p.get("targets", []))
    used += text_of("packaging", "prometheus", "ringhold.rules.yml")
    figures = set(re.findall(r"\b(?:ringhold|process)_[a-z_]+", used))
    assert len(figures) > 25, figures
    bare = {re.sub(r"^ringhold_(gateway|node|coordinator)_|_(bucket|count)$", "", f) for f in figures}
    missing = [f for f in bare if f not in named]
    assert not missing, f"docs/metrics.md lacks {missing}"


main([
    the_pages_say_what_the_program_says,
    every_command_is_told_and_completed,
    translations_keep_up,
    every_public_function_is_in_the_manual,
    every_function_of_the_client_is_on_its_page,
    what_watches_names_figures_that_there_are,
])  # fmt: skip
