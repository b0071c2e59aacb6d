#!/usr/bin/env python3
"""What a coordinator's web page asks and does: the last hour, an actor and its values, hot actors, an operator's wishes;
and what is refused to whom.
"""
import http.client
import itertools
import json
import os
import re
import socket
import sys
import urllib.parse

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until

READER, OPERATOR = "r" * 20, "o" * 20
GAME = """
local chest = ringhold.kind("chest", {durable = true})
local plain = ringhold.kind("plain")
function chest.put(self, item, value) ringhold.put(item, value) return "put" end
function plain.ping(self) return "pong" end
"""
DEEDS = ("/drain", "/cancel", "/pin", "/unpin", "/values")


def ask(address, path, method="GET", headers=(), body=None):
    """(status, headers, JSON or text)"""
    host, port = address.rsplit(":", 1)
    c = http.client.HTTPConnection(host, int(port), timeout=20)
    c.request(method, path, body=body, headers=dict(headers))
    answer = c.getresponse()
    text = answer.read().decode()
    c.close()
    is_json = answer.headers["Content-Type"].startswith("application/json")
    return answer.status, answer.headers, json.loads(text) if is_json and method != "HEAD" else text


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


class Page:
    """A coordinator with a page, and its two tokens."""

    def __init__(self, fleet, host="127.0.0.1", reader=False, operator=True):
        self.fleet = fleet
        self.address = f"{host}:{fleet.port()}"
        words = ["--admin", self.address]
        words += ["--admin-token", self.secret("reader", READER)] if reader else []
        words += ["--operator-token", self.secret("operator", OPERATOR)] if operator else []
        fleet.coordinators(1, extra=words)

    def secret(self, name, text):
        path = os.path.join(self.fleet.folder, name)
        with open(path, "w") as f:
            f.write(text + "\n")
        os.chmod(path, 0o600)
        return path

    def get(self, path, headers=()):
        return ask(self.address, path, headers=headers)

    def post(self, path, token=OPERATOR, **fields):
        body = urllib.parse.urlencode(fields)
        head = {"Content-Type": "application/x-www-form-urlencoded", **(bearer(token) if token else {})}
        return ask(self.address, path, "POST", head, body)

    def does(self, path, **fields):
        status, _, told = self.post(path, **fields)
        assert status == 200 and told["schema"] == 1 and "error" not in told, (path, fields, status, told)
        return told

    def fleet_is(self, trend=0):
        """What the page shows as soon as the leader answers it in time; it says 503 meanwhile."""

        def shown():
            status, _, told = self.get(f"/fleet?trend={trend}" if trend else "/fleet")
            return told if status == 200 else None

        return until("the leader answers the page", shown)

    def node(self, name):
        return next((n for n in self.fleet_is()["nodes"] if n["name"] == name), None)

    def answers(self, headers=()):
        text = self.get("/metrics", headers)[2]
        return {m[1]: int(m[2]) for m in re.finditer(r'^ringhold_admin_answers_total\{code="(\d+)"\} (\d+)$', text, re.M)}


def an_operator_changes_the_fleet(binary):
    with Fleet(binary) as fleet:
        page = Page(fleet)
        for name in ("n1", "n2"):
            fleet.node(name)
        redis = Resp(fleet.gateway("g1").resp)
        fleet.settled(["n1", "n2"])
        assert page.fleet_is()["changes"] == "yes" and page.fleet_is()["waits"] == []
        assert page.does("/drain", node="n2", by="alice", reason="ticket 4711")["done"] == "n2 drains"
        until("it has no share", lambda: page.node("n2")["state"] == "leaving" and page.node("n2")["vnodes"] == 0)
        assert page.does("/cancel", node="n2")["done"] == "n2 takes its share again"
        until("it has one", lambda: page.node("n2")["state"] == "live" and page.node("n2")["vnodes"] > 0)
        fleet.settled(["n1", "n2"])
        redis("SET", "ada", "36")
        before = fleet.ask("where", "ada")["node"]
        after = "n1" if before == "n2" else "n2"
        page.does("/pin", id="ada", node=after, by="bob", reason="she lags")
        until("it is there", lambda: fleet.ask("where", "ada")["node"] == after)
        assert redis("GET", "ada") in (b"36", "36")
        page.does("/unpin", id="0/ada")
        assert fleet.ask("pin", "list") == []
        events = fleet.ask("events", "--limit", "1000")
        rows = {e["command"]: e for e in events}
        assert rows["drain"]["by"].startswith("alice@127.0.0.1 by the web page"), rows["drain"]
        assert rows["drain"]["reason"] == "ticket 4711" and rows["cancel"]["by"].startswith("operator@127.0.0.1"), rows
        assert any(e["reason"] == "she lags" and e["by"].startswith("bob@") for e in events), events
        # What makes no sense is refused as the commands are.
        for path, fields, text in (
            ("/drain", {"node": "n9"}, "unknown node 'n9'"),
            ("/pin", {"id": "ada", "node": "n9"}, "n9"),
            ("/unpin", {"id": "0/nobody"}, ""),
        ):
            status, _, told = page.post(path, **fields)
            assert status == 409 and text in told["error"], (path, fields, status, told)


def an_actor_is_found(binary):
    with Fleet(binary) as fleet:
        page = Page(fleet)
        for name in ("n1", "n2"):
            fleet.node(name)
        redis = Resp(fleet.gateway("g1").resp)
        fleet.settled(["n1", "n2"])
        status, _, told = page.get("/where?id=ada")
        assert status == 200 and told["state"] == "none" and "here_ms" not in told, told
        redis("SET", "ada", "36")
        status, _, told = page.get("/where?id=0/ada")
        where = fleet.ask("where", "ada")
        assert (told["kind"], told["id"], told["node"], told["vnode"]) == (0, "ada", where["node"], where["vnode"]), (told, where)
        assert told["fence"] == where["generation"] and told["state"] == "idle" and told["came"] == "start", (told, where)
        assert told["moving_to"] == "" and told["here_ms"] >= 0, told
        for bad in ("", "?id=", "?id=" + "a" * 256, "?id=%2541%25", "?name=ada"):
            status, _, told = page.get(f"/where{bad}")
            assert status == 400 and told["error"].startswith("id: "), (bad, status, told)
        assert page.get("/where?id=0/%25ff%2500")[0] == 200, "any bytes are an id"
        assert page.get("/where?id=70000/ada")[0] == 400, "no kind is so great"


def values_are_shown_and_cut(binary):
    with Fleet(binary) as fleet:
        page = Page(fleet)
        script, big = (os.path.join(fleet.folder, name) for name in ("game.lua", "big"))
        with open(script, "w") as f:
            f.write(GAME)
        with open(big, "w", encoding="utf-8") as f:
            f.write("é" * 400000)  # more than a page of them has
        store = os.path.join(fleet.folder, "actors.db")
        fleet.node("n1", ["--lua", script, "--store", f"sqlite:{store}"])
        call = Resp(fleet.gateway("g1").resp)
        fleet.settled(["n1"])
        assert call("CALL", "ann", "put gold 12") == "put"
        fleet.tell("actor", "set", "0/ann", "big", "--file", big)
        with open(big, "wb") as f:
            f.write(b"\xff\x01")
        fleet.tell("actor", "set", "0/ann", "raw", "--file", big)
        told = page.does("/values", id="ann")
        rows = {v.pop("key"): v for v in told["values"]}
        assert not told["more"] and list(rows) == ["big", "gold", "raw"], told
        assert rows["big"] == {"size": 800000, "cut": True, "as": "text", "value": "é" * 127}, rows
        assert rows["gold"] == {"size": 2, "cut": False, "as": "text", "value": "12"}, rows
        assert rows["raw"] == {"size": 2, "cut": False, "as": "bytes", "value": "%FF%01"}, rows
        many = {"values": [{"key": f"k{i:03}", "value": "x"} for i in range(150)]}
        with open(big, "w") as f:
            json.dump(many, f)
        fleet.tell("actor", "import", "0/bob", "--file", big)
        told = page.does("/values", id="0/bob")
        assert told["more"] and len(told["values"]) == 100, (told["more"], len(told["values"]))
        for who, text in (("1/ann", "not durable"), ("9/ann", "")):
            status, _, told = page.post("/values", id=who)
            assert status == 409 and text in told["error"], (who, status, told)


def who_is_hot_is_told(binary):
    plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "tests", "plugins", "unruly.so")
    with Fleet(binary) as fleet:
        page = Page(fleet)
        for name in ("n1", "n2"):
            fleet.node(name, ["--actor", plugin, "--threads", "2"])
        redis = Resp(fleet.gateway("g1").resp)
        fleet.settled(["n1", "n2"])
        busy = next(f"k{i}" for i in itertools.count() if fleet.ask("where", f"k{i}")["node"] == "n2")
        redis.send(("CALL", busy, "hang"))

        def runs():
            status, _, told = page.get("/hot")
            rows = told.get("actors", []) if status == 200 else []
            return any((r["what"], r["node"], r["kind"], r["id"]) == ("runs", "n2", 0, busy) for r in rows) and told["nodes"] == 2 == told["told"]

        until("the page names who hangs", runs)


def the_last_hour_is_told(binary):
    with Fleet(binary) as fleet:
        page = Page(fleet)
        fleet.node("n1")
        redis = Resp(fleet.gateway("g1").resp)
        fleet.settled(["n1"])
        assert "trend" not in page.fleet_is(), "who does not ask is not told"
        first = page.fleet_is(trend=1)["trend"]
        assert first["columns"] == ["end_ms", "took_ms", "requests", "held", "moves", "p99_us"], first
        assert [n["p99_us"] for n in page.fleet_is()["nodes"]] == [0], "nobody was asked yet"
        fleet.node("n2")
        fleet.settled(["n1", "n2"])
        count = 0

        def told():
            nonlocal count
            redis("INCR", "k")
            count += 1
            return page.fleet_is(trend=1)["trend"]["points"]

        until("a point is over", told)
        points = until("its requests are told", lambda: (p := told())[-1][2] > 0 and p)
        assert sum(p[4] for p in points) > 0 and all(p[1] >= 10000 for p in points), points
        assert sum(p[2] for p in points) <= count, (count, points)
        until("a point has a p99", lambda: any(p[5] > 0 for p in told()))
        until("so has a node", lambda: told() and any(n["p99_us"] > 0 for n in page.fleet_is()["nodes"]))
        assert max(p[5] for p in told()) <= 64 << 18, "a time-out at most"
        assert page.fleet_is(trend=1000)["trend"]["points"] == []
        assert "trend" not in page.get("/fleet?trend=abc")[2], "what is no number asks for none"


def who_may_not_is_refused_and_counted(binary):
    with Fleet(binary) as fleet:
        page = Page(fleet, reader=True)
        until("it leads", lambda: page.get("/fleet", bearer(READER))[0] == 200)
        assert page.get("/fleet", bearer(OPERATOR))[0] == 200, "an operator may look, too"
        assert page.get("/fleet")[0] == 401
        for deed in DEEDS:
            for token in ("", READER, OPERATOR + "x"):
                status, head, _ = page.post(deed, token, node="n1", id="ada")
                assert status == 401 and head["WWW-Authenticate"] == "Bearer", (deed, token, status)
            # By a link or a form of another site: the token is in no URL, no body and no cookie.
            status, _, _ = ask(page.address, f"{deed}?token={OPERATOR}&node=n1&id=ada", "POST", {"Cookie": f"token={OPERATOR}"})
            assert status == 401, (deed, status)
            for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
                status, head, _ = ask(page.address, deed, method, bearer(OPERATOR))
                assert status == 405 and head["Allow"] == "POST", (deed, method, status)
        for path in ("/fleet", "/metrics", "/", "/none"):
            status, head, _ = page.post(path, node="n1")
            assert status == 405 and head["Allow"] == "GET, HEAD", (path, status)
        counted = page.answers(bearer(READER))
        assert counted["401"] == 4 * len(DEEDS) + 1 and counted["405"] == 5 * len(DEEDS) + 4, counted


def a_form_that_is_none_costs_nothing(binary):
    with Fleet(binary) as fleet:
        page = Page(fleet)
        fleet.node("n1")
        fleet.settled(["n1"])
        form = {"Content-Type": "application/x-www-form-urlencoded", **bearer(OPERATOR)}
        for head, body, text in (
            (bearer(OPERATOR), b"node=n1", "no form"),
            ({**bearer(OPERATOR), "Content-Type": "application/json"}, b'{"node":"n1"}', "no form"),
            (form, b"nodes=n1", "not known"),
            (form, b"node=" + b"n" * 64, "too long"),
            (form, b"node=n1&reason=" + b"r" * 201, "too long"),
            (form, b"node=n%00", "NUL"),
            (form, b"node=n%0a1", "control"),
            (form, b"node=n%ff", "control"),
            (form, b"", "name of a node"),
            (form, b"id=ada", "name of a node"),
        ):
            status, _, told = ask(page.address, "/drain", "POST", head, body)
            assert status == 400 and text in (told["error"] if isinstance(told, dict) else told), (body[:40], status, told)
        status, _, told = ask(page.address, "/pin", "POST", form, b"node=n1&id=%2541%25")
        assert status == 400 and told["error"].startswith("id: "), told
        # A body that says how large it is is not waited for; one that does not is read and dropped.
        host, port = page.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=20) as s:
            s.sendall(b"POST /drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
            assert b" 413 " in s.recv(4096)
        chunks = (b"node=" + b"n" * 1000 for _ in range(20))
        assert ask(page.address, "/drain", "POST", form, chunks)[0] == 413
        assert page.answers()["400"] == 11 and page.answers()["413"] == 2, page.answers()
        assert page.node("n1")["state"] == "live", "none of it was done"


def without_the_token_of_operators_nothing_is_changed(binary):
    with Fleet(binary) as fleet:
        page = Page(fleet, operator=False)
        until("it leads", lambda: page.get("/readyz")[0] == 200)
        assert page.fleet_is()["changes"] == "no"
        for deed in DEEDS:
            status, _, text = page.post(deed, node="n1", id="ada")
            assert status == 403 and "--operator-token" in text, (deed, status, text)
        code, _, err = fleet.run("coordinator", "--operator-token", page.secret("o", OPERATOR))
        assert code == 1 and "--operator-token needs --admin" in err, err
        same = ["--admin-token", page.secret("a", OPERATOR), "--operator-token", page.secret("o", OPERATOR)]
        code, _, err = fleet.run("coordinator", "--admin", "127.0.0.1:1", *same)
        assert code == 1 and "same token" in err, err
        code, _, err = fleet.run("node", "--operator-token", page.secret("o", OPERATOR))
        assert code != 0 and "operator-token" in err, "it is of coordinators"


def own_address():
    """One of this machine that is not loopback; None: there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # nothing is sent
            return s.getsockname()[0]
        except OSError:
            return None


def a_socket_in_a_folder_is_this_machine(binary):
    with Fleet(binary) as fleet:
        path = os.path.join(fleet.folder, "admin.sock")
        token = os.path.join(fleet.folder, "operator")
        with open(token, "w") as f:
            f.write(OPERATOR + "\n")
        os.chmod(token, 0o600)
        fleet.coordinators(1, extra=["--admin", f"unix:{path}", "--operator-token", token])

        def wish():
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(20)
                s.connect(path)
                head = f"Authorization: Bearer {OPERATOR}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 7"
                s.sendall(f"POST /drain HTTP/1.0\r\n{head}\r\n\r\nnode=n9".encode())
                return s.makefile("rb").read()

        until("the leader refuses it", lambda: b"unknown node 'n9'" in wish())


def operators_ask_from_the_machine_itself(binary):
    address = own_address()
    if address is None:
        print("# no address beyond loopback: not tried")
        return
    with Fleet(binary) as fleet:
        page = Page(fleet, host="0.0.0.0", reader=True)
        port = page.address.rsplit(":", 1)[1]
        near, far = f"127.0.0.1:{port}", f"{address}:{port}"
        until("it leads", lambda: ask(near, "/fleet", headers=bearer(READER))[0] == 200)
        for at, changes in ((near, "yes"), (far, "elsewhere")):
            assert ask(at, "/fleet", headers=bearer(READER))[2]["changes"] == changes, at
        page.address = far
        for deed in DEEDS:
            status, _, text = page.post(deed, node="n1", id="ada")
            assert status == 403 and "this machine" in text, (deed, status, text)
        page.address = near
        assert page.post("/drain", node="n9")[0] == 409


def a_socket_of_both_families_knows_this_machine(binary):
    with Fleet(binary) as fleet:
        page = Page(fleet, host="[::]", reader=True)
        page.address = f"127.0.0.1:{page.address.rsplit(':', 1)[1]}"  # it comes as ::ffff:127.0.0.1
        until("it is refused by the leader alone", lambda: page.post("/drain", node="n9")[0] == 409)


main([
    an_operator_changes_the_fleet,
    an_actor_is_found,
    values_are_shown_and_cut,
    who_is_hot_is_told,
    the_last_hour_is_told,
    who_may_not_is_refused_and_counted,
    a_form_that_is_none_costs_nothing,
    without_the_token_of_operators_nothing_is_changed,
    a_socket_in_a_folder_is_this_machine,
    operators_ask_from_the_machine_itself,
    a_socket_of_both_families_knows_this_machine,
])  # fmt: skip
