#!/usr/bin/env python3
"""HTTP for back ends: curl, Python's and Node's clients, by TLS and with tokens; each status of docs/openapi.yaml; a request that
is asked twice while its actor moves; events, resumed at another gateway; the large, the slow, the smuggled.
"""
import http.client
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import certificates
import yaml
from fleet import DEADLINE, Fleet, Resp, main, until
from packets import token

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
OPENAPI = os.path.join(ROOT, "docs", "openapi.yaml")
SECRET = b"s" * 32
MIB = 1024 * 1024


def plugin(fleet, name):
    return os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", name)


def skipped(what, why):
    print(f"ok - {what} # SKIP {why}", flush=True)


class Back:
    """A back end's connection; it remembers which status each kind of path was answered with."""

    seen = set()  # (path as in openapi.yaml, status)

    def __init__(self, address, context=None):
        host, port = address.rsplit(":", 1)
        self.http = http.client.HTTPConnection(host, int(port), timeout=DEADLINE)
        if context:
            self.http = http.client.HTTPSConnection(host, int(port), timeout=DEADLINE, context=context)

    def __call__(self, method, path, body=None, **headers):
        self.http.request(method, path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = self.http.getresponse()
        text = answer.read()
        tail = re.sub(r"^/v1/actors/[^/?]*/[^/?]*", "", path).split("?")[0]
        self.seen.add(("/v1/actors/{kind}/{id}" + tail, answer.status))
        if answer.status >= 400 and method != "HEAD":
            problem = json.loads(text)
            assert answer.headers["Content-Type"] == "application/problem+json" and problem["status"] == answer.status, problem
            assert isinstance(problem["may_have_run"], bool) and problem["type"].startswith("urn:ringhold:problem:"), problem
            return answer.status, answer.headers, problem
        return answer.status, answer.headers, text

    def close(self):
        self.http.close()


def start(fleet, *gateway, node=("--kind", "0:echo")):
    fleet.coordinators(1)
    fleet.node("n1", node)
    fleet.settled(["n1"])
    g = fleet.gateway("g1", ["--http", "127.0.0.1:0", *gateway])
    return g, g.fields["http"]


def figures(gateway):
    text = Resp(gateway.resp)("INFO", "http")
    return {k: int(v) for k, v in (line.split(":") for line in text.split("\r\n") if ":" in line)}


def counts(gateway, **right):
    until(f"figures are {right}", lambda: right.items() <= figures(gateway).items())


def curl(*words):
    """(status, headers in small letters, body)"""
    done = subprocess.run(["curl", "-sS", "-i", "-m", "30", *words], capture_output=True, check=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    while head.split()[1] == b"100":
        head, _, body = body.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}, body


def curl_calls_and_tells(binary):
    if not shutil.which("curl"):
        skipped("curl_calls_and_tells", "there is no curl")
        return
    with Fleet(binary) as fleet:
        g, address = start(fleet, "--threads", "2")
        url = f"http://{address}/v1/actors/0/ada"
        assert curl("-d", "hello", url)[::2] == (200, b"hello")
        assert curl("-d", "hello", url + "?mode=tell")[::2] == (202, b"")
        assert curl("-d", "hello", url + "?mode=read&deadline=2s")[::2] == (200, b"hello")
        assert curl("-H", "Transfer-Encoding: chunked", "-d", "in chunks", url)[::2] == (200, b"in chunks")
        first = curl("-H", "Idempotency-Key: k1", "-d", "one", url)
        again = curl("-H", "Idempotency-Key: k1", "-H", f"Ringhold-Again: {first[1]['ringhold-ring']}", "-d", "two", url)
        assert first[2] == again[2] == b"one", (first, again)
        back = Back(address)
        assert back("POST", "/v1/actors/0/ada?mode=tell", b"told", Idempotency_Key="k2")[0] == 202
        assert back("POST", "/v1/actors/0/ada", b"asked", Idempotency_Key="k2")[2] == b"told"  # what it came to
        back.close()
        status, _, where = curl(url + "/where")
        assert status == 200 and json.loads(where)["node"] == "n1", where
        assert curl("-I", url + "/where")[0] == 200
        # A large body, by a client that asks first if it may; then one that is too large, and much more.
        big = fleet.data("big")
        for size, right in ((1000000, 200), (MIB + 1, 413), (20 * MIB, 413)):
            with open(big, "wb") as f:
                f.write(b"x" * size)
            for expect in ("Expect: 100-continue", "Expect:"):
                if (size, expect) != (20 * MIB, "Expect:"):  # it may lose the answer while it sends
                    assert curl("--data-binary", f"@{big}", "-H", expect, url)[0] == right, (size, expect)
        counts(g, http_body_too_large=3)


def tls_and_tokens(binary):
    with Fleet(binary) as fleet:
        chain, key = certificates.make(fleet, "gateway")
        keys = fleet.data("keys")
        with open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(f"k1 hex:{SECRET.hex()}\n")
        g, plain = start(fleet, "--https", "127.0.0.1:0", "--tls-cert", chain, "--tls-key", key, "--auth-keys", keys)
        mine = {"Authorization": "Bearer " + token("k1", SECRET, b"ada")}
        late = {"Authorization": "Bearer " + token("k1", SECRET, b"ada", ttl=-10)}
        back = Back(g.fields["https"], certificates.trusting(chain, alpn=("http/1.1",)))
        for _ in range(3):
            assert back("POST", "/v1/actors/0/ada", b"x", **mine)[::2] == (200, b"x")
        assert back("POST", "/v1/actors/0/eve", b"x", **mine)[0] == 403
        assert back("POST", "/v1/actors/0/ada", b"x" * 200000, **mine)[2] == b"x" * 200000
        for headers, reason in (({}, "no_token"), (late, "token_expired"), ({"Authorization": "Bearer x"}, "token_malformed")):
            status, head, problem = Back(plain)("POST", "/v1/actors/0/ada", b"x", **headers)
            assert status == 401 and head["WWW-Authenticate"] == "Bearer" and problem["type"].endswith(reason), problem
        for path in ("/where", "/events"):
            assert Back(plain)("GET", "/v1/actors/0/ada" + path)[0] == 401
            assert Back(plain)("GET", "/v1/actors/0/eve" + path, **mine)[0] == 403
        if shutil.which("curl"):
            url = f"https://{g.fields['https']}/v1/actors/0/ada"
            assert curl("--cacert", chain, "-H", f"Authorization: {mine['Authorization']}", "-d", "hi", url)[::2] == (200, b"hi")
            assert curl("--cacert", chain, "-d", "hi", url)[0] == 401
        counts(g, http_token_expired=1, http_token_malformed=1, http_other_entity=3)
        # A login is a dialogue, which one request can't have.
        words = ["--http", "127.0.0.1:0", "--auth-kind", "1"]
        code, _, err = fleet.run("gateway", "--name", "g9", "--resp", "127.0.0.1:0", "--join", fleet.addresses, *words)
        assert code == 1 and "they need --auth-keys" in err, err


def raw(address, text, shut=False):
    """All that comes until the gateway closes."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=DEADLINE) as s:
        s.sendall(text)
        if shut:
            s.shutdown(socket.SHUT_WR)
        said = b""
        while more := s.recv(65536):
            said += more
        return said


def hostile_requests_are_refused(binary):
    host = b"Host: a\r\n"
    call = b"POST /v1/actors/0/ada HTTP/1.1\r\n" + host
    with Fleet(binary) as fleet:
        g, address = start(fleet)
        hasty = fleet.gateway("g2", ["--http", "127.0.0.1:0", "--opening-time", "2s"])
        hidden = call + b"Content-Length: 6\r\n\r\nhidden"
        cases = {
            b"400 ": (call + b"Content-Length: 4\r\nContent-Length: 80\r\n\r\nabcd" + hidden,
                      call + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
                      call + b"X: y\n" + hidden, call + b" folded\r\n\r\n" + hidden, b"\x16\x03\x01\x00\x05hello"),
            b"431 ": (call + b"X: " + b"y" * 9000,), b"505 ": (b"GET / HTTP/2.0\r\n\r\n",),
            b"501 ": (call + b"Transfer-Encoding: gzip\r\n\r\n",), b"417 ": (call + b"Expect: x\r\n\r\n",),
            b"408 ": (call + b"X: y\r\n",),  # a header that never ends: the time is over in some seconds
        }  # fmt: skip
        for status, texts in cases.items():
            for text in texts:
                said = raw(hasty.fields["http"] if status == b"408 " else address, text)
                assert said.startswith(b"HTTP/1.1 " + status) and len(re.findall(rb"HTTP/1\.1 \d{3} ", said)) == 1, (text, said)
                Back.seen.add(("/v1/actors/{kind}/{id}", int(status)))
        # Answers come in the order of the requests, also when all of them came at once; and behind the last the line ends.
        many = b"".join(call + b"Content-Length: 3\r\n\r\n%03d" % i for i in range(300))
        said = raw(address, many, shut=True)
        assert re.findall(rb"\r\n\r\n(\d{3})", said) == [b"%03d" % i for i in range(300)]
        assert raw(address, b"GET /v1/actors/0/a/where HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Connection: close\r\n" in raw(address, call + b"Connection: close\r\n\r\n")
        counts(g, http_bad_length=2, http_bad_header=2, http_bad_request_line=1, http_head_too_large=1)
        counts(hasty, http_timeout=1)
        # What comes by a web page does not run, whoever is tricked into opening it.
        assert Back(address)("POST", "/v1/actors/0/ada", b"x", Origin="https://evil.example")[0] == 403


def description():
    with open(OPENAPI, encoding="utf-8") as f:
        return yaml.safe_load(f)


def each_status_has_its_cause(binary):
    described = description()
    with Fleet(binary) as fleet:
        kinds = ("--kind", f"0:{plugin(fleet, 'pusher.so')}", "--kind", "1:echo", "--kind", f"2:{plugin(fleet, 'unruly.so')}")
        g, address = start(fleet, "--request-rate", "10", "--request-burst", "50", node=kinds)
        boss = "/v1/actors/0/boss"
        back = Back(address)
        assert back("POST", boss, b"run 1")[2] == b"1"
        assert back("POST", boss + "?mode=tell", b"run 2")[0] == 202
        assert back("OPTIONS", boss)[:2][0] == 204
        assert back("POST", "/v1/actors/player/x")[0] == 400
        assert back("POST", "/v1/actors/9/x")[2]["code"] == "NOKIND"
        status, _, problem = back("POST", "/v1/actors/2/a", b"fail")
        assert (status, problem["code"], problem["may_have_run"]) == (422, "ACTOR_FAILED", True), problem
        assert back("POST", boss, b"x", Content_Encoding="gzip")[0] == 415
        assert back("POST", boss, b"x" * (MIB + 1))[0] == 413
        assert back("POST", boss, b"run 3", Origin="https://a.example")[0] == 403
        back = Back(address)  # whoever is refused much has to wait a little
        for path, methods in (("", "POST, OPTIONS"), ("/where", "GET, HEAD, OPTIONS"), ("/events", "GET, OPTIONS")):
            assert back("DELETE", boss + path)[1]["Allow"] == methods
            assert back("OPTIONS", boss + path)[1]["Allow"] == methods
            assert Back(address)("GET" if path else "POST", f"/v1/actors/x/y{path}")[0] == 400
        assert back("HEAD", boss + "/where")[0] == 200
        where = json.loads(back("GET", boss + "/where")[2])
        assert set(described["components"]["schemas"]["Where"]["required"]) == set(where) and where["actor"] == "0/boss", where
        assert Back(address)("GET", "/v1/actors/1/a/events")[0] == 409
        assert Back(address)("GET", "/v1/actors/9/a/events")[0] == 404
        assert Back(address)("GET", boss + "/events", Last_Event_ID="x")[0] == 400
        gone = "AAAAAAAAAAEAAAAAAAAAAgAAAAAAAAAD.1"
        assert Back(address)("GET", boss + "/events", Last_Event_ID=gone)[0] == 410
        # One that is never answered: it may run still. Its key is in use meanwhile.
        slow, before = Back(address), figures(g)["http_requests"]
        slow.http.request("POST", "/v1/actors/2/x?deadline=60s", body=b"defer", headers={"Idempotency-Key": "k"})
        counts(g, http_requests=before + 1)
        assert Back(address)("POST", "/v1/actors/2/x", b"defer", Idempotency_Key="k")[0] == 409
        status, _, problem = Back(address)("POST", "/v1/actors/2/x?deadline=100ms", b"defer")
        assert (status, problem["code"], problem["may_have_run"]) == (504, "TIMEOUT", True), problem
        slow.close()
        until("it asks too fast", lambda: back("POST", boss, b"run 4")[0] == 429, pause=0)


def what_came_is_what_is_described(_):
    """Both ways, but for what only a crash or a storm brings, which tests/gateway/client_http_test.c has."""
    if len(sys.argv) > 2:
        skipped("what_came_is_what_is_described", "it needs what all other cases have seen")
        return
    paths = {path: {int(s) for m in item.values() if isinstance(m, dict) for s in m["responses"]}
             for path, item in description()["paths"].items()}  # fmt: skip
    came = {path: {s for p, s in Back.seen if p == path} for path in paths}
    shared = {401, 408, 429, 431, 505}  # before the path is looked at
    for path, statuses in paths.items():
        assert came[path] <= statuses, f"{path} is answered {came[path] - statuses}, which {OPENAPI} does not say"
        missing = statuses - came[path] - {502, 503} - ({504} if path.endswith("events") else set())
        missing -= shared if path != "/v1/actors/{kind}/{id}" else set()
        assert not missing, f"{path}: {missing} never came"


def the_description_passes_a_linter(_):
    command = [sys.executable, "-m", "openapi_spec_validator", OPENAPI]
    if subprocess.run([sys.executable, "-c", "import openapi_spec_validator"], capture_output=True, check=False).returncode != 0:
        skipped("the_description_passes_a_linter", "there is no openapi-spec-validator: pip install openapi-spec-validator")
        return
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def a_key_asked_twice_in_a_drain_runs_once(binary):
    actors, rounds = 6, 25
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            fleet.node(name, ["--actor", plugin(fleet, "pusher.so")])
        fleet.settled(["n1", "n2"])
        addresses = [fleet.gateway(name, ["--http", "127.0.0.1:0"]).fields["http"] for name in ("g1", "g2")]
        where = Back(addresses[0])
        ids = (f"a{i}" for i in range(1000) if json.loads(where("GET", f"/v1/actors/0/a{i}/where")[2])["node"] == "n1")
        moving = list(itertools.islice(ids, actors))
        wrong = []
        drained = threading.Event()

        def play(actor):
            lines = [Back(a) for a in addresses]
            number = 0
            while number < rounds or not drained.is_set():
                number += 1
                for back in (lines[number % 2], lines[(number + 1) % 2], lines[number % 2]):
                    answer = back("POST", f"/v1/actors/0/{actor}", b"run %d" % number, Idempotency_Key=f"{actor}-{number}")
                    if answer[::2] != (200, b"%d" % number):
                        wrong.append(answer)
            score = lines[0]("POST", f"/v1/actors/0/{actor}", b"score")[2]
            if score != b"%d 0" % number:
                wrong.append((number, score))

        players = [threading.Thread(target=play, args=(actor,)) for actor in moving]
        for p in players:
            p.start()
        fleet.tell("node", "drain", "n1", "--wait", "60")
        drained.set()
        for p in players:
            p.join()
        assert not wrong, wrong[:3]


class Events:
    """Who listens: events as (name, id, data)."""

    def __init__(self, address, actor, last=""):
        host, port = address.rsplit(":", 1)
        self.http = http.client.HTTPConnection(host, int(port), timeout=DEADLINE)
        self.http.request("GET", f"/v1/actors/0/{actor}/events", headers={"Last-Event-ID": last} if last else {})
        self.answer = self.http.getresponse()
        self.status = self.answer.status
        Back.seen.add(("/v1/actors/{kind}/{id}/events", self.status))

    def next(self):
        name, last, data = "message", "", []
        while line := self.answer.readline().decode().rstrip("\n"):
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "id":
                last = value
            elif field == "data":
                data.append(value)
        return name, last, "\n".join(data)

    def close(self):
        self.answer.close()
        self.http.close()


def pushes_come_as_events(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ["--actor", plugin(fleet, "pusher.so")])
        fleet.settled(["n1"])
        gateways = [fleet.gateway(name, ["--http", "127.0.0.1:0"]) for name in ("g1", "g2")]
        one, two = (g.fields["http"] for g in gateways)
        back = Back(two)
        events = Events(one, "ada")
        assert events.status == 200 and events.answer.headers["Content-Type"] == "text/event-stream"
        name, session, data = events.next()
        assert name == "session" and json.loads(data) == {"next": 1, "keep_ms": 30000}, data
        assert events.next()[2] == "hello"  # as it is bound
        assert back("POST", "/v1/actors/0/ada", b"push over HTTP")[0] == 200
        name, last, data = events.next()
        assert (name, data) == ("message", "over HTTP") and last == session[:-1] + "2", (name, last, data)
        # Its gateway is killed; what is pushed meanwhile comes by the other one, once.
        gateways[0].kill()
        assert back("POST", "/v1/actors/0/ada", b"push while away")[0] == 200
        events = Events(two, "ada", last)
        assert events.next()[0] == "session"
        assert events.next()[2] == "while away"
        assert back("POST", "/v1/actors/0/ada", b"kick bye")[0] == 200
        while (name := events.next())[0] != "kick":
            assert name[0] == "message"
        assert json.loads(name[2]) == {"code": 1007, "text": "bye"}
        assert events.answer.readline() == b""
        assert Events(two, "ada", last).status == 410  # nothing to come back to: an EventSource stops
        # Another one takes its place, and a gateway that stops lets go of who listens.
        events = Events(two, "eve")
        assert events.next()[0] == "session"
        assert events.next()[2] == "hello"
        gateways[1].kill(15)
        while events.answer.readline():
            pass
        assert gateways[1].wait() == 0


NODE = """
const [url] = process.argv.slice(1);
const say = async (path, options) => { const a = await fetch(url + path, options); return [a.status, await a.text()]; };
const key = { "Idempotency-Key": "order-1" };
const got = [
  await say("/ada", { method: "POST", body: "hello" }),
  await say("/ada?mode=tell", { method: "POST", body: "hello" }),
  await say("/ada", { method: "POST", body: "one", headers: key }),
  await say("/ada", { method: "POST", body: "two", headers: key }),
  await say("/ada", { method: "POST", body: new Blob(["in ", "parts"]).stream(), duplex: "half" }),
  (await say("/ada")).slice(0, 1),
];
const all = await Promise.all([...Array(50).keys()].map((i) => say("/id-" + i, { method: "POST", body: "" + i })));
console.log(JSON.stringify([...got, all.every(([status, text], i) => status === 200 && text === "" + i)]));
"""


def nodes_fetch_is_served(binary):
    node = shutil.which("node") or shutil.which("nodejs")
    if not node or subprocess.run([node, "-e", "fetch"], capture_output=True, check=False).returncode != 0:
        skipped("nodes_fetch_is_served", "there is no Node.js with fetch")
        return
    with Fleet(binary) as fleet:
        _, address = start(fleet)
        words = [node, "--input-type=module", "-e", NODE, f"http://{address}/v1/actors/0"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, check=False)
        assert done.returncode == 0, done.stderr
        right = [[200, "hello"], [202, ""], [200, "one"], [200, "one"], [200, "in parts"], [405], True]
        assert json.loads(done.stdout) == right, done.stdout


main([curl_calls_and_tells, tls_and_tokens, hostile_requests_are_refused, each_status_has_its_cause,
      the_description_passes_a_linter, a_key_asked_twice_in_a_drain_runs_once, pushes_come_as_events,
      nodes_fetch_is_served, what_came_is_what_is_described])  # fmt: skip
