#!/usr/bin/env python3
"""`ringhold bot`: players that storm in, drop the line and come back; their ledger is clean through a drain and
the death of a gateway, and it agrees with what the gateway has counted."""
import json
import os
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until


def bots_kind(fleet):
    return ["--actor", os.path.join(os.path.dirname(fleet.binary), "examples", "bots.so")]


def gateway(fleet, name, *more):
    g = fleet.gateway(name, ["--frames", "127.0.0.1:0", *more])
    return g, g.fields["frames"]


def figures(g):
    text = Resp(g.resp)("INFO")
    return {k: int(v) for k, v in (w.split(":") for w in text.split("\r\n") if ":" in w) if v.isdigit()}


def played(fleet, addresses, *words):
    """The run under way; judged() is its end."""
    command = [fleet.binary, "bot", addresses, "--json", "--quiet", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def script(fleet):
    path = fleet.data("script")
    with open(path, "w") as f:
        f.write("login\nrequest hit-{n} every 100ms\nnotify here every 500ms # counted too\ndrop 600%/min resume within 500ms\n")
    return path


def judged(run):
    out, err = run.communicate(timeout=120)
    assert run.returncode == 0, (run.returncode, out, err)
    told = json.loads(out)
    assert told["clean"] and told["unanswered"] == 0, told
    return told


def a_storm_of_2000_comes_in_by_appointment(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ("--kind", "0:echo"))
        g, address = gateway(fleet, "g1", "--accept-rate", "2000")
        before = g.rss()
        told = judged(played(fleet, address, "--n", "2000", "--stay", "200ms", "--ask", "100ms", "--check", "echo"))
        assert told["logins"] == told["over"] == 2000, told
        assert told["attempts"] == 2000 + told["turned_away"] and told["cut"] == told["kicked"] == 0, told
        # Everybody who was turned away has heard so.
        counted = figures(g)
        assert counted["refused_accept_rate"] == told["turned_away"] == counted["rejected_connections"], counted
        print(f"# turned away {told['turned_away']}, in after {told['in_seconds']:.1f} s, {g.rss() - before} bytes more")


def the_ledger_is_clean_through_a_drain_and_a_killed_gateway(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            fleet.node(name, bots_kind(fleet))
        g1, first = gateway(fleet, "g1")
        g2, second = gateway(fleet, "g2")
        words = ("--n", "200", "--time", "15s", "--check", "count", "--script", script(fleet))
        run = played(fleet, f"{first},{second}", *words)
        until("they are in", lambda: figures(g1)["bound_clients"] + figures(g2)["bound_clients"] >= 150)
        fleet.tell("node", "drain", "n1")
        g1.kill()
        told = judged(run)
        assert told["logins"] > 200 and told["ok"] > 0 and told["pushes"] > 0, told
        # No session was lost, and nothing that was asked is in doubt.
        assert told["resumed"] > 0 and told["gone"] == told["begun_afresh"] == told["unknown"] == 0, told


def bots_show_tokens(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ("--kind", "0:echo", "--kind", "7:echo"))
        keys = fleet.data("keys")
        with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(f"k hex:{os.urandom(32).hex()}\n")
        g, address = gateway(fleet, "g1", "--auth-keys", keys)
        words = ("--n", "50", "--stay", "50ms", "--ask", "20ms", "--check", "echo")
        told = judged(played(fleet, address, "--keys", keys, "--kind", "7", *words))
        assert told["logins"] == 50 and figures(g)["authenticated"] == 50, told
        # Without one they are kicked, and nobody gets in.

        def kicked():
            run = played(fleet, address, "--n", "1", "--time", "500ms")
            out, _ = run.communicate(timeout=60)
            told = json.loads(out)
            assert run.returncode == 2 and told["logins"] == 0, told
            return told["kick_code"]

        assert until("its time was enough to be kicked", kicked) == 106


def what_makes_no_sense_is_said(binary):
    with Fleet(binary) as fleet:
        for words, text in (
            (["nowhere"], "is not HOST:PORT"),
            (["127.0.0.1:1", "--check", "all"], "is not one of none, echo, count"),
            (["127.0.0.1:1", "--keys", "/no/such/file"], "/no/such/file"),
            (["127.0.0.1:1", "--script", "/no/such/file"], "/no/such/file: can't be read"),
            (["127.0.0.1:1", "--play", "login; dance"], "--play:1: unknown action: 'dance'"),
        ):
            code, _, err = fleet.run("bot", *words)
            assert code == 1 and text in err, (words, code, err)
        code, out, _ = fleet.run("bot", "127.0.0.1:1", "--n", "3", "--time", "300ms", "--quiet")
        assert code == 2 and "127.0.0.1:1: connection refused" in out, out


main(
    [
        a_storm_of_2000_comes_in_by_appointment,
        the_ledger_is_clean_through_a_drain_and_a_killed_gateway,
        bots_show_tokens,
        what_makes_no_sense_is_said,
    ]
)
