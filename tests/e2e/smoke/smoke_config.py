#!/usr/bin/env python3
"""Options from flags, the environment and a file: the first that says it wins, and what none of them
knows is an error that names where it stands. `ringhold config check | print` tell before a start. SIGHUP
reads all of it again: what can be changes, what needs a restart is named, and a fault changes nothing.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until

SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "packaging", "ringhold.ini")


def run(binary, *words, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("RINGHOLD_")}
    done = subprocess.run(
        [binary, *words], capture_output=True, text=True, timeout=30, env={**clean, **env}
    )
    return done.returncode, done.stdout, done.stderr


def written(folder, text):
    path = os.path.join(folder, "ringhold.ini")
    with open(path, "w") as f:
        f.write(text)
    return path


def values(text):
    """{key: (value, origin)} of what --print-config prints."""
    rows = [line.split(" = ", 1) for line in text.splitlines() if " = " in line]
    return {k.strip(): tuple(w.strip() for w in v.rsplit(";", 1)) for k, v in rows}


def the_shipped_file_is_fine(binary):
    code, out, err = run(binary, "config", "check", SHIPPED)
    assert (code, err) == (0, ""), err
    assert out.split("\n")[:3] == ["[coordinator] is fine", "[node] is fine", "[gateway] is fine"]


def flags_win_then_variables_then_the_file(binary):
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, "[node]\nname = a\nweight = 2\nlinger-ms = 500\n")
        code, out, err = run(
            binary,
            *("node", "--config", path, "--name", "c", "--print-config"),
            RINGHOLD_NODE_NAME="b",
            RINGHOLD_NODE_WEIGHT="3",
            RINGHOLD_NODE_KIND="1:echo\n2:kv\n",
            RINGHOLD_COORDINATORS="127.0.0.1:1",
            RINGHOLD_CLUSTER="arena",
            RINGHOLD_NODE_SERVICE_HOST="kubelet",
            RINGHOLD_NODE_PORT="tcp://10.0.0.1:7501",
        )
        assert code == 0, err
        told = values(out)
        assert told["name"] == ("c", "flag"), told
        assert told["weight"] == ("3", "environment"), told
        kinds = [line for line in out.splitlines() if line.startswith("kind ")]
        assert [k.split("=", 1)[1].split(";")[0].strip() for k in kinds] == ["1:echo", "2:kv"], kinds
        assert told["linger-ms"] == ("500", "file [SIGHUP]"), told
        assert told["join"] == ("127.0.0.1:1", "environment"), told
        assert told["cluster"] == ("arena", "environment"), told
        assert told["insecure"] == ("no", "default"), told
        # What is printed is a file that says the same.
        path = written(folder, out)
        code, again, err = run(binary, "config", "print", path)
        assert code == 0, err
        assert {k: v for k, (v, _) in values(again).items()} == {k: v for k, (v, _) in told.items()}


def help_tells_the_defaults_that_hold(binary):
    """Also behind a flag that sets another value."""
    told = {}
    for role, flag in (("coordinator", "prepare-ms"), ("node", "linger-ms"), ("gateway", "drain-ms")):
        code, text, err = run(binary, role, f"--{flag}", "7", "--help")
        assert code == 0, err
        told[role] = dict(re.findall(r"^  --(\S+) .*\(([^()]+)\)(?: \[SIGHUP\])?$", text, re.M))
        code, out, err = run(binary, role, *(["--name", "a"] if role == "node" else []), "--print-config")
        assert code == 0, err
        standard = {key: value for key, (value, _) in values(out).items()}
        same = [key for key in told[role] if told[role][key] == standard.get(key)]
        assert flag in same and len(same) > 5, (told[role], standard)
    assert told["gateway"]["deadline-ms"] == "10000" and told["gateway"]["auth-time"] == "5s", told


def what_is_wrong_is_named_with_its_place(binary):
    with tempfile.TemporaryDirectory() as folder:
        for text, why in (
            ("[node]\nname = a\nweigt = 2\n", ":3: weigt: unknown key"),
            ("[node]\nname = a\nname = b\n", ":3: name: is set twice"),
            ("[node]\nname = a\nweight = 0\n", ":3: weight: must be a whole number from 1"),
            ("[coordinator]\n\nlease = 3 hours\n", ":3: lease: must be a time such as"),
            ("[gateway]\nname = a\nname\n", ":3: neither [section] nor key = value"),
            ("[gatway]\nname = a\n", ":2: unknown section [gatway]"),
            ("name = a\n", ":1: unknown section []"),
            ("", "it sets no key"),
            ("[node]\nweight = 1\n", "--name is needed"),
            ("[coordinator]\nelection-ms = 60\nheartbeat-ms = 50\n", ":2, FILE:3: --election-ms must be at least"),
            ("[coordinator]\nlease = 3s\n\nsuspect = 3s\n", ":2, FILE:4: --lease 3000ms"),
            ("[coordinator]\npeers = 1=h:1,2=h:2,1=h:3\n", ":2: --peers: id 1 is given twice"),
            ("[coordinator]\npeers = 1=h:1,2=h:2,3=h:1\n", ":2: --peers: h:1 is given for both 1 and 3"),
            ("[coordinator]\nmin-members = a=1\nmin-members = a=2\n", ":2: --min-members: role a is given twice"),
            ("[gateway]\nthreads = 4\nmax-clients = 3\n", ":3: --max-clients: must be at least one for each"),
            ("[tls]\nca = /a\n[node]\nname = n\n", ":2: --link-ca, --link-certificate, --link-key: give all three"),
            ("[gateway]\nresp = 0.0.0.0:6380\n", ":2: --resp: 0.0.0.0:6380 is beyond loopback"),
            ("[node]\nname = n\nlisten = here\n", ":3: --listen: 'here' is not HOST:PORT"),
            ("[gateway]\nframes = 127.0.0.1:7\nws = 127.0.0.1:7\n", ":2, FILE:3: --frames and --ws are both 127.0.0.1:7"),
            ("[coordinator]\npeers = 1=h:1,2=h:2\n", ":2: --peers: 2 coordinators; a group has 1, 3 or 5"),
        ):
            path = written(folder, text)
            code, out, err = run(binary, "config", "check", path)
            assert code == 1 and why.replace("FILE", path) in err, (text, code, out, err)
            assert path in err or not why.startswith(":"), err
        code, _, err = run(binary, "config", "check", os.path.join(folder, "none"))
        assert code == 1 and "can't read" in err, err
        path = written(folder, "[gateway]\nname = a\n")
        code, _, err = run(binary, "node", "--config", path, "--check-config")
        assert code == 1 and "section [node] sets no key" in err, err
    code, _, err = run(binary, "node", "--name", "a", "--check-config", RINGHOLD_NODE_WEIGT="2")
    assert code == 1 and "environment variable RINGHOLD_NODE_WEIGT: unknown key" in err, err
    code, _, err = run(binary, "node", "--name", "a", "--check-config", RINGHOLD_NODE_WEIGHT="many")
    assert code == 1 and "environment variable RINGHOLD_NODE_WEIGHT: must be a whole number" in err, err
    for words in (("config",), ("config", "check"), ("config", "check", "a", "b"), ("config", "mend")):
        code, out, err = run(binary, *words)
        assert code == 1 and err, (words, code, out, err)


def a_fleet_runs_from_the_environment(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        common = {"RINGHOLD_COORDINATORS": fleet.addresses}
        fleet.start("n1", ["node"], {**common, "RINGHOLD_NODE_NAME": "n1", "RINGHOLD_NODE_DATA": fleet.data("n1")})
        gateway = fleet.start("g1", ["gateway"], {**common, "RINGHOLD_GATEWAY_RESP": "127.0.0.1:0"})
        fleet.settled(["n1"])
        assert Resp(gateway.resp)("INCR", "a") == 1
        code, out, err = run(binary, "status", **common)
        assert code == 0 and "n1" in out, err


# ---- SIGHUP


def hang_up(process, event):
    """SIGHUP; the lines about it, once `event` is among them."""
    before = len(config_lines(process))
    process.kill(signal.SIGHUP)
    until(f"{process.name} says {event}", lambda: any(f" config {event}" in x for x in config_lines(process)[before:]))
    return [re.sub(r"^\S+ +", "", x) for x in config_lines(process)[before:]]


def config_lines(process):
    with open(process.log) as f:
        return [line.strip() for line in f if " config " in line or line.startswith("ringhold ")]


def spoil(gateway):
    """A client that is kicked, which the log tells at the level debug."""
    host, port = gateway.fields["frames"].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as s:
        s.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
        while s.recv(4096):
            pass


def limit_of(gateway, key):
    text = Resp(gateway.resp)("INFO", "clients")
    return int(next(line for line in text.splitlines() if line.startswith(f"{key}:")).split(":")[1])


def a_gateway_takes_over_what_it_can(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        page = os.path.join(fleet.folder, "g1.sock")
        path = written(fleet.folder, "[gateway]\nthreads = 3\n")
        gateway = fleet.gateway("g1", ("--config", path, "--frames", "127.0.0.1:0", "--admin", f"unix:{page}"))
        held = Resp(gateway.resp)
        assert held("INCR", "a") == 1
        spoil(gateway)
        assert not gateway.log_has("client_kicked") and limit_of(gateway, "maxclients") == 10000
        assert figures(page) == (1, 0)
        written(fleet.folder, "[gateway]\nthreads = 2\nlog-level = debug\nmax-clients = 77\nrequest-rate = 5\n")
        assert hang_up(gateway, "reloaded") == [
            'info config changed key=max-clients old="10000" new="77"',
            'info config changed key=request-rate old="0" new="5"',
            'info config changed key=request-burst old="1" new="5"',
            'warn config needs_restart key=threads old="3" new="2"',
            'info config changed key=log-level old="info" new="debug"',
            "info config reloaded applied=4 need_restart=1",
        ]
        until("each thread has its share", lambda: limit_of(gateway, "maxclients") == 77)
        spoil(gateway)
        until("it logs more", lambda: gateway.log_has("client_kicked"))
        assert held("INCR", "a") == 2
        # A flag wins over the file, also now; and what is as it runs is said no more.
        written(fleet.folder, "[gateway]\nframes = 127.0.0.1:1\nthreads = 3\nlog-level = debug\nmax-clients = 77\n")
        assert hang_up(gateway, "reloaded")[-1] == "info config reloaded applied=2 need_restart=0"
        assert figures(page) == (1, 0)
        # Fine by itself, but not beside the number of threads that stays.
        written(fleet.folder, "[gateway]\nthreads = 1\nmax-clients = 1\n")
        said = hang_up(gateway, "reload_failed")
        assert f"{path}:3: --max-clients: must be at least one for each of 3 threads, not 1" in said[0], said
        assert limit_of(gateway, "maxclients") == 77 and figures(page) == (0, 1)
        # Who asks for less sees that he gets it.
        written(fleet.folder, "[gateway]\nthreads = 3\nlog-level = error\nmax-clients = 78\n")
        assert hang_up(gateway, "reloaded")[-1] == "info config reloaded applied=2 need_restart=0"
        until("the limit holds", lambda: limit_of(gateway, "maxclients") == 78)
        assert figures(page) == (1, 1)


def figures(page):
    """(good last time, times that it was not) of what Prometheus is told."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(page)
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    told = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("ringhold_config_"))
    assert float(told["ringhold_config_last_reload_success_timestamp_seconds"]) > 1e9, told
    return (
        int(told["ringhold_config_last_reload_successful"]),
        int(told["ringhold_config_reload_failures_total"]),
    )


def a_fault_changes_nothing(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        path = written(fleet.folder, "[node]\nactor = kv=wal.db\n")
        node = fleet.node("n1", ("--config", path))
        gateway = fleet.gateway("g1")
        fleet.settled(["n1"])
        for text, why in (
            ("[node]\nlog-level = debug\nweigt = 2\n", ":3: weigt: unknown key"),
            ("[node]\nlog-level = loud\n", "--log-level: must be error, warn, info or debug"),
            ("[node]\nlinger-ms = 5\n", ":2: linger-ms: must be a whole number from 100"),
            ("[gateway]\n", "section [node] sets no key"),
        ):
            written(fleet.folder, text)
            said = hang_up(node, "reload_failed")
            assert why in said[0] and len(said) == 2, said
            assert said[1] == 'error config reload_failed goes_on="with what it had"', said
        os.unlink(path)
        assert "can't read" in hang_up(node, "reload_failed")[0]
        assert Resp(gateway.resp)("INCR", "a") == 1
        # What an actor is given may be a password.
        written(fleet.folder, "[node]\nactor = kv=secret.db\ndrain = 5s\nweight = 2\n")
        assert hang_up(node, "reloaded") == [
            'warn config needs_restart key=actor old="(not shown)" new="(not shown)"',
            'warn config needs_restart key=weight old="" new="2"',
            'info config changed key=drain old="10min" new="5s"',
            "info config reloaded applied=1 need_restart=2",
        ]
        assert not node.log_has("secret.db")
        assert Resp(gateway.resp)("INCR", "a") == 2


def a_coordinator_keeps_its_leases_in_order(binary):
    with Fleet(binary) as fleet:
        path = written(fleet.folder, "[coordinator]\nlease = 3s\n")
        (one,) = fleet.coordinators(1, extra=("--config", path))
        fleet.node("n1")
        fleet.settled(["n1"])
        # Nodes would be suspected before they can renew, at the lease that stays until a restart.
        written(fleet.folder, "[coordinator]\nlease = 2s\nsuspect = 600ms\n")
        said = hang_up(one, "reload_failed")
        assert "--suspect 600ms" in said[0] and "before it missed two renewals" in said[0], said
        written(fleet.folder, "[coordinator]\nlease = 4s\nsuspect = 1s\nprepare-ms = 5000\nmin-members = arena=2\n")
        assert hang_up(one, "reloaded") == [
            'info config changed key=prepare-ms old="8000" new="5000"',
            'info config changed key=min-members old="" new="arena=2"',
            'warn config needs_restart key=lease old="3s" new="4s"',
            'info config changed key=suspect old="" new="1s"',
            "info config reloaded applied=3 need_restart=1",
        ]
        # A role that is to have two nodes before any gets ids has one.
        fleet.node("a1", ("--role", "arena", "--kind", "1:echo"), ready=False)
        until("it is there", lambda: any(n["node"] == "a1" for n in fleet.status()["nodes"]))
        fleet.settled(["n1"])
        fleet.node("a2", ("--role", "arena", "--kind", "1:echo"), ready=False)
        until("both have ids", lambda: owns(fleet, "a1") > 0 and owns(fleet, "a2") > 0)


def owns(fleet, name):
    return sum(n["vnodes"] for n in fleet.status()["nodes"] if n["node"] == name)


main([
    the_shipped_file_is_fine,
    flags_win_then_variables_then_the_file,
    help_tells_the_defaults_that_hold,
    what_is_wrong_is_named_with_its_place,
    a_fleet_runs_from_the_environment,
    a_gateway_takes_over_what_it_can,
    a_fault_changes_nothing,
    a_coordinator_keeps_its_leases_in_order,
])  # fmt: skip
