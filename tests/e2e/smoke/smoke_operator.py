#!/usr/bin/env python3
"""What an operator asks and changes: the plan before a node comes or goes, weights, kicks, traces, backups."""
import concurrent.futures
import json
import os
import signal
import socket
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, main, number_of, started, until
from hostile import ROLES, Peer


def shares(fleet):
    return {n["node"]: n["share_ppm"] for n in fleet.status()["nodes"]}


def refused(fleet, *words):
    code, out, err = fleet.run(*words, "--coordinators", fleet.addresses)
    assert code == 1 and out == "" and err, (words, code, out, err)
    return err


def a_plan_is_what_happens_then(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2", "n3")
        version = fleet.status()["version"]
        redis = Resp(fleet.process("g1").resp)
        for i in range(300):
            redis("SET", f"k{i}", "x" * 100)
        plan = fleet.ask("ring", "--diff", "weight", "n1", "3")
        before = shares(fleet)
        assert fleet.status()["version"] == version, "looking changes nothing"
        assert plan["vnodes"] > 0 and plan["transactions"] > 0 and plan["time_us"] > 0, plan
        fleet.tell("node", "weight", "n1", "3")
        fleet.settled(["n1", "n2", "n3"])
        after = shares(fleet)
        for name in before:
            came = sum(m["share_ppm"] for m in plan["moves"] if m["to"] == name)
            went = sum(m["share_ppm"] for m in plan["moves"] if m["from"] == name)
            assert abs(before[name] + came - went - after[name]) < 10, (name, before, after, plan)
        again = fleet.ask("ring", "--diff", "weight", "n1", "3")
        assert again["vnodes"] == 0 and again["moves"] == [], again
        # The leader has heard of n1's actors with its next renewal.
        drain = until("it tells of actors", lambda: (d := fleet.ask("ring", "--diff", "drain", "n1"))["actors"] and d)
        assert {m["from"] for m in drain["moves"]} == {"n1"}, drain
        assert drain["bytes"] > 0 and drain["share_ppm"] == after["n1"], drain
        join = fleet.ask("ring", "--diff", "add", "n9")
        assert {m["to"] for m in join["moves"]} == {"n9"}, join
        assert abs(join["share_ppm"] - 1000000 / 6) < 20000, join


def what_makes_no_sense_is_refused(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1")
        assert "unknown node" in refused(fleet, "ring", "--diff", "drain", "n9")
        assert "is the last one" in refused(fleet, "ring", "--diff", "drain", "n1")
        assert "exists already" in refused(fleet, "ring", "--diff", "add", "n1")
        assert "--diff must be add" in refused(fleet, "ring", "--diff", "sink", "n1")
        assert "1 to 1000" in refused(fleet, "ring", "--diff", "weight", "n1", "1001")
        assert "WEIGHT" in refused(fleet, "ring", "--diff", "weight", "n1")
        assert "--diff" in refused(fleet, "ring", "n1")
        assert "unknown node" in refused(fleet, "node", "weight", "n9", "2")
        assert "1 to 1000" in refused(fleet, "node", "weight", "n1", "0")


def a_player_is_kicked_wherever_its_actor_lives(binary):
    with Fleet(binary) as fleet:
        pusher = os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "pusher.so")
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            fleet.node(name, ["--actor", pusher])
        gateway = fleet.gateway("g1", ["--frames", "127.0.0.1:0"])
        fleet.settled(["n1", "n2"])
        host, port = gateway.fields["frames"].rsplit(":", 1)
        for name in (b"alice", b"bob", b"carol", b"3/x", b"dora"):
            client = packets.Client((host, int(port)))
            assert client.bind(name).status == packets.OK
            words = ["kick", f"0/{name.decode()}", "--code", "1077", "--text", "maintenance"]
            words += ["--reason", "ticket 4711"] if name == b"dora" else []
            fleet.tell(*words)
            type_, body = client.wait(packets.KICK)
            assert type_ == packets.KICK and body == (1077).to_bytes(4, "big") + b"maintenance", body
            assert client.closed()
            until("nobody is bound", lambda: fleet.run(*words, "--coordinators", fleet.addresses)[0] == 1)
        notes = [e for e in fleet.ask("events", "--limit", "1000") if e["command"] == "kick"]
        told = {e["subject"] for e in notes if e["why"] == "its session was told to end, code 1077"}
        assert told == {"actor 0/alice", "actor 0/bob", "actor 0/carol", "actor 0/3/x", "actor 0/dora"}, notes
        for e in notes:
            assert e["reason"] == ("ticket 4711" if e["subject"] == "actor 0/dora" else "maintenance"), e
            assert "@" in e["by"], e
        err = refused(fleet, "kick", "0/nobody")
        assert "nobody has no session" in err, err
        assert "is not KIND/ID" in refused(fleet, "kick", "%")
        assert "1000" in refused(fleet, "kick", "0/alice", "--code", "3")
        assert "control characters" in refused(fleet, "kick", "0/alice", "--reason", "a\nb")


def a_request_is_followed_to_its_actor(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2")
        code, out, err = fleet.run("trace", "0/k1", "--coordinators", fleet.addresses)
        assert code == 1 and "--wake" in err, (code, out, err)
        Resp(fleet.process("g1").resp)("SET", "k1", "x")
        # On a machine that stood still meanwhile, a second copy was sent.
        way = until("one copy does", lambda: (w := fleet.ask("trace", "0/k1"))["copies"] == 1 and w)
        steps = [(h["step"], h["process"], h["did"]) for h in way["hops"]]
        owner = fleet.ask("where", "0/k1")["node"]
        assert steps == [
            ("gateway", "g1", "sent"),
            ("node", owner, "ran"),
            ("links", "-", "the rest, both ways"),
        ], steps
        assert way["outcome"] == "ok" and way["owner"] == owner, way
        assert sum(h["waited_us"] + h["ran_us"] for h in way["hops"]) == way["total_us"] > 0, way
        version = fleet.status()["version"]
        assert {h["version"] for h in way["hops"]} == {version}, (way, version)
        assert fleet.ask("trace", "0/k2", "--wake")["outcome"] == "ok"
        assert "not linked" in refused(fleet, "trace", "k1", "--gateway", "g9")
        assert fleet.ask("trace", "0/k1", "--gateway", "g1")["owner"] == owner
        events = fleet.ask("events", "--limit", "1000")
        traced = [e["subject"] for e in events if e["why"] == "traced"]
        assert set(traced) == {"actor 0/k1", "actor 0/k2"}, events


def page_of(socket_path):
    """The fleet as a coordinator's web page is told of it; None: not now."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(socket_path)
        s.sendall(b"GET /fleet HTTP/1.0\r\n\r\n")
        head, _, body = b"".join(iter(lambda: s.recv(65536), b"")).partition(b"\r\n\r\n")
    return json.loads(body) if b" 200 " in head else None


def a_question_behind_its_answer_is_no_second_wish(binary):
    """Who waits asks again until the answer is there, so one more question may be on its way then."""
    with Fleet(binary) as fleet:
        started(fleet, "n1")
        with Peer(fleet.addresses, "cli", "cli", incarnation=1) as peer:

            def told():
                reply = peer.wait(lambda f: "admin_reply" in f.control).control["admin_reply"]
                return reply.get("again", 0), reply["tag"], reply.get("error", "")

            def ask(tag, **wish):
                peer.control("admin", tag=tag, **wish)

            def is_extended():
                ask(3, maintenance=begins)
                again, *reply = told()
                assert again or reply == [3, ""], reply
                return not again

            twice = {"voters": 3 * [{"id": 1, "address": fleet.addresses}], "by": "a"}
            ask(1, coordinators=twice)
            assert told() == (0, 1, "an id or an address is given twice")
            ask(1, coordinators=twice)
            ask(2, coordinators=twice)
            assert told() == (0, 2, "an id or an address is given twice")
            begins, ends = {"for_ms": 1000, "by": "a", "reason": "new kernel"}, {"by": "a", "reason": "it runs"}
            until("leases are extended", is_extended)
            node = {"role": ROLES["node"], "name": "n1", "incarnation": number_of(fleet.process("n1").fields["incarnation"])}
            fetch = {**node, "what": 1, "by": "a", "why": "it looks odd"}
            ask(4, repair=fetch)
            assert told() == (0, 4, "")
            ask(4, repair=fetch)
            ask(5, maintenance=ends)
            assert told() == (0, 5, "")
            ask(5, maintenance=ends)
            ask(6, maintenance=begins)
            assert told() == (0, 6, "")
        reasons = [e["reason"] for e in fleet.ask("events", "--limit", "1000") if e["command"] in ("fix", "lease")]
        assert sorted(filter(None, reasons)) == ["it looks odd", "it runs", "new kernel", "new kernel"], reasons


def a_change_of_coordinators_is_told(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1")
        pages = {}
        for i in (2, 3, 4):
            fleet.ports[i] = fleet.port()
            pages[i] = fleet.data(f"c{i}.sock")
            words = ["--id", str(i), "--listen", f"127.0.0.1:{fleet.ports[i]}", "--data", fleet.data(f"c{i}")]
            fleet.start(f"c{i}", ["coordinator", *words, "--join-group", "--admin", f"unix:{pages[i]}"])
        at = {i: f"{i}=127.0.0.1:{p}" for i, p in fleet.ports.items()}
        # What is refused is not told: by what is wished, or by who is there.
        for wish, why in ((at[2], "1, 3 or 5"), (f"{at[2]},{at[2]}", "given twice"), (f"{at[2]},5=127.0.0.1:1", "no answer")):
            err = refused(fleet, "coordinators", "add", wish, "--timeout-ms", "60000")
            assert why in err, err
        fleet.tell("coordinators", "add", f"{at[2]},{at[3]}")
        fleet.tell("coordinators", "replace", "1", at[4])

        def noted():
            events = fleet.ask("events", "--limit", "1000")
            rows = [e for e in events if e["subject"] == "coordinators"]
            return [(*in_order(e["why"]), e["by"] != "") for e in rows]

        def in_order(why):
            what, group = why.split(": ")
            return what, sorted(group.split(","))

        def text(*ids):
            return [at[i] for i in ids]

        wanted = [
            ("wished", text(1, 2, 3), True),
            ("generation 1", text(1, 2, 3), False),
            ("wished", text(2, 3, 4), True),
            ("generation 2", text(2, 3, 4), False),
        ]
        until("all of it is in the history", lambda: len(noted()) >= len(wanted))
        assert noted() == wanted, noted()
        # Whom none of --peers names any more: the page asks who is there now.
        fleet.process("c1").kill().wait()
        for i in (2, 3, 4):
            told = until(f"the page of {i} finds the leader", lambda i=i: page_of(pages[i]))
            assert [c["id"] for c in told["coordinators"]] == [2, 3, 4], told


def a_wish_that_is_asked_again_is_told_once(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.ports[4] = fleet.port()
        words = ["--id", "4", "--listen", f"127.0.0.1:{fleet.ports[4]}", "--data", fleet.data("c4")]
        fleet.start("c4", ["coordinator", *words, "--join-group"])
        leader = fleet.leader()
        others = [p for p in (fleet.process(f"c{i}") for i in (1, 2, 3)) if p is not leader]
        led = leader.log_count("not_leading")
        for other in others:
            other.kill(signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = pool.submit(fleet.tell, "coordinators", "replace", others[0].name[1:], f"4=127.0.0.1:{fleet.ports[4]}")
            # Its note is in the log of this leader alone, which leads no more, and is the only one who can lead next.
            until("it is wished", lambda: leader.log_has("coordinators_wished"))
            until("nobody leads", lambda: leader.log_count("not_leading") > led)
            for other in others:
                other.kill(signal.SIGCONT)
            asked.result()
        wished = [e["why"] for e in fleet.ask("events", "--limit", "1000") if e["why"].startswith("wished: ")]
        assert len(wished) == 1, wished


def a_backup_goes_to_a_file_or_a_folder(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1")
        folder = fleet.data("backups")
        os.mkdir(folder)
        code, out, err = fleet.run("backup", folder, "--data", fleet.data("c1"))
        assert code == 0 and "cluster ringhold" in out, (code, out, err)
        if not os.path.exists("/var/lib/ringhold/coordinator"):
            code, _, err = fleet.run("backup", folder)
            assert code == 1 and "--data DIR names the folder of a coordinator" in err, (code, err)
        (file,) = os.listdir(folder)
        assert file.startswith("ringhold-") and file.endswith(".backup"), file
        code, _, err = fleet.run("backup", os.path.join(folder, file), "--data", fleet.data("c1"))
        assert code == 1 and "--yes replaces it" in err, (code, err)
        fleet.process("c1").kill().wait()
        code, out, err = fleet.run("restore", os.path.join(folder, file), fleet.data("c1"), "--lease", "3s", "--yes")
        assert code == 0, (code, out, err)
        fleet.coordinator(1)
        fleet.settled(["n1"])


main([
    a_plan_is_what_happens_then,
    what_makes_no_sense_is_refused,
    a_player_is_kicked_wherever_its_actor_lives,
    a_request_is_followed_to_its_actor,
    a_question_behind_its_answer_is_no_second_wish,
    a_change_of_coordinators_is_told,
    a_wish_that_is_asked_again_is_told_once,
    a_backup_goes_to_a_file_or_a_folder,
])  # fmt: skip
