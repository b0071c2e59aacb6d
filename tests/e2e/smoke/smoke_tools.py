#!/usr/bin/env python3
"""What `make lint` and `make site` look for in texts is found when it is planted: unknown words, links that lead nowhere."""
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import main
from pages import ROOT


def tool(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(ROOT, "tools", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


GLOSSARY = "- **Fence**: a number.\n- **Vnode**: cells.\n\n| word | not |\n|---|---|\n| take-over | takeover |\n"
TABLE = 'static const char *const columns[] = {"VNODE", "+FENCE", "SIZE=bytes", NULL};\n'
WORDS = {
    "docs/NAME.md": [
        ("The *fence* grows.", None),
        ("It is *not* so, as `takeover` and [this](takeover.md) say.\n\n    takeover\n", None),
        ("A *wharf* is near.", "'wharf' is introduced as a term"),
        ("A takeover follows.", "'takeover' is written 'take-over'"),
    ],
    "docs/man/x.1.scd": [("After the takeover", "'takeover' is written 'take-over'")],
    "cli/cmd_NAME.c": [
        (TABLE, None),
        ('puts("takeover"); // takeover\n', None),
        ('puts("a takeover began");', "'takeover' is written 'take-over'"),
        (TABLE.replace("FENCE", "WHARF"), "'WHARF' is in no glossary"),
    ],
    "cli/main.c": [('    {"vnode",\n', None), ('    {"wharf",\n', "'wharf' is in no glossary")],
}


def words_that_nobody_can_look_up_are_found(_binary):
    words = tool("words")
    for path, texts in WORDS.items():
        for text, want in texts:
            with tempfile.TemporaryDirectory() as folder:
                for name, content in ((words.GLOSSARY, GLOSSARY), (path, text)):
                    file = pathlib.Path(folder, name)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(content)
                found = list(words.complaints(pathlib.Path(folder)))
                assert len(found) == (want is not None) and all(want in f for f in found), (path, text, found)


LINKS = {
    "[x](docs/tour.md) and [y](docs/tour.md#the-end)": None,
    "[x](docs/NAME.md)": "no such page",
    "[x](docs/tour.md#the-beginning)": "no such heading",
    "[x](https://valkey.io/topics/)": None,
    "[x](http://valkey.io)": "no address",
    "[x](https://valkey)": "no address",
    "[x](https://valkey.io/topics.)": "no address",
}


def links_that_lead_nowhere_are_found(_binary):
    citations = tool("citations")
    names = citations.Names(["README.md", "docs/tour.md", "docs/man/ringhold.1.scd", "web/fleet.css"])
    found = [(line, list(citations.in_page(names, "README.md", line)), want) for line, want in LINKS.items()]
    for line, want in (("*ringhold*(1)", None), ("*ringhold-ring*(1)", "no such page")):
        found.append((line, list(citations.in_manual(names, line)), want))
    for line, want in (('href="/fleet.css"', None), ('src="fleet.js"', "no such file"), ('href="#a"', None), ('href="#b"', "no such id")):
        found.append((line, list(citations.in_html(names, "web/index.html", '<p id="a">', line)), want))
    for line, said, want in found:
        assert len(said) == (want is not None) and all(want in s for s in said), (line, said, want)


def links_of_the_site_that_lead_nowhere_are_found(_binary):
    site = tool("site")
    with tempfile.TemporaryDirectory() as folder:
        one, other = pathlib.Path(folder, "a.html"), pathlib.Path(folder, "b/c.html")
        other.parent.mkdir()
        one.write_text('<h1 id="top">')
        other.write_text('<a href="../a.html#top"><a href="#here"><p id="here"><img src="https://x.org/y">')
        assert not list(site.broken(pathlib.Path(folder)))
        for link in ("d.html", "../a.css", "../a.html#bottom", "#bottom"):
            other.write_text(f'<link href="{link}">')
            found = list(site.broken(pathlib.Path(folder)))
            assert len(found) == 1 and ("no such heading" if "#" in link else "no such file") in found[0], (link, found)


main([words_that_nobody_can_look_up_are_found, links_that_lead_nowhere_are_found, links_of_the_site_that_lead_nowhere_are_found])
