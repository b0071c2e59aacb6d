#!/usr/bin/env python3
"""`make alerts`: each alert of packaging/prometheus fires in a real Prometheus when its condition is caused in a real
fleet, and none fires in a fleet that is well. Its times are made shorter, its expressions stay: see QUICK. Needs a build with INJECT=1: that
an actor lives twice has to be planted."""
import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, free_port, main, until
from packets import Client

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
RULES = os.path.join(ROOT, "packaging", "prometheus", "ringhold.rules.yml")
BOARD = os.path.join(ROOT, "packaging", "grafana", "ringhold.json")
# (what it says, what it says here): only for how long, over how long and after how long.
QUICK = [(r"for: \d+s", "for: 2s"), (r"\[\d+m\]", "[20s]"), (r"seconds\) > 60", "seconds) > 4")]


class Prometheus:
    def __init__(self, fleet, targets):
        self.address = f"127.0.0.1:{free_port()}"
        with open(RULES) as f:
            rules = f.read()
        for pattern, short in QUICK:
            assert re.search(pattern, rules), pattern
            rules = re.sub(pattern, short, rules)
        self.names = re.findall(r"alert: (\w+)", rules)
        config = {
            "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
            "rule_files": [self.file(fleet, "rules.yml", rules)],
            "scrape_configs": [{"job_name": "ringhold", "static_configs": [{"targets": targets}]}],
        }
        path = self.file(fleet, "prometheus.yml", json.dumps(config))  # YAML, too
        for words in (["check", "config", path], ["check", "rules", RULES]):
            subprocess.run(["promtool", *words], check=True, capture_output=True, timeout=30)
        self.log = open(os.path.join(fleet.folder, "prometheus.log"), "w")
        self.popen = subprocess.Popen(
            ["prometheus", f"--config.file={path}", f"--web.listen-address={self.address}",
             f"--storage.tsdb.path={fleet.data('tsdb')}"], stdout=self.log, stderr=self.log)  # fmt: skip

    def file(self, fleet, name, text):
        path = os.path.join(fleet.folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def __enter__(self):
        until("Prometheus serves", lambda: self.ask("/api/v1/alerts") is not None)
        return self

    def __exit__(self, *_):
        self.popen.terminate()
        self.popen.wait(30)
        self.log.close()

    def ask(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def rows(self, query):
        return (self.ask("/api/v1/query?query=" + urllib.request.quote(query)) or {"result": []})["result"]

    def value(self, query):
        """Of an expression, or None: it has none yet."""
        result = self.rows(query)
        return float(result[0]["value"][1]) if result else None

    def firing(self):
        return {a["labels"]["alertname"] for a in self.ask("/api/v1/alerts")["alerts"] if a["state"] == "firing"}

    def fires(self, name):
        assert name in self.names, name
        until(f"{name} fires; firing: {self.firing()}", lambda: name in self.firing())
        print(f"# {name} fires")

    def is_quiet(self, fleet):
        """After scrapes of all that see the fleet well."""
        until("all are scraped", lambda: self.value("count(ringhold_ready)") == len(fleet.pages))
        until("nothing fires any more", lambda: not self.firing())


def started(fleet, coordinators=1, nodes=2, gateway=(), extra=()):
    plugin = os.path.join(os.path.dirname(os.path.abspath(fleet.binary)), "tests", "plugins", "unruly.so")
    fleet.pages = []

    def page():
        fleet.pages.append(f"127.0.0.1:{fleet.port()}")
        return ["--admin", fleet.pages[-1]]

    fleet.ports = {i: fleet.port() for i in range(1, coordinators + 1)}
    for p in [fleet.coordinator(i, extra=[*page(), *extra], ready=False) for i in fleet.ports]:
        p.wait_ready()
    names = [f"n{i}" for i in range(1, nodes + 1)]
    for name in names:
        fault = {"RINGHOLD_INJECT_FILE": fleet.data(f"{name}.fault")}
        fleet.node(name, ["--actor", plugin, "--threads", "2", *page()], env=fault)
    fleet.gateway("g1", [*page(), *gateway])
    fleet.settled(names)
    return Prometheus(fleet, fleet.pages)


def hang(fleet, node):
    """An actor of that node runs for ever; the connection that waits for it."""
    busy = next(f"k{i}" for i in itertools.count() if fleet.ask("where", f"0/k{i}")["node"] == node)
    redis = Resp(fleet.process("g1").resp)
    redis.send(("CALL", busy, "hang"))
    until("it hangs", lambda: any(r["id"] == busy for r in fleet.ask("top", "--hot")))
    return redis


def a_drain_that_hangs(binary):
    with Fleet(binary) as fleet, started(fleet, extra=["--prepare-ms", "20000"]) as prometheus:
        prometheus.is_quiet(fleet)
        _redis = hang(fleet, "n2")
        fleet.process("n2").kill(signal.SIGTERM)
        prometheus.fires("RingholdNotReady")
        prometheus.fires("RingholdTransactionStuck")


def a_change_that_is_tried_again(binary):
    with Fleet(binary) as fleet, started(fleet, extra=["--prepare-ms", "500"]) as prometheus:
        prometheus.is_quiet(fleet)
        _redis = hang(fleet, "n2")
        fleet.tell("node", "drain", "n2")
        prometheus.fires("RingholdChangesHang")


def coordinators_that_are_lost(binary):
    with Fleet(binary) as fleet, started(fleet, coordinators=3) as prometheus:
        prometheus.is_quiet(fleet)
        leader = fleet.leader()
        others = [fleet.process(f"c{i}") for i in (1, 2, 3) if fleet.process(f"c{i}") is not leader]
        for p in (leader, others[0]):
            p.kill().wait()
        prometheus.fires("RingholdNoLeader")


def a_node_that_is_lost(binary):
    with Fleet(binary) as fleet, started(fleet) as prometheus:
        prometheus.is_quiet(fleet)
        # What it had is given to the other one; the request that it ran may have run.
        _redis = hang(fleet, "n2")
        fleet.process("n2").kill().wait()
        prometheus.fires("RingholdNodeLost")
        prometheus.fires("RingholdOutcomesUnknown")


def a_lease_that_nearly_ended(binary):
    with Fleet(binary) as fleet, started(fleet) as prometheus:
        prometheus.is_quiet(fleet)
        for p in (fleet.process("c1"), fleet.process("n1")):
            assert p.running
        coordinator = fleet.process("c1")
        margin = 'ringhold_node_lease_margin_seconds / ringhold_node_lease_seconds'
        coordinator.kill(signal.SIGSTOP)
        until("a quarter of the lease is left", lambda: (prometheus.value(f"min({margin})") or 1) < 0.25)
        coordinator.kill(signal.SIGCONT)
        prometheus.fires("RingholdLeaseShort")


def a_gateway_that_lags(binary):
    with Fleet(binary) as fleet, started(fleet) as prometheus:
        prometheus.is_quiet(fleet)
        gateway = fleet.process("g1")
        gateway.kill(signal.SIGSTOP)
        fleet.tell("node", "drain", "n2")  # a new ring, which it doesn't hear of
        prometheus.fires("RingholdRingOld")
        gateway.kill(signal.SIGCONT)


def an_actor_in_quarantine(binary):
    with Fleet(binary) as fleet, started(fleet) as prometheus:
        prometheus.is_quiet(fleet)
        fleet.tell("quarantine", "add", "0/boss", "--reason", "a test")
        prometheus.fires("RingholdQuarantine")
        fleet.tell("quarantine", "clear", "0/boss")
        prometheus.is_quiet(fleet)


def a_gateway_that_is_full(binary):
    with Fleet(binary) as fleet, started(fleet, gateway=["--max-clients", "20", "--frames", "127.0.0.1:0"]) as prometheus:
        prometheus.is_quiet(fleet)
        host, port = fleet.process("g1").fields["frames"].rsplit(":", 1)
        players = [Client((host, int(port)), source=f"127.0.1.{i + 1}") for i in range(20)]
        prometheus.fires("RingholdConnectionsFull")
        for p in players:
            p.close()
        prometheus.is_quiet(fleet)


def an_actor_that_lives_twice(binary):
    with Fleet(binary) as fleet, started(fleet) as prometheus:
        prometheus.is_quiet(fleet)
        redis = Resp(fleet.process("g1").resp)
        for i in range(200):
            redis("CALL", f"k{i}", "x")
        # n1 begins an actor that n2's vnodes have; that it had no right to is found, stopped and counted.
        fault = fleet.data("n1.fault")
        with open(fault + ".new", "w") as f:
            f.write("stray")
        os.rename(fault + ".new", fault)
        until("n1 takes it", lambda: not os.path.exists(fault))
        code, out, err = fleet.run("fix", "--yes", "--coordinators", fleet.addresses, "--settle-ms", "2500")
        assert code == 0 and "n1 stops the actors" in out, (code, out, err)
        prometheus.fires("RingholdDoubleActivation")
        assert prometheus.value("sum(ringhold_node_double_activations_total)") == 1


def a_configuration_with_a_fault(binary):
    with Fleet(binary) as fleet:
        path = os.path.join(fleet.folder, "ringhold.ini")

        def hang_up(text):
            with open(path, "w") as f:
                f.write("[gateway]\ndrain-ms = 1000\n" + text)
            fleet.process("g1").kill(signal.SIGHUP)

        with open(path, "w") as f:
            f.write("[gateway]\ndrain-ms = 1000\n")
        with started(fleet, gateway=["--config", path]) as prometheus:
            prometheus.is_quiet(fleet)
            hang_up("max-clients = many\n")
            prometheus.fires("RingholdReloadFailed")
            hang_up("max-clients = 500\n")
            prometheus.is_quiet(fleet)


DURABLE = """
local box = ringhold.kind("box", {durable = true})
local wall = ringhold.kind("wall", {durable = true})
function box.put(self, value) ringhold.put("value", value) return "put" end
function box.give(self) ringhold.send_once("wall", "wall", "take") return "given" end
function box.alarm(self, seconds) ringhold.alarm("ring", tonumber(seconds)) return "set" end
function box.on_alarm(self) end
function wall.take(self) error("never") end
"""


def durable_fleet(fleet, *more):
    """A fleet of one node with a store."""
    script = os.path.join(fleet.folder, "durable.lua")
    with open(script, "w") as f:
        f.write(DURABLE)
    fleet.pages = [f"127.0.0.1:{fleet.port()}"]
    fleet.coordinators(1)
    words = ["--lua", script, "--store", f"sqlite:{fleet.folder}/actors.db", "--admin", fleet.pages[0], *more]
    node = fleet.node("n1", words)
    fleet.gateway("g1")
    fleet.settled(["n1"])
    return words, node, Resp(fleet.process("g1").resp, timeout=120)


def a_store_that_is_locked(binary):
    with Fleet(binary) as fleet:
        _words, _node, redis = durable_fleet(fleet)
        with Prometheus(fleet, fleet.pages) as prometheus:
            prometheus.is_quiet(fleet)
            redis("CALL", "ann", "put 0")
            db = sqlite3.connect(f"{fleet.folder}/actors.db", isolation_level=None, timeout=60)

            def slow():
                db.execute("BEGIN IMMEDIATE")
                redis.send(("CALL", "ann", "put 1"))
                until("it has waited for a second", lambda: prometheus.value("max(ringhold_node_store_waiting)"))
                threading.Event().wait(1)
                db.execute("COMMIT")
                redis.read()
                return "RingholdStoreSlow" in prometheus.firing()

            until("it fires", slow)
            prometheus.fires("RingholdStoreSlow")
            db.execute("BEGIN IMMEDIATE")
            redis.send(("CALL", "ann", "put 2"))
            prometheus.fires("RingholdStoreUnavailable")
            db.execute("COMMIT")


def sends_that_nobody_takes(binary):
    with Fleet(binary) as fleet:
        _words, _node, redis = durable_fleet(fleet)
        with Prometheus(fleet, fleet.pages) as prometheus:
            prometheus.is_quiet(fleet)
            ids = itertools.count()

            def more():
                for _ in range(120):
                    redis("CALL", f"k{next(ids)}", "give")
                return "RingholdOutboxGrows" in prometheus.firing()

            until("it fires", more)
            prometheus.fires("RingholdOutboxGrows")


def alarms_that_are_late(binary):
    with Fleet(binary) as fleet:
        words, node, redis = durable_fleet(fleet)
        for i in range(60):
            redis("CALL", f"k{i}", "alarm 1")
        node.kill().wait()
        fleet.node("n1", [*words, "--alarm-rate", "1"])
        with Prometheus(fleet, fleet.pages) as prometheus:
            prometheus.fires("RingholdAlarmsLate")


def the_dashboard_has_answers(binary):
    """Of a fleet that works: all queries but those of a store, which this one has none of."""
    with open(BOARD) as f:
        queries = [t["expr"] for p in json.load(f)["panels"] for t in p.get("targets", [])]
    queries = [q for q in queries if "_store_" not in q]
    assert len(queries) > 40, queries
    with Fleet(binary) as fleet, started(fleet) as prometheus:
        prometheus.is_quiet(fleet)
        for page in fleet.pages:
            with urllib.request.urlopen(f"http://{page}/metrics", timeout=10) as answer:
                subprocess.run(["promtool", "check", "metrics"], input=answer.read(), check=True, timeout=30)
        redis = Resp(fleet.process("g1").resp)
        count = itertools.count()

        def asked():
            redis("CALL", f"k{next(count) % 100}", "x")
            try:
                redis("CALL", "@99/x", "y")
            except RespError as error:
                assert "NOKIND" in str(error), error
            return True

        for q in queries:
            until(f"it has an answer: {q}", lambda q=q: asked() and prometheus.rows(q))


def no_alert_is_left_out(_binary):
    with open(RULES) as f:
        names = set(re.findall(r"alert: (\w+)", f.read()))
    with open(os.path.abspath(__file__)) as f:
        fired = set(re.findall(r'prometheus\.fires\("(\w+)"\)', f.read()))
    assert names == fired, names ^ fired


main([
    no_alert_is_left_out,
    the_dashboard_has_answers,
    a_drain_that_hangs,
    a_change_that_is_tried_again,
    coordinators_that_are_lost,
    a_node_that_is_lost,
    a_lease_that_nearly_ended,
    a_gateway_that_lags,
    an_actor_in_quarantine,
    a_gateway_that_is_full,
    an_actor_that_lives_twice,
    a_configuration_with_a_fault,
    a_store_that_is_locked,
    sends_that_nobody_takes,
    alarms_that_are_late,
])  # fmt: skip
