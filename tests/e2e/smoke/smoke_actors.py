#!/usr/bin/env python3
"""Who lives: `ringhold actors` lists all of several nodes, page by page, while others come and go; and what it says when it
can't. `ringhold where` tells whether an id lives."""
import http.client
import json
import signal
import sys
import threading
import urllib.parse

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until

GAME = """
local room = ringhold.kind("room", {number = 3, idle = false})
function room.hello(self) return "here" end
function room.bye(self) ringhold.exit() end
local boss = ringhold.kind("boss", {number = 4, idle = false})
function boss.hello(self) return "here" end
"""
LASTING = [f"lasting-{i}" for i in range(4000)]  # of each node there are several pages


class Game(Fleet):
    def begin(self, *names):
        self.admin = f"127.0.0.1:{self.port()}"
        script = self.data("game.lua")
        with open(script, "w") as f:
            f.write(GAME)
        self.coordinators(1, extra=["--admin", self.admin])
        for name in names:
            self.node(name, ["--lua", script])
        self.gateway("g1")
        self.settled(names)
        return Resp(self.process("g1").resp)

    def names(self, *words):
        """(kind, id), of each row."""
        return [(r["kind"], r["id"]) for r in self.ask("actors", *words)]

    def page(self, **asked):
        """(status, what is told), over HTTP."""
        c = http.client.HTTPConnection(self.admin, timeout=10)
        c.request("GET", "/actors?" + urllib.parse.urlencode(asked))
        answer = c.getresponse()
        told = json.loads(answer.read())
        c.close()
        return answer.status, told

    def fails(self, *words):
        code, out, err = self.run("actors", *words, "--coordinators", self.addresses)
        assert code == 1 and err.startswith("ringhold"), (words, code, out, err)
        return out, err


def wake(redis, kind, names, word="hello"):
    redis.send(*(("CALL", f"@{kind}/{name}", word) for name in names))
    return [redis.read() for _ in names]


def a_list_has_who_is_asked_for(binary):
    with Game(binary) as fleet:
        redis = fleet.begin("n1", "n2")
        assert fleet.ask("actors") == []
        assert fleet.ask("where", "3/ann")["state"] == "none"
        wake(redis, 3, ["ann", "anton", "bert", "an %\n"])
        wake(redis, 4, ["ann", "zoe"])
        everybody = [(3, "an%20%25%0A"), (3, "ann"), (3, "anton"), (3, "bert"), (4, "ann"), (4, "zoe")]
        rows = fleet.ask("actors")
        seen = sorted((r["kind"], r["id"]) for r in rows)
        assert seen == everybody, rows
        assert {r["state"] for r in rows} == {"idle"} and all(r["unused_ms"] < 600000 for r in rows), rows
        for r in rows:
            if "%" not in r["id"]:  # `where` takes an id as it is
                where = fleet.ask("where", r["actor"])
                assert (where["node"], where["state"]) == (r["node"], "idle"), (r, where)
                assert where["came"] == "start" and 0 < where["here_ms"] < 600000, where
        assert sorted(fleet.names("--kind", "4")) == [(4, "ann"), (4, "zoe")]
        assert sorted(fleet.names("--kind", "boss")) == [(4, "ann"), (4, "zoe")]
        assert sorted(fleet.names("--prefix", "an", "--kind", "3"))[1:] == [(3, "ann"), (3, "anton")]
        assert sorted(fleet.names("--prefix", "ann")) == [(3, "ann"), (4, "ann")]
        assert len(fleet.names("--prefix", "an%20%25")) == 1
        assert fleet.names("--prefix", "x") == [] and fleet.names("--kind", "9") == []
        ofs = [fleet.names("--node", name) for name in ("n1", "n2")]
        assert sorted(ofs[0] + ofs[1]) == seen, ofs
        code, out, err = fleet.run("actors", "--limit", "2", "--coordinators", fleet.addresses)
        assert code == 0 and len(out.splitlines()) == 3 and "first 2" in err, (code, out, err)
        code, out, err = fleet.run("actors", "--limit", "6", "--coordinators", fleet.addresses)
        assert code == 0 and len(out.splitlines()) == 7 and out.split()[:3] == ["NODE", "ACTOR", "STATE"], (out, err)


def where_says_who_came_by_a_move(binary):
    with Game(binary) as fleet:
        redis = fleet.begin("n1", "n2")
        names = [f"b{i}" for i in range(20)]  # some of them live at either node
        wake(redis, 4, names)
        at = {i: fleet.ask("where", f"4/{i}")["node"] for i in names}
        assert set(at.values()) == {"n1", "n2"}, at
        assert "it lives there, where it was started, since 2" in fleet.tell("where", f"4/{names[0]}")
        fleet.tell("node", "drain", "n2", "--wait", "60")
        wake(redis, 4, names)
        for i in names:
            where = fleet.ask("where", f"4/{i}")
            assert where["node"] == "n1" and where["here_ms"] > 0, where
            assert where["came"] == ("move" if at[i] == "n2" else "start"), where
        moved = next(i for i in names if at[i] == "n2")
        assert "by a move, since 2" in fleet.tell("where", f"4/{moved}")


def who_stays_is_listed_once_while_others_come_and_go(binary):
    with Game(binary) as fleet:
        redis = fleet.begin("n1", "n2", "n3")
        other = Resp(fleet.process("g1").resp)
        wake(redis, 3, LASTING)
        over = threading.Event()
        failed = []

        def come_and_go():
            number = 0
            try:
                while not over.is_set():
                    passing = [f"passing-{number + i}" for i in range(100)]
                    wake(other, 3, passing)
                    wake(other, 3, passing[::2], "bye")
                    number += 100
            except Exception as e:  # told by the main thread
                failed.append(e)

        thread = threading.Thread(target=come_and_go)
        thread.start()
        try:
            lists = [fleet.names("--limit", "0") for _ in range(5)]
        finally:
            over.set()
            thread.join()
        assert not failed, failed
        for listed in lists:
            ids = [name for _, name in listed]
            assert sorted(name for name in ids if name.startswith("lasting")) == sorted(LASTING)
            assert len(set(ids)) == len(ids), "nobody twice, for nobody moves"
        assert any(name.startswith("passing") for _, name in lists[-1])
        code, out, err = fleet.run("actors", "--limit", "0", "-o", "tsv", "--coordinators", fleet.addresses)
        lines = [line.split("\t") for line in out.splitlines()]
        assert code == 0 and lines[0][0] == "node" and len(lines) > len(LASTING), (code, len(lines), err)
        assert not [line for line in lines[1:] if len(line) != len(lines[0]) or line[0] == "node"], err
        assert len(fleet.names("--limit", "1500")) == 1500
        assert len(fleet.names()) == 100
        # In calm, as many as the nodes count.
        until(
            "they are as many as the nodes count",
            lambda: sum(n["actors"] for n in fleet.status()["nodes"]) == len(fleet.names("--limit", "0")),
        )


def a_program_reads_it_page_by_page(binary):
    with Game(binary) as fleet:
        redis = fleet.begin("n1", "n2")
        wake(redis, 3, LASTING)
        wake(redis, 4, ["an/&=%"])
        for words in ({}, {"limit": 300}):
            seen = []
            for node in ("n1", "n2"):
                cursor = "0"
                while True:
                    status, told = fleet.page(node=node, prefix="lasting-", kind=3, cursor=cursor, **words)
                    assert status == 200 and (told["schema"], told["node"]) == (1, node), told
                    assert len(told["actors"]) <= words.get("limit", 1000) + 20, "and the rest of a bucket"
                    seen += [a["id"] for a in told["actors"]]
                    cursor = told["next"]
                    if cursor == "0":
                        break
            assert sorted(seen) == sorted(LASTING)
        owner = fleet.ask("actors", "--kind", "4")[0]["node"]
        [row] = fleet.page(node=owner, prefix="an/&")[1]["actors"]
        assert (row["kind"], row["id"], row["state"]) == (4, "an/&=%25", "idle"), row
        for asked, status, why in (
            ({}, 400, "node"),
            ({"node": "n1", "kind": "x"}, 400, "kind"),
            ({"node": "n1", "limit": "-1"}, 400, "limit"),
            ({"node": "n1", "cursor": "99999999999999999999"}, 400, "cursor"),
            ({"node": "n9"}, 503, "unknown node 'n9'"),
        ):
            got, told = fleet.page(**asked)
            assert got == status and why in told["error"], (asked, got, told)


def what_can_not_be_listed_is_said(binary):
    with Game(binary) as fleet:
        redis = fleet.begin("n1", "n2")
        wake(redis, 3, [f"k{i}" for i in range(20)])
        for words, why in (
            (["--node", "n9"], "unknown node 'n9'"),
            (["--node", "g1"], "unknown node 'g1'"),
            (["--kind", "65536"], "0 to 65535"),
            (["--kind", "nobody"], "no kind is named 'nobody'"),
            (["--prefix", "%zz"], "beginning of an id"),
            (["--prefix", "x" * 256], "beginning of an id"),
            (["--limit", "-1"], "--limit"),
            (["k1"], "unexpected"),
            (["-o", "yaml"], "table, wide, tsv or json"),
        ):
            out, err = fleet.fails(*words)
            assert why in err and out == "", (words, err)
        # One that stands still is named, and the others' are there.
        process = fleet.process("n2")
        mine = len(fleet.names("--node", "n1"))
        process.kill(signal.SIGSTOP)
        try:
            out, err = fleet.fails("--timeout-ms", "1500")  # before others take its ids over
            assert "node n2" in err and len(out.splitlines()) == 1 + mine, (out, err)
        finally:
            process.kill(signal.SIGCONT)


main([
    a_list_has_who_is_asked_for, where_says_who_came_by_a_move,
    who_stays_is_listed_once_while_others_come_and_go,
    a_program_reads_it_page_by_page,
    what_can_not_be_listed_is_said,
])  # fmt: skip
