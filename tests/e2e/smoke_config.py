#!/usr/bin/env python3
"""Options from flags, the environment and a file: the first that says it wins, and what none of them
knows is an error that names where it stands. `ringhold config check | print` tell before a start.
"""
import os
import subprocess
import tempfile

from fleet import Fleet, Resp, main

SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "ringhold.ini")


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
        assert told["linger-ms"] == ("500", "file"), told
        assert told["join"] == ("127.0.0.1:1", "environment"), told
        assert told["cluster"] == ("arena", "environment"), told
        assert told["insecure"] == ("no", "default"), told
        # What is printed is a file that says the same.
        path = written(folder, out)
        code, again, err = run(binary, "config", "print", path)
        assert code == 0, err
        assert {k: v for k, (v, _) in values(again).items()} == {k: v for k, (v, _) in told.items()}


def what_is_wrong_is_named_with_its_place(binary):
    with tempfile.TemporaryDirectory() as folder:
        for text, why in (
            ("[node]\nname = a\nweigt = 2\n", ":3: weigt: unknown key"),
            ("[node]\nname = a\nname = b\n", ":3: name: it is set twice"),
            ("[node]\nname = a\nweight = 0\n", ":3: weight: it takes a whole number from 1"),
            ("[coordinator]\n\nlease = 3 hours\n", ":3: lease: it takes a time as"),
            ("[gateway]\nname = a\nname\n", ":3: neither [section] nor key = value"),
            ("[gatway]\nname = a\n", ":2: unknown section [gatway]"),
            ("name = a\n", ":1: unknown section []"),
            ("", "no key in it"),
            ("[node]\nweight = 1\n", "--name is needed"),
            ("[coordinator]\nelection-ms = 60\nheartbeat-ms = 50\n", "--election-ms must be at least"),
            ("[gateway]\nresp = 0.0.0.0:6380\n", "is beyond loopback"),
        ):
            path = written(folder, text)
            code, out, err = run(binary, "config", "check", path)
            assert code == 1 and why in err, (text, code, out, err)
            assert path in err or not why.startswith(":"), err
        code, _, err = run(binary, "config", "check", os.path.join(folder, "none"))
        assert code == 1 and "can't read" in err, err
        path = written(folder, "[gateway]\nname = a\n")
        code, _, err = run(binary, "node", "--config", path, "--check-config")
        assert code == 1 and "no key in a section [node]" in err, err
    code, _, err = run(binary, "node", "--name", "a", "--check-config", RINGHOLD_NODE_WEIGT="2")
    assert code == 1 and "RINGHOLD_NODE_WEIGT of the environment: unknown key" in err, err
    code, _, err = run(binary, "node", "--name", "a", "--check-config", RINGHOLD_NODE_WEIGHT="many")
    assert code == 1 and "RINGHOLD_NODE_WEIGHT of the environment: it takes a whole number" in err, err
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


main([
    the_shipped_file_is_fine,
    flags_win_then_variables_then_the_file,
    what_is_wrong_is_named_with_its_place,
    a_fleet_runs_from_the_environment,
])  # fmt: skip
