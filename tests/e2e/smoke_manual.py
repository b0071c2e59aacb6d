#!/usr/bin/env python3
"""The manual pages keep up: every public function, and every command, is in one."""
import json
import os
import re
import subprocess

from fleet import main

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def text_of(*words):
    with open(os.path.join(ROOT, *words)) as f:
        return f.read()


def every_public_function_is_in_the_manual(_binary):
    names = re.findall(r"\bRH_API\b[^;(]*?\b(rh_\w+)\(", text_of("include", "ringhold.h"))
    page = text_of("docs", "libringhold.3")
    assert len(names) > 20, names
    values = {"rh_text", "rh_error"}  # how a value is made: with the header
    missing = [n for n in names if n not in page and n not in values]
    assert not missing, f"docs/libringhold.3 lacks {missing}"


def every_function_of_the_client_is_on_its_page(_binary):
    names = re.findall(r"\bRHC_API\b[^;(]*?\b(rhc_\w+)\(", text_of("include", "ringhold_client.h"))
    page = text_of("docs", "clients.md")
    assert len(names) > 20, names
    missing = [n for n in names if n not in page]
    assert not missing, f"docs/clients.md lacks {missing}"


def every_command_is_in_the_manual(binary):
    out = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
    page = text_of("docs", "ringhold.1").replace("\\-", "-")
    commands = re.findall(r"^  ([a-z]+) ", out, re.M)
    missing = [c for c in commands if not re.search(rf"\b{c}\b", page) and c != "version"]
    assert commands and not missing, f"docs/ringhold.1 lacks {missing}"


def what_watches_names_figures_that_there_are(_binary):
    named = set(re.findall(r"[a-z_]+", text_of("docs", "metrics.md")))
    dashboard = json.loads(text_of("packaging", "grafana", "ringhold.json"))
    used = " ".join(t["expr"] for p in dashboard["panels"] for t in p.get("targets", []))
    used += text_of("packaging", "prometheus", "ringhold.rules.yml")
    figures = set(re.findall(r"\b(?:ringhold|process)_[a-z_]+", used))
    assert len(figures) > 25, figures
    bare = {re.sub(r"^ringhold_(gateway|node|coordinator)_|_bucket$", "", f) for f in figures}
    missing = [f for f in bare if f not in named]
    assert not missing, f"docs/metrics.md lacks {missing}"


main(
    [
        every_public_function_is_in_the_manual,
        every_function_of_the_client_is_on_its_page,
        every_command_is_in_the_manual,
        what_watches_names_figures_that_there_are,
    ]
)
