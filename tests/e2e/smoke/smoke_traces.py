#!/usr/bin/env python3
"""Traces through a real fleet: from a client's packet and CALL … TRACE to the handler, its calls, its commit, a move; each
document of OTLP checked field by field, and by opentelemetry-proto where that is installed."""
import base64
import json
import os
import signal
import sys
import tempfile
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import openmetrics
import packets
from fleet import Fleet, Resp, RespError, main, until
from traces import Collector, Tree, spans_of

GAME = """
local room = ringhold.kind("room", {number = 0})
local chest = ringhold.kind("chest", {number = 1, durable = true})

function room.trace() return ringhold.trace() or "none" end
function room.later() ringhold.sleep(1) return ringhold.trace() or "none" end
function room.open(self) self.opened = "yes" return "open" end
function room.is_open(self) self.asked = "yes" return self.opened or "no" end
function room.was_asked(self) return self.asked or "no" end
function room.rest(_, gate)
    while ringhold.call("room", gate, "is_open") ~= "yes" do ringhold.sleep(20) end
    return "rested"
end
function room.fail() error("no") end
function room.ask(_, id) return (ringhold.call("room", id, "trace")) end
function room.tell(_, id) ringhold.send("room", id, "trace") return "told" end
function chest.add(_, count)
    ringhold.put("gold", (tonumber(ringhold.get("gold")) or 0) + tonumber(count))
    return ringhold.get("gold")
end
"""


def new_trace():
    """A trace and the span of a client, never used before."""
    return os.urandom(16).hex(), os.urandom(8).hex()


def header(trace, span, flags="01"):
    return f"00-{trace}-{span}-{flags}"


class Game:
    def __init__(self, fleet, where, nodes=2, gateway=(), node=()):
        self.fleet = fleet
        self.folder = tempfile.TemporaryDirectory(prefix="ringhold-traces-")
        script = f"{self.folder.name}/game.lua"
        with open(script, "w", encoding="ascii") as file:
            file.write(GAME)
        fleet.coordinators(1)
        for i in range(nodes):
            fleet.node(f"n{i + 1}", ["--lua", script, "--traces", where, "--store", f"sqlite:{self.folder.name}/store.db", *node])
        self.gateway = fleet.gateway("g1", ["--traces", where, "--frames", "127.0.0.1:0", "--http", "127.0.0.1:0", *gateway])
        self.redis = Resp(self.gateway.resp)
        fleet.settled({f"n{i + 1}" for i in range(nodes)})

    def owner(self, key):
        return self.redis("WHERE", key)[1]

    def pair(self):
        """Two ids of different nodes."""
        first = "a0"
        for i in range(1, 1000):
            if self.owner(f"a{i}") != self.owner(first):
                return first, f"a{i}"
        raise AssertionError("one node has all ids")

    def call(self, key, text):
        """Its answer, and the trace that the client has begun for it."""
        trace, span = new_trace()
        return self.redis("CALL", key, text, "TRACE", header(trace, span)), trace, span


def whole(collector, trace, names):
    """The trace's tree, as soon as it has so many spans of these names; every parent is known, and began before."""
    until("the spans are there", lambda: sorted(s.name for s in collector.trace(trace).spans) == sorted(names), 20)
    return collector.trace(trace)


def nested(parent, *children):
    """All on one clock: this machine's. They are within their parent, but for what the two clocks of a process differ by."""
    for child in children:
        assert child.parent == parent.id, (parent, child)
        assert parent.begin - 5e6 <= child.begin and child.end <= parent.end + 5e6, (parent, child)


def a_request_is_one_tree(binary):
    with Fleet(binary) as fleet, Collector() as collector:
        game = Game(fleet, collector.url)
        a, b = game.pair()
        game.call(a, "trace"), game.call(b, "trace")  # they live from here on

        answer, trace, client = game.call(a, "trace")
        tree = whole(collector, trace, ["request", "handler"])
        request, handler = tree.one("request"), tree.one("handler")
        assert request.parent == client and request.service == ("ringhold-gateway", "g1"), request
        nested(request, handler)
        assert answer == header(trace, handler.id), (answer, handler.id)  # what its code is told
        assert handler.service == ("ringhold-node", game.owner(a)), handler
        assert request.attributes == {"ringhold.actor": f"0/{a}", "ringhold.kind": 0, "ringhold.outcome": "ok",
                                      "ringhold.attempts": 1}, request

        answer, trace, _ = game.call(a, "later")  # a handler that finishes later has the same
        tree = whole(collector, trace, ["request", "handler"])
        assert answer == header(trace, tree.one("handler").id), answer

        # To an actor of another node, and of the same one: the call is below the handler that asks.
        for target in (b, "a0b"):
            game.redis("CALL", target, "trace")
            answer, trace, _ = game.call(a, f"ask {target}")
            tree = whole(collector, trace, ["request", "handler", "call", "handler"])
            call = tree.one("call")
            outer, inner = tree.below(tree.one("request"), "handler")[0], tree.below(call, "handler")[0]
            nested(outer, call), nested(call, inner)
            assert inner.service[1] == game.owner(target) and call.service[1] == outer.service[1], tree.spans
            assert answer == header(trace, inner.id), (answer, inner.id)
        answer, trace, _ = game.call(a, f"tell {b}")
        tree = whole(collector, trace, ["request", "handler", "send", "handler"])
        assert tree.one("send").parent == tree.below(tree.one("request"), "handler")[0].id, tree.spans
        assert tree.below(tree.one("send"), "handler"), tree.spans

        game.redis("CALL", "@1/chest", "add 1")
        answer, trace, _ = game.call("@1/chest", "add 2")
        tree = whole(collector, trace, ["request", "handler", "commit"])
        assert answer == "3", answer
        nested(tree.one("handler"), tree.one("commit"))
        nested(tree.one("request"), tree.one("handler"))

        for key in ({}, {"Idempotency-Key": "k1"}):  # by HTTP; its keys go by sessions of their own
            trace, span = new_trace()
            url = f"http://{game.gateway.fields['http']}/v1/actors/0/{a}"
            asked = urllib.request.Request(url, b"trace", {"traceparent": header(trace, span), **key})
            with urllib.request.urlopen(asked) as got:
                answer = got.read().decode()
            tree = whole(collector, trace, ["request", "handler"])
            assert tree.one("request").parent == span and answer == header(trace, tree.one("handler").id), (key, answer)

        trace, span = new_trace()
        try:
            raise AssertionError(game.redis("CALL", a, "fail", "TRACE", header(trace, span)))
        except RespError:
            pass
        tree = whole(collector, trace, ["request", "handler"])
        assert [s.attributes["ringhold.outcome"] for s in tree.spans] == ["error", "error"], tree.spans
        parse_by_proto(collector.documents)


def parse_by_proto(documents):
    """By the protobuf's own definitions. They have ids as base64, and OTLP's JSON as digits: that alone is changed."""
    try:
        from google.protobuf import json_format
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        print("# opentelemetry-proto is not installed: documents are checked by tests/e2e/traces.py alone")
        return
    for document in documents:
        request = json.loads(document)
        for span in (s for r in request["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]):
            for key in {"traceId", "spanId", "parentSpanId"} & set(span):
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
        parsed = json_format.ParseDict(request, ExportTraceServiceRequest())  # refuses unknown fields
        assert parsed.resource_spans[0].scope_spans[0].spans[0].trace_id, document


def a_move_holds_it(binary):
    """An actor at rest in the middle of a message keeps a drain waiting, and what comes meanwhile is held and sent on."""
    with Fleet(binary) as fleet, Collector() as collector:
        game = Game(fleet, collector.url)
        boss, gate = game.pair()
        game.redis("CALL", boss, "trace")
        before = game.owner(boss)
        resting, other = Resp(game.gateway.resp), Resp(game.gateway.resp)
        resting.send(["CALL", boss, f"rest {gate}"])
        until("it is at rest", lambda: game.redis("CALL", gate, "was_asked") == "yes")
        fleet.tell("node", "drain", before)
        trace, span = new_trace()
        other.send(["CALL", boss, "trace", "TRACE", header(trace, span)])
        until("it is held", lambda: sum(n["held"] for n in fleet.status()["nodes"]))
        assert game.redis("CALL", gate, "open") == "open"
        assert resting.read() == "rested"
        answer = other.read()
        until("the drain is over", lambda: game.owner(boss) != before)
        # Each process sends its own.
        until("it was held", lambda: all(collector.trace(trace).named(name) for name in ("request", "hold", "handler")))
        tree = collector.trace(trace)
        request, hold, handler = tree.one("request"), tree.one("hold"), tree.one("handler")
        assert {s.name for s in tree.spans} <= {"request", "hold", "forward", "mailbox", "handler"}, tree.spans
        assert answer == header(trace, handler.id) and handler.service[1] == game.owner(boss) != before, tree.spans
        nested(request, hold, handler, *tree.named("forward"), *tree.named("mailbox"))
        assert hold.service[1] == before, tree.spans
        assert fleet.process(before).log_has(f"settled txn={hold.attributes['ringhold.txn']} "), hold


def packets_bring_it_and_a_file_takes_it(binary):
    with Fleet(binary) as fleet, tempfile.TemporaryDirectory(prefix="ringhold-traces-") as folder:
        path = f"{folder}/spans.jsonl"
        game = Game(fleet, f"file:{path}", nodes=1)
        client = packets.Client(game.gateway.fields["frames"].rsplit(":", 1))
        assert client.ack.flags & packets.ACK_TRACE, client.ack
        trace, span = new_trace()
        context = bytes.fromhex(trace) + bytes.fromhex(span)
        assert client.ask(b"ada", b"trace", trace=context + b"\x00").payload == b"none"
        assert client.ask(b"ada", b"trace", trace=bytes(24) + b"\x01").payload == b"none"
        answer = client.ask(b"ada", b"trace", trace=context + b"\x01", deadline_ms=5000)
        assert answer.payload.startswith(f"00-{trace}-".encode()), answer

        def spans():
            with open(path, encoding="ascii") as file:
                return Tree([s for line in file if line.endswith("\n") for s in spans_of(line) if s.trace == trace])

        until("the file has them", lambda: len(spans().spans) >= 2)
        nested(spans().one("request"), spans().one("handler"))
        assert spans().one("request").parent == span


def what_is_not_sampled_is_not_traced(binary):
    with Fleet(binary) as fleet, Collector() as collector:
        game = Game(fleet, collector.url, nodes=1)
        trace, span = new_trace()
        assert game.redis("CALL", "ada", "trace", "TRACE", header(trace, span, "00")) == "none"
        assert game.redis("CALL", "ada", "trace") == "none"
        for words, why in ((["TRACE", "00-0-0-01"], "traceparent"), (["TRACK", "x"], "TRACE"), (["TRACE"], "TRACE")):
            try:
                raise AssertionError(game.redis("CALL", "ada", "trace", *words))
            except RespError as error:
                assert why in str(error), error
        assert game.redis("TELL", "ada", "trace", "TRACE", header(*new_trace())) == "OK"
        until("that is", lambda: len(collector.spans) == 2)
        assert not collector.trace(trace).spans


def a_part_begins_at_the_gateway(binary):
    with Fleet(binary) as fleet, Collector() as collector:
        game = Game(fleet, collector.url, nodes=1, gateway=["--trace-sample", "1"])
        answer = game.redis("CALL", "ada", "trace")
        trace = answer.split("-")[1]
        until("it has spans", lambda: all(collector.trace(trace).named(n) for n in ("request", "handler")))
        request = collector.trace(trace).one("request")
        assert request.parent is None
        nested(request, collector.trace(trace).one("handler"))
        code, _, err = fleet.run("gateway", "--trace-sample", "0.5")
        assert code == 1 and "--traces" in err, err
        code, _, err = fleet.run("gateway", "--traces", collector.url, "--trace-sample", "2")
        assert code == 1 and "from 0 to 1" in err, err
        for where in ("ftp://x", "file:/nowhere/at/all"):
            code, _, err = fleet.run("node", "--name", "x", "--traces", where)
            assert code == 1 and "--traces" in err, err


def drops_are_counted(binary):
    """A collector that refuses costs spans, and no request."""
    with Fleet(binary) as fleet, Collector() as collector:
        collector.status = 400
        admin = f"127.0.0.1:{fleet.port()}"
        game = Game(fleet, collector.url, nodes=1, gateway=["--admin", admin])
        for _ in range(3):
            game.call("ada", "trace")
        until("it has refused", lambda: game.gateway.log_has("not_taken"))
        with urllib.request.urlopen(f"http://{admin}/metrics", timeout=60) as page:
            metrics = page.read().decode()
        assert 'ringhold_trace_spans_dropped_total{reason="rejected"} ' in metrics, metrics
        assert 'ringhold_trace_spans_dropped_total{reason="rejected"} 0' not in metrics, metrics
        collector.status = 200
        _, trace, _ = game.call("ada", "trace")
        until("it goes on", lambda: len(collector.trace(trace).spans) >= 2)


def a_stop_does_not_wait_for_each_document(binary):
    """The collector is away, and many are queued: one more try of the one that waits is all that keeps the process."""
    with Fleet(binary) as fleet, Collector() as collector:
        collector.status = 503
        game = Game(fleet, collector.url, nodes=1, gateway=["--trace-rate", "100000"])
        for _ in range(20):
            commands = [["CALL", "ada", "trace", "TRACE", header(*new_trace())] for _ in range(200)]
            game.redis.send(*commands)
            for _ in commands:
                game.redis.read()
        game.gateway.kill(signal.SIGTERM)
        assert game.gateway.wait() == 0
        of_gateway = {body for body in collector.refused if b"ringhold-gateway" in body}
        assert 1 <= len(of_gateway) <= 3, len(of_gateway)  # of eight


def buckets_name_the_last_trace_in_them(binary):
    """Exemplars: of requests, at the gateway and at nodes, and of calls; each is the span of a trace that the collector has."""
    if openmetrics.is_missing():
        return
    with Fleet(binary) as fleet, Collector() as collector:
        admins = [f"127.0.0.1:{fleet.port()}" for _ in range(2)]
        game = Game(fleet, collector.url, nodes=1, gateway=["--admin", admins[0]], node=["--admin", admins[1]])
        game.redis("CALL", "ada", "trace")
        for address in admins:
            assert not openmetrics.exemplars(openmetrics.scrape(address)[1]), "nothing was traced"
        traces = {game.call("ada", "ask bob")[1] for _ in range(10)}
        try:
            game.call("ada", "fail")
        except RespError:
            pass
        told = {("ringhold_gateway_request_seconds", "request", "ok"), ("ringhold_gateway_request_seconds", "request", "error"),
                ("ringhold_node_request_seconds", "handler", "ok"), ("ringhold_node_request_seconds", "handler", "error"),
                ("ringhold_node_call_seconds", "call", "ok")}
        found = set()
        for address in admins:
            for name, labels, exemplar, below in openmetrics.exemplars(openmetrics.scrape(address)[1]):
                trace, id_ = exemplar.labels["trace_id"], exemplar.labels["span_id"]
                until("the span is there", lambda: id_ in collector.trace(trace).by_id)
                span = collector.trace(trace).by_id[id_]
                assert below <= exemplar.value < float(labels["le"]), (labels, exemplar)
                assert labels["kind"] == "0" and labels["outcome"] == span.attributes["ringhold.outcome"], (labels, span)
                assert trace in traces or labels["outcome"] == "error", (traces, exemplar)
                assert abs(float(exemplar.timestamp) - span.end / 1e9) < 0.1, (exemplar, span.end)
                found.add((name, span.name, labels["outcome"]))
        assert found == told, found
        with urllib.request.urlopen(f"http://{admins[0]}/metrics", timeout=60) as page:
            assert "trace_id" not in page.read().decode(), "the classic text has none"


main([a_request_is_one_tree, a_move_holds_it, packets_bring_it_and_a_file_takes_it, what_is_not_sampled_is_not_traced,
      a_part_begins_at_the_gateway, drops_are_counted, a_stop_does_not_wait_for_each_document,
      buckets_name_the_last_trace_in_them])
