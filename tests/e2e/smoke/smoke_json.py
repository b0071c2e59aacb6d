#!/usr/bin/env python3
"""What `-o json` prints has the shape that docs/json.md tells: each key, each type, nothing more."""
import json
import os
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, commands, main, until

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.normpath(os.path.join(HERE, "..", "..", "docs", "json.md"))


def shape(value):
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return {str: "text", bool: "yes or no", int: "number", float: "number", type(None): "null"}[type(value)]


def fits(told, seen):
    """The same; a list that is empty here may have anything, and what may be nothing may be. A key in capitals stands
    for any number of keys."""
    if isinstance(told, dict) and isinstance(seen, dict) and len(told) == 1 and (key := next(iter(told))).isupper():
        return all(fits(told[key], value) for value in seen.values())
    if isinstance(told, dict) and isinstance(seen, dict):
        return list(told) == list(seen) and all(fits(told[k], seen[k]) for k in told)
    if isinstance(told, list) and isinstance(seen, list):
        return not seen or (bool(told) and fits(told[0], seen[0]))
    return told == seen or (isinstance(told, str) and seen in told.split(" or "))


def documented():
    """{"node list": its shape}, as the page has them."""
    with open(PAGE) as f:
        text = f.read()
    blocks = re.findall(r"^### `ringhold (.*)`\n\n((?:    .*\n)+)", text, re.M)
    return {command: json.loads(" ".join(block.split())) for command, block in blocks}


def seen_in(fleet):
    """Each command's answer, in a fleet that has something of everything to tell."""
    txn = fleet.ask("txn", "list")[0]["txn"]
    at = ("--coordinators", fleet.addresses)

    def once(*words):
        code, out, err = fleet.run(*words, "-o", "json")
        assert out, (words, code, err)
        return json.loads(out.splitlines()[0])

    def plays(command, *words):
        code, out, err = fleet.run(command, fleet.process("g1").fields["frames"], "--json", *words)
        assert code == 0, (command, code, out, err)
        return json.loads(out)

    return {
        "status": fleet.ask("status"),
        "node list": fleet.ask("node", "list"),
        "node drain n1 cancel": once("node", "drain", "n1", "cancel", *at),
        "pin list": fleet.ask("pin", "list"),
        "ring": fleet.ask("ring"),
        "ring --diff drain n1": fleet.ask("ring", "--diff", "drain", "n1"),
        "where 0/k1": fleet.ask("where", "0/k1"),
        "actors": fleet.ask("actors"),
        "trace 0/k1": fleet.ask("trace", "0/k1"),
        "kick 0/nobody": once("kick", "0/nobody", *at),
        "coordinators list": fleet.ask("coordinators", "list"),
        "coordinators maintenance": fleet.ask("coordinators", "maintenance", "--for", "5s"),
        "top": fleet.ask("top"),
        "top --nodes": fleet.ask("top", "--nodes"),
        "top --kinds": fleet.ask("top", "--kinds", "--for", "100ms"),
        "top --calls": fleet.ask("top", "--calls"),
        "txn list": fleet.ask("txn", "list"),
        f"txn show {txn}": fleet.ask("txn", "show", str(txn)),
        "events": fleet.ask("events"),
        "upgrade": fleet.ask("upgrade"),
        "quarantine list": fleet.ask("quarantine", "list"),
        "remembered list": fleet.ask("remembered", "list"),
        "actor get KIND/ID": fleet.ask("actor", "get", "4/ann"),
        "actor get KIND/ID KEY": fleet.ask("actor", "get", "4/ann", "gold"),
        "actor export KIND/ID": fleet.ask("actor", "export", "4/ann"),
        "check": once("check", *at),
        "fix": once("fix", *at),
        "bench --json HOST:PORT": plays("bench", "--seconds", "1", "--warm-up", "100ms", "--ids", "10", "--kind", "1"),
        "bot --json HOST:PORT": plays("bot", "--n", "2", "--stay", "200ms", "--ask", "50ms", "--quiet", "--no-bind", "--kind", "1"),
        "rolling-restart --dry-run --systemd": fleet.ask("rolling-restart", "--dry-run", "--systemd"),
        "recover inspect DIR": once("recover", "inspect", fleet.data("c1")),
        "txn resolve N": once("txn", "resolve", str(stuck(fleet)), *at),
    }


def stuck(fleet):
    """A transaction that waits for an actor that runs for ever, or for one behind it: ids lie by chance, and only a few
    transactions pend at a time."""
    owner = fleet.ask("where", "2/busy")["node"]
    Resp(fleet.process("g1").resp).send(("CALL", "@2/busy", "hang"))
    until("it hangs", lambda: any(r["id"] == "busy" for r in fleet.ask("top", "--hot")))
    fleet.tell("node", "drain", owner)

    def waits():
        rows = fleet.ask("txn", "list")
        return next((t["txn"] for t in rows if t["state"] == "pending" and " has run for " in t["waiting_for"]), None)

    return until("a move waits", waits)


def each_command_says_what_is_documented(binary):
    built = os.path.dirname(os.path.abspath(binary))
    unruly, inventory = os.path.join(built, "tests", "plugins", "unruly.so"), os.path.join(built, "examples", "inventory.so")
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--prepare-ms", "60000"])
        for name in ("n1", "n2"):
            fleet.node(name, ["--threads", "2", "--zone", "a", "--kind", "0:kv", "--kind", "1:echo", "--kind", f"2:{unruly}",
                              "--kind", "3@remember:kv", "--kind", f"4:{inventory}",
                              "--store", f"sqlite:{fleet.folder}/actors.db"])
        fleet.gateway("g1", ["--frames", "127.0.0.1:0"])
        fleet.settled(["n1", "n2"])
        Resp(fleet.process("g1").resp)("SET", "k1", "x")
        Resp(fleet.process("g1").resp)("SET", "@3/k1", "x")
        fleet.tell("actor", "set", "4/ann", "gold", "7")
        fleet.tell("quarantine", "add", "0/bad")
        fleet.tell("pin", "0/boss-7", "n1")
        told, failed = documented(), []
        for command, value in seen_in(fleet).items():
            name = re.sub(r"^txn show [0-9.]+$", "txn show N", command)
            if not fits(told.pop(name, None), shape(value)):
                failed.append(f"### `ringhold {name}`\n\n    {json.dumps(shape(value))}\n")
        assert not failed, "docs/json.md does not say so:\n" + "\n".join(failed)
        assert not told, f"documented, and not looked at here: {list(told)}"


def every_command_that_prints_json_is_documented(binary):
    """But those that print `done`, and those that print what a sibling does."""
    done = {"node wait", "node add", "node remove", "node replace", "node weight", "daemons", "quarantine clear", "quarantine add", "remembered forget", "move", "unpin",
            "actor set", "actor delete", "actor import"}
    asking = {"call", "cli"}  # what an actor says is bytes; they refuse it
    alike = asking | {"recover verify"} | {f"coordinators {verb}" for verb in ("set", "add", "replace", "remove")}
    silent = []
    for command in commands(binary):
        asked = subprocess.run([binary, *command.split(), "--help"], capture_output=True, text=True, timeout=20).stdout
        told = any(name == command or name.startswith(command + " ") for name in documented())
        if re.search(r"^  --output ", asked, re.M) and not told and command not in done | alike:
            silent.append(command)
    assert not silent, f"docs/json.md tells nothing of {silent}"


def what_is_wrong_is_no_json(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        code, out, err = fleet.run("where", "0/k1", "-o", "json", "--coordinators", fleet.addresses)
        assert code == 1 and out == "" and err.startswith("ringhold"), (code, out, err)
        code, out, err = fleet.run("status", "-o", "yaml")
        assert code == 1 and out == "" and "table, wide, tsv or json" in err, (code, out, err)


main([
    each_command_says_what_is_documented,
    every_command_that_prints_json_is_documented,
    what_is_wrong_is_no_json,
])  # fmt: skip
