#!/usr/bin/env python3
"""What each daemon tells over HTTP: metrics that Prometheus can read, health, readiness, status; to
who has the token if there is one; and what bad requests meet.
"""
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import openmetrics
from fleet import Fleet, Resp, RespError, main, number_of, until

SAMPLE = re.compile(r'^([a-z_][a-z0-9_]*)(\{([a-z]+="[^"]*",?)+\})? ([0-9.]+)$')
TOKEN = "x" * 20
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


def get(address, path, method="GET", headers=()):
    host, port = address.rsplit(":", 1)
    c = http.client.HTTPConnection(host, int(port), timeout=10)
    c.request(method, path, headers=dict(headers))
    answer = c.getresponse()
    body = answer.read().decode()
    c.close()
    return answer.status, answer.headers, body


def metrics(address, headers=()):
    """{name with labels: value}, of a page that is checked line by line."""
    status, head, text = get(address, "/metrics", headers=headers)
    assert status == 200 and head["Content-Type"].startswith("text/plain; version=0.0.4"), (status, text)
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0 and not checked.stderr, checked.stderr
    found, kinds, helped = {}, {}, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in helped and len(line.split()) > 4, line
            helped.add(name)
        elif line.startswith("# TYPE "):
            kinds[line.split()[2]] = line.split()[3]
        else:
            match = SAMPLE.match(line)
            assert match, line
            name = re.sub(r"_(bucket|sum|count)$", "", match[1]) if match[1] not in kinds else match[1]
            assert name in kinds and name in helped, line
            assert kinds[name] != "counter" or name.endswith("_total"), line
            key = match[1] + (match[2] or "")
            assert key not in found, line
            found[key] = float(match[4])
    return found


def fleet_with_pages(fleet, node=()):
    at = {name: f"127.0.0.1:{fleet.port()}" for name in ("c1", "n1", "n2", "g1")}
    fleet.coordinators(1, extra=["--admin", at["c1"]])
    fleet.node("n1", ["--admin", at["n1"], *node])
    fleet.gateway("g1", ["--admin", at["g1"]])
    return at


def every_daemon_tells_its_figures(binary):
    with Fleet(binary) as fleet:
        at = fleet_with_pages(fleet, ["--zone", "eu-1a"])
        fleet.settled(["n1"])
        redis = Resp(fleet.process("g1").resp)
        for i in range(100):
            assert redis("INCR", f"k{i}") == 1
        g, n, c = (metrics(at[name]) for name in ("g1", "n1", "c1"))
        assert g["ringhold_gateway_requests_total"] == 100 == g["ringhold_gateway_replies_total"], g
        assert g["ringhold_gateway_connections"] == 1 and g['ringhold_ready{role="gateway"}'] == 1, g
        assert n["ringhold_node_requests_total"] == 100 and n["ringhold_node_actors"] == 100, n
        assert 0 < n["ringhold_node_lease_margin_seconds"] <= n["ringhold_node_lease_seconds"] == 3, n
        assert c["ringhold_coordinator_leading"] == 1 and c['ringhold_coordinator_nodes{state="live"}'] == 1
        assert c['ringhold_coordinator_zone_nodes{zone="eu-1a"}'] == 1, c
        assert c['ringhold_coordinator_zone_cells{zone="eu-1a"}'] == 1 << 16, c
        assert c["ringhold_coordinator_ring_version"] == n["ringhold_node_ring_version"]
        assert c["ringhold_coordinator_gateways"] == 1, c
        with open(os.path.join(ROOT, "docs", "metrics.md")) as f:
            named = set(re.findall(r"[a-z_]+", f.read()))
        for figures in (g, n, c):
            bare = {re.sub(r"^ringhold_(gateway|node|coordinator)_", "", k.split("{")[0]) for k in figures}
            missing = {k for k in bare if re.sub(r"_(bucket|sum|count)$", "", k) not in named}
            assert not missing, f"not in docs/metrics.md: {missing}"
            assert figures["process_resident_memory_bytes"] > 1 << 20, figures
            assert any(k.startswith("ringhold_build_info{") for k in figures), figures
        assert n["ringhold_node_double_activations_total"] == 0 == c["ringhold_coordinator_ring_version_lag"], (n, c)
        # A join is seen by all: moved vnodes, held ones, a new ring.
        fleet.node("n2", ["--admin", at["n2"]])
        fleet.settled(["n1", "n2"])
        c2, n2 = metrics(at["c1"]), metrics(at["n1"])
        assert c2["ringhold_coordinator_transactions_committed_total"] > 0, c2
        assert c2["ringhold_coordinator_ring_version"] > c["ringhold_coordinator_ring_version"]
        held = 'ringhold_node_hold_seconds_count{outcome="committed"}'
        assert n2[held] == n2['ringhold_node_hold_seconds_bucket{outcome="committed",le="+Inf"}'] > 0, n2
        assert set(n) == set(n2) and set(c) == set(c2), "all rows are there from the start"


def who_asks_for_openmetrics_gets_it(binary):
    """The same figures, by the strict parser of its reference."""
    if openmetrics.is_missing():
        return
    with Fleet(binary) as fleet:
        at = fleet_with_pages(fleet)
        fleet.settled(["n1"])
        redis = Resp(fleet.process("g1").resp)
        for i in range(10):
            assert redis("INCR", f"k{i}") == 1
        for address in (at["c1"], at["n1"], at["g1"]):
            _, families = openmetrics.scrape(address)
            assert not {f.name for f in families if f.type == "unknown"}, families
            assert all(f.unit == unit for f in families for unit in ("seconds", "bytes") if f.name.endswith("_" + unit)), families
            names = {s.name for f in families for s in f.samples}
            assert names == {name.split("{")[0] for name in metrics(address)}, "the same, however it is asked"
            assert get(address, "/metrics", headers={"Accept": "*/*"})[1]["Content-Type"].startswith("text/plain; version=0.0.4")


def status_is_the_same_as_json(binary):
    with Fleet(binary) as fleet:
        at = fleet_with_pages(fleet)
        fleet.settled(["n1"])
        for name, role in (("c1", "coordinator"), ("n1", "node"), ("g1", "gateway")):
            code, head, body = get(at[name], "/status")
            told = json.loads(body)
            assert code == 200 and head["Content-Type"] == "application/json"
            assert (told["schema"], told["role"], told["ready"], told["why"]) == (1, role, True, ""), told
            assert told["name"] in name and told["cluster"] == "ringhold" and told["version"], told
            assert told["figures"][f"ringhold_ready{{{role}}}"] == 1, told
            mine = {re.sub(r'\{\w+="(.*)"\}', r"{\1}", k) for k in metrics(at[name])}
            assert len(set(told["figures"]) & mine) > 10, (sorted(told["figures"]), sorted(mine))


def histograms(figures, name):
    """{labels but le: (count, sum)} of a histogram whose buckets add up."""
    found = {}
    for key, value in figures.items():
        match = re.fullmatch(name + r"_(bucket|sum|count)\{(.*?),?(?:le=\"([^\"]+)\")?\}", key)
        if match:
            found.setdefault(match[2], {"bucket": []})
            if match[1] == "bucket":
                found[match[2]]["bucket"].append((float(match[3].replace("+Inf", "inf")), value))
            else:
                found[match[2]][match[1]] = value
    for one in found.values():
        bounds, counts = zip(*one["bucket"])
        assert len(bounds) == 20 and list(bounds) == sorted(bounds) and list(counts) == sorted(counts), one
        assert bounds[-1] == float("inf") and counts[-1] == one["count"] > 0, one
    return {labels: (one["count"], one["sum"]) for labels, one in found.items()}


def each_request_is_in_a_histogram(binary):
    with Fleet(binary) as fleet:
        at = fleet_with_pages(fleet)
        fleet.gateway("g2", ["--admin", at.setdefault("g2", f"127.0.0.1:{fleet.port()}"), "--threads", "2"])
        fleet.settled(["n1"])
        for _ in range(2):  # g2: now one thread has a connection, now the other
            redis = [Resp(fleet.process(name).resp) for name in ("g1", "g2")]
            for r in redis:
                for i in range(50):
                    r("INCR", f"k{i}")
                assert r("SET", "text", "x") == "OK"
                try:
                    raise AssertionError(f"{r('CALL', '@99/x', 'y')} is no error")
                except RespError as error:
                    assert "NOKIND" in str(error), error
        for name in ("g1", "g2"):

            def told(address=at[name]):
                figures = metrics(address)
                return figures["ringhold_gateway_replies_total"] >= 104 and figures

            figures = until("its threads have told what they counted", told)
            took = histograms(figures, "ringhold_gateway_request_seconds")
            counts = {labels: count for labels, (count, _) in took.items()}
            ok = 'kind="0",outcome="ok"'
            assert counts == {ok: 102, 'kind="other",outcome="no_kind"': 2}, counts
            assert sum(counts.values()) == figures["ringhold_gateway_replies_total"], figures
        n = metrics(at["n1"])
        requests = histograms(n, "ringhold_node_request_seconds")
        assert requests[ok][0] == 204, requests
        assert histograms(n, "ringhold_node_activation_seconds")[ok][0] == 51
        assert histograms(n, "ringhold_node_mailbox_seconds")['kind="0"'][0] == n["ringhold_node_requests_total"] == 204
        assert histograms(n, "ringhold_node_handler_seconds")['kind="0"'][0] >= 204 + 51
        assert n["ringhold_node_share_permille"] == 1000 and n["ringhold_node_mailbox_waiting"] == 0, n


def how_long_a_request_took_is_told(binary):
    with Fleet(binary) as fleet:
        at = fleet_with_pages(fleet)
        fleet.settled(["n1"])
        redis = Resp(fleet.process("g1").resp)
        redis("INCR", "k")
        node = fleet.process("n1")

        def told():
            return histograms(metrics(at["g1"]), "ringhold_gateway_request_seconds")['kind="0",outcome="ok"']

        before, sent = told(), time.monotonic()
        node.kill(signal.SIGSTOP)
        redis.send(("INCR", "k"))
        until("it is under way", lambda: metrics(at["g1"])["ringhold_gateway_in_flight"] == 1)
        under_way = time.monotonic()
        for _ in range(10):
            assert told() == before
        went_on = time.monotonic()
        node.kill(signal.SIGCONT)
        assert redis.read() == 2
        until("it is counted", lambda: told()[0] == before[0] + 1)
        took, all_of_it = told()[1] - before[1], time.monotonic() - sent
        assert went_on - under_way <= took <= all_of_it, (went_on - under_way, took, all_of_it)


def ready_is_no_more_from_the_start_of_a_drain(binary):
    plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "tests", "plugins", "unruly.so")
    with Fleet(binary) as fleet:
        at = fleet_with_pages(fleet, node=["--actor", plugin, "--threads", "2"])
        fleet.node("n2", ["--admin", at["n2"], "--actor", plugin, "--threads", "2"])
        fleet.settled(["n1", "n2"])
        for name in at:
            assert get(at[name], "/healthz")[::2] == (200, "alive\n")
            assert get(at[name], "/readyz")[::2] == (200, "ready\n")
        # Drained by an operator it is not ready from the start, and is again when that is taken back.
        fleet.tell("node", "drain", "n2")
        until("it is drained", lambda: get(at["n2"], "/readyz")[2].startswith("the node is drained, "))
        fleet.tell("node", "drain", "n2", "cancel")
        until("it is ready", lambda: get(at["n2"], "/readyz")[0] == 200)
        fleet.settled(["n1", "n2"])
        # A message that never ends holds the drain of n2 up: it is alive, and not ready.
        busy = next(f"k{i}" for i in itertools.count() if fleet.ask("where", f"0/k{i}")["node"] == "n2")
        Resp(fleet.process("g1").resp).send(("CALL", busy, "hang"))
        until("it hangs", lambda: any(r["id"] == busy for r in fleet.ask("top", "--hot")))
        fleet.process("n2").kill(signal.SIGTERM)
        until("it leaves", lambda: get(at["n2"], "/readyz")[2].startswith("the node is leaving, "))
        assert get(at["n2"], "/healthz")[0] == 200
        assert metrics(at["n2"])['ringhold_ready{role="node"}'] == 0
        # Nothing remote is asked for health: without coordinators a node is alive.
        fleet.process("c1").kill().wait()
        until("it has no lease", lambda: get(at["n1"], "/readyz")[::2] == (503, "the node has no lease\n"))
        assert get(at["n1"], "/healthz")[0] == 200


def a_page_of_the_web_is_not_answered(binary):
    """A browser that was led here by a name of theirs (DNS rebinding) says that name."""
    with Fleet(binary) as fleet:
        port = fleet.port()
        address = f"127.0.0.1:{port}"
        fleet.coordinators(1, extra=["--admin", address])
        pages = ("/", "/metrics", "/status", "/fleet", "/actors", "/readyz", "/healthz", "/none")
        bad = ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example", "a b", "[::1", "1.2.3")
        for host in bad:
            for page in pages:
                status, _, text = get(address, page, headers={"Host": host})
                assert (status, text) == (421, "the Host header is neither an address nor localhost\n"), (host, page, status, text)
        for host in (f"127.0.0.1:{port}", "127.0.0.1", "localhost", f"LocalHost:{port}", "[::1]:80", "[::1]", "10.0.0.7:80", ""):
            assert get(address, "/healthz", headers={"Host": host})[0] == 200, host
        assert metrics(address)['ringhold_admin_answers_total{code="421"}'] == len(bad) * len(pages)


def who_asks_beyond_needs_the_token(binary):
    with Fleet(binary) as fleet:
        path = os.path.join(fleet.folder, "token")
        with open(path, "w") as f:
            f.write(TOKEN + "\n")
        os.chmod(path, 0o600)
        address = f"127.0.0.1:{fleet.port()}"
        words = ["--admin", address, "--admin-token", path]
        fleet.coordinators(1, extra=words)
        good = {"Authorization": f"Bearer {TOKEN}"}
        for bad in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}, {"Authorization": "Bearer "}):
            for page in ("/metrics", "/status", "/fleet", "/actors", "/none"):
                assert get(address, page, headers=bad)[0] == 401, (bad, page)
        assert get(address, "/healthz")[0] == 200
        until("it leads", lambda: get(address, "/readyz")[0] == 200)
        assert get(address, "/")[0] == 200 == get(address, "/fleet", headers=good)[0], "the page itself tells nothing"
        assert metrics(address, good)['ringhold_admin_answers_total{code="401"}'] == 20
        # The token's file is a secret's; a port that is taken is said.
        os.chmod(path, 0o644)
        for words, why in (
            (["--admin", "127.0.0.1:1", "--admin-token", path], "others may read"),
            (["--admin", address], "Address already in use"),
            (["--admin", "0.0.0.0:0"], "--admin-token is needed"),
            (["--admin-token", path], "which is missing"),
            (["--admin", "unix:there"], "absolute path"),
            (["--admin", "here"], "is not HOST:PORT"),
        ):
            code, _, err = fleet.run("gateway", "--join", fleet.addresses, "--resp", "127.0.0.1:0", *words)
            assert code == 1 and why in err, (words, code, err)


def bad_requests_cost_nothing(binary):
    with Fleet(binary) as fleet:
        path = os.path.join(fleet.folder, "admin")
        with open(path, "w"):
            pass  # no socket: it is not removed
        fleet.ports = {1: fleet.port()}
        code, _, err = fleet.run(*("coordinator", "--data", fleet.data("c1")), "--admin", f"unix:{path}")
        assert code == 1 and "Address already in use" in err and os.path.exists(path), err
        os.unlink(path)
        address = f"127.0.0.1:{fleet.port()}"
        fleet.coordinators(1, extra=["--admin", address])
        coordinator = fleet.process("c1")
        for method, page, expected in (
            ("GET", "/", 200),
            ("HEAD", "/metrics", 200),
            ("POST", "/metrics", 405),
            ("DELETE", "/", 405),
            ("GET", "/none", 404),
            ("GET", "/metrics/../status", 404),
        ):
            assert get(address, page, method)[0] == expected, (method, page)
        host, port = address.rsplit(":", 1)
        for garbage in (b"\0\xff" * 100, b"GET /metrics\r\n\r\n", b"GET " + b"a" * 100000 + b" HTTP/1.1\r\n\r\n"):
            with socket.create_connection((host, int(port)), timeout=10) as s:
                try:
                    s.sendall(garbage)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(4096):
                        pass
                except OSError:
                    pass  # it hung up on us, as it may
        assert coordinator.running and fleet.status()["leader"] == 1 and get(address, "/healthz")[0] == 200


class Strangers:
    """Connections that each send a byte of a request now and then, and come again when they are cut."""

    def __init__(self, address, count, source):
        host, port = address.rsplit(":", 1)
        self.to, self.source = (host, int(port)), (source, 0)
        self.lines = [self.come() for _ in range(count)]
        self.came = count

    def come(self):
        line = socket.create_connection(self.to, timeout=30, source_address=self.source)
        line.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        line.setblocking(False)
        return line

    def turn(self):
        for i, line in enumerate(self.lines):
            try:
                line.sendall(b"x")
                if line.recv(1) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                continue
            except OSError:
                line.close()
                self.lines[i] = self.come()
                self.came += 1

    def close(self):
        for line in self.lines:
            line.close()


def cut(address, reason):
    text = get(address, "/metrics")[2]
    return int(re.search(rf'^ringhold_admin_cut_total{{reason="{reason}"}} (\d+)$', text, re.M)[1])


def slow_strangers_keep_nobody_out(binary):
    with Fleet(binary) as fleet:
        address = f"127.0.0.1:{fleet.port()}"
        fleet.coordinators(1, extra=["--admin", address])
        host, port = address.rsplit(":", 1)
        kept = http.client.HTTPConnection(host, int(port), timeout=30)
        crowds = [Strangers(address, 150, "127.0.0.2"), Strangers(address, 20, "127.0.0.1")]
        for _ in range(20):
            for crowd in crowds:
                crowd.turn()
            kept.request("GET", "/readyz")  # by the line that it had: the crowd is of others
            assert kept.getresponse().read() == b"ready\n"
            assert get(address, "/healthz")[0] == 200
            assert get(address, "/metrics")[0] == 200
        assert cut(address, "crowded") >= 150 - 64 and sum(c.came for c in crowds) > 170
        kept.close()
        # Few of them take nobody's place: those go at the deadline, and who was answered when it asks no more.
        for crowd in crowds:
            crowd.close()
        few = Strangers(address, 2, "127.0.0.2")
        kept.request("GET", "/healthz")
        assert kept.getresponse().read() == b"alive\n"
        before = {why: cut(address, why) for why in ("deadline", "idle")}

        def gone():
            few.turn()
            return all(cut(address, why) > n for why, n in before.items())

        until("both are cut", gone)
        few.close()


def a_socket_in_a_folder_does_as_well(binary):
    with Fleet(binary) as fleet:
        path = os.path.join(fleet.folder, "admin.sock")
        for _ in range(2):  # the second finds what the first left, for it was killed
            fleet.coordinators(1, extra=["--admin", f"unix:{path}"])
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(10)
                s.connect(path)
                s.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                assert b"alive" in s.makefile("rb").read()
            fleet.process("c1").kill().wait()
        assert os.path.exists(path)
        fleet.coordinators(1, extra=["--admin", f"unix:{path}"])
        assert fleet.process("c1").kill(15).wait() == 0
        assert not os.path.exists(path)


def page(address, known=""):
    status, head, text = get(address, f"/fleet?ring={known}")
    assert head["Content-Type"].startswith("application/json"), head
    return status, json.loads(text)


def shown(address, known=""):
    """What the page shows as soon as the leader answers it in time; it says 503 meanwhile."""

    def told():
        status, told = page(address, known)
        return told if status == 200 else None

    return until("the leader answers the page", told)


def a_coordinator_shows_the_fleet(binary):
    plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "tests", "plugins", "unruly.so")
    with Fleet(binary) as fleet:
        at = {i: f"127.0.0.1:{fleet.port()}" for i in (1, 2, 3)}
        fleet.ports = {i: fleet.port() for i in at}
        for process in [fleet.coordinator(i, extra=["--admin", address], ready=False) for i, address in at.items()]:
            process.wait_ready()
        for name in ("n1", "n2"):
            fleet.node(name, ["--actor", plugin, "--threads", "2", "--admin", at.setdefault(name, f"127.0.0.1:{fleet.port()}")])
        fleet.gateway("g1")
        settled = fleet.settled(["n1", "n2"])
        for i in (1, 2, 3):  # followers ask the leader
            told = shown(at[i])
            assert (told["schema"], told["cluster"]) == (1, "ringhold"), told
            assert told["version"] == str(settled["version"]) and told["pending"] == 0, told
            assert [n["name"] for n in told["nodes"]] == ["n1", "n2"] and told["gateways"][0]["name"] == "g1"
            assert {v[2] for v in told["vnodes"]} == {"n1", "n2"} and len(told["vnodes"]) == 128
            edges = sorted((v[0], v[1]) for v in told["vnodes"])
            assert edges[0][0] == 0 and all(a[1] == b[0] for a, b in zip(edges, edges[1:])), edges
            assert len(told["transactions"]) > 0 and sorted(c["id"] for c in told["coordinators"]) == [1, 2, 3]
            for known in (told["version"], str(number_of(told["version"]))):
                assert "vnodes" not in shown(at[i], known), "they did not change"
        for path, kind in (("/", "text/html"), ("/fleet.js", "text/javascript"), ("/fleet.css", "text/css")):
            status, head, text = get(at[1], path)
            assert status == 200 and head["Content-Type"].startswith(kind) and len(text) > 500, path
            assert "default-src 'none'" in head["Content-Security-Policy"], dict(head)
            with open(os.path.join(ROOT, "daemon", "web", path[1:] or "index.html"), encoding="utf-8") as f:
                assert f.read() == text, path
            assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), "nothing is fetched from elsewhere"
        # What hangs is told with whom it waits for.
        busy = next(f"k{i}" for i in itertools.count() if fleet.ask("where", f"0/k{i}")["node"] == "n2")
        Resp(fleet.process("g1").resp).send(("CALL", busy, "hang"))
        until("it hangs", lambda: any(r["id"] == busy for r in fleet.ask("top", "--hot")))
        fleet.process("n2").kill(signal.SIGTERM)

        def waits():
            told = page(at[1])[1]
            rows = [t["waiting_for"] for t in told.get("transactions", []) if t["state"] == "pending"]
            moving = {v[3] for v in told.get("vnodes", []) if v[2] == "n2"} - {""}
            return any(busy in w for w in rows) and moving == {"n1"}

        until("the page names who is waited for", waits)
        # Nodes have no such page; without a leader it says so.
        assert get(at["n1"], "/fleet")[0] == 404
        for i in (2, 3):
            fleet.process(f"c{i}").kill().wait()
        until("no leader", lambda: page(at[1])[0] == 503)
        assert page(at[1])[1] == {"schema": 1, "error": "no coordinator answers as leader"}


def who_follows_a_leader_is_ready(binary):
    with Fleet(binary) as fleet:
        fleet.ports = {i: fleet.port() for i in (1, 2, 3)}
        at = {i: f"127.0.0.1:{fleet.port()}" for i in fleet.ports}
        started = [fleet.coordinator(i, extra=["--admin", at[i]], ready=False) for i in at]
        for process in started:
            process.wait_ready()
        for address in at.values():
            until("it is ready", lambda a=address: get(a, "/readyz")[::2] == (200, "ready\n"))
        leader = fleet.status()["leader"]
        for address in at.values():
            until("it names the leader", lambda a=address: metrics(a)["ringhold_coordinator_leader"] == leader)


main([
    every_daemon_tells_its_figures,
    who_asks_for_openmetrics_gets_it,
    status_is_the_same_as_json,
    each_request_is_in_a_histogram,
    how_long_a_request_took_is_told,
    ready_is_no_more_from_the_start_of_a_drain,
    who_follows_a_leader_is_ready,
    a_page_of_the_web_is_not_answered,
    who_asks_beyond_needs_the_token,
    bad_requests_cost_nothing,
    slow_strangers_keep_nobody_out,
    a_socket_in_a_folder_does_as_well,
    a_coordinator_shows_the_fleet,
])  # fmt: skip
