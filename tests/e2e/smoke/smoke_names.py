#!/usr/bin/env python3
"""How actors are named: KIND/ID in every command, kinds by their names, former spellings with a hint, and what is printed is
taken as it is, by a shell too."""
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until

IDS = ["plain", "mail/3", "a b", "100%", "$HOME", "`id`", "x;y&z", "{a,b}", "{1..3}", "../..", "~", "it's", "\u5f20\u4e09", "@2/boss"]


def started(fleet):
    fleet.coordinators(1)
    fleet.node("n1", extra=["--kind", "0:kv", "--kind", "2:echo", "--kind", "3:kv"])
    fleet.gateway("g1")
    fleet.settled(["n1"])


def run(fleet, *words):
    return fleet.run(*words, "--coordinators", fleet.addresses)


def every_spelling_names_the_same_actor_or_none(binary):
    with Fleet(binary) as fleet:
        started(fleet)
        for word, name in {"2/boss": "2/boss", "echo/boss": "2/boss", "0/@2/boss": "0/@2/boss", "2/b%6fss": "2/boss"}.items():
            code, out, err = run(fleet, "where", word)
            assert code == 0 and out.startswith(f"actor {name}  node n1 ") and err == "", (word, out, err)
        for words, name in {
            ("@2/boss",): "2/boss",
            ("@echo/boss",): "2/boss",
            ("boss",): "0/boss",
            ("@home",): "0/@home",
            ("--kind", "2", "a b"): "2/a%20b",
        }.items():
            code, out, err = run(fleet, "where", *words)
            assert code == 0 and out.startswith(f"actor {name}  "), (words, out, err)
            assert f"is read as {name}: write {name}" in err, (words, err)
        for word, why in {
            "kv/ann": "kinds 0 and 3 are both named 'kv'",
            "mail/3": "no kind is named 'mail'",
            "07/x": "is not KIND/ID",
            "65536/x": "is not KIND/ID",
            "2/": "is not KIND/ID",
            "2/%4": "is not KIND/ID",
            "0/" + 256 * "x": "is not KIND/ID",
            "": "is not KIND/ID",
        }.items():
            for command in ("where", "kick", "trace", "unpin"):
                code, out, err = run(fleet, command, word)
                assert code == 1 and out == "" and why in err, (command, word, err)
        for words in (("quarantine", "add"), ("remembered", "forget"), ("actor", "get")):  # which never took an id alone
            code, out, err = run(fleet, *words, "boss")
            assert code == 1 and out == "" and "'boss' is not KIND/ID" in err, (words, code, out, err)
        assert "of kind 0, is 0/mail/3" in run(fleet, "where", "mail/3")[2]


def what_is_printed_is_taken_by_any_shell(binary):
    with Fleet(binary) as fleet:
        started(fleet)
        redis = Resp(fleet.process("g1").resp)
        for i in IDS:
            assert redis("SET", f"@3/{i}", "x") == "OK"
        rows = until("all live", lambda: len(r := fleet.ask("actors", "--kind", "3")) == len(IDS) and r)
        for row in rows:
            for shell in (["sh", "-c"], ["bash", "-c"]):
                line = f"'{fleet.binary}' where {row['actor']} --coordinators {fleet.addresses}"
                done = subprocess.run([*shell, line], capture_output=True, text=True, cwd=fleet.folder, timeout=60)
                assert done.returncode == 0 and done.stderr == "", (row, done)
                assert done.stdout.startswith(f"actor {row['actor']}  ") and "it lives there" in done.stdout, (row, done)
        table = run(fleet, "actors", "--kind", "3")[1]
        assert all(f" {row['actor']} " in table for row in rows), table


def keys_of_redis_keep_their_meaning(binary):
    with Fleet(binary) as fleet:
        started(fleet)
        redis = Resp(fleet.process("g1").resp)
        for key, name in {"3/boss": "0/3/boss", "@3/boss": "3/boss", "@kv/boss": "0/@kv/boss", "a%20b": "0/a%2520b"}.items():
            assert redis("SET", key, name) == "OK"
        lives = {row["actor"] for row in fleet.ask("actors")}
        assert lives == {"0/3/boss", "3/boss", "0/@kv/boss", "0/a%2520b"}, lives
        assert redis("GET", "3/boss") == "0/3/boss" and redis("GET", "@0/3/boss") == "0/3/boss"


main([every_spelling_names_the_same_actor_or_none, what_is_printed_is_taken_by_any_shell, keys_of_redis_keep_their_meaning])
