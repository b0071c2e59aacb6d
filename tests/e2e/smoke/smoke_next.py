#!/usr/bin/env python3
"""Commands that change something say what was done, what comes next and how to watch it; refusals say what to do."""
import json
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until


def started(fleet, *names):
    fleet.coordinators(1)
    for name in names:
        fleet.node(name, ["--kind", "0:kv", "--kind", "9@daemons=2:echo"])
    fleet.gateway("g1")
    fleet.settled(names)


def run(fleet, *words):
    return fleet.run(*words, "--coordinators", fleet.addresses)


def a_change_says_what_comes_next(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2")
        Resp(fleet.process("g1").resp)("SET", "ann", "1")
        vnode = str(fleet.ask("where", "0/ann")["vnode"])
        for words, done, then in (
            (("node", "weight", "n1", "2"), "n1 has weight 2", "ringhold node wait n1"),
            (("move", vnode, "n2"), "", "ringhold pin list"),
            (("unpin", vnode), "pins in all", "the planner moves"),
            (("move", vnode, "n1", "--once"), "", "ringhold txn list"),
            (("pin", "0/ann", "n1"), "pins in all", "ringhold pin list"),
            (("unpin", "0/ann"), "pins in all", "the planner moves"),
            (("quarantine", "add", "0/x"), "0/x is in quarantine", "ringhold quarantine clear 0/x"),
            (("quarantine", "clear", "0/x"), "0/x is served again", "ringhold where 0/x"),
            (("daemons", "echo", "3"), "echo: 3", "ringhold status"),
            (("node", "drain", "n2"), "n2 drains", "ringhold node drain n2 --watch"),
            (("node", "drain", "n2", "cancel"), "n2 stays, and has", "ringhold node wait n2"),
            (("node", "remove", "n2"), "n2 drains", "ringhold status --watch"),
        ):
            fleet.settled()
            code, out, err = run(fleet, *words)
            lines = out.splitlines()
            assert code == 0 and err == "" and len(lines) >= 2, (words, code, out, err)
            assert done in lines[-2] and lines[-1].startswith("next: ") and then in lines[-1], (words, out)
        until("n2 is gone", lambda: fleet.process("n2").popen.poll() is not None)
        code, out, _ = run(fleet, "quarantine", "add", "0/x", "-o", "json")
        assert code == 0 and json.loads(out) == {"done": "0/x is in quarantine"}, out


def nobody_is_waited_for_only_so_long(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1")
        code, out, err = run(fleet, "node", "wait", "nobody", "--register", "1")
        assert code == 1 and out == "", (code, out, err)
        assert "waiting for node 'nobody' to register" in err and "known are n1" in err, err
        assert "no node 'nobody' has registered within 1 s: check its name" in err, err
        code, out, err = run(fleet, "node", "wait", "nobody", "--wait", "1")
        assert code == 3 and "nobody has not registered" in err, (code, out, err)
        assert run(fleet, "node", "wait", "n1") == (0, "n1 has its share, and nothing moves\n", "")
        fleet.process("n1").kill()  # known, and dead: waited for as long as --wait says
        until("it is missed", lambda: fleet.status()["nodes"][0]["state"] != "live")
        code, out, err = run(fleet, "node", "wait", "n1", "--wait", "2", "--register", "1")
        assert code == 3 and "has registered" not in err, (code, out, err)


def refusals_say_what_to_do(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1")
        for words, why in (
            (("node", "drain", "n9"), "unknown node 'n9': `ringhold node list` lists them"),
            (("node", "remove", "n9"), "unknown node 'n9': `ringhold node list` lists them"),
            (("node", "replace", "n9", "n8"), "unknown node 'n9': `ringhold node list` lists them"),
            (("pin", "0/ann", "n9"), "unknown node 'n9': `ringhold node list` lists them"),
            (("move", "0", "n9"), "unknown node 'n9': `ringhold node list` lists them"),
            (("rolling-restart", "--command", "x", "n9"), "unknown node 'n9': `ringhold node list` lists them"),
            (("rolling-restart", "--command", "x", "--systemd"), "give one of them"),
            (("rolling-restart",), "--command 'ssh {host} ...' or --systemd"),
        ):
            code, out, err = run(fleet, *words)
            assert code == 1 and out == "" and why in err, (words, code, out, err)
        assert run(fleet, "rolling-restart", "--command", "x", "--dry-run")[0] == 0
        fleet.process("n1").kill()
        until("check finds it", lambda: run(fleet, "check", "--settle-ms", "0")[0] == 2)
        code, out, err = run(fleet, "fix", "--dry-run", "--settle-ms", "0")
        assert code == 0 and "problem" in out, (code, out, err)  # it was asked what it would do, and said
        assert run(fleet, "fix", "--settle-ms", "0")[0] == 2


main([a_change_says_what_comes_next, nobody_is_waited_for_only_so_long, refusals_say_what_to_do])
