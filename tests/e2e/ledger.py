"""An independent judge of a fleet: clients that remember every request, the journals that the
ledger actors wrote, and the rules that both together must keep.

    load = Load(gateways, ids=400, clients=4, rate=1500)
    ...                       # hurt the fleet; tell `faults` who was killed, stopped or cut off
    requests = load.finish()
    verdict = judge(requests, folder, faults)
    verdict.must_be_clean()

It knows nothing of rings, leases or transactions: their faults cannot hide from it. Times of
clients and journals are CLOCK_BOOTTIME of this machine, in nanoseconds.
"""
import collections
import glob
import multiprocessing
import os
import random
import re
import selectors
import socket
import struct
import time

ACTIVATE, RUN_BEGIN, RUN_END, EXPORT, RESUME, DISCARD = range(1, 7)
HEADER = 80
RECORD = struct.Struct("<QQQQII")
ANSWERED = {"OK", "ERROR"}


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def id_hash(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


# ---- clients

Request = collections.namedtuple("Request", "client id seq sent_ns answered_ns code text")


class Client:
    """One connection. A new one gets a new number: order is promised within a connection."""

    def __init__(self, number, address):
        self.number = number
        self.socket = socket.create_connection(address, timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.seq = collections.Counter()
        self.flying = collections.deque()  # (id, seq, sent_ns), in the order of their answers
        self.inside = b""
        self.out = b""


def resp(words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def take_reply(data):
    """(reply line, rest) or (None, data). The ledger answers with bulk strings and errors only."""
    end = data.find(b"\r\n")
    if end < 0:
        return None, data
    if data[:1] == b"$" and data[1:2] != b"-":
        size = int(data[1:end])
        if len(data) < end + 4 + size:
            return None, data
        return b"+" + data[end + 2 : end + 2 + size], data[end + 4 + size :]
    return data[:end], data[end + 2 :]


class Driver:
    """The load, in a process of its own: asks `rate` requests a second in all, whatever happens."""

    def __init__(self, gateways, options):
        self.gateways = gateways
        self.options = options
        self.random = random.Random(options["seed"])
        self.selector = selectors.DefaultSelector()
        self.clients = []
        self.number = 0
        self.done = []
        self.sent = 0

    def dial(self, turn):
        for step in range(len(self.gateways)):
            try:
                client = Client(self.number + 1, self.gateways[(turn + step) % len(self.gateways)])
            except OSError:
                continue
            self.number += 1
            self.selector.register(client.socket, selectors.EVENT_READ, client)
            return client
        return None

    def lose(self, client):
        """The connection broke: what it asked for has no answer and never will."""
        self.selector.unregister(client.socket)
        client.socket.close()
        for name, seq, sent in client.flying:
            self.done.append(Request(client.number, name, seq, sent, now_ns(), "CUT", ""))
        client.flying.clear()
        self.clients[self.clients.index(client)] = None

    def ask(self, client):
        # A few ids get a third of the requests.
        hot = self.random.random() < 0.33
        name = f"p{self.random.randrange(self.options['hot'] if hot else self.options['ids'])}"
        if self.options["each"]:
            name = f"p{self.clients.index(client) % self.options['ids']}"
        key = name
        if self.options["keys"]:
            key, name = self.random.choice(self.options["keys"])
        client.seq[name] += 1
        seq = client.seq[name]
        text = f"{client.number} {seq}"
        if self.options["slow_ms"] and self.random.random() < 0.002:
            text += f" {self.options['slow_ms']}"
        client.flying.append((name, seq, now_ns()))
        client.out += resp([b"CALL", key.encode(), text.encode()])
        self.sent += 1

    def write(self, client):
        try:
            if client.out:
                client.out = client.out[client.socket.send(client.out) :]
        except BlockingIOError:
            pass
        except OSError:
            self.lose(client)

    def read(self, client):
        try:
            data = client.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lose(client)
            return
        client.inside += data
        while True:
            reply, client.inside = take_reply(client.inside)
            if reply is None:
                return
            name, seq, sent = client.flying.popleft()
            text = reply.decode(errors="replace")
            word = text[1:].split(" ")[0]
            if reply[:1] == b"+":
                code = "OK"
            elif word in ("UNKNOWN", "TIMEOUT", "OVERLOADED", "MOVING", "NOKIND"):
                code = word
            else:
                code = "ERROR"
            self.done.append(
                Request(client.number, name, seq, sent, now_ns(), code, "" if code == "OK" else text)
            )

    def run(self, pipe):
        begin = last_dial = time.monotonic()
        self.clients = [None] * self.options["clients"]
        running = True
        until_end = None
        while True:
            now = time.monotonic()
            for i, client in enumerate(self.clients):
                if client is None and running and (now - last_dial > 0.05 or self.number < i + 1):
                    self.clients[i] = self.dial(i)
                    last_dial = now
            owed = int((now - begin) * self.options["rate"]) - self.sent if running else 0
            window = 1 if self.options["each"] else self.options["window"]
            alive = [c for c in self.clients if c and len(c.flying) < window]
            if owed > self.options["rate"]:  # nobody took them: forget, or it would come as one flood
                self.sent += owed - self.options["rate"]
            if self.options["each"]:
                for client in alive:
                    self.ask(client)
                owed = 0
            for _ in range(min(owed, 200) if alive else 0):
                self.ask(self.random.choice(alive))
            for client in list(self.clients):
                if client and client.out:
                    self.write(client)
            for key, _ in self.selector.select(0.002):
                self.read(key.data)
            if pipe.poll():
                word = pipe.recv()
                if word == "count":
                    pipe.send(len(self.done))
                elif word == "finish":
                    running = False
                    until_end = now + self.options["patience"]
            left = sum(len(c.flying) for c in self.clients if c)
            if not running and (left == 0 or now > until_end):
                break
        for client in self.clients:
            for name, seq, sent in client.flying if client else ():
                self.done.append(Request(client.number, name, seq, sent, 0, "NONE", ""))
        pipe.send([tuple(r) for r in self.done])


class Load:
    """`inside`: called first in the load's process (a namespace to enter, say). `each`: a client
    asks for one id only, and not before its last answer came. `keys`: (what a client says, the
    actor's id) of all that are asked for, instead of `ids`."""

    def __init__(self, gateways, inside=None, **options):
        self.options = {
            "ids": 400, "hot": 8, "clients": 6, "rate": 1500, "window": 256, "slow_ms": 0,
            "patience": 40, "seed": 1, "each": False, "keys": [],
            **options,
        }  # fmt: skip
        self.pipe, other = multiprocessing.Pipe()

        def work():
            if inside:
                inside()
            Driver(list(gateways), self.options).run(other)

        self.process = multiprocessing.Process(target=work, daemon=True)
        self.process.start()

    def answered(self):
        """So many requests were answered up to now."""
        self.pipe.send("count")
        return self.pipe.recv()

    def finish(self):
        """Stop asking, wait for what is under way; returns every request."""
        self.pipe.send("finish")
        done = [Request(*r) for r in self.pipe.recv()]
        self.process.join(10)
        return done


# ---- journals


class Journal:
    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        assert data[:8] == b"RHJRNL01", path
        self.node = data[8:HEADER].rstrip(b"\0").decode()
        self.pid = int(re.search(r"-(\d+)\.journal$", path).group(1))
        self.records = []
        for at in range(HEADER, len(data) - RECORD.size + 1, RECORD.size):
            record = RECORD.unpack_from(data, at)
            if record[5] == 0:
                break
            self.records.append(record)


class Faults:
    """What the test did to nodes: by process id."""

    def __init__(self):
        self.dead = {}  # pid -> when its end was seen
        self.halted = set()  # stopped or cut off for longer than a lease

    def killed(self, process):
        self.dead[process.popen.pid] = now_ns()

    def halts(self, process):
        self.halted.add(process.popen.pid)


# ---- the verdict

Verdict = collections.namedtuple(
    "Verdict",
    "requests codes unanswered lost run_twice ran_refused out_of_order live_twice first",
)


def _words(v):
    codes = ", ".join(f"{k} {n}" for k, n in sorted(v.codes.items()))
    return (
        f"{v.requests} requests ({codes}); unanswered {v.unanswered} lost {v.lost} duplicated "
        f"{v.run_twice} out-of-order {v.out_of_order} live-twice {v.live_twice}"
    )


def _must_be_clean(v, planned=False):
    bad = [
        name
        for name in ("unanswered", "lost", "run_twice", "ran_refused", "out_of_order", "live_twice")
        if getattr(v, name)
    ]
    if planned and set(v.codes) - {"OK"}:
        bad.append(f"answers that are not OK: {v.codes}")
    assert not bad, f"{bad}: {_words(v)}; first: {v.first}"


Verdict.words = _words
Verdict.must_be_clean = _must_be_clean


class _Judge:
    def __init__(self, faults):
        self.faults = faults
        self.count = collections.Counter()
        self.first = ""

    def note(self, rule, text):
        self.count[rule] += 1
        self.first = self.first or f"{rule}: {text}"

    def lives(self, journals):
        """At most one live actor of an id at any instant. A process that was halted may still
        have the actor in its memory when the next one starts, but runs nothing any more."""
        events = [(r[0], i, j, r) for j in journals for i, r in enumerate(j.records)]
        events.sort(key=lambda e: (e[0], e[2].pid, e[1]))
        live = collections.defaultdict(dict)  # id -> {journal: fence}
        newest = {}  # id -> (fence, journal) of the last start
        for when, _, journal, (_, name, seq, fence, client, event) in events:
            holders = live[name]
            if event in (ACTIVATE, RESUME):
                for other in list(holders):
                    ended = self.faults.dead.get(other.pid)
                    if other is journal or (ended is not None and ended <= when):
                        continue
                    last = max((r[0] for r in other.records), default=0)
                    if ended is not None and last < when:
                        continue  # it was dying: nothing of it came later
                    if other.pid not in self.faults.halted:
                        self.note("live_twice", f"{name:x} on {journal.node} and {other.node}")
                    elif holders[other] >= fence:
                        self.note("live_twice", f"{name:x}: fence {fence} after {holders[other]}")
                holders[journal] = fence
                newest[name] = (fence, journal)
            elif event in (EXPORT, DISCARD):
                holders.pop(journal, None)
            elif newest.get(name, (0, journal))[1] is not journal:
                self.note("live_twice", f"{name:x} runs on {journal.node} after it started elsewhere")

    def runs(self, journals, requests):
        begun = collections.Counter()
        ended = collections.Counter()
        order = collections.defaultdict(list)
        for journal in journals:
            for when, name, seq, _, client, event in journal.records:
                if event == RUN_BEGIN:
                    begun[client, name, seq] += 1
                    order[client, name].append((when, seq))
                elif event == RUN_END:
                    ended[client, name, seq] += 1
        for key, times in begun.items():
            if times > 1:
                self.note("run_twice", f"client {key[0]} seq {key[2]} of {key[1]:x} ran {times} times")
        for key, list_of in order.items():
            seqs = [seq for _, seq in sorted(list_of)]
            for a, b in zip(seqs, seqs[1:]):
                if b < a:
                    self.note("out_of_order", f"client {key[0]}: {b} after {a} of {key[1]:x}")
        for r in requests:
            key = (r.client, id_hash(r.id), r.seq)
            if r.code == "NONE":
                self.note("unanswered", f"{r}")
            elif r.code == "OK" and not ended[key]:
                self.note("lost", f"answered OK, but no run: {r}")
            elif r.code in ("OVERLOADED", "MOVING") and begun[key]:
                self.note("ran_refused", f"refused, but it ran: {r}")


def judge(requests, folder, faults=None):
    """`folder`: where the ledger actors wrote their journals."""
    faults = faults or Faults()
    journals = [Journal(path) for path in sorted(glob.glob(os.path.join(folder, "*.journal")))]
    it = _Judge(faults)
    it.lives(journals)
    it.runs(journals, requests)
    codes = collections.Counter(r.code for r in requests)
    c = it.count
    return Verdict(
        len(requests), codes, c["unanswered"], c["lost"], c["run_twice"], c["ran_refused"],
        c["out_of_order"], c["live_twice"], it.first,
    )  # fmt: skip
