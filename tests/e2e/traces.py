"""A collector of traces that checks each document field by field against OTLP's JSON encoding
(opentelemetry-proto, trace/v1), and finds the spans of a trace."""
import http.server
import json
import re
import threading
import time

KINDS = {"request": 2, "call": 3, "send": 4, "hold": 1, "forward": 1, "mailbox": 1, "handler": 2, "commit": 3}
SERVICES = {"ringhold-gateway", "ringhold-node"}


def only(value, required, optional=()):
    """An object with these keys, and no others."""
    assert isinstance(value, dict), value
    assert set(required) <= set(value) <= set(required) | set(optional), value
    return value


def hexadecimal(text, digits):
    assert isinstance(text, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", text) and set(text) != {"0"}, text


def attributes(list_):
    """Keys and values: each of one type, whole numbers as text, as JSON of a protobuf's int64 is."""
    found = {}
    for pair in list_:
        only(pair, ["key", "value"])
        (type_, value), = only(pair["value"], [], ["stringValue", "intValue"]).items()
        assert isinstance(pair["key"], str) and pair["key"] not in found and isinstance(value, str), pair
        found[pair["key"]] = int(value) if type_ == "intValue" else value
    return found


class Span:
    def __init__(self, span, resource):
        only(span, ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"],
             ["parentSpanId"])
        hexadecimal(span["traceId"], 32)
        hexadecimal(span["spanId"], 16)
        if "parentSpanId" in span:
            hexadecimal(span["parentSpanId"], 16)
        for key in ("startTimeUnixNano", "endTimeUnixNano"):
            assert isinstance(span[key], str) and re.fullmatch("[1-9][0-9]*", span[key]), span
        self.trace, self.id, self.parent = span["traceId"], span["spanId"], span.get("parentSpanId")
        self.name, self.resource = span["name"], resource
        self.begin, self.end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        self.attributes = attributes(span["attributes"])
        self.service = resource["service.name"], resource["service.instance.id"]
        assert span["kind"] == KINDS[self.name], span
        assert self.begin <= self.end and abs(self.end / 1e9 - time.time()) < 3600, span
        known = {"ringhold.actor", "ringhold.kind", "ringhold.outcome"}
        if self.name == "hold":
            known |= {"ringhold.cause", "ringhold.txn"}
        if self.name in ("request", "call", "send") and "ringhold.attempts" in self.attributes:
            known |= {"ringhold.attempts"}
        assert set(self.attributes) == known, span
        good = self.attributes["ringhold.outcome"] == "ok"
        assert span["status"] == ({} if good else {"code": 2, "message": self.attributes["ringhold.outcome"]}), span

    def __repr__(self):
        return f"{self.name} of {self.service[1]} {self.attributes}"


def spans_of(text):
    """Of one ExportTraceServiceRequest."""
    found = []
    for resource_spans in only(json.loads(text), ["resourceSpans"])["resourceSpans"]:
        only(resource_spans, ["resource", "scopeSpans"])
        resource = attributes(only(resource_spans["resource"], ["attributes"])["attributes"])
        assert set(resource) == {"service.name", "service.instance.id", "service.namespace", "service.version"}, resource
        assert resource["service.name"] in SERVICES, resource
        for scope_spans in resource_spans["scopeSpans"]:
            only(scope_spans, ["scope", "spans"])
            assert scope_spans["scope"] == {"name": "ringhold"}, scope_spans
            found += [Span(span, resource) for span in scope_spans["spans"]]
    return found


class Tree:
    """The spans of one trace."""

    def __init__(self, spans):
        self.spans = spans
        self.by_id = {s.id: s for s in spans}
        assert len(self.by_id) == len(spans), "two spans have one id"

    def named(self, name):
        return [s for s in self.spans if s.name == name]

    def one(self, name):
        found = self.named(name)
        assert len(found) == 1, (name, self.spans)
        return found[0]

    def below(self, parent, name=None):
        return [s for s in self.spans if s.parent == parent.id and name in (None, s.name)]


class Collector:
    """An HTTP server that takes what is sent to /v1/traces, or answers with `status`."""

    def __init__(self):
        self.documents, self.faults, self.spans, self.refused = [], [], [], []
        self.status = 200
        self.lock = threading.Lock()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = collector.take(self.path, self.headers["Content-Type"], body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def take(self, path, type_, body):
        with self.lock:
            if self.status != 200:
                self.refused.append(body)
                return self.status
            try:
                assert (path, type_) == ("/v1/traces", "application/json"), (path, type_)
                self.spans += spans_of(body)
                self.documents.append(body)
            except Exception as fault:  # the test fails with it: check()
                self.faults.append(repr(fault))
        return 200

    def trace(self, id_):
        with self.lock:
            assert not self.faults, self.faults
            return Tree([s for s in self.spans if s.trace == id_])
